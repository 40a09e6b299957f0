//! The I/O scheduler as a passive policy: it orders a queue and selects the next request. Shared by
//! drivers, controllers and drives.

use crate::request::{Lba, Request};
use crate::state::{Loader, Saver, StateError};
use crate::time::{SimDuration, SimTime};

/// A request waiting in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The owner's key for it.
    pub key: u64,
    /// The request.
    pub request: Request,
    /// Time of entry into the queue.
    pub since: SimTime,
}

/// Position of the head required at the start of a request. Only the device reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadTarget {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub head: u32,
    /// The angle of the first sector, in turns times 2^64.
    pub angle: u64,
    /// Whether the request writes.
    pub write: bool,
}

/// Estimates positioning times of a device with a moving head.
pub trait Positioner {
    /// Time from `now`, when `to` is dispatched, until its first sector is under the head, when the
    /// head is just after sector `last`. For schedulers above a device it includes the time the
    /// device takes before the arm starts.
    fn positioning(&self, now: SimTime, last: Lba, to: &Request) -> SimDuration;

    /// Head position required for `to`, which never changes; `None` where the device does not
    /// compare several requests at once ([`Positioner::nearest`]).
    fn target(&self, _to: &Request) -> Option<HeadTarget> {
        None
    }

    /// Which of `targets` has the shortest [`Positioner::positioning`], the first of several.
    fn nearest(&self, _now: SimTime, _last: Lba, _targets: &[HeadTarget]) -> Option<usize> {
        None
    }

    /// The cylinder that holds `lba`, for schedulers that sort by cylinder.
    fn cylinder(&self, lba: Lba) -> u32;

    /// Cylinders of the device, unused ones included; 0 where it does not count them.
    fn cylinders(&self) -> u32 {
        0
    }

    /// The seek part of [`Positioner::positioning`]; by default all of it.
    fn seek(&self, last: Lba, to: &Request) -> SimDuration {
        self.positioning(SimTime::ZERO, last, to)
    }

    /// Media transfer time of `to`.
    fn transfer(&self, _to: &Request) -> SimDuration {
        SimDuration::ZERO
    }

    /// Whether `to` would be served from a buffer, without the medium.
    fn is_buffered(&self, _to: &Request) -> bool {
        false
    }

    /// Sectors of the device; 0 if unknown.
    fn sectors(&self) -> u64 {
        0
    }
}

/// Position of the head, as known to the owner of the queue.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// The time of the decision.
    pub now: SimTime,
    /// The first sector after the last request dispatched.
    pub last: Lba,
    /// Positioning estimates of the device, if any.
    pub positioner: Option<&'a dyn Positioner>,
}

/// Entry of [`crate::ComponentInfo::idle_policies`] for the scheduler that parameter `key` chooses:
/// nothing once it has chosen between requests.
pub fn idle_scheduler(key: &'static str, chose: bool) -> Vec<(&'static str, &'static str)> {
    if chose {
        Vec::new()
    } else {
        vec![(key, "it never had more than one request to choose from")]
    }
}

/// Selects the next request to dispatch.
///
/// Every request pushed is popped exactly once. Ties are broken by order of arrival.
pub trait Scheduler {
    /// Adds a request to the queue.
    fn push(&mut self, item: Queued);

    /// The next request; `None` only when the queue is empty.
    fn pop(&mut self, head: &Head<'_>) -> Option<Queued>;

    /// Number of waiting requests.
    fn len(&self) -> usize;

    /// Whether the queue is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Until when the device should stay idle although requests wait; `None` to dispatch now. The
    /// owner calls it again at that time and when a request is added. It is advice:
    /// [`Scheduler::pop`] returns a request in any case.
    fn hold_until(&mut self, _head: &Head<'_>) -> Option<SimTime> {
        None
    }

    /// Whether requests must pass through the queue even while the device is idle, because the
    /// scheduler may hold them or needs to see all of them. If not, its owner may leave it out
    /// where there is no choice.
    fn sees_all(&self) -> bool {
        false
    }

    /// Writes what later decisions depend on, such as the direction of a sweep. Called while the
    /// queue is empty.
    ///
    /// # Errors
    /// If the scheduler cannot be saved, which is the default.
    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Err(StateError("its scheduler cannot save its state".to_owned()))
    }

    /// Reads back what [`Scheduler::save`] wrote.
    ///
    /// # Errors
    /// If the state belongs to another scheduler.
    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Err(StateError("its scheduler cannot restore a state".to_owned()))
    }
}
