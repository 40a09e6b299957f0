//! Resynchronisation after a power failure: finding and repairing inconsistent redundancy.
//!
//! When the power fails, a write may have reached some members and not others: copies differ, or
//! parity does not match its data. This module tracks which *steps* (regions of a group of copies,
//! stripes) may be inconsistent, how that information survives the power failure, and which step
//! is repaired next. The array itself repairs a step.
//!
//! - `full`: after a power failure all steps may be inconsistent.
//! - `bitmap`: a write-intent bitmap, as in Linux md. Every member stores a copy after its data.
//!   Before a write to a region (many steps), the region's bit is set on all members with forced
//!   unit access. When the region has not been written for a while, the members are flushed and
//!   the bit is cleared. After a power failure the bitmap is read, and only regions whose bit is
//!   set may be inconsistent. A bit being written when the power failed counts as set.
//! - `none`: no resync. The array may return inconsistent data.
//!
//! Invariant: no write is issued to a member unless the bits of its regions are durable.

mod bitmap;

use super::params::{BitmapParameters, Mode, ResyncParameters};
use super::range_set::RangeSet;
use super::rebuild::{self, Members};
use bitmap::Bitmap;
use hybridsim_config::param::Problem;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{Completion, Ctx, SECTOR_BYTES, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use std::ops::Range;

const CLEAR_AFTER_MIN: SimDuration = SimDuration::from_ms(1);

/// Marks the tags of bitmap requests.
pub const BITMAP_TAG: u64 = 1 << 62;
/// Timer of the bitmap.
pub const BITMAP_TOKEN: u64 = u64::MAX - 1;

/// Bits in a sector of the bitmap.
const BITS: u64 = SECTOR_BYTES * 8;
/// The longest bitmap, in sectors.
const BITMAP_SECTORS_MAX: u64 = 1 << 20;

/// The steps that may be inconsistent, and the progress of their repair.
#[derive(Debug, Serialize, Deserialize)]
pub struct Resync {
    mode: Mode,
    steps: u64,
    unsynced: RangeSet,
    /// First step that the background resync has not reached.
    next: u64,
    running: Vec<u64>,
    began: Option<SimTime>,
    bitmap: Option<Bitmap>,
}

/// Steps per bit.
fn region_steps(params: &BitmapParameters, step_sectors: u64) -> u64 {
    let region = params.bitmap_region / SECTOR_BYTES;
    region.div_ceil(step_sectors.max(1)).max(1)
}

/// Sectors reserved on every member for the bitmap of an array of `steps` steps.
pub fn reserve(
    params: &ResyncParameters,
    steps: u64,
    step_sectors: u64,
    problems: &mut Vec<Problem>,
) -> u64 {
    if params.resync != Mode::Bitmap {
        return 0;
    }
    let sectors = steps.div_ceil(region_steps(&params.bitmap, step_sectors)).div_ceil(BITS).max(1);
    if sectors > BITMAP_SECTORS_MAX {
        let message = format!("makes a bitmap of {sectors} sectors; use larger regions");
        problems.push(Problem::new("bitmap_region", message));
    }
    sectors.min(BITMAP_SECTORS_MAX)
}

impl Resync {
    /// For an array of `steps` steps of `step_sectors` sectors, with `sectors` sectors for the
    /// bitmap from `at` on of each member ([`reserve`]).
    pub fn read(
        params: &ResyncParameters,
        (steps, step_sectors): (u64, u64),
        (at, sectors): (u64, u64),
    ) -> Self {
        let mode = params.resync;
        let bitmap = (mode == Mode::Bitmap).then(|| {
            let region_steps = region_steps(&params.bitmap, step_sectors);
            let clear_after = params.bitmap.bitmap_clear_after.max(CLEAR_AFTER_MIN);
            Bitmap::new((at, sectors), region_steps, clear_after)
        });
        let (unsynced, running) = (RangeSet::default(), Vec::new());
        Self { mode, steps, unsynced, next: 0, running, began: None, bitmap }
    }

    /// Whether all steps are in sync.
    #[inline]
    pub const fn is_synced(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// Whether writes have to be marked.
    #[inline]
    pub const fn has_bitmap(&self) -> bool {
        self.bitmap.is_some()
    }

    /// The first of `steps` that may be inconsistent.
    #[inline]
    pub fn unsynced_of(&self, steps: Range<u64>) -> Option<u64> {
        if self.is_synced() {
            return None;
        }
        self.unsynced.first_of(steps)
    }

    /// Whether the bitmap is being read; until then the inconsistent steps are unknown.
    pub fn is_reading(&self) -> bool {
        self.bitmap.as_ref().is_some_and(|bitmap| bitmap.is_being_read())
    }

    /// The power fails. No further steps become inconsistent if a journal covers all writes in
    /// flight.
    pub fn power_cut(&mut self, now: SimTime, has_journal: bool) {
        self.running.clear();
        (self.next, self.began) = (0, None);
        let mut dirty = RangeSet::default();
        let unsynced = if has_journal { &mut dirty } else { &mut self.unsynced };
        match &mut self.bitmap {
            Some(bitmap) => bitmap.power_cut(now, self.steps, unsynced),
            None if self.mode == Mode::Full => unsynced.insert(0..self.steps),
            None => {}
        }
    }

    /// The power is back: the bitmap is read first, if there is one.
    pub fn power_on(&mut self, ctx: &mut Ctx<'_>, members: &Members) {
        if let Some(bitmap) = &mut self.bitmap
            && bitmap.read(ctx, members)
        {
            return;
        }
        self.begin(ctx);
    }

    fn begin(&mut self, ctx: &mut Ctx<'_>) {
        if self.mode == Mode::None {
            return;
        }
        let steps = self.unsynced.len();
        ctx.emit(CommonEvent::Custom { name: rebuild::RESYNC_STARTED, value: steps });
        self.began = Some(ctx.now());
        self.report_if_ended(ctx);
    }

    /// The next step to repair, if one may start now; see [`Members::may_start_step`].
    pub fn next_step(
        &mut self,
        ctx: &mut Ctx<'_>,
        members: &mut Members,
        idle: bool,
    ) -> Option<u64> {
        if self.unsynced.is_empty() || self.is_reading() {
            return None;
        }
        let mut step = self.unsynced.first_from(self.next)?;
        while self.running.contains(&step) {
            step = self.unsynced.first_from(step + 1)?;
        }
        if self.running.len() as u64 >= members.parallel() || !members.may_start_step(ctx, idle) {
            return None;
        }
        self.next = step + 1;
        self.running.push(step);
        Some(step)
    }

    /// A request needs `step` repaired now. Returns whether the caller has to start that; otherwise
    /// it is in progress.
    pub fn claim(&mut self, step: u64) -> bool {
        let begins = !self.running.contains(&step);
        if begins {
            self.running.push(step);
        }
        begins
    }

    /// A step started by [`Resync::next_step`] or [`Resync::claim`] has ended, `repaired` or not.
    pub fn step_done(&mut self, ctx: &mut Ctx<'_>, step: u64, repaired: bool) {
        self.running.retain(|other| *other != step);
        if repaired {
            self.unsynced.remove(step);
        }
        self.report_if_ended(ctx);
    }

    /// `step` has been overwritten entirely.
    pub fn replaced(&mut self, ctx: &mut Ctx<'_>, step: u64) {
        if !self.unsynced.is_empty() && self.unsynced.remove(step) {
            self.report_if_ended(ctx);
        }
    }

    fn report_if_ended(&mut self, ctx: &mut Ctx<'_>) {
        if !self.running.is_empty() || self.unsynced.first_from(self.next).is_some() {
            return;
        }
        if let Some(began) = self.began.take() {
            let took = ctx.now().since(began);
            ctx.emit(CommonEvent::Custom { name: rebuild::RESYNC_ENDED, value: took.as_ns() });
        }
    }

    /// `owner` is about to write to `steps`. Returns whether it may now; otherwise a later
    /// [`Resync::completion`] reports it as ready. [`Resync::unmark`] follows when it is done.
    #[inline]
    pub fn mark(
        &mut self,
        ctx: &mut Ctx<'_>,
        members: &Members,
        owner: u32,
        steps: Range<u64>,
    ) -> bool {
        match &mut self.bitmap {
            None => true,
            Some(bitmap) => bitmap.mark(ctx, members, owner, steps),
        }
    }

    /// A marked write to `steps` is done.
    #[inline]
    pub fn unmark(&mut self, ctx: &mut Ctx<'_>, steps: Range<u64>) {
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.unmark(ctx, steps);
        }
    }

    /// A member completed a bitmap request. Calls `ready` for owners that may write now.
    pub fn completion(
        &mut self,
        ctx: &mut Ctx<'_>,
        members: &Members,
        done: &Completion,
        ready: impl FnMut(u32),
    ) {
        let bitmap = self.bitmap.as_mut().expect("only a bitmap has such requests");
        let reads = bitmap.is_being_read();
        if !bitmap.completed(ctx, members, done, ready) || !reads {
            return;
        }
        let took = done.latency;
        ctx.emit(CommonEvent::Recovered { took });
        self.begin(ctx);
    }

    /// The bitmap's timer expired: bits may be cleared.
    pub fn wake(&mut self, ctx: &mut Ctx<'_>, members: &Members) {
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.wake(ctx, members, &self.unsynced);
        }
    }
}
