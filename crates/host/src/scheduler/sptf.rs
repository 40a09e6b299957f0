//! Shortest positioning time first: asks the device how long seek and rotation would take.
//!
//! Where the device below has no moving head it falls back to the distance in sectors. Like a
//! drive's command queue it looks at the oldest `window` waiting requests only. It can starve
//! within that window.

use hybridsim_engine::param::{Kind, Param};
use hybridsim_engine::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler, SchedulerEntry};
use std::collections::VecDeque;

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "sptf",
        summary: "the request the head reaches first, seek and rotation counted",
        origin: "Seltzer, Chen and Ousterhout 1990; Jacobson and Wilkes 1991",
        params: &[Param::with(
            "window",
            Kind::Count { min: 1, max: 65_536 },
            "256",
            "The oldest waiting requests that are compared; the cost of a decision grows with it",
        )],
    },
    build: |settings| Ok(Box::new(Sptf::new(settings.count("window") as usize))),
};

/// In order of arrival.
#[derive(Debug)]
pub struct Sptf {
    queue: VecDeque<Queued>,
    window: usize,
}

impl Sptf {
    /// Compares the oldest `window` requests.
    pub fn new(window: usize) -> Self {
        Self { queue: VecDeque::new(), window }
    }
}

impl Scheduler for Sptf {
    fn push(&mut self, item: Queued) {
        self.queue.push_back(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let cost = |item: &Queued| match head.positioner {
            Some(device) => device.positioning(head.now, head.last, &item.request).as_ns(),
            None => item.request.lba.0.abs_diff(head.last.0),
        };
        let window = self.queue.iter().take(self.window).enumerate();
        let (at, _) = window.min_by_key(|(at, item)| (cost(item), *at))?;
        self.queue.remove(at)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
