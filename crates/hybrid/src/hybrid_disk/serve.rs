//! Requests from above: when they may start, what they become, when they are done.

use super::HybridDisk;
use hybridsim_cache::CacheEvent;
use hybridsim_cache::paged::cache;
use hybridsim_cache::paged::cut::{Cut, Medium, Run, cut};
use hybridsim_cache::paged::flow::Entered;
use hybridsim_cache::replacement::{Access, CachedPage};
use hybridsim_engine::{
    Completion, Ctx, Flags, LatencyBreakdown, LatencyPhase, Lba, Op, Outcome, Request, RequestId,
    SimTime,
};

/// What a parent is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request from above.
    Request(RequestId),
    /// Cleaning some pages: reading them from flash.
    DestageRead,
    /// Cleaning some pages: writing them to the disk.
    DestageWrite,
    /// Cleaning some pages: noting on flash that they are free.
    JournalWrite,
}

/// Something that is done when all its runs are done.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    /// Why.
    pub kind: Kind,
    /// The request, or the pages that are cleaned.
    pub request: Request,
    /// Since when it has been doing what it does: waiting, or being executed.
    pub since: SimTime,
    /// What it waits for, as a part of its latency.
    pub waits: LatencyPhase,
    /// Its own waiting so far.
    pub own: LatencyBreakdown,
    /// Runs not done.
    pub left: u32,
    /// One of them failed.
    pub failed: bool,
}

impl HybridDisk {
    pub(super) fn open(&mut self, parent: Parent) -> u32 {
        self.parents.insert(parent) as u32
    }

    pub(super) fn parent(&mut self, slot: u32) -> &mut Parent {
        &mut self.parents[slot as usize]
    }

    /// A new request from above: starts, or waits behind conflicting ones.
    pub(super) fn take(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.present += 1;
        let slot = self.open(Parent {
            kind: Kind::Request(id),
            request: *request,
            // It may have come while the controller was recovering.
            since: ctx.issued(id),
            waits: LatencyPhase::Destage,
            own: LatencyBreakdown::NONE,
            left: 0,
            failed: false,
        });
        let exclusive = request.op != Op::Read;
        match self.flow.enter(slot, self.cache.pages_of(request), exclusive, false) {
            Entered::Free => self.start(ctx, slot),
            Entered::Blocked if !self.cleaning.gate_closed() => {
                self.parent(slot).waits = LatencyPhase::Queue;
            }
            Entered::Blocked | Entered::BlockedByCleaning => {}
        }
    }

    /// Nothing conflicts any more.
    fn start(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.charge_wait(ctx, slot);
        if self.cleaning.gate_closed() {
            self.parent(slot).waits = LatencyPhase::Destage;
            self.ready.push_back(slot);
            return;
        }
        match self.parent(slot).request.op {
            Op::Read => self.start_read(ctx, slot),
            Op::Write => self.start_write(ctx, slot),
            Op::Trim => self.start_trim(ctx, slot),
            Op::Flush => self.start_flush(ctx, slot),
        }
    }

    /// Books the time since the last change as waiting.
    fn charge_wait(&mut self, ctx: &Ctx<'_>, slot: u32) {
        let now = ctx.now();
        let parent = self.parent(slot);
        parent.own.add(parent.waits, now.since(parent.since));
        parent.since = now;
    }

    /// konanki, figure 4.8.
    fn start_read(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        let mut hits = 0;
        // Of a long request over a small cache, most pages need not be looked at.
        if self.cache.used() > 0 && self.cache.count(first, last) > 0 {
            for page in first..=last {
                let Some(at) = self.cache.find(page) else { continue };
                let (from, to) = self.cache.sectors_in(&request, page);
                let wanted = cache::bits(from, to);
                hits += u32::from(self.cache.slot(at).valid & wanted == wanted);
                self.used(page, at, Access::Read);
            }
        }
        let misses = clamp(last - first + 1).saturating_sub(hits);
        ctx.emit(CacheEvent::CacheLookup { op: Op::Read, hits, misses });
        self.cut_and_execute(ctx, slot, Cut::Read);
    }

    fn is_pinned(&self, request: &Request) -> bool {
        let inside = |(first, end): &(u64, u64)| *first <= request.lba.0 && request.end().0 <= *end;
        request.flags.contains(Flags::PIN) || self.pinned.iter().any(inside)
    }

    fn used(&mut self, page: u64, slot: u32, access: Access) {
        if !self.cache.slot(slot).pinned {
            self.policies.replacement.update(CachedPage { page, slot }, access);
        }
    }

    /// konanki, figure 4.9; room for all pages is made before the first is written.
    fn start_write(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        let pages = last - first + 1;
        let cached = self.cache.count(first, last);
        let (hits, misses) = (clamp(cached), clamp(pages - cached));
        ctx.emit(CacheEvent::CacheLookup { op: Op::Write, hits, misses });
        let pinned = self.is_pinned(&request);
        if !pinned && !self.policies.admission.admit(&request, pages, cached) {
            self.go_round(ctx, slot);
            return;
        }
        let needed = pages - cached;
        if needed > u64::from(self.cache.pages) {
            self.go_round(ctx, slot);
        } else if needed > 0
            && (needed > u64::from(self.cache.free()) || !self.short_of_space.is_empty())
        {
            self.parent(slot).waits = LatencyPhase::Destage;
            self.short_of_space.push_back(slot);
        } else {
            self.write_to_flash(ctx, slot);
        }
    }

    /// Free pages a write needs now; cleaning may have taken pages of its range away.
    pub(super) fn pages_needed(&mut self, slot: u32) -> u64 {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        last - first + 1 - self.cache.count(first, last)
    }

    /// Tells the policy which pages it is to make room for.
    pub(super) fn expect_pages(&mut self, slot: u32) {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        for page in first..=last {
            if self.cache.find(page).is_none() {
                self.policies.replacement.expect(page);
            }
        }
    }

    /// A write that waited for space gets it.
    pub(super) fn write_after_wait(&mut self, ctx: &mut Ctx<'_>, slot: u32, fits: bool) {
        self.charge_wait(ctx, slot);
        if fits { self.write_to_flash(ctx, slot) } else { self.go_round(ctx, slot) }
    }

    fn write_to_flash(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        let pin = self.is_pinned(&request);
        for page in first..=last {
            let (at, access) = match self.cache.find(page) {
                Some(at) => (at, Access::Write),
                None => (self.cache.add(page), Access::Add),
            };
            let (from, to) = self.cache.sectors_in(&request, page);
            self.cache.mark(at, from, to);
            if pin && self.cache.pin(at) {
                self.policies.replacement.remove(CachedPage { page, slot: at });
            }
            self.used(page, at, access);
        }
        self.cut_and_execute(ctx, slot, self.write_cut);
    }

    /// Pages that are cached are written to flash all the same, so that flash stays newest.
    fn go_round(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.parent(slot).request;
        ctx.emit(CacheEvent::Bypassed { op: request.op, sectors: request.sectors });
        let (first, last) = self.cache.pages_of(&request);
        if self.cache.count(first, last) > 0 {
            for page in first..=last {
                let Some(at) = self.cache.find(page) else { continue };
                let (from, to) = self.cache.sectors_in(&request, page);
                self.cache.mark(at, from, to);
                self.used(page, at, Access::Write);
            }
        }
        self.cut_and_execute(ctx, slot, Cut::Write);
    }

    fn start_trim(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        if last - first >= u64::from(self.cache.used()) {
            // Longer than the cache: go through the cache instead.
            let inside = self.cache.iter().filter(|page| (first..=last).contains(&page.page));
            let inside: Vec<CachedPage> = inside.collect();
            inside.into_iter().for_each(|page| self.drop_sectors(ctx, &request, page));
        } else {
            for page in first..=last {
                if let Some(slot) = self.cache.find(page) {
                    self.drop_sectors(ctx, &request, CachedPage { page, slot });
                }
            }
        }
        self.runs.clear();
        let (at, sectors) = (request.lba.0, request.sectors);
        self.runs.push(Run { medium: Medium::Disk, at, sectors, skip: 0 });
        self.execute(ctx, slot);
    }

    fn drop_sectors(&mut self, ctx: &Ctx<'_>, request: &Request, page: CachedPage) {
        let (from, to) = self.cache.sectors_in(request, page.page);
        if ctx.verifying() {
            let dropped = self.cache.slot(page.slot).valid & cache::bits(from, to);
            self.trimmed.add(page.page, dropped);
        }
        if self.cache.unmark(page.slot, from, to) {
            self.policies.replacement.remove(page);
            self.cache.remove(page.slot);
        }
    }

    fn start_flush(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.runs.clear();
        for medium in [Medium::Flash, Medium::Disk] {
            self.runs.push(Run { medium, at: 0, sectors: 0, skip: 0 });
        }
        self.execute(ctx, slot);
    }

    fn cut_and_execute(&mut self, ctx: &mut Ctx<'_>, slot: u32, how: Cut) {
        let request = self.parent(slot).request;
        let Request { lba, sectors, .. } = request;
        let (first, last) = self.cache.pages_of(&request);
        if how != Cut::Cached && self.cache.count(first, last) == 0 {
            self.runs.clear();
            self.runs.push(Run { medium: Medium::Disk, at: lba.0, sectors, skip: 0 });
            self.execute(ctx, slot);
            return;
        }
        cut(&self.cache, lba.0, sectors, how, &mut self.runs);
        self.execute(ctx, slot);
    }

    fn execute(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.executing += 1;
        let request = self.parent(slot).request;
        self.send(ctx, slot, &request);
    }

    /// Puts the runs of `request` into the dispatch queues.
    pub(super) fn send(&mut self, ctx: &Ctx<'_>, slot: u32, request: &Request) {
        let parent = &mut self.parents[slot as usize];
        parent.left = self.runs.len() as u32;
        parent.since = ctx.now();
        debug_assert!(parent.left > 0, "{request:?} became nothing");
        for run in &self.runs {
            let part = request.part(run.skip, run.sectors, Lba(run.at));
            self.lanes[run.medium as usize].push(ctx, slot, part);
        }
    }

    /// A run is done.
    pub(super) fn child_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let slot = done.tag as u32;
        let parent = self.parent(slot);
        parent.left -= 1;
        parent.failed |= done.outcome == Outcome::Failed;
        let (kind, left, failed) = (parent.kind, parent.left, parent.failed);
        if done.child == Medium::Flash as usize && done.request.op == Op::Write && !failed {
            self.cache.acknowledge(done.request.lba.0, done.request.sectors);
        }
        if kind == Kind::DestageWrite {
            ctx.emit(CacheEvent::Destaged { sectors: done.request.sectors });
        }
        if left > 0 {
            return;
        }
        match kind {
            Kind::Request(id) => self.finish_request(ctx, slot, id, done),
            Kind::DestageRead => self.destage_write(ctx, slot),
            Kind::DestageWrite if self.durability.journals() && !failed => {
                self.journal_write(ctx, slot);
            }
            Kind::DestageWrite | Kind::JournalWrite => self.destage_end(ctx, slot),
        }
    }

    /// The last run decides: its time in the dispatch queue and at the medium are the request's.
    fn finish_request(&mut self, ctx: &mut Ctx<'_>, slot: u32, id: RequestId, done: &Completion) {
        let now = ctx.now();
        let Parent { own, since, failed, request, .. } = *self.parent(slot);
        match request.op {
            Op::Read => self.trimmed.hide(ctx, self.cache.page_sectors, &request),
            Op::Write => self.trimmed.written(self.cache.page_sectors, &request),
            Op::Trim | Op::Flush => {}
        }
        let mut breakdown =
            done.breakdown.plus(LatencyPhase::Queue, now.since(since) - done.latency);
        for part in LatencyPhase::ALL {
            breakdown.add(part, own.get(part));
        }
        if failed {
            ctx.fail_request(id, breakdown);
        } else {
            ctx.complete(id, breakdown);
        }
        self.executing -= 1;
        self.present -= 1;
        self.idle_since = now;
        self.leave(ctx, slot);
    }

    /// Gives up its pages and its name; starts those who waited for it.
    pub(super) fn leave(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.flow.leave(slot);
        self.parents.remove(slot as usize);
        while let Some(next) = self.flow.next_unblocked() {
            self.start(ctx, next);
        }
    }

    /// Brings everything forward that can go forward; the end of every message.
    pub(super) fn settle(&mut self, ctx: &mut Ctx<'_>) {
        loop {
            self.make_space(ctx);
            if !self.cleaning.gate_closed()
                && let Some(slot) = self.ready.pop_front()
            {
                self.start(ctx, slot);
                continue;
            }
            self.clean_in_background(ctx);
            if !self.advance_cleaning(ctx) {
                break;
            }
        }
        let pages = self.cache.used();
        if pages != self.dirty_told {
            self.dirty_told = pages;
            ctx.emit(CacheEvent::DirtyPages { pages });
        }
        self.set_idle_timer(ctx);
        self.lanes.iter_mut().for_each(|lane| lane.dispatch(ctx));
    }
}

fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
