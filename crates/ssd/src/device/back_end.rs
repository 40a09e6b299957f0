//! The back end of an SSD: flash, its clock, and what happens to operations on their way to it. A
//! translation records operations in [`FlashBackEnd::flash`]; [`FlashBackEnd::execute`] draws their
//! bit errors, passes them through the stages of the controller, schedules and reports them.

use super::energy::EnergyMeter;
use super::split::PagePart;
use super::stage::{Stage, StageInput};
use super::translation::{BackEnd, Outcome, StatePeriod};
use super::versions::is_host_read;
use hybridsim_engine::{
    CommonEvent, Contents, Ctx, Event, Injected, LatencyPhase, Loader, Op, PowerState, Request,
    SECTOR_BYTES, Saver, SimDuration, SimTime, Slowdown, StateError,
};
use hybridsim_flash::SavedState;
use hybridsim_flash::array::Array;
use hybridsim_flash::bit_errors::BitErrors;
use hybridsim_flash::event::FlashEvent;
use hybridsim_flash::geometry::{BlockId, Ppn};
use hybridsim_flash::ops::{FlashOp, FlashOps, OpKind};
use hybridsim_flash::timing::{Scheduled, TimingModel};

/// One array of NAND flash with a timing model, an error model and stages.
pub struct FlashBackEnd {
    /// Operations recorded for the present page.
    pub(crate) flash: FlashOps,
    pub(crate) timing: Box<dyn TimingModel>,
    pub(super) bit_errors: Option<Box<BitErrors>>,
    pub(super) stages: Vec<Box<dyn Stage>>,
    /// Present where the temperature is simulated.
    pub(super) meter: Option<Box<EnergyMeter>>,
    /// Controller time per block examined in search of a victim.
    pub(super) search_time: SimDuration,
    /// Time of a read of the host's memory, where part of the map is.
    pub(super) host_buffer_time: SimDuration,
    /// Whether data of the present request could not be read.
    pub(super) unreadable: bool,
    /// Versions by physical sector, in verified runs.
    pub(super) versions: Contents,
    /// Versions of the page that is read or written, in verified runs.
    pub(super) page: Vec<u64>,
}

impl FlashBackEnd {
    /// The back end of a device without flash operations so far.
    pub(super) fn new(flash: FlashOps, timing: Box<dyn TimingModel>) -> Self {
        let per_page = flash.array().geometry().sectors_per_page();
        Self {
            flash,
            timing,
            bit_errors: None,
            stages: Vec::new(),
            meter: None,
            search_time: SimDuration::ZERO,
            host_buffer_time: SimDuration::ZERO,
            unreadable: false,
            versions: Contents::default(),
            page: vec![0; per_page as usize],
        }
    }

    /// The array.
    #[inline]
    pub const fn array(&self) -> &Array {
        self.flash.array()
    }

    #[inline]
    pub(crate) fn sectors_per_page(&self) -> u32 {
        self.page.len() as u32
    }

    /// Executes and reports the recorded operations, of a page of which the request covers `bytes`;
    /// `behind` more follow.
    // Always inlined: called for every page that the host writes.
    #[inline(always)]
    pub(crate) fn execute(&mut self, ctx: &mut Ctx<'_>, bytes: u64, behind: u64) {
        if self.bit_errors.is_some() {
            self.draw_bit_errors(ctx);
        }
        self.schedule_search(ctx);
        for stage in &mut self.stages {
            let input = StageInput { operations: self.flash.list(), bytes };
            self.timing.work(stage.time(&input), LatencyPhase::Overhead);
        }
        self.timing.page(self.flash.list(), bytes, behind);
        if let Some(meter) = &mut self.meter {
            meter.add(&self.flash);
        }
        report_operations(ctx, &self.flash);
    }

    /// Executes the operations recorded for one page of `request`.
    #[inline]
    pub(crate) fn execute_part(&mut self, ctx: &mut Ctx<'_>, request: &Request, part: &PagePart) {
        let behind = u64::from(request.sectors - part.skip - part.sectors) * SECTOR_BYTES;
        self.execute(ctx, u64::from(part.sectors) * SECTOR_BYTES, behind);
    }

    /// Executes the operations that read one page of `request`. Returns whether it holds data.
    #[inline]
    pub(crate) fn execute_read(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        part: &PagePart,
    ) -> bool {
        let holds_data = self.flash.list().iter().any(|op| is_host_read(&op));
        if self.flash.array().geometry().planes_per_page() > 1 {
            self.read_planes(part);
        }
        if ctx.verifying() {
            self.move_versions(0);
            let found = self.load_host_read();
            let into = ctx.data().versions_mut(request.data.skip(part.skip), part.sectors);
            match found {
                _ if into.is_empty() => {}
                true => into.copy_from_slice(&self.page[part.range()]),
                false => into.fill(0),
            }
        }
        self.execute_part(ctx, request, part);
        holds_data
    }

    /// Has the read of `part` transfer only the chip's pages that it touches.
    #[cold]
    fn read_planes(&mut self, part: &PagePart) {
        let planes = self.flash.array().geometry().planes_per_page();
        let sectors = (self.sectors_per_page() / planes).max(1);
        let touched = (part.offset + part.sectors - 1) / sectors - part.offset / sectors + 1;
        let transfers = if touched < planes { u8::try_from(touched).unwrap_or(0) } else { 0 };
        let host = self.flash.list_mut().iter_mut().rfind(|op| is_host_read(&&**op));
        host.into_iter().for_each(|op| op.transfers = transfers);
    }

    /// Fills the page buffer with the versions of one page of the write `request`; where it is
    /// written in part, after the recorded read of the rest.
    pub(crate) fn load_write(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        part: &PagePart,
        partial: bool,
    ) {
        if !(partial && self.load_host_read()) {
            self.page.fill(0);
        }
        let versions = ctx.data().versions(request.data.skip(part.skip), part.sectors);
        self.page[part.offset as usize..][..versions.len()].copy_from_slice(versions);
    }

    /// Begins writes without simulated time, of pages of zeros. Versions move as the recorded
    /// operations do, and ages of blocks follow them.
    pub(crate) fn begin_untimed(&mut self, ctx: &Ctx<'_>) {
        self.flash.set_recording(ctx.verifying() || self.bit_errors.is_some());
        self.flash.clear();
        self.page.fill(0);
    }

    /// Follows the operations of one such write.
    pub(crate) fn follow_untimed(&mut self, ctx: &Ctx<'_>) {
        if ctx.verifying() {
            self.move_versions(0);
        }
        if let Some(model) = &mut self.bit_errors {
            model.follow_untimed(ctx.now(), self.flash.list_mut());
        }
        self.flash.clear();
    }

    /// Records operations again.
    pub(crate) fn end_untimed(&mut self) {
        self.flash.set_recording(true);
        self.flash.clear();
    }

    /// A request arrives.
    #[inline]
    pub(crate) fn begin(&mut self, ctx: &Ctx<'_>, request: &Request) {
        let moves_data = matches!(request.op, Op::Read | Op::Write);
        self.timing.begin(ctx.now(), request.op, if moves_data { request.bytes() } else { 0 });
    }

    /// Executes recorded operations that move no data of a request.
    pub(crate) fn execute_all(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.verifying() {
            self.move_versions(0);
        }
        self.execute(ctx, 0, 0);
    }

    /// Draws the bit errors of the recorded operations.
    #[cold]
    fn draw_bit_errors(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        if let Some(model) = &mut self.bit_errors {
            // Encoded here: `emit` stays small where it is inlined.
            let report = |event: FlashEvent| ctx.emit_record(event.encode());
            self.unreadable |= model.follow(now, self.flash.list_mut(), report);
        }
    }

    /// Charges and reports the controller's search for victims, and charges its reads of the
    /// host's memory.
    #[inline]
    fn schedule_search(&mut self, ctx: &mut Ctx<'_>) {
        let (accesses, blocks) = (self.flash.host_accesses(), self.flash.searched_blocks());
        if (accesses | blocks) == 0 {
            return;
        }
        if accesses > 0 {
            let time = self.host_buffer_time * u64::from(accesses);
            self.timing.work(time, LatencyPhase::Overhead);
        }
        if blocks > 0 {
            self.timing.work(self.search_time * u64::from(blocks), LatencyPhase::Gc);
            ctx.emit(FlashEvent::VictimSearch { blocks });
        }
    }

    /// Ends a request: whether its data could be read, and when it completes.
    #[inline]
    pub(crate) fn end(&mut self) -> Outcome {
        match self.timing.end() {
            Scheduled::Completes(timed) if std::mem::take(&mut self.unreadable) => {
                Outcome::Unreadable(timed)
            }
            scheduled => Outcome::Scheduled(scheduled),
        }
    }

    /// Puts `version` where logical `sector` is, on `page`.
    pub(crate) fn set_version(&mut self, page: Ppn, sector: u64, version: u64) {
        let per_page = u64::from(self.sectors_per_page());
        self.versions.write(u64::from(page.0) * per_page + sector % per_page, &[version]);
    }

    /// Has `begin` begin to move the data of the next block that needs it, as far as it can.
    /// Returns whether it does.
    pub(crate) fn begin_refresh(
        &mut self,
        now: SimTime,
        mut begin: impl FnMut(BlockId, &mut FlashOps) -> bool,
    ) -> bool {
        let Some(model) = &mut self.bit_errors else { return false };
        while let Some(block) = model.next_refresh(now) {
            if begin(block, &mut self.flash) {
                return true;
            }
            model.defer(block);
        }
        false
    }
}

impl BackEnd for FlashBackEnd {
    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.detailed_events()
            && let Some(busy) = self.timing.busy(ctx.now(), false)
        {
            busy.enable();
        }
        if let Some(model) = &mut self.bit_errors {
            model.begin(self.flash.array());
        }
    }

    fn continue_write(&mut self, now: SimTime, number: Option<u64>) -> Option<Scheduled> {
        match number {
            Some(number) => self.timing.programmed(now, number),
            None => self.timing.admit_waiting(now),
        }
    }

    fn next_background(&self) -> Option<SimTime> {
        self.bit_errors.as_ref()?.next_too_old()
    }

    /// A device is active while any of its flash works.
    #[inline]
    fn report_states(&mut self, ctx: &mut Ctx<'_>, period: StatePeriod) -> bool {
        let StatePeriod { from, now, .. } = period;
        let busy_until = period.busy_until.min(now);
        let active = busy_until.since(from);
        let is_busy = busy_until == now;
        if is_busy && active < REPORT_ACTIVE_EVERY && !period.everything {
            return false;
        }
        let idle = now.since(busy_until.max(from));
        for (state, time) in [(PowerState::Active, active), (PowerState::Idle, idle)] {
            if !time.is_zero() {
                ctx.emit(CommonEvent::StateTime { state, duration: time });
            }
        }
        true
    }

    #[inline]
    fn report_busy(&mut self, ctx: &mut Ctx<'_>, everything: bool) {
        if ctx.detailed_events()
            && let Some(busy) = self.timing.busy(ctx.now(), everything)
        {
            busy.report(|busy| ctx.emit_record(busy));
        }
    }

    fn take_energy(&mut self) -> f64 {
        self.meter.as_mut().map_or(0.0, |meter| std::mem::take(&mut meter.joules))
    }

    /// Operations under way are not cut short.
    fn power_lost(&mut self, _now: SimTime, busy_until: SimTime) -> SimTime {
        self.timing.drop_waiting();
        busy_until
    }

    fn inject(&mut self, fault: &Injected) {
        match *fault {
            Injected::Slow { die, factor } => {
                if let Some((geometry, slow)) = self.timing.slowdowns() {
                    slow.set(geometry.dies(), die.map(|die| die as u32), Slowdown::by(factor));
                }
            }
            Injected::Wear { fraction } => {
                self.flash.wear_out(fraction);
                if let Some(model) = &mut self.bit_errors {
                    let endurance = f64::from(self.flash.array().endurance());
                    model.wear_out(libm::round(endurance * fraction) as u32);
                }
            }
            Injected::Fill { .. } | Injected::Fail { .. } => {}
        }
    }
}

impl SavedState for FlashBackEnd {
    fn save(&self, to: &mut Saver) {
        self.flash.save(to);
        self.timing.save(to);
        if let Some(model) = &self.bit_errors {
            model.save(to);
        }
        self.stages.iter().for_each(|stage| stage.save(to));
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.flash.restore(from)?;
        self.timing.restore(from)?;
        if let Some(model) = &mut self.bit_errors {
            model.restore(from)?;
        }
        self.stages.iter_mut().try_for_each(|stage| stage.restore(from))
    }
}

#[inline]
fn report_operations(ctx: &mut Ctx<'_>, flash: &FlashOps) {
    for op in flash.list() {
        let FlashOp { kind, cause, die, page, .. } = *op;
        let die = die.0;
        match kind {
            OpKind::Read => ctx.emit(FlashEvent::Read { cause, die }),
            OpKind::Program => ctx.emit(FlashEvent::Program { cause, die }),
            OpKind::Copy => {
                ctx.emit(FlashEvent::Read { cause, die });
                ctx.emit(FlashEvent::Program { cause, die });
            }
            OpKind::Erase => {
                let erases = flash.array().erases(BlockId(page));
                ctx.emit(FlashEvent::Erase { cause, die, block: page, erases });
            }
        }
    }
}

/// A device that is busy without a pause reports its active time at this interval.
const REPORT_ACTIVE_EVERY: SimDuration = SimDuration::from_ms(100);
