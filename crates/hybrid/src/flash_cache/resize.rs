//! The division of flash: decided once a period, followed by the pages in the background.

use super::evict::Purpose;
use super::optimise::{Division, cheapest};
use super::serve::Kind;
use super::sides::Why;
use super::{FlashCache, Limits, Scheme};
use hybridsim_engine::{CommonEvent, Ctx, Flags, Lba, Op, Request};

/// Steps of resizing.
#[derive(Debug)]
pub struct Resizer {
    /// Most pages in a step.
    pub step_pages: usize,
    /// Steps are taken while requests are under way, too.
    while_busy: bool,
    /// Trims under way.
    trims: u32,
    /// What pages are being written back for.
    pub purpose: Purpose,
    /// Pages requests have accessed since the last step.
    accessed: u64,
    /// Reused to choose pages.
    pub slots: Vec<u32>,
}

impl Resizer {
    /// Steps of so many pages, only while nobody waits or while requests are under way, too.
    pub fn new(step_pages: usize, while_busy: bool) -> Self {
        let (trims, accessed, slots) = (0, 0, Vec::new());
        Self { step_pages, while_busy, trims, purpose: Purpose::Room, accessed, slots }
    }

    /// Nothing is under way any more.
    pub fn stop(&mut self) {
        self.trims = 0;
    }

    /// The list for choosing, empty.
    pub fn take_slots(&mut self) -> Vec<u32> {
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        slots
    }

    /// Requests have accessed so many pages more.
    pub fn count(&mut self, pages: u64) {
        self.accessed = self.accessed.saturating_add(pages);
    }

    /// Whether it is time for a step. While requests are under way, those since the last step have
    /// to have accessed as many pages as it may move (assumed: the paper says "gradually").
    fn is_due(&self, busy: bool) -> bool {
        let earned = self.while_busy && self.accessed >= self.step_pages as u64;
        self.trims == 0 && (!busy || earned)
    }
}

impl FlashCache {
    /// Limits as the division says.
    pub(super) fn set_limits(&mut self) {
        let pages = self.flash_pages * self.division.u;
        let pages = (pages as u64).clamp(2, u64::from(self.cache.pages));
        let read = (pages as f64 * self.division.r) as u64;
        // Neither side is ever without a page.
        let read = read.clamp(1, pages - 1);
        self.limits = Limits { read, write: pages - read };
    }

    /// Pages of I/O have been accessed: at the end of a period the division is decided anew.
    pub(super) fn account(&mut self, ctx: &mut Ctx<'_>, pages: u64) {
        self.accessed += pages;
        if self.accessed < self.period_pages {
            return;
        }
        self.accessed = 0;
        if self.scheme != Scheme::Fixed {
            self.decide();
        }
        self.tracker.end_period();
        self.tell_division(ctx);
    }

    fn decide(&mut self) {
        let before = self.limits;
        let fixed = (self.scheme == Scheme::Divided).then_some(self.division.u);
        let pages = self.flash_pages;
        let costs = match &mut self.observed {
            Some(observed) => {
                let costs = observed.costs(&self.costs, self.division.u);
                observed.end_period();
                costs
            }
            None => self.costs,
        };
        self.division = cheapest(&self.grid, &costs, &self.tracker, pages, self.erase_worth, fixed);
        self.set_limits();
        let least = before.write.saturating_sub(self.shrink_max);
        if self.limits.write < least {
            let total = self.limits.read + self.limits.write;
            self.limits.write = least;
            let room = u64::from(self.cache.pages) - least.min(u64::from(self.cache.pages) - 1);
            self.limits.read = total.saturating_sub(least).clamp(1, room);
        }
    }

    /// Tells the division in pages of all flash.
    pub(super) fn tell_division(&self, ctx: &mut Ctx<'_>) {
        let Limits { read, write } = self.limits;
        let rest = (self.flash_pages as u64).saturating_sub(read + write);
        for (name, value) in (0u8..).zip([read, write, rest]) {
            ctx.emit(CommonEvent::Custom { name, value });
        }
    }

    /// The division now; for figures.
    pub fn division(&self) -> Division {
        self.division
    }

    /// A step towards the limits: at once when nobody waits for anything; if asked for, now and
    /// then when somebody always does.
    pub(super) fn resize(&mut self, ctx: &mut Ctx<'_>) {
        if self.destaging > 0 || !self.resizer.is_due(self.executing > 0) {
            return;
        }
        let (clean, dirty) = (self.sides.clean.len(), self.sides.dirty.len());
        let Limits { read, write } = self.limits;
        let beyond = match self.scheme {
            Scheme::Fixed => (clean + dirty).saturating_sub(read + write).min(clean),
            _ => clean.saturating_sub(read),
        };
        if beyond > 0 {
            self.resizer.accessed = 0;
            self.drop_clean(ctx, beyond as usize);
        } else if self.scheme != Scheme::Fixed && dirty > write {
            self.resizer.accessed = 0;
            self.destage(ctx, (dirty - write) as usize, Purpose::Shrink);
        }
    }

    /// Drops up to a step of the least recently used clean pages, and tells flash.
    fn drop_clean(&mut self, ctx: &mut Ctx<'_>, count: usize) {
        let flow = &self.flow;
        let mut pages = std::mem::take(&mut self.listed);
        let count = count.min(self.resizer.step_pages);
        self.sides.clean.list(count, &|page| !flow.touches(page.page), &mut pages);
        let mut slots = self.resizer.take_slots();
        for &page in &pages {
            self.sides.leaves(page, Why::MakesRoom);
            self.cache.retire(page.slot);
            slots.push(page.slot);
        }
        self.listed = pages;
        self.trim(ctx, &mut slots);
        self.resizer.slots = slots;
    }

    /// Tells flash that retired slots hold nothing; they are free when it knows.
    pub(super) fn trim(&mut self, ctx: &mut Ctx<'_>, slots: &mut [u32]) {
        slots.sort_unstable();
        let size = self.cache.page_sectors;
        let mut rest = &*slots;
        while let Some(&first) = rest.first() {
            let mut count = 1;
            while rest.get(count) == Some(&(first + count as u32)) {
                count += 1;
            }
            let sectors = count as u32 * size as u32;
            let mut request = Request::new(Op::Trim, Lba(u64::from(first) * size), sectors);
            request.flags = Flags::BACKGROUND;
            let parent = self.open(Kind::Trim, request, ctx.now());
            self.parent(parent).left = 1;
            self.resizer.trims += 1;
            ctx.issue(0, request, u64::from(parent));
            rest = &rest[count..];
        }
    }

    /// After a power failure: flash may not have heard of the slots that were being given up. The
    /// map, which says what is in use, tells them.
    pub(super) fn trim_again(&mut self, ctx: &mut Ctx<'_>) {
        let mut slots = self.resizer.take_slots();
        self.cache.retired(&mut slots);
        self.trim(ctx, &mut slots);
        self.resizer.slots = slots;
    }

    /// Flash knows: the slots are free.
    pub(super) fn trimmed_slots(&mut self, request: &Request) {
        self.resizer.trims -= 1;
        let size = self.cache.page_sectors;
        for slot in request.lba.0 / size..request.end().0 / size {
            self.cache.release(slot as u32);
        }
    }
}
