//! Eviction: clean pages are dropped, dirty ones are destaged in groups.

use super::lists::Removal;
use super::{FlashCache, Scheme};
use crate::paged_controller::{Destage, PagedController, PendingRequest};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::replacement::{CachedPage, too_few_victims};
use hybridsim_engine::Ctx;

/// Why pages are destaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Other pages need their slots.
    FreeSlots,
    /// The write cache is above its limit.
    Shrink,
    /// Ahead of need.
    WriteAhead,
    /// More pages are dirty than may be.
    DirtyShare,
}

impl FlashCache {
    /// Dirty pages above the limit of the write cache if `more` are added, `new` of them in new
    /// slots; in the fixed scheme, cached pages above the limit of the cache.
    fn excess(&self, more: u64, new: u64) -> u64 {
        let (clean, dirty) = (self.lists.clean.len(), self.lists.dirty.len());
        match self.params.scheme {
            Scheme::Fixed => (clean + dirty + new).saturating_sub(self.limit()),
            _ => (dirty + more).saturating_sub(self.limits.write),
        }
    }

    /// Size limit of the cache, in pages.
    pub(super) fn limit(&self) -> u64 {
        self.limits.read + self.limits.write
    }

    /// Evicts pages until `more` dirty pages fit, `new` of them in new slots; locked pages stay.
    /// Returns whether they fit; if not, pages are being destaged, or none can be evicted.
    pub(super) fn evict_for(&mut self, ctx: &mut Ctx<'_>, more: u64, new: u64) -> bool {
        loop {
            let beyond = self.excess(more, new);
            let fits = new <= u64::from(self.core.directory.free());
            if beyond == 0 && fits {
                return true;
            }
            let evict_clean = self.params.scheme == Scheme::Fixed || beyond == 0;
            if evict_clean && self.evict_next() {
                continue;
            }
            if self.destaging == 0 && self.destage(ctx, self.resizer.step_pages, Purpose::FreeSlots)
            {
                continue;
            }
            if self.destaging > 0 {
                return false;
            }
            // All dirty pages are locked: a clean page frees at least its slot.
            if !(evict_clean && self.evict_clean_page()) {
                if evict_clean && self.lists.clean.len() > 0 {
                    self.check_victims(ctx, false, 0, 1);
                }
                return false;
            }
        }
    }

    /// Evicts the next page in eviction order that is not locked, if it is clean.
    fn evict_next(&mut self) -> bool {
        let locks = &self.core.locks;
        let unlocked = |page: CachedPage| !locks.is_locked(page.page);
        let Some(all) = &mut self.lists.all else { return self.evict_clean_page() };
        let next = all.first(&unlocked).filter(|page| !self.lists.is_dirty(page.slot));
        next.is_some_and(|page| self.evict_page(page))
    }

    /// Evicts the next clean page that is not locked, if there is one.
    pub(super) fn evict_clean_page(&mut self) -> bool {
        let locks = &self.core.locks;
        let page = self.lists.clean.first(&|page| !locks.is_locked(page.page));
        page.is_some_and(|page| self.evict_page(page))
    }

    /// Evicts a page. Its slot needs no trim, because it is overwritten next.
    fn evict_page(&mut self, page: CachedPage) -> bool {
        self.lists.chose = true;
        self.lists.remove(page, Removal::Evict);
        self.core.directory.remove(page.slot);
        true
    }

    /// Ends the run if the replacement policy returned `found` of the `wanted` clean or dirty
    /// pages, and more of them can be evicted.
    pub(super) fn check_victims(
        &self,
        ctx: &mut Ctx<'_>,
        dirty: bool,
        found: usize,
        wanted: usize,
    ) {
        let suits = |page: &CachedPage| {
            self.lists.is_dirty(page.slot) == dirty && !self.core.locks.is_locked(page.page)
        };
        let evictable = self.core.directory.iter().filter(suits).count();
        let problem = too_few_victims(&self.lists.policy, found, wanted, evictable);
        problem.into_iter().for_each(|problem| ctx.policy_fault(problem));
    }

    /// Destages the next `count` dirty pages in eviction order, at most one group, sorted by disk
    /// address. Pages that have been written back ahead of need are evicted at once; returns
    /// whether there were any.
    pub(super) fn destage(&mut self, ctx: &mut Ctx<'_>, count: usize, purpose: Purpose) -> bool {
        self.resizer.purpose = purpose;
        let locks = &self.core.locks;
        let mut pages = std::mem::take(&mut self.core.listed);
        let count = count.min(self.resizer.step_pages);
        let not_written_back = matches!(purpose, Purpose::WriteAhead | Purpose::DirtyShare);
        self.lists.next_dirty(
            count,
            not_written_back,
            &|page| !locks.is_locked(page.page),
            &mut pages,
        );
        self.lists.chose = true;
        if pages.len() < count && (pages.len() as u64) < self.lists.dirty.len() && !not_written_back
        {
            self.check_victims(ctx, true, pages.len(), count);
        }
        let evicted_some = self.evict_written_back(ctx, &mut pages);
        pages.sort_unstable_by_key(|page| page.page);
        let mut rest = pages.as_slice();
        while let Some(&CachedPage { page: first, .. }) = rest.first() {
            let mut count = 1;
            while rest.get(count).is_some_and(|next| next.page == first + count as u64) {
                count += 1;
            }
            let length = count as u64;
            self.destaging += 1;
            self.destage_read(ctx, first, length, (first, first + length - 1));
            rest = &rest[count..];
        }
        self.core.listed = pages;
        evicted_some
    }

    /// Evicts those of `pages` that have been written back ahead of need, and takes them out of
    /// the list; returns whether there were any.
    fn evict_written_back(&mut self, ctx: &mut Ctx<'_>, pages: &mut Vec<CachedPage>) -> bool {
        let (mut to_trim, mut kept) = (self.resizer.take_slots(), 0);
        for at in 0..pages.len() {
            let page = pages[at];
            if self.lists.is_written_back(page.slot) {
                self.free_page(page, &mut to_trim);
            } else {
                pages[kept] = page;
                kept += 1;
            }
        }
        let evicted_some = kept < pages.len();
        pages.truncate(kept);
        self.trim(ctx, &mut to_trim);
        self.resizer.slots = to_trim;
        evicted_some
    }

    /// Evicts a dirty page. When the write cache shrinks, the slot is added to `to_trim`.
    fn free_page(&mut self, page: CachedPage, to_trim: &mut Vec<u32>) {
        self.lists.remove(page, Removal::Evict);
        if self.resizer.purpose == Purpose::Shrink {
            self.core.directory.retire(page.slot);
            to_trim.push(page.slot);
        } else {
            self.core.directory.remove(page.slot);
        }
    }

    /// Pages have been destaged: they stay as clean pages if the read cache is below its limit, and
    /// are evicted otherwise.
    pub(super) fn destaged(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let PendingRequest { request, failed, .. } = *self.core.pending(slot);
        if failed {
            let (lba, end) = (request.lba, request.end());
            ctx.device_fault(format!("sectors {lba}..{end} could not be destaged to the disk"));
        }
        ctx.emit(CacheEvent::Destaged { sectors: request.sectors });
        ctx.data().give_back(request.data);
        let size = self.core.directory.page_sectors;
        let mut to_trim = self.resizer.take_slots();
        for page in request.lba.0 / size..request.end().0 / size {
            let slot = self.core.directory.find(page).expect("locked pages stay cached");
            let page = CachedPage { page, slot };
            let may_stay = self.params.scheme != Scheme::Fixed;
            if self.resizer.purpose == Purpose::WriteAhead {
                self.lists.set_written_back(page, !failed);
            } else if self.resizer.purpose == Purpose::DirtyShare {
                // One that could not be written stays dirty.
                if !failed {
                    self.lists.cleaned(page);
                }
            } else if may_stay && self.lists.clean.len() + 1 < self.limits.read {
                self.lists.cleaned(page);
            } else {
                self.free_page(page, &mut to_trim);
            }
        }
        self.trim(ctx, &mut to_trim);
        self.resizer.slots = to_trim;
        self.destaging -= 1;
        self.close(ctx, slot);
    }
}
