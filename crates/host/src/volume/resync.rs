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

use super::members::{self, Members};
use super::steps::StepSet;
use hybridsim_engine::build::BuildInput;
use hybridsim_engine::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::{
    Completion, Ctx, DataSlice, Fact, Flags, Lba, Op, Request, SECTOR_BYTES, SimDuration, SimTime,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
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
/// Sectors of the bitmap written at a time, as a page of 4 KiB.
const PAGE_SECTORS: u64 = 8;
/// The longest bitmap, in sectors.
const BITMAP_SECTORS_MAX: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be set; nothing has been asked of the members yet.
    Wanted,
    /// On its way to the members, set or cleared.
    Moving,
    /// Set on every member.
    Set,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    state: State,
    /// Writes that want it set.
    writers: u32,
    idle_since: SimTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Io {
    Read,
    Set,
    Flush,
    Clear,
}

/// A write that waits for bits.
#[derive(Clone, Debug)]
struct Waiting {
    owner: u32,
    regions: Range<u64>,
}

#[derive(Debug)]
struct Bitmap {
    /// Where it is on every member.
    at: Lba,
    sectors: u64,
    region_steps: u64,
    clear_after: SimDuration,
    /// Those whose bit may be set, or is wanted.
    regions: FxHashMap<u64, Region>,
    /// Regions without writers and since when, in that order; outdated entries stay.
    idle: VecDeque<(u64, SimTime)>,
    waiting: Vec<Waiting>,
    /// What is under way at the members, about which regions, and how many have not answered.
    io: Option<Io>,
    batch: Vec<u64>,
    left: u32,
    data: DataSlice,
    timer_set: bool,
}

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
        let bitmap = (mode == Mode::Bitmap).then(|| Bitmap {
            at: Lba(at),
            sectors,
            region_steps: region_steps(settings, step_sectors),
            clear_after: settings.duration("bitmap_clear_after").max(CLEAR_AFTER_MIN),
            regions: FxHashMap::default(),
            idle: VecDeque::new(),
            waiting: Vec::new(),
            io: None,
            batch: Vec::new(),
            left: 0,
            data: DataSlice::NONE,
            timer_set: false,
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
        self.bitmap.as_ref().is_some_and(|bitmap| bitmap.io == Some(Io::Read))
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
            && bitmap.ask(ctx, members, Io::Read)
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
        ctx.observe(Fact::Custom { name: members::RESYNC_STARTED, value: steps });
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
            ctx.observe(Fact::Custom { name: members::RESYNC_ENDED, value: took.as_ns() });
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
        let reads = bitmap.io == Some(Io::Read);
        if !bitmap.answered(ctx, members, done, ready) || !reads {
            return;
        }
        let took = done.latency;
        ctx.observe(Fact::Recovered { took });
        self.begin(ctx);
    }

    /// The bitmap's timer went off: bits may be cleared.
    pub fn wake(&mut self, ctx: &mut Ctx<'_>, members: &Members) {
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.timer_set = false;
            bitmap.clear_idle(ctx, members, &self.unsynced);
        }
    }
}

impl Bitmap {
    fn regions_of(&self, steps: &Range<u64>) -> Range<u64> {
        steps.start / self.region_steps..(steps.end - 1) / self.region_steps + 1
    }

    fn is_set(&self, region: u64) -> bool {
        self.regions.get(&region).is_some_and(|region| region.state == State::Set)
    }

    fn power_cut(&mut self, now: SimTime, steps: u64, unsynced: &mut StepSet) {
        self.regions.retain(|_, region| region.state != State::Wanted);
        let mut dirty: Vec<u64> = self.regions.keys().copied().collect();
        dirty.sort_unstable();
        self.idle.clear();
        for region in dirty {
            let first = region * self.region_steps;
            unsynced.insert(first..(first + self.region_steps).min(steps));
            let state = Region { state: State::Set, writers: 0, idle_since: now };
            self.regions.insert(region, state);
            self.idle.push_back((region, now));
        }
        self.waiting.clear();
        self.batch.clear();
        (self.io, self.left, self.data) = (None, 0, DataSlice::NONE);
        self.timer_set = false;
    }

    fn mark(
        &mut self,
        ctx: &mut Ctx<'_>,
        members: &Members,
        owner: u32,
        steps: Range<u64>,
    ) -> bool {
        let regions = self.regions_of(&steps);
        let mut all_set = true;
        for region in regions.clone() {
            let wanted = Region { state: State::Wanted, writers: 0, idle_since: SimTime::ZERO };
            let region = self.regions.entry(region).or_insert(wanted);
            region.writers += 1;
            all_set &= region.state == State::Set;
        }
        if all_set {
            return true;
        }
        self.waiting.push(Waiting { owner, regions: regions.clone() });
        self.set_wanted(ctx, members);
        let all_set = regions.clone().all(|region| self.is_set(region));
        if all_set {
            self.waiting.pop();
        }
        all_set
    }

    fn unmark(&mut self, ctx: &mut Ctx<'_>, steps: Range<u64>) {
        for number in self.regions_of(&steps) {
            let Some(region) = self.regions.get_mut(&number) else { continue };
            region.writers -= 1;
            if region.writers == 0 {
                region.idle_since = ctx.now();
                self.idle.push_back((number, ctx.now()));
            }
        }
        self.arm(ctx);
    }

    fn arm(&mut self, ctx: &mut Ctx<'_>) {
        if let Some((_, since)) = self.idle.front()
            && !std::mem::replace(&mut self.timer_set, true)
        {
            ctx.wake_at((*since + self.clear_after).max(ctx.now()), BITMAP_TOKEN);
        }
    }

    const fn page_of(region: u64) -> u64 {
        region / (BITS * PAGE_SECTORS)
    }

    /// Begins to set the bits of one page that are waited for.
    fn set_wanted(&mut self, ctx: &mut Ctx<'_>, members: &Members) {
        if self.io.is_some() {
            return;
        }
        let mut page = None;
        self.batch.clear();
        for waiting in &self.waiting {
            for number in waiting.regions.clone() {
                let here = Self::page_of(number);
                if let Some(region) = self.regions.get_mut(&number)
                    && region.state == State::Wanted
                    && page.is_none_or(|page| page == here)
                {
                    (region.state, page) = (State::Moving, Some(here));
                    self.batch.push(number);
                }
            }
        }
        if !self.batch.is_empty() && !self.ask(ctx, members, Io::Set) {
            // No member is left to keep a bitmap; the write will find that out itself.
            self.all_answered(ctx, Io::Set);
        }
    }

    /// Asks it of all members that are there, or of one what all know. Answers whether any is.
    fn ask(&mut self, ctx: &mut Ctx<'_>, members: &Members, io: Io) -> bool {
        let first = self.batch.first().map_or(0, |region| Self::page_of(*region));
        let (skip, length) = match io {
            Io::Read => (0, self.sectors),
            _ => (first * PAGE_SECTORS, PAGE_SECTORS.min(self.sectors - first * PAGE_SECTORS)),
        };
        let op = match io {
            Io::Read => Op::Read,
            Io::Set | Io::Clear => Op::Write,
            Io::Flush => Op::Flush,
        };
        let mut request = Request::new(op, self.at.offset(skip), length as u32);
        request.flags = if op == Op::Write { Flags::FUA } else { Flags::default() };
        request.data = ctx.take_data(length as u32);
        self.data = request.data;
        let present = (0..members.columns()).filter_map(|column| members.present(column));
        let count = if io == Io::Read { 1 } else { usize::MAX };
        self.left = 0;
        for child in present.take(count) {
            ctx.issue(child, request, BITMAP_TAG);
            self.left += 1;
        }
        self.io = (self.left > 0).then_some(io);
        if self.left == 0 {
            ctx.data().give_back(std::mem::replace(&mut self.data, DataSlice::NONE));
        }
        self.left > 0
    }

    /// Answers whether it was the last one, or nobody is left to ask.
    fn answered(
        &mut self,
        ctx: &mut Ctx<'_>,
        members: &Members,
        done: &Completion,
        mut ready: impl FnMut(u32),
    ) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        ctx.data().give_back(std::mem::replace(&mut self.data, DataSlice::NONE));
        let io = self.io.take().expect("something was under way");
        if io == Io::Read && members.has_failed(done.child) && self.ask(ctx, members, Io::Read) {
            return false;
        }
        if io == Io::Flush && self.clear_flushed(ctx, members) {
            return false;
        }
        self.all_answered(ctx, io);
        loop {
            let regions = &self.regions;
            let is_set = |region| regions.get(&region).is_some_and(|it| it.state == State::Set);
            self.waiting.retain(|waiting| {
                let all_set = waiting.regions.clone().all(is_set);
                if all_set {
                    ready(waiting.owner);
                }
                !all_set
            });
            if self.io.is_some() || self.waiting.is_empty() {
                return true;
            }
            self.set_wanted(ctx, members);
        }
    }

    /// What was asked has happened on all members there are.
    fn all_answered(&mut self, ctx: &mut Ctx<'_>, io: Io) {
        let batch = std::mem::take(&mut self.batch);
        for number in &batch {
            let Some(region) = self.regions.get_mut(number) else { continue };
            match io {
                Io::Set => region.state = State::Set,
                Io::Clear if region.writers > 0 => region.state = State::Wanted,
                Io::Clear => {
                    self.regions.remove(number);
                }
                Io::Read | Io::Flush => {}
            }
        }
        self.batch = batch;
        self.batch.clear();
        self.arm(ctx);
    }

    /// Begins to clear the bits of one page that nobody has needed for long.
    fn clear_idle(&mut self, ctx: &mut Ctx<'_>, members: &Members, unsynced: &StepSet) {
        if self.io.is_some() {
            // The end of it sets the timer again.
            return;
        }
        let now = ctx.now();
        self.batch.clear();
        for _ in 0..self.idle.len() {
            let Some((number, since)) = self.idle.pop_front() else { break };
            if since + self.clear_after > now {
                self.idle.push_front((number, since));
                break;
            }
            let Some(region) = self.regions.get_mut(&number) else { continue };
            if region.writers > 0 || region.idle_since != since || region.state != State::Set {
                continue;
            }
            let first = number * self.region_steps;
            let page = self.batch.first().map_or(number, |first| *first);
            let elsewhere = Self::page_of(page) != Self::page_of(number);
            if elsewhere || unsynced.first_of(first..first + self.region_steps).is_some() {
                // Another time.
                region.idle_since = now;
                self.idle.push_back((number, now));
            } else {
                // A write that comes meanwhile puts its own time there.
                region.idle_since = SimTime::NEVER;
                self.batch.push(number);
            }
        }
        if self.batch.is_empty() || !self.ask(ctx, members, Io::Flush) {
            self.batch.clear();
            self.arm(ctx);
        }
    }

    /// The members are flushed: what was written is durable, bits may go. Answers whether any do.
    fn clear_flushed(&mut self, ctx: &mut Ctx<'_>, members: &Members) -> bool {
        let regions = &mut self.regions;
        self.batch.retain(|number| {
            let untouched =
                |region: &&mut Region| region.writers == 0 && region.idle_since == SimTime::NEVER;
            let region = regions.get_mut(number).filter(untouched);
            region.map(|region| region.state = State::Moving).is_some()
        });
        !self.batch.is_empty() && self.ask(ctx, members, Io::Clear)
    }
}
