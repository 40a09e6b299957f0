//! Reads, writes, and requests passed to the device.

use super::{MemoryCache, Prefetch, Scheme};
use crate::event::CacheEvent;
use hybridsim_engine::{Ctx, Flags, Lba, Op, Outcome, Request};

impl MemoryCache {
    /// Begins an operation that has its locks; returns `false` when it has to wait for free pages.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let request = self.ops[index as usize].request;
        let large = self.numbers(&request).count() > self.pages.count();
        let forced = request.flags.contains(Flags::FUA);
        match request.op {
            Op::Read => self.begin_read(ctx, index),
            Op::Write if self.keeps_writes() && !forced && !large => {
                self.write_pages(ctx, index) || (self.broken && self.begin_through(ctx, index))
            }
            _ => self.begin_through(ctx, index),
        }
    }

    /// Whether a write completes in the cache.
    pub(super) fn keeps_writes(&self) -> bool {
        matches!(self.params.write_scheme, Scheme::Back | Scheme::Early)
    }

    /// Pins the cached pages of an operation until [`MemoryCache::unpin`].
    pub(super) fn pin(&mut self, index: u32, request: &Request) {
        for number in self.numbers(request) {
            if let Some(slot) = self.pages.find(number) {
                self.pin_slot(index, slot);
            }
        }
    }

    pub(super) fn pin_slot(&mut self, index: u32, slot: u32) {
        self.pages.change(slot, |page| page.pins += 1);
        self.pinned[index as usize].push(slot);
    }

    pub(super) fn unpin(&mut self, index: u32) {
        while let Some(slot) = self.pinned[index as usize].pop() {
            self.pages.change(slot, |page| page.pins -= 1);
        }
    }

    pub(super) fn begin_read(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let request = self.ops[index as usize].request;
        let (lba, end) = (request.lba.0, request.end().0);
        let (mut first, mut last, mut hits, mut misses) = (u64::MAX, 0, 0, 0);
        for number in self.numbers(&request) {
            let wanted = self.bits_of(number, lba, end);
            let held = self.pages.find(number).map_or(0, |slot| self.pages.get(slot).valid);
            let missing = wanted & !held;
            if missing == 0 {
                hits += 1;
                continue;
            }
            misses += 1;
            let start = number * self.page_sectors;
            first = first.min(start + u64::from(missing.trailing_zeros()));
            last = last.max(start + 64 - u64::from(missing.leading_zeros()));
        }
        if misses > 0
            && self.params.reads_wait
            && !self.broken
            && !self.can_allocate(ctx, index, &request)
        {
            return false;
        }
        ctx.emit(CacheEvent::CacheLookup { op: Op::Read, hits, misses });
        if misses == 0 {
            self.answer(ctx, index);
            return true;
        }
        // Its pages that are cached have been used, too, whatever is missing of the others.
        self.touch(&request);
        let step = self.page_sectors;
        if matches!(self.params.read_prefetch, Prefetch::RestOfPage | Prefetch::WholePage) {
            last = last.next_multiple_of(step).min(self.capacity);
        }
        if matches!(self.params.read_prefetch, Prefetch::FrontOfPage | Prefetch::WholePage) {
            first = first / step * step;
        }
        if self.params.reads_wait && self.numbers(&request).count() <= self.pages.count() {
            // Reserves the pages it has waited for.
            self.numbers(&request).for_each(|number| _ = self.pages.allocate(number));
        }
        self.pin(index, &request);
        let sectors = (last - first) as u32;
        let data = ctx.take_data(sectors);
        let fetch = Request { lba: Lba(first), sectors, data, ..request };
        ctx.issue(0, fetch, u64::from(index));
        true
    }

    /// Completes a read whose sectors are all cached.
    pub(super) fn answer(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let request = self.ops[index as usize].request;
        self.touch(&request);
        if ctx.verifying() {
            let versions = ctx.data().versions_mut(request.data, request.sectors);
            self.contents.read(request.lba.0, versions);
        }
        self.finish(ctx, index, Outcome::Done);
    }

    /// The cached pages of a request have been used.
    fn touch(&mut self, request: &Request) {
        for number in self.numbers(request) {
            if let Some(slot) = self.pages.find(number) {
                self.pages.touch(slot);
            }
        }
    }

    /// The missing sectors have been fetched: caches them as far as pages can be allocated.
    pub(super) fn fetched(&mut self, ctx: &mut Ctx<'_>, index: u32, fetch: &Request) {
        let request = self.ops[index as usize].request;
        let (from, end) = (fetch.lba.0, fetch.end().0);
        for number in self.numbers(fetch) {
            let held = self.pages.find(number).map_or(0, |slot| self.pages.get(slot).valid);
            let new = self.bits_of(number, from, end) & !held;
            let locked = self.numbers(&request).contains(&number);
            if new == 0 || !locked {
                continue;
            }
            self.fill(ctx, number, new, fetch);
            if let Some(slot) = self.pages.allocate(number) {
                self.pages.change(slot, |page| page.valid |= new);
            }
        }
        // Pinned until here: cached sectors may be newer than those fetched during a write-back.
        self.unpin(index);
        if ctx.verifying() {
            let versions = ctx.data().versions_mut(request.data, request.sectors);
            self.contents.read(request.lba.0, versions);
        }
        ctx.data().give_back(fetch.data);
        self.finish(ctx, index, Outcome::Done);
    }

    /// Evicts the pages of a request that have no valid sector.
    pub(super) fn drop_empty(&mut self, request: &Request) {
        for number in self.numbers(request) {
            if let Some(slot) = self.pages.find(number)
                && self.pages.get(slot).valid == 0
            {
                self.pages.evict(slot);
            }
        }
    }

    /// Copies data versions of `sectors` of a page from a request.
    pub(super) fn fill(&mut self, ctx: &mut Ctx<'_>, number: u64, sectors: u64, from: &Request) {
        if from.data.is_none() {
            return;
        }
        let start = number * self.page_sectors;
        for bit in (0..self.page_sectors).filter(|bit| sectors >> bit & 1 == 1) {
            let source = from.data.skip((start + bit - from.lba.0) as u32);
            self.contents.write(start + bit, ctx.data().versions(source, 1));
        }
    }

    /// Whether all pages of a request can be allocated; if not, starts write-backs.
    pub(super) fn can_allocate(
        &mut self,
        ctx: &mut Ctx<'_>,
        index: u32,
        request: &Request,
    ) -> bool {
        if self.ops[index as usize].awaits.is_some() {
            return false;
        }
        // Its own pages must not be evicted for it.
        self.pin(index, request);
        let lacking = self.numbers(request).filter(|it| self.pages.find(*it).is_none()).count();
        // A request larger than the cache takes the pages there are.
        let large = self.numbers(request).count() > self.pages.count();
        let fits = large || lacking <= self.pages.available();
        let dirty_victim = self.pages.first_dirty_victim(lacking).filter(|_| !large && fits);
        self.unpin(index);
        if let Some(slot) = dirty_victim {
            self.ops[index as usize].awaits = Some(self.write_page(ctx, slot));
            return false;
        }
        if !fits {
            // Writes are numbered consecutively, so this covers about as many pages as are needed.
            if let Some((oldest, _)) = self.pages.oldest_dirty() {
                self.wanted = self.wanted.max(oldest + lacking as u64);
            }
        }
        fits
    }

    /// Writes to the cache; returns `false` when not all pages can be allocated.
    pub(super) fn write_pages(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let request = self.ops[index as usize].request;
        if !self.can_allocate(ctx, index, &request) {
            return false;
        }
        self.pin(index, &request);
        let (lba, end) = (request.lba.0, request.end().0);
        let (mut hits, mut misses) = (0, 0);
        // Allocates all pages before touching any, because that changes the eviction order.
        for number in self.numbers(&request) {
            if self.pages.find(number).is_some() {
                hits += 1;
                continue;
            }
            misses += 1;
            let slot = self.pages.allocate(number).expect("room was counted");
            self.pin_slot(index, slot);
        }
        for number in self.numbers(&request) {
            let slot = self.pages.find(number).expect("it was held or has just been had");
            let new = self.bits_of(number, lba, end);
            self.fill(ctx, number, new, &request);
            self.pages.change(slot, |page| {
                page.valid |= new;
                page.dirty |= new;
            });
            self.pages.touch(slot);
        }
        self.unpin(index);
        if self.params.write_scheme == Scheme::Early {
            self.wanted = self.pages.writes();
        }
        ctx.emit(CacheEvent::CacheLookup { op: Op::Write, hits, misses });
        self.finish(ctx, index, Outcome::Done);
        true
    }

    /// Passes a request to the device; returns `false` while any of its pages is written back.
    pub(super) fn begin_through(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let request = self.ops[index as usize].request;
        let (mut hits, mut misses) = (0, 0);
        for number in self.numbers(&request) {
            match self.pages.find(number) {
                Some(slot) if self.pages.get(slot).flushing => return false,
                Some(_) => hits += 1,
                None => misses += 1,
            }
        }
        if request.op == Op::Write {
            ctx.emit(CacheEvent::CacheLookup { op: Op::Write, hits, misses });
        }
        self.pin(index, &request);
        ctx.issue(0, request, u64::from(index));
        true
    }

    /// The device has completed a request passed to it: updates or invalidates its pages.
    pub(super) fn went_through(&mut self, ctx: &mut Ctx<'_>, index: u32, outcome: Outcome) {
        let request = self.ops[index as usize].request;
        self.unpin(index);
        let (lba, end) = (request.lba.0, request.end().0);
        let keeps = request.op == Op::Write
            && outcome == Outcome::Done
            && self.params.write_scheme != Scheme::Sync
            && self.numbers(&request).count() <= self.pages.count();
        for number in self.numbers(&request) {
            let new = self.bits_of(number, lba, end);
            let slot = match self.pages.find(number) {
                None if keeps => self.pages.allocate(number),
                found => found,
            };
            let Some(slot) = slot else { continue };
            if keeps {
                self.fill(ctx, number, new, &request);
            }
            // A device may ignore a trim. Dirty sectors are written back all the same, so that it
            // does not return data older than the last write.
            let lost = match (request.op, outcome) {
                (_, Outcome::Failed) => 0,
                (Op::Trim, _) => new & !self.pages.get(slot).dirty,
                _ => new,
            };
            self.pages.change(slot, |page| {
                page.dirty &= !lost;
                page.valid = if keeps { page.valid | new } else { page.valid & !lost };
            });
            if keeps {
                self.pages.touch(slot);
            } else if self.pages.get(slot).valid == 0 {
                self.pages.evict(slot);
            }
        }
        self.finish(ctx, index, outcome);
    }
}
