//! LOOK, the elevator: up to the last waiting request, then down to the first, and so on.
//!
//! Requests at the edges wait for up to two sweeps. Only requests that keep arriving at exactly
//! the head's position can starve others.

use super::position::{BY, ByPosition};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Loader, Saver, StateError};

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "look",
        summary: "the elevator: sweeps up and down, turning at the last waiting request",
        origin: "Merten 1970; SCAN that turns at the last request; DiskSim's ELEVATOR (2, 5)",
        params: &[BY],
    },
    build: |settings| Ok(Box::new(Look { queue: ByPosition::read(settings), ..Look::default() })),
};

/// Sorted by position, with a direction.
#[derive(Debug, Default)]
pub struct Look {
    pub(super) queue: ByPosition,
    pub(super) down: bool,
}

impl Scheduler for Look {
    fn push(&mut self, item: Queued) {
        self.queue.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let at = self.queue.settle_sweep(head);
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

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&self.down);
        self.queue.save(to);
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.down = from.take()?;
        self.queue.restore(from)
    }
}
