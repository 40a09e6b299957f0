//! Anticipatory: after a read somebody waited for, the device stays idle for a moment, because the
//! same reader probably asks for something near next.
//!
//! It waits only while the request it would serve next is farther away than `near`, and not for
//! streams whose reads did not come in time or not near. A stream is a volume of the workload;
//! finer ones (processes) are not told to schedulers. Requests go in order of `deadline`.

use super::deadline::{self, Deadline};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Kind, Param, joined};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Flags, Loader, Op, SECTOR_BYTES, Saver, SimDuration, SimTime, StateError};
use rustc_hash::FxHashMap;

/// What it has beyond the parameters of `deadline`.
const OWN: &[Param] = &[
    Param::with(
        "wait",
        Kind::Duration,
        "\"6700us\"",
        "How long the device stays idle at most after a read",
    ),
    Param::with(
        "near",
        Kind::Bytes,
        "\"4MiB\"",
        "Only reads this near to the last one are worth waiting for",
    ),
    Param::with(
        "any_read",
        Kind::Flag,
        "false",
        "Whether all reads count as waited for, not only those marked synchronous",
    ),
];

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "anticipatory",
        summary: "deadline, but waits a moment for the next read of a stream",
        origin: "Iyer and Druschel 2001; Linux as-iosched (6.7 ms)",
        params: &joined::<{ deadline::PARAMS.len() + OWN.len() }>(&[deadline::PARAMS, OWN]),
    },
    build: |settings| {
        Ok(Box::new(Anticipatory {
            queue: Deadline::read(settings),
            wait: settings.duration("wait"),
            near: settings.bytes("near") / SECTOR_BYTES,
            any_read: settings.flag("any_read"),
            last: None,
            until: None,
            near_waiting: 0,
            score: FxHashMap::default(),
        }))
    },
};

/// The read the device serves or has served last.
#[derive(Clone, Copy, Debug)]
struct Last {
    volume: u16,
    end: u64,
}

/// The queue, and what is expected.
#[derive(Debug)]
pub struct Anticipatory {
    queue: Deadline,
    wait: SimDuration,
    near: u64,
    any_read: bool,
    last: Option<Last>,
    /// Idle until then.
    until: Option<SimTime>,
    /// Requests that arrived since the last one went, near to its end.
    near_waiting: u64,
    /// By stream: how often waiting paid of late, 0 to 8; only looked up.
    score: FxHashMap<u16, u8>,
}

/// Waiting goes on while at least this many of the last eight waits paid.
const SCORE_MIN: u8 = 2;
const SCORE_MAX: u8 = 8;

impl Scheduler for Anticipatory {
    fn push(&mut self, item: Queued) {
        if let Some(last) = self.last
            && item.request.lba.0.abs_diff(last.end) <= self.near
        {
            self.near_waiting += 1;
            if item.request.op == Op::Read && item.request.volume == last.volume {
                let score = self.score.entry(last.volume).or_insert(SCORE_MAX);
                *score = (*score + 1).min(SCORE_MAX);
                self.until = Some(SimTime::ZERO);
            }
        }
        self.queue.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        if let (Some(until), Some(last)) = (self.until, self.last)
            && until > SimTime::ZERO
            && until <= head.now
        {
            let score = self.score.entry(last.volume).or_insert(SCORE_MAX);
            *score = score.saturating_sub(1);
        }
        let item = self.queue.pop(head)?;
        let request = &item.request;
        let waited_for = self.any_read || request.flags.contains(Flags::SYNC);
        self.last = (request.op == Op::Read && waited_for)
            .then(|| Last { volume: request.volume, end: request.end().0 });
        (self.until, self.near_waiting) = (None, 0);
        Some(item)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn hold_until(&mut self, head: &Head<'_>) -> Option<SimTime> {
        let last = self.last?;
        if self.near_waiting > 0 || self.score.get(&last.volume).is_some_and(|it| *it < SCORE_MIN) {
            return None;
        }
        let until = *self.until.get_or_insert(head.now + self.wait);
        (until > head.now).then_some(until)
    }

    fn sees_all(&self) -> bool {
        true
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        let last = self.last.map(|last| (last.volume, last.end));
        to.put(&(last, self.until, self.near_waiting, &self.score));
        self.queue.save(to)
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let last: Option<(u16, u64)>;
        (last, self.until, self.near_waiting, self.score) = from.take()?;
        self.last = last.map(|(volume, end)| Last { volume, end });
        self.queue.restore(from)
    }
}
