//! Batches in order of arrival; within a batch one sweep upwards from the lowest address.
//!
//! A batch closes when it is full, or when its turn comes. A request waits for at most the batches
//! before its own, so nobody starves.

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::sorted::Sorted;
use hybridsim_engine::{Loader, Saver, StateError};
use std::collections::VecDeque;

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "batch-fcfs",
        summary: "batches in order of arrival, each one in one sweep",
        origin: "DiskSim's BATCH_FCFS (28), with batches by number instead of marks in the trace",
        params: &[Param::with(
            "batch",
            Kind::Count { min: 1, max: 65_536 },
            "16",
            "Requests in a batch; 1 is fcfs",
        )],
    },
    build: |settings| Ok(Box::new(Batch::new(settings.count("batch") as usize))),
};

/// The batch being served, and what waits for the next.
#[derive(Debug)]
pub struct Batch {
    batch: Sorted,
    queue: VecDeque<Queued>,
    size: usize,
}

impl Batch {
    /// Batches of at most so many requests.
    pub fn new(size: usize) -> Self {
        Self { batch: Sorted::default(), queue: VecDeque::new(), size }
    }
}

impl Scheduler for Batch {
    fn push(&mut self, item: Queued) {
        self.queue.push_back(item);
    }

    fn pop(&mut self, _head: &Head<'_>) -> Option<Queued> {
        if self.batch.is_empty() {
            let count = self.size.min(self.queue.len());
            self.queue.drain(..count).for_each(|item| self.batch.push(item));
        }
        self.batch.at_or_after(0).and_then(|key| self.batch.take(key))
    }

    fn len(&self) -> usize {
        self.batch.len() + self.queue.len()
    }

    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Ok(())
    }

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}
