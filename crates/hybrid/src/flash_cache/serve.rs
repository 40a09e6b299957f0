//! Requests from above (op-fcl, page replacer).

use super::sides::Why;
use super::{FlashCache, Scheme};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::paged::cache::bits;
use hybridsim_cache::paged::cut::{Cut, Medium, Run, cut};
use hybridsim_cache::paged::flow::Entered;
use hybridsim_cache::replacement::CachedPage;
use hybridsim_engine::{
    Completion, Ctx, Flags, LatencyBreakdown, LatencyPhase, Lba, Op, Outcome, Request, RequestId,
    SimTime,
};

/// What a parent is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request from above; whether it is part of a sequential stream.
    Request(RequestId, bool),
    /// Writing to flash what was read from the disk.
    Stage,
    /// Reading from flash what is to be written back.
    DestageRead,
    /// Writing it to the disk.
    DestageWrite,
    /// Telling flash what it need not keep.
    Trim,
    /// Writing a page of the map.
    Map,
}

/// Something that is done when all its runs are done.
#[derive(Clone, Copy, Debug)]
pub struct Parent {
    pub(super) kind: Kind,
    pub(super) request: Request,
    /// Since when it has been doing what it does.
    since: SimTime,
    /// What it waits for.
    waits: LatencyPhase,
    /// Its own waiting so far.
    own: LatencyBreakdown,
    /// Runs not done.
    pub(super) left: u32,
    pub(super) failed: bool,
}

impl FlashCache {
    pub(super) fn open(&mut self, kind: Kind, request: Request, since: SimTime) -> u32 {
        let waits = LatencyPhase::Queue;
        let parent = Parent {
            kind,
            request,
            since,
            waits,
            own: LatencyBreakdown::NONE,
            left: 0,
            failed: false,
        };
        self.parents.insert(parent) as u32
    }

    pub(super) fn parent(&mut self, slot: u32) -> &mut Parent {
        &mut self.parents[slot as usize]
    }

    /// A new request from above: starts, or waits behind conflicting ones.
    pub(super) fn take(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let moves_data = matches!(request.op, Op::Read | Op::Write);
        let sequential = moves_data && self.streams.is_sequential(request);
        let slot = self.open(Kind::Request(id, sequential), *request, ctx.issued(id));
        // Reads may put what they read into the cache, so they exclude each other too.
        if self.flow.enter(slot, self.cache.pages_of(request), true, false) == Entered::Free {
            self.start(ctx, slot);
        }
    }

    /// Nothing conflicts any more.
    fn start(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.charge_wait(ctx, slot);
        let Parent { kind, request, .. } = *self.parent(slot);
        let sequential = kind_is_sequential(kind);
        match request.op {
            Op::Read => self.start_read(ctx, slot, sequential),
            Op::Write => self.start_write(ctx, slot, sequential),
            Op::Trim => self.start_trim(ctx, slot),
            Op::Flush => {
                self.runs.clear();
                for medium in [Medium::Flash, Medium::Disk] {
                    self.runs.push(Run { medium, at: 0, sectors: 0, skip: 0 });
                }
                self.execute(ctx, slot);
            }
        }
    }

    /// Books the time since the last change as waiting.
    fn charge_wait(&mut self, ctx: &Ctx<'_>, slot: u32) {
        let now = ctx.now();
        let parent = self.parent(slot);
        parent.own.add(parent.waits, now.since(parent.since));
        parent.since = now;
    }

    /// Notes the pages of a request that is no part of a stream.
    fn track(&mut self, ctx: &mut Ctx<'_>, request: &Request) {
        let (first, last) = self.cache.pages_of(request);
        for page in first..=last {
            self.tracker.refer(request.op, page);
        }
        self.account(ctx, last - first + 1);
    }

    fn start_read(&mut self, ctx: &mut Ctx<'_>, slot: u32, sequential: bool) {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        if !sequential {
            self.track(ctx, &request);
        }
        let mut hits = 0;
        if self.cache.count(first, last) > 0 {
            for page in first..=last {
                let Some(at) = self.cache.find(page) else { continue };
                let (from, to) = self.cache.sectors_in(&request, page);
                let wanted = bits(from, to);
                hits += u64::from(self.cache.slot(at).valid & wanted == wanted);
                self.sides.read(CachedPage { page, slot: at });
            }
        }
        let misses = clamp(last - first + 1 - hits);
        ctx.emit(CacheEvent::CacheLookup { op: Op::Read, hits: clamp(hits), misses });
        if sequential {
            ctx.emit(CacheEvent::Bypassed { op: Op::Read, sectors: request.sectors });
        }
        cut(&self.cache, request.lba.0, request.sectors, Cut::Read, &mut self.runs);
        self.execute(ctx, slot);
    }

    fn start_write(&mut self, ctx: &mut Ctx<'_>, slot: u32, sequential: bool) {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        let pages = last - first + 1;
        let hits = self.cache.count(first, last);
        let (hits, misses) = (clamp(hits), clamp(pages - hits));
        ctx.emit(CacheEvent::CacheLookup { op: Op::Write, hits, misses });
        if !sequential {
            self.track(ctx, &request);
        }
        let room = match self.scheme {
            Scheme::Fixed => self.limit(),
            _ => self.limits.write,
        };
        if sequential || pages > room.min(u64::from(self.cache.pages)) {
            self.go_round(ctx, slot);
        } else if self.short_of_space.is_empty() {
            self.write_or_wait(ctx, slot);
        } else {
            self.parent(slot).waits = LatencyPhase::Destage;
            self.short_of_space.push_back(slot);
        }
    }

    /// Dirty pages a write adds, and slots it needs for them.
    fn needs(&mut self, slot: u32) -> (u64, u64) {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        let (mut more, mut new) = (0, 0);
        for page in first..=last {
            match self.cache.find(page) {
                Some(at) if self.sides.is_dirty(at) => {}
                Some(_) => more += 1,
                None => {
                    (more, new) = (more + 1, new + 1);
                    self.sides.expect(page, true);
                }
            }
        }
        (more, new)
    }

    fn write_or_wait(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let (more, new) = self.needs(slot);
        if self.make_room(ctx, more, new) {
            self.write_to_flash(ctx, slot);
        } else if self.destaging > 0 || self.executing > 0 {
            self.parent(slot).waits = LatencyPhase::Destage;
            self.short_of_space.push_front(slot);
        } else {
            self.go_round(ctx, slot);
        }
    }

    fn write_to_flash(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let request = self.parent(slot).request;
        let (first, last) = self.cache.pages_of(&request);
        for page in first..=last {
            let at = match self.cache.find(page) {
                Some(at) => {
                    self.sides.written(CachedPage { page, slot: at });
                    at
                }
                None => {
                    let at = self.cache.add(page);
                    self.sides.add(CachedPage { page, slot: at }, true);
                    at
                }
            };
            let (from, to) = self.cache.sectors_in(&request, page);
            self.cache.mark(at, from, to);
        }
        self.write_map(ctx, last - first + 1);
        cut(&self.cache, request.lba.0, request.sectors, Cut::Write, &mut self.runs);
        self.execute(ctx, slot);
    }

    /// Straight to the disk; what flash has of it is forgotten when the disk has it.
    fn go_round(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let (first, last) = self.cache.pages_of(&self.parents[slot as usize].request);
        let holds_some = self.cache.count(first, last) > 0;
        let parent = self.parent(slot);
        if let Kind::Request(id, _) = parent.kind {
            parent.kind = Kind::Request(id, true);
        }
        if holds_some {
            // What flash has may have been flushed: it must not go for what a buffer may lose.
            parent.request.flags = parent.request.flags.with(Flags::FUA);
        }
        let Request { op, lba, sectors, .. } = parent.request;
        ctx.emit(CacheEvent::Bypassed { op, sectors });
        self.runs.clear();
        self.runs.push(Run { medium: Medium::Disk, at: lba.0, sectors, skip: 0 });
        self.execute(ctx, slot);
    }

    fn start_trim(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let Request { lba, sectors, .. } = self.parent(slot).request;
        let request = self.parent(slot).request;
        self.drop_range(ctx, &request, true);
        self.runs.clear();
        self.runs.push(Run { medium: Medium::Disk, at: lba.0, sectors, skip: 0 });
        self.execute(ctx, slot);
    }

    /// Flash no longer has the newest of a range.
    fn drop_range(&mut self, ctx: &Ctx<'_>, request: &Request, trims: bool) {
        let (first, last) = self.cache.pages_of(request);
        let mut inside = std::mem::take(&mut self.listed);
        inside.clear();
        if last - first >= u64::from(self.cache.used()) {
            inside.extend(self.cache.iter().filter(|page| (first..=last).contains(&page.page)));
        } else {
            let find = |page| self.cache.find(page).map(|slot| CachedPage { page, slot });
            inside.extend((first..=last).filter_map(find));
        }
        for &page in &inside {
            let (from, to) = self.cache.sectors_in(request, page.page);
            if trims && ctx.verifying() {
                let dropped = self.cache.slot(page.slot).valid & bits(from, to);
                self.trimmed.add(page.page, dropped);
            }
            if self.cache.unmark(page.slot, from, to) {
                self.sides.leaves(page, Why::NoLongerHere);
                self.cache.remove(page.slot);
            }
        }
        self.listed = inside;
    }

    fn execute(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.executing += 1;
        let request = self.parent(slot).request;
        self.send(ctx, slot, &request);
    }

    /// Sends the runs of `request`.
    pub(super) fn send(&mut self, ctx: &mut Ctx<'_>, slot: u32, request: &Request) {
        let parent = &mut self.parents[slot as usize];
        parent.left = self.runs.len() as u32;
        parent.since = ctx.now();
        debug_assert!(parent.left > 0, "{request:?} became nothing");
        for run in &self.runs {
            let part = request.part(run.skip, run.sectors, Lba(run.at));
            ctx.issue(run.medium as usize, part, u64::from(slot));
        }
    }

    /// A run is done.
    pub(super) fn child_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let slot = done.tag as u32;
        let parent = self.parent(slot);
        parent.left -= 1;
        parent.failed |= done.outcome == Outcome::Failed;
        let Parent { kind, left, failed, request, .. } = *parent;
        if let Some(observed) = &mut self.observed
            && !kind_is_sequential(kind)
        {
            observed.note(done, self.cache.page_sectors);
        }
        let wrote = done.child == Medium::Flash as usize && done.request.op == Op::Write;
        if wrote && !failed && kind != Kind::Map {
            self.cache.acknowledge(done.request.lba.0, done.request.sectors);
        }
        if left > 0 {
            return;
        }
        match kind {
            Kind::Request(id, sequential) => self.finish(ctx, slot, id, sequential, done),
            Kind::Stage => {
                self.give_back(ctx, request.data);
                self.leave(ctx, slot);
            }
            // What could not be read must not be written over what the disk has.
            Kind::DestageRead if failed => self.destage_end(ctx, slot),
            Kind::DestageRead => self.destage_write(ctx, slot),
            Kind::DestageWrite => self.destage_end(ctx, slot),
            Kind::Trim => {
                self.trimmed_slots(&request);
                self.parents.remove(slot as usize);
            }
            Kind::Map => {
                self.give_back(ctx, request.data);
                self.parents.remove(slot as usize);
            }
        }
    }

    /// The last run decides: its time at the medium is the request's.
    fn finish(
        &mut self,
        ctx: &mut Ctx<'_>,
        slot: u32,
        id: RequestId,
        sequential: bool,
        done: &Completion,
    ) {
        let now = ctx.now();
        let Parent { own, since, failed, request, .. } = *self.parent(slot);
        match request.op {
            Op::Read => self.trimmed.hide(ctx, self.cache.page_sectors, &request),
            Op::Write => {
                if sequential && !failed {
                    self.drop_range(ctx, &request, false);
                }
                self.trimmed.written(self.cache.page_sectors, &request);
            }
            Op::Trim | Op::Flush => {}
        }
        let mut breakdown =
            done.breakdown.plus(LatencyPhase::Queue, now.since(since) - done.latency);
        for part in LatencyPhase::ALL {
            breakdown.add(part, own.get(part));
        }
        let stages = request.op == Op::Read && !sequential && !failed;
        let staged = if stages { self.copy_of(ctx, &request) } else { None };
        if failed {
            ctx.fail_request(id, breakdown);
        } else {
            ctx.complete(id, breakdown);
        }
        self.executing -= 1;
        self.ahead.served(ctx.now());
        if request.op != Op::Flush {
            let (first, last) = self.cache.pages_of(&request);
            self.resizer.count(last - first + 1);
        }
        match staged {
            Some(copy) => self.stage(ctx, slot, copy),
            None => self.leave(ctx, slot),
        }
    }

    /// A request of the cache's own with what a read brought, if any of its pages is not cached.
    fn copy_of(&mut self, ctx: &mut Ctx<'_>, request: &Request) -> Option<Request> {
        let (first, last) = self.cache.pages_of(request);
        if self.cache.count(first, last) == last - first + 1 {
            return None;
        }
        let mut copy = Request { op: Op::Write, flags: Flags::BACKGROUND, ..*request };
        copy.data = ctx.take_data(request.sectors);
        if ctx.verifying() {
            // Verified runs only.
            let stamps = ctx.data().stamps(request.data, request.sectors).to_vec();
            ctx.data().stamps_mut(copy.data, request.sectors).copy_from_slice(&stamps);
        }
        Some(copy)
    }

    /// Puts what was read into the cache, as far as there is room without writing back.
    fn stage(&mut self, ctx: &mut Ctx<'_>, slot: u32, copy: Request) {
        self.runs.clear();
        let (first, last) = self.cache.pages_of(&copy);
        let mut pages = 0;
        for page in first..=last {
            if self.cache.find(page).is_some() || !self.room_for_clean(page) {
                continue;
            }
            let (from, to) = self.cache.sectors_in(&copy, page);
            let at = self.cache.add(page);
            self.cache.mark(at, from, to);
            self.sides.add(CachedPage { page, slot: at }, false);
            let size = self.cache.page_sectors;
            let run = Run {
                medium: Medium::Flash,
                at: u64::from(at) * size + from,
                sectors: (to - from) as u32,
                skip: (page * size + from - copy.lba.0) as u32,
            };
            self.runs.push(run);
            pages += 1;
        }
        *self.parent(slot) = Parent { kind: Kind::Stage, request: copy, ..*self.parent(slot) };
        if self.runs.is_empty() {
            self.give_back(ctx, copy.data);
            self.leave(ctx, slot);
            return;
        }
        self.send(ctx, slot, &copy);
        self.write_map(ctx, pages);
    }

    /// Makes room for a clean page by dropping another, if there is none.
    fn room_for_clean(&mut self, page: u64) -> bool {
        let (clean, dirty) = (self.sides.clean.len(), self.sides.dirty.len());
        let full = match self.scheme {
            Scheme::Fixed => clean + dirty >= self.limit(),
            _ => clean >= self.limits.read,
        };
        if full || self.cache.free() == 0 {
            self.sides.expect(page, false);
            return self.drop_clean_page() && self.cache.free() > 0;
        }
        true
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
        while let Some(slot) = self.short_of_space.pop_front() {
            self.charge_wait(ctx, slot);
            let before = self.short_of_space.len();
            self.write_or_wait(ctx, slot);
            if self.short_of_space.len() > before {
                break;
            }
        }
        self.resize(ctx);
        self.set_ahead_timer(ctx);
        let pages = self.sides.dirty.len() as u32;
        if pages != self.dirty_told {
            self.dirty_told = pages;
            ctx.emit(CacheEvent::DirtyPages { pages });
        }
    }
}

const fn kind_is_sequential(kind: Kind) -> bool {
    matches!(kind, Kind::Request(_, true))
}

fn clamp(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
