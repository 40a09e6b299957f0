//! The partition resizer: the division of flash is decided once a period; pages are evicted,
//! destaged and trimmed in the background until the new limits are met.

use super::evict::Purpose;
use super::lists::Removal;
use super::optimise::{Division, cheapest};
use super::{FlashCache, Limits, Scheme};
use crate::paged_controller::Origin;
use hybridsim_cache::paged::split::Medium;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{Ctx, Flags, Lba, Op, Request};

/// Resizing proceeds in steps.
#[derive(Debug)]
pub struct Resizer {
    /// Largest step, in pages.
    pub step_pages: usize,
    /// Whether steps are taken while requests are outstanding, too.
    while_busy: bool,
    trims: u32,
    /// Why pages are being destaged.
    pub purpose: Purpose,
    /// Pages accessed by requests since the last step.
    pub(super) accessed: u64,
    /// The slots at hand; reused.
    pub slots: Vec<u32>,
}

impl Resizer {
    pub fn new(step_pages: usize, while_busy: bool) -> Self {
        let (trims, accessed, slots) = (0, 0, Vec::new());
        Self { step_pages, while_busy, trims, purpose: Purpose::FreeSlots, accessed, slots }
    }

    /// Power failure: no trim is outstanding any more.
    pub fn stop(&mut self) {
        self.trims = 0;
    }

    /// The reused list, empty.
    pub fn take_slots(&mut self) -> Vec<u32> {
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        slots
    }

    /// Requests have accessed `pages` more pages.
    pub fn count(&mut self, pages: u64) {
        self.accessed = self.accessed.saturating_add(pages);
    }

    /// Whether a step is due. While requests are outstanding, as many pages as a step may move must
    /// have been accessed since the last step (assumed: the paper says "gradually").
    fn is_due(&self, busy: bool) -> bool {
        let earned = self.while_busy && self.accessed >= self.step_pages as u64;
        self.trims == 0 && (!busy || earned)
    }
}

impl FlashCache {
    pub(super) fn set_limits(&mut self) {
        let most = u64::from(self.core.directory.pages);
        // The largest share is all pages, which rounding could miss.
        let pages = match self.division.u < self.grid.u_max {
            true => ((self.flash_pages * self.division.u) as u64).clamp(2, most),
            false => most,
        };
        let read = (pages as f64 * self.division.r) as u64;
        // Both partitions have at least one page.
        let read = read.clamp(1, pages - 1);
        self.limits = Limits { read, write: pages - read };
    }

    /// Counts page accesses; at the end of a period the division is decided again.
    pub(super) fn account(&mut self, ctx: &mut Ctx<'_>, pages: u64) {
        self.accessed += pages;
        if self.accessed < self.params.period_pages {
            return;
        }
        self.accessed = 0;
        if self.params.scheme != Scheme::Fixed {
            self.decide();
        }
        self.tracker.end_period();
        self.report_division(ctx);
    }

    /// Decides the division by the cost model. The write cache shrinks by a bounded number of
    /// pages.
    fn decide(&mut self) {
        let before = self.limits;
        let fixed = (self.params.scheme == Scheme::Divided).then_some(self.division.u);
        let pages = self.flash_pages;
        let costs = match &mut self.observed {
            Some(observed) => {
                let costs = observed.costs(&self.costs, self.division.u);
                observed.end_period();
                costs
            }
            None => self.costs,
        };
        let worth = self.params.erase_worth.as_ns() as f64 / 1e9;
        self.division = cheapest(&self.grid, &costs, &self.tracker, pages, worth, fixed);
        self.set_limits();
        let least = before.write.saturating_sub(self.params.shrink_max_pages);
        if self.limits.write < least {
            let total = self.limits.read + self.limits.write;
            self.limits.write = least;
            let most = u64::from(self.core.directory.pages)
                - least.min(u64::from(self.core.directory.pages) - 1);
            self.limits.read = total.saturating_sub(least).clamp(1, most);
        }
    }

    /// Reports the division, in pages of all flash.
    pub(super) fn report_division(&self, ctx: &mut Ctx<'_>) {
        let Limits { read, write } = self.limits;
        let rest = (self.flash_pages as u64).saturating_sub(read + write);
        for (name, value) in (0u8..).zip([read, write, rest]) {
            ctx.emit(CommonEvent::Custom { name, value });
        }
    }

    /// The current division.
    pub fn division(&self) -> Division {
        self.division
    }

    /// Takes a step towards the limits: while idle or, with `adjust = "always"`, once enough pages
    /// have been accessed.
    pub(super) fn resize(&mut self, ctx: &mut Ctx<'_>) {
        self.keep_dirty_share(ctx);
        if self.destaging > 0 || !self.resizer.is_due(self.core.executing > 0) {
            return;
        }
        let (clean, dirty) = (self.lists.clean.len(), self.lists.dirty.len());
        let Limits { read, write } = self.limits;
        let excess = match self.params.scheme {
            Scheme::Fixed => (clean + dirty).saturating_sub(read + write).min(clean),
            _ => clean.saturating_sub(read),
        };
        if excess > 0 {
            self.resizer.accessed = 0;
            self.evict_clean(ctx, excess as usize);
        } else if self.params.scheme != Scheme::Fixed && dirty > write {
            self.resizer.accessed = 0;
            self.destage(ctx, (dirty - write) as usize, Purpose::Shrink);
        }
    }

    /// Writes back dirty pages above the share of the cache that may be dirty.
    fn keep_dirty_share(&mut self, ctx: &mut Ctx<'_>) {
        let Some(share) = self.params.dirty_share.filter(|_| self.params.scheme == Scheme::Fixed)
        else {
            return;
        };
        let most = (share * self.limit() as f64) as u64;
        let excess = self.lists.dirty.len().saturating_sub(self.lists.written_back() + most);
        if self.destaging == 0 && excess > 0 {
            self.destage(ctx, excess as usize, Purpose::DirtyShare);
        }
    }

    /// Evicts and trims the next `count` clean pages in eviction order, at most one step.
    fn evict_clean(&mut self, ctx: &mut Ctx<'_>, count: usize) {
        let locks = &self.core.locks;
        let mut pages = std::mem::take(&mut self.core.listed);
        let count = count.min(self.resizer.step_pages);
        self.lists.clean.list(count, &|page| !locks.is_locked(page.page), &mut pages);
        let mut slots = self.resizer.take_slots();
        for &page in &pages {
            self.lists.remove(page, Removal::Evict);
            self.core.directory.retire(page.slot);
            slots.push(page.slot);
        }
        self.core.listed = pages;
        self.trim(ctx, &mut slots);
        self.resizer.slots = slots;
    }

    /// Trims retired slots; they are free once the trim has completed.
    pub(super) fn trim(&mut self, ctx: &mut Ctx<'_>, slots: &mut [u32]) {
        slots.sort_unstable();
        let size = self.core.directory.page_sectors;
        let mut rest = &*slots;
        while let Some(&first) = rest.first() {
            let mut count = 1;
            while rest.get(count) == Some(&(first + count as u32)) {
                count += 1;
            }
            let sectors = count as u32 * size as u32;
            let mut request = Request::new(Op::Trim, Lba(u64::from(first) * size), sectors);
            request.flags = Flags::BACKGROUND;
            let slot = self.core.open(Origin::Trim, request, ctx.now());
            self.core.pending(slot).outstanding = 1;
            self.resizer.trims += 1;
            ctx.issue(Medium::Flash as usize, request, u64::from(slot));
            rest = &rest[count..];
        }
    }

    /// After a power failure: repeats the trims that may not have reached flash. The mapping names
    /// the slots in use, and thereby these.
    pub(super) fn trim_again(&mut self, ctx: &mut Ctx<'_>) {
        let mut slots = self.resizer.take_slots();
        self.core.directory.retired(&mut slots);
        self.trim(ctx, &mut slots);
        self.resizer.slots = slots;
    }

    /// A trim has completed: its slots are free.
    pub(super) fn trimmed_slots(&mut self, request: &Request) {
        self.resizer.trims -= 1;
        let size = self.core.directory.page_sectors;
        for slot in request.lba.0 / size..request.end().0 / size {
            self.core.directory.release(slot as u32);
        }
    }
}
