//! One plane, one operation at a time: the mode of the older papers.
//!
//! A request takes its overhead and the sum of its operations, n pages read in `overhead + n *
//! read` (paper 000, table 4.1).

use super::{Delays, Path, Timed, serves_request};
use crate::ops::{FlashOp, OpKind};
use hybridsim_engine::{Loader, Op, Saver, SimDuration, SimTime, StateError};

/// A device that does one thing at a time.
pub struct Serial {
    delays: Delays,
    free: SimTime,
    path: Path,
}

impl Serial {
    /// An idle device.
    pub fn new(delays: Delays) -> Self {
        Self { delays, free: SimTime::ZERO, path: Path::default() }
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&self.free);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.free = from.take()?;
        Ok(())
    }

    pub(super) fn begin(&mut self, now: SimTime, op: Op, bytes: u64) {
        let start = now.max(self.free);
        let overhead = self.delays.overhead(op);
        let moves_data = matches!(op, Op::Read | Op::Write);
        let rate = if moves_data { self.delays.host_rate } else { 0 };
        let bus = SimDuration::transfer(bytes, rate);
        self.path = Path { queue: start.since(now), overhead, bus, ..Path::default() };
        self.free = start + overhead + bus;
    }

    pub(super) fn begin_background(&mut self, now: SimTime) {
        self.path = Path::default();
        self.free = self.free.max(now);
    }

    pub(super) fn delay(&mut self, time: SimDuration) {
        self.free = self.free + time;
        self.path.gc += time;
    }

    pub(super) fn page(&mut self, ops: &[FlashOp]) {
        for op in ops {
            let Delays { read, program, erase, .. } = self.delays;
            let (read, program, erase, slots) = match op.kind {
                OpKind::Read => (read, SimDuration::ZERO, SimDuration::ZERO, 1),
                OpKind::Program => (SimDuration::ZERO, program, SimDuration::ZERO, 1),
                OpKind::Copy if self.delays.copies_use_channel => {
                    (read, program, SimDuration::ZERO, 2)
                }
                OpKind::Copy => (read, program, SimDuration::ZERO, 0),
                OpKind::Erase => (SimDuration::ZERO, SimDuration::ZERO, erase, 0),
            };
            let commands = u64::from(op.kind == OpKind::Copy) + 1;
            let wire = self.delays.page_transfer * slots + self.delays.command * commands;
            if serves_request(op.cause) {
                self.path.read += read;
                self.path.program += program;
                self.path.erase += erase;
                self.path.flash_bus += wire;
            } else {
                self.path.gc += read + program + erase + wire;
            }
            self.free = self.free + read + program + erase + wire;
        }
    }

    pub(super) fn end(&mut self) -> Timed {
        Timed { end: self.free, parts: self.path.parts(), settled: self.free }
    }
}
