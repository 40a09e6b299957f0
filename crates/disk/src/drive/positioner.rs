//! Positioning estimates for schedulers: access times and buffer hits.

use super::{DrivePolicy, forced};
use crate::cache::Segments;
use crate::mechanics::Mechanics;
use hybridsim_engine::schedule::{HeadTarget, Positioner};
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime};
use std::cell::RefCell;
use std::rc::Rc;

/// Mechanics and buffer of a drive, for schedulers in it and above it. The buffer is as of the last
/// event of the drive, without the sectors read ahead since.
pub(super) struct DrivePositioner {
    pub mechanics: Rc<Mechanics>,
    pub buffer: Rc<RefCell<Segments>>,
    pub policy: DrivePolicy,
    /// From the arrival of a read and of a write until the arm starts: the command time, which
    /// has passed for the drive's own scheduler.
    pub lead: [SimDuration; 2],
}

impl Positioner for DrivePositioner {
    #[inline]
    fn positioning(&self, now: SimTime, last: Lba, to: &Request) -> SimDuration {
        let lead = self.lead[usize::from(to.op == Op::Write)];
        lead + self.mechanics.positioning(now + lead, last, to)
    }

    fn target(&self, to: &Request) -> Option<HeadTarget> {
        Some(self.mechanics.target(to))
    }

    fn nearest(&self, now: SimTime, last: Lba, targets: &[HeadTarget]) -> Option<usize> {
        self.mechanics.nearest((now, self.lead), last, targets)
    }

    fn cylinder(&self, lba: Lba) -> u32 {
        self.mechanics.cylinder(lba)
    }

    fn cylinders(&self) -> u32 {
        self.mechanics.cylinders()
    }

    fn seek(&self, last: Lba, to: &Request) -> SimDuration {
        self.mechanics.seek(last, to)
    }

    fn transfer(&self, to: &Request) -> SimDuration {
        self.mechanics.transfer(to)
    }

    fn is_buffered(&self, to: &Request) -> bool {
        let (buffer, start, end) = (self.buffer.borrow(), to.lba.0, to.end().0);
        match to.op {
            Op::Read => !forced(to) && buffer.find(start).is_some_and(|found| found.until >= end),
            Op::Write => {
                let goes_on = !self.policy.appends_only
                    || buffer.dirty() == 0
                    || buffer.last_write_end() == start;
                // Without prebuffering a write that waits needs the mechanism.
                let takes = self.policy.write_cache && self.policy.prebuffers && !forced(to);
                takes && goes_on && buffer.takes(start, end)
            }
            Op::Trim | Op::Zone(_) => true,
            Op::Flush => buffer.dirty() == 0,
        }
    }

    fn sectors(&self) -> u64 {
        self.mechanics.sectors()
    }
}
