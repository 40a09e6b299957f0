//! Reads, writes and what goes to the device at once.

use super::{MemoryCache, Prefetch, Scheme};
use crate::event::CacheEvent;
use hybridsim_engine::{Ctx, Flags, Lba, Op, Outcome, Request};

impl MemoryCache {
    /// Begins an operation that holds its locks; `false` when it has to wait for lines.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let request = self.ops[index as usize].request;
        let large = self.numbers(&request).count() > self.lines.count();
        let forced = request.flags.contains(Flags::FUA);
        match request.op {
            Op::Read => self.begin_read(ctx, index),
            Op::Write if self.keeps_writes() && !forced && !large => {
                self.write_lines(ctx, index) || (self.broken && self.begin_through(ctx, index))
            }
            _ => self.begin_through(ctx, index),
        }
    }

    /// Whether a write is complete once it is in the cache.
    pub(super) fn keeps_writes(&self) -> bool {
        matches!(self.scheme, Scheme::Back | Scheme::Early)
    }

    /// Makes the lines an operation has stay until [`MemoryCache::unpin`].
    pub(super) fn pin(&mut self, index: u32, request: &Request) {
        for number in self.numbers(request) {
            if let Some(slot) = self.lines.find(number) {
                self.pin_slot(index, slot);
            }
        }
    }

    pub(super) fn pin_slot(&mut self, index: u32, slot: u32) {
        self.lines.change(slot, |line| line.pins += 1);
        self.pinned[index as usize].push(slot);
    }

    pub(super) fn unpin(&mut self, index: u32) {
        while let Some(slot) = self.pinned[index as usize].pop() {
            self.lines.change(slot, |line| line.pins -= 1);
        }
    }

    pub(super) fn begin_read(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let request = self.ops[index as usize].request;
        let (lba, end) = (request.lba.0, request.end().0);
        let (mut first, mut last, mut hits, mut misses) = (u64::MAX, 0, 0, 0);
        for number in self.numbers(&request) {
            let wanted = self.bits_of(number, lba, end);
            let held = self.lines.find(number).map_or(0, |slot| self.lines.get(slot).valid);
            let missing = wanted & !held;
            if missing == 0 {
                hits += 1;
                continue;
            }
            misses += 1;
            let start = number * self.line_sectors;
            first = first.min(start + u64::from(missing.trailing_zeros()));
            last = last.max(start + 64 - u64::from(missing.leading_zeros()));
        }
        if misses > 0 && self.reads_wait && !self.broken && !self.has_room(ctx, index, &request) {
            return false;
        }
        ctx.emit(CacheEvent::CacheLookup { op: Op::Read, hits, misses });
        if misses == 0 {
            self.answer(ctx, index);
            return true;
        }
        let step = self.line_sectors;
        if matches!(self.prefetch, Prefetch::RestOfLine | Prefetch::WholeLine) {
            last = last.next_multiple_of(step).min(self.capacity);
        }
        if matches!(self.prefetch, Prefetch::FrontOfLine | Prefetch::WholeLine) {
            first = first / step * step;
        }
        if self.reads_wait && self.numbers(&request).count() <= self.lines.count() {
            // What it waited for, nobody else may take.
            self.numbers(&request).for_each(|number| _ = self.lines.allocate(number));
        }
        self.pin(index, &request);
        let sectors = (last - first) as u32;
        let data = ctx.take_data(sectors);
        let fetch = Request { lba: Lba(first), sectors, data, ..request };
        ctx.issue(0, fetch, u64::from(index));
        true
    }

    /// Everything a read wants is in lines.
    pub(super) fn answer(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let request = self.ops[index as usize].request;
        for number in self.numbers(&request) {
            if let Some(slot) = self.lines.find(number) {
                self.lines.touch(slot);
            }
        }
        if ctx.verifying() {
            let stamps = ctx.data().stamps_mut(request.data, request.sectors);
            self.contents.read(request.lba.0, stamps);
        }
        self.finish(ctx, index, Outcome::Done);
    }

    /// What was missing has come: into the request, and into lines as far as there is room.
    pub(super) fn fetched(&mut self, ctx: &mut Ctx<'_>, index: u32, fetch: &Request) {
        let request = self.ops[index as usize].request;
        let (from, end) = (fetch.lba.0, fetch.end().0);
        for number in self.numbers(fetch) {
            let held = self.lines.find(number).map_or(0, |slot| self.lines.get(slot).valid);
            let new = self.bits_of(number, from, end) & !held;
            let locked = self.numbers(&request).contains(&number);
            if new == 0 || !locked {
                continue;
            }
            self.fill(ctx, number, new, fetch);
            if let Some(slot) = self.lines.allocate(number) {
                self.lines.change(slot, |line| line.valid |= new);
            }
        }
        // Not before: what is held may be newer than what came, while it was being written back.
        self.unpin(index);
        if ctx.verifying() {
            let stamps = ctx.data().stamps_mut(request.data, request.sectors);
            self.contents.read(request.lba.0, stamps);
        }
        ctx.data().give_back(fetch.data);
        self.finish(ctx, index, Outcome::Done);
    }

    /// Lines of a request that hold nothing make room.
    pub(super) fn drop_empty(&mut self, request: &Request) {
        for number in self.numbers(request) {
            if let Some(slot) = self.lines.find(number)
                && self.lines.get(slot).valid == 0
            {
                self.lines.forget(slot);
            }
        }
    }

    /// Copies sectors of a line from a request's data.
    pub(super) fn fill(&mut self, ctx: &mut Ctx<'_>, number: u64, sectors: u64, from: &Request) {
        if from.data.is_none() {
            return;
        }
        let start = number * self.line_sectors;
        for bit in (0..self.line_sectors).filter(|bit| sectors >> bit & 1 == 1) {
            let source = from.data.skip((start + bit - from.lba.0) as u32);
            self.contents.write(start + bit, ctx.data().stamps(source, 1));
        }
    }

    /// Whether there is room for the lines of a request; if not, some is asked for.
    pub(super) fn has_room(&mut self, ctx: &mut Ctx<'_>, index: u32, request: &Request) -> bool {
        if self.ops[index as usize].awaits.is_some() {
            return false;
        }
        // Its own lines must not be the ones that make room for it.
        self.pin(index, request);
        let lacking = self.numbers(request).filter(|it| self.lines.find(*it).is_none()).count();
        // What can never be held whole takes the lines there are.
        let large = self.numbers(request).count() > self.lines.count();
        let has_room = large || lacking <= self.lines.available();
        let in_the_way = self.lines.in_the_way(lacking).filter(|_| !large && has_room);
        self.unpin(index);
        if let Some(slot) = in_the_way {
            self.ops[index as usize].awaits = Some(self.write_line(ctx, slot));
            return false;
        }
        if !has_room {
            // Numbers of dirty lines follow each other, so that is about as many as are needed.
            if let Some((oldest, _)) = self.lines.oldest_dirty() {
                self.wanted = self.wanted.max(oldest + lacking as u64);
            }
        }
        has_room
    }

    /// A write into lines; `false` when there is no room for all of it.
    pub(super) fn write_lines(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let request = self.ops[index as usize].request;
        if !self.has_room(ctx, index, &request) {
            return false;
        }
        self.pin(index, &request);
        let (lba, end) = (request.lba.0, request.end().0);
        let (mut hits, mut misses) = (0, 0);
        // All of them before any is used: that changes which lines go next.
        for number in self.numbers(&request) {
            if self.lines.find(number).is_some() {
                hits += 1;
                continue;
            }
            misses += 1;
            let slot = self.lines.allocate(number).expect("room was counted");
            self.pin_slot(index, slot);
        }
        for number in self.numbers(&request) {
            let slot = self.lines.find(number).expect("it was held or has just been had");
            let new = self.bits_of(number, lba, end);
            self.fill(ctx, number, new, &request);
            self.lines.change(slot, |line| {
                line.valid |= new;
                line.dirty |= new;
            });
            self.lines.touch(slot);
        }
        self.unpin(index);
        if self.scheme == Scheme::Early {
            self.wanted = self.lines.writes();
        }
        ctx.emit(CacheEvent::CacheLookup { op: Op::Write, hits, misses });
        self.finish(ctx, index, Outcome::Done);
        true
    }

    /// To the device; `false` while some of its lines are being written back.
    pub(super) fn begin_through(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let request = self.ops[index as usize].request;
        let mut lines = self.numbers(&request).filter_map(|number| self.lines.find(number));
        if lines.any(|slot| self.lines.get(slot).flushing) {
            return false;
        }
        self.pin(index, &request);
        ctx.issue(0, request, u64::from(index));
        true
    }

    /// The device has it: lines keep what was written, or lose it.
    pub(super) fn went_through(&mut self, ctx: &mut Ctx<'_>, index: u32, outcome: Outcome) {
        let request = self.ops[index as usize].request;
        self.unpin(index);
        let (lba, end) = (request.lba.0, request.end().0);
        let keeps = request.op == Op::Write
            && outcome == Outcome::Done
            && self.scheme != Scheme::Sync
            && self.numbers(&request).count() <= self.lines.count();
        for number in self.numbers(&request) {
            let new = self.bits_of(number, lba, end);
            let slot = match self.lines.find(number) {
                None if keeps => self.lines.allocate(number),
                found => found,
            };
            let Some(slot) = slot else { continue };
            if keeps {
                self.fill(ctx, number, new, &request);
            }
            // A device may go on to return what it held before a trim, so what it never got has to
            // reach it all the same: nothing older than the last write may come back.
            let lost = match (request.op, outcome) {
                (_, Outcome::Failed) => 0,
                (Op::Trim, _) => new & !self.lines.get(slot).dirty,
                _ => new,
            };
            self.lines.change(slot, |line| {
                line.dirty &= !lost;
                line.valid = if keeps { line.valid | new } else { line.valid & !lost };
            });
            if keeps {
                self.lines.touch(slot);
            } else if self.lines.get(slot).valid == 0 {
                self.lines.forget(slot);
            }
        }
        self.finish(ctx, index, outcome);
    }
}
