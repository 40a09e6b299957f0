//! The server's side of a connection, whatever its protocol: bytes in, replies out, the requests
//! outstanding, and memory in use.

use crate::budget::{Budget, STALLED};
use crate::drive::Finished;
use crate::stream::Stream;
use bytes::{Buf, BytesMut};
use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Time for the handshake of a connection.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(20);
/// Requests of a connection that are served at a time; further ones stay in the socket.
const REQUESTS_MAX: usize = 256;
/// Data and replies a connection may have in memory, unless one request alone has more.
const BYTES_MAX: usize = 64 << 20;
/// A buffer that had to be larger is released when it has been used.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Space for what is read from a socket at a time.
const READ_BYTES: usize = 256 << 10;

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

/// The protocol of a connection: it replies to requests that have ended.
pub trait Protocol {
    /// A request of `connection` has ended.
    fn finished(&self, connection: &Connection, finished: Finished);
}

/// A connection.
pub struct Connection {
    pub id: u64,
    protocol: Rc<dyn Protocol>,
    stream: Stream,
    out: RefCell<BytesMut>,
    /// `out` grew beyond what is kept, and is released when it has been sent.
    out_is_large: Cell<bool>,
    out_grew: Notify,
    /// Requests have ended, or replies have left.
    space: Notify,
    /// Requests that have space, and their data.
    requests: Cell<usize>,
    bytes: Cell<usize>,
    /// Data of requests that wait for the budget.
    waiting: Cell<usize>,
    /// Data that the client still has to send.
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
    pub fn new(id: u64, stream: Stream, protocol: Rc<dyn Protocol>, budget: Rc<Budget>) -> Self {
        Self {
            id,
            protocol,
            stream,
            out: RefCell::default(),
            out_is_large: Cell::new(false),
            out_grew: Notify::new(),
            space: Notify::new(),
            requests: Cell::new(0),
            bytes: Cell::new(0),
            waiting: Cell::new(0),
            incoming: Cell::new(0),
            dropped: Cell::new(false),
            budget,
            charged: Cell::new(0),
            moved: Cell::new(Instant::now()),
            closed: Notify::new(),
        }
    }

    /// Waits until the connection and the budget have space for a request of `bytes`, and takes it
    /// until [`Connection::release`]. `make_room` releases memory of other connections.
    pub async fn wait_for_space(&self, bytes: usize, make_room: impl Fn()) {
        loop {
            let count = self.requests.get();
            let used = self.bytes.get() + self.waiting.get() + self.out.borrow().len();
            let fits = count == 0 && used == 0 || count < REQUESTS_MAX && used + bytes <= BYTES_MAX;
            if fits {
                // Taken at once, as other requests may be waiting for space.
                self.requests.set(count + 1);
                self.waiting.set(self.waiting.get() + bytes);
                break;
            }
            self.space.notified().await;
        }
        if bytes > 0 {
            self.budget.room(bytes, make_room).await;
        }
        self.waiting.set(self.waiting.get() - bytes);
        self.bytes.set(self.bytes.get() + bytes);
        self.charge();
    }

    /// Takes space for a request of few `bytes` without waiting.
    pub fn take_space(&self, bytes: usize) {
        self.requests.set(self.requests.get() + 1);
        self.bytes.set(self.bytes.get() + bytes);
        self.charge();
    }

    /// A request of `bytes` no longer needs its space.
    pub fn release(&self, bytes: usize) {
        self.requests.set(self.requests.get() - 1);
        self.bytes.set(self.bytes.get() - bytes);
        self.charge();
        self.space.notify_waiters();
    }

    /// The client has to send `bytes` now.
    pub fn expect(&self, bytes: usize) {
        self.incoming.set(self.incoming.get() + bytes);
    }

    /// `bytes` of those expected have arrived.
    pub fn arrived(&self, bytes: usize) {
        self.incoming.set(self.incoming.get().saturating_sub(bytes));
    }

    /// Waits until all requests have ended and their replies have left.
    pub async fn finish(&self) {
        while self.requests.get() > 0 || !self.out.borrow().is_empty() {
            self.space.notified().await;
        }
    }

    /// Waits until the client has taken so much of its replies that further ones may be added.
    pub async fn wait_for_client(&self) {
        while self.out.borrow().len() > KEPT_BYTES_MAX {
            self.space.notified().await;
        }
    }

    /// The server's address, where it is one of the Internet.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.stream.local_address()
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
        let now = self.bytes.get() + self.out.borrow().len();
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

    /// A request has ended.
    pub fn finished(&self, finished: Finished) {
        self.protocol.finished(self, finished);
    }

    /// Appends what `write` writes; [`Connection::send`] sends it.
    pub fn reply(&self, write: impl FnOnce(&mut BytesMut)) {
        let mut out = self.out.borrow_mut();
        write(&mut out);
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

    /// Lets [`Connection::write_out`] send it, together with what else is appended meanwhile.
    pub fn send_soon(&self) {
        self.charge();
        self.out_grew.notify_one();
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
                    self.space.notify_waiters();
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

/// The bytes that a client has sent and that have not been used.
pub struct Input<'a> {
    connection: &'a Connection,
    buffer: BytesMut,
}

impl<'a> Input<'a> {
    pub fn new(connection: &'a Connection) -> Self {
        Self { connection, buffer: BytesMut::new() }
    }

    /// Waits until `count` bytes are buffered. Memory grows with what has arrived, not with what
    /// was announced.
    async fn fill(&mut self, count: usize) -> Result<(), End> {
        while self.buffer.len() < count {
            if self.buffer.capacity() - self.buffer.len() < READ_BYTES / 2 {
                self.buffer.reserve(READ_BYTES);
            }
            self.connection.receive(&mut self.buffer).await?;
        }
        Ok(())
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// The client has left.
    pub async fn take(&mut self, count: usize) -> Result<Vec<u8>, End> {
        self.fill(count).await?;
        let bytes = self.buffer.split_to(count).to_vec();
        if count > KEPT_BYTES_MAX {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        Ok(bytes)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// The client has left.
    pub async fn array<const N: usize>(&mut self) -> Result<[u8; N], End> {
        self.fill(N).await?;
        let mut bytes = [0; N];
        self.buffer.copy_to_slice(&mut bytes);
        Ok(bytes)
    }
}
