//! Batches in order of arrival; within a batch one sweep upwards from the lowest address.
//!
//! A batch closes when it is full or when its service starts. A request waits for at most the
//! batches before its own, so no request starves.

use super::entry;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::Kind;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::sorted::Sorted;
use std::collections::VecDeque;

hybridsim_config::params! {
    struct Parameters {
        batch: usize = Kind::Count { min: 1, max: 65_536 }, default "16",
            "Requests in a batch; 1 is fcfs";
    }
}

pub const ENTRY: SchedulerEntry = entry(
    "batch-fcfs",
    "batches in order of arrival, each served in one sweep",
    "DiskSim's BATCH_FCFS (28), with batches by number of requests instead of marks in the trace",
    Parameters::PARAMS,
    |settings| {
        let size = Parameters::from_settings(settings).batch;
        Ok(Box::new(Batch { batch: Sorted::default(), queue: VecDeque::new(), size }))
    },
);

/// The batch being served, and the requests of later ones.
#[derive(Debug)]
struct Batch {
    batch: Sorted,
    queue: VecDeque<Queued>,
    size: usize,
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

    hybridsim_engine::saves!();
}
