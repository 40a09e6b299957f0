//! Shortest seek time first, the distance measured in sectors.
//!
//! It can starve: a request far away waits as long as nearer ones keep arriving.

use super::sorted::Sorted;
use hybridsim_engine::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler, SchedulerEntry};

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "sstf",
        summary: "the request nearest to the last one, by sector number",
        origin: "Denning 1967, Effects of scheduling on file memory operations",
        params: &[],
    },
    build: |_| Ok(Box::new(Sstf::default())),
};

/// Sorted by address; looks at both neighbours of the head.
#[derive(Debug, Default)]
pub struct Sstf(Sorted);

impl Scheduler for Sstf {
    fn push(&mut self, item: Queued) {
        self.0.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let at = head.last.0;
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
}
