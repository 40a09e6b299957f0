//! First come, first served. No request starves.

use super::entry;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use std::collections::VecDeque;

pub const ENTRY: SchedulerEntry =
    entry("fcfs", "first come, first served", "common knowledge", &[], |_| {
        Ok(Box::new(Fcfs::default()))
    });

/// A FIFO queue.
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

    hybridsim_engine::saves!();
}
