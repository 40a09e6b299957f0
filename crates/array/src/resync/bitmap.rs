//! The write-intent bitmap: marks the regions with writes in flight, on every member.

use super::super::range_set::RangeSet;
use super::super::rebuild::Members;
use super::{BITMAP_TAG, BITMAP_TOKEN, BITS};
use hybridsim_engine::{Completion, Ctx, DataSlice, Flags, Lba, Op, Request, SimDuration, SimTime};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

/// Sectors of the bitmap written at a time: a page of 4 KiB.
const PAGE_SECTORS: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// To be set; no request has been issued yet.
    Wanted,
    /// Being set or cleared on the members.
    Moving,
    Set,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Region {
    state: State,
    /// Writes in flight or waiting for the bit.
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

/// A write that waits for its bits.
#[derive(Clone, Debug)]
struct Waiting {
    owner: u32,
    regions: Range<u64>,
}

/// The bitmap, and the request in flight to update it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bitmap {
    /// Address on every member.
    at: Lba,
    sectors: u64,
    region_steps: u64,
    clear_after: SimDuration,
    /// Regions whose bit is set, changing or wanted.
    regions: FxHashMap<u64, Region>,
    /// Regions without writers by the time of the last write; may contain outdated entries.
    idle: VecDeque<(u64, SimTime)>,
    #[serde(skip)]
    waiting: Vec<Waiting>,
    /// The request in flight to all members, its regions, and the members that have not completed
    /// it.
    #[serde(skip)]
    io: Option<Io>,
    #[serde(skip)]
    batch: Vec<u64>,
    #[serde(skip)]
    left: u32,
    #[serde(skip, default = "no_data")]
    data: DataSlice,
    timer_set: bool,
}

const fn no_data() -> DataSlice {
    DataSlice::NONE
}

impl Bitmap {
    /// A clear bitmap of `sectors` sectors at `at` on every member, with `region_steps` steps per
    /// bit.
    pub fn new((at, sectors): (u64, u64), region_steps: u64, clear_after: SimDuration) -> Self {
        Self {
            at: Lba(at),
            sectors,
            region_steps,
            clear_after,
            regions: FxHashMap::default(),
            idle: VecDeque::new(),
            waiting: Vec::new(),
            io: None,
            batch: Vec::new(),
            left: 0,
            data: DataSlice::NONE,
            timer_set: false,
        }
    }

    /// Whether the bitmap is being read after a power failure.
    pub fn is_being_read(&self) -> bool {
        self.io == Some(Io::Read)
    }

    /// Reads the bitmap; `false` when no member is present.
    pub fn read(&mut self, ctx: &mut Ctx<'_>, members: &Members) -> bool {
        self.issue(ctx, members, Io::Read)
    }

    /// The timer expired.
    pub fn wake(&mut self, ctx: &mut Ctx<'_>, members: &Members, unsynced: &RangeSet) {
        self.timer_set = false;
        self.clear_idle(ctx, members, unsynced);
    }

    fn regions_of(&self, steps: &Range<u64>) -> Range<u64> {
        steps.start / self.region_steps..(steps.end - 1) / self.region_steps + 1
    }

    fn is_set(&self, region: u64) -> bool {
        self.regions.get(&region).is_some_and(|region| region.state == State::Set)
    }

    /// The power fails: bits that may be set count as set, and their regions are added to
    /// `unsynced`.
    pub fn power_cut(&mut self, now: SimTime, steps: u64, unsynced: &mut RangeSet) {
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

    /// See [`super::Resync::mark`].
    pub fn mark(
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

    /// See [`super::Resync::unmark`].
    pub fn unmark(&mut self, ctx: &mut Ctx<'_>, steps: Range<u64>) {
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

    /// Starts to set the wanted bits of one page.
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
        if !self.batch.is_empty() && !self.issue(ctx, members, Io::Set) {
            // No member is present; the write itself will fail.
            self.all_completed(ctx, Io::Set);
        }
    }

    /// Issues a request to all members present, reads to the first one only. Returns whether a
    /// member is present.
    fn issue(&mut self, ctx: &mut Ctx<'_>, members: &Members, io: Io) -> bool {
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

    /// A member completed the request in flight. Returns whether it was the last one and no further
    /// request follows.
    pub fn completed(
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
        let io = self.io.take().expect("a request was in flight");
        if io == Io::Read && members.has_failed(done.child) && self.issue(ctx, members, Io::Read) {
            return false;
        }
        if io == Io::Flush && self.clear_flushed(ctx, members) {
            return false;
        }
        self.all_completed(ctx, io);
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

    /// The request has completed on all members present.
    fn all_completed(&mut self, ctx: &mut Ctx<'_>, io: Io) {
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

    /// Starts to clear the bits of one page whose regions have been idle long enough.
    fn clear_idle(&mut self, ctx: &mut Ctx<'_>, members: &Members, unsynced: &RangeSet) {
        if self.io.is_some() {
            // The timer is set again at its completion.
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
                // Retry later.
                region.idle_since = now;
                self.idle.push_back((number, now));
            } else {
                // A write that arrives meanwhile overwrites this.
                region.idle_since = SimTime::NEVER;
                self.batch.push(number);
            }
        }
        if self.batch.is_empty() || !self.issue(ctx, members, Io::Flush) {
            self.batch.clear();
            self.arm(ctx);
        }
    }

    /// The members are flushed, so the writes are durable. Returns whether bits are being cleared.
    fn clear_flushed(&mut self, ctx: &mut Ctx<'_>, members: &Members) -> bool {
        let regions = &mut self.regions;
        self.batch.retain(|number| {
            let untouched =
                |region: &&mut Region| region.writers == 0 && region.idle_since == SimTime::NEVER;
            let region = regions.get_mut(number).filter(untouched);
            region.map(|region| region.state = State::Moving).is_some()
        });
        !self.batch.is_empty() && self.issue(ctx, members, Io::Clear)
    }
}
