//! Channels and dies in parallel, each die with one operation at a time in submission order.
//!
//! A channel transfers commands and data. A read takes a command slot, leaves the channel free
//! while the cells are read, and takes a data slot; a program takes one slot for command and data,
//! then the cells are programmed (flashsim, figure 4 and algorithm 1). A die has one page register:
//! it is busy until the data of a read have left, and accepts the next data only when it is free.
//!
//! Where the chip's page holds several pages of the map, it is read once for the reads of a
//! request, and once for copies, that follow each other on its die.

use super::request::RequestSchedule;
use super::{
    BusyIntervals, CellTimes, DieSlowdowns, Interconnect, Latency, Milestone, OperationTimes,
    PARALLEL, Scheduled, TIMES, TimingEntry, TimingModel, serves_request, split_copy,
};
use crate::event::Cause;
use crate::geometry::{BlockId, Geometry, Ppn};
use crate::ops::{After, FlashOp, OpKind};
use crate::restore;
use hybridsim_config::registry::Description;
use hybridsim_engine::{LatencyPhase, Loader, Op, Saver, SimDuration, SimTime, StateError};
use serde::{Deserialize, Serialize};
use std::mem;

pub const ENTRY: TimingEntry = TimingEntry {
    description: Description {
        name: "interleaved",
        summary: "Channels and dies in parallel, operations of a die in order.",
        origin: "flashsim, section 3.3 and algorithm 1",
        params: Parameters::PARAMS,
    },
    provides: &[TIMES, PARALLEL],
    build: |input| {
        let schedule_slots = Parameters::from_settings(input.settings).schedule_slots;
        let times = OperationTimes { schedule_slots, ..input.times };
        Ok(Box::new(Interleaved::new(*input.geometry, times)))
    },
};

hybridsim_config::params! {
    /// Schedule tables.
    struct Parameters {
        schedule_slots: Option<usize> = super::SLOTS, optional,
            "Entries of each bus's schedule table; when it is full, transfers queue behind the \
             last, which costs throughput. Without it a table has as many as it needs.";
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Die {
    free: SimTime,
    /// The last uninterrupted period of garbage collection on the die.
    gc_from: SimTime,
    gc_until: SimTime,
    /// The chip's page that was read last for a request, by its number, and the request.
    #[serde(skip)]
    sensed: Option<(u64, u32)>,
    /// The chip's page that was read last for a copy, or by other background work.
    copied: Option<u32>,
}

/// Schedule of an operation on its die.
struct Execution {
    begin: SimTime,
    at: SimTime,
    /// Waiting for the channel in between.
    waited: SimDuration,
}

pub struct Interleaved {
    geometry: Geometry,
    pub(super) times: OperationTimes,
    dies: Vec<Die>,
    slow: DieSlowdowns,
    interconnect: Interconnect,
    pub(super) request: RequestSchedule,
    /// Whether no two dies are in use at a time, so that one of them reads for all.
    pub(super) one_at_a_time: bool,
    /// Requests so far, background work included.
    requests: u64,
    /// Ends of the operations of the current page, for operations that depend on them.
    op_ends: Vec<Milestone>,
}

impl Interleaved {
    pub fn new(geometry: Geometry, times: OperationTimes) -> Self {
        Self {
            geometry,
            times,
            dies: vec![Die::default(); geometry.dies() as usize],
            slow: DieSlowdowns::default(),
            interconnect: Interconnect::new(geometry, &times),
            request: RequestSchedule::new(),
            one_at_a_time: false,
            requests: 0,
            op_ends: Vec::with_capacity(1024),
        }
    }

    #[inline]
    fn schedule_independent(&mut self, op: &FlashOp, ready: &Milestone, result: &mut Milestone) {
        if !serves_request(op.cause) {
            // Most operations are of this kind, and no request needs their latency breakdown.
            if op.from_die == op.die {
                let cells = self.cells(op);
                let copy_back = self.copy_back_time(op, &cells);
                let Execution { begin, at, .. } = self.execute(op, ready.at, (copy_back, &cells));
                self.occupy_for_gc(op, begin, at);
                self.interconnect.busy.die(op, begin, at);
                self.request.idle_from = self.request.idle_from.max(at);
                return;
            }
        }
        // Until the first of the host's operations has ended, the result is `ready`.
        if op.cause == Cause::Host && result.at == ready.at {
            *result = *ready;
            self.schedule(op, result);
            self.request.idle_from = self.request.idle_from.max(result.at);
            return;
        }
        let mut end = *ready;
        self.schedule(op, &mut end);
        self.request.idle_from = self.request.idle_from.max(end.at);
        if op.cause == Cause::Host && end.at >= result.at {
            *result = end;
        }
    }

    fn schedule_dependent(&mut self, ops: &[FlashOp], ready: Milestone) -> Milestone {
        let mut result = ready;
        self.op_ends.clear();
        for op in ops {
            let mut end = op.after.index().map_or(ready, |index| self.op_ends[index]);
            self.schedule(op, &mut end);
            self.request.idle_from = self.request.idle_from.max(end.at);
            if op.cause == Cause::Host && end.at >= result.at {
                result = end;
            }
            self.op_ends.push(end);
        }
        result
    }

    #[inline]
    fn occupy_for_gc(&mut self, op: &FlashOp, begin: SimTime, at: SimTime) {
        let die = &mut self.dies[op.die.0 as usize];
        if die.gc_until < begin {
            die.gc_from = begin;
        }
        die.gc_until = at;
        die.free = at;
    }

    /// Arrival of the data of a page in the device, while those behind it are still transferred.
    #[inline]
    fn page_received(&self, bytes_behind: u64) -> Milestone {
        let mut ready = self.request.received;
        if bytes_behind == 0 || self.request.op != Op::Write {
            return ready;
        }
        let later = SimDuration::transfer(bytes_behind, self.times.host_write_rate);
        let later = SimDuration::from_ns(later.as_ns().min(ready.latency.bus.as_ns()));
        ready.latency.bus -= later;
        ready.at = self.request.data_from + ready.latency.bus;
        ready
    }

    /// The times of the cells of `op`, which is scheduled now: a page that the chip has just read
    /// with another takes none.
    #[inline]
    fn cells(&mut self, op: &FlashOp) -> CellTimes {
        let cells = self.slow.cells(op, &self.times);
        if self.geometry.read_pages() > 1 && self.is_read_with_another(op) {
            return CellTimes { read: SimDuration::ZERO, ..cells };
        }
        cells
    }

    /// Notes which of the chip's pages `op` reads. Returns whether the operation before read it.
    #[inline(never)]
    fn is_read_with_another(&mut self, op: &FlashOp) -> bool {
        let Self { geometry, one_at_a_time, .. } = *self;
        let chip_page = |page: u32| page / geometry.read_pages();
        let die = &mut self.dies[if one_at_a_time { 0 } else { usize::from(op.die.0) }];
        let page = chip_page(if op.kind == OpKind::Copy { op.from } else { op.page });
        let is_read = match op.kind {
            OpKind::Read | OpKind::Copy if serves_request(op.cause) => {
                let read = Some((self.requests, page));
                mem::replace(&mut die.sensed, read) == read
            }
            OpKind::Read | OpKind::Copy => die.copied.replace(page) == Some(page),
            OpKind::Program => false,
            OpKind::Erase => {
                let block = |page: u32| geometry.block_of(Ppn(page * geometry.read_pages()));
                let stays = |page: u32| one_at_a_time && block(page) != BlockId(op.page);
                die.sensed = die.sensed.filter(|(_, page)| stays(*page));
                die.copied = die.copied.filter(|page| stays(*page));
                return false;
            }
        };
        if op.kind != OpKind::Read {
            // What was read of that page is without what is programmed there.
            let programmed = chip_page(op.page);
            die.sensed = die.sensed.filter(|(_, page)| *page != programmed);
            die.copied = die.copied.filter(|page| *page != programmed);
        }
        is_read
    }

    /// The time of `op`, which one die executes, if it is a copy without the channel.
    #[inline(always)]
    fn copy_back_time(&self, op: &FlashOp, cells: &CellTimes) -> Option<SimDuration> {
        if op.kind != OpKind::Copy {
            return None;
        }
        let time = self.times.copy_back_time_in_die(op, &self.geometry)?;
        let time = self.slow.of(op.die, time) + self.slow.retries(op, &self.times);
        if self.geometry.read_pages() == 1 {
            return Some(time);
        }
        // A page that was read with another takes no time again.
        Some((time + cells.read).saturating_sub(self.slow.cells(op, &self.times).read))
    }

    /// Time at which the page that `op` reads is in the register: `usual`, without retries.
    #[inline]
    fn sensed(&self, op: &FlashOp, usual: SimTime) -> SimTime {
        // A test of its own: reads without retries are many.
        if op.retries > 0 { usual + self.slow.retries(op, &self.times) } else { usual }
    }

    /// Reserves `channel`, that of `op`, for `length` from `earliest` on, or later. Returns the
    /// start.
    #[inline(always)]
    fn reserve(
        &mut self,
        channel: u32,
        op: &FlashOp,
        earliest: SimTime,
        length: SimDuration,
    ) -> SimTime {
        // No other operation can have the channel.
        if self.one_at_a_time {
            self.interconnect.busy.channel(channel, op, earliest, length);
            return earliest;
        }
        self.interconnect.reserve_channel(channel, op, earliest, length)
    }

    /// Reserves the time of `op`, which one die executes, at `earliest` or later.
    // Always inlined: most operations are copies within the chip, for which little of it is left.
    #[inline(always)]
    fn execute(
        &mut self,
        op: &FlashOp,
        earliest: SimTime,
        (copy_back, cells): (Option<SimDuration>, &CellTimes),
    ) -> Execution {
        let free = earliest.max(self.dies[op.die.0 as usize].free);
        let OperationTimes { command, data_command, page_transfer, .. } = self.times;
        let CellTimes { read, program, erase } = *cells;
        if let Some(time) = copy_back {
            let at = free + time + command * 2;
            return Execution { begin: free, at, waited: SimDuration::ZERO };
        }
        let mut waited = SimDuration::ZERO;
        let channel = self.interconnect.advance_channel(op.die);
        let (begin, at) = match op.kind {
            OpKind::Read => {
                let begin = self.reserve(channel, op, free, command);
                let sensed = self.sensed(op, begin + command + read);
                let transfer = data_command + self.times.read_transfer(op);
                let out = self.reserve(channel, op, sensed, transfer);
                waited = out.since(sensed);
                (begin, out + transfer)
            }
            OpKind::Program => {
                let begin = self.reserve(channel, op, free, command + page_transfer);
                (begin, begin + command + page_transfer + program)
            }
            OpKind::Erase => {
                let begin = self.reserve(channel, op, free, command);
                (begin, begin + command + erase)
            }
            OpKind::Copy => {
                // One slot for both transfers: the page register is not free in between.
                let transfer = data_command + page_transfer + command + page_transfer;
                let begin = self.reserve(channel, op, free, command);
                let sensed = self.sensed(op, begin + command + read);
                let out = self.reserve(channel, op, sensed, transfer);
                waited = out.since(sensed);
                (begin, out + transfer + program)
            }
        };
        Execution { begin, at, waited }
    }

    /// Schedules `op`, which can begin at `ready`; afterwards `ready` is its end.
    #[inline]
    pub(super) fn schedule(&mut self, op: &FlashOp, ready: &mut Milestone) {
        if op.kind == OpKind::Copy
            && let Some((read, program)) = split_copy(op)
        {
            self.schedule_in_die(&read, ready);
            return self.schedule_in_die(&program, ready);
        }
        self.schedule_in_die(op, ready);
    }

    /// As [`Interleaved::schedule`], of an operation that one die executes.
    #[inline]
    fn schedule_in_die(&mut self, op: &FlashOp, ready: &mut Milestone) {
        let cells = self.cells(op);
        let copy_back = self.copy_back_time(op, &cells);
        let executed = self.execute(op, ready.at, (copy_back, &cells));
        let Execution { begin, at, .. } = executed;
        if serves_request(op.cause) {
            let die = &self.dies[op.die.0 as usize];
            let gc = die.gc_until.min(begin).since(die.gc_from.max(ready.at));
            ready.latency.gc += gc;
            ready.latency.queue += begin.since(ready.at) - gc;
            self.add_phases(op, &mut ready.latency, executed.waited, (copy_back, &cells));
            self.dies[op.die.0 as usize].free = at;
        } else {
            ready.latency.gc += at.since(ready.at);
            self.occupy_for_gc(op, begin, at);
        }
        self.interconnect.busy.die(op, begin, at);
        ready.at = at;
    }

    /// Adds what `op` spends between its begin and its end, of which it `waited` for the channel.
    #[inline(always)]
    fn add_phases(
        &self,
        op: &FlashOp,
        latency: &mut Latency,
        waited: SimDuration,
        (copy_back, cells): (Option<SimDuration>, &CellTimes),
    ) {
        let OperationTimes { command, data_command, page_transfer, .. } = self.times;
        let CellTimes { read, program, erase } = *cells;
        latency.queue += waited;
        if op.retries > 0 && copy_back.is_none() {
            latency.read += self.slow.retries(op, &self.times);
        }
        match op.kind {
            OpKind::Read => {
                latency.read += read;
                latency.flash_bus += command + data_command + self.times.read_transfer(op);
            }
            OpKind::Program => {
                latency.program += program;
                latency.flash_bus += command + page_transfer;
            }
            OpKind::Erase => {
                latency.erase += erase;
                latency.flash_bus += command;
            }
            OpKind::Copy => match copy_back {
                Some(time) => {
                    latency.program += time;
                    latency.flash_bus += command * 2;
                }
                None => {
                    latency.read += read;
                    latency.program += program;
                    latency.flash_bus += command * 2 + data_command + page_transfer * 2;
                }
            },
        }
    }
}

impl TimingModel for Interleaved {
    fn busy(&mut self, _now: SimTime, _everything: bool) -> Option<&mut BusyIntervals> {
        Some(&mut self.interconnect.busy)
    }

    fn slowdowns(&mut self) -> Option<(&Geometry, &mut DieSlowdowns)> {
        Some((&self.geometry, &mut self.slow))
    }

    fn save(&self, to: &mut Saver) {
        to.put(&self.dies);
        self.slow.save(to);
        self.interconnect.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        restore::table(from, "the list of dies", &mut self.dies)?;
        self.slow.restore(self.geometry.dies(), from)?;
        self.interconnect.restore(from)
    }

    #[inline]
    fn begin(&mut self, now: SimTime, op: Op, bytes: u64) {
        self.requests += 1;
        self.request.begin(&mut self.interconnect, &self.times, now, (op, bytes));
    }

    fn begin_background(&mut self, now: SimTime) {
        self.requests += 1;
        self.interconnect.advance(now);
        self.request = RequestSchedule::background(now);
    }

    fn work(&mut self, time: SimDuration, phase: LatencyPhase) {
        self.request.work(time, phase);
    }

    #[inline]
    fn page(&mut self, ops: &[FlashOp], bytes: u64, bytes_behind: u64) {
        let mut ready = self.page_received(bytes_behind);
        let ram = (!ops.is_empty()).then_some(self.times.ram);
        // Data pass through the controller's RAM on their way in (flashsim, section 3.2).
        if let Some(ram) = ram.filter(|_| self.request.op == Op::Write) {
            ready.pass_ram(ram);
        }
        let mut result = ready;
        if ops.iter().any(|op| op.after != After::NOTHING) {
            result = self.schedule_dependent(ops, ready);
        } else {
            for op in ops {
                self.schedule_independent(op, &ready, &mut result);
            }
        }
        self.request.end_page(&mut self.interconnect, result, ram, bytes);
    }

    #[inline]
    fn end(&mut self) -> Scheduled {
        Scheduled::Completes(self.request.end())
    }
}
