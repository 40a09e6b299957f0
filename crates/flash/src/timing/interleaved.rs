//! Channels and dies in parallel.
//!
//! Each die works on one operation at a time, in the order the operations were noted. A channel
//! carries commands and data. A read takes a command slot, leaves the channel free while the
//! cells are read, and takes a data slot; a program takes one slot for command and data, then the
//! cells are programmed (flashsim, figure 4 and algorithm 1). A die has one page register: it is
//! busy until the data of a read are out, and takes the next data only when it is free.

use super::{Delays, Journal, Path, Reached, Timed, Wires, serves_request};
use crate::event::Cause;
use crate::geometry::Geometry;
use crate::ops::{After, FlashOp, OpKind};
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use hybridsim_engine::{Op, SimDuration, SimTime};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Die {
    free: SimTime,
    /// The last uninterrupted run of garbage collection on the die.
    gc_from: SimTime,
    gc_until: SimTime,
}

/// Dies and channels that work side by side.
pub struct Interleaved {
    geometry: Geometry,
    delays: Delays,
    dies: Vec<Die>,
    wires: Wires,
    op: Op,
    /// When the request's data are all in the device, and how that was reached.
    base: Reached,
    /// When its first byte began to come in.
    data_from: SimTime,
    /// The page that keeps the host waiting longest.
    last: Reached,
    settled: SimTime,
    /// Ends of the operations of the page being booked, for links.
    ends: Vec<Reached>,
}

impl Interleaved {
    /// An idle device.
    pub fn new(geometry: Geometry, delays: Delays) -> Self {
        Self {
            geometry,
            delays,
            dies: vec![Die::default(); geometry.dies() as usize],
            wires: Wires::new(geometry, &delays),
            op: Op::Read,
            base: Reached::default(),
            data_from: SimTime::ZERO,
            last: Reached::default(),
            settled: SimTime::ZERO,
            ends: Vec::with_capacity(1024),
        }
    }

    pub(super) fn journal(&mut self) -> &mut Journal {
        &mut self.wires.journal
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&self.dies);
        self.wires.save(to);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let dies: Vec<Die> = from.take()?;
        state::same_length("the list of dies", dies.len(), self.dies.len())?;
        self.dies = dies;
        self.wires.restore(from)
    }

    #[inline]
    pub(super) fn begin(&mut self, now: SimTime, op: Op, bytes: u64) {
        self.wires.advance(now);
        self.op = op;
        let overhead = self.delays.overhead(op);
        let path = Path { overhead, ..Path::default() };
        (self.data_from, self.base) = self.wires.from_host(op, bytes, now + overhead, path);
        self.last = Reached { at: now, path: Path::default() };
        self.settled = now;
    }

    pub(super) fn begin_background(&mut self, now: SimTime) {
        self.wires.advance(now);
        self.op = Op::Flush;
        self.base = Reached { at: now, path: Path::default() };
        self.last = self.base;
        self.settled = now;
    }

    pub(super) fn delay(&mut self, time: SimDuration) {
        self.base.at += time;
        self.base.path.gc += time;
        self.data_from += time;
        self.settled = self.settled.max(self.base.at);
    }

    #[inline]
    pub(super) fn page(&mut self, ops: &[FlashOp], bytes: u64, bytes_behind: u64) {
        let mut ready = self.page_ready(bytes_behind);
        // Data go through the controller's memory on their way in (flashsim, section 3.2).
        if self.op == Op::Write && !ops.is_empty() {
            ready = ready.through_ram(self.delays.ram);
        }
        let mut result = ready;
        if ops.iter().any(|op| op.after != After::NOTHING) {
            result = self.book_linked(ops, ready);
        } else {
            for op in ops {
                self.book_unlinked(op, &ready, &mut result);
            }
        }
        if self.op == Op::Read {
            if !ops.is_empty() {
                result = result.through_ram(self.delays.ram);
            }
            result = self.wires.to_host(result, bytes);
        }
        if result.at >= self.last.at {
            self.last = result;
        }
    }

    #[inline]
    fn book_unlinked(&mut self, op: &FlashOp, ready: &Reached, result: &mut Reached) {
        if op.kind == OpKind::Copy && !serves_request(op.cause) {
            // The bulk of all operations, and nobody asks how it was reached.
            if let Some(inside) = self.delays.copy_inside(op, &self.geometry) {
                let begin = ready.at.max(self.dies[op.die.0 as usize].free);
                let at = begin + inside + self.delays.command * 2;
                self.collect_until(op, begin, at);
                self.wires.journal.die(op, begin, at);
                self.settled = self.settled.max(at);
                return;
            }
        }
        let reached = self.book(op, *ready);
        self.settled = self.settled.max(reached.at);
        if op.cause == Cause::Host && reached.at >= result.at {
            *result = reached;
        }
    }

    /// As [`Self::book_unlinked`] for operations some of which wait for others.
    fn book_linked(&mut self, ops: &[FlashOp], ready: Reached) -> Reached {
        let mut result = ready;
        self.ends.clear();
        for op in ops {
            let from = op.after.index().map_or(ready, |index| self.ends[index]);
            let reached = self.book(op, from);
            self.settled = self.settled.max(reached.at);
            if op.cause == Cause::Host && reached.at >= result.at {
                result = reached;
            }
            self.ends.push(reached);
        }
        result
    }

    #[inline]
    fn collect_until(&mut self, op: &FlashOp, begin: SimTime, at: SimTime) {
        let die = &mut self.dies[op.die.0 as usize];
        if die.gc_until < begin {
            die.gc_from = begin;
        }
        die.gc_until = at;
        die.free = at;
    }

    #[inline]
    pub(super) fn end(&mut self) -> Timed {
        if self.base.at >= self.last.at {
            self.last = self.base;
        }
        let end = self.last.at;
        Timed { end, breakdown: self.last.path.breakdown(), settled: self.settled.max(end) }
    }

    /// When the data of a page are in the device: those behind it are still on the way.
    #[inline]
    fn page_ready(&self, bytes_behind: u64) -> Reached {
        if bytes_behind == 0 || self.op != Op::Write {
            return self.base;
        }
        let later = SimDuration::transfer(bytes_behind, self.delays.host_rate);
        let later = SimDuration::from_ns(later.as_ns().min(self.base.path.bus.as_ns()));
        let mut ready = self.base;
        ready.path.bus -= later;
        ready.at = self.data_from + ready.path.bus;
        ready
    }

    /// Books `op`, which may begin at `from`.
    #[inline]
    fn book(&mut self, op: &FlashOp, from: Reached) -> Reached {
        let die = self.dies[op.die.0 as usize];
        let free = from.at.max(die.free);
        let Delays { read, program, erase, command, data_command, page_transfer, .. } = self.delays;
        let mut path = from.path;
        let (begin, at) = match op.kind {
            OpKind::Read => {
                let begin = self.wires.send(op, free, command);
                let sensed = begin + command + read;
                let wire = data_command + page_transfer;
                let out = self.wires.send(op, sensed, wire);
                path.read += read;
                path.queue += out.since(sensed);
                path.flash_bus += command + wire;
                (begin, out + wire)
            }
            OpKind::Program => {
                let begin = self.wires.send(op, free, command + page_transfer);
                path.program += program;
                path.flash_bus += command + page_transfer;
                (begin, begin + command + page_transfer + program)
            }
            OpKind::Erase => {
                let begin = self.wires.send(op, free, command);
                path.erase += erase;
                path.flash_bus += command;
                (begin, begin + command + erase)
            }
            OpKind::Copy => return self.book_copy(op, from),
        };
        self.occupy(op, from, begin, at, path)
    }

    /// A copy reads and programs: inside one die without the channel when the chip can do that,
    /// else over the channel into the controller and back.
    fn book_copy(&mut self, op: &FlashOp, from: Reached) -> Reached {
        let Delays { read, program, command, data_command, page_transfer, .. } = self.delays;
        let block = self.geometry.block_of(crate::geometry::Ppn(op.from));
        let source = self.geometry.die_of(block);
        let free = from.at.max(self.dies[op.die.0 as usize].free);
        let mut path = from.path;
        if source != op.die {
            let out = FlashOp { kind: OpKind::Read, die: source, ..*op };
            let read_done = self.book(&out, from);
            let into = FlashOp { kind: OpKind::Program, ..*op };
            return self.book(&into, read_done);
        }
        if let Some(inside) = self.delays.copy_inside(op, &self.geometry) {
            path.program += inside;
            path.flash_bus += command + command;
            return self.occupy(op, from, free, free + inside + command + command, path);
        }
        path.read += read;
        path.program += program;
        // Out and in again as one slot: the die's register is not free in between.
        let wire = data_command + page_transfer + command + page_transfer;
        let begin = self.wires.send(op, free, command);
        let sensed = begin + command + read;
        let out = self.wires.send(op, sensed, wire);
        path.queue += out.since(sensed);
        path.flash_bus += command + wire;
        self.occupy(op, from, begin, out + wire + program, path)
    }

    /// The die of `op` works from `begin` until `at`. The wait before is put down to garbage
    /// collection as far as the die was collecting then.
    #[inline]
    fn occupy(
        &mut self,
        op: &FlashOp,
        from: Reached,
        begin: SimTime,
        at: SimTime,
        mut path: Path,
    ) -> Reached {
        let die = &self.dies[op.die.0 as usize];
        if serves_request(op.cause) {
            let wait = begin.since(from.at);
            let gc = die.gc_until.min(begin).since(die.gc_from.max(from.at));
            path.gc += gc;
            path.queue += wait - gc;
        } else {
            path = from.path;
            path.gc += at.since(from.at);
            self.collect_until(op, begin, at);
        }
        self.dies[op.die.0 as usize].free = at;
        self.wires.journal.die(op, begin, at);
        Reached { at, path }
    }
}
