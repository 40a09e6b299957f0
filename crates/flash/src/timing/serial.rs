//! One plane, one operation at a time: the mode of the older papers.
//!
//! A request takes its overhead and the sum of its operations, n pages read in `overhead + n *
//! read` (konanki, table 4.1).

use super::{Delays, Journal, Path, Timed, serves_request};
use crate::geometry::{Geometry, Ppn};
use crate::ops::{FlashOp, OpKind};
use hybridsim_engine::{Loader, Op, Saver, SimDuration, SimTime, StateError};

/// A device that does one thing at a time.
pub struct Serial {
    geometry: Geometry,
    delays: Delays,
    free: SimTime,
    path: Path,
    moves_data: bool,
    journal: Journal,
}

impl Serial {
    /// An idle device.
    pub fn new(geometry: Geometry, delays: Delays) -> Self {
        let path = Path::default();
        let journal = Journal::default();
        Self { geometry, delays, free: SimTime::ZERO, path, moves_data: false, journal }
    }

    pub(super) fn journal(&mut self) -> &mut Journal {
        &mut self.journal
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
        self.moves_data = matches!(op, Op::Read | Op::Write);
        let rate = if self.moves_data { self.delays.host_rate } else { 0 };
        let bus = SimDuration::transfer(bytes, rate);
        self.path = Path { queue: start.since(now), overhead, bus, ..Path::default() };
        self.free = start + overhead + bus;
    }

    pub(super) fn begin_background(&mut self, now: SimTime) {
        self.path = Path::default();
        self.moves_data = false;
        self.free = self.free.max(now);
    }

    pub(super) fn delay(&mut self, time: SimDuration) {
        self.free += time;
        self.path.gc += time;
    }

    pub(super) fn page(&mut self, ops: &[FlashOp]) {
        let Delays { read, program, erase, command, data_command, page_transfer, .. } = self.delays;
        const NONE: SimDuration = SimDuration::ZERO;
        if self.moves_data && !ops.is_empty() {
            self.path.overhead += self.delays.ram;
            self.free += self.delays.ram;
        }
        for op in ops {
            let (read, program, erase, wire) = match op.kind {
                OpKind::Read => (read, NONE, NONE, command + data_command + page_transfer),
                OpKind::Program => (NONE, program, NONE, command + page_transfer),
                OpKind::Erase => (NONE, NONE, erase, command),
                OpKind::Copy => match self.delays.copy_inside(op, &self.geometry) {
                    Some(inside) => (NONE, inside, NONE, command * 2),
                    None => (read, program, NONE, command * 2 + data_command + page_transfer * 2),
                },
            };
            if serves_request(op.cause) {
                self.path.read += read;
                self.path.program += program;
                self.path.erase += erase;
                self.path.flash_bus += wire;
            } else {
                self.path.gc += read + program + erase + wire;
            }
            let begin = self.free;
            self.free = self.free + read + program + erase + wire;
            if self.journal.is_on() {
                self.note(op, begin, self.free);
            }
        }
    }

    /// Notes what `op` does on its die and its channel.
    fn note(&mut self, op: &FlashOp, begin: SimTime, end: SimTime) {
        let Delays { read, command, data_command, page_transfer, .. } = self.delays;
        let (sensed, out) = (begin + command + read, data_command + page_transfer);
        let channel = self.geometry.channel_of(op.die);
        match op.kind {
            OpKind::Read => {
                self.journal.channel(channel, op, begin, command);
                self.journal.channel(channel, op, sensed, out);
            }
            OpKind::Program => self.journal.channel(channel, op, begin, command + page_transfer),
            OpKind::Erase => self.journal.channel(channel, op, begin, command),
            OpKind::Copy if self.delays.copy_inside(op, &self.geometry).is_some() => {}
            OpKind::Copy => {
                let source = self.geometry.die_of(self.geometry.block_of(Ppn(op.from)));
                if source != op.die {
                    let read_end = sensed + out;
                    let from = FlashOp { kind: OpKind::Read, die: source, ..*op };
                    self.note(&from, begin, read_end);
                    let to = FlashOp { kind: OpKind::Program, ..*op };
                    return self.note(&to, read_end, end);
                }
                self.journal.channel(channel, op, begin, command);
                self.journal.channel(channel, op, sensed, out + command + page_transfer);
            }
        }
        self.journal.die(op, begin, end);
    }

    pub(super) fn end(&mut self) -> Timed {
        Timed { end: self.free, breakdown: self.path.breakdown(), settled: self.free }
    }
}
