//! The translation of kind `ssd`: splits requests into pages and has a flash translation layer
//! place them.

use super::SsdDevice;
use super::back_end::FlashBackEnd;
use super::merge::MergeBuffer;
use super::split::{PagePart, WriteRun, first_page, split};
use super::translation::{Fill, Outcome, Recovery, Translation};
use super::versions::is_host_read;
use hybridsim_engine::{Ctx, Loader, Op, Request, Saver, SimDuration, SimTime, StateError, Stream};
use hybridsim_flash::SavedState;
use hybridsim_flash::array::Array;
use hybridsim_flash::event::FlashEvent;
use hybridsim_flash::ftl::{self, EXPECTED_MAX, Ftl, FtlError, Hint};
use hybridsim_flash::geometry::{Lpn, Ppn};
use hybridsim_flash::ops::FlashOps;
use hybridsim_flash::precondition::{self, Precondition};

/// A flash translation layer over one array of NAND flash.
pub struct FtlTranslation {
    pub(super) merge: Option<MergeBuffer>,
    pub(super) ftl: Box<dyn Ftl>,
    pub(super) back_end: FlashBackEnd,
    /// From the return of the power until the mapping is in memory again.
    pub(super) recovery: SimDuration,
    pub(super) precondition: Precondition,
    pub(super) precondition_pages: u32,
    pub(super) precondition_stream: Stream,
}

/// The SSD of kind `ssd`.
pub type Ssd = SsdDevice<FtlTranslation>;

impl Ssd {
    /// The flash, for tests and figures.
    pub fn flash(&self) -> &FlashOps {
        &self.translation.back_end.flash
    }
}

impl FtlTranslation {
    fn read(&mut self, ctx: &mut Ctx<'_>, request: &Request) {
        let Self { ftl, back_end, merge, .. } = self;
        let mut unwritten = 0;
        for part in split(request, back_end.sectors_per_page()) {
            back_end.flash.clear();
            let waiting = merge.as_ref().and_then(|merge| merge.get(part.lpn));
            if !merge.as_ref().is_some_and(|merge| merge.holds(&part)) {
                ftl.read(part.lpn, &mut back_end.flash);
            }
            let holds_data = back_end.execute_read(ctx, request, &part) || waiting.is_some();
            unwritten += u32::from(!holds_data);
            if let Some(unit) = waiting.filter(|_| ctx.verifying()) {
                let data = request.data.skip(part.skip);
                unit.overlay(part.offset, ctx.data().versions_mut(data, part.sectors));
            }
        }
        if unwritten > 0 {
            ctx.emit(FlashEvent::ReadUnwritten { pages: unwritten });
        }
    }

    #[inline]
    fn write(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Result<(), FtlError> {
        let per_page = self.back_end.sectors_per_page();
        match PagePart::whole(request, per_page) {
            Some(part) => self.write_page(ctx, request, &part),
            None => self.write_parts(ctx, request, per_page),
        }
    }

    /// Writes a request of one whole page, as most are in many workloads.
    #[inline(always)]
    fn write_page(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        part: &PagePart,
    ) -> Result<(), FtlError> {
        self.back_end.flash.clear();
        let hint = Hint { handle: request.flags.handle(), ..Hint::of_pages(1) };
        let written = self.write_part(ctx, request, part, hint);
        self.back_end.execute_part(ctx, request, part);
        written.map(drop)
    }

    #[inline(never)]
    fn write_parts(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        per_page: u32,
    ) -> Result<(), FtlError> {
        let run = WriteRun::new(request, per_page);
        let mut pages = 0;
        for part in split(request, per_page) {
            self.back_end.flash.clear();
            let written = if part.sectors < per_page && self.merge.is_some() {
                self.merge_part(ctx, request, &part)
            } else {
                self.write_part(ctx, request, &part, run.hint(part.lpn))
            };
            self.back_end.execute_part(ctx, request, &part);
            pages += u64::from(written?);
        }
        let sectors = request.sectors;
        if pages * u64::from(per_page) != u64::from(sectors) {
            ctx.emit(FlashEvent::HostWrite { sectors, pages: pages as u32 });
        }
        Ok(())
    }

    /// Writes `part` of a request, instead of what waits of its unit. Returns true.
    #[inline(always)]
    fn write_part(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        part: &PagePart,
        hint: Hint,
    ) -> Result<bool, FtlError> {
        let Self { ftl, back_end, merge, .. } = self;
        let per_page = back_end.sectors_per_page();
        let partial = part.read_rest(&mut **ftl, &mut back_end.flash, per_page);
        let before = back_end.flash.list().len();
        if ctx.verifying() {
            back_end.load_write(ctx, request, part, partial);
        }
        let written = ftl.write(part.lpn, hint, &mut back_end.flash);
        // Also of a write that failed: others' data may have moved before.
        if ctx.verifying() {
            back_end.move_versions(before);
        }
        written?;
        if let Some(merge) = merge {
            merge.take(part.lpn);
        }
        Ok(true)
    }

    /// Has `part` of a request wait for the rest of its unit, and writes the unit that has to leave
    /// the merge buffer for it. Returns whether there is one.
    #[cold]
    fn merge_part(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        part: &PagePart,
    ) -> Result<bool, FtlError> {
        let Self { ftl, back_end, merge, .. } = self;
        let Some(merge) = merge else { return Ok(false) };
        let verifying = ctx.verifying();
        let versions = ctx.data().versions(request.data.skip(part.skip), part.sectors);
        merge.write(part, request.flags.handle(), versions, |unit| {
            let partial = unit.read_rest(&mut **ftl, &mut back_end.flash);
            let before = back_end.flash.list().len();
            if verifying {
                back_end.load_unit(unit, partial);
            }
            let written = unit.write(&mut **ftl, &mut back_end.flash);
            if verifying {
                back_end.move_versions(before);
            }
            written
        })
    }

    /// Discards the whole pages of a request; the rest of the range keeps its data.
    fn trim(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Result<(), FtlError> {
        let Self { ftl, back_end, merge, .. } = self;
        let per_page = back_end.sectors_per_page();
        for part in split(request, per_page).filter(|part| part.sectors == per_page) {
            back_end.flash.clear();
            if let Some(merge) = merge {
                merge.take(part.lpn);
            }
            let trimmed = ftl.trim(part.lpn, &mut back_end.flash);
            if ctx.verifying() {
                back_end.move_versions(0);
            }
            back_end.execute_part(ctx, request, &part);
            trimmed?;
        }
        Ok(())
    }
}

impl Translation for FtlTranslation {
    type BackEnd = FlashBackEnd;

    #[inline]
    fn back_end(&mut self) -> &mut FlashBackEnd {
        &mut self.back_end
    }

    #[inline]
    fn arrays(&self) -> [Option<&Array>; 2] {
        [Some(self.back_end.array()), None]
    }

    fn unit_left(&self, handle: u8) -> Option<u64> {
        self.ftl.unit_left(handle)
    }

    #[inline]
    fn serve(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        _busy_until: SimTime,
    ) -> (Outcome, Result<(), FtlError>) {
        self.back_end.begin(ctx, request);
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
            self.back_end.timing.drop_current();
        }
        (self.back_end.end(), result)
    }

    fn idle_step(&mut self, ctx: &mut Ctx<'_>) -> (SimTime, Result<bool, FtlError>) {
        let Self { ftl, back_end, .. } = self;
        back_end.flash.clear();
        back_end.timing.begin_background(ctx.now());
        let mut more = ftl.idle(&mut back_end.flash);
        // One block at a time, and garbage collection first: it needs the place of the victim.
        if more == Ok(false)
            && back_end
                .begin_refresh(ctx.now(), |block, flash| ftl::refresh(&mut **ftl, block, flash))
        {
            // Another block may be due.
            more = ftl.idle(&mut back_end.flash).map(|_| true);
        }
        back_end.execute_all(ctx);
        (back_end.timing.end().busy_until(), more)
    }

    fn filling(&mut self) -> Option<&mut dyn Fill> {
        Some(self)
    }

    fn expect(&self, requests: &[Request]) {
        let mut lpns = [Lpn(0); EXPECTED_MAX];
        let count = requests.len().min(EXPECTED_MAX);
        for (lpn, request) in lpns.iter_mut().zip(requests) {
            let (number, _) = first_page(request, self.back_end.sectors_per_page());
            *lpn = Lpn(u32::try_from(number).unwrap_or(u32::MAX));
        }
        self.ftl.expect(&lpns[..count], &self.back_end.flash);
    }
}

impl Fill for FtlTranslation {
    fn prepare(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Result<(), String> {
        let Self { ftl, back_end, precondition_pages: pages, .. } = self;
        let (flash, stream) = (&mut back_end.flash, &mut self.precondition_stream);
        precondition::run(self.precondition, *pages, &mut **ftl, flash, stream, progress)
            .map_err(|error| error.to_string())
    }

    /// Writes pages as preconditioning does, in one event that takes as long as that.
    fn fill(&mut self, ctx: &Ctx<'_>, pages: u32) -> Result<(), FtlError> {
        let Self { ftl, back_end, .. } = self;
        back_end.begin_untimed(ctx);
        precondition::expect_filling(pages, &mut **ftl, &mut back_end.flash);
        let mut filled = Ok(());
        for lpn in (0..pages).map(Lpn) {
            if ftl.holds(lpn, &back_end.flash) {
                continue;
            }
            filled = ftl.write(lpn, Hint::of_pages(1), &mut back_end.flash);
            back_end.follow_untimed(ctx);
            if filled.is_err() {
                break;
            }
        }
        back_end.end_untimed();
        filled
    }
}

impl Recovery for FtlTranslation {
    fn power_lost(&mut self) -> Result<(), String> {
        if let Some(maintenance) = self.ftl.maintenance() {
            maintenance.power_lost();
        }
        Ok(())
    }

    fn recover(&mut self, _ctx: &mut Ctx<'_>) -> SimDuration {
        self.recovery
    }

    fn restore_sector(&mut self, sector: u64, version: u64) {
        let Self { ftl, back_end, merge, .. } = self;
        let per_page = u64::from(back_end.sectors_per_page());
        let (lpn, offset) = (Lpn((sector / per_page) as u32), (sector % per_page) as u32);
        if merge.as_mut().is_some_and(|merge| merge.restore_sector(lpn, offset, version)) {
            return;
        }
        // A read would change what the FTL caches, but only in runs that verify data.
        let mut page = ftl.lookup(lpn, &back_end.flash);
        if page == Ppn::NONE && ftl.holds(lpn, &back_end.flash) {
            back_end.flash.clear();
            ftl.read(lpn, &mut back_end.flash);
            let read = back_end.flash.list().iter().rfind(is_host_read);
            page = read.map_or(Ppn::NONE, |op| Ppn(op.page));
        }
        if page != Ppn::NONE {
            back_end.set_version(page, sector, version);
        }
    }
}

impl SavedState for FtlTranslation {
    fn save(&self, to: &mut Saver) {
        self.back_end.save(to);
        self.ftl.save(to);
        if let Some(merge) = &self.merge {
            to.put(merge);
        }
        to.put(&self.precondition_stream);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.back_end.restore(from)?;
        self.ftl.restore(from)?;
        if let Some(merge) = &mut self.merge {
            merge.restore(from.take()?)?;
        }
        self.precondition_stream = from.take()?;
        Ok(())
    }
}
