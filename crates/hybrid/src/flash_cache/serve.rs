//! Host requests (op-fcl, page replacer).

use super::lists::Removal;
use super::promotion::WritePolicy;
use super::{FlashCache, Scheme};
use crate::paged_controller::{
    Destage, Origin, PagedController, PagedCore, PagedPolicy, PendingRequest,
};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::paged::locks::Lock;
use hybridsim_cache::paged::split::{Medium, Split, SubRequest};
use hybridsim_cache::replacement::{Access, CachedPage};
use hybridsim_engine::{
    Completion, Ctx, Flags, LatencyPhase, Op, Request, RequestId, SECTOR_BYTES,
};

impl PagedPolicy for FlashCache {
    fn core(&self) -> &PagedCore {
        &self.core
    }

    fn core_mut(&mut self) -> &mut PagedCore {
        &mut self.core
    }

    fn accept(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let moves_data = matches!(request.op, Op::Read | Op::Write);
        let slot = self.core.open(Origin::Host(id), *request, ctx.issued(id));
        let sequential = moves_data && self.streams.is_sequential(request);
        self.core.pending(slot).bypasses = sequential;
        let pages = self.core.directory.pages_of(request);
        // Exclusive for reads as well, because they may promote pages.
        if self.core.locks.acquire(slot, pages, true, false) == Lock::Granted {
            self.start_request(ctx, slot);
        }
    }

    fn start_read(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let PendingRequest { request, bypasses, .. } = *self.core.pending(slot);
        if !bypasses {
            self.track(ctx, &request);
        }
        let any_cached = self.look_up_read(ctx, slot);
        if bypasses {
            ctx.emit(CacheEvent::Bypassed { op: Op::Read, sectors: request.sectors });
        }
        if any_cached {
            self.split_and_execute(ctx, slot, Split::Read);
        } else {
            self.execute_on_disk(ctx, slot);
        }
    }

    fn start_write(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let PendingRequest { request, bypasses, .. } = *self.core.pending(slot);
        let (pages, cached) = self.look_up_write(ctx, slot);
        if !bypasses {
            self.track(ctx, &request);
        }
        let limit = match self.params.scheme {
            Scheme::Fixed => self.limit(),
            _ => self.limits.write,
        };
        let fits = !bypasses && pages <= limit.min(u64::from(self.core.directory.pages));
        if !fits || self.params.write_policy == WritePolicy::Around || !self.admits(slot, cached) {
            self.bypass(ctx, slot);
        } else if self.params.write_policy == WritePolicy::Through {
            self.write_to_disk(ctx, slot);
        } else if self.core.short_of_space.is_empty() {
            self.write_or_wait(ctx, slot);
        } else {
            self.core.pending(slot).waits_for = LatencyPhase::Destage;
            self.core.short_of_space.push_back(slot);
        }
    }

    fn page_read(&mut self, page: CachedPage) {
        self.lists.read(page);
    }

    fn page_written(&mut self, _request: &Request, page: CachedPage, access: Access) {
        match access {
            Access::Add => {
                self.promotion.promoted(page.page);
                self.lists.add(page, true);
            }
            Access::Read | Access::Write => self.lists.written(page),
        }
    }

    fn page_invalidated(&mut self, page: CachedPage) {
        self.lists.remove(page, Removal::Invalidate);
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, medium: Medium, slot: u32, part: Request) {
        ctx.issue(medium as usize, part, u64::from(slot));
    }

    fn sub_request_completed(&mut self, _: &mut Ctx<'_>, of: &PendingRequest, done: &Completion) {
        if let Some(observed) = self.observed.as_mut().filter(|_| !of.bypasses) {
            observed.record(done, self.core.directory.page_sectors);
        }
    }

    fn background_completed(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let PendingRequest { origin, request, failed, .. } = *self.core.pending(slot);
        match origin {
            Origin::DestageRead if !failed => self.destage_write(ctx, slot, true),
            // Data that could not be read must not replace those on the disk.
            Origin::DestageRead | Origin::DestageWrite => self.destaged(ctx, slot),
            Origin::Trim => {
                self.trimmed_slots(&request);
                self.core.pending.remove(slot as usize);
            }
            Origin::Metadata => {
                ctx.data().give_back(request.data);
                self.core.pending.remove(slot as usize);
                let mapping_ends =
                    u64::from(self.core.directory.pages) + self.core.metadata.pages();
                if request.lba.0 >= mapping_ends * self.core.directory.page_sectors {
                    self.write_checkpoint(ctx);
                }
            }
            Origin::Promotion | Origin::Host(_) => {
                ctx.data().give_back(request.data);
                self.close(ctx, slot);
            }
        }
    }

    /// A write to the disk invalidates what flash holds of it. A write through the cache is copied
    /// to be promoted, and so is a read if flash does not have all of its sectors.
    fn before_completion(&mut self, ctx: &mut Ctx<'_>, of: &PendingRequest) -> Option<Request> {
        let PendingRequest { request, failed, bypasses, .. } = *of;
        let through = request.op == Op::Write && self.params.write_policy == WritePolicy::Through;
        if request.op == Op::Write && (bypasses || through) && !failed {
            self.invalidate(ctx, &request);
        }
        if !(request.op == Op::Read || through) || bypasses || failed {
            return None;
        }
        let (first, last) = self.core.directory.pages_of(&request);
        let directory = &self.core.directory;
        let missing = last - first + 1 - directory.count_valid(&request);
        let (cached, used) = (directory.count(first, last), self.used_of_limit());
        let bytes = missing * directory.page_sectors * SECTOR_BYTES;
        let admitted = through || missing > 0 && self.promotion.admits(first..=last, cached, used);
        if !admitted || !self.promotion.within_rate(ctx.now(), bytes) {
            return None;
        }
        let mut copy = Request { op: Op::Write, flags: Flags::BACKGROUND, ..request };
        copy.data = ctx.copy_data(&request);
        Some(copy)
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, slot: u32, copy: Option<Request>) {
        self.write_ahead.idle_since = ctx.now();
        if self.core.request(slot).op != Op::Flush {
            let (first, last) = self.core.pages_of(slot);
            self.resizer.count(last - first + 1);
        }
        match copy {
            Some(copy) => self.promote(ctx, slot, copy),
            None => self.close(ctx, slot),
        }
    }

    fn recovered(&mut self, ctx: &mut Ctx<'_>) {
        self.trim_again(ctx);
    }

    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(slot) = self.core.short_of_space.pop_front() {
            self.core.charge_wait(ctx, slot);
            let before = self.core.short_of_space.len();
            self.write_or_wait(ctx, slot);
            if self.core.short_of_space.len() > before {
                break;
            }
        }
        while let Some(slot) = self.waiting_promotions.pop_front() {
            let before = self.waiting_promotions.len();
            self.promote_or_wait(ctx, slot);
            if self.waiting_promotions.len() > before {
                break;
            }
        }
        self.resize(ctx);
        self.set_write_ahead_timer(ctx);
        self.core.report_dirty(ctx, self.lists.dirty.len() as u32);
    }
}

impl FlashCache {
    /// References the pages of a request that is not part of a sequential stream.
    fn track(&mut self, ctx: &mut Ctx<'_>, request: &Request) {
        let (first, last) = self.core.directory.pages_of(request);
        for page in first..=last {
            self.tracker.refer(request.op, page);
        }
        self.account(ctx, last - first + 1);
    }

    /// Dirty pages a write adds, and new slots it needs for them.
    fn pages_needed(&mut self, slot: u32) -> (u64, u64) {
        let (first, last) = self.core.pages_of(slot);
        let (mut more, mut new) = (0, 0);
        for page in first..=last {
            match self.core.directory.find(page) {
                Some(slot) if self.lists.is_dirty(slot) => {}
                Some(_) => more += 1,
                None => {
                    (more, new) = (more + 1, new + 1);
                    self.lists.expect(page, true);
                }
            }
        }
        (more, new)
    }

    fn write_or_wait(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let (more, new) = self.pages_needed(slot);
        if self.evict_for(ctx, more, new) {
            self.write_to_flash(ctx, slot);
        } else if self.destaging > 0 || self.core.executing > 0 {
            self.core.pending(slot).waits_for = LatencyPhase::Destage;
            self.core.short_of_space.push_front(slot);
        } else {
            self.bypass(ctx, slot);
        }
    }

    fn write_to_flash(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let (first, last) = self.core.pages_of(slot);
        self.allocate_pages(slot);
        self.write_mapping(ctx, last - first + 1);
        self.split_and_execute(ctx, slot, Split::Write);
    }

    /// Whether a write of which `cached` pages are in the cache goes there.
    fn admits(&mut self, slot: u32, cached: u64) -> bool {
        let (first, last) = self.core.pages_of(slot);
        let used = self.used_of_limit();
        self.promotion.admits(first..=last, cached, used)
    }

    /// Pages of the cache in use, and how many it may have.
    fn used_of_limit(&self) -> (u64, u64) {
        (u64::from(self.core.directory.used()), self.limit())
    }

    /// Writes to the disk alone.
    fn bypass(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let pending = self.core.pending(slot);
        pending.bypasses = true;
        let Request { op, sectors, .. } = pending.request;
        ctx.emit(CacheEvent::Bypassed { op, sectors });
        self.write_to_disk(ctx, slot);
    }

    /// Writes to the disk. What flash holds of the range is invalidated on completion.
    fn write_to_disk(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let (first, last) = self.core.pages_of(slot);
        let back = self.params.write_policy == WritePolicy::Back;
        if back && self.core.directory.count(first, last) > 0 {
            // Flash may hold flushed data, which must not give way to data in a volatile buffer.
            let flags = &mut self.core.pending(slot).request.flags;
            *flags = flags.with(Flags::FUA);
        }
        self.execute_on_disk(ctx, slot);
    }

    /// Promotes the pages of a read after those that wait already, or not at all if as many wait as
    /// are destaged together.
    fn promote(&mut self, ctx: &mut Ctx<'_>, slot: u32, copy: Request) {
        let pending = self.core.pending(slot);
        (pending.origin, pending.request) = (Origin::Promotion, copy);
        if self.waiting_promotions.is_empty() {
            self.promote_or_wait(ctx, slot);
        } else if self.waiting_promotions.len() < self.resizer.step_pages {
            self.waiting_promotions.push_back(slot);
        } else {
            self.drop_promotion(ctx, slot);
        }
    }

    fn drop_promotion(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let copy = self.core.request(slot);
        ctx.data().give_back(copy.data);
        self.close(ctx, slot);
    }

    /// Promotes the pages of a read, as far as pages can be evicted for them. With one list, dirty
    /// pages are evicted in their turn; the promotion waits until they have been destaged.
    fn promote_or_wait(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let copy = self.core.request(slot);
        if self.params.scheme != Scheme::Fixed || self.evict_for_read(ctx, &copy) {
            self.promote_now(ctx, slot, copy);
        } else if self.destaging > 0 {
            self.waiting_promotions.push_front(slot);
        } else {
            self.drop_promotion(ctx, slot);
        }
    }

    /// Evicts pages until those of a read that are not cached fit; see [`FlashCache::evict_for`].
    fn evict_for_read(&mut self, ctx: &mut Ctx<'_>, copy: &Request) -> bool {
        let (first, last) = self.core.directory.pages_of(copy);
        let mut new = 0;
        for page in first..=last {
            if self.core.directory.find(page).is_none() {
                new += 1;
                self.lists.expect(page, false);
            }
        }
        let most = self.limit().min(u64::from(self.core.directory.pages));
        new <= most && self.evict_for(ctx, 0, new)
    }

    /// Writes the sectors of `copy` that flash does not have. A page that is cached in part gets
    /// all of its sectors that the request has: the request has locked it, and `copy` is the newest
    /// version.
    fn promote_now(&mut self, ctx: &mut Ctx<'_>, slot: u32, copy: Request) {
        let mut parts = std::mem::take(&mut self.core.sub_requests);
        parts.clear();
        let (first, last) = self.core.directory.pages_of(&copy);
        for page in first..=last {
            let found = self.core.directory.find(page);
            let is_valid = |slot| self.core.directory.has_sectors(slot, &copy, page);
            if found.is_some_and(is_valid) || found.is_none() && !self.has_room_for_clean(ctx, page)
            {
                continue;
            }
            let directory = &mut self.core.directory;
            let (from, to) = directory.sectors_in(&copy, page);
            let slot = found.unwrap_or_else(|| directory.add(page));
            directory.mark(slot, from, to);
            let size = directory.page_sectors;
            parts.push(SubRequest {
                medium: Medium::Flash,
                at: u64::from(slot) * size + from,
                sectors: (to - from) as u32,
                skip: (page * size + from - copy.lba.0) as u32,
            });
            if found.is_none() {
                self.promotion.promoted(page);
                self.lists.add(CachedPage { page, slot }, false);
            }
        }
        let pages = parts.len() as u64;
        self.core.sub_requests = parts;
        if pages == 0 {
            return self.drop_promotion(ctx, slot);
        }
        self.send(ctx, slot);
        self.write_mapping(ctx, pages);
    }

    /// Whether a clean page can be added; evicts another one if necessary.
    fn has_room_for_clean(&mut self, ctx: &mut Ctx<'_>, page: u64) -> bool {
        let (clean, dirty) = (self.lists.clean.len(), self.lists.dirty.len());
        let full = match self.params.scheme {
            Scheme::Fixed => clean + dirty >= self.limit(),
            _ => clean >= self.limits.read,
        };
        if full || self.core.directory.free() == 0 {
            self.lists.expect(page, false);
            let evicted = self.evict_clean_page();
            if !evicted && clean > 0 {
                self.check_victims(ctx, false, 0, 1);
            }
            return evicted && self.core.directory.free() > 0;
        }
        true
    }
}
