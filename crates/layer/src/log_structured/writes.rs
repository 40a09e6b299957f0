//! Appending to the log.

use super::map::NONE;
use super::segments::State;
use super::{HostRequest, LogStructured, Part, Work};
use crate::event::LayerEvent;
use hybridsim_engine::{Completion, Ctx, DataSlice, Flags, Lba, Op, Request, ZoneAction};

impl LogStructured {
    /// A write holds its locks. Blocks that it covers in part are read first.
    pub(super) fn begin_write(&mut self, ctx: &mut Ctx<'_>, at: u32) {
        let HostRequest { request, next: first, end, .. } = self.requests[at as usize];
        if self.read_only {
            return self.fail(ctx, at);
        }
        let per_block = u64::from(self.shape.block_sectors);
        let written = u64::from(end - first) * per_block;
        ctx.emit(LayerEvent::LogWrite { requested: request.sectors, written });
        if u64::from(request.sectors) == written {
            return self.enqueue(ctx, at);
        }
        let blocks = ctx.take_data(written as u32);
        self.requests[at as usize].blocks = blocks;
        self.requests[at as usize].filling = true;
        let covers = |block: u32| {
            let (from, to) = (u64::from(block) * per_block, u64::from(block + 1) * per_block);
            request.lba.0 <= from && to <= request.end().0
        };
        let last = (end - 1 > first).then_some(end - 1);
        for block in [Some(first), last].into_iter().flatten() {
            let physical = self.map.get(block);
            if physical == NONE || covers(block) {
                continue;
            }
            let data = blocks.skip((block - first) * self.shape.block_sectors);
            let lba = self.shape.lba(physical);
            let read = Request { data, ..Request::new(Op::Read, lba, self.shape.block_sectors) };
            self.issue_read(ctx, (at, physical), read);
        }
        if self.requests[at as usize].left == 0 {
            self.filled(ctx, at);
        }
    }

    /// The old data of blocks that a write covers in part have been read: it overwrites its part.
    pub(super) fn filled(&mut self, ctx: &mut Ctx<'_>, at: u32) {
        let HostRequest { request, next: first, blocks, .. } = self.requests[at as usize];
        self.requests[at as usize].filling = false;
        let skip = request.lba.0 - u64::from(first) * u64::from(self.shape.block_sectors);
        for sector in 0..if blocks.is_none() { 0 } else { request.sectors } {
            let version = ctx.data().versions(request.data.skip(sector), 1)[0];
            let into = blocks.skip(skip as u32 + sector);
            ctx.data().versions_mut(into, 1)[0] = version;
        }
        self.enqueue(ctx, at);
    }

    fn enqueue(&mut self, ctx: &mut Ctx<'_>, at: u32) {
        if !self.waiting.is_empty() || !self.append_request(ctx, at) {
            self.waiting.push_back(at);
        }
    }

    /// Appends the writes that wait for a free segment, as far as possible.
    pub(super) fn append_waiting(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(&at) = self.waiting.front()
            && self.append_request(ctx, at)
        {
            self.waiting.pop_front();
        }
    }

    /// Appends the rest of a write; returns whether all of it found a place.
    fn append_request(&mut self, ctx: &mut Ctx<'_>, at: u32) -> bool {
        let HostRequest { request, end, blocks, .. } = self.requests[at as usize];
        let per_block = self.shape.block_sectors;
        let first = (request.lba.0 / u64::from(per_block)) as u32;
        loop {
            let next = self.requests[at as usize].next;
            if next == end {
                return true;
            }
            // A segment that was filled may leave the lifetime to another log.
            let open = |log: usize| (self.heads[log] != NONE).then(|| self.lifetimes[log]);
            let head = self.behaviour.logs.of(request.flags, open);
            if head == self.behaviour.cleaning_head && self.segments.free() == 0 {
                // The rest of the open segment is for the blocks that are being moved.
                return false;
            }
            let Some((physical, count)) =
                self.append((head, request.flags.handle()), end - next, 1)
            else {
                return false;
            };
            self.requests[at as usize].next += count;
            for block in 0..count {
                self.map.set_owner(physical + block, next + block);
            }
            let skip = (next - first) * per_block;
            let data = if blocks.is_none() { request.data } else { blocks }.skip(skip);
            let lba = self.shape.lba(physical);
            let write = Request { lba, sectors: count * per_block, data, ..request };
            let part = Part { work: Work::Write, of: at, physical, from: next, blocks: count };
            self.issue_for(ctx, part, write);
            self.close_full(ctx, (head, physical));
        }
    }

    /// A place for up to `most` blocks at the end of log `head`, in a new segment if more than
    /// `keep` are free, which is then for `lifetime`: the first physical block, and how many.
    pub(super) fn append(
        &mut self,
        (head, lifetime): (usize, u8),
        most: u32,
        keep: u32,
    ) -> Option<(u32, u32)> {
        if self.heads[head] == NONE {
            self.heads[head] = self.segments.open(keep)?;
            self.lifetimes[head] = lifetime;
        }
        let at = self.heads[head];
        let data_blocks = self.shape.data_blocks;
        let segment = self.segments.get_mut(at);
        let count = most.min(data_blocks - segment.written);
        let physical = self.shape.first(at) + segment.written;
        segment.written += count;
        segment.writers += 1;
        Some((physical, count))
    }

    /// Closes the segment of `physical`, to which log `head` has appended, if it is full.
    pub(super) fn close_full(&mut self, ctx: &mut Ctx<'_>, (head, physical): (usize, u32)) {
        let at = self.shape.segment(physical);
        if self.segments.get(at).written < self.shape.data_blocks {
            return;
        }
        self.heads[head] = NONE;
        let blocks = self.shape.blocks - self.shape.data_blocks;
        let physical = self.shape.first(at) + self.shape.data_blocks;
        let sectors = blocks * self.shape.block_sectors;
        ctx.emit(LayerEvent::LogSummary { sectors });
        self.segments.get_mut(at).writers += 1;
        self.segments.close(at);
        let part = Part { work: Work::Summary, of: at, physical, from: NONE, blocks };
        let data = ctx.take_data(sectors);
        let write = background(Op::Write, self.shape.lba(physical), sectors);
        self.issue(ctx, part, Request { data, ..write });
    }

    pub(super) fn summary_written(&mut self, ctx: &mut Ctx<'_>, part: &Part, done: &Completion) {
        ctx.data().give_back(done.request.data);
        self.segments.get_mut(part.of).summary = !done.failed();
        if done.failed() && self.shape.zoned {
            self.finish(ctx, part.of);
        }
        self.segments.write_done(part.of);
    }

    /// Blocks of the host were appended.
    pub(super) fn written(&mut self, ctx: &mut Ctx<'_>, part: &Part, done: &Completion) {
        let segment = self.shape.segment(part.physical);
        if done.failed() {
            self.seal(ctx, segment);
        } else {
            self.sealed = 0;
            for block in 0..part.blocks {
                self.remap(part.from + block, part.physical + block);
            }
        }
        self.segments.write_done(segment);
        self.one_done(ctx, part.of, done);
    }

    /// Appends nothing more to a segment whose write has failed: its write pointer is not known.
    pub(super) fn seal(&mut self, ctx: &mut Ctx<'_>, at: u32) {
        if self.segments.get(at).state != State::Open {
            return;
        }
        for head in self.heads.iter_mut().filter(|head| **head == at) {
            *head = NONE;
        }
        self.sealed += 1;
        self.read_only |= self.sealed > self.shape.segments;
        if self.shape.zoned {
            self.finish(ctx, at);
        }
        self.segments.close(at);
    }

    /// Finishes the zone of a segment that is closed before it is full, so that it is not active.
    pub(super) fn finish(&mut self, ctx: &mut Ctx<'_>, at: u32) {
        let part = Part { work: Work::Finish, of: at, physical: 0, from: NONE, blocks: 0 };
        let request = self.whole(Op::Zone(ZoneAction::Finish), at);
        let segment = self.segments.get_mut(at);
        (segment.unfinished, segment.writers) = (true, segment.writers + 1);
        self.issue(ctx, part, request);
    }

    pub(super) fn finished(&mut self, ctx: &mut Ctx<'_>, part: &Part, failed: bool) {
        self.segments.get_mut(part.of).unfinished = failed;
        self.segments.write_done(part.of);
        self.recovered_one(ctx);
    }

    /// A request about the whole of a segment.
    pub(super) fn whole(&self, op: Op, at: u32) -> Request {
        background(op, self.shape.start_of(at), self.shape.stride as u32)
    }
}

/// A request of the layer's own.
pub(super) const fn background(op: Op, lba: Lba, sectors: u32) -> Request {
    let request = Request::new(op, lba, sectors);
    Request { flags: Flags::BACKGROUND, data: DataSlice::NONE, ..request }
}
