//! One connection: the handshake, then requests until the client leaves or violates the protocol.

use crate::budget::{Budget, STALLED};
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
use bytes::{Buf, BytesMut};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The longest request that carries data; clients learn it in the handshake.
pub const DATA_BYTES_MAX: u32 = 32 << 20;
/// Requests of a connection that are served at a time; further ones stay in the socket.
const REQUESTS_MAX: usize = 256;
/// Data and replies a connection may have in memory, unless one request alone has more.
const BYTES_MAX: usize = 64 << 20;
/// Time for the whole handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(20);
/// Options of a handshake.
const OPTIONS_MAX: usize = 128;
/// Space for what is read from a socket at a time.
const READ_BYTES: usize = 256 << 10;
/// A buffer that had to be larger is released when it has been used.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Block status descriptors of a reply.
const EXTENTS_MAX: usize = 4096;

/// Sectors whose block status one reply describes: clients ask again for the rest.
const STATUS_SECTORS_MAX: u64 = 1 << 20;

/// What clients may do.
const FLAGS: u16 = transmission::HAS_FLAGS
    | transmission::SEND_FLUSH
    | transmission::SEND_FUA
    | transmission::SEND_TRIM
    | transmission::SEND_WRITE_ZEROES
    // All connections reach the same device, and a flush is one of the device.
    | transmission::CAN_MULTI_CONN;

/// Minimum, preferred and maximum length of a request.
const BLOCK_SIZES: [u32; 3] = [SECTOR as u32, 4096, DATA_BYTES_MAX];

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client left.
    Left,
    /// The client violated the protocol, or took too long.
    Violation,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Left
    }
}

/// A request that the drive is serving.
struct Serving {
    /// The client's name for it, which it may use twice.
    cookie: u64,
    offset: u64,
    /// Bytes of data it brought, or will bring.
    bytes: usize,
    /// Expects data.
    reads: bool,
}

/// A connection, as seen by the server.
pub struct Connection {
    pub id: u64,
    stream: Stream,
    out: RefCell<BytesMut>,
    /// `out` grew beyond what is kept, and is released when it has been sent.
    out_is_large: Cell<bool>,
    out_grew: Notify,
    /// Requests have ended, or replies have left.
    space: Notify,
    structured: Cell<bool>,
    serving: RefCell<FxHashMap<u64, Serving>>,
    begun: Cell<u64>,
    /// Data of the requests that the drive is serving.
    bytes: Cell<usize>,
    /// Data of the request that is being received.
    incoming: Cell<usize>,
    /// Whether the server has decided to end it.
    dropped: Cell<bool>,
    budget: Rc<Budget>,
    /// What it uses of the budget.
    charged: Cell<usize>,
    /// When the client last sent or took something.
    moved: Cell<Instant>,
    pub closed: Notify,
}

/// What follows the handshake.
struct Session {
    export: Export,
    allocation: bool,
}

impl Connection {
    pub fn new(id: u64, stream: Stream, budget: Rc<Budget>) -> Self {
        Self {
            id,
            stream,
            out: RefCell::default(),
            out_is_large: Cell::new(false),
            out_grew: Notify::new(),
            space: Notify::new(),
            structured: Cell::new(false),
            serving: RefCell::default(),
            begun: Cell::new(0),
            bytes: Cell::new(0),
            incoming: Cell::new(0),
            dropped: Cell::new(false),
            budget,
            charged: Cell::new(0),
            moved: Cell::new(Instant::now()),
            closed: Notify::new(),
        }
    }

    /// Serves the connection to its end.
    pub async fn serve(self: Rc<Self>, server: Rc<Server>) {
        let end = self.run(&server).await;
        server.disconnected(&self, end);
    }

    async fn run(self: &Rc<Self>, server: &Rc<Server>) -> End {
        let ended = tokio::select! {
            // After a power failure no further request is read.
            biased;
            () = self.closed.notified() => Err(End::Left),
            ended = self.read(server) => ended,
            // A client that left while replies were written.
            ended = self.write_out() => ended,
        };
        ended.err().unwrap_or(End::Left)
    }

    async fn read(self: &Rc<Self>, server: &Rc<Server>) -> Result<(), End> {
        let mut input = Input { connection: self, buffer: BytesMut::new() };
        let handshake = self.handshake(server, &mut input);
        let session = tokio::time::timeout(HANDSHAKE_TIME, handshake);
        let Some(session) = session.await.map_err(|_| End::Violation)?? else { return Ok(()) };
        server.connected();
        self.transmission(server, &session, &mut input).await?;
        // Replies to what was asked before the client said it would leave.
        while !self.serving.borrow().is_empty() || !self.out.borrow().is_empty() {
            self.space.notified().await;
        }
        Ok(())
    }

    async fn handshake(
        &self,
        server: &Server,
        input: &mut Input<'_>,
    ) -> Result<Option<Session>, End> {
        self.send_now(&greeting());
        let client = parse_client_flags(input.array().await?).ok_or(End::Violation)?;
        let mut allocation = None;
        for _ in 0..OPTIONS_MAX {
            let header = parse_option_header(&input.array().await?).ok_or(End::Violation)?;
            let data = input.take(header.length as usize).await?;
            let opt = parse_option(header.option, &data);
            let (replies, chosen) = self.answer(server, opt, client, &mut allocation)?;
            if let Some(replies) = replies {
                self.send_now(&option_replies(header.option, &replies));
            }
            match chosen {
                Next::Option => {}
                Next::End => {
                    self.drain().await;
                    return Ok(None);
                }
                Next::Transmission(export) => {
                    let of = allocation.is_some_and(|it: String| it == export.name);
                    let allocation = of && self.structured.get();
                    return Ok(Some(Session { export, allocation }));
                }
            }
        }
        Err(End::Violation)
    }

    /// The replies to an option, and what follows.
    fn answer<'a>(
        &self,
        server: &'a Server,
        opt: Result<Opt, OptionError>,
        client: ClientFlags,
        allocation: &mut Option<String>,
    ) -> Result<(Option<Vec<OptionReply<'a>>>, Next), End> {
        let exports = &server.exports;
        let go_on = |replies| Ok((Some(replies), Next::Option));
        match opt {
            Ok(Opt::ExportName(name)) => {
                // There is no way to say that the export is unknown but to leave.
                let export = exports.find(&name).ok_or(End::Violation)?;
                let bytes = export.sectors * SECTOR as u64;
                self.send_now(&export_name_reply(bytes, self.flags(), client));
                Ok((None, Next::Transmission(export.clone())))
            }
            Ok(Opt::Abort) => Ok((Some(vec![OptionReply::Ack]), Next::End)),
            Ok(Opt::List) => {
                let description = &server.description[..];
                let server = |it: &'a Export| OptionReply::Server { name: &it.name, description };
                let list = exports.iter().map(server);
                go_on(list.chain([OptionReply::Ack]).collect())
            }
            Ok(Opt::Info(request)) => go_on(info(server, &request, self.flags())),
            Ok(Opt::Go(request)) => {
                let replies = info(server, &request, self.flags());
                match exports.find(&request.export) {
                    Some(export) => Ok((Some(replies), Next::Transmission(export.clone()))),
                    None => go_on(replies),
                }
            }
            Ok(Opt::StructuredReply) => {
                self.structured.set(true);
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
                _ if !self.structured.get() => {
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

    /// What the client may do, as negotiated so far.
    fn flags(&self) -> u16 {
        // Without structured replies, a read is never fragmented.
        FLAGS | if self.structured.get() { transmission::SEND_DF } else { 0 }
    }

    async fn transmission(
        self: &Rc<Self>,
        server: &Rc<Server>,
        session: &Session,
        input: &mut Input<'_>,
    ) -> Result<(), End> {
        loop {
            // Requests that are already buffered must not keep other tasks from running.
            tokio::task::consume_budget().await;
            let header = Header::parse(&input.array().await?).ok_or(End::Violation)?;
            let refused = match header.command {
                Ok(Command::Disconnect) => return Ok(()),
                Ok(command) => refusal(&header, command, session),
                Err(_) => Some((ErrorCode::Invalid, "unknown command or flag")),
            };
            if header.data > DATA_BYTES_MAX {
                // Its data are not read, so the next request cannot be found.
                return Err(End::Violation);
            }
            self.wait_for_space(server, &header).await;
            let data = input.take(header.data as usize).await?;
            // From now on it counts as a request, or no longer.
            self.incoming.set(0);
            match (refused, header.command) {
                (None, Ok(command)) => self.request(server, session, (&header, command), data),
                (Some((code, message)), _) => {
                    self.reply(header.cookie, &Reply::Error(code, message));
                    self.send();
                }
                (None, Err(_)) => {}
            }
            if let Ok(Command::BlockStatus { .. }) = header.command {
                // It is answered here and may take a while.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Waits until the connection and the budget have space for the request, and takes it.
    async fn wait_for_space(&self, server: &Server, header: &Header) {
        let bytes = bytes_of(header);
        loop {
            let count = self.serving.borrow().len();
            let used = self.bytes.get() + self.out.borrow().len();
            let fits = count == 0 && used == 0 || count < REQUESTS_MAX && used + bytes <= BYTES_MAX;
            if !fits {
                self.space.notified().await;
                continue;
            }
            if bytes > 0 {
                self.budget.room(bytes, || server.drop_stalled()).await;
            }
            self.incoming.set(bytes);
            return self.charge();
        }
    }

    /// Accounts for what the connection has in memory.
    fn charge(&self) {
        let now = self.bytes.get() + self.incoming.get() + self.out.borrow().len();
        self.budget.change(self.charged.replace(now), now);
    }

    /// Whether the server has waited too long for the client to send or to take data.
    pub fn is_stalled(&self) -> bool {
        let waits = self.incoming.get() > 0 || !self.out.borrow().is_empty();
        waits && self.moved.get().elapsed() > STALLED && !self.dropped.get()
    }

    /// Ends the connection.
    pub fn drop_now(&self) {
        self.dropped.set(true);
        self.closed.notify_one();
    }

    /// Hands a valid request to the drive, or replies at once.
    fn request(
        &self,
        server: &Server,
        session: &Session,
        (header, command): (&Header, Command),
        data: Vec<u8>,
    ) {
        let first = session.export.first + header.offset / SECTOR as u64;
        let sectors = u64::from(header.length) / SECTOR as u64;
        let (kind, fua) = match command {
            Command::Read { .. } => (Kind::Read, false),
            Command::Write { fua } => (Kind::Write(Data::Bytes(data)), fua),
            Command::WriteZeroes { fua } => (Kind::Write(Data::Zeros), fua),
            Command::Trim { fua } => (Kind::Trim, fua),
            Command::Flush => (Kind::Flush, false),
            Command::BlockStatus { one } => {
                let extents = status(server, first, sectors, one);
                self.reply(header.cookie, &Reply::Status(&extents));
                return self.send();
            }
            Command::Disconnect => return,
        };
        let (first, sectors) = if kind == Kind::Flush { (0, 0) } else { (first, sectors) };
        let number = self.begun.get();
        self.begun.set(number + 1);
        let &Header { cookie, offset, .. } = header;
        let (bytes, reads) = (bytes_of(header), kind == Kind::Read);
        self.bytes.set(self.bytes.get() + bytes);
        self.charge();
        self.serving.borrow_mut().insert(number, Serving { cookie, offset, bytes, reads });
        let job = Job { client: self.id, number, kind, first, sectors, fua };
        server.receive(job, Instant::now());
    }

    /// A request has ended: appends its reply.
    pub fn finished(&self, finished: &Finished) {
        let Some(serving) = self.serving.borrow_mut().remove(&finished.number) else { return };
        self.bytes.set(self.bytes.get() - serving.bytes);
        let reply = match &finished.outcome {
            Ok(bytes) if serving.reads => Reply::Data { offset: serving.offset, bytes },
            Ok(_) => Reply::Done,
            Err(message) => Reply::Error(ErrorCode::Io, message),
        };
        self.reply(serving.cookie, &reply);
        self.charge();
        self.space.notify_one();
    }

    /// Appends a reply; [`Connection::send`] sends it.
    fn reply(&self, cookie: u64, reply: &Reply<'_>) {
        let mut out = self.out.borrow_mut();
        reply.write(cookie, self.structured.get(), &mut out);
        // What has been sent does not count as capacity, so later is too late.
        if out.capacity() > KEPT_BYTES_MAX {
            self.out_is_large.set(true);
        }
    }

    /// Sends what the socket takes at once; the rest is left to [`Connection::write_out`].
    pub fn send(&self) {
        let mut out = self.out.borrow_mut();
        if out.is_empty() {
            return;
        }
        if let Ok(count) = self.stream.try_write(&out) {
            self.sent(&mut out, count);
        }
        if !out.is_empty() {
            self.out_grew.notify_one();
        }
        drop(out);
        self.charge();
    }

    /// The first `count` bytes of `out` have been sent.
    fn sent(&self, out: &mut BytesMut, count: usize) {
        out.advance(count);
        self.moved.set(Instant::now());
        if out.is_empty() && self.out_is_large.take() {
            *out = BytesMut::new();
        }
    }

    fn send_now(&self, bytes: &[u8]) {
        self.out.borrow_mut().extend_from_slice(bytes);
        self.send();
    }

    async fn write_out(&self) -> Result<(), End> {
        loop {
            if self.out.borrow().is_empty() {
                self.out_grew.notified().await;
                continue;
            }
            self.stream.writable().await?;
            let mut out = self.out.borrow_mut();
            match self.stream.try_write(&out) {
                // Meanwhile replies may have been sent.
                Ok(0) if out.is_empty() => {}
                Ok(0) => return Err(End::Left),
                Ok(count) => {
                    self.sent(&mut out, count);
                    drop(out);
                    self.charge();
                    self.space.notify_one();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(End::Left),
            }
        }
    }

    /// Waits until all replies have left.
    async fn drain(&self) {
        while !self.out.borrow().is_empty() {
            self.space.notified().await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.budget.change(self.charged.get(), 0);
    }
}

/// What follows an option.
enum Next {
    Option,
    End,
    Transmission(Export),
}

fn unknown() -> OptionReply<'static> {
    OptionReply::UnknownExport("no export of this name")
}

fn info(server: &Server, request: &InfoRequest, flags: u16) -> Vec<OptionReply<'static>> {
    match server.exports.find(&request.export) {
        None => vec![unknown()],
        Some(export) => {
            let bytes = export.sectors * SECTOR as u64;
            let mut replies = vec![OptionReply::Export { bytes, flags }];
            // Sent unasked as well: a client that ignores it has to keep to 512 bytes anyway.
            replies.push(OptionReply::BlockSizes(BLOCK_SIZES));
            replies.push(OptionReply::Ack);
            replies
        }
    }
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

/// The block status of a range; at least one descriptor.
fn status(server: &Server, first: u64, sectors: u64, one: bool) -> Vec<Extent> {
    let count = if one { 1 } else { EXTENTS_MAX };
    let list = server.extents(first, sectors.min(STATUS_SECTORS_MAX), count);
    let extent = |(sectors, allocated): (u64, bool)| Extent {
        bytes: (sectors * SECTOR as u64) as u32,
        hole: !allocated,
    };
    list.into_iter().map(extent).collect()
}

/// The bytes of a connection in order.
struct Input<'a> {
    connection: &'a Connection,
    buffer: BytesMut,
}

impl Input<'_> {
    /// Waits until `count` bytes are buffered. Memory grows with what has arrived, not with what
    /// was announced.
    async fn fill(&mut self, count: usize) -> Result<(), End> {
        while self.buffer.len() < count {
            if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 2 {
                self.buffer.reserve(READ_BYTES);
            }
            if self.connection.stream.read(&mut self.buffer).await? == 0 {
                return Err(End::Left);
            }
            self.connection.moved.set(Instant::now());
        }
        Ok(())
    }

    /// The next `count` bytes.
    async fn take(&mut self, count: usize) -> Result<Vec<u8>, End> {
        self.fill(count).await?;
        let bytes = self.buffer.split_to(count).to_vec();
        if count > KEPT_BYTES_MAX {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        Ok(bytes)
    }

    /// The next `N` bytes.
    async fn array<const N: usize>(&mut self) -> Result<[u8; N], End> {
        self.fill(N).await?;
        let mut bytes = [0; N];
        self.buffer.copy_to_slice(&mut bytes);
        Ok(bytes)
    }
}
