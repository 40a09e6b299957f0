//! C-LOOK: sweeps upwards only, then jumps back to the lowest waiting request.
//!
//! A request waits for at most one sweep, and all addresses are treated alike. Only requests that
//! keep arriving at exactly the head's position can starve others.

use super::position::{BY, ByPosition};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Loader, Saver, StateError};

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "c-look",
        summary: "sweeps upwards, then jumps to the lowest waiting request",
        origin: "Seaman, Lind and Wilson 1966; C-SCAN that turns at the last request; DiskSim's \
                 CYCLE (3, 6)",
        params: &[BY],
    },
    build: |settings| Ok(Box::new(CLook(ByPosition::read(settings)))),
};

/// Sorted by position.
#[derive(Debug, Default)]
pub struct CLook(pub(super) ByPosition);

impl Scheduler for CLook {
    fn push(&mut self, item: Queued) {
        self.0.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let at = self.0.settle_sweep(head);
        let key = self.0.at_or_after(at).or_else(|| self.0.at_or_after(0))?;
        self.0.take(key)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.0.save(to);
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.0.restore(from)
    }
}
