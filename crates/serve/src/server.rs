//! The state that all connections share: the drive, whose simulated time passes here.

use crate::budget::Budget;
use crate::connection::{Connection, End, Protocol};
use crate::drive::{Drive, Job};
use crate::exports::Exports;
use crate::stream::Stream;
use hybridsim_simulation::faults::FaultOrder;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::yield_now;

/// Closer events of a paced clock are waited for without sleeping: a sleep ends up to two
/// milliseconds late.
const SPIN: Duration = Duration::from_micros(2500);
/// Maximum wait for clients, as a multiple of the grace period, while they keep sending but have
/// fewer requests outstanding than before.
const WAITS_MAX: u32 = 10;

/// Limits of the server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; further ones are closed at once.
    pub connections: usize,
    /// Data and replies of all connections in memory; further requests wait.
    pub buffer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 64, buffer_bytes: 1 << 30 }
    }
}

/// The state that all tasks share.
pub struct Server {
    drive: RefCell<Drive>,
    pub exports: Exports,
    pub description: String,
    connections: RefCell<FxHashMap<u64, Rc<Connection>>>,
    connections_max: usize,
    budget: Rc<Budget>,
    /// Requests have been received, or the drive has changed.
    work: Notify,
    left: Notify,
    connected: Cell<u64>,
    refused: Cell<u64>,
    dropped: Cell<u64>,
    /// Numbers connections; none is used again, as replies may be under way.
    accepted: Cell<u64>,
}

impl Server {
    pub fn new(drive: Drive, exports: Exports, description: String, limits: Limits) -> Self {
        Self {
            drive: RefCell::new(drive),
            exports,
            description,
            connections: RefCell::default(),
            connections_max: limits.connections,
            budget: Rc::new(Budget::new(limits.buffer_bytes)),
            work: Notify::new(),
            left: Notify::new(),
            connected: Cell::new(0),
            refused: Cell::new(0),
            dropped: Cell::new(0),
            accepted: Cell::new(0),
        }
    }

    /// The drive, with what was counted about connections.
    pub fn into_drive(self) -> Drive {
        let mut drive = self.drive.into_inner();
        drive.served.connections = self.connected.get();
        drive.served.refused_connections = self.refused.get();
        drive.served.dropped_connections = self.dropped.get();
        drive
    }

    /// A client has connected over `stream`; `None` if there are too many.
    pub fn connect(&self, stream: Stream, protocol: Rc<dyn Protocol>) -> Option<Rc<Connection>> {
        if self.connections.borrow().len() >= self.connections_max {
            self.refused.set(self.refused.get() + 1);
            return None;
        }
        let id = self.accepted.get();
        self.accepted.set(id + 1);
        let budget = Rc::clone(&self.budget);
        let connection = Rc::new(Connection::new(id, stream, protocol, budget));
        self.connections.borrow_mut().insert(id, Rc::clone(&connection));
        Some(connection)
    }

    /// Waits until the last of the clients has left, and no other has come for `pause`.
    pub async fn last_left(&self, pause: Duration) {
        loop {
            self.left.notified().await;
            let is_empty = || self.connected.get() > 0 && self.connections.borrow().is_empty();
            let accepted = self.accepted.get();
            if is_empty() {
                // Some programs connect several times, one after the other.
                tokio::time::sleep(pause).await;
                if is_empty() && self.accepted.get() == accepted {
                    return;
                }
            }
        }
    }

    /// The connection has ended.
    pub fn disconnected(&self, connection: &Connection, end: End) {
        self.connections.borrow_mut().remove(&connection.id);
        self.dropped.set(self.dropped.get() + u64::from(end == End::Violation));
        self.left.notify_one();
    }

    /// Ends connections whose clients keep memory that others wait for.
    pub fn drop_stalled(&self) {
        for connection in self.connections.borrow().values().filter(|it| it.is_stalled()) {
            self.dropped.set(self.dropped.get() + 1);
            connection.drop_now();
        }
    }

    /// A request arrives.
    pub fn receive(&self, job: Job, wall: Instant) {
        self.drive.borrow_mut().receive(job, wall);
        self.work.notify_one();
    }

    /// Reads figures of the drive.
    pub fn with_drive<T>(&self, read: impl FnOnce(&Drive) -> T) -> T {
        read(&self.drive.borrow())
    }

    pub fn extents(&self, first: u64, sectors: u64, count: usize) -> Vec<(u64, bool)> {
        self.drive.borrow().extents(first, sectors, count)
    }

    /// A client got through the handshake.
    pub fn connected(&self) {
        self.connected.set(self.connected.get() + 1);
    }

    /// The power fails: all connections end, as the hosts they come from lose power as well.
    ///
    /// # Errors
    /// Fails when the server was started without power failures, or the system does not model them,
    /// which ends the simulation.
    pub fn cut_power(&self) -> Result<u64, String> {
        self.deliver();
        let cut = self.drive.borrow_mut().cut_power(Instant::now());
        self.drive.borrow_mut().take_finished();
        for connection in self.connections.borrow().values() {
            connection.closed.notify_one();
        }
        // The drive may have failed, which ends the server.
        self.work.notify_one();
        cut.map(|()| self.drive.borrow().now().as_ns())
    }

    /// A fault occurs. Returns its time.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn inject(&self, order: &FaultOrder) -> Result<u64, String> {
        let at = self.drive.borrow_mut().inject(order, Instant::now())?;
        self.work.notify_one();
        Ok(at.as_ns())
    }

    /// The names of the components that support faults, with the faults.
    pub fn supported_faults(&self) -> Vec<(String, &'static [&'static str])> {
        self.drive.borrow_mut().supported_faults()
    }

    /// Whether requests are being recorded.
    pub fn is_recording(&self) -> bool {
        self.drive.borrow().is_recording()
    }

    /// The drive's time, and the requests it is serving.
    pub fn status(&self) -> (u64, usize) {
        let drive = self.drive.borrow();
        (drive.now().as_ns(), drive.outstanding())
    }

    /// Passes what has ended to the connections.
    fn deliver(&self) {
        let finished = self.drive.borrow_mut().take_finished();
        let connections = self.connections.borrow();
        let clients: Vec<u64> = finished.iter().map(|it| it.client).collect();
        for it in finished {
            if let Some(connection) = connections.get(&it.client) {
                connection.finished(it);
            }
        }
        clients.iter().filter_map(|it| connections.get(it)).for_each(|it| it.send());
    }

    fn outstanding(&self) -> usize {
        self.drive.borrow().outstanding()
    }

    /// Lets simulated time pass until the simulation ends.
    pub async fn run_drive(&self) {
        let is_paced = self.drive.borrow().is_paced();
        // How many requests clients have kept outstanding lately.
        let mut usual = 0;
        while self.drive.borrow().fault().is_none() {
            self.deliver();
            if self.outstanding() == 0 {
                self.work.notified().await;
            } else if is_paced {
                self.pace().await;
            } else {
                usual = self.wait_for_clients(usual).await;
                self.drive.borrow_mut().advance();
            }
        }
        self.deliver();
    }

    /// Virtual clock: gives clients that have had replies the time to send their next requests
    /// before the simulation jumps to the next completion, as they would have in reality.
    /// Meanwhile their think time passes in the simulation, too. Returns how many requests clients
    /// keep outstanding.
    async fn wait_for_clients(&self, usual: usize) -> usize {
        let grace = self.drive.borrow().grace();
        let began = Instant::now();
        let (mut changed, mut before, mut most) = (began, self.outstanding(), 0);
        loop {
            // Everything that has arrived is read in between.
            yield_now().await;
            let outstanding = self.outstanding();
            most = most.max(outstanding);
            if self.drive.borrow().fault().is_some() {
                return most;
            }
            let now = Instant::now();
            if outstanding != before {
                changed = now;
            }
            if outstanding >= usual || now.duration_since(changed) >= grace {
                return outstanding;
            }
            if now.duration_since(began) >= WAITS_MAX * grace {
                return most;
            }
            self.drive.borrow_mut().pass_think_time(now);
            self.deliver();
            before = self.outstanding();
            if before != outstanding {
                changed = Instant::now();
            }
        }
    }

    /// Paced clock: simulates up to now and waits for the next event or request.
    async fn pace(&self) {
        self.drive.borrow_mut().advance_to(Instant::now());
        self.deliver();
        let next = self.drive.borrow_mut().next_event();
        let Some(next) = next else { return yield_now().await };
        let left = next.saturating_duration_since(Instant::now());
        if left <= SPIN {
            return yield_now().await;
        }
        tokio::select! {
            () = tokio::time::sleep(left.saturating_sub(SPIN)) => {}
            () = self.work.notified() => {}
        }
    }
}
