//! The I/O scheduler as a passive policy: asked for the next request, it answers.
//!
//! Drivers, controllers and drives all queue; they share this vocabulary.

use crate::request::{Lba, Request};
use crate::state::{Loader, Saver, StateError};
use crate::time::{SimDuration, SimTime};

/// A request waiting in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The owner's name for it.
    pub key: u64,
    /// The request.
    pub request: Request,
    /// When it entered the queue.
    pub since: SimTime,
}

/// Estimates how long a device with a moving head takes to reach a request.
pub trait Positioner {
    /// Time from `now` until the first sector of `to` is under the head, when the head was left
    /// just behind sector `last`.
    fn positioning(&self, now: SimTime, last: Lba, to: &Request) -> SimDuration;

    /// The cylinder that holds `lba`, for schedulers that sort by cylinder.
    fn cylinder(&self, lba: Lba) -> u32;

    /// The part of [`Positioner::positioning`] that moves the arm. As if nothing turned where it is
    /// not told.
    fn seek(&self, last: Lba, to: &Request) -> SimDuration {
        self.positioning(SimTime::ZERO, last, to)
    }

    /// How long the sectors of `to` take to pass under the head.
    fn transfer(&self, _to: &Request) -> SimDuration {
        SimDuration::ZERO
    }

    /// Whether `to` would be served from a buffer, without the medium.
    fn is_buffered(&self, _to: &Request) -> bool {
        false
    }

    /// Sectors of the device; 0 where it is not told.
    fn sectors(&self) -> u64 {
        0
    }
}

/// Where the head is, as far as the owner of the queue knows.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The time of the decision.
    pub now: SimTime,
    /// The first sector after the last request dispatched.
    pub last: Lba,
    /// Estimates, where the device below gives any.
    pub positioner: Option<&'a dyn Positioner>,
}

/// Chooses which waiting request goes next.
///
/// Every request pushed is popped exactly once. Ties are broken by order of arrival.
pub trait Scheduler {
    /// A request joins the queue.
    fn push(&mut self, item: Queued);

    /// The next request; `None` only when the queue is empty.
    fn pop(&mut self, head: &Head<'_>) -> Option<Queued>;

    /// Requests waiting.
    fn len(&self) -> usize;

    /// Whether none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Until when the device had better stay idle although requests wait; `None` where the next
    /// one should go now. The owner asks again then, and when another request joins the queue. It
    /// is advice: [`Scheduler::pop`] answers all the same.
    fn hold_until(&mut self, _head: &Head<'_>) -> Option<SimTime> {
        None
    }

    /// Whether requests must pass the queue even while the device is idle, because the scheduler
    /// may advise to hold them or has to know of all.
    fn sees_all(&self) -> bool {
        false
    }

    /// Writes what later decisions depend on, such as the direction of a sweep. Called while the
    /// queue is empty.
    ///
    /// # Errors
    /// When the scheduler cannot be saved, which is the default.
    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Err(StateError("its scheduler cannot save its state".to_owned()))
    }

    /// Reads back what [`Scheduler::save`] wrote.
    ///
    /// # Errors
    /// When the state belongs to another scheduler.
    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Err(StateError("its scheduler cannot restore a state".to_owned()))
    }
}
