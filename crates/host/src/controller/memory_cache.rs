//! A memory cache in front of a device: lines, written back, through, or around.
//!
//! Each sector of a line is held or not, so a write never has to read the rest of its line. A
//! request locks its lines (reads share), so what follows sees one request at a time per line:
//!
//! - A read is answered from the lines, after what is missing has been fetched with one read.
//! - A write goes into lines and is complete (`back`, or `early` with the writing back at once), or
//!   to the device first and stays in the lines (`through`) or not (`sync`). Forced writes, trims
//!   and requests larger than the cache go to the device, too.
//! - A flush writes back what was dirty when it came, then goes to the device.
//!
//! Dirty lines are written back when room is needed, at times, or when nothing was asked for a
//! while; neighbours together, a line by one write at a time. Nothing goes to the device for a line
//! of which a write is under way, so the device never gets old data after new ones.

use super::lines::{Lines, Replacement};
use super::memory_params;
use hybridsim_engine::build::{BuildInput, LayerEntry};
use hybridsim_engine::param::{Built, Problem};
use hybridsim_engine::registry::Description;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::spans::SpanLocks;
use hybridsim_engine::{
    Completion, Contents, Ctx, Fact, Flags, Layer, LayerInfo, Lba, Op, Outcome, Part, Parts,
    Request, RequestId, SECTOR_BYTES, SimDuration, SimTime, Stream,
};
use slab::Slab;
use std::collections::VecDeque;
use std::rc::Rc;

/// Sectors of a line at most: one bit each.
const LINE_SECTORS_MAX: u64 = 64;
/// Lines of a cache at most.
const LINES_MAX: u64 = 1 << 24;

/// The registered entry.
pub const ENTRY: LayerEntry = LayerEntry {
    description: Description {
        name: "memory-cache",
        summary: "A controller's memory cache in front of a device: lines written back or through",
        origin: "DiskSim 4.0, disksim_cachemem",
        params: memory_params::PARAMS,
    },
    build,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Back,
    Early,
    Through,
    Sync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefetch {
    None,
    FrontOfLine,
    RestOfLine,
    WholeLine,
}

fn build(input: &BuildInput<'_>) -> Built<dyn Layer> {
    let settings = input.settings;
    let mut problems = Vec::new();
    let line = settings.bytes("line_size");
    let sectors = line / SECTOR_BYTES;
    if !line.is_multiple_of(SECTOR_BYTES) || !(1..=LINE_SECTORS_MAX).contains(&sectors) {
        let message = format!("{line} bytes; must be a multiple of 512 bytes, 512B to 32KiB");
        problems.push(Problem::new("line_size", message));
    }
    let lines = settings.bytes("size") / line.max(1);
    if !(1..=LINES_MAX).contains(&lines) {
        let message = format!("holds {lines} lines; a cache has 1 to {LINES_MAX}");
        problems.push(Problem::new("size", message));
    }
    let idle = settings.duration_opt("flush_idle");
    for (name, time) in [
        ("flush_idle", idle.unwrap_or(SimDuration::MAX)),
        ("flush_period", settings.duration("flush_period")),
    ] {
        let used = name == "flush_idle" || settings.text("flush") == "periodic";
        if used && time.is_zero() {
            problems.push(Problem::new(name, "must be more than nothing"));
        }
    }
    let [device] = input.children else {
        problems.push(Problem::new("device", "takes one device"));
        return Err(problems);
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    let protected = (settings.number("protected_share") * lines as f64) as usize;
    let replacement = match settings.text("replacement") {
        "fifo" => Replacement::Fifo,
        "slru" => Replacement::Slru(protected),
        "random" => Replacement::Random,
        "lifo" => Replacement::Lifo,
        _ => Replacement::Lru,
    };
    let strictly = settings.text("allocation") == "strict";
    let stream = Stream::new(input.seed, input.path);
    Ok(Box::new(MemoryCache {
        capacity: device.capacity,
        positioner: device.positioner.clone(),
        line_sectors: sectors,
        lines: Lines::new(lines as u32, replacement, strictly, stream),
        scheme: match settings.text("write_scheme") {
            "early" => Scheme::Early,
            "through" => Scheme::Through,
            "sync" => Scheme::Sync,
            _ => Scheme::Back,
        },
        period: (settings.text("flush") == "periodic").then(|| settings.duration("flush_period")),
        idle,
        cluster: settings.count("flush_cluster"),
        prefetch: match settings.text("read_prefetch") {
            "front-of-line" => Prefetch::FrontOfLine,
            "rest-of-line" => Prefetch::RestOfLine,
            "whole-line" => Prefetch::WholeLine,
            _ => Prefetch::None,
        },
        reads_wait: settings.flag("reads_wait"),
        shares: settings.flag("shared_read_locks"),
        contents: Contents::default(),
        ops: Slab::new(),
        pinned: Vec::new(),
        ready: VecDeque::new(),
        stalled: VecDeque::new(),
        flushes: VecDeque::new(),
        locks: SpanLocks::default(),
        writing: Vec::new(),
        wanted: 0,
        broken: false,
        used: SimTime::ZERO,
        period_set: false,
        idle_set: false,
    }))
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    id: RequestId,
    request: Request,
    /// What the device told, and when it was asked.
    parts: Parts,
    locked: bool,
    /// The write-back it waits for, by its number.
    awaits: Option<u64>,
}

/// The cache.
pub struct MemoryCache {
    capacity: u64,
    positioner: Option<Rc<dyn Positioner>>,
    line_sectors: u64,
    lines: Lines,
    scheme: Scheme,
    period: Option<SimDuration>,
    idle: Option<SimDuration>,
    cluster: u64,
    prefetch: Prefetch,
    reads_wait: bool,
    shares: bool,
    contents: Contents,
    ops: Slab<Operation>,
    /// The lines each operation keeps from going.
    pinned: Vec<Vec<u32>>,
    /// Operations that hold their locks and may go on.
    ready: VecDeque<u32>,
    /// Operations that hold their locks and wait for lines, in order.
    stalled: VecDeque<u32>,
    /// Flushes that wait for what was written up to a number.
    flushes: VecDeque<(u32, u64)>,
    locks: SpanLocks,
    /// Numbers of the writes being written back.
    writing: Vec<u64>,
    /// Everything dirty up to this number is to be written back.
    wanted: u64,
    /// The last write-back failed: nobody waits for room.
    broken: bool,
    used: SimTime,
    period_set: bool,
    idle_set: bool,
}

/// Tags of what goes to the device: an operation's own, or a write-back and how old it is.
const WRITE_BACK: u64 = 1 << 63;
/// Timers.
const PERIOD: u64 = 0;
const IDLE: u64 = 1;

/// Sectors that could not be written back, and stay dirty; told as a number.
const UNSAVED_SECTORS: u8 = 0;

/// Bits `from..to` of a word.
const fn bits(from: u64, to: u64) -> u64 {
    let upto = if to >= 64 { u64::MAX } else { (1 << to) - 1 };
    upto & !((1 << from) - 1)
}

impl MemoryCache {
    fn numbers(&self, request: &Request) -> std::ops::Range<u64> {
        request.lba.0 / self.line_sectors..request.end().0.div_ceil(self.line_sectors)
    }

    /// The bits of line `number` that a range covers.
    fn bits_of(&self, number: u64, from: u64, end: u64) -> u64 {
        let start = number * self.line_sectors;
        bits(from.saturating_sub(start), (end - start).min(self.line_sectors))
    }

    fn enter(&mut self, id: RequestId, request: &Request, shared: bool) {
        let op =
            Operation { id, request: *request, parts: Parts::NONE, locked: true, awaits: None };
        let index = self.ops.insert(op) as u32;
        if index as usize == self.pinned.len() {
            self.pinned.push(Vec::new());
        }
        if request.op == Op::Flush {
            self.ops[index as usize].locked = false;
            self.flushes.push_back((index, self.lines.writes()));
            self.wanted = self.wanted.max(self.lines.writes());
            return;
        }
        let numbers = self.numbers(request);
        if self.locks.acquire(index, numbers.start, numbers.end, !shared) {
            self.ready.push_back(index);
        }
    }

    /// Lets everything go on that can.
    fn settle(&mut self, ctx: &mut Ctx<'_>) {
        loop {
            while let Some(index) = self.ready.pop_front() {
                if !self.begin(ctx, index) {
                    self.stalled.push_back(index);
                }
            }
            self.begin_stalled(ctx);
            self.write_back(ctx);
            self.end_flushes(ctx);
            if self.ready.is_empty() {
                return;
            }
        }
    }

    /// Tries the first of those that wait for lines, in order; as the first of all can always go on
    /// sooner or later, so do the others. Not all are tried: a long queue would cost each event so
    /// much.
    fn begin_stalled(&mut self, ctx: &mut Ctx<'_>) {
        const AT_A_TIME: usize = 64;
        let mut at = 0;
        for _ in 0..self.stalled.len().min(AT_A_TIME) {
            let index = self.stalled[at];
            if self.begin(ctx, index) {
                self.stalled.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Begins an operation that holds its locks; `false` when it has to wait for lines.
    fn begin(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
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
    fn keeps_writes(&self) -> bool {
        matches!(self.scheme, Scheme::Back | Scheme::Early)
    }

    /// Makes the lines an operation has stay until [`MemoryCache::unpin`].
    fn pin(&mut self, index: u32, request: &Request) {
        for number in self.numbers(request) {
            if let Some(slot) = self.lines.find(number) {
                self.pin_slot(index, slot);
            }
        }
    }

    fn pin_slot(&mut self, index: u32, slot: u32) {
        self.lines.change(slot, |line| line.pins += 1);
        self.pinned[index as usize].push(slot);
    }

    fn unpin(&mut self, index: u32) {
        while let Some(slot) = self.pinned[index as usize].pop() {
            self.lines.change(slot, |line| line.pins -= 1);
        }
    }

    fn begin_read(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
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
        ctx.observe(Fact::CacheLookup { op: Op::Read, hits, misses });
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
    fn answer(&mut self, ctx: &mut Ctx<'_>, index: u32) {
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
    fn fetched(&mut self, ctx: &mut Ctx<'_>, index: u32, fetch: &Request) {
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
    fn drop_empty(&mut self, request: &Request) {
        for number in self.numbers(request) {
            if let Some(slot) = self.lines.find(number)
                && self.lines.get(slot).valid == 0
            {
                self.lines.forget(slot);
            }
        }
    }

    /// Copies sectors of a line from a request's data.
    fn fill(&mut self, ctx: &mut Ctx<'_>, number: u64, sectors: u64, from: &Request) {
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
    fn has_room(&mut self, ctx: &mut Ctx<'_>, index: u32, request: &Request) -> bool {
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
    fn write_lines(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
        let request = self.ops[index as usize].request;
        if !self.has_room(ctx, index, &request) {
            return false;
        }
        self.pin(index, &request);
        let (lba, end) = (request.lba.0, request.end().0);
        let (mut hits, mut misses) = (0, 0);
        for number in self.numbers(&request) {
            let held = self.lines.find(number);
            let slot = self.lines.allocate(number).expect("room was counted");
            let new = self.bits_of(number, lba, end);
            let fresh = u32::from(held.is_none());
            if held.is_none() {
                self.pin_slot(index, slot);
            }
            self.fill(ctx, number, new, &request);
            self.lines.change(slot, |line| {
                line.valid |= new;
                line.dirty |= new;
            });
            self.lines.touch(slot);
            (hits, misses) = (hits + 1 - fresh, misses + fresh);
        }
        self.unpin(index);
        if self.scheme == Scheme::Early {
            self.wanted = self.lines.writes();
        }
        ctx.observe(Fact::CacheLookup { op: Op::Write, hits, misses });
        self.finish(ctx, index, Outcome::Done);
        true
    }

    /// To the device; `false` while some of its lines are being written back.
    fn begin_through(&mut self, ctx: &mut Ctx<'_>, index: u32) -> bool {
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
    fn went_through(&mut self, ctx: &mut Ctx<'_>, index: u32, outcome: Outcome) {
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

    fn finish(&mut self, ctx: &mut Ctx<'_>, index: u32, outcome: Outcome) {
        let op = self.ops.remove(index as usize);
        if op.locked {
            let ready = &mut self.ready;
            self.locks.release(index, |granted| ready.push_back(granted));
        }
        let total = ctx.now().since(ctx.issued(op.id));
        let parts = op.parts.plus(Part::Queue, total.saturating_sub(op.parts.total()));
        if outcome == Outcome::Failed {
            ctx.fail_request(op.id, parts);
        } else {
            ctx.complete(op.id, parts);
        }
    }

    /// Writes back what is wanted, oldest first, and what stands beside it.
    fn write_back(&mut self, ctx: &mut Ctx<'_>) {
        /// Write-backs at the device at a time.
        const AT_A_TIME: usize = 4;
        while self.writing.len() < AT_A_TIME {
            let Some((since, slot)) = self.lines.oldest_dirty() else { return };
            if since > self.wanted {
                return;
            }
            self.write_line(ctx, slot);
        }
    }

    /// Writes back the first dirty sectors of a line, and what stands beside them in the lines
    /// after it; answers the number of the write that made it dirty.
    fn write_line(&mut self, ctx: &mut Ctx<'_>, slot: u32) -> u64 {
        let line = *self.lines.get(slot);
        let since = line.since;
        let from = line.number * self.line_sectors + u64::from(line.dirty.trailing_zeros());
        let mut end = from;
        for number in line.number..line.number.saturating_add(self.cluster) {
            let Some(slot) = self.lines.find(number) else { break };
            let line = *self.lines.get(slot);
            if line.flushing || line.pins > 0 {
                break;
            }
            let start = number * self.line_sectors;
            let run = (!(line.dirty >> (end - start))).trailing_zeros();
            if run == 0 {
                break;
            }
            let stop = (end + u64::from(run)).min(start + self.line_sectors);
            let sectors = self.bits_of(number, end, stop);
            self.lines.change(slot, |line| {
                line.dirty &= !sectors;
                line.flushing = true;
            });
            end = stop;
            if end < start + self.line_sectors {
                break;
            }
        }
        let sectors = (end - from) as u32;
        let data = ctx.take_data(sectors);
        if ctx.verifying() {
            self.contents.read(from, ctx.data().stamps_mut(data, sectors));
        }
        let write = Request::new(Op::Write, Lba(from), sectors);
        let write = Request { flags: Flags::BACKGROUND, data, ..write };
        self.writing.push(since);
        ctx.observe(Fact::Destaged { sectors });
        ctx.issue(0, write, WRITE_BACK | since);
        since
    }

    fn written_back(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let since = done.tag & !WRITE_BACK;
        if let Some(at) = self.writing.iter().position(|other| *other == since) {
            self.writing.swap_remove(at);
        }
        for index in &self.stalled {
            let op = &mut self.ops[*index as usize];
            op.awaits = op.awaits.filter(|number| *number != since);
        }
        ctx.data().give_back(done.request.data);
        let failed = done.outcome == Outcome::Failed;
        if failed {
            let value = u64::from(done.request.sectors);
            ctx.observe(Fact::Custom { name: UNSAVED_SECTORS, value });
            // Tried again when room, a flush or the next round asks for it.
            self.wanted = 0;
            self.fail_flushes(ctx, since);
        }
        self.broken = failed;
        let (lba, end) = (done.request.lba.0, done.request.end().0);
        for number in self.numbers(&done.request) {
            let lost = if failed { self.bits_of(number, lba, end) } else { 0 };
            if let Some(slot) = self.lines.find(number) {
                self.lines.change(slot, |line| {
                    line.flushing = false;
                    line.dirty |= lost & line.valid;
                });
            }
        }
    }

    /// What a write numbered `since` brought is not where flushes after it want it.
    fn fail_flushes(&mut self, ctx: &mut Ctx<'_>, since: u64) {
        for at in (0..self.flushes.len()).rev() {
            let (index, until) = self.flushes[at];
            if until >= since {
                self.flushes.remove(at);
                self.finish(ctx, index, Outcome::Failed);
            }
        }
    }

    /// Flushes go on to the device once what they are about is there.
    fn end_flushes(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(&(index, until)) = self.flushes.front() {
            let busy = self.writing.iter().any(|since| *since <= until);
            if busy || self.lines.is_dirty_until(until) {
                return;
            }
            self.flushes.pop_front();
            let request = self.ops[index as usize].request;
            ctx.issue(0, request, u64::from(index));
        }
    }

    /// Sets the timers there is something to do for.
    fn set_timers(&mut self, ctx: &mut Ctx<'_>) {
        let dirty = self.lines.is_dirty_until(u64::MAX);
        if let Some(period) = self.period
            && dirty
            && !std::mem::replace(&mut self.period_set, true)
        {
            ctx.wake_after(period, PERIOD);
        }
        if let Some(idle) = self.idle
            && dirty
            && !std::mem::replace(&mut self.idle_set, true)
        {
            ctx.wake_after(idle, IDLE);
        }
    }
}

impl Layer for MemoryCache {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> LayerInfo {
        LayerInfo {
            kind: ENTRY.description.name,
            constants: vec![
                ("lines", self.lines.count() as f64),
                ("line_sectors", self.line_sectors as f64),
            ],
            custom: &["unsaved_sectors"],
            ..LayerInfo::default()
        }
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        self.positioner.clone()
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.used = ctx.now();
        self.enter(id, request, self.shares && request.op == Op::Read);
        self.settle(ctx);
        self.set_timers(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.tag & WRITE_BACK != 0 {
            self.written_back(ctx, done);
        } else {
            let index = done.tag as u32;
            let op = &mut self.ops[index as usize];
            op.parts = done.parts;
            match (op.request.op, done.outcome) {
                (Op::Read, Outcome::Done) => self.fetched(ctx, index, &done.request),
                (Op::Read, Outcome::Failed) => {
                    let request = op.request;
                    self.unpin(index);
                    self.drop_empty(&request);
                    ctx.data().give_back(done.request.data);
                    self.finish(ctx, index, Outcome::Failed);
                }
                (Op::Flush, outcome) => self.finish(ctx, index, outcome),
                (_, outcome) => self.went_through(ctx, index, outcome),
            }
        }
        self.settle(ctx);
        self.set_timers(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        let now = ctx.now();
        if token == PERIOD {
            self.period_set = false;
            self.wanted = self.lines.writes();
        } else {
            self.idle_set = false;
            let idle = self.idle.unwrap_or(SimDuration::ZERO);
            if now >= self.used + idle {
                self.wanted = self.lines.writes();
            } else {
                self.idle_set = true;
                ctx.wake_at(self.used + idle, IDLE);
            }
        }
        self.settle(ctx);
        self.set_timers(ctx);
    }
}
