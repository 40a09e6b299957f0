//! The server's side of a connection: replies, the requests outstanding, and memory in use.

use crate::budget::{Budget, STALLED};
use crate::drive::Finished;
use crate::nbd::{ErrorCode, Reply};
use crate::stream::Stream;
use bytes::{Buf, BytesMut};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::Notify;

/// Requests of a connection that are served at a time; further ones stay in the socket.
const REQUESTS_MAX: usize = 256;
/// Data and replies a connection may have in memory, unless one request alone has more.
const BYTES_MAX: usize = 64 << 20;
/// A buffer that had to be larger is released when it has been used.
pub const KEPT_BYTES_MAX: usize = 1 << 20;

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
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
pub struct Serving {
    /// The client's name for it, which it may use twice.
    pub cookie: u64,
    pub offset: u64,
    /// Bytes of data it brought, or will bring.
    pub bytes: usize,
    /// Whether the client expects data.
    pub reads: bool,
}

/// A connection.
pub struct Connection {
    pub id: u64,
    stream: Stream,
    out: RefCell<BytesMut>,
    /// `out` grew beyond what is kept, and is released when it has been sent.
    out_is_large: Cell<bool>,
    out_grew: Notify,
    /// Requests have ended, or replies have left.
    space: Notify,
    /// Whether structured replies have been negotiated.
    pub structured: Cell<bool>,
    serving: RefCell<FxHashMap<u64, Serving>>,
    begun: Cell<u64>,
    /// Data of the requests that the drive is serving.
    bytes: Cell<usize>,
    /// Data of the request that is being received.
    incoming: Cell<usize>,
    /// Whether the server has decided to end it.
    dropped: Cell<bool>,
    budget: Rc<Budget>,
    /// The part of the budget in use.
    charged: Cell<usize>,
    /// The time at which the client last sent or took something.
    moved: Cell<Instant>,
    pub closed: Notify,
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

    /// Waits until the connection and the budget have space for a request of `bytes`, and takes it.
    /// `make_room` releases memory of other connections.
    pub async fn wait_for_space(&self, bytes: usize, make_room: impl Fn()) {
        loop {
            let count = self.serving.borrow().len();
            let used = self.bytes.get() + self.out.borrow().len();
            let fits = count == 0 && used == 0 || count < REQUESTS_MAX && used + bytes <= BYTES_MAX;
            if !fits {
                self.space.notified().await;
                continue;
            }
            if bytes > 0 {
                self.budget.room(bytes, make_room).await;
            }
            self.incoming.set(bytes);
            return self.charge();
        }
    }

    /// The request that [`Connection::wait_for_space`] let in has arrived.
    pub fn received(&self) {
        self.incoming.set(0);
    }

    /// The drive serves `request`. Returns its number.
    pub fn begin(&self, request: Serving) -> u64 {
        let number = self.begun.get();
        self.begun.set(number + 1);
        self.bytes.set(self.bytes.get() + request.bytes);
        self.charge();
        self.serving.borrow_mut().insert(number, request);
        number
    }

    /// Waits until all requests have ended and their replies have left.
    pub async fn finish(&self) {
        while !self.serving.borrow().is_empty() || !self.out.borrow().is_empty() {
            self.space.notified().await;
        }
    }

    /// Reads what the client has sent into `buffer`, at least one byte.
    ///
    /// # Errors
    /// The client has left.
    pub async fn receive(&self, buffer: &mut BytesMut) -> Result<(), End> {
        if self.stream.read(buffer).await? == 0 {
            return Err(End::Left);
        }
        self.moved.set(Instant::now());
        Ok(())
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
    pub fn reply(&self, cookie: u64, reply: &Reply<'_>) {
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

    pub fn send_now(&self, bytes: &[u8]) {
        self.out.borrow_mut().extend_from_slice(bytes);
        self.send();
    }

    pub async fn write_out(&self) -> Result<(), End> {
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
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.budget.change(self.charged.get(), 0);
    }
}
