//! A queue per die, as in current controllers.
//!
//! Each die has a queue of programs, copies and erases. Host reads have priority: they execute
//! before operations that have not begun, and suspend a program, that of a copy too, or an erase
//! where the chip allows it, a program perhaps only at certain points and for so many reads
//! ([`SuspendPoints`](super::SuspendPoints)). Programs on several planes of a die run as one
//! multi-plane program. A write completes when its data are in the write buffer, or without one
//! when they are programmed.
//!
//! The completion of a read, a flush, and a write that is buffered at once is decided at arrival,
//! so each costs one event, and no operation is inserted before the programs that a flush waits for
//! ([`Die::committed_until`]). Other writes wait for programs that reads may delay: their
//! completion is decided when these have ended. Without a write buffer they are those of the write
//! ([`UnbufferedWrites`]). A write that finds the buffer full waits in its queue
//! ([`WaitingWrites`]): its operations are scheduled when it gets an entry.

use super::chip::{ChipPages, OpenProgram};
use super::die::{Die, QueuedKind, QueuedOp};
use super::request::RequestSchedule;
use super::unbuffered::UnbufferedWrites;
use super::waiting::{WaitingWrite, WaitingWrites};
use super::{
    BusyIntervals, CellTimes, DieScheduling, DieSlowdowns, Interconnect, Milestone, OperationTimes,
    Scheduled, TimingModel, WriteBuffer, serves_request, split_copy,
};
use crate::event::Cause;
use crate::geometry::{BlockId, DieId, Geometry, Ppn};
use crate::ops::{FlashOp, OpKind};
use crate::restore;
use hybridsim_engine::{LatencyPhase, Loader, Op, Saver, SimDuration, SimTime, StateError};

/// The chip's page that the last host read has read.
struct Sensed {
    request: u64,
    page: u32,
    die: DieId,
    /// Position of the read in the queue of the die.
    index: usize,
    at: Milestone,
}

pub struct Queued {
    geometry: Geometry,
    times: OperationTimes,
    scheduling: DieScheduling,
    chip: ChipPages,
    dies: Vec<Die>,
    slow: DieSlowdowns,
    sensed: Option<Sensed>,
    interconnect: Interconnect,
    buffer: WriteBuffer,
    waiting: WaitingWrites,
    unbuffered: UnbufferedWrites,
    /// Whether the current request waits for the write buffer, or for its programs.
    is_waiting: bool,
    now: SimTime,
    /// Requests so far, background work included.
    requests: u64,
    request: RequestSchedule,
    request_number: u64,
    /// Ends of the operations of the current page, for operations that depend on them.
    op_ends: Vec<Milestone>,
    /// The operations of a page that waited.
    admitted: Vec<FlashOp>,
}

impl Queued {
    pub fn new(
        geometry: Geometry,
        times: OperationTimes,
        (scheduling, chip): (DieScheduling, ChipPages),
        buffer: WriteBuffer,
    ) -> Self {
        Self {
            geometry,
            times,
            scheduling,
            chip,
            slow: DieSlowdowns::default(),
            sensed: None,
            dies: vec![Die::default(); geometry.dies() as usize],
            interconnect: Interconnect::new(geometry, &times),
            buffer,
            waiting: WaitingWrites::default(),
            unbuffered: UnbufferedWrites::default(),
            is_waiting: false,
            now: SimTime::ZERO,
            requests: 0,
            request: RequestSchedule::new(),
            request_number: 0,
            op_ends: Vec::with_capacity(1024),
            admitted: Vec::new(),
        }
    }

    #[inline]
    fn number_request(&mut self) {
        self.requests += 1;
        self.request_number = self.requests;
    }

    /// Whether a page of the current request waits for the write buffer, or for writes before it.
    #[inline]
    fn must_wait(&mut self) -> bool {
        if !self.waiting.is_empty() {
            return true;
        }
        let ready = self.request.received.at;
        let entry = self.buffer.wait_for_entry(ready, ready);
        if let Some(until) = entry {
            self.waiting.until = until;
        }
        entry.is_some()
    }

    /// Schedules the operations of a page that has its entry of the write buffer.
    fn schedule_page(&mut self, ops: &[FlashOp], bytes: u64) {
        let mut ready = self.request.received;
        let ram = (!ops.is_empty()).then_some(self.times.ram);
        let writes = self.request.op == Op::Write && !ops.is_empty();
        let buffered = writes && self.buffer.exists();
        if buffered {
            // Later than its arrival if it waited.
            let at = ready.at.max(self.now);
            ready.latency.queue += at.since(ready.at);
            ready.at = at;
        }
        if writes {
            ready.pass_ram(self.times.ram);
        }
        let mut result = ready;
        let mut programmed = None;
        self.op_ends.clear();
        for op in ops {
            let from = op.after.index().map_or(ready, |index| self.op_ends[index]);
            let end = self.schedule(op, from);
            self.request.idle_from = self.request.idle_from.max(end.at);
            self.op_ends.push(end);
            if op.cause == Cause::Host && op.kind == OpKind::Program {
                programmed = Some((op.die, end.at));
            }
            if op.cause == Cause::Host && !buffered && end.at >= result.at {
                result = end;
            }
        }
        match programmed {
            Some((die, until)) if buffered => self.buffer.insert(die, until),
            _ if writes && !buffered => self.await_programs(ops),
            _ => {}
        }
        self.request.end_page(&mut self.interconnect, result, ram, bytes);
    }

    /// The current request, a write without a buffer, waits for the programs among `ops`, and for
    /// other operations that serve it.
    fn await_programs(&mut self, ops: &[FlashOp]) {
        for op in ops.iter().filter(|op| op.cause == Cause::Host && op.kind != OpKind::Read) {
            self.unbuffered.push_die(op.die);
            self.is_waiting = true;
        }
    }

    fn end_waiting(&mut self) -> Scheduled {
        if self.buffer.exists() {
            self.waiting.end_current(&self.request, self.request_number);
            return Scheduled::Waits(self.waiting.until);
        }
        self.unbuffered.end_current(self.request_number, self.request.end())
    }

    fn schedule(&mut self, op: &FlashOp, from: Milestone) -> Milestone {
        let busy = &mut self.interconnect.busy;
        self.dies[usize::from(op.die.0)].advance(self.now, op.die, busy);
        let OperationTimes { command, data_command, page_transfer, .. } = self.times;
        let CellTimes { program, erase, .. } = self.slow.cells(op, &self.times);
        match op.kind {
            OpKind::Read if serves_request(op.cause) => self.insert_read(op, from),
            OpKind::Read => {
                let read = self.background_read_time(op, op.page);
                let (before, transfer) = (command + read, data_command + page_transfer);
                let waited = self.reserve_channel(op, from, before, transfer);
                let length = before + waited + transfer;
                self.enqueue(op, from, QueuedKind::BackgroundRead, length, from.at)
            }
            OpKind::Program => {
                // The data are transferred ahead into the die's buffer.
                let transfer = command + page_transfer;
                let sent = self.interconnect.reserve(op, from.at, transfer) + transfer;
                if let Some(end) = self.join_program(op) {
                    return from.programmed(sent, end);
                }
                let programmed = self.enqueue(op, from, QueuedKind::Program, program, sent);
                self.open_program(op, programmed.at);
                programmed
            }
            OpKind::Erase => {
                self.forget_block(op);
                let sent = self.interconnect.reserve(op, from.at, command) + command;
                self.enqueue(op, from, QueuedKind::Erase, erase, sent)
            }
            OpKind::Copy => self.schedule_copy(op, from),
        }
    }

    /// The block that `op` erases takes no more pages of earlier programs.
    fn forget_block(&mut self, op: &FlashOp) {
        let geometry = self.geometry;
        let die = &mut self.dies[usize::from(op.die.0)];
        let elsewhere =
            |program: &OpenProgram| geometry.block_of(Ppn(program.first)) != BlockId(op.page);
        die.open_programs.retain(elsewhere);
        die.copied = None;
    }

    /// Time to read the cells of `page` for `op`.
    #[inline]
    fn read_time(&self, op: &FlashOp, page: u32) -> SimDuration {
        let read = match op.slc.source() {
            true => self.times.slc.read,
            false => self.chip.read_time(self.geometry.offset_of(Ppn(page))),
        };
        self.slow.of(op.die, read)
    }

    /// The time to read page `page` for `op`, a copy or a background read: that of its retries, if
    /// the chip's page has just been read.
    fn background_read_time(&mut self, op: &FlashOp, page: u32) -> SimDuration {
        let retries = self.slow.retries(op, &self.times);
        let number = self.chip.page_read(page);
        let copied = &mut self.dies[usize::from(op.die.0)].copied;
        if self.chip.reads_several() && copied.replace(number) == Some(number) {
            return retries;
        }
        self.read_time(op, page) + retries
    }

    /// The end of the program that takes the page of `op` with earlier ones.
    fn join_program(&mut self, op: &FlashOp) -> Option<SimTime> {
        if !self.chip.programs_several() {
            return None;
        }
        let first = self.chip.first_programmed(op);
        let open = &mut self.dies[usize::from(op.die.0)].open_programs;
        let at = open.iter().position(|program| program.first == first)?;
        let end = open[at].end;
        if self.chip.is_last_programmed(op) {
            open.swap_remove(at);
        }
        Some(end)
    }

    /// A program that ends at `end` takes the pages that follow that of `op`.
    fn open_program(&mut self, op: &FlashOp, end: SimTime) {
        if self.chip.programs_several() && !self.chip.is_last_programmed(op) {
            let first = self.chip.first_programmed(op);
            self.dies[usize::from(op.die.0)].open_programs.push(OpenProgram { first, end });
        }
    }

    /// Transfers another page of the chip's page that the read before has read.
    fn read_on(&mut self, op: &FlashOp, from: Milestone) -> Option<Milestone> {
        let number = self.chip.page_read(op.page);
        let sensed = self.sensed.as_mut().filter(|sensed| {
            (sensed.request, sensed.die, sensed.page) == (self.request_number, op.die, number)
                && from.at <= sensed.at.at
        })?;
        let retries = self.slow.retries(op, &self.times);
        let (mut at, index) = (sensed.at, sensed.index);
        let begin = at.at;
        (at.at, at.latency.read) = (at.at + retries, at.latency.read + retries);
        sensed.at = at;
        let end = self.transfer_out(op, at);
        let die = &mut self.dies[usize::from(op.die.0)];
        let longer = end.at.since(die.read_until);
        die.queue[index].length += longer;
        die.read_until = die.read_until.max(end.at);
        self.postpone(op.die, index, begin);
        Some(end)
    }

    /// Transfers the page that was in the chip's register at `sensed` to the controller.
    fn transfer_out(&mut self, op: &FlashOp, sensed: Milestone) -> Milestone {
        let length = self.times.data_command + self.times.read_transfer(op);
        let out = self.interconnect.reserve(op, sensed.at, length);
        let mut latency = sensed.latency;
        latency.queue += out.since(sensed.at);
        latency.flash_bus += length;
        Milestone { at: out + length, latency }
    }

    /// The read at `index` of a die's queue, which begins at `begin`, delays what follows.
    fn postpone(&mut self, number: DieId, index: usize, begin: SimTime) {
        let die = &mut self.dies[usize::from(number.0)];
        let free = die.free;
        die.update_free();
        self.request.idle_from = self.request.idle_from.max(die.free);
        let delay = die.free.since(free);
        if index + 1 < die.queue.len() && !delay.is_zero() {
            self.buffer.postpone(number, begin, delay);
            let after = die.open_programs.iter_mut().filter(|program| program.end > begin);
            after.for_each(|program| program.end += delay);
        }
    }

    fn insert_read(&mut self, op: &FlashOp, from: Milestone) -> Milestone {
        if self.chip.reads_several()
            && let Some(end) = self.read_on(op, from)
        {
            return end;
        }
        let read = self.read_time(op, op.page) + self.slow.retries(op, &self.times);
        let command = self.times.command;
        let slot = self.dies[usize::from(op.die.0)].read_slot(from.at, &self.scheduling);
        let begin = self.interconnect.reserve(op, slot.begin, command);
        let die = &mut self.dies[usize::from(op.die.0)];
        let mut suspend = SimDuration::ZERO;
        if let Some(left) = slot.suspended {
            let first = &mut die.queue[slot.index - 1];
            suspend = match first.kind {
                QueuedKind::Erase => self.scheduling.erase_suspend,
                _ => self.scheduling.program_suspend,
            }
            .expect("only operations that can be suspended are");
            first.length -= left;
            let rest = QueuedOp {
                // What is left of a copy is a program.
                kind: if first.kind == QueuedKind::Copy { QueuedKind::Program } else { first.kind },
                ready: SimTime::ZERO,
                length: left + self.scheduling.resume,
                suspends: first.suspends + 1,
                reads: 0,
                ..*first
            };
            die.queue.insert(slot.index, rest);
        }
        let mut latency = from.latency;
        latency.queue += begin.since(from.at) + suspend;
        latency.read += read;
        latency.flash_bus += command;
        let sensed = Milestone { at: begin + command + suspend + read, latency };
        let end = self.transfer_out(op, sensed);
        let host_read = QueuedOp {
            kind: QueuedKind::HostRead,
            ready: begin,
            length: end.at.since(begin),
            cause: op.cause,
            suspends: 0,
            reads: 0,
            planes: 0,
            offset: 0,
            slc: false,
            request: self.request_number,
            program: SimDuration::ZERO,
        };
        let die = &mut self.dies[usize::from(op.die.0)];
        die.queue.insert(slot.index, host_read);
        if let Some(next) = die.queue.get_mut(slot.index + 1)
            && next.ready < end.at
        {
            next.reads += 1;
        }
        die.read_until = end.at;
        // Programs that would have ended while the read's command waits for the channel, too.
        self.postpone(op.die, slot.index, slot.begin);
        if self.chip.reads_several() {
            let (request, page) = (self.request_number, self.chip.page_read(op.page));
            let index = slot.index;
            self.sensed = Some(Sensed { request, page, die: op.die, index, at: sensed });
        }
        end
    }

    fn schedule_copy(&mut self, op: &FlashOp, from: Milestone) -> Milestone {
        let OperationTimes { command, data_command, page_transfer, .. } = self.times;
        let usual = self.slow.cells(op, &self.times);
        let program = usual.program;
        let copy_back = self.times.copy_back_time(op, &self.geometry);
        if copy_back.is_none()
            && let Some((read, program)) = split_copy(op)
        {
            let read_done = self.schedule(&read, from);
            return self.schedule(&program, read_done);
        }
        let read = self.background_read_time(op, op.from);
        let joined = self.join_program(op).is_some();
        let program = if joined { SimDuration::ZERO } else { program };
        let length = match copy_back {
            // What is read and programmed with other pages takes no time of its own.
            Some(time) => {
                let (time, usual) = (self.slow.of(op.die, time), usual.read + usual.program);
                (time + read + program).saturating_sub(usual) + command * 2
            }
            None => {
                let transfer = command * 2 + data_command + page_transfer * 2;
                read + self.reserve_channel(op, from, read, transfer) + transfer + program
            }
        };
        let copied = self.enqueue(op, from, QueuedKind::Copy, length, from.at);
        if let Some(copy) = self.dies[usize::from(op.die.0)].queue.back_mut() {
            copy.program = program.min(length);
        }
        if !joined {
            self.open_program(op, copied.at);
        }
        copied
    }

    /// Reserves the channel for an operation at the end of its die's queue, `before` after it
    /// begins. Returns how long it waits for the channel.
    fn reserve_channel(
        &mut self,
        op: &FlashOp,
        from: Milestone,
        before: SimDuration,
        transfer: SimDuration,
    ) -> SimDuration {
        let sensed = self.dies[usize::from(op.die.0)].free.max(from.at) + before;
        self.interconnect.reserve(op, sensed, transfer).since(sensed)
    }

    /// Appends an operation to its die's queue, or merges it into a multi-plane operation.
    fn enqueue(
        &mut self,
        op: &FlashOp,
        from: Milestone,
        kind: QueuedKind,
        length: SimDuration,
        ready: SimTime,
    ) -> Milestone {
        let block = match op.kind {
            OpKind::Erase => BlockId(op.page),
            _ => self.geometry.block_of(Ppn(op.page)),
        };
        let plane = self.geometry.plane_of(block).0 / self.geometry.dies();
        let is_program = kind == QueuedKind::Program;
        let queued = QueuedOp {
            kind,
            ready,
            length,
            cause: op.cause,
            suspends: 0,
            reads: 0,
            planes: 1 << (plane % 64),
            offset: if is_program { self.geometry.offset_of(Ppn(op.page)) } else { 0 },
            slc: op.slc.target(),
            request: self.request_number,
            program: SimDuration::ZERO,
        };
        let die = &mut self.dies[usize::from(op.die.0)];
        let before = die.free;
        if !(self.scheduling.multi_plane && die.merge(&queued, self.now)) {
            die.queue.push_back(queued);
            die.free = die.free.max(ready) + length;
        }
        let at = die.free;
        let mut latency = from.latency;
        let waited = (at - length).since(from.at);
        if queued.is_background() {
            latency.gc += at.since(from.at);
        } else {
            let sent = ready.since(from.at).min(waited);
            let gc_max = before.min(at - length).since(ready).min(waited - sent);
            let gc = die.background_time(gc_max);
            latency.gc += gc;
            latency.flash_bus += sent;
            latency.queue += waited - sent - gc;
            match kind {
                QueuedKind::Erase => latency.erase += length,
                _ => latency.program += length,
            }
        }
        Milestone { at, latency }
    }
}

impl TimingModel for Queued {
    fn busy(&mut self, now: SimTime, everything: bool) -> Option<&mut BusyIntervals> {
        // Not beyond the time to which a saved state advances the dies.
        let until = now.min(self.now);
        let busy = &mut self.interconnect.busy;
        for (number, die) in (0..).map(DieId).zip(&mut self.dies) {
            die.advance(until, number, busy);
            if everything {
                die.record_rest(number, busy);
            }
        }
        Some(busy)
    }

    fn slowdowns(&mut self) -> Option<(&Geometry, &mut DieSlowdowns)> {
        Some((&self.geometry, &mut self.slow))
    }

    fn save(&self, to: &mut Saver) {
        // As if each die had just been in use: a report of busy intervals leaves no trace.
        let mut dies = self.dies.clone();
        for die in &mut dies {
            die.advance(self.now, DieId(0), &mut BusyIntervals::default());
        }
        to.put(&(dies, self.requests));
        self.slow.save(to);
        self.interconnect.save(to);
        self.buffer.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        restore::table(from, "the list of dies", &mut self.dies)?;
        self.requests = from.take()?;
        self.slow.restore(self.geometry.dies(), from)?;
        self.interconnect.restore(from)?;
        self.buffer.restore(from)
    }

    fn begin(&mut self, now: SimTime, op: Op, bytes: u64) {
        self.now = now;
        self.number_request();
        self.request.begin(&mut self.interconnect, &self.times, now, (op, bytes));
        if op == Op::Flush {
            let received = &mut self.request.received;
            let (end, programs) = self.buffer.flush(received.at);
            for (die, until) in programs {
                self.dies[usize::from(die.0)].commit_until(until);
            }
            received.latency.program = end.since(received.at);
            received.at = end;
        }
    }

    fn begin_background(&mut self, now: SimTime) {
        self.now = now;
        self.interconnect.advance(now);
        self.number_request();
        self.request = RequestSchedule::background(now);
    }

    fn work(&mut self, time: SimDuration, phase: LatencyPhase) {
        self.request.work(time, phase);
    }

    fn page(&mut self, ops: &[FlashOp], bytes: u64, _bytes_behind: u64) {
        let writes = self.request.op == Op::Write && !ops.is_empty();
        if writes && self.buffer.exists() && self.must_wait() {
            self.waiting.push_page(ops, bytes);
            self.is_waiting = true;
            return;
        }
        self.schedule_page(ops, bytes);
    }

    #[inline]
    fn end(&mut self) -> Scheduled {
        if std::mem::take(&mut self.is_waiting) {
            return self.end_waiting();
        }
        Scheduled::Completes(self.request.end())
    }

    fn programmed(&mut self, now: SimTime, number: u64) -> Option<Scheduled> {
        let dies = &self.dies;
        self.unbuffered.programmed(now, number, |die| dies[usize::from(die.0)].end_of(number))
    }

    fn admit_waiting(&mut self, now: SimTime) -> Option<Scheduled> {
        let mut write = self.waiting.pop_write()?;
        self.now = now;
        self.interconnect.advance(now);
        (self.request, self.request_number) = (write.schedule, write.number);
        // Operations may have left the die's queue since then, so the place in it is not known.
        self.sensed = None;
        let since = self.request.received.at;
        while write.pages > 0 {
            if let Some(until) = self.buffer.wait_for_entry(since.max(now), since) {
                self.waiting.until = until;
                self.waiting.put_back(WaitingWrite { schedule: self.request, ..write });
                return Some(Scheduled::Waits(until));
            }
            let mut ops = std::mem::take(&mut self.admitted);
            let bytes = self.waiting.pop_page(&mut ops);
            self.schedule_page(&ops, bytes);
            self.admitted = ops;
            write.pages -= 1;
        }
        Some(Scheduled::Completes(self.request.end()))
    }

    fn drop_current(&mut self) {
        self.waiting.drop_current();
        self.unbuffered.drop_current();
        self.is_waiting = false;
    }

    fn drop_waiting(&mut self) {
        self.waiting.clear();
        self.unbuffered.clear();
        // An erase that is dropped would have ended the programs of its block.
        self.dies.iter_mut().for_each(|die| die.open_programs.clear());
    }
}
