//! Writes without a write buffer. Such a write completes when its programs have ended, and host
//! reads may delay these until then, so its completion time is decided when it is reached.

use super::{Scheduled, Timed};
use crate::geometry::DieId;
use hybridsim_engine::{LatencyPhase, SimTime};
use std::collections::BTreeMap;

/// A write whose programs have not all ended.
#[derive(Debug)]
struct UnbufferedWrite {
    /// Completion if nothing delays the programs.
    timed: Timed,
    dies: Vec<DieId>,
}

/// The writes whose programs have not all ended: requests in flight, so there are few.
#[derive(Debug, Default)]
pub struct UnbufferedWrites {
    /// By number of the request.
    writes: BTreeMap<u64, UnbufferedWrite>,
    /// The dies that program the current request.
    dies_of_current: Vec<DieId>,
}

impl UnbufferedWrites {
    /// `die` executes a program of the current request.
    pub fn push_die(&mut self, die: DieId) {
        if !self.dies_of_current.contains(&die) {
            self.dies_of_current.push(die);
        }
    }

    /// The current request is complete; with `timed` if nothing delays its programs.
    pub fn end_current(&mut self, number: u64, timed: Timed) -> Scheduled {
        let dies = std::mem::take(&mut self.dies_of_current);
        self.writes.insert(number, UnbufferedWrite { timed, dies });
        Scheduled::Programs { number, until: timed.end, idle_from: timed.idle_from }
    }

    pub fn drop_current(&mut self) {
        self.dies_of_current.clear();
    }

    pub fn clear(&mut self) {
        self.writes.clear();
    }

    /// Completes request `number` at `now`, unless programs on one of its dies are left, which end
    /// at `end_on(die)`.
    pub fn programmed(
        &mut self,
        now: SimTime,
        number: u64,
        end_on: impl Fn(DieId) -> Option<SimTime>,
    ) -> Option<Scheduled> {
        let write = self.writes.get(&number)?;
        let until = write.dies.iter().filter_map(|die| end_on(*die)).max();
        if let Some(until) = until.filter(|until| *until > now) {
            return Some(Scheduled::Programs { number, until, idle_from: until });
        }
        let UnbufferedWrite { mut timed, .. } = self.writes.remove(&number)?;
        timed.breakdown.add(LatencyPhase::Queue, now.since(timed.end));
        timed.end = now;
        timed.idle_from = timed.idle_from.max(now);
        Some(Scheduled::Completes(timed))
    }
}
