//! What an interrupted write leaves of an array's redundancy, and how that is found and mended.
//!
//! When the power fails, a write may have reached some members and not others: copies disagree,
//! or parity does not match its data. This room knows which *steps* (regions of a group of
//! copies, stripes) that may be true of, how that knowledge survives, and which step is mended
//! next. How a step is mended is the array's business.
//!
//! - `full`: after a power failure everything may be wrong.
//! - `bitmap`: a write-intent bitmap, as in Linux md. Every member has a copy of it behind its
//!   data. Before a write to a region (many steps), the region's bit is on all members, forced to
//!   their media. When the region has been left alone for a while, the members are flushed and the
//!   bit is cleared. After a power failure the bitmap is read, and only what its bits name may be
//!   wrong. A bit being written when the power failed counts as set.
//! - `none`: the array does not ask. What it then returns may be wrong.
//!
//! Invariant: no write is issued to a member unless the bits of its regions are durable.

mod bitmap;

use super::members::{self, Members};
use super::steps::StepSet;
use bitmap::Bitmap;
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::{CommonEvent, Completion, Ctx, SECTOR_BYTES, SimDuration, SimTime};
use std::ops::Range;

/// How consistency is restored.
pub const RESYNC: Param = Param::with(
    "resync",
    Kind::Choice(&["full", "bitmap", "none"]),
    "\"full\"",
    "After a power failure, what may disagree is made to agree again: everything; what a \
     write-intent bitmap names (Linux md); nothing. At the pace of a rebuild; copies also before \
     they are read",
);

/// What a bit stands for.
pub const BITMAP_REGION: Param = Param::with(
    "bitmap_region",
    Kind::Bytes,
    "\"64MiB\"",
    "With `resync = \"bitmap\"`: bytes of a member one bit stands for, at least those of a chunk \
     (of copies: of `rebuild_step`)",
);

/// How lazily a bit is cleared.
pub const BITMAP_CLEAR_AFTER: Param = Param::with(
    "bitmap_clear_after",
    Kind::Duration,
    "\"5s\"",
    "With `resync = \"bitmap\"`: a region's bit is cleared when nothing has been written there \
     for so long, at least 1ms",
);

const CLEAR_AFTER_MIN: SimDuration = SimDuration::from_ms(1);

/// Marks the tags of bitmap requests.
pub const BITMAP_TAG: u64 = 1 << 62;
/// Timer of the bitmap.
pub const BITMAP_TOKEN: u64 = u64::MAX - 1;

/// Bits in a sector of the bitmap.
const BITS: u64 = SECTOR_BYTES * 8;
/// The longest bitmap, in sectors.
const BITMAP_SECTORS_MAX: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Full,
    Bitmap,
    None,
}

/// What may be inconsistent, and what is known of it.
#[derive(Debug)]
pub struct Resync {
    mode: Mode,
    steps: u64,
    unsynced: StepSet,
    /// Where the mending in the background has come to.
    next: u64,
    running: Vec<u64>,
    began: Option<SimTime>,
    bitmap: Option<Bitmap>,
}

/// Steps a bit stands for.
fn region_steps(settings: &Settings, step_sectors: u64) -> u64 {
    let region = settings.bytes("bitmap_region") / SECTOR_BYTES;
    region.div_ceil(step_sectors.max(1)).max(1)
}

/// Sectors every member gives to the bitmap of an array of `steps` steps.
pub fn reserve(
    settings: &Settings,
    steps: u64,
    step_sectors: u64,
    problems: &mut Vec<Problem>,
) -> u64 {
    if settings.text("resync") != "bitmap" {
        return 0;
    }
    let sectors = steps.div_ceil(region_steps(settings, step_sectors)).div_ceil(BITS).max(1);
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
        input: &BuildInput<'_>,
        (steps, step_sectors): (u64, u64),
        (at, sectors): (u64, u64),
    ) -> Self {
        let settings = input.settings;
        let mode = match settings.text("resync") {
            "full" => Mode::Full,
            "bitmap" => Mode::Bitmap,
            _ => Mode::None,
        };
        let bitmap = (mode == Mode::Bitmap).then(|| {
            let region_steps = region_steps(settings, step_sectors);
            let clear_after = settings.duration("bitmap_clear_after").max(CLEAR_AFTER_MIN);
            Bitmap::new((at, sectors), region_steps, clear_after)
        });
        let (unsynced, running) = (StepSet::default(), Vec::new());
        Self { mode, steps, unsynced, next: 0, running, began: None, bitmap }
    }

    /// Whether everything is consistent, as far as is known.
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

    /// Whether the bitmap is being read: nobody knows yet what may be inconsistent.
    pub fn is_reading(&self) -> bool {
        self.bitmap.as_ref().is_some_and(|bitmap| bitmap.is_being_read())
    }

    /// The power fails. Nothing more may be inconsistent if somebody else `knows_all` that was
    /// under way.
    pub fn power_cut(&mut self, now: SimTime, knows_all: bool) {
        self.running.clear();
        (self.next, self.began) = (0, None);
        let mut dirty = StepSet::default();
        let unsynced = if knows_all { &mut dirty } else { &mut self.unsynced };
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
        ctx.emit(CommonEvent::Custom { name: members::RESYNC_STARTED, value: steps });
        self.began = Some(ctx.now());
        self.tell_if_ended(ctx);
    }

    /// The next step to mend, when one may be begun now; see [`Members::may_step`].
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
        if self.running.len() as u64 >= members.parallel() || !members.may_step(ctx, idle) {
            return None;
        }
        self.next = step + 1;
        self.running.push(step);
        Some(step)
    }

    /// Somebody needs `step` mended now. Answers whether that has to be begun; otherwise it is
    /// under way.
    pub fn claim(&mut self, step: u64) -> bool {
        let begins = !self.running.contains(&step);
        if begins {
            self.running.push(step);
        }
        begins
    }

    /// What [`Resync::next_step`] or [`Resync::claim`] began is over; `mended` tells whether the
    /// step is consistent now. Otherwise it stays as it is.
    pub fn step_done(&mut self, ctx: &mut Ctx<'_>, step: u64, mended: bool) {
        self.running.retain(|other| *other != step);
        if mended {
            self.unsynced.remove(step);
        }
        self.tell_if_ended(ctx);
    }

    /// `step` has been written anew, all of it.
    pub fn replaced(&mut self, ctx: &mut Ctx<'_>, step: u64) {
        if !self.unsynced.is_empty() && self.unsynced.remove(step) {
            self.tell_if_ended(ctx);
        }
    }

    fn tell_if_ended(&mut self, ctx: &mut Ctx<'_>) {
        if !self.running.is_empty() || self.unsynced.first_from(self.next).is_some() {
            return;
        }
        if let Some(began) = self.began.take() {
            let took = ctx.now().since(began);
            ctx.emit(CommonEvent::Custom { name: members::RESYNC_ENDED, value: took.as_ns() });
        }
    }

    /// `owner` is about to write to `steps`. Answers whether it may; otherwise it waits, and
    /// [`Resync::completion`] names it when it may. [`Resync::unmark`] follows when it is done.
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

    /// A write to `steps` that was marked is done.
    #[inline]
    pub fn unmark(&mut self, ctx: &mut Ctx<'_>, steps: Range<u64>) {
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.unmark(ctx, steps);
        }
    }

    /// A member answered a request about the bitmap. `ready` is told who may write now.
    pub fn completion(
        &mut self,
        ctx: &mut Ctx<'_>,
        members: &Members,
        done: &Completion,
        ready: impl FnMut(u32),
    ) {
        let bitmap = self.bitmap.as_mut().expect("only a bitmap has such requests");
        let reads = bitmap.is_being_read();
        if !bitmap.answered(ctx, members, done, ready) || !reads {
            return;
        }
        let took = done.latency;
        ctx.emit(CommonEvent::Recovered { took });
        self.begin(ctx);
    }

    /// The bitmap's timer went off: bits may be cleared.
    pub fn wake(&mut self, ctx: &mut Ctx<'_>, members: &Members) {
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.wake(ctx, members, &self.unsynced);
        }
    }
}
