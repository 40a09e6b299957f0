//! Shortest seek time first, the distance measured in sectors or cylinders.
//!
//! It can starve: a request far away waits as long as nearer ones keep arriving.

use super::position::{BY, ByPosition};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Loader, Saver, StateError};

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "sstf",
        summary: "the request nearest to the last one",
        origin: "Denning 1967, Effects of scheduling on file memory operations; DiskSim's SSTF \
                 (4, 7)",
        params: &[BY],
    },
    build: |settings| Ok(Box::new(Sstf(ByPosition::read(settings)))),
};

/// Sorted by position; looks at both neighbours of the head.
#[derive(Debug, Default)]
pub struct Sstf(ByPosition);

impl Scheduler for Sstf {
    fn push(&mut self, item: Queued) {
        self.0.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let at = self.0.settle(head);
        let key = match (self.0.below(at), self.0.at_or_after(at)) {
            (Some(below), Some(above)) => {
                // Equally far: the one that came first.
                if (at - below.0, below.1) < (above.0 - at, above.1) { below } else { above }
            }
            (below, above) => below.or(above)?,
        };
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
