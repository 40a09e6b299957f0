//! A client: its handshake, then its requests until it leaves or violates the protocol.

use crate::connection::{Connection, End, HANDSHAKE_TIME, Input, Protocol};
use crate::contents::{Data, SECTOR};
use crate::drive::{Finished, Job, Kind};
use crate::exports::Export;
use crate::nbd::{
    ClientFlags, Command, ErrorCode, Extent, Header, InfoRequest, Opt, OptionError, OptionReply,
    Reply, export_name_reply, greeting, option_replies, parse_client_flags, parse_option,
    parse_option_header, transmission,
};
use crate::server::Server;
use crate::stream::Stream;
use hybridsim_engine::Flags;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

/// The longest request that carries data; clients learn it in the handshake.
const DATA_BYTES_MAX: u32 = 32 << 20;
/// Options of a handshake.
const OPTIONS_MAX: usize = 128;
/// Block status descriptors of a reply.
const EXTENTS_MAX: usize = 4096;

/// Sectors whose block status one reply describes: clients ask again for the rest.
const STATUS_SECTORS_MAX: u64 = 1 << 20;

/// The commands and options of this server.
const FLAGS: u16 = transmission::HAS_FLAGS
    | transmission::SEND_FLUSH
    | transmission::SEND_FUA
    | transmission::SEND_TRIM
    | transmission::SEND_WRITE_ZEROES
    // All connections reach the same device, and a flush is one of the device.
    | transmission::CAN_MULTI_CONN;

/// Minimum, preferred and maximum length of a request.
const BLOCK_SIZES: [u32; 3] = [SECTOR as u32, 4096, DATA_BYTES_MAX];

/// The outcome of a handshake.
struct Session {
    export: Export,
    allocation: bool,
}

/// The continuation of a handshake after an option.
enum Next {
    Option,
    End,
    Transmission(Export),
}

/// A request that the drive is serving.
struct Serving {
    /// The client's name for it, which it may use twice.
    cookie: u64,
    offset: u64,
    /// Bytes of data it brought, or will bring.
    bytes: usize,
    /// Whether the client expects data.
    reads: bool,
}

/// The requests of a connection, and the form of their replies.
#[derive(Default)]
struct Replies {
    /// Whether structured replies have been negotiated.
    structured: Cell<bool>,
    serving: RefCell<FxHashMap<u64, Serving>>,
    begun: Cell<u64>,
}

impl Replies {
    /// Numbers a request that the drive will serve.
    fn begin(&self, request: Serving) -> u64 {
        let number = self.begun.replace(self.begun.get() + 1);
        self.serving.borrow_mut().insert(number, request);
        number
    }

    fn write(&self, connection: &Connection, cookie: u64, reply: &Reply<'_>) {
        connection.reply(|out| reply.write(cookie, self.structured.get(), out));
    }
}

impl Protocol for Replies {
    fn finished(&self, connection: &Connection, finished: Finished) {
        let Some(serving) = self.serving.borrow_mut().remove(&finished.number) else { return };
        let reply = match &finished.outcome {
            Ok(bytes) if serving.reads => Reply::Data { offset: serving.offset, bytes },
            Ok(_) => Reply::Done,
            Err(message) => Reply::Error(ErrorCode::Io, message),
        };
        self.write(connection, serving.cookie, &reply);
        connection.release(serving.bytes);
    }
}

/// Serves the client at the other end of `stream` until its connection ends.
pub async fn serve(stream: Stream, server: Rc<Server>) {
    let replies = Rc::new(Replies::default());
    let Some(connection) = server.connect(stream, Rc::clone(&replies) as Rc<dyn Protocol>) else {
        return;
    };
    let input = Input::new(&connection);
    let mut client = Client { connection: &connection, server: &server, replies: &replies, input };
    let ended = tokio::select! {
        // After a power failure no further request is read.
        biased;
        () = connection.closed.notified() => Err(End::Left),
        ended = client.run() => ended,
        // A client that left while replies were written.
        ended = connection.write_out() => ended,
    };
    server.disconnected(&connection, ended.err().unwrap_or(End::Left));
}

/// The input of a connection.
struct Client<'a> {
    connection: &'a Connection,
    server: &'a Server,
    replies: &'a Replies,
    input: Input<'a>,
}

impl<'a> Client<'a> {
    async fn run(&mut self) -> Result<(), End> {
        let session = tokio::time::timeout(HANDSHAKE_TIME, self.handshake());
        let Some(session) = session.await.map_err(|_| End::Violation)?? else { return Ok(()) };
        self.server.connected();
        self.transmission(&session).await?;
        // Replies to what was asked before the client said it would leave.
        self.connection.finish().await;
        Ok(())
    }

    async fn handshake(&mut self) -> Result<Option<Session>, End> {
        self.connection.send_now(&greeting());
        let client = parse_client_flags(self.input.array().await?).ok_or(End::Violation)?;
        let mut allocation = None;
        for _ in 0..OPTIONS_MAX {
            let header = parse_option_header(&self.input.array().await?).ok_or(End::Violation)?;
            let data = self.input.take(header.length as usize).await?;
            let opt = parse_option(header.option, &data);
            let (replies, chosen) = self.answer(opt, client, &mut allocation)?;
            if let Some(replies) = replies {
                self.connection.send_now(&option_replies(header.option, &replies));
            }
            match chosen {
                Next::Option => {}
                Next::End => {
                    self.connection.finish().await;
                    return Ok(None);
                }
                Next::Transmission(export) => {
                    let of = allocation.is_some_and(|it: String| it == export.name);
                    let allocation = of && self.replies.structured.get();
                    return Ok(Some(Session { export, allocation }));
                }
            }
        }
        Err(End::Violation)
    }

    /// The replies to an option, and what follows.
    fn answer(
        &self,
        opt: Result<Opt, OptionError>,
        client: ClientFlags,
        allocation: &mut Option<String>,
    ) -> Result<(Option<Vec<OptionReply<'a>>>, Next), End> {
        let exports = &self.server.exports;
        let go_on = |replies| Ok((Some(replies), Next::Option));
        match opt {
            Ok(Opt::ExportName(name)) => {
                // There is no way to say that the export is unknown but to leave.
                let export = exports.find(&name).ok_or(End::Violation)?;
                let bytes = export.sectors * SECTOR as u64;
                self.connection.send_now(&export_name_reply(bytes, self.flags(), client));
                Ok((None, Next::Transmission(export.clone())))
            }
            Ok(Opt::Abort) => Ok((Some(vec![OptionReply::Ack]), Next::End)),
            Ok(Opt::List) => {
                let description = &self.server.description[..];
                let server = |it: &'a Export| OptionReply::Server { name: &it.name, description };
                let list = exports.iter().map(server);
                go_on(list.chain([OptionReply::Ack]).collect())
            }
            Ok(Opt::Info(request)) => go_on(self.info(&request)),
            Ok(Opt::Go(request)) => {
                let replies = self.info(&request);
                match exports.find(&request.export) {
                    Some(export) => Ok((Some(replies), Next::Transmission(export.clone()))),
                    None => go_on(replies),
                }
            }
            Ok(Opt::StructuredReply) => {
                self.replies.structured.set(true);
                go_on(vec![OptionReply::Ack])
            }
            Ok(Opt::ListMeta(request)) => go_on(match exports.find(&request.export) {
                None => vec![unknown()],
                Some(_) if request.allocation => {
                    vec![OptionReply::Allocation { chosen: false }, OptionReply::Ack]
                }
                Some(_) => vec![OptionReply::Ack],
            }),
            Ok(Opt::SetMeta(request)) => go_on(match exports.find(&request.export) {
                _ if !self.replies.structured.get() => {
                    let message = "negotiate structured replies first";
                    vec![OptionReply::Error(OptionError::Invalid, message)]
                }
                None => vec![unknown()],
                Some(export) if request.allocation => {
                    *allocation = Some(export.name.clone());
                    vec![OptionReply::Allocation { chosen: true }, OptionReply::Ack]
                }
                Some(_) => {
                    *allocation = None;
                    vec![OptionReply::Ack]
                }
            }),
            Err(error) => {
                let message = match error {
                    OptionError::Encryption => {
                        "encryption is not offered: use a Unix socket or a tunnel"
                    }
                    OptionError::Unsupported => "unknown option",
                    OptionError::Invalid => "the option's data are wrong",
                };
                go_on(vec![OptionReply::Error(error, message)])
            }
        }
    }

    /// The transmission flags, as negotiated so far.
    fn flags(&self) -> u16 {
        // Without structured replies, a read is never fragmented.
        FLAGS | if self.replies.structured.get() { transmission::SEND_DF } else { 0 }
    }

    async fn transmission(&mut self, session: &Session) -> Result<(), End> {
        loop {
            // Requests that are already buffered must not keep other tasks from running.
            tokio::task::consume_budget().await;
            let header = Header::parse(&self.input.array().await?).ok_or(End::Violation)?;
            let command = match header.command {
                Ok(Command::Disconnect) => return Ok(()),
                Ok(command) => refusal(&header, command, session).map_or(Ok(command), Err),
                Err(_) => Err((ErrorCode::Invalid, "unknown command or flag")),
            };
            if header.data > DATA_BYTES_MAX {
                // The data of the request are not read, so the next request cannot be found.
                return Err(End::Violation);
            }
            let make_room = || self.server.drop_stalled();
            self.connection.wait_for_space(bytes_of(&header), make_room).await;
            self.connection.expect(bytes_of(&header));
            let data = self.input.take(header.data as usize).await?;
            self.connection.arrived(bytes_of(&header));
            match command {
                Ok(command) => self.request(session, (&header, command), data),
                Err((code, message)) => {
                    self.reply_now(&header, &Reply::Error(code, message));
                }
            }
            if let Ok(Command::BlockStatus { .. }) = header.command {
                // It is answered here and may take a while.
                tokio::task::yield_now().await;
            }
        }
    }

    fn info(&self, request: &InfoRequest) -> Vec<OptionReply<'static>> {
        match self.server.exports.find(&request.export) {
            None => vec![unknown()],
            Some(export) => {
                let bytes = export.sectors * SECTOR as u64;
                let mut replies = vec![OptionReply::Export { bytes, flags: self.flags() }];
                // Sent unasked as well: a client that ignores it has to keep to 512 bytes anyway.
                replies.push(OptionReply::BlockSizes(BLOCK_SIZES));
                replies.push(OptionReply::Ack);
                replies
            }
        }
    }

    /// Hands a valid request to the drive, or replies at once.
    fn request(&self, session: &Session, (header, command): (&Header, Command), data: Vec<u8>) {
        let first = session.export.first + header.offset / SECTOR as u64;
        let sectors = u64::from(header.length) / SECTOR as u64;
        let (kind, fua) = match command {
            Command::Read { .. } => (Kind::Read, false),
            Command::Write { fua } => (Kind::Write(Data::Bytes(data)), fua),
            Command::WriteZeroes { fua } => (Kind::Write(Data::Zeros), fua),
            Command::Trim { fua } => (Kind::Trim, fua),
            Command::Flush => (Kind::Flush, false),
            Command::BlockStatus { one } => {
                let extents = self.status(first, sectors, one);
                return self.reply_now(header, &Reply::Status(&extents));
            }
            Command::Disconnect => unreachable!("it ended the connection"),
        };
        let (first, sectors) = if kind == Kind::Flush { (0, 0) } else { (first, sectors) };
        let &Header { cookie, offset, .. } = header;
        let (bytes, reads) = (bytes_of(header), kind == Kind::Read);
        let number = self.replies.begin(Serving { cookie, offset, bytes, reads });
        let flags = if fua { Flags::FUA } else { Flags::NONE };
        let job = Job { client: self.connection.id, number, kind, first, sectors, flags };
        self.server.receive(job, Instant::now());
    }

    /// Replies to a request that the drive does not see.
    fn reply_now(&self, header: &Header, reply: &Reply<'_>) {
        self.replies.write(self.connection, header.cookie, reply);
        self.connection.release(bytes_of(header));
        self.connection.send();
    }

    /// The block status of a range; at least one descriptor.
    fn status(&self, first: u64, sectors: u64, one: bool) -> Vec<Extent> {
        let count = if one { 1 } else { EXTENTS_MAX };
        let list = self.server.extents(first, sectors.min(STATUS_SECTORS_MAX), count);
        let extent = |(sectors, allocated): (u64, bool)| Extent {
            bytes: (sectors * SECTOR as u64) as u32,
            hole: !allocated,
        };
        list.into_iter().map(extent).collect()
    }
}

fn unknown() -> OptionReply<'static> {
    OptionReply::UnknownExport("no export of this name")
}

/// Bytes of data that a request brings or will bring.
fn bytes_of(header: &Header) -> usize {
    match header.command {
        Ok(Command::Read { .. } | Command::Write { .. }) => header.length as usize,
        _ => header.data as usize,
    }
}

/// Why a command is refused, if it is.
fn refusal(
    header: &Header,
    command: Command,
    session: &Session,
) -> Option<(ErrorCode, &'static str)> {
    let Header { offset, length, .. } = *header;
    if matches!(command, Command::Flush) {
        return None;
    }
    let writes = matches!(command, Command::Write { .. } | Command::WriteZeroes { .. });
    let end = offset.checked_add(u64::from(length));
    let within = end.is_some_and(|end| end <= session.export.sectors * SECTOR as u64);
    let aligned = offset.is_multiple_of(SECTOR as u64) && length.is_multiple_of(SECTOR as u32);
    if !within {
        let code = if writes { ErrorCode::NoSpace } else { ErrorCode::Invalid };
        return Some((code, "beyond the end of the device"));
    }
    if length == 0 || !aligned {
        return Some((ErrorCode::Invalid, "not a multiple of 512 bytes"));
    }
    match command {
        Command::Read { whole } if length > DATA_BYTES_MAX => {
            let code = if whole { ErrorCode::Overflow } else { ErrorCode::Invalid };
            Some((code, "longer than the maximum block size"))
        }
        Command::BlockStatus { .. } if !session.allocation => {
            Some((ErrorCode::Invalid, "no metadata context was negotiated"))
        }
        _ => None,
    }
}
