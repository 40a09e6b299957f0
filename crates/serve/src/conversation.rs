//! One client whose bytes are known from the start: for input that no well-behaved client sends.

use crate::client;
use crate::drive::Drive;
use crate::exports::Exports;
use crate::server::{Limits, Server};
use crate::stream::Stream;
use std::io;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::{LocalSet, yield_now};

/// Turns of the server without a byte for the client after which it has nothing more to say.
const QUIET_TURNS: u32 = 16;

/// Serves one client that sends `input`, `piece` bytes at a time, and leaves when it has had all
/// replies. Returns what it was sent, and the drive, which may still be serving requests.
///
/// # Errors
/// Fails when sockets cannot be made.
pub fn converse(
    drive: Drive,
    exports: Exports,
    input: &[u8],
    piece: usize,
) -> io::Result<(Vec<u8>, Drive)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let server = Rc::new(Server::new(drive, exports, String::new(), Limits::default()));
    let replies = tasks.block_on(&runtime, async {
        let (client, stream) = UnixStream::pair()?;
        tokio::task::spawn_local(client::serve(Stream::Unix(stream), Rc::clone(&server)));
        tokio::select! {
            replies = client_of(client, &server, input, piece.max(1)) => replies,
            () = server.run_drive() => Ok(Vec::new()),
        }
    });
    drop(tasks);
    let server = Rc::into_inner(server).expect("all tasks have ended");
    Ok((replies?, server.into_drive()))
}

/// Sends `input` and receives replies until the server leaves, or has answered everything.
async fn client_of(
    mut stream: UnixStream,
    server: &Server,
    input: &[u8],
    piece: usize,
) -> io::Result<Vec<u8>> {
    let (mut reader, mut writer) = stream.split();
    let mut replies = Vec::new();
    let mut left = input;
    let mut quiet = 0;
    while quiet < QUIET_TURNS {
        quiet += 1;
        tokio::select! {
            biased;
            count = reader.read_buf(&mut replies) => match count {
                Ok(1..) => quiet = 0,
                // The server has closed the connection, perhaps without reading all.
                Ok(0) | Err(_) => return Ok(replies),
            },
            sent = writer.write(&left[..piece.min(left.len())]), if !left.is_empty() => match sent {
                Ok(count) => {
                    left = &left[count..];
                    quiet = 0;
                }
                Err(_) => return Ok(replies),
            },
            () = yield_now() => {}
        }
        if server.status().1 > 0 {
            quiet = 0;
        }
    }
    Ok(replies)
}
