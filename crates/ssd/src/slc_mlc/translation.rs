//! The translation of kind `slc-mlc-ssd`, and its back end: it gives the operations of each request
//! their time, one after the other (chang-slc-mlc, section 5.1: no parallelism among chips), and
//! reports them.

use super::hybrid_ftl::HybridFtl;
use super::nvram::NvramBuffer;
use super::operations::{Batch, Command, Medium, MediumTimes, Operations, Statistic};
use crate::device::{BackEnd, Outcome, Recovery, SsdDevice, StatePeriod, Translation};
use hybridsim_engine::{
    CommonEvent, Ctx, LatencyBreakdown, LatencyPhase, Loader, Op, PowerState, Request, Saver,
    SimDuration, SimTime, StateError,
};
use hybridsim_flash::SavedState;
use hybridsim_flash::array::Array;
use hybridsim_flash::event::{Cause, FlashAct, FlashBusy, FlashEvent, FlashUnit};
use hybridsim_flash::ftl::FtlError;
use hybridsim_flash::geometry::BlockId;
use hybridsim_flash::timing::{Scheduled, Timed};

/// The clock of both media.
pub struct SerialBackEnd {
    /// By [`Medium`].
    pub times: [MediumTimes; 3],
    /// MLC blocks are numbered after these in events.
    pub slc_blocks: u32,
    /// Time spent reading, writing and erasing that has not been reported.
    pub active: [SimDuration; 3],
}

/// The SLC and the MLC flash, and the non-volatile memory before them.
pub struct SlcMlcTranslation {
    pub ftl: HybridFtl,
    pub nvram: Option<NvramBuffer>,
    pub back_end: SerialBackEnd,
    /// Controller overhead per request.
    pub overhead: SimDuration,
    /// Versions of the write that is executed, in verified runs.
    pub versions: Vec<u64>,
}

/// The SSD of kind `slc-mlc-ssd`.
pub type SlcMlcSsd = SsdDevice<SlcMlcTranslation>;

const STATES: [PowerState; 3] = [PowerState::Read, PowerState::Write, PowerState::Erase];

impl SlcMlcTranslation {
    fn execute(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Result<(), FtlError> {
        let Self { ftl, nvram, versions, .. } = self;
        let (first, sectors) = (request.lba.0 as u32, request.sectors);
        match request.op {
            Op::Read => {
                let into = ctx.data().versions_mut(request.data, sectors);
                match nvram {
                    Some(nvram) => nvram.read(ftl, first, sectors, into),
                    None => ftl.read(first, sectors, into),
                }
            }
            Op::Write => {
                ctx.emit(FlashEvent::HostWrite { sectors, pages: 0 });
                versions.clear();
                versions.extend_from_slice(ctx.data().versions(request.data, sectors));
                match nvram {
                    Some(nvram) => nvram.write(ftl, first, sectors, versions),
                    None => ftl.write(first, sectors, versions),
                }
            }
            Op::Trim => {
                if let Some(nvram) = nvram {
                    nvram.trim(first, sectors);
                }
                ftl.trim(first, sectors);
                Ok(())
            }
            // A write completes when it is in non-volatile memory.
            Op::Flush => Ok(()),
            Op::Zone(_) => unreachable!("the machine refuses zone commands here"),
        }
    }

    /// Executes the recorded operations, as [`SerialBackEnd::execute`].
    fn run_operations(
        &mut self,
        ctx: &mut Ctx<'_>,
        begin: SimTime,
        breakdown: &mut LatencyBreakdown,
    ) -> SimDuration {
        self.back_end.execute(ctx, &mut self.ftl.operations, begin, breakdown)
    }
}

impl SerialBackEnd {
    /// Times recorded operations, of which the first begins at `begin`, and reports them.
    /// Returns how long they take.
    fn execute(
        &mut self,
        ctx: &mut Ctx<'_>,
        operations: &mut Operations,
        begin: SimTime,
        breakdown: &mut LatencyBreakdown,
    ) -> SimDuration {
        let mut took = SimDuration::ZERO;
        for batch in operations.batches() {
            let time = self.times[batch.medium as usize].of(batch.command, batch.count);
            let phase = match batch.command {
                Command::Read => LatencyPhase::FlashRead,
                Command::Program => LatencyPhase::FlashProgram,
                Command::Erase => LatencyPhase::FlashErase,
            };
            let serves = matches!(batch.cause, Cause::Host | Cause::Partial | Cause::Mapping);
            breakdown.add(if serves { phase } else { LatencyPhase::Gc }, time);
            self.active[batch.command as usize] += time;
            if ctx.detailed_events() && !time.is_zero() {
                report_busy(ctx, batch, begin + took, time);
            }
            took += time;
            report_batch(ctx, batch, self.slc_blocks);
            if batch.command == Command::Program {
                let page = self.times[batch.medium as usize].page_sectors;
                ctx.emit(FlashEvent::SectorsProgrammed { sectors: batch.count * page });
            }
        }
        for &(statistic, value) in operations.statistics() {
            ctx.emit(statistic.event(value));
        }
        if operations.unwritten > 0 {
            ctx.emit(FlashEvent::ReadUnwritten { pages: operations.unwritten });
        }
        operations.clear();
        took
    }
}

fn report_busy(ctx: &mut Ctx<'_>, batch: &Batch, begin: SimTime, time: SimDuration) {
    let act = match batch.command {
        Command::Read => FlashAct::Read,
        Command::Program => FlashAct::Program,
        Command::Erase => FlashAct::Erase,
    };
    let (unit, end) = (FlashUnit::Die(batch.medium.die()), begin + time);
    ctx.emit(FlashBusy { unit, act, cause: batch.cause, begin, end });
}

fn report_batch(ctx: &mut Ctx<'_>, batch: &Batch, slc_blocks: u32) {
    let Batch { cause, erases, .. } = *batch;
    let die = batch.medium.die();
    let block = batch.block + if batch.medium == Medium::Slc { 0 } else { slc_blocks };
    for _ in 0..batch.count {
        ctx.emit(match batch.command {
            Command::Read => FlashEvent::Read { cause, die },
            Command::Program => FlashEvent::Program { cause, die },
            Command::Erase => FlashEvent::Erase { cause, die, block, erases },
        });
    }
}

impl BackEnd for SerialBackEnd {
    fn report_states(&mut self, ctx: &mut Ctx<'_>, period: StatePeriod) -> bool {
        if period.now < period.busy_until && !period.everything {
            return false;
        }
        let mut left = period.now.since(period.from);
        for (state, active) in STATES.into_iter().zip(&mut self.active) {
            let time = left.min(std::mem::take(active));
            if !time.is_zero() {
                ctx.emit(CommonEvent::StateTime { state, duration: time });
            }
            left = left.saturating_sub(time);
        }
        if !left.is_zero() {
            ctx.emit(CommonEvent::StateTime { state: PowerState::Idle, duration: left });
        }
        true
    }

    /// Operations under way are cut short.
    fn power_lost(&mut self, now: SimTime, _busy_until: SimTime) -> SimTime {
        now
    }
}

impl SavedState for SerialBackEnd {
    fn save(&self, to: &mut Saver) {
        to.put(&self.active);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.active = from.take()?;
        Ok(())
    }
}

impl Translation for SlcMlcTranslation {
    type BackEnd = SerialBackEnd;

    fn back_end(&mut self) -> &mut SerialBackEnd {
        &mut self.back_end
    }

    fn arrays(&self) -> [Option<&Array>; 2] {
        [Some(&self.ftl.mlc.array), self.ftl.slc.as_ref().map(|slc| &slc.log.array)]
    }

    fn serve(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        busy_until: SimTime,
    ) -> (Outcome, Result<(), FtlError>) {
        if ctx.verifying() {
            self.ftl.verify();
        }
        let now = ctx.now();
        let result = self.execute(ctx, request);
        let start = now.max(busy_until);
        let mut breakdown = LatencyBreakdown::NONE;
        breakdown.add(LatencyPhase::Queue, start.since(now));
        breakdown.add(LatencyPhase::Overhead, self.overhead);
        let begin = start + self.overhead;
        let end = begin + self.run_operations(ctx, begin, &mut breakdown);
        let timed = Timed { end, breakdown, idle_from: end };
        (Outcome::Scheduled(Scheduled::Completes(timed)), result)
    }

    fn idle_step(&mut self, ctx: &mut Ctx<'_>) -> (SimTime, Result<bool, FtlError>) {
        let now = ctx.now();
        let more = self.ftl.idle();
        (now + self.run_operations(ctx, now, &mut LatencyBreakdown::default()), more)
    }

    /// Reports the erases of each block.
    fn finish(&self, ctx: &mut Ctx<'_>) {
        let statistics = [Statistic::MlcWear, Statistic::SlcWear];
        for (statistic, array) in statistics.into_iter().zip(self.arrays()) {
            for block in 0..array.map_or(0, |array| array.geometry().blocks()) {
                let erases = array.map_or(0, |array| array.erases(BlockId(block)));
                ctx.emit(statistic.event(u64::from(erases)));
            }
        }
    }
}

impl Recovery for SlcMlcTranslation {
    fn power_lost(&mut self) -> Result<(), String> {
        self.ftl.operations.clear();
        self.ftl.rebuild()
    }

    fn recover(&mut self, ctx: &mut Ctx<'_>) -> SimDuration {
        let now = ctx.now();
        self.run_operations(ctx, now, &mut LatencyBreakdown::default())
    }

    fn restore_sector(&mut self, sector: u64, version: u64) {
        let sector = sector as u32;
        let buffered =
            self.nvram.as_mut().is_some_and(|nvram| nvram.restore_version(sector, version));
        if !buffered {
            self.ftl.restore_version(sector, version);
        }
    }
}

impl SavedState for SlcMlcTranslation {
    fn save(&self, to: &mut Saver) {
        self.ftl.save(to);
        if let Some(nvram) = &self.nvram {
            nvram.save(to);
        }
        self.back_end.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.ftl.restore(from)?;
        if let Some(nvram) = &mut self.nvram {
            nvram.restore(from)?;
        }
        self.back_end.restore(from)
    }
}
