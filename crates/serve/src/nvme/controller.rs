//! A controller: what the queues of one host share.

use super::features::Features;
use super::status::{Done, Outcome, Status};
use crate::connection::Connection;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// I/O queues of a controller.
pub const QUEUES_MAX: u16 = 16;
/// Entries of a queue.
pub const ENTRIES_MAX: u16 = 128;
/// Entries of the error log.
pub const ERRORS_MAX: usize = 64;
/// Asynchronous event requests outstanding.
pub const EVENT_REQUESTS_MAX: usize = 4;

/// A host, as it names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub id: [u8; 16],
    pub nqn: String,
}

/// A command that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    pub count: u64,
    pub queue: u16,
    pub command: u16,
    pub status: Status,
    pub lba: u64,
    pub nsid: u32,
}

/// An asynchronous event: its type, information and log page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event(pub u8, pub u8, pub u8);

#[derive(Default)]
struct Events {
    /// Requests of the host, by their identifiers.
    requests: VecDeque<(u16, oneshot::Sender<Outcome>)>,
    pending: VecDeque<Event>,
    /// Types that are not reported before the host reads the log page.
    masked: Vec<u8>,
}

pub struct Controller {
    pub id: u16,
    /// Whether it lists subsystems instead of serving namespaces.
    pub is_discovery: bool,
    pub host: Host,
    configuration: Cell<u32>,
    queues: RefCell<FxHashMap<u16, Rc<Connection>>>,
    pub features: Features,
    events: RefCell<Events>,
    pub errors: RefCell<VecDeque<Failed>>,
    error_count: Cell<u64>,
    /// Critical warnings reported so far.
    pub warned: Cell<u8>,
    keep_alive: Cell<Duration>,
    heard: Cell<Instant>,
}

const ENABLE: u32 = 1;
const SHUTDOWN: u32 = 3 << 14;
const READY: u32 = 1;
const FAILED: u32 = 2;
const SHUT_DOWN: u32 = 2 << 2;

impl Controller {
    pub fn new(id: u16, is_discovery: bool, host: Host, keep_alive: Duration) -> Self {
        Self {
            id,
            is_discovery,
            host,
            configuration: Cell::new(0),
            queues: RefCell::default(),
            features: Features::default(),
            events: RefCell::default(),
            errors: RefCell::default(),
            error_count: Cell::new(0),
            warned: Cell::new(0),
            keep_alive: Cell::new(keep_alive),
            heard: Cell::new(Instant::now()),
        }
    }

    /// The property controller configuration.
    pub fn configuration(&self) -> u32 {
        self.configuration.get()
    }

    /// Sets the controller configuration. Disabling it deletes the I/O queues.
    pub fn configure(&self, value: u32) {
        let before = self.configuration.replace(value);
        if before & ENABLE != 0 && value & ENABLE == 0 {
            self.close_queues();
            self.events.borrow_mut().pending.clear();
        }
    }

    /// Whether the configuration `value` asks for a shutdown that has not been asked for.
    pub fn begins_shutdown(&self, value: u32) -> bool {
        value & SHUTDOWN != 0 && self.configuration.get() & SHUTDOWN == 0
    }

    /// Whether the configuration is one that the controller supports: pages of 4 KiB, entries of
    /// 64 and 16 bytes, and the NVM or all command sets.
    fn is_valid(&self) -> bool {
        let value = self.configuration.get();
        let field = |from: u32, bits: u32| value >> from & ((1 << bits) - 1);
        matches!(field(4, 3), 0 | 6)
            && field(7, 4) == 0
            && field(11, 3) == 0
            && matches!((field(16, 4), field(20, 4)), (6, 4) | (0, 0))
    }

    /// Whether the host enabled all command sets, not only that for conventional namespaces.
    pub fn has_all_sets(&self) -> bool {
        self.configuration.get() >> 4 & 7 == 6
    }

    pub fn is_ready(&self) -> bool {
        self.configuration.get() & ENABLE != 0 && self.is_valid()
    }

    /// The property controller status.
    pub fn status(&self) -> u32 {
        let value = self.configuration.get();
        let shut = if value & SHUTDOWN != 0 { SHUT_DOWN } else { 0 };
        let enabled = match value & ENABLE != 0 {
            true if self.is_valid() => READY,
            true => FAILED,
            false => 0,
        };
        shut | enabled
    }

    /// Adds the connection of an I/O queue; `false` if the queue exists.
    pub fn add_queue(&self, queue: u16, connection: &Rc<Connection>) -> bool {
        let mut queues = self.queues.borrow_mut();
        let is_new = !queues.contains_key(&queue);
        if is_new {
            queues.insert(queue, Rc::clone(connection));
        }
        is_new
    }

    pub fn remove_queue(&self, queue: u16) {
        self.queues.borrow_mut().remove(&queue);
    }

    /// Ends the connections of the I/O queues.
    pub fn close_queues(&self) {
        self.queues.borrow_mut().drain().for_each(|(_, connection)| connection.drop_now());
    }

    /// Restarts the keep-alive timer.
    pub fn hear(&self) {
        self.heard.set(Instant::now());
    }

    pub fn keep_alive(&self) -> Duration {
        self.keep_alive.get()
    }

    pub fn set_keep_alive(&self, timeout: Duration) {
        self.keep_alive.set(timeout);
        self.hear();
    }

    /// Whether the keep-alive timeout has expired.
    pub fn is_silent(&self) -> bool {
        let timeout = self.keep_alive.get();
        !timeout.is_zero() && self.heard.get().elapsed() > timeout
    }

    /// Notes a command that failed.
    pub fn log(&self, failed: Failed) {
        let count = self.error_count.get() + 1;
        self.error_count.set(count);
        let mut errors = self.errors.borrow_mut();
        errors.push_front(Failed { count, ..failed });
        errors.truncate(ERRORS_MAX);
    }

    /// Queues an asynchronous event request.
    pub fn request_event(&self, id: u16) -> Result<oneshot::Receiver<Outcome>, Status> {
        let mut events = self.events.borrow_mut();
        if events.requests.len() >= EVENT_REQUESTS_MAX {
            return Err(Status::TOO_MANY_EVENT_REQUESTS);
        }
        let (sender, receiver) = oneshot::channel();
        events.requests.push_back((id, sender));
        drop(events);
        self.report_events();
        Ok(receiver)
    }

    /// Ends a request for an event; `false` if there is none of this identifier.
    pub fn abort_event_request(&self, id: u16) -> bool {
        let mut events = self.events.borrow_mut();
        let Some(at) = events.requests.iter().position(|(it, _)| *it == id) else { return false };
        let request = events.requests.remove(at);
        request.is_some_and(|(_, sender)| sender.send(Err(Status::ABORT_REQUESTED)).is_ok())
    }

    /// Reports an event once, until the host has read its log page.
    pub fn raise(&self, event: Event) {
        let mut events = self.events.borrow_mut();
        if !events.pending.contains(&event) {
            events.pending.push_back(event);
        }
        drop(events);
        self.report_events();
    }

    /// The host has read a log page: further events of its type are reported.
    pub fn read_log(&self, page: u8) {
        self.events.borrow_mut().masked.retain(|it| *it != page);
        self.report_events();
    }

    fn report_events(&self) {
        let mut events = self.events.borrow_mut();
        let Events { requests, pending, masked } = &mut *events;
        while !requests.is_empty() {
            let next = pending.iter().position(|it| !masked.contains(&it.2));
            let Some(event) = next.and_then(|at| pending.remove(at)) else { return };
            let Event(kind, information, page) = event;
            masked.push(page);
            let result = u64::from(page) << 16 | u64::from(information) << 8 | u64::from(kind);
            if let Some((_, sender)) = requests.pop_front() {
                drop(sender.send(Ok(Done::result(result))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> Controller {
        let host = Host { id: [0; 16], nqn: String::new() };
        Controller::new(1, false, host, Duration::ZERO)
    }

    #[test]
    fn an_event_is_reported_once_until_its_log_page_is_read() {
        let controller = controller();
        let mut first = controller.request_event(1).expect("there is room");
        let mut second = controller.request_event(2).expect("there is room");
        controller.raise(Event(1, 0, 2));
        let result = |outcome: Result<Outcome, _>| outcome.ok().map(|it| it.map(|it| it.result));
        assert_eq!(result(first.try_recv()), Some(Ok(0x2_0001)));
        controller.raise(Event(1, 2, 2));
        assert_eq!(result(second.try_recv()), None, "the page was not read");
        controller.read_log(2);
        assert_eq!(result(second.try_recv()), Some(Ok(0x2_0201)));
        let _third = controller.request_event(3).expect("there is room");
        assert!(controller.abort_event_request(3) && !controller.abort_event_request(3));
    }

    #[test]
    fn a_controller_is_ready_when_its_configuration_is_supported() {
        let controller = controller();
        assert_eq!(controller.status(), 0);
        controller.configure(0x46_0001 | 6 << 4);
        assert_eq!((controller.status(), controller.has_all_sets()), (READY, true));
        controller.configure(0x46_0001 | 1 << 7);
        assert_eq!(controller.status(), FAILED, "pages of 8 KiB");
        controller.configure(0x46_0001 | 1 << 14);
        assert_eq!(controller.status(), READY | SHUT_DOWN);
    }
}
