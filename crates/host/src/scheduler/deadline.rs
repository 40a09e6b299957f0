//! Deadline: batches of reads and of writes in address order, with a deadline for each request.
//!
//! Up to `writes_starved` batches of reads are dispatched before waiting writes. A batch continues
//! upwards from where the previous one ended, or from the oldest request if its deadline has
//! passed.

use super::entry;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::Kind;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::sorted::{Key, Sorted};
use hybridsim_engine::{Op, SimDuration, SimTime};
use std::collections::VecDeque;

hybridsim_config::params! {
    pub(super) struct Parameters {
        read_expire: SimDuration = Kind::Duration, default "\"500ms\"",
            "Deadline of a read, from its arrival";
        write_expire: SimDuration = Kind::Duration, default "\"5s\"",
            "Deadline of everything else";
        batch: u64 = Kind::Count { min: 1, max: 65_536 }, default "16",
            "Requests of one direction in a batch (Linux: fifo_batch)";
        writes_starved: u64 = Kind::Count { min: 0, max: 65_536 }, default "2",
            "Batches of reads that may be dispatched before waiting writes";
    }
}

pub const ENTRY: SchedulerEntry = entry(
    "deadline",
    "batches in address order, reads before writes, and a deadline for each request",
    "Linux block layer, mq-deadline; its defaults",
    Parameters::PARAMS,
    |settings| Ok(Box::new(Deadline::new(&Parameters::from_settings(settings)))),
);

#[derive(Debug, Default)]
struct Direction {
    sorted: Sorted,
    /// Deadlines in order of arrival; entries of requests already served are dropped lazily.
    arrivals: VecDeque<(SimTime, Key)>,
    count: u64,
    expire: SimDuration,
}

impl Direction {
    fn push(&mut self, item: Queued) {
        let key = (item.request.lba.0, self.count);
        self.count += 1;
        self.arrivals.push_back((item.since + self.expire, key));
        self.sorted.push(item);
    }

    fn oldest(&mut self) -> Option<(SimTime, Key)> {
        while let Some(&(deadline, key)) = self.arrivals.front() {
            if self.sorted.get(key).is_some() {
                return Some((deadline, key));
            }
            self.arrivals.pop_front();
        }
        None
    }
}

#[derive(Debug)]
pub(super) struct Deadline {
    /// Reads, then everything else.
    directions: [Direction; 2],
    batch: u64,
    writes_starved: u64,
    /// The direction of the batch, requests left in it, and the address it has reached.
    serving: usize,
    left: u64,
    next: u64,
    /// Batches of reads dispatched since a write has been waiting.
    starved: u64,
}

impl Deadline {
    pub(super) fn new(params: &Parameters) -> Self {
        let direction = |expire| Direction { expire, ..Default::default() };
        Self {
            directions: [params.read_expire, params.write_expire].map(direction),
            batch: params.batch,
            writes_starved: params.writes_starved,
            serving: 0,
            left: 0,
            next: 0,
            starved: 0,
        }
    }

    /// The next request in the address order of the batch.
    fn ahead(&self) -> Option<Key> {
        self.directions[self.serving].sorted.at_or_after(self.next)
    }

    fn start_batch(&mut self, now: SimTime) -> Option<Key> {
        let [reads, writes] = &mut self.directions;
        let (reads, writes) = (reads.oldest(), writes.oldest());
        let starving = writes.is_some() && self.starved >= self.writes_starved;
        let direction = usize::from(reads.is_none() || starving);
        self.starved = if direction == 0 && writes.is_some() { self.starved + 1 } else { 0 };
        let (deadline, oldest) = if direction == 0 { reads? } else { writes? };
        let turned = direction != self.serving;
        (self.serving, self.left) = (direction, self.batch);
        let ahead = if turned || deadline <= now { None } else { self.ahead() };
        Some(ahead.unwrap_or(oldest))
    }
}

impl Scheduler for Deadline {
    fn push(&mut self, item: Queued) {
        self.directions[usize::from(item.request.op != Op::Read)].push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let ahead = if self.left > 0 { self.ahead() } else { None };
        let key = match ahead {
            Some(key) => key,
            None => self.start_batch(head.now)?,
        };
        self.left = self.left.saturating_sub(1);
        let item = self.directions[self.serving].sorted.take(key)?;
        self.next = item.request.lba.0;
        let direction = &mut self.directions[self.serving];
        direction.oldest();
        Some(item)
    }

    fn len(&self) -> usize {
        self.directions.iter().map(|direction| direction.sorted.len()).sum()
    }

    hybridsim_engine::saves!(serving, left, next, starved);
}
