//! Making room: clean pages are dropped, dirty ones are written back in groups.

use super::serve::Kind;
use super::{FlashCache, Scheme};
use crate::hybrid_disk::cut::{Cut, cut};
use crate::replacement::CachedPage;
use hybridsim_engine::{Ctx, Fact, Flags, Lba, Op, Request};

impl FlashCache {
    /// A page is in the cache, most recently used.
    pub(super) fn remember(&mut self, page: CachedPage, dirty: bool) {
        let slot = page.slot as usize;
        if slot >= self.dirty.len() {
            self.dirty.resize(slot + 1, false);
        }
        self.dirty[slot] = dirty;
        match dirty {
            true => self.dirty_pages.push(page),
            false => self.clean_pages.push(page),
        }
        self.all_pages.push(page);
    }

    /// A page leaves the lists.
    pub(super) fn forget(&mut self, page: CachedPage) {
        self.clean_pages.remove(page);
        self.dirty_pages.remove(page);
        self.all_pages.remove(page);
    }

    /// Whether a page in the cache is dirty.
    pub(super) fn is_dirty(&self, slot: u32) -> bool {
        self.dirty.get(slot as usize).is_some_and(|dirty| *dirty)
    }

    /// Pages the write side has too many of, were `more` to come to it and `new` of them to need
    /// a slot of their own; those the cache as a whole has in the fixed scheme.
    fn too_many(&self, more: u64, new: u64) -> u64 {
        let (clean, dirty) = (self.clean_pages.len() as u64, self.dirty_pages.len() as u64);
        match self.scheme {
            Scheme::Fixed => (clean + dirty + new).saturating_sub(self.limit()),
            _ => (dirty + more).saturating_sub(self.limits.write),
        }
    }

    /// Most pages in the cache.
    pub(super) fn limit(&self) -> u64 {
        self.limits.read + self.limits.write
    }

    /// Tries to make room for `more` dirty pages, `new` of them in slots of their own. Pages in use
    /// stay. Whether there is; if not, pages are being written back, or nothing can go.
    pub(super) fn make_room(&mut self, ctx: &mut Ctx<'_>, more: u64, new: u64) -> bool {
        loop {
            let beyond = self.too_many(more, new);
            let fits = new <= u64::from(self.cache.free());
            if beyond == 0 && fits {
                return true;
            }
            let clean_may_go = self.scheme == Scheme::Fixed || beyond == 0;
            let oldest_is_clean = self.scheme != Scheme::Fixed || self.oldest_is_clean();
            if clean_may_go && oldest_is_clean && self.drop_oldest_clean() {
                continue;
            }
            if self.destaging == 0 {
                self.destage(ctx, self.resizer.step_pages);
            }
            if self.destaging > 0 {
                return false;
            }
            // Everything dirty is in use: what is clean may help all the same.
            if !(clean_may_go && self.drop_oldest_clean()) {
                return false;
            }
        }
    }

    fn oldest_is_clean(&self) -> bool {
        let flow = &self.flow;
        let oldest = self.all_pages.iter().find(|page| !flow.touches(page.page));
        oldest.is_some_and(|page| !self.is_dirty(page.slot))
    }

    /// Drops the least recently used clean page that nobody uses; its slot is free at once, as it
    /// is going to be written over.
    pub(super) fn drop_oldest_clean(&mut self) -> bool {
        let flow = &self.flow;
        let Some(page) = self.clean_pages.iter().find(|page| !flow.touches(page.page)) else {
            return false;
        };
        self.forget(page);
        self.cache.remove(page.slot);
        true
    }

    /// Begins to write back up to `count` of the least recently used dirty pages, a group at most,
    /// in order of their place on the disk.
    pub(super) fn destage(&mut self, ctx: &mut Ctx<'_>, count: usize) {
        let flow = &self.flow;
        let free = self.dirty_pages.iter().filter(|page| !flow.touches(page.page));
        let mut pages = std::mem::take(&mut self.listed);
        pages.clear();
        pages.extend(free.take(count.min(self.resizer.step_pages)));
        pages.sort_unstable_by_key(|page| page.page);
        let mut rest = pages.as_slice();
        while let Some(&CachedPage { page: first, .. }) = rest.first() {
            let mut count = 1;
            while rest.get(count).is_some_and(|next| next.page == first + count as u64) {
                count += 1;
            }
            self.destage_read(ctx, first, count as u64);
            rest = &rest[count..];
        }
        self.listed = pages;
    }

    fn destage_read(&mut self, ctx: &mut Ctx<'_>, first: u64, count: u64) {
        let size = self.cache.page_sectors;
        let sectors = (count * size) as u32;
        let mut request = Request::new(Op::Read, Lba(first * size), sectors);
        request.flags = Flags::BACKGROUND;
        request.data = ctx.take_data(sectors);
        let slot = self.open(Kind::DestageRead, request, ctx.now());
        self.flow.enter(slot, (first, first + count - 1), true, true);
        self.destaging += 1;
        cut(&self.cache, request.lba.0, sectors, Cut::Cached, &mut self.runs);
        self.send(ctx, slot, &request);
    }

    pub(super) fn destage_write(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let parent = self.parent(slot);
        parent.kind = Kind::DestageWrite;
        parent.request.op = Op::Write;
        parent.request.flags = Flags::BACKGROUND.with(Flags::FUA);
        let request = parent.request;
        cut(&self.cache, request.lba.0, request.sectors, Cut::Destage, &mut self.runs);
        self.send(ctx, slot, &request);
    }

    /// The disk has the pages: they stay as clean ones where those have room, or make room.
    pub(super) fn destage_end(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let (request, failed) = (self.parent(slot).request, self.parent(slot).failed);
        if failed {
            let (lba, end) = (request.lba, request.end());
            ctx.device_fault(format!("sectors {lba}..{end} could not be written back to the disk"));
        }
        ctx.observe(Fact::Destaged { sectors: request.sectors });
        self.give_back(ctx, request.data);
        let size = self.cache.page_sectors;
        let mut given_up = self.resizer.take_slots();
        for page in request.lba.0 / size..request.end().0 / size {
            let slot = self.cache.find(page).expect("nobody else takes pages being written back");
            let page = CachedPage { page, slot };
            self.forget(page);
            let clean = self.clean_pages.len() as u64;
            if self.scheme != Scheme::Fixed && clean + 1 < self.limits.read {
                self.remember(page, false);
            } else if self.resizer.shrinks {
                // Given up for good, not for another page: flash has to know.
                self.cache.retire(slot);
                given_up.push(slot);
            } else {
                self.cache.remove(slot);
            }
        }
        self.trim(ctx, &mut given_up);
        self.resizer.slots = given_up;
        self.destaging -= 1;
        self.resizer.shrinks &= self.destaging > 0;
        self.leave(ctx, slot);
    }
}
