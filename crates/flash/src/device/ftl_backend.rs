//! The back end of kind `ssd`: a translation layer over one array of NAND flash. It splits requests
//! into pages, has the translation layer place them, and has the timing model schedule the
//! resulting flash operations.

use super::split::{PagePart, first_page, split, write_run};
use super::versions::is_host_read;
use super::{
    EnergyMeter, Fate, FlashBackend, Service, SsdDevice, Unreported, record_busy, report_activity,
    report_busy, report_operations,
};
use crate::bit_errors::BitErrors;
use crate::event::FlashEvent;
use crate::ftl::{EXPECTED_MAX, Ftl, FtlError, Hint, Properties};
use crate::geometry::Lpn;
use crate::ops::FlashOps;
use crate::precondition::{self, Precondition};
use crate::timing::{Scheduled, TimingModel};
use hybridsim_engine::{
    Contents, Ctx, Event, Injected, Loader, Lookahead, Op, Prepare, Request, SECTOR_BYTES, Saver,
    SimDuration, SimTime, StateError, Stream,
};

/// A translation layer, flash, and a timing model.
pub struct FtlBackend {
    /// The registered name of the translation layer, for error messages.
    pub(super) ftl_name: &'static str,
    pub(super) ftl: Box<dyn Ftl>,
    pub(super) properties: Properties,
    pub(super) flash: FlashOps,
    pub(super) sectors_per_page: u32,
    /// Controller time per block examined in search of a victim.
    pub(super) search_time: SimDuration,
    /// Time of a read of the host's memory, where part of the map is.
    pub(super) host_buffer_time: SimDuration,
    pub(super) timing: Box<dyn TimingModel>,
    pub(super) bit_errors: Option<Box<BitErrors>>,
    /// Whether data of the present request could not be read.
    pub(super) unreadable: bool,
    /// Where the temperature is simulated.
    pub(super) meter: Option<Box<EnergyMeter>>,
    /// From the return of the power until the mapping is in memory again.
    pub(super) recovery: SimDuration,
    pub(super) precondition: Precondition,
    pub(super) precondition_pages: u32,
    pub(super) precondition_stream: Stream,
    /// Versions by physical sector, in verified runs.
    pub(super) versions: Contents,
    /// Versions of the page that is read or written, in verified runs.
    pub(super) page: Vec<u64>,
}

/// The SSD of kind `ssd`.
pub type Ssd = SsdDevice<FtlBackend>;

impl Ssd {
    /// The flash, for tests and figures.
    pub fn flash(&self) -> &FlashOps {
        &self.backend.flash
    }
}

impl FtlBackend {
    fn read(&mut self, ctx: &mut Ctx<'_>, request: &Request) {
        let mut unwritten = 0;
        for part in split(request, self.sectors_per_page) {
            self.flash.clear();
            self.ftl.read(part.lpn, &mut self.flash);
            unwritten += u32::from(!self.flash.list().iter().any(|op| is_host_read(&op)));
            if ctx.verifying() {
                self.move_versions(0);
                let found = self.load_host_read();
                let range = part.offset as usize..(part.offset + part.sectors) as usize;
                let into = ctx.data().versions_mut(request.data.skip(part.skip), part.sectors);
                match found {
                    _ if into.is_empty() => {}
                    true => into.copy_from_slice(&self.page[range]),
                    false => into.fill(0),
                }
            }
            self.schedule(ctx, request, &part);
        }
        if unwritten > 0 {
            ctx.emit(FlashEvent::ReadUnwritten { pages: unwritten });
        }
    }

    fn write(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Result<(), FtlError> {
        let run = write_run(request, self.sectors_per_page);
        let hint = Hint { request_pages: run.pages };
        self.ftl.begin_write(run);
        for part in split(request, self.sectors_per_page) {
            let Self { ftl, flash, .. } = self;
            flash.clear();
            let partial = part.read_rest(&mut **ftl, flash, self.sectors_per_page);
            let before = flash.list().len();
            if ctx.verifying() {
                if !(partial && self.load_host_read()) {
                    self.page.fill(0);
                }
                let versions = ctx.data().versions(request.data.skip(part.skip), part.sectors);
                self.page[part.offset as usize..][..versions.len()].copy_from_slice(versions);
            }
            let written = self.ftl.write(part.lpn, hint, &mut self.flash);
            // Also of a write that failed: others' data may have moved before.
            if ctx.verifying() {
                self.move_versions(before);
            }
            self.schedule(ctx, request, &part);
            written?;
        }
        Ok(())
    }

    /// Discards the whole pages of a request; the rest of the range keeps its data.
    fn trim(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Result<(), FtlError> {
        for part in split(request, self.sectors_per_page) {
            if part.sectors == self.sectors_per_page {
                self.flash.clear();
                let trimmed = self.ftl.trim(part.lpn, &mut self.flash);
                if ctx.verifying() {
                    self.move_versions(0);
                }
                self.schedule(ctx, request, &part);
                trimmed?;
            }
        }
        Ok(())
    }

    /// Schedules and reports the operations recorded for one page of `request`.
    #[inline]
    fn schedule(&mut self, ctx: &mut Ctx<'_>, request: &Request, part: &PagePart) {
        if self.bit_errors.is_some() {
            self.draw_bit_errors(ctx);
        }
        self.schedule_search(ctx);
        let behind = u64::from(request.sectors - part.skip - part.sectors) * SECTOR_BYTES;
        let bytes = u64::from(part.sectors) * SECTOR_BYTES;
        self.timing.page(self.flash.list(), bytes, behind);
        report_operations(ctx, &self.flash, &mut self.meter);
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

    /// Has the translation layer begin to refresh a block, if one needs it. Returns whether it
    /// does.
    fn begin_refresh(&mut self, now: SimTime) -> bool {
        let Some(model) = &mut self.bit_errors else { return false };
        while let Some(block) = model.next_refresh(now) {
            let maintenance = self.ftl.maintenance();
            if maintenance.is_some_and(|it| it.refresh(block, &mut self.flash)) {
                return true;
            }
            model.defer(block);
        }
        false
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
            self.timing.work(self.host_buffer_time * u64::from(accesses));
        }
        if blocks > 0 {
            self.timing.delay(self.search_time * u64::from(blocks));
            ctx.emit(FlashEvent::VictimSearch { blocks });
        }
    }
}

impl FlashBackend for FtlBackend {
    const REPORTS_INITIAL_FREE_BLOCKS: bool = true;

    fn pauses_between_steps(&self) -> bool {
        self.properties.slc_blocks.is_none()
    }

    fn sectors_per_page(&self) -> u32 {
        self.sectors_per_page
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        record_busy(ctx, &mut *self.timing);
        if let Some(model) = &mut self.bit_errors {
            model.begin(self.flash.array());
        }
    }

    #[inline]
    fn serve(&mut self, ctx: &mut Ctx<'_>, request: &Request, _busy_until: SimTime) -> Service {
        let moves_data = matches!(request.op, Op::Read | Op::Write);
        let bytes = if moves_data { request.bytes() } else { 0 };
        self.timing.begin(ctx.now(), request.op, bytes);
        let result = match request.op {
            Op::Read => {
                self.read(ctx, request);
                Ok(())
            }
            Op::Write => self.write(ctx, request),
            Op::Trim => self.trim(ctx, request),
            // Writes are acknowledged when they are programmed or in the write buffer.
            Op::Flush => Ok(()),
            Op::Zone(_) => unreachable!("the machine refuses zone commands here"),
        };
        if result.is_err() {
            // The request fails now, so the rest of it does not wait for the write buffer.
            self.timing.drop_current();
        }
        Service { result, fate: Fate::Scheduled(self.timing.end()) }
    }

    #[inline]
    fn take_unreadable(&mut self) -> bool {
        std::mem::take(&mut self.unreadable)
    }

    fn admit_waiting(&mut self, now: SimTime) -> Option<Scheduled> {
        self.timing.admit_waiting(now)
    }

    fn programmed(&mut self, now: SimTime, number: u64) -> Option<Scheduled> {
        self.timing.programmed(now, number)
    }

    fn background_step(&mut self, ctx: &mut Ctx<'_>) -> (SimTime, Result<bool, FtlError>) {
        self.flash.clear();
        self.timing.begin_background(ctx.now());
        let mut more = self.ftl.idle(&mut self.flash);
        // One block at a time, and garbage collection first: it needs the place of the victim.
        if more == Ok(false) && self.begin_refresh(ctx.now()) {
            more = self.ftl.idle(&mut self.flash);
        }
        self.draw_bit_errors(ctx);
        self.schedule_search(ctx);
        self.timing.page(self.flash.list(), 0, 0);
        let busy_until = self.timing.end().busy_until();
        if ctx.verifying() {
            self.move_versions(0);
        }
        report_operations(ctx, &self.flash, &mut self.meter);
        (busy_until, more)
    }

    fn next_background(&self) -> Option<SimTime> {
        self.bit_errors.as_ref()?.next_too_old()
    }

    /// A device is active while any of its flash works.
    #[inline]
    fn report_states(&mut self, ctx: &mut Ctx<'_>, period: Unreported) -> bool {
        report_activity(ctx, period)
    }

    fn take_energy(&mut self) -> f64 {
        self.meter.as_mut().map_or(0.0, |meter| meter.take())
    }

    #[inline]
    fn report_busy(&mut self, ctx: &mut Ctx<'_>, everything: bool) {
        report_busy(ctx, &mut *self.timing, everything);
    }

    fn report_wear(&self, ctx: &mut Ctx<'_>) {
        super::report_wear(ctx, [self.flash.array()]);
    }

    #[inline]
    fn free_blocks(&self) -> u32 {
        self.flash.array().free_blocks()
    }

    #[inline]
    fn violation(&self) -> Option<String> {
        let violation = self.flash.violation()?;
        Some(format!("translation layer `{}`: {violation}", self.ftl_name))
    }

    /// Operations under way are not cut short.
    fn power_lost(&mut self, _now: SimTime, busy_until: SimTime) -> Result<SimTime, String> {
        self.timing.drop_waiting();
        if let Some(maintenance) = self.ftl.maintenance() {
            maintenance.power_lost();
        }
        Ok(busy_until)
    }

    fn recover(&mut self, _ctx: &mut Ctx<'_>) -> SimDuration {
        self.recovery
    }

    fn restore_sector(&mut self, sector: u64, version: u64) {
        let per_page = u64::from(self.sectors_per_page);
        self.flash.clear();
        self.ftl.read(Lpn((sector / per_page) as u32), &mut self.flash);
        // A trimmed page is not read.
        if let Some(op) = self.flash.list().iter().rfind(is_host_read) {
            let at = u64::from(op.page) * per_page + sector % per_page;
            self.versions.write(at, &[version]);
        }
    }

    fn faults(&self) -> &'static [&'static str] {
        self.supported_faults()
    }

    fn check_fault(&self, fault: &Injected) -> Result<(), String> {
        self.check_injected(fault)
    }

    fn inject(
        &mut self,
        ctx: &mut Ctx<'_>,
        fault: &Injected,
        sectors: u64,
    ) -> Result<(), FtlError> {
        self.inject_fault(ctx, fault, sectors)
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.flash.save(to);
        if let Some(error) = &self.properties.unsaveable {
            return Err(error.clone());
        }
        self.ftl.save(to);
        self.timing.save(to);
        to.put(&self.precondition_stream);
        if let Some(model) = &self.bit_errors {
            model.save(to);
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.flash.restore(from)?;
        self.ftl.restore(from)?;
        self.timing.restore(from)?;
        self.precondition_stream = from.take()?;
        match &mut self.bit_errors {
            Some(model) => model.restore(from),
            None => Ok(()),
        }
    }

    fn preparation(&mut self) -> Option<&mut dyn Prepare> {
        (self.precondition != Precondition::None).then_some(self as &mut dyn Prepare)
    }

    fn lookahead(&self) -> Option<&dyn Lookahead> {
        self.flash.array().geometry().outgrows_caches().then_some(self as &dyn Lookahead)
    }
}

impl Prepare for FtlBackend {
    fn prepare(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Result<(), String> {
        let Self { ftl, flash, precondition_pages: pages, precondition_stream, .. } = self;
        let (ftl, stream) = (&mut **ftl, precondition_stream);
        precondition::run(self.precondition, *pages, ftl, flash, stream, progress)
            .map_err(|error| error.to_string())
    }
}

impl Lookahead for FtlBackend {
    fn expect(&self, requests: &[Request]) {
        let mut lpns = [Lpn(0); EXPECTED_MAX];
        let count = requests.len().min(EXPECTED_MAX);
        for (lpn, request) in lpns.iter_mut().zip(requests) {
            let (number, _) = first_page(request, self.sectors_per_page);
            *lpn = Lpn(u32::try_from(number).unwrap_or(u32::MAX));
        }
        self.ftl.expect(&lpns[..count], &self.flash);
    }
}
