//! Clients whose bytes are known from the start: for input that no well-behaved client sends.

use crate::client;
use crate::drive::Drive;
use crate::exports::Exports;
use crate::nvme::{self, NQN, Subsystem};
use crate::server::{Limits, Server};
use crate::stream::Stream;
use std::io;
use std::rc::Rc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::{LocalSet, yield_now};

/// Turns of the server without a byte for the client after which it has nothing more to say.
const QUIET_TURNS: u32 = 16;

/// The protocol of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The network block device protocol.
    Nbd,
    /// NVMe over TCP, with the subsystem [`NQN`].
    Nvme,
}

/// Serves clients that take `turns`: the number of a client, which connects with its first turn,
/// and what it sends, `piece` bytes at a time. The next turn begins when all replies are there. All
/// leave at the end. Returns what each was sent, up to the end of the drive, and the drive, which
/// may still be serving requests.
///
/// # Errors
/// Fails when sockets cannot be made, or an export cannot be a namespace.
pub fn converse(
    drive: Drive,
    exports: Exports,
    protocol: Protocol,
    turns: &[(usize, &[u8])],
    piece: usize,
) -> io::Result<(Vec<Vec<u8>>, Drive)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let subsystem = match protocol {
        Protocol::Nbd => None,
        Protocol::Nvme => Some(Subsystem::new(&drive, &exports, "", NQN.to_owned())),
    };
    let subsystem = subsystem.transpose().map_err(io::Error::other)?.map(Rc::new);
    let server = Rc::new(Server::new(drive, exports, String::new(), Limits::default()));
    let connect = |subsystem: &Option<Rc<Subsystem>>| {
        let (client, stream) = UnixStream::pair()?;
        let (stream, server) = (Stream::Unix(stream), Rc::clone(&server));
        match subsystem {
            Some(subsystem) => {
                tokio::task::spawn_local(nvme::serve(stream, server, Rc::clone(subsystem)))
            }
            None => tokio::task::spawn_local(client::serve(stream, server)),
        };
        io::Result::Ok((client, Vec::new()))
    };
    let clients = tasks.block_on(&runtime, async {
        let mut clients: Vec<Option<(UnixStream, Vec<u8>)>> = Vec::new();
        for &(number, input) in turns {
            clients.resize_with(clients.len().max(number + 1), || None);
            let (client, replies) = match &mut clients[number] {
                Some(known) => known,
                new => new.insert(connect(&subsystem)?),
            };
            tokio::select! {
                () = take_turn(client, &server, input, piece.max(1), replies) => {}
                () = server.run_drive() => break,
            }
        }
        io::Result::Ok(clients)
    });
    drop((tasks, subsystem));
    let replies = clients?.into_iter().map(|client| client.map_or_else(Vec::new, |it| it.1));
    let replies = replies.collect();
    let server = Rc::into_inner(server).expect("all tasks have ended");
    Ok((replies, server.into_drive()))
}

/// Sends `input` and receives replies until the server leaves, or has answered everything.
async fn take_turn(
    stream: &mut UnixStream,
    server: &Server,
    input: &[u8],
    piece: usize,
    replies: &mut Vec<u8>,
) {
    let (mut reader, mut writer) = stream.split();
    let mut left = input;
    let mut quiet = 0;
    while quiet < QUIET_TURNS {
        quiet += 1;
        tokio::select! {
            biased;
            count = reader.read_buf(replies) => match count {
                Ok(1..) => quiet = 0,
                // The server has closed the connection, perhaps without reading all.
                Ok(0) | Err(_) => return,
            },
            sent = writer.write(&left[..piece.min(left.len())]), if !left.is_empty() => match sent {
                Ok(count) => {
                    left = &left[count..];
                    quiet = 0;
                }
                Err(_) => return,
            },
            () = yield_now() => {}
        }
        if server.status().1 > 0 {
            quiet = 0;
        }
    }
}
