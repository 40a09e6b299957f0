//! Cleaning: valid blocks of a segment are moved to the log, then the segment is reset.

use super::map::NONE;
use super::segments::State;
use super::writes::background;
use super::{LogStructured, Part, Work};
use crate::event::LayerEvent;
use hybridsim_engine::{Completion, Ctx, Lba, Op, Request, ZoneAction};

/// Blocks of a request at most.
const RUN_MAX: u32 = 32;

/// The segment that is being cleaned.
#[derive(Clone, Copy, Debug)]
pub struct Cleaning {
    victim: u32,
    /// The block to look at next.
    next: u32,
    /// Reads and writes outstanding.
    outstanding: u32,
    /// The segment to which blocks were moved last; the victim before the first.
    last: u32,
    /// A block could not be read.
    unreadable: bool,
}

impl LogStructured {
    /// Begins to clean the next segment if one has to be. Returns whether another may follow at
    /// once.
    pub(super) fn clean_next(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let free = self.segments.free();
        let wanted = match self.idle {
            true => self.behaviour.free_segments.max(self.behaviour.idle_free_segments - 1),
            false => self.behaviour.free_segments,
        };
        // Moved blocks may need a free segment.
        let is_due = free > 0 && free + self.segments.emptied <= wanted;
        if self.cleaning.is_some() || self.read_only || !is_due {
            return false;
        }
        let Some(victim) = self.segments.victim() else { return false };
        self.cleaning =
            Some(Cleaning { victim, next: 0, outstanding: 0, last: victim, unreadable: false });
        self.moves.clear();
        self.clean(ctx);
        self.cleaning.is_none()
    }

    /// Reads the next valid blocks of the victim, or ends its cleaning.
    fn clean(&mut self, ctx: &mut Ctx<'_>) {
        let Some(mut it) = self.cleaning else { return };
        let (first, written) = (self.shape.first(it.victim), self.segments.get(it.victim).written);
        while it.next < written && it.outstanding < self.behaviour.cleaning_depth {
            let from = first + it.next;
            let limit = RUN_MAX.min(written - it.next);
            let blocks =
                (0..limit).take_while(|block| self.map.is_valid(from + block)).count() as u32;
            it.next += blocks.max(1);
            if blocks == 0 {
                continue;
            }
            it.outstanding += 1;
            let part = Part { work: Work::MoveRead, of: it.victim, physical: from, from, blocks };
            let sectors = blocks * self.shape.block_sectors;
            let data = ctx.take_data(sectors);
            let read = background(Op::Read, self.shape.lba(from), sectors);
            self.issue(ctx, part, Request { data, ..read });
        }
        self.cleaning = Some(it);
        if it.next == written && it.outstanding == 0 {
            self.cleaning = None;
            self.cleaned(ctx, &it);
        }
    }

    /// The valid blocks of a segment have been moved, as far as possible.
    fn cleaned(&mut self, ctx: &mut Ctx<'_>, it: &Cleaning) {
        ctx.emit(LayerEvent::SegmentCleaned);
        let segment = self.segments.get_mut(it.victim);
        match (segment.valid, it.unreadable) {
            (0, _) => self.settle(ctx, it.victim),
            (_, true) => segment.state = State::Retired,
            (_, false) => self.segments.close(it.victim),
        }
    }

    /// A segment has no valid blocks left. It is reset when the device has been flushed.
    pub(super) fn settle(&mut self, ctx: &mut Ctx<'_>, of: u32) {
        self.segments.get_mut(of).state = State::Emptied;
        self.segments.emptied += 1;
        let part = Part { work: Work::Settle, of, physical: 0, from: 0, blocks: 0 };
        self.issue(ctx, part, background(Op::Flush, Lba(0), 0));
    }

    /// Valid blocks of the victim have been read: they are appended.
    pub(super) fn move_read(&mut self, ctx: &mut Ctx<'_>, part: &Part, done: &Completion) {
        let mut left = (part.from, part.blocks);
        let mut data = done.request.data;
        let head = self.behaviour.cleaning_head;
        while !done.failed()
            && left.1 > 0
            && let Some((physical, blocks)) = self.append((head, u8::MAX), left.1, 0)
        {
            let from = left.0;
            left = (from + blocks, left.1 - blocks);
            for block in 0..blocks {
                self.map.set_owner(physical + block, self.map.owner(from + block));
            }
            let sectors = blocks * self.shape.block_sectors;
            let write = background(Op::Write, self.shape.lba(physical), sectors);
            let write = Request { data, ..write };
            // The rest has a buffer of its own, as each is given back with its write.
            data = match left.1 {
                0 => data,
                rest => {
                    let sectors = rest * self.shape.block_sectors;
                    let data = write.data.skip(write.sectors);
                    ctx.copy_data(&Request { data, sectors, ..write })
                }
            };
            if let Some(it) = &mut self.cleaning {
                it.outstanding += 1;
                it.last = self.shape.segment(physical);
            }
            ctx.emit(LayerEvent::BlocksMoved { sectors });
            let part = Part { work: Work::MoveWrite, of: part.of, physical, from, blocks };
            self.issue(ctx, part, write);
            self.close_full(ctx, (head, physical));
        }
        if left.1 > 0 {
            // Without a free segment, as writes have failed: cleaning again would not end.
            self.read_only |= !done.failed();
            ctx.data().give_back(data);
        }
        self.move_ended(ctx, done.failed());
    }

    /// Valid blocks were appended: the map leads to their new place, unless the host has written or
    /// trimmed them.
    pub(super) fn moved(&mut self, ctx: &mut Ctx<'_>, part: &Part, done: &Completion) {
        ctx.data().give_back(done.request.data);
        let segment = self.shape.segment(part.physical);
        if done.failed() {
            self.seal(ctx, segment);
        } else {
            self.sealed = 0;
            self.moves.push(*part);
            for block in 0..part.blocks {
                let logical = self.map.owner(part.from + block);
                if self.map.get(logical) == part.from + block {
                    self.remap(logical, part.physical + block);
                }
            }
        }
        self.segments.write_done(segment);
        self.move_ended(ctx, false);
    }

    /// The power failed. Without a free segment no other could be cleaned afterwards, so the last
    /// segment is emptied: it was opened for blocks of the victim, which are still there.
    pub(super) fn undo_moves(&mut self) {
        let Some(it) = self.cleaning.filter(|_| self.segments.free() == 0) else { return };
        for part in std::mem::take(&mut self.moves) {
            if self.shape.segment(part.physical) != it.last {
                continue;
            }
            for block in 0..part.blocks {
                let logical = self.map.owner(part.from + block);
                if self.map.get(logical) == part.physical + block {
                    self.remap(logical, part.from + block);
                }
            }
        }
    }

    fn move_ended(&mut self, ctx: &mut Ctx<'_>, unreadable: bool) {
        if let Some(it) = &mut self.cleaning {
            it.outstanding -= 1;
            it.unreadable |= unreadable;
        }
        self.clean(ctx);
    }

    /// Resets a segment without valid blocks once no read of it is outstanding.
    pub(super) fn reset_unread(&mut self, ctx: &mut Ctx<'_>, at: u32) {
        let segment = self.segments.get_mut(at);
        if segment.state != State::Settled || segment.readers > 0 {
            return;
        }
        segment.state = State::Resetting;
        let part = Part { work: Work::Reset, of: at, physical: NONE, from: NONE, blocks: 0 };
        let op = if self.shape.zoned { Op::Zone(ZoneAction::Reset) } else { Op::Trim };
        let request = self.whole(op, at);
        self.issue(ctx, part, request);
    }

    pub(super) fn was_reset(&mut self, ctx: &mut Ctx<'_>, at: u32, failed: bool) {
        // A device need not discard, but a zone that was not reset cannot be written.
        if failed && self.shape.zoned {
            self.segments.get_mut(at).state = State::Retired;
            self.segments.emptied -= 1;
            return;
        }
        self.segments.set_free(at);
        ctx.emit(LayerEvent::SegmentFreed { free: self.segments.free() });
    }
}
