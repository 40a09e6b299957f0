//! One operation at a time: the timing of older papers.
//!
//! A request takes its overhead and the sum of its operations: n pages are read in `overhead + n *
//! read` (konanki, table 4.1).
//!
//! A chip whose page holds several pages of the map reads all of them at once: of copies that
//! follow each other, and of reads of one request, only the first of each chip page takes the read
//! time. A program into that page, or an erase of its block, ends that.

use super::{
    BusyIntervals, CellTimes, ChipPages, DieSlowdowns, Latency, OperationTimes, Scheduled, Timed,
    TimingEntry, TimingModel, serves_request, split_copy,
};
use crate::geometry::{BlockId, Geometry, Ppn};
use crate::ops::{FlashOp, OpKind};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Op, Saver, SimDuration, SimTime, StateError};

pub const ENTRY: TimingEntry = TimingEntry {
    description: Description {
        name: "serial",
        summary: "One operation at a time, as in older papers.",
        origin: "konanki, table 4.1",
        params: &[],
    },
    build: |input| {
        let chip = ChipPages::new(input.times.read, 1, 0.0, input.geometry.read_pages());
        let serial = Serial::new(*input.geometry, input.times, chip);
        Ok(Box::new(serial))
    },
};

pub struct Serial {
    geometry: Geometry,
    times: OperationTimes,
    free: SimTime,
    latency: Latency,
    moves_data: bool,
    busy: BusyIntervals,
    slow: DieSlowdowns,
    chip: ChipPages,
    /// The page of the chip that the request has read last.
    sensed: Option<u32>,
    /// The page of the chip that was read last for a copy, or by other background work.
    copied: Option<u32>,
}

impl Serial {
    pub fn new(geometry: Geometry, times: OperationTimes, chip: ChipPages) -> Self {
        Self {
            geometry,
            times,
            chip,
            sensed: None,
            copied: None,
            free: SimTime::ZERO,
            latency: Latency::default(),
            moves_data: false,
            busy: BusyIntervals::default(),
            slow: DieSlowdowns::default(),
        }
    }

    /// How long the cells are read for `page`, which `op` reads: not at all if it is in the page of
    /// the chip that was read before.
    #[inline]
    fn read_time(&mut self, op: &FlashOp, page: u32) -> SimDuration {
        let CellTimes { read, .. } = self.slow.cells(op, &self.times);
        let retries = self.slow.retries(op, &self.times);
        if !self.chip.reads_several() {
            return read + retries;
        }
        let last = if serves_request(op.cause) { &mut self.sensed } else { &mut self.copied };
        let number = self.chip.page_read(page);
        if last.replace(number) == Some(number) { retries } else { read + retries }
    }

    /// What was read of the page of the chip that holds `page` is without what is programmed there.
    #[inline]
    fn forget_page(&mut self, page: u32) {
        if !self.chip.reads_several() {
            return;
        }
        let number = self.chip.page_read(page);
        self.sensed = self.sensed.filter(|read| *read != number);
        self.copied = self.copied.filter(|read| *read != number);
    }

    /// What was read of `block` is no longer what its pages hold.
    fn forget_block(&mut self, block: BlockId) {
        if !self.chip.reads_several() {
            return;
        }
        let (chip, geometry) = (self.chip, self.geometry);
        let elsewhere = |page: &u32| geometry.block_of(Ppn(chip.first_read(*page))) != block;
        self.sensed = self.sensed.filter(elsewhere);
        self.copied = self.copied.filter(elsewhere);
    }

    /// Records when `op`, which reads cells for `read`, occupies its die and its channel.
    fn record(&mut self, op: &FlashOp, read: SimDuration, (begin, end): (SimTime, SimTime)) {
        let OperationTimes { command, data_command, page_transfer, .. } = self.times;
        let (sensed, out) = (begin + command + read, data_command + page_transfer);
        let channel = self.geometry.channel_of(op.die);
        match op.kind {
            OpKind::Read => {
                self.busy.channel(channel, op, begin, command);
                self.busy.channel(channel, op, sensed, out);
            }
            OpKind::Program => self.busy.channel(channel, op, begin, command + page_transfer),
            OpKind::Erase => self.busy.channel(channel, op, begin, command),
            OpKind::Copy if self.times.copy_back_time(op, &self.geometry).is_some() => {}
            OpKind::Copy => {
                if let Some((source, program)) = split_copy(op, &self.geometry) {
                    self.record(&source, read, (begin, sensed + out));
                    return self.record(&program, read, (sensed + out, end));
                }
                self.busy.channel(channel, op, begin, command);
                self.busy.channel(channel, op, sensed, out + command + page_transfer);
            }
        }
        self.busy.die(op, begin, end);
    }
}

impl TimingModel for Serial {
    fn busy(&mut self, _now: SimTime, _everything: bool) -> Option<&mut BusyIntervals> {
        Some(&mut self.busy)
    }

    fn slowdowns(&mut self) -> Option<(&Geometry, &mut DieSlowdowns)> {
        Some((&self.geometry, &mut self.slow))
    }

    fn save(&self, to: &mut Saver) {
        to.put(&(self.free, self.copied));
        self.slow.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.free, self.copied) = from.take()?;
        self.slow.restore(self.geometry.dies(), from)
    }

    fn begin(&mut self, now: SimTime, op: Op, bytes: u64) {
        self.sensed = None;
        let start = now.max(self.free);
        let overhead = self.times.overhead(op);
        self.moves_data = matches!(op, Op::Read | Op::Write);
        let rate = self.times.host_rate_of(op);
        let bus = SimDuration::transfer(bytes, rate);
        self.latency = Latency { queue: start.since(now), overhead, bus, ..Latency::default() };
        self.free = start + overhead + bus;
    }

    fn begin_background(&mut self, now: SimTime) {
        self.sensed = None;
        self.latency = Latency::default();
        self.moves_data = false;
        self.free = self.free.max(now);
    }

    fn work(&mut self, time: SimDuration) {
        self.free += time;
        self.latency.overhead += time;
    }

    fn delay(&mut self, time: SimDuration) {
        self.free += time;
        self.latency.gc += time;
    }

    fn page(&mut self, ops: &[FlashOp], _bytes: u64, _bytes_behind: u64) {
        let OperationTimes { command, data_command, page_transfer, .. } = self.times;
        const NONE: SimDuration = SimDuration::ZERO;
        if self.moves_data && !ops.is_empty() {
            self.latency.overhead += self.times.ram;
            self.free += self.times.ram;
        }
        for op in ops {
            let CellTimes { read: usual, program, erase } = self.slow.cells(op, &self.times);
            let (read, program, erase, transfer) = match op.kind {
                OpKind::Read => {
                    let read = self.read_time(op, op.page);
                    (read, NONE, NONE, command + data_command + page_transfer)
                }
                OpKind::Program => {
                    self.forget_page(op.page);
                    (NONE, program, NONE, command + page_transfer)
                }
                OpKind::Erase => {
                    self.forget_block(BlockId(op.page));
                    (NONE, NONE, erase, command)
                }
                OpKind::Copy => {
                    let read = self.read_time(op, op.from);
                    self.forget_page(op.page);
                    match self.times.copy_back_time(op, &self.geometry) {
                        // A read that the chip has done takes no time of its own.
                        Some(time) => {
                            let time = self.slow.of(op.die, time) + read;
                            (NONE, time.saturating_sub(usual), NONE, command * 2)
                        }
                        None => {
                            (read, program, NONE, command * 2 + data_command + page_transfer * 2)
                        }
                    }
                }
            };
            if serves_request(op.cause) {
                self.latency.read += read;
                self.latency.program += program;
                self.latency.erase += erase;
                self.latency.flash_bus += transfer;
            } else {
                self.latency.gc += read + program + erase + transfer;
            }
            let begin = self.free;
            self.free = self.free + read + program + erase + transfer;
            if self.busy.is_enabled() {
                self.record(op, read, (begin, self.free));
            }
        }
    }

    fn end(&mut self) -> Scheduled {
        let breakdown = self.latency.breakdown();
        Scheduled::Completes(Timed { end: self.free, breakdown, idle_from: self.free })
    }
}
