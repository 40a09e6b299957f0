//! A queue per die, as in current controllers.
//!
//! Each die has a queue of programs, copies and erases. Host reads have priority: they execute
//! before operations that have not begun, and suspend a program or an erase where the chip allows
//! it, a program perhaps only at certain points and for so many reads ([`SuspendPoints`]).
//! Programs on several planes of a die run as one multi-plane program. A write completes when
//! its data are in the write buffer, or without one when they are programmed.
//!
//! Once a completion time has been reported to the host, no operation is inserted before it
//! ([`Die::committed_until`]), so each request still costs one event. A write that finds the write
//! buffer full waits in its queue ([`WaitingWrites`]): its operations are scheduled, and its
//! completion time is known, when it gets an entry, so reads may delay the programs it waits for.

use super::chip::{ChipPages, OpenProgram};
use super::request::RequestSchedule;
use super::waiting::{WaitingWrite, WaitingWrites};
use super::{
    BusyIntervals, CellTimes, DieSlowdowns, Interconnect, Milestone, OperationTimes, Scheduled,
    WriteBuffer, serves_request, split_copy,
};
use crate::event::Cause;
use crate::event::FlashAct;
use crate::event::FlashUnit;
use crate::geometry::{BlockId, DieId, Geometry, Ppn};
use crate::ops::{FlashOp, OpKind};
use crate::restore;
use hybridsim_engine::{Loader, Op, Saver, SimDuration, SimTime, StateError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Suspension and multi-plane operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieScheduling {
    /// Time to suspend a program; `None` if programs cannot be suspended.
    pub program_suspend: Option<SimDuration>,
    /// Where programs can be suspended; `None` for anywhere.
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
struct QueuedOp {
    kind: QueuedKind,
    /// Earliest start.
    ready: SimTime,
    length: SimDuration,
    cause: Cause,
    suspends: u32,
    /// Host reads that it has been delayed by since it was queued or suspended.
    reads: u32,
    /// Bit mask of its planes, and page offset in the block: both decide about multi-plane.
    planes: u64,
    offset: u32,
    /// Whether it programs or erases in SLC mode: a multi-plane operation has one mode.
    slc: bool,
    /// Number of the request it belongs to.
    request: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum QueuedKind {
    HostRead,
    Program,
    Erase,
    Copy,
    /// A read of garbage collection or wear levelling: no priority.
    BackgroundRead,
}

impl QueuedOp {
    #[inline]
    const fn is_background(&self) -> bool {
        !serves_request(self.cause)
    }

    /// Whether it is a program that no further host read may precede at `time`.
    #[inline]
    fn precedes_reads(&self, time: SimTime, scheduling: &DieScheduling) -> bool {
        let Some(points) = scheduling.program_points else { return false };
        self.kind == QueuedKind::Program && self.ready <= time && self.reads >= points.reads_max
    }

    /// When it can be suspended, if it runs from `start` and a read arrives at `time`, not before.
    #[inline]
    fn suspension(&self, start: SimTime, time: SimTime, scheduling: &DieScheduling) -> SimTime {
        let points = scheduling.program_points.filter(|_| self.kind == QueuedKind::Program);
        let Some(SuspendPoints { interval, .. }) = points else { return time };
        let resumed = if self.suspends > 0 { start + scheduling.resume } else { start };
        let intervals = time.since(resumed.min(time)).as_ns().div_ceil(interval.as_ns()).max(1);
        resumed + interval * intervals
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
struct Die {
    /// In order; the first may be under way.
    queue: VecDeque<QueuedOp>,
    /// End of the last operation that has left `queue`.
    at: SimTime,
    /// End of the last operation in `queue`.
    free: SimTime,
    /// End of the last host read; host reads execute one after the other.
    read_until: SimTime,
    /// No operation may be inserted before this time.
    committed_until: SimTime,
    /// Programs that take further pages.
    open_programs: Vec<OpenProgram>,
    /// The chip's page that the last copy or background read has read, by its number.
    copied: Option<u32>,
}

/// The chip's page that the last host read has read.
struct Sensed {
    request: u64,
    /// Its number.
    page: u32,
    die: DieId,
    /// Position of the read in the queue of the die.
    index: usize,
    at: Milestone,
}

/// Where a host read is inserted.
struct ReadSlot {
    /// Position in the queue.
    index: usize,
    begin: SimTime,
    /// Remaining time of the operation at `index - 1`, which is suspended for the read.
    suspended: Option<SimDuration>,
}

impl Die {
    /// Removes operations that ended before `now`: no read can precede them any more.
    fn advance(&mut self, now: SimTime, number: DieId, busy: &mut BusyIntervals) {
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

    fn commit_until(&mut self, time: SimTime) {
        self.committed_until = self.committed_until.max(time);
    }

    fn update_free(&mut self) {
        let end = |at: SimTime, op: &QueuedOp| at.max(op.ready) + op.length;
        self.free = self.queue.iter().fold(self.at, end);
    }

    /// How long the background operations in the queue take, or `most` if that is less.
    #[inline]
    fn background_time(&self, most: SimDuration) -> SimDuration {
        if most.is_zero() {
            return most;
        }
        let add = |time: SimDuration, op: &QueuedOp| {
            if op.is_background() { time + op.length } else { time }
        };
        self.queue.iter().fold(SimDuration::ZERO, add).min(most)
    }

    /// The first slot from `earliest` on for a host read.
    fn read_slot(&self, earliest: SimTime, scheduling: &DieScheduling) -> ReadSlot {
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
                    QueuedKind::Program => scheduling.program_suspend,
                    QueuedKind::Erase => scheduling.erase_suspend,
                    QueuedKind::HostRead | QueuedKind::Copy | QueuedKind::BackgroundRead => None,
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
            now: SimTime::ZERO,
            requests: 0,
            request: RequestSchedule::new(),
            request_number: 0,
            op_ends: Vec::with_capacity(1024),
            admitted: Vec::new(),
        }
    }

    pub(super) fn busy(&mut self) -> &mut BusyIntervals {
        &mut self.interconnect.busy
    }

    /// Busy intervals, with those of dies until `now`, or until all operations have ended.
    pub(super) fn busy_until(&mut self, now: SimTime, everything: bool) -> &mut BusyIntervals {
        let until = if everything { SimTime::from_ns(u64::MAX) } else { now };
        for (number, die) in (0..).zip(&mut self.dies) {
            die.advance(until, DieId(number), &mut self.interconnect.busy);
        }
        self.busy()
    }

    pub(super) fn slowdowns(&mut self) -> (&Geometry, &mut DieSlowdowns) {
        (&self.geometry, &mut self.slow)
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&(&self.dies, self.requests));
        self.slow.save(to);
        self.interconnect.save(to);
        self.buffer.save(to);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        restore::table(from, "the list of dies", &mut self.dies)?;
        self.requests = from.take()?;
        self.slow.restore(self.geometry.dies(), from)?;
        self.interconnect.restore(from)?;
        self.buffer.restore(from)
    }

    pub(super) fn begin(&mut self, now: SimTime, op: Op, bytes: u64) {
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

    pub(super) fn begin_background(&mut self, now: SimTime) {
        self.now = now;
        self.interconnect.advance(now);
        self.number_request();
        self.request = RequestSchedule::background(now);
    }

    #[inline]
    fn number_request(&mut self) {
        self.requests += 1;
        self.request_number = self.requests;
    }

    pub(super) fn work(&mut self, time: SimDuration) {
        self.request.work(time);
    }

    pub(super) fn delay(&mut self, time: SimDuration) {
        self.request.delay(time);
    }

    pub(super) fn page(&mut self, ops: &[FlashOp], bytes: u64) {
        let writes = self.request.op == Op::Write && !ops.is_empty();
        if writes && self.buffer.exists() && self.must_wait() {
            self.waiting.push_page(ops, bytes);
            return;
        }
        self.schedule_page(ops, bytes);
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
            ready = ready.through_ram(self.times.ram);
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
            Some((die, until)) => self.dies[usize::from(die.0)].commit_until(until),
            None => {}
        }
        self.request.end_page(&mut self.interconnect, result, ram, bytes);
    }

    #[inline]
    pub(super) fn end(&mut self) -> Scheduled {
        if self.waiting.end_current(&self.request, self.request_number) {
            return Scheduled::Waits(self.waiting.until);
        }
        Scheduled::Completes(self.request.end())
    }

    pub(super) fn admit_waiting(&mut self, now: SimTime) -> Option<Scheduled> {
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

    pub(super) fn drop_current(&mut self) {
        self.waiting.drop_current();
    }

    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
        // An erase that is dropped would have ended the programs of its block.
        self.dies.iter_mut().for_each(|die| die.open_programs.clear());
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

    /// How long the cells of `page` are read, which `op` reads.
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
        let length = self.times.data_command + self.times.page_transfer;
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
            && let Some((read, program)) = split_copy(op, &self.geometry)
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

impl Die {
    /// Merges `op` into the last operation of the queue if that has not begun, does the same on
    /// other planes in the same mode for the same request, and its end has not been committed.
    fn merge(&mut self, op: &QueuedOp, now: SimTime) -> bool {
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
        last.ready = last.ready.max(op.ready);
        self.update_free();
        true
    }
}
