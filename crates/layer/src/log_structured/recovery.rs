//! Recovery from power failures: the map is found on the device.
//!
//! As pblk does (Bjørling, Gonzalez and Bonnet, FAST 2017, section 4.2.2): a full segment ends with
//! a summary of the logical addresses of its blocks, and each block is written with its address in
//! its metadata. Recovery reads all summaries, and the blocks of segments that have none.

use super::map::NONE;
use super::segments::State;
use super::writes::background;
use super::{LogStructured, Part, Work};
use hybridsim_engine::range_locks::RangeLocks;
use hybridsim_engine::{CommonEvent, Completion, Ctx, Op, PowerFailure, Request, SimTime};

/// Segments that are read at a time.
const DEPTH: u32 = 32;

/// A recovery under way.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    since: SimTime,
    /// The next segment to read.
    next: u32,
    outstanding: u32,
}

impl LogStructured {
    /// Reads the addresses in the next segments, and finishes zones that were open.
    fn recover(&mut self, ctx: &mut Ctx<'_>) {
        let Some(mut it) = self.recovery else { return };
        while it.outstanding < DEPTH && it.next < self.shape.segments {
            let at = it.next;
            it.next += 1;
            let segment = *self.segments.get(at);
            if !matches!(segment.state, State::Closed | State::Retired) {
                continue;
            }
            if segment.unfinished {
                it.outstanding += 1;
                self.finish(ctx, at);
            }
            let (skip, blocks) = match segment.summary {
                true => (self.shape.data_blocks, self.shape.blocks - self.shape.data_blocks),
                false => (0, segment.written),
            };
            let physical = self.shape.first(at) + skip;
            let sectors = blocks * self.shape.block_sectors;
            let part = Part { work: Work::Scan, of: at, physical, from: NONE, blocks };
            let data = ctx.take_data(sectors);
            let read = background(Op::Read, self.shape.lba(physical), sectors);
            it.outstanding += 1;
            self.issue(ctx, part, Request { data, ..read });
        }
        self.recovery = Some(it);
        if it.outstanding == 0 {
            self.recovery = None;
            ctx.emit(CommonEvent::Recovered { took: ctx.now().since(it.since) });
            for at in 0..self.shape.segments {
                self.reset_unread(ctx, at);
            }
            self.advance(ctx);
        }
    }

    pub(super) fn scanned(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        ctx.data().give_back(done.request.data);
        self.recovered_one(ctx);
    }

    /// A request of the recovery, if one is under way, has completed.
    pub(super) fn recovered_one(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(it) = &mut self.recovery {
            it.outstanding -= 1;
            self.recover(ctx);
        }
    }
}

impl PowerFailure for LogStructured {
    /// Writes in flight did not reach the map, so it is what recovery finds, apart from those: the
    /// previous data of their blocks are still there.
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        if self.behaviour.child_loses_writes {
            return Err(
                "over a device with a volatile write cache, blocks that it loses would have \
                        to be found at their previous place, which is not modelled; turn the \
                        cache off"
                    .to_owned(),
            );
        }
        self.requests.clear();
        self.parts.clear();
        self.locks = RangeLocks::default();
        self.ready.clear();
        self.waiting.clear();
        self.undo_moves();
        self.cleaning = None;
        self.recovery = None;
        self.idle = false;
        self.timer_set = false;
        self.heads.fill(NONE);
        for at in 0..self.segments.len() {
            let segment = self.segments.get_mut(at);
            let before = segment.state;
            segment.state = match before {
                State::Open | State::Victim => State::Closed,
                State::Emptied | State::Resetting => State::Settled,
                State::Free | State::Closed | State::Settled | State::Retired => before,
            };
            // The zone of a segment that was open may be active.
            let torn = segment.writers > 0;
            let changed = segment.state != before && segment.written < self.shape.data_blocks;
            segment.unfinished |= self.shape.zoned && (torn || changed);
            self.segments.power_lost(at);
        }
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.recovery = Some(Recovery { since: ctx.now(), next: 0, outstanding: 0 });
        self.recover(ctx);
    }
}
