//! The queue of a die: where host reads are inserted, and what merges into one operation.

use super::chip::OpenProgram;
use super::{BusyIntervals, serves_request};
use crate::event::{Cause, FlashAct, FlashUnit};
use crate::geometry::DieId;
use hybridsim_engine::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Suspension and multi-plane operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieScheduling {
    /// Time to suspend a program; `None` if programs cannot be suspended.
    pub program_suspend: Option<SimDuration>,
    /// Points at which programs can be suspended; `None` for any.
    pub program_points: Option<SuspendPoints>,
    /// Time to suspend an erase; `None` if erases cannot be suspended.
    pub erase_suspend: Option<SimDuration>,
    /// Time added to a program or erase each time it resumes.
    pub resume: SimDuration,
    /// Maximum suspensions of one operation.
    pub suspends_max: u32,
    pub multi_plane: bool,
}

/// Points at which a running program can be suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspendPoints {
    /// Running time of the program from one point to the next; above zero.
    pub interval: SimDuration,
    /// Maximum host reads at each point, and ahead of a program that waits.
    pub reads_max: u32,
}

/// An operation in the queue of a die.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct QueuedOp {
    pub kind: QueuedKind,
    /// Earliest start.
    pub ready: SimTime,
    pub length: SimDuration,
    pub cause: Cause,
    pub suspends: u32,
    /// Host reads that it has been delayed by since it was queued or suspended.
    pub reads: u32,
    /// Bit mask of its planes, and page offset in the block: both decide about multi-plane.
    pub planes: u64,
    pub offset: u32,
    /// Programs or erases in SLC mode: a multi-plane operation has one mode.
    pub slc: bool,
    /// Number of the request it belongs to.
    pub request: u64,
    /// Last part of a copy, in which it programs, if that takes time of its own; zero otherwise.
    pub program: SimDuration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueuedKind {
    HostRead,
    Program,
    Erase,
    Copy,
    /// A read of garbage collection or wear levelling: no priority.
    BackgroundRead,
}

impl QueuedOp {
    #[inline]
    pub const fn is_background(&self) -> bool {
        !serves_request(self.cause)
    }

    /// Whether no further host read may precede this program at `time`.
    #[inline]
    fn precedes_reads(&self, time: SimTime, scheduling: &DieScheduling) -> bool {
        let Some(points) = scheduling.program_points else { return false };
        self.kind == QueuedKind::Program && self.ready <= time && self.reads >= points.reads_max
    }

    /// Earliest suspension of the operation, if it runs from `start`, for a read that arrives at
    /// `time`. A copy is suspended from the start of its program on.
    #[inline]
    fn suspension(&self, start: SimTime, time: SimTime, scheduling: &DieScheduling) -> SimTime {
        let (start, time) = match self.kind {
            QueuedKind::Copy => {
                let programs_from = start + self.length.saturating_sub(self.program);
                (programs_from, time.max(programs_from))
            }
            _ => (start, time),
        };
        let programs = matches!(self.kind, QueuedKind::Program | QueuedKind::Copy);
        let points = scheduling.program_points.filter(|_| programs);
        let Some(SuspendPoints { interval, .. }) = points else { return time };
        let resumed = if self.suspends > 0 { start + scheduling.resume } else { start };
        let intervals = time.since(resumed.min(time)).as_ns().div_ceil(interval.as_ns()).max(1);
        resumed + interval * intervals
    }

    /// The end of `op`, if the one before it ends at `at`.
    #[inline]
    fn end_after(at: SimTime, op: &Self) -> SimTime {
        at.max(op.ready) + op.length
    }

    const fn act(&self) -> FlashAct {
        match self.kind {
            QueuedKind::HostRead | QueuedKind::BackgroundRead => FlashAct::Read,
            QueuedKind::Program => FlashAct::Program,
            QueuedKind::Erase => FlashAct::Erase,
            QueuedKind::Copy => FlashAct::Copy,
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Die {
    /// In order; the first may be under way.
    pub queue: VecDeque<QueuedOp>,
    /// End of the last operation that has left `queue`.
    pub at: SimTime,
    /// End of the last operation in `queue`.
    pub free: SimTime,
    /// End of the last host read; host reads execute one after the other.
    pub read_until: SimTime,
    /// No operation may be inserted before this time.
    pub committed_until: SimTime,
    /// Programs that take further pages.
    pub open_programs: Vec<OpenProgram>,
    /// The chip's page that the last copy or background read has read, by its number.
    pub copied: Option<u32>,
}

pub struct ReadSlot {
    /// Position in the queue.
    pub index: usize,
    pub begin: SimTime,
    /// Remaining time of the operation at `index - 1`, which is suspended for the read.
    pub suspended: Option<SimDuration>,
}

impl Die {
    /// Removes operations that ended before `now`: no read can precede them any more.
    #[inline]
    pub fn advance(&mut self, now: SimTime, number: DieId, busy: &mut BusyIntervals) {
        while let Some(first) = self.queue.front() {
            let begin = self.at.max(first.ready);
            let end = begin + first.length;
            if end > now {
                break;
            }
            busy.record(FlashUnit::Die(number.0), (first.act(), first.cause), begin, end);
            self.at = end;
            self.queue.pop_front();
        }
    }

    /// Records the operations in the queue at the end of a run. They stay there: a run that
    /// continues from the state of the die has reads precede them.
    pub fn record_rest(&self, number: DieId, busy: &mut BusyIntervals) {
        let mut at = self.at;
        for op in &self.queue {
            let begin = at.max(op.ready);
            at = begin + op.length;
            busy.record(FlashUnit::Die(number.0), (op.act(), op.cause), begin, at);
        }
    }

    #[inline]
    pub fn commit_until(&mut self, time: SimTime) {
        self.committed_until = self.committed_until.max(time);
    }

    #[inline]
    pub fn update_free(&mut self) {
        self.free = self.queue.iter().fold(self.at, QueuedOp::end_after);
    }

    /// Time that the background operations in the queue take, `most` at most.
    #[inline]
    pub fn background_time(&self, most: SimDuration) -> SimDuration {
        if most.is_zero() {
            return most;
        }
        let add = |time: SimDuration, op: &QueuedOp| {
            if op.is_background() { time + op.length } else { time }
        };
        self.queue.iter().fold(SimDuration::ZERO, add).min(most)
    }

    /// The end of the last operation of request `number` that serves the host, other than a host
    /// read; `None` if it has left the queue.
    pub fn end_of(&self, number: u64) -> Option<SimTime> {
        let awaited = |op: &QueuedOp| {
            op.request == number && op.cause == Cause::Host && op.kind != QueuedKind::HostRead
        };
        let last = self.queue.iter().rposition(awaited)?;
        Some(self.queue.iter().take(last + 1).fold(self.at, QueuedOp::end_after))
    }

    /// The first slot from `earliest` on for a host read.
    #[inline]
    pub fn read_slot(&self, earliest: SimTime, scheduling: &DieScheduling) -> ReadSlot {
        let mut begin = earliest.max(self.committed_until).max(self.read_until).max(self.at);
        let mut at = self.at;
        for (index, op) in self.queue.iter().enumerate() {
            let start = at.max(op.ready);
            let end = start + op.length;
            if start >= begin {
                if !op.precedes_reads(begin, scheduling) {
                    return ReadSlot { index, begin, suspended: None };
                }
                begin = start;
            }
            if end > begin {
                let suspend = match op.kind {
                    QueuedKind::Program | QueuedKind::Copy => scheduling.program_suspend,
                    QueuedKind::Erase => scheduling.erase_suspend,
                    QueuedKind::HostRead | QueuedKind::BackgroundRead => None,
                };
                let point = op.suspension(start, begin, scheduling);
                let left = end.since(point.min(end));
                let pays = suspend.is_some_and(|suspend| left > suspend);
                if pays && op.suspends < scheduling.suspends_max {
                    return ReadSlot { index: index + 1, begin: point, suspended: Some(left) };
                }
                begin = end;
            }
            at = end;
        }
        ReadSlot { index: self.queue.len(), begin, suspended: None }
    }

    /// Merges `op` into the last operation of the queue if that has not begun, does the same on
    /// other planes in the same mode for the same request, and its end has not been committed.
    #[inline]
    pub fn merge(&mut self, op: &QueuedOp, now: SimTime) -> bool {
        let (free, committed) = (self.free, self.committed_until);
        let Some(last) = self.queue.back_mut() else { return false };
        let same = last.kind == op.kind
            && last.request == op.request
            && last.offset == op.offset
            && last.slc == op.slc
            && last.is_background() == op.is_background()
            && last.suspends == 0
            && last.planes & op.planes == 0
            && matches!(op.kind, QueuedKind::Program | QueuedKind::Erase);
        let begins = SimTime::from_ns(free.as_ns() - last.length.as_ns().min(free.as_ns()));
        if !same || begins <= now || (committed >= free && op.ready > begins) {
            return false;
        }
        last.planes |= op.planes;
        if op.cause == Cause::Host {
            // A write waits for it.
            last.cause = op.cause;
        }
        last.ready = last.ready.max(op.ready);
        self.update_free();
        true
    }
}
