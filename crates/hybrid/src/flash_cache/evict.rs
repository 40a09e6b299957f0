//! Making room: clean pages are dropped, dirty ones are written back in groups.

use super::serve::Kind;
use super::sides::Why;
use super::{FlashCache, Scheme};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::paged::cut::{Cut, cut};
use hybridsim_cache::replacement::CachedPage;
use hybridsim_engine::{Ctx, Flags, Lba, Op, Request};

/// What pages are written back for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Others need their slots.
    Room,
    /// The write side has to be smaller.
    Shrink,
    /// Nothing yet.
    Ahead,
}

impl FlashCache {
    /// Pages the write side has too many of, were `more` to come to it and `new` of them to need
    /// a slot of their own; those the cache as a whole has in the fixed scheme.
    fn too_many(&self, more: u64, new: u64) -> u64 {
        let (clean, dirty) = (self.sides.clean.len(), self.sides.dirty.len());
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
            if clean_may_go && self.drop_next() {
                continue;
            }
            if self.destaging == 0 && self.destage(ctx, self.resizer.step_pages, Purpose::Room) {
                continue;
            }
            if self.destaging > 0 {
                return false;
            }
            // Everything dirty is in use: what is clean may help all the same.
            if !(clean_may_go && self.drop_clean_page()) {
                return false;
            }
        }
    }

    /// Drops the page that should go next, if it is clean and nobody uses it.
    fn drop_next(&mut self) -> bool {
        let flow = &self.flow;
        let unused = |page: CachedPage| !flow.touches(page.page);
        let Some(all) = &mut self.sides.all else { return self.drop_clean_page() };
        let next = all.first(&unused).filter(|page| !self.sides.is_dirty(page.slot));
        next.is_some_and(|page| self.drop_page(page))
    }

    /// Drops the clean page that should go first, if there is one that nobody uses.
    pub(super) fn drop_clean_page(&mut self) -> bool {
        let flow = &self.flow;
        let page = self.sides.clean.first(&|page| !flow.touches(page.page));
        page.is_some_and(|page| self.drop_page(page))
    }

    /// The page's slot is free at once, as it is going to be written over.
    fn drop_page(&mut self, page: CachedPage) -> bool {
        self.sides.leaves(page, Why::MakesRoom);
        self.cache.remove(page.slot);
        true
    }

    /// Begins to write back up to `count` of the dirty pages that should go first, a group at most,
    /// in order of their place on the disk; those the disk has by now go at once. Whether there
    /// were such.
    pub(super) fn destage(&mut self, ctx: &mut Ctx<'_>, count: usize, purpose: Purpose) -> bool {
        self.resizer.purpose = purpose;
        let flow = &self.flow;
        let mut pages = std::mem::take(&mut self.listed);
        let count = count.min(self.resizer.step_pages);
        let unready_only = purpose == Purpose::Ahead;
        self.sides.next_dirty(count, unready_only, &|page| !flow.touches(page.page), &mut pages);
        let some_went = self.let_go(ctx, &mut pages);
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
        some_went
    }

    /// Those of `pages` that the disk has by now leave the list and the cache; whether there were
    /// such.
    fn let_go(&mut self, ctx: &mut Ctx<'_>, pages: &mut Vec<CachedPage>) -> bool {
        let (mut given_up, mut kept) = (self.resizer.take_slots(), 0);
        for at in 0..pages.len() {
            let page = pages[at];
            if self.sides.is_ready(page.slot) {
                self.give_up(page, &mut given_up);
            } else {
                pages[kept] = page;
                kept += 1;
            }
        }
        let some_went = kept < pages.len();
        pages.truncate(kept);
        self.trim(ctx, &mut given_up);
        self.resizer.slots = given_up;
        some_went
    }

    /// A dirty page goes. Where the write side gives up space for good flash has to know, so its
    /// slot is noted in `given_up`.
    fn give_up(&mut self, page: CachedPage, given_up: &mut Vec<u32>) {
        self.sides.leaves(page, Why::MakesRoom);
        if self.resizer.purpose == Purpose::Shrink {
            self.cache.retire(page.slot);
            given_up.push(page.slot);
        } else {
            self.cache.remove(page.slot);
        }
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
        ctx.emit(CacheEvent::Destaged { sectors: request.sectors });
        self.give_back(ctx, request.data);
        let size = self.cache.page_sectors;
        let mut given_up = self.resizer.take_slots();
        for page in request.lba.0 / size..request.end().0 / size {
            let slot = self.cache.find(page).expect("nobody else takes pages being written back");
            let page = CachedPage { page, slot };
            let may_stay = self.scheme != Scheme::Fixed;
            if self.resizer.purpose == Purpose::Ahead {
                self.sides.set_ready(page, !failed);
            } else if may_stay && self.sides.clean.len() + 1 < self.limits.read {
                self.sides.cleaned(page);
            } else {
                self.give_up(page, &mut given_up);
            }
        }
        self.trim(ctx, &mut given_up);
        self.resizer.slots = given_up;
        self.destaging -= 1;
        self.leave(ctx, slot);
    }
}
