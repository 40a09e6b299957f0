//! First come, first served. Starves nobody.

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Loader, Saver, StateError};
use std::collections::VecDeque;

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "fcfs",
        summary: "first come, first served",
        origin: "common knowledge",
        params: &[],
    },
    build: |_| Ok(Box::new(Fcfs::default())),
};

/// A plain queue.
#[derive(Debug, Default)]
pub struct Fcfs(VecDeque<Queued>);

impl Scheduler for Fcfs {
    fn push(&mut self, item: Queued) {
        self.0.push_back(item);
    }

    fn pop(&mut self, _head: &Head<'_>) -> Option<Queued> {
        self.0.pop_front()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Ok(())
    }

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}
