//! Random write areas of zones (ZRWA; NVMe TP 4076): what is written there is in the memory of the
//! device, which survives power failures, and is programmed when the write pointer passes it.

use super::NO_OWNER;
use super::translation::ZoneTranslation;
use super::zone::{Statistic, Zone};
use crate::device::PagePart;
use hybridsim_engine::zone_table::ZoneStatus;
use hybridsim_engine::{Ctx, Op, Request};
use hybridsim_flash::event::{Cause, FlashEvent};
use hybridsim_flash::geometry::Lpn;
use hybridsim_flash::ops::After;
use hybridsim_flash::timing::Scheduled;
use std::collections::BTreeMap;

/// The pages in the areas, by zone and page; in verified runs with the versions of their sectors,
/// but for pages of a saved state, which read as zeros.
#[derive(Debug, Default)]
pub(super) struct RandomPages(BTreeMap<(u32, u32), Vec<u64>>);

impl RandomPages {
    /// The versions of a page, if it is here; none in runs that are not verified.
    pub fn get(&self, zone: u32, page: u32) -> Option<&[u64]> {
        self.0.get(&(zone, page)).map(Vec::as_slice)
    }

    /// Discards the pages of a zone.
    pub fn discard(&mut self, zone: u32) {
        // Not over the pages of all zones.
        while let Some(page) = self.end(zone) {
            self.0.remove(&(zone, page - 1));
        }
    }

    /// The page after the last one of a zone that is here, if there is one.
    pub fn end(&self, zone: u32) -> Option<u32> {
        let mut pages = self.0.range((zone, 0)..=(zone, u32::MAX));
        pages.next_back().map(|((_, page), _)| page + 1)
    }

    /// Gives a sector of a page its previous `version` again, if the page is here. Returns whether
    /// it is.
    pub fn restore_sector(&mut self, (zone, page): (u32, u32), offset: u64, version: u64) -> bool {
        let versions = self.0.get_mut(&(zone, page));
        let sector = versions.and_then(|versions| versions.get_mut(offset as usize));
        sector.map(|sector| *sector = version).is_some()
    }

    /// Zones and pages, for a saved state.
    pub fn places(&self) -> Vec<(u32, u32)> {
        self.0.keys().copied().collect()
    }

    /// The pages at these places.
    pub fn at(places: Vec<(u32, u32)>) -> Self {
        Self(places.into_iter().map(|place| (place, Vec::new())).collect())
    }
}

impl ZoneTranslation {
    /// Writes `pages` pages from `first` on to the random write area of an open zone, and programs
    /// those that the area then no longer contains.
    pub(super) fn write_random(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
        (zone, first, pages): (u32, u32, u32),
    ) {
        let per_page = self.back_end.sectors_per_page();
        let mut again = 0;
        for index in 0..pages {
            let part =
                PagePart { lpn: Lpn(first), skip: index * per_page, offset: 0, sectors: per_page };
            let versions = ctx.data().versions(request.data.skip(part.skip), per_page).to_vec();
            again += u64::from(self.random.0.insert((zone, first + index), versions).is_some());
            self.back_end.flash.clear();
            self.back_end.execute_part(ctx, request, &part);
        }
        if again > 0 {
            ctx.emit(Statistic::Overwritten.event(again));
        }
        let to = self.zones.table().flushed_to(zone, first + pages);
        let programmed = self.program_area(ctx, zone, to);
        ctx.emit(FlashEvent::HostWrite { sectors: request.sectors, pages: programmed });
    }

    /// Programs the area of `zone` up to page `to`, and moves the write pointer there. What was not
    /// written is padded. Returns the number of pages with data.
    fn program_area(&mut self, ctx: &mut Ctx<'_>, zone: u32, to: u32) -> u32 {
        let Zone { written, .. } = self.zones.get(zone);
        let mut with_data = 0;
        for index in written..to {
            self.back_end.flash.clear();
            with_data += u32::from(self.program_page(zone, index));
            self.back_end.execute_all(ctx);
        }
        self.back_end.flash.clear();
        let padded = to - written - with_data;
        if padded > 0 {
            ctx.emit(Statistic::Padding.event(padded.into()));
        }
        let before = self.zones.open_count();
        self.zones.advance(zone, to - written);
        self.report_open(ctx, before);
        with_data
    }

    /// Records the program of a page with what the area holds, or padding. Returns whether it holds
    /// data.
    pub(super) fn program_page(&mut self, zone: u32, index: u32) -> bool {
        let page = self.stripe.page(self.zones.get(zone).group, index);
        let versions = self.random.0.remove(&(zone, index));
        let flash = &mut self.back_end.flash;
        match &versions {
            Some(_) => flash.host_program(page, NO_OWNER, After::NOTHING),
            None => flash.program(page, NO_OWNER, Cause::Padding, After::NOTHING),
        };
        self.back_end.load_versions(versions.as_deref().unwrap_or_default());
        versions.is_some()
    }

    /// Moves the write pointer of a zone to the end of `request`, and programs what it passes.
    ///
    /// # Errors
    /// The status of a refused commit.
    pub(super) fn commit(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request,
    ) -> Result<Scheduled, ZoneStatus> {
        let (zone, first) = self.place(request.lba)?;
        let per_page = self.sectors_per_page();
        if !u64::from(request.sectors).is_multiple_of(per_page) {
            return Err(ZoneStatus::InvalidField);
        }
        if self.has_operation(zone) {
            return Err(ZoneStatus::InvalidTransition);
        }
        let pages = (u64::from(request.sectors) / per_page) as u32;
        let to = first.checked_add(pages).ok_or(ZoneStatus::InvalidField)?;
        self.zones.table().check_commit(zone, to)?;
        self.abandon_refresh(zone);
        // Not as a write: it completes when the pages are programmed.
        self.back_end.timing.begin(ctx.now(), Op::Trim, 0);
        let pages = self.program_area(ctx, zone, to);
        ctx.emit(FlashEvent::HostWrite { sectors: 0, pages });
        Ok(self.back_end.timing.end())
    }
}
