//! LOOK, the elevator: up to the last waiting request, then down to the first, and so on.
//!
//! Requests at the edges wait for up to two sweeps. Only requests that keep arriving at exactly
//! the head's address can starve others.

use super::sorted::Sorted;
use hybridsim_engine::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler, SchedulerEntry};

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "look",
        summary: "the elevator: sweeps up and down, turning at the last waiting request",
        origin: "Merten 1970; SCAN that turns at the last request",
        params: &[],
    },
    build: |_| Ok(Box::new(Look::default())),
};

/// Sorted by address, with a direction.
#[derive(Debug, Default)]
pub struct Look {
    queue: Sorted,
    down: bool,
}

impl Scheduler for Look {
    fn push(&mut self, item: Queued) {
        self.queue.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let at = head.last.0;
        // A request right at the head is ahead in both directions.
        let down = self.queue.below(at.saturating_add(1));
        let up = self.queue.at_or_after(at);
        if self.down && down.is_none() || !self.down && up.is_none() {
            self.down = !self.down;
        }
        let key = if self.down { down } else { up };
        self.queue.take(key?)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }
}
