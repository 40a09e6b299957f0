//! Anticipatory: after a synchronous read the device stays idle for a short time, because the same
//! process probably issues a read nearby next.
//!
//! It stays idle only while the next request is farther away than `near`, and not for streams whose
//! reads came too late or too far away before. A stream is a volume of the workload; requests carry
//! no process identifiers. The order of requests is that of `deadline`.

use super::deadline::{self, Deadline};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Flags, Op, SECTOR_BYTES, SimDuration, SimTime};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

hybridsim_config::params! {
    struct Parameters includes { deadline: deadline::Parameters } {
        wait: SimDuration = Kind::Duration, default "\"6700us\"",
            "Maximum time the device stays idle after a read";
        near: u64 = Kind::Bytes, default "\"4MiB\"" needs &[Needs::above_zero("wait")],
            "Distance from the last read within which the next one is expected";
        any_read: bool = Kind::Flag, default "false" needs &[Needs::above_zero("wait")],
            "Whether all reads count as synchronous, not only those marked so";
    }
}

pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "anticipatory",
        summary: "deadline, but keeps the device idle for the next read of a stream",
        origin: "Iyer and Druschel 2001; Linux as-iosched (6.7 ms)",
        params: Parameters::PARAMS,
    },
    build: |settings| {
        let params = Parameters::from_settings(settings);
        Ok(Box::new(Anticipatory {
            queue: Deadline::new(&params.deadline),
            wait: params.wait,
            near: params.near / SECTOR_BYTES,
            any_read: params.any_read,
            last_read: None,
            idle_until: None,
            near_waiting: 0,
            success: FxHashMap::default(),
        }))
    },
};

/// The synchronous read dispatched last.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct LastRead {
    volume: u16,
    end: u64,
}

#[derive(Debug)]
struct Anticipatory {
    queue: Deadline,
    wait: SimDuration,
    near: u64,
    any_read: bool,
    last_read: Option<LastRead>,
    idle_until: Option<SimTime>,
    /// Requests near the end of the last read that arrived since its dispatch.
    near_waiting: u64,
    /// By stream: successes less failures of recent idle waits, 0 to 8; never iterated.
    success: FxHashMap<u16, u8>,
}

/// Streams with a lower score are not waited for.
const SUCCESS_MIN: u8 = 2;
const SUCCESS_MAX: u8 = 8;

impl Scheduler for Anticipatory {
    fn push(&mut self, item: Queued) {
        if let Some(last) = self.last_read
            && item.request.lba.0.abs_diff(last.end) <= self.near
        {
            self.near_waiting += 1;
            if item.request.op == Op::Read && item.request.volume == last.volume {
                let success = self.success.entry(last.volume).or_insert(SUCCESS_MAX);
                *success = (*success + 1).min(SUCCESS_MAX);
                self.idle_until = Some(SimTime::ZERO);
            }
        }
        self.queue.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        if let (Some(until), Some(last)) = (self.idle_until, self.last_read)
            && until > SimTime::ZERO
            && until <= head.now
        {
            let success = self.success.entry(last.volume).or_insert(SUCCESS_MAX);
            *success = success.saturating_sub(1);
        }
        let item = self.queue.pop(head)?;
        let request = &item.request;
        let synchronous = self.any_read || request.flags.contains(Flags::SYNC);
        self.last_read = (request.op == Op::Read && synchronous)
            .then(|| LastRead { volume: request.volume, end: request.end().0 });
        (self.idle_until, self.near_waiting) = (None, 0);
        Some(item)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn hold_until(&mut self, head: &Head<'_>) -> Option<SimTime> {
        let last = self.last_read?;
        if self.near_waiting > 0
            || self.success.get(&last.volume).is_some_and(|it| *it < SUCCESS_MIN)
        {
            return None;
        }
        let until = *self.idle_until.get_or_insert(head.now + self.wait);
        (until > head.now).then_some(until)
    }

    fn sees_all(&self) -> bool {
        true
    }

    hybridsim_engine::saves!(last_read, idle_until, near_waiting, success; queue);
}
