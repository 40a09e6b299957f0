//! Fault injection: dies that are slower than the others.

use super::OperationTimes;
use crate::geometry::DieId;
use crate::ops::FlashOp;
use hybridsim_engine::state::same_length;
use hybridsim_engine::{Loader, Saver, SimDuration, Slowdown, StateError};

/// The slowdown of the cells of each die. Channels and controller keep their speed.
#[derive(Debug, Default)]
pub struct DieSlowdowns {
    /// By die; empty while none is slow.
    factors: Vec<Slowdown>,
}

/// Times of one die's cells.
pub(super) struct CellTimes {
    pub read: SimDuration,
    pub program: SimDuration,
    pub erase: SimDuration,
}

impl CellTimes {
    /// Out of line: only injected faults slow dies down.
    #[cold]
    fn slowed_by(self, factor: Slowdown) -> Self {
        let Self { read, program, erase } = self;
        Self { read: factor.of(read), program: factor.of(program), erase: factor.of(erase) }
    }
}

impl DieSlowdowns {
    /// Slows down `die`, or all `dies` of them.
    pub fn set(&mut self, dies: u32, die: Option<u32>, slowdown: Slowdown) {
        self.factors.resize(dies as usize, Slowdown::NONE);
        match die {
            Some(die) => self.factors[die as usize] = slowdown,
            None => self.factors.fill(slowdown),
        }
        if self.factors.iter().all(|factor| *factor == Slowdown::NONE) {
            self.factors.clear();
        }
    }

    /// `time`, multiplied by the slowdown of `die`.
    #[inline]
    pub(super) fn of(&self, die: DieId, time: SimDuration) -> SimDuration {
        match self.factors.get(usize::from(die.0)) {
            Some(factor) => factor.of(time),
            None => time,
        }
    }

    #[inline]
    pub(super) fn retries(&self, op: &FlashOp, times: &OperationTimes) -> SimDuration {
        if op.retries == 0 { SimDuration::ZERO } else { self.some_retries(op, times) }
    }

    #[cold]
    fn some_retries(&self, op: &FlashOp, times: &OperationTimes) -> SimDuration {
        self.of(op.die, times.retry * u64::from(op.retries))
    }

    /// The times of the cells that `op` reads, programs or erases.
    #[inline]
    pub(super) fn cells(&self, op: &FlashOp, times: &OperationTimes) -> CellTimes {
        if op.slc.any() {
            return self.cells_in_slc_mode(op, times);
        }
        let OperationTimes { read, program, erase, .. } = *times;
        self.slowed(op.die, CellTimes { read, program, erase })
    }

    /// Out of line: most devices have no blocks in SLC mode.
    #[inline(never)]
    fn cells_in_slc_mode(&self, op: &FlashOp, times: &OperationTimes) -> CellTimes {
        let OperationTimes { mut read, mut program, mut erase, .. } = *times;
        if op.slc.source() {
            read = times.slc.read;
        }
        if op.slc.target() {
            (program, erase) = (times.slc.program, times.slc.erase);
        }
        self.slowed(op.die, CellTimes { read, program, erase })
    }

    #[inline(always)]
    fn slowed(&self, die: DieId, times: CellTimes) -> CellTimes {
        match self.factors.get(usize::from(die.0)) {
            None => times,
            Some(factor) => times.slowed_by(*factor),
        }
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&self.factors);
    }

    pub(super) fn restore(&mut self, dies: u32, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.factors = from.take()?;
        if self.factors.is_empty() {
            return Ok(());
        }
        same_length("the list of slowed dies", self.factors.len(), dies as usize)
    }
}
