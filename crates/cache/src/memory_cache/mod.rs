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

mod lines;
mod params;
mod serve;
mod write_back;

use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::range_locks::RangeLocks;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Completion, Component, ComponentInfo, Contents, Ctx, LatencyBreakdown, LatencyPhase, Op,
    Outcome, Request, RequestId, SECTOR_BYTES, SimDuration, SimTime, Stream,
};
use lines::{Lines, Replacement};
use slab::Slab;
use std::collections::VecDeque;
use std::rc::Rc;

/// Sectors of a line at most: one bit each.
const LINE_SECTORS_MAX: u64 = 64;
/// Lines of a cache at most.
const LINES_MAX: u64 = 1 << 24;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "memory-cache",
        summary: "A controller's memory cache in front of a device: lines written back or through",
        origin: "DiskSim 4.0, disksim_cachemem",
        params: params::PARAMS,
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

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
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
        locks: RangeLocks::default(),
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
    breakdown: LatencyBreakdown,
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
    locks: RangeLocks,
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
        let op = Operation {
            id,
            request: *request,
            breakdown: LatencyBreakdown::NONE,
            locked: true,
            awaits: None,
        };
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

    fn finish(&mut self, ctx: &mut Ctx<'_>, index: u32, outcome: Outcome) {
        let op = self.ops.remove(index as usize);
        if op.locked {
            let ready = &mut self.ready;
            self.locks.release(index, |granted| ready.push_back(granted));
        }
        let total = ctx.now().since(ctx.issued(op.id));
        let breakdown =
            op.breakdown.plus(LatencyPhase::Queue, total.saturating_sub(op.breakdown.total()));
        if outcome == Outcome::Failed {
            ctx.fail_request(op.id, breakdown);
        } else {
            ctx.complete(op.id, breakdown);
        }
    }
}

impl Component for MemoryCache {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: ENTRY.description.name,
            constants: vec![
                ("lines", self.lines.count() as f64),
                ("line_sectors", self.line_sectors as f64),
            ],
            custom: &["unsaved_sectors"],
            ..ComponentInfo::default()
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
            op.breakdown = done.breakdown;
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
