//! Requests compared one by one: whichever costs least goes next.
//!
//! Like a drive's command queue, these schedulers look at the oldest `window` waiting requests
//! only; a decision costs as many estimates.

use hybridsim_config::param::{Kind, Param};
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Loader, Saver, StateError};
use std::collections::VecDeque;

/// How many are compared.
pub const WINDOW: Param = Param::with(
    "window",
    Kind::Count { min: 1, max: 65_536 },
    "256",
    "The oldest waiting requests that are compared; the cost of a decision grows with it",
);

/// What a request costs now, in nanoseconds where the device gives estimates, else in sectors.
pub trait Rule {
    /// The cost; the least goes next, ties in order of arrival.
    fn cost(&self, head: &Head<'_>, item: &Queued) -> i64;
}

/// What the device is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Seek and rotation.
    Positioning,
    /// The same, but nothing for what the device has in its buffer.
    Buffered,
    /// Seek, rotation and transfer.
    Access,
}

impl Measure {
    /// The estimate for `item`.
    pub fn of(self, head: &Head<'_>, item: &Queued) -> i64 {
        let Some(device) = head.positioner else {
            return small(item.request.lba.0.abs_diff(head.last.0));
        };
        if self == Self::Buffered && device.is_buffered(&item.request) {
            return 0;
        }
        let time = device.positioning(head.now, head.last, &item.request);
        small(match self {
            Self::Access => (time + device.transfer(&item.request)).as_ns(),
            Self::Positioning | Self::Buffered => time.as_ns(),
        })
    }
}

/// As a signed number; 292 years are enough.
pub fn small(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// In order of arrival; the first `window` are compared.
#[derive(Debug)]
pub struct Least<R> {
    queue: VecDeque<Queued>,
    window: usize,
    rule: R,
}

impl<R: Rule> Least<R> {
    /// Compares the oldest `window` requests.
    pub fn new(window: u64, rule: R) -> Self {
        Self { queue: VecDeque::new(), window: window as usize, rule }
    }
}

impl<R: Rule> Scheduler for Least<R> {
    fn push(&mut self, item: Queued) {
        self.queue.push_back(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let window = self.queue.iter().take(self.window).enumerate();
        let (at, _) = window.min_by_key(|(at, item)| (self.rule.cost(head, item), *at))?;
        self.queue.remove(at)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Ok(())
    }

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}
