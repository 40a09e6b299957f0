//! Deadline: sweeps of reads and of writes in batches, but nothing waits much beyond its time.
//!
//! Reads go before writes, `writes_starved` times; a batch goes upwards from where the last one
//! ended, or from the oldest request if its deadline has passed.

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Kind, Param, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::sorted::{Key, Sorted};
use hybridsim_engine::{Loader, Op, Saver, SimDuration, SimTime, StateError};
use std::collections::VecDeque;

/// Its parameters.
pub const PARAMS: &[Param] = &[
    Param::with("read_expire", Kind::Duration, "\"500ms\"", "Deadline of a read, from its arrival"),
    Param::with("write_expire", Kind::Duration, "\"5s\"", "Deadline of everything else"),
    Param::with(
        "batch",
        Kind::Count { min: 1, max: 65_536 },
        "16",
        "Requests of one kind in a row (Linux: fifo_batch)",
    ),
    Param::with(
        "writes_starved",
        Kind::Count { min: 0, max: 65_536 },
        "2",
        "Batches of reads that may go before waiting writes",
    ),
];

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "deadline",
        summary: "sweeps in batches, reads before writes, and a deadline for each request",
        origin: "Linux block layer, mq-deadline; its defaults",
        params: PARAMS,
    },
    build: |settings| Ok(Box::new(Deadline::read(settings))),
};

/// The requests of one direction.
#[derive(Debug, Default)]
struct Direction {
    sorted: Sorted,
    /// In order of arrival, with their deadlines. Those served otherwise are left out when seen.
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

    /// The oldest request.
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

/// Both directions.
#[derive(Debug)]
pub struct Deadline {
    /// Reads, then everything else.
    directions: [Direction; 2],
    batch: u64,
    writes_starved: u64,
    /// The direction of the batch, how many are left in it, and where it has come to.
    serving: usize,
    left: u64,
    next: u64,
    /// Batches of reads since a write waits.
    starved: u64,
}

impl Deadline {
    /// As parameters [`PARAMS`] say.
    pub fn read(settings: &Settings) -> Self {
        let direction = |name| Direction { expire: settings.duration(name), ..Default::default() };
        Self {
            directions: [direction("read_expire"), direction("write_expire")],
            batch: settings.count("batch"),
            writes_starved: settings.count("writes_starved"),
            serving: 0,
            left: 0,
            next: 0,
            starved: 0,
        }
    }

    /// The nearest request at or after where the batch has come to.
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

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(&self.serving, &self.left, &self.next, &self.starved));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.serving, self.left, self.next, self.starved) = from.take()?;
        Ok(())
    }
}
