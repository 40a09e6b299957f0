//! Host requests: admission, allocation, and where they go.

use super::HybridDisk;
use crate::paged_controller::{
    Destage, Origin, PagedController, PagedCore, PagedPolicy, PendingRequest,
};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::paged::locks::Lock;
use hybridsim_cache::paged::split::{Medium, Split};
use hybridsim_cache::replacement::{Access, CachedPage};
use hybridsim_engine::{Completion, Ctx, Flags, LatencyPhase, Op, Request, RequestId};

impl PagedPolicy for HybridDisk {
    fn core(&self) -> &PagedCore {
        &self.core
    }

    fn core_mut(&mut self) -> &mut PagedCore {
        &mut self.core
    }

    fn accept(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.present += 1;
        // The request may have been issued during recovery.
        let slot = self.core.open(Origin::Host(id), *request, ctx.issued(id));
        if self.present > self.queue_depth {
            self.waiting.push_back(slot);
        } else {
            self.lock(ctx, slot);
        }
    }

    fn may_start(&mut self, slot: u32) -> bool {
        let waits = self.cleanups.exclusive();
        if waits {
            self.core.pending(slot).waits_for = LatencyPhase::Destage;
            self.ready.push_back(slot);
        }
        !waits
    }

    /// konanki, figure 4.8.
    fn start_read(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        if self.look_up_read(ctx, slot) {
            self.split_and_execute(ctx, slot, Split::Read);
        } else {
            self.execute_on_disk(ctx, slot);
        }
    }

    /// konanki, figure 4.9. All pages of a write are allocated before the first is written.
    fn start_write(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.core.request(slot);
        let (pages, cached) = self.look_up_write(ctx, slot);
        let (needed, free) = (pages - cached, u64::from(self.core.directory.free()));
        self.decided.admission = true;
        let admitted =
            self.is_pinned(&request) || self.policies.admission.admit(&request, pages, cached);
        if !admitted || needed > u64::from(self.core.directory.pages) {
            self.bypass(ctx, slot);
        } else if needed > 0
            && (needed + self.free_min() > free || !self.core.short_of_space.is_empty())
        {
            self.core.pending(slot).waits_for = LatencyPhase::Destage;
            self.core.short_of_space.push_back(slot);
        } else {
            self.write_to_flash(ctx, slot);
        }
    }

    fn page_read(&mut self, page: CachedPage) {
        self.used(page, Access::Read);
    }

    fn page_written(&mut self, request: &Request, page: CachedPage, access: Access) {
        if self.is_pinned(request) && self.core.directory.pin(page.slot) {
            self.policies.replacement.remove(page);
        }
        self.used(page, access);
    }

    fn page_invalidated(&mut self, page: CachedPage) {
        self.policies.replacement.remove(page);
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, medium: Medium, slot: u32, part: Request) {
        self.queues[medium as usize].push(ctx, slot, part);
    }

    fn sub_request_completed(&mut self, ctx: &mut Ctx<'_>, of: &PendingRequest, done: &Completion) {
        self.queues[done.child].completed();
        if of.origin == Origin::DestageWrite {
            ctx.emit(CacheEvent::Destaged { sectors: done.request.sectors });
        }
    }

    fn background_completed(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let PendingRequest { origin, failed, .. } = *self.core.pending(slot);
        match origin {
            Origin::DestageRead => self.destage_write(ctx, slot, self.force_destage),
            Origin::DestageWrite if self.core.metadata.pages() > 0 && !failed => {
                self.journal_write(ctx, slot);
            }
            Origin::Trim => self.trimmed(slot),
            _ => self.destaged(ctx, slot),
        }
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, slot: u32, _copy: Option<Request>) {
        self.present -= 1;
        self.idle_since = ctx.now();
        self.close(ctx, slot);
        if let Some(next) = self.waiting.pop_front() {
            self.core.charge_wait(ctx, next);
            self.lock(ctx, next);
        }
    }

    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        loop {
            self.serve_short_of_space(ctx);
            if !self.cleanups.exclusive()
                && let Some(slot) = self.ready.pop_front()
            {
                self.start_request(ctx, slot);
                continue;
            }
            self.clean_in_background(ctx);
            if !self.advance_cleanup(ctx) {
                break;
            }
        }
        let pages = self.core.directory.used();
        self.core.report_dirty(ctx, pages);
        self.set_idle_timer(ctx);
        self.queues.iter_mut().for_each(|queue| queue.dispatch(ctx));
    }
}

impl HybridDisk {
    /// Locks the pages of a request of the host, and starts it once they are.
    fn lock(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.core.request(slot);
        let pages = self.core.directory.pages_of(&request);
        let lock = self.core.locks.acquire(slot, pages, request.op != Op::Read, false);
        if lock == Lock::BlockedByDestage || lock == Lock::Granted || self.cleanups.exclusive() {
            self.core.pending(slot).waits_for = LatencyPhase::Destage;
        }
        if lock == Lock::Granted {
            self.start_request(ctx, slot);
        }
    }

    fn is_pinned(&self, request: &Request) -> bool {
        let inside = |(first, end): &(u64, u64)| *first <= request.lba.0 && request.end().0 <= *end;
        request.flags.contains(Flags::PIN) || self.pinned.iter().any(inside)
    }

    fn used(&mut self, page: CachedPage, access: Access) {
        if !self.core.directory.slot(page.slot).pinned {
            self.policies.replacement.update(page, access);
        }
    }

    /// Pages that a write has to leave free.
    pub(super) fn free_min(&self) -> u64 {
        u64::from(self.policies.cleanup.free_min())
    }

    /// Free pages a write needs now; a cleanup may have freed pages of its range meanwhile.
    pub(super) fn pages_needed(&mut self, slot: u32) -> u64 {
        let (first, last) = self.core.pages_of(slot);
        last - first + 1 - self.core.directory.count(first, last)
    }

    /// Announces the pages of a write to the replacement policy, which is about to choose victims.
    pub(super) fn expect_pages(&mut self, slot: u32) {
        let (first, last) = self.core.pages_of(slot);
        for page in first..=last {
            if self.core.directory.find(page).is_none() {
                self.policies.replacement.expect(page);
            }
        }
    }

    /// A write that has waited for free pages gets them, or bypasses the cache.
    pub(super) fn write_after_wait(&mut self, ctx: &mut Ctx<'_>, slot: u32, fits: bool) {
        self.core.charge_wait(ctx, slot);
        if fits { self.write_to_flash(ctx, slot) } else { self.bypass(ctx, slot) }
    }

    fn write_to_flash(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.allocate_pages(slot);
        self.split_and_execute(ctx, slot, self.write_split);
    }

    /// Writes to the disk what is not cached. Cached pages are written to flash, so that flash
    /// keeps their newest version.
    fn bypass(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.core.request(slot);
        ctx.emit(CacheEvent::Bypassed { op: request.op, sectors: request.sectors });
        let (first, last) = self.core.pages_of(slot);
        if self.core.directory.count(first, last) == 0 {
            return self.execute_on_disk(ctx, slot);
        }
        for page in first..=last {
            let directory = &mut self.core.directory;
            let Some(slot) = directory.find(page) else { continue };
            let (from, to) = directory.sectors_in(&request, page);
            directory.mark(slot, from, to);
            self.used(CachedPage { page, slot }, Access::Write);
        }
        self.split_and_execute(ctx, slot, Split::Write);
    }
}
