//! Requests from arrival to completion.

use super::metadata::Recovery;
use super::{Origin, PagedPolicy, PendingRequest, clamp};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::paged::directory::bits;
use hybridsim_cache::paged::split::{Medium, Split, SubRequest, split};
use hybridsim_cache::replacement::{Access, CachedPage};
use hybridsim_engine::{Completion, Ctx, LatencyPhase, Lba, Op, Request, RequestId};

/// The request path all paged controllers share.
pub trait PagedController: PagedPolicy + Sized {
    /// A request from the host, which is deferred during recovery.
    fn serve(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if !self.core_mut().metadata.defers(id, request) {
            self.accept(ctx, id, request);
            self.advance(ctx);
        }
    }

    /// Starts a request whose pages are locked.
    fn start_request(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.core_mut().charge_wait(ctx, slot);
        if !self.may_start(slot) {
            return;
        }
        match self.core().request(slot).op {
            Op::Read => self.start_read(ctx, slot),
            Op::Write => self.start_write(ctx, slot),
            Op::Trim => self.start_trim(ctx, slot),
            Op::Flush => self.start_flush(ctx, slot),
            Op::Zone(_) => unreachable!("the machine refuses zone commands here"),
        }
    }

    /// Looks up the pages of a read and reports hits and misses. Returns whether any is cached.
    fn look_up_read(&mut self, ctx: &mut Ctx<'_>, slot: u32) -> bool {
        let request = self.core().request(slot);
        let (first, last) = self.core().pages_of(slot);
        let mut hits = 0;
        // Most pages of a long request over a small cache need no look-up.
        let any_cached = self.core().directory.count(first, last) > 0;
        if any_cached {
            for page in first..=last {
                let directory = &self.core().directory;
                let Some(slot) = directory.find(page) else { continue };
                hits += u64::from(directory.has_sectors(slot, &request, page));
                self.page_read(CachedPage { page, slot });
            }
        }
        let misses = clamp(last - first + 1 - hits);
        ctx.emit(CacheEvent::CacheLookup { op: Op::Read, hits: clamp(hits), misses });
        any_cached
    }

    /// Looks up the pages of a write and reports hits and misses. Returns how many pages it has,
    /// and how many of them are cached.
    fn look_up_write(&mut self, ctx: &mut Ctx<'_>, slot: u32) -> (u64, u64) {
        let (first, last) = self.core().pages_of(slot);
        let (pages, cached) = (last - first + 1, self.core().directory.count(first, last));
        let (hits, misses) = (clamp(cached), clamp(pages - cached));
        ctx.emit(CacheEvent::CacheLookup { op: Op::Write, hits, misses });
        (pages, cached)
    }

    /// Enters a write into the directory; there are enough free pages.
    fn allocate_pages(&mut self, slot: u32) {
        let request = self.core().request(slot);
        let (first, last) = self.core().pages_of(slot);
        for page in first..=last {
            let directory = &mut self.core_mut().directory;
            let (slot, access) = match directory.find(page) {
                Some(slot) => (slot, Access::Write),
                None => (directory.add(page), Access::Add),
            };
            let (from, to) = directory.sectors_in(&request, page);
            directory.mark(slot, from, to);
            self.page_written(&request, CachedPage { page, slot }, access);
        }
    }

    /// Invalidates the cached sectors and passes the trim to the disk.
    fn start_trim(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.core().request(slot);
        self.invalidate(ctx, &request);
        self.execute_on_disk(ctx, slot);
    }

    /// Invalidates the sectors of a trim, or of a write that has bypassed the cache.
    fn invalidate(&mut self, ctx: &Ctx<'_>, request: &Request) {
        let core = self.core_mut();
        let (first, last) = core.directory.pages_of(request);
        let mut pages = std::mem::take(&mut core.listed);
        pages.clear();
        if last - first >= u64::from(core.directory.used()) {
            // Longer than the cache: the cached pages are fewer than those of the request.
            let inside = core.directory.iter().filter(|page| (first..=last).contains(&page.page));
            pages.extend(inside);
        } else {
            let cached = |page| Some(CachedPage { page, slot: core.directory.find(page)? });
            pages.extend((first..=last).filter_map(cached));
        }
        for &page in &pages {
            let core = self.core_mut();
            let (from, to) = core.directory.sectors_in(request, page.page);
            if request.op == Op::Trim && ctx.verifying() {
                let dropped = core.directory.slot(page.slot).valid & bits(from, to);
                core.trimmed.add(page.page, dropped);
            }
            if core.directory.unmark(page.slot, from, to) {
                core.directory.remove(page.slot);
                self.page_invalidated(page);
            }
        }
        self.core_mut().listed = pages;
    }

    /// A flush goes to both media. Flash keeps what it has acknowledged, so nothing is destaged.
    fn start_flush(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let parts = [Medium::Flash, Medium::Disk].map(|medium| SubRequest {
            medium,
            at: 0,
            sectors: 0,
            skip: 0,
        });
        let sub_requests = &mut self.core_mut().sub_requests;
        sub_requests.clear();
        sub_requests.extend(parts);
        self.execute(ctx, slot);
    }

    /// Splits a host request that has cached pages and issues its sub-requests.
    fn split_and_execute(&mut self, ctx: &mut Ctx<'_>, slot: u32, how: Split) {
        let core = self.core_mut();
        let Request { lba, sectors, .. } = core.request(slot);
        split(&core.directory, lba.0, sectors, how, &mut core.sub_requests);
        self.execute(ctx, slot);
    }

    /// Issues a host request without cached pages to the disk.
    fn execute_on_disk(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.core_mut().whole_to_disk(slot);
        self.execute(ctx, slot);
    }

    /// Issues the sub-requests at hand for a host request.
    fn execute(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.core_mut().executing += 1;
        self.send(ctx, slot);
    }

    /// Issues the sub-requests at hand for the request pending in `slot`.
    fn send(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let core = self.core_mut();
        let sub_requests = std::mem::take(&mut core.sub_requests);
        let pending = core.pending(slot);
        let request = pending.request;
        pending.outstanding = sub_requests.len() as u32;
        pending.since = ctx.now();
        debug_assert!(pending.outstanding > 0, "{request:?} has no sub-request");
        for part in &sub_requests {
            let request = request.part(part.skip, part.sectors, Lba(part.at));
            self.issue(ctx, part.medium, slot, request);
        }
        self.core_mut().sub_requests = sub_requests;
    }

    fn child_completed(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if self.core().metadata.recovering() {
            return self.metadata_read(ctx, done);
        }
        let slot = done.tag as u32;
        let core = self.core_mut();
        let pending = core.pending(slot);
        pending.outstanding -= 1;
        pending.failed |= done.failed();
        let pending = *pending;
        let to_flash = done.child == Medium::Flash as usize && done.request.op == Op::Write;
        if to_flash && !pending.failed {
            core.directory.acknowledge(done.request.lba.0, done.request.sectors);
        }
        self.sub_request_completed(ctx, &pending, done);
        if pending.outstanding == 0 {
            match pending.origin {
                Origin::Host(id) => self.complete(ctx, slot, id, done),
                _ => self.background_completed(ctx, slot),
            }
        }
        self.advance(ctx);
    }

    /// Completes a host request. Its queueing and service time are those of its last sub-request.
    fn complete(&mut self, ctx: &mut Ctx<'_>, slot: u32, id: RequestId, done: &Completion) {
        let core = self.core_mut();
        let pending = *core.pending(slot);
        let PendingRequest { request, since, waited, .. } = pending;
        match request.op {
            Op::Read => core.trimmed.hide(ctx, core.directory.page_sectors, &request),
            Op::Write => core.trimmed.written(core.directory.page_sectors, &request),
            Op::Trim | Op::Flush | Op::Zone(_) => {}
        }
        let queued = ctx.now().since(since) - done.latency;
        let mut breakdown = done.breakdown.plus(LatencyPhase::Queue, queued);
        for (phase, time) in waited.phases() {
            breakdown.add(phase, time);
        }
        let copy = self.before_completion(ctx, &pending);
        ctx.complete_as(id, breakdown, pending.failed);
        self.core_mut().executing -= 1;
        self.completed(ctx, slot, copy);
    }

    /// Releases the pages of a request that is done, and starts those that waited for them.
    fn close(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let core = self.core_mut();
        core.locks.release(slot);
        core.pending.remove(slot as usize);
        while let Some(next) = self.core_mut().locks.next_granted() {
            self.start_request(ctx, next);
        }
    }
}

impl<P: PagedPolicy> PagedController for P {}
