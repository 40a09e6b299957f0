//! Dies with queues: a modern controller.
//!
//! Each die has a queue of programs, copies and erases. Reads that somebody waits for go first:
//! before what has not begun, and into the middle of a program or an erase where the chip can
//! suspend them. Programs of several planes of a die go together as one multi-plane program. A
//! write is answered when it is in the write buffer, or without one when it is programmed.
//!
//! What was promised stays true: once somebody has been told when a program ends, nothing is put
//! before it any more ([`Die::fixed_until`]). So each request still costs one event.

use super::{Delays, Journal, Path, Reached, Timed, Wires, WriteBuffer, serves_request};
use crate::event::{Cause, FlashAct, FlashUnit};
use crate::geometry::{BlockId, DieId, Geometry, Ppn};
use crate::ops::{FlashOp, OpKind};
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use hybridsim_engine::{Op, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the chip and the controller can do besides taking turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// How long a program takes to pause; `None` when it cannot.
    pub program_suspend: Option<SimDuration>,
    /// How long an erase takes to pause; `None` when it cannot.
    pub erase_suspend: Option<SimDuration>,
    /// What is added to a program or erase each time it goes on.
    pub resume: SimDuration,
    /// An operation pauses at most so often.
    pub suspends_max: u32,
    /// Whether planes of a die program and erase together.
    pub multi_plane: bool,
}

/// A program, erase or copy, or a read that has its place already.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Work {
    kind: Kind,
    /// It does not begin earlier.
    ready: SimTime,
    length: SimDuration,
    cause: Cause,
    suspends: u32,
    /// The planes it works on, a bit each, and the page in the block: what may be joined.
    planes: u64,
    offset: u32,
    /// The request it belongs to.
    request: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// A read that somebody waits for.
    Read,
    Program,
    Erase,
    Copy,
    /// A read that takes its turn.
    Fetch,
}

impl Work {
    /// Garbage collection, as against what a request asked for.
    const fn collects(&self) -> bool {
        !serves_request(self.cause)
    }

    const fn act(&self) -> FlashAct {
        match self.kind {
            Kind::Read | Kind::Fetch => FlashAct::Read,
            Kind::Program => FlashAct::Program,
            Kind::Erase => FlashAct::Erase,
            Kind::Copy => FlashAct::Copy,
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Die {
    /// In order; the first may be under way.
    work: VecDeque<Work>,
    /// When the last thing that is not in `work` any more ended.
    at: SimTime,
    /// When all of `work` will have ended.
    free: SimTime,
    /// The last read ends then; reads take turns.
    read_until: SimTime,
    /// Nothing may be put before this instant.
    fixed_until: SimTime,
}

/// Where a read goes.
struct Gap {
    /// Position in the queue.
    index: usize,
    begin: SimTime,
    /// What is left of the work at `index - 1`, which pauses for the read.
    paused: Option<SimDuration>,
}

impl Die {
    /// Forgets what ended before `now`: nothing can come before it any more.
    fn advance(&mut self, now: SimTime, number: DieId, journal: &mut Journal) {
        while let Some(first) = self.work.front() {
            let begin = self.at.max(first.ready);
            let end = begin + first.length;
            if end > now {
                break;
            }
            journal.note(FlashUnit::Die(number.0), first.act(), first.cause, begin, end);
            self.at = end;
            self.work.pop_front();
        }
    }

    fn recount(&mut self) {
        let end = |at: SimTime, work: &Work| at.max(work.ready) + work.length;
        self.free = self.work.iter().fold(self.at, end);
    }

    /// The first place from `earliest` on where a read may go.
    fn gap(&self, earliest: SimTime, queueing: &Queueing) -> Gap {
        let mut begin = earliest.max(self.fixed_until).max(self.read_until).max(self.at);
        let mut at = self.at;
        for (index, work) in self.work.iter().enumerate() {
            let start = at.max(work.ready);
            let end = start + work.length;
            if start >= begin {
                return Gap { index, begin, paused: None };
            }
            if end > begin {
                let suspend = match work.kind {
                    Kind::Program => queueing.program_suspend,
                    Kind::Erase => queueing.erase_suspend,
                    Kind::Read | Kind::Copy | Kind::Fetch => None,
                };
                let left = end.since(begin);
                let pays = suspend.is_some_and(|pause| left > pause);
                if pays && work.suspends < queueing.suspends_max {
                    return Gap { index: index + 1, begin, paused: Some(left) };
                }
                begin = end;
            }
            at = end;
        }
        Gap { index: self.work.len(), begin, paused: None }
    }
}

/// Dies with queues, channels, and a write buffer.
pub struct Queued {
    geometry: Geometry,
    delays: Delays,
    queueing: Queueing,
    dies: Vec<Die>,
    wires: Wires,
    buffer: WriteBuffer,
    now: SimTime,
    op: Op,
    request: u64,
    base: Reached,
    last: Reached,
    settled: SimTime,
    ends: Vec<Reached>,
}

impl Queued {
    /// An idle device.
    pub fn new(
        geometry: Geometry,
        delays: Delays,
        queueing: Queueing,
        buffer: WriteBuffer,
    ) -> Self {
        Self {
            geometry,
            delays,
            queueing,
            dies: vec![Die::default(); geometry.dies() as usize],
            wires: Wires::new(geometry, &delays),
            buffer,
            now: SimTime::ZERO,
            op: Op::Flush,
            request: 0,
            base: Reached::default(),
            last: Reached::default(),
            settled: SimTime::ZERO,
            ends: Vec::with_capacity(1024),
        }
    }

    pub(super) fn journal(&mut self) -> &mut Journal {
        &mut self.wires.journal
    }

    /// The journal, with what dies did until `now`, or will have done when all is done.
    pub(super) fn journal_until(&mut self, now: SimTime, everything: bool) -> &mut Journal {
        let until = if everything { SimTime::from_ns(u64::MAX) } else { now };
        for (number, die) in (0..).zip(&mut self.dies) {
            die.advance(until, DieId(number), &mut self.wires.journal);
        }
        self.journal()
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&(&self.dies, self.request));
        self.wires.save(to);
        self.buffer.save(to);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (dies, request): (Vec<Die>, u64) = from.take()?;
        state::same_length("the list of dies", dies.len(), self.dies.len())?;
        (self.dies, self.request) = (dies, request);
        self.wires.restore(from)?;
        self.buffer.restore(from)
    }

    pub(super) fn begin(&mut self, now: SimTime, op: Op, bytes: u64) {
        (self.now, self.op) = (now, op);
        self.request += 1;
        self.wires.advance(now);
        let overhead = self.delays.overhead(op);
        let path = Path { overhead, ..Path::default() };
        (_, self.base) = self.wires.from_host(op, bytes, now + overhead, path);
        if op == Op::Flush {
            let at = self.base.at;
            let (end, dies) = self.buffer.flushed(at);
            for (die, until) in dies {
                let fixed = &mut self.dies[usize::from(die.0)].fixed_until;
                *fixed = until.max(*fixed);
            }
            self.base.path.program = end.since(at);
            self.base.at = end;
        }
        self.last = self.base;
        self.settled = now;
    }

    pub(super) fn begin_background(&mut self, now: SimTime) {
        self.now = now;
        self.wires.advance(now);
        self.op = Op::Flush;
        self.request += 1;
        self.base = Reached { at: now, path: Path::default() };
        self.last = self.base;
        self.settled = now;
    }

    pub(super) fn delay(&mut self, time: SimDuration) {
        self.base.at += time;
        self.base.path.gc += time;
        self.settled = self.settled.max(self.base.at);
    }

    pub(super) fn page(&mut self, ops: &[FlashOp], bytes: u64) {
        let mut ready = self.base;
        let buffered = self.op == Op::Write && self.buffer.exists() && !ops.is_empty();
        if buffered {
            let (at, freed_by) = self.buffer.place(ready.at);
            if let Some(die) = freed_by {
                // Somebody is told now that this program ends then.
                let fixed = &mut self.dies[usize::from(die.0)].fixed_until;
                *fixed = at.max(*fixed);
            }
            ready.path.queue += at.since(ready.at);
            ready.at = at.max(ready.at);
        }
        if self.op == Op::Write && !ops.is_empty() {
            ready = ready.through_ram(self.delays.ram);
        }
        let mut result = ready;
        let mut programmed = None;
        self.ends.clear();
        for op in ops {
            let from = op.after.index().map_or(ready, |index| self.ends[index]);
            let reached = self.book(op, from);
            self.settled = self.settled.max(reached.at);
            self.ends.push(reached);
            if op.cause == Cause::Host && op.kind == OpKind::Program {
                programmed = Some((op.die, reached.at));
            }
            if op.cause == Cause::Host && !buffered && reached.at >= result.at {
                result = reached;
            }
        }
        match programmed {
            Some((die, until)) if buffered => self.buffer.hold(die, until),
            Some((die, until)) => {
                let fixed = &mut self.dies[usize::from(die.0)].fixed_until;
                *fixed = until.max(*fixed);
            }
            None => {}
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

    pub(super) fn end(&mut self) -> Timed {
        let end = self.last.at;
        Timed { end, breakdown: self.last.path.breakdown(), settled: self.settled.max(end) }
    }

    fn book(&mut self, op: &FlashOp, from: Reached) -> Reached {
        self.dies[usize::from(op.die.0)].advance(self.now, op.die, &mut self.wires.journal);
        match op.kind {
            OpKind::Read if serves_request(op.cause) => self.book_read(op, from),
            OpKind::Read => {
                let Delays { read, command, data_command, page_transfer, .. } = self.delays;
                let (before, wire) = (command + read, data_command + page_transfer);
                let waited = self.carry(op, from, before, wire);
                self.book_work(op, from, Kind::Fetch, before + waited + wire, from.at)
            }
            OpKind::Program => {
                // The data go ahead into the die's buffer and wait there for their turn.
                let wire = self.delays.command + self.delays.page_transfer;
                let sent = self.wires.send(op, from.at, wire) + wire;
                self.book_work(op, from, Kind::Program, self.delays.program, sent)
            }
            OpKind::Erase => {
                let sent = self.wires.send(op, from.at, self.delays.command);
                let length = self.delays.erase;
                self.book_work(op, from, Kind::Erase, length, sent + self.delays.command)
            }
            OpKind::Copy => self.book_copy(op, from),
        }
    }

    /// A read that somebody waits for.
    fn book_read(&mut self, op: &FlashOp, from: Reached) -> Reached {
        let Delays { read, command, data_command, page_transfer, .. } = self.delays;
        let gap = self.dies[usize::from(op.die.0)].gap(from.at, &self.queueing);
        let begin = self.wires.send(op, gap.begin, command);
        let this = &mut self.dies[usize::from(op.die.0)];
        let mut pause = SimDuration::ZERO;
        if let Some(left) = gap.paused {
            let work = &mut this.work[gap.index - 1];
            pause = match work.kind {
                Kind::Erase => self.queueing.erase_suspend,
                _ => self.queueing.program_suspend,
            }
            .expect("only what can pause is paused");
            work.length -= left;
            let rest = Work {
                ready: SimTime::ZERO,
                length: left + self.queueing.resume,
                suspends: work.suspends + 1,
                ..*work
            };
            this.work.insert(gap.index, rest);
        }
        let sensed = begin + command + pause + read;
        let out = self.wires.send(op, sensed, data_command + page_transfer);
        let this = &mut self.dies[usize::from(op.die.0)];
        let end = out + data_command + page_transfer;
        let length = end.since(begin);
        let free = this.free;
        let work = Work {
            kind: Kind::Read,
            ready: begin,
            length,
            cause: op.cause,
            suspends: 0,
            planes: 0,
            offset: 0,
            request: self.request,
        };
        this.work.insert(gap.index, work);
        this.read_until = end;
        this.recount();
        self.settled = self.settled.max(this.free);
        let delay = this.free.since(free);
        if gap.index + 1 < this.work.len() && !delay.is_zero() {
            self.buffer.postpone(op.die, begin, delay);
        }
        let mut path = from.path;
        path.queue += begin.since(from.at) + pause + out.since(sensed);
        path.read += read;
        path.flash_bus += command + data_command + page_transfer;
        Reached { at: end, path }
    }

    fn book_copy(&mut self, op: &FlashOp, from: Reached) -> Reached {
        let Delays { read, program, command, data_command, page_transfer, .. } = self.delays;
        if let Some(inside) = self.delays.copy_inside(op, &self.geometry) {
            return self.book_work(op, from, Kind::Copy, inside + command * 2, from.at);
        }
        let source = self.geometry.die_of(self.geometry.block_of(Ppn(op.from)));
        if source != op.die {
            let out = FlashOp { kind: OpKind::Read, die: source, ..*op };
            let reached = self.book(&out, from);
            let into = FlashOp { kind: OpKind::Program, ..*op };
            return self.book(&into, reached);
        }
        let wire = command * 2 + data_command + page_transfer * 2;
        let waited = self.carry(op, from, read, wire);
        self.book_work(op, from, Kind::Copy, read + waited + wire + program, from.at)
    }

    /// Takes the channel for work at the end of its die's queue, `before` after it begins. Says how
    /// long the channel lets it wait.
    fn carry(
        &mut self,
        op: &FlashOp,
        from: Reached,
        before: SimDuration,
        wire: SimDuration,
    ) -> SimDuration {
        let sensed = self.dies[usize::from(op.die.0)].free.max(from.at) + before;
        self.wires.send(op, sensed, wire).since(sensed)
    }

    /// Puts work at the end of its die's queue, or joins it to what is there.
    fn book_work(
        &mut self,
        op: &FlashOp,
        from: Reached,
        kind: Kind,
        length: SimDuration,
        ready: SimTime,
    ) -> Reached {
        let block = match op.kind {
            OpKind::Erase => BlockId(op.page),
            _ => self.geometry.block_of(Ppn(op.page)),
        };
        let plane = self.geometry.plane_of(block).0 / self.geometry.dies();
        let work = Work {
            kind,
            ready,
            length,
            cause: op.cause,
            suspends: 0,
            planes: 1 << (plane % 64),
            offset: if kind == Kind::Program { self.geometry.offset_of(Ppn(op.page)) } else { 0 },
            request: self.request,
        };
        let now = self.now;
        let joins = self.queueing.multi_plane;
        let die = &mut self.dies[usize::from(op.die.0)];
        let before = die.free;
        if !(joins && die.join(&work, now)) {
            die.work.push_back(work);
            die.free = die.free.max(ready) + length;
        }
        let at = die.free;
        let mut path = from.path;
        let waited = (at - length).since(from.at);
        if work.collects() {
            path.gc += at.since(from.at);
        } else {
            let collecting = die.work.iter().filter(|work| work.collects());
            let gc = collecting.map(|work| work.length).sum::<SimDuration>();
            let sent = ready.since(from.at).min(waited);
            let gc = gc.min(before.min(at - length).since(ready).min(waited - sent));
            path.gc += gc;
            path.flash_bus += sent;
            path.queue += waited - sent - gc;
            match kind {
                Kind::Erase => path.erase += length,
                _ => path.program += length,
            }
        }
        Reached { at, path }
    }
}

impl Die {
    /// Joins `work` to the last in the queue, if that has not begun, does the same on other planes
    /// for the same request, and nobody counts on its end.
    fn join(&mut self, work: &Work, now: SimTime) -> bool {
        let free = self.free;
        let fixed = self.fixed_until;
        let Some(last) = self.work.back_mut() else { return false };
        let same = last.kind == work.kind
            && last.request == work.request
            && last.offset == work.offset
            && last.collects() == work.collects()
            && last.suspends == 0
            && last.planes & work.planes == 0
            && matches!(work.kind, Kind::Program | Kind::Erase);
        let begins = SimTime::from_ns(free.as_ns() - last.length.as_ns().min(free.as_ns()));
        if !same || begins <= now || (fixed >= free && work.ready > begins) {
            return false;
        }
        last.planes |= work.planes;
        last.ready = last.ready.max(work.ready);
        self.recount();
        true
    }
}
