//! Addresses and connections, over TCP or Unix sockets.

use bytes::BytesMut;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Pause after a failed `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Address {
    /// `tcp://` and an address such as `127.0.0.1:4420`.
    ///
    /// # Errors
    /// Fails as [`Address::parse`] does.
    pub fn parse_nvme(text: &str, anywhere: bool) -> Result<Self, String> {
        match text.strip_prefix("tcp://").map(|address| Self::parse(address, anywhere)) {
            Some(Ok(Self::Tcp(address))) => Ok(Self::Tcp(address)),
            Some(Err(problem)) if problem.contains("--listen-anywhere") => Err(problem),
            _ => Err(format!("{text}: write tcp:// and an address: tcp://127.0.0.1:4420")),
        }
    }

    /// `unix:/path`, or an address such as `127.0.0.1:10809`.
    ///
    /// # Errors
    /// Fails when it is neither, or not of this host and `anywhere` is not set.
    pub fn parse(text: &str, anywhere: bool) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(path.into()));
        }
        let address: SocketAddr = text
            .parse()
            .map_err(|_| format!("{text}: write unix:/path, or an address: 127.0.0.1:10809"))?;
        if !address.ip().is_loopback() && !anywhere {
            return Err(format!(
                "{text} is reachable from other hosts, and there is neither encryption nor a \
                 password: add --listen-anywhere if that is wanted"
            ));
        }
        Ok(Self::Tcp(address))
    }
}

/// A listening socket. A Unix socket's file is removed at the end, unless another server has put
/// its own there meanwhile.
pub enum Listener {
    Unix(UnixListener, PathBuf, Option<(u64, u64)>),
    Tcp(TcpListener),
}

/// Which file is at `path`: its device and inode.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

/// Removes the socket that a server which did not end properly left at `path`.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let refused = || {
        let tried = std::os::unix::net::UnixStream::connect(path);
        tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    if is_socket && refused() { std::fs::remove_file(path) } else { Ok(()) }
}

impl Listener {
    /// Listens at `address`.
    ///
    /// # Errors
    /// Fails when the address, which the message names, cannot be used.
    pub async fn bind(address: &Address) -> io::Result<Self> {
        let named = |error: io::Error| {
            let name = match address {
                Address::Unix(path) => format!("unix:{}", path.display()),
                Address::Tcp(address) => address.to_string(),
            };
            io::Error::new(error.kind(), format!("{name}: {error}"))
        };
        Self::bound(address).await.map_err(named)
    }

    async fn bound(address: &Address) -> io::Result<Self> {
        Ok(match address {
            Address::Unix(path) => {
                remove_stale(path)?;
                let listener = UnixListener::bind(path)?;
                Self::Unix(listener, path.clone(), identity(path))
            }
            Address::Tcp(address) => Self::Tcp(TcpListener::bind(address).await?),
        })
    }

    /// The address, as clients of the network block device write it.
    pub fn nbd_address(&self) -> String {
        match self {
            Self::Unix(_, path, _) => format!("nbd+unix:///?socket={}", path.display()),
            Self::Tcp(_) => format!("nbd://{}", self.tcp_address()),
        }
    }

    /// Host and port; empty for a Unix socket.
    pub fn tcp_address(&self) -> String {
        match self {
            Self::Unix(..) => String::new(),
            Self::Tcp(listener) => listener.local_addr().map_or(String::new(), |it| it.to_string()),
        }
    }

    /// Waits for the next connection. Failures, such as for want of file descriptors, pass.
    pub async fn next(&self) -> Stream {
        loop {
            match self.accept().await {
                Ok(stream) => return stream,
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn accept(&self) -> io::Result<Stream> {
        Ok(match self {
            Self::Unix(listener, ..) => Stream::Unix(listener.accept().await?.0),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path, own) = self
            && own.is_some()
            && identity(path) == *own
        {
            drop(std::fs::remove_file(path));
        }
    }
}

/// A connection.
pub enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Tcp(stream) => stream.try_write(bytes),
        }
    }

    /// The server's end, where it is an address of the Internet.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(stream) => stream.local_addr().ok(),
        }
    }

    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.writable().await,
            Self::Tcp(stream) => stream.writable().await,
        }
    }

    /// Waits for bytes and appends what there is to `buffer`, as far as it has space; 0 at the end.
    pub async fn read(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        loop {
            let tried = match self {
                Self::Unix(stream) => {
                    stream.readable().await?;
                    stream.try_read_buf(buffer)
                }
                Self::Tcp(stream) => {
                    stream.readable().await?;
                    stream.try_read_buf(buffer)
                }
            };
            match tried {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_of_a_later_server_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("nbd.sock");
        let address = Address::Unix(path.clone());
        let first = Listener::bind(&address).await.expect("a socket");
        // The socket is removed, and another server takes the name.
        std::fs::remove_file(&path).expect("it is there");
        let second = Listener::bind(&address).await.expect("a socket");
        drop(first);
        assert!(path.exists(), "it is of the second server");
        drop(second);
        assert!(!path.exists());
    }
}
