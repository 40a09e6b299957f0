//! A memory cache in front of a device, with write-back, write-through or write-around.
//!
//! Each sector of a page (DiskSim: line) is valid or not, so a write needs no read-modify-write. A
//! request locks its pages; reads share them.
//!
//! - A read that misses fetches what is missing with one read of the device.
//! - A write completes in the cache (`back`; `early` also starts its write-back at once), or goes
//!   to the device first and stays in the cache (`through`) or not (`sync`). Forced writes, trims
//!   and requests larger than the cache go to the device as well.
//! - A flush writes back all pages dirty at its arrival, then goes to the device.
//!
//! Dirty pages are written back to free pages, periodically, or after an idle time; adjacent pages
//! together, at most one write-back per page at a time. Nothing else is written to the device for a
//! page with an outstanding write-back, so newer data are never overwritten by older ones.

mod pages;
mod serve;
mod write_back;

use crate::flush::{self, Flush};
use crate::paged::CACHED_PAGE_BYTES;
use crate::paged::directory::bits;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::range_locks::RangeLocks;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Contents, Ctx, LatencyBreakdown,
    LatencyPhase, Loader, Op, Outcome, Request, RequestId, SECTOR_BYTES, Saver, SimDuration,
    SimTime, StateError, Stream,
};
use pages::{EvictionOrder, PageTable};
use slab::Slab;
use std::collections::VecDeque;
use std::rc::Rc;

/// Largest page in sectors: one bit each.
const PAGE_SECTORS_MAX: u64 = 64;
/// Largest cache in pages.
const PAGES_MAX: u64 = 1 << 24;

hybridsim_config::choices! {
    /// Replacement policies.
    enum Order {
        Lru = "lru",
        Fifo = "fifo",
        Slru = "slru",
        Random = "random",
        Lifo = "lifo",
    }
}

hybridsim_config::choices! {
    /// Completion of writes, and whether their data stay in the cache.
    enum Scheme {
        Back = "back",
        Early = "early",
        Through = "through",
        Sync = "sync",
    }
}

hybridsim_config::choices! {
    /// Pages that may be evicted.
    enum Allocation { Clean = "clean", Strict = "strict" }
}

hybridsim_config::choices! {
    /// Sectors that a read which misses fetches besides.
    enum Prefetch {
        None = "none",
        FrontOfPage = "front-of-line",
        RestOfPage = "rest-of-line",
        WholePage = "whole-line",
    }
}

/// Only these schemes have dirty pages.
const WRITES_BACK: Needs = Needs::Is("write_scheme", &["back", "early"]);

hybridsim_config::params! {
    /// The parameters of a memory cache.
    pub struct Parameters {
        pub device: String = Kind::Component, required, "The device behind the cache.";
        size: u64 = Kind::Bytes, required, "Cache size.";
        page_size: u64 = Kind::Bytes, default "\"4KiB\"",
            "Cache page size: a multiple of 512 bytes, at most 32 KiB.";
        replacement: Order = Kind::Choice(Order::NAMES), default "lru",
            "Replacement policy: which page is evicted.";
        protected_share: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.5"
            needs &[Needs::Is("replacement", &["slru"])],
            "With `slru`: share of the pages in the protected segment, which holds pages used \
             again.";
        write_scheme: Scheme = Kind::Choice(Scheme::NAMES), default "back",
            "back: a write completes in the cache; early: likewise, and its write-back starts at \
             once; through: a write completes when the device has it, and stays in the cache; \
             sync: likewise, without staying in the cache.";
        allocation: Allocation = Kind::Choice(Allocation::NAMES), default "clean"
            needs &[WRITES_BACK],
            "clean: evict the first clean page in eviction order; strict: evict the first page, \
             and wait for its write-back if it is dirty.";
        flush: Flush = Kind::Choice(Flush::NAMES), default "demand" needs &[WRITES_BACK],
            "demand: write back when pages have to be evicted; periodic: also every \
             `flush_period`.";
        flush_period: SimDuration = Kind::Duration, default "\"30s\""
            needs &[WRITES_BACK, Needs::Is("flush", &["periodic"])],
            "Interval of periodic write-backs.";
        flush_idle: Option<SimDuration> = Kind::Duration, optional needs &[WRITES_BACK],
            "Dirty pages are also written back when no request has arrived for so long.";
        flush_cluster: u64 = Kind::Count { min: 1, max: 4096 }, default "8" needs &[WRITES_BACK],
            "Most adjacent pages written back together.";
        read_prefetch: Prefetch = Kind::Choice(Prefetch::NAMES), default "none",
            "What a read that misses fetches besides: the front of its first page, the rest of its \
             last page, or all of its pages.";
        reads_wait: bool = Kind::Flag, default "false",
            "Whether a read that misses waits until its pages can be allocated, for which dirty \
             pages are written back; otherwise it is sent to the device at once.";
        shared_read_locks: bool = Kind::Flag, default "true",
            "Whether reads of the same page are served concurrently.";
    }
}

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "memory-cache",
        summary: "A controller's memory cache in front of a device: pages written back or through",
        origin: "DiskSim 4.0, disksim_cachemem",
        params: Parameters::PARAMS,
    },
    build,
)
.with_memory(|settings, _| {
    let pages = settings.bytes("size") / settings.bytes("page_size").max(1);
    pages.saturating_mul(CACHED_PAGE_BYTES)
});

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let page = params.page_size;
    let sectors = page / SECTOR_BYTES;
    if !page.is_multiple_of(SECTOR_BYTES) || !(1..=PAGE_SECTORS_MAX).contains(&sectors) {
        let message = format!("{page} bytes; must be a multiple of 512 bytes, 512B to 32KiB");
        problems.push(Problem::new("page_size", message));
    }
    let pages = params.size / page.max(1);
    if !(1..=PAGES_MAX).contains(&pages) {
        let message = format!("holds {pages} pages; a cache has 1 to {PAGES_MAX}");
        problems.push(Problem::new("size", message));
    }
    let flush = (params.flush, params.flush_period);
    let period = flush::period(flush, params.flush_idle, &mut problems);
    let [device] = input.children else {
        problems.push(Problem::new("device", "takes one device"));
        return Err(problems);
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    let order = match params.replacement {
        Order::Lru => EvictionOrder::Lru,
        Order::Fifo => EvictionOrder::Fifo,
        Order::Slru => EvictionOrder::Slru((params.protected_share * pages as f64) as usize),
        Order::Random => EvictionOrder::Random,
        Order::Lifo => EvictionOrder::Lifo,
    };
    let strict = params.allocation == Allocation::Strict;
    let stream = Stream::new(input.seed, input.path);
    Ok(Box::new(MemoryCache {
        capacity: device.capacity,
        positioner: device.positioner.clone(),
        page_sectors: sectors,
        pages: PageTable::new(pages as u32, order, strict, stream),
        period,
        params,
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
        last_request: SimTime::ZERO,
        period_set: false,
        idle_set: false,
    }))
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    id: RequestId,
    request: Request,
    /// Latency of the request to the device, if there was one.
    breakdown: LatencyBreakdown,
    locked: bool,
    /// Number of the write-back it waits for.
    awaits: Option<u64>,
}

/// The cache.
pub struct MemoryCache {
    capacity: u64,
    positioner: Option<Rc<dyn Positioner>>,
    page_sectors: u64,
    pages: PageTable,
    period: Option<SimDuration>,
    params: Parameters,
    contents: Contents,
    ops: Slab<Operation>,
    /// By operation, the pages it has pinned.
    pinned: Vec<Vec<u32>>,
    /// Operations that have their locks and may begin.
    ready: VecDeque<u32>,
    /// Operations that have their locks and wait for free pages, in order.
    stalled: VecDeque<u32>,
    /// Flushes, and the number of the last write each of them covers.
    flushes: VecDeque<(u32, u64)>,
    locks: RangeLocks,
    /// Numbers of the writes whose write-back is outstanding.
    writing: Vec<u64>,
    /// Pages made dirty up to this write are to be written back.
    wanted: u64,
    /// The last write-back failed: operations no longer wait for free pages.
    broken: bool,
    /// Arrival of the last request.
    last_request: SimTime,
    period_set: bool,
    idle_set: bool,
}

/// Marks the tag of a write-back, which has the number of its write; other tags are operations.
const WRITE_BACK: u64 = 1 << 63;
/// Timer tokens.
const PERIOD: u64 = 0;
const IDLE: u64 = 1;

/// Custom event: sectors whose write-back failed, and which stay dirty.
const UNSAVED_SECTORS: u8 = 0;

impl MemoryCache {
    fn numbers(&self, request: &Request) -> std::ops::Range<u64> {
        request.lba.0 / self.page_sectors..request.end().0.div_ceil(self.page_sectors)
    }

    /// The sectors of page `number` that a range covers.
    fn bits_of(&self, number: u64, from: u64, end: u64) -> u64 {
        let start = number * self.page_sectors;
        bits(from.saturating_sub(start), (end - start).min(self.page_sectors))
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
            self.flushes.push_back((index, self.pages.writes()));
            self.wanted = self.wanted.max(self.pages.writes());
            return;
        }
        let numbers = self.numbers(request);
        if self.locks.acquire(index, numbers.start, numbers.end, !shared) {
            self.ready.push_back(index);
        }
    }

    /// Starts everything that can start now.
    fn advance(&mut self, ctx: &mut Ctx<'_>) {
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

    /// Retries the operations that wait for free pages, in order. The first of them can always
    /// begin sooner or later, so all of them do. At most 64 are tried, to bound the cost of an
    /// event.
    fn begin_stalled(&mut self, ctx: &mut Ctx<'_>) {
        const TRIED: usize = 64;
        let mut at = 0;
        for _ in 0..self.stalled.len().min(TRIED) {
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
        ctx.complete_as(op.id, breakdown, outcome == Outcome::Failed);
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
                ("cache_pages", self.pages.count() as f64),
                ("page_sectors", self.page_sectors as f64),
            ],
            custom: &["unsaved_sectors"],
            ..ComponentInfo::default()
        }
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        self.positioner.clone()
    }

    hybridsim_engine::supports!(Checkpoint);

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.last_request = ctx.now();
        self.enter(id, request, self.params.shared_read_locks && request.op == Op::Read);
        self.advance(ctx);
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
        self.advance(ctx);
        self.set_timers(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        let now = ctx.now();
        if token == PERIOD {
            self.period_set = false;
            self.wanted = self.pages.writes();
        } else {
            self.idle_set = false;
            let idle = self.params.flush_idle.unwrap_or(SimDuration::ZERO);
            if now >= self.last_request + idle {
                self.wanted = self.pages.writes();
            } else {
                self.idle_set = true;
                ctx.wake_at(self.last_request + idle, IDLE);
            }
        }
        // No page has become free: what waits for one still waits.
        self.write_back(ctx);
        self.set_timers(ctx);
    }
}

impl Checkpoint for MemoryCache {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if !self.ops.is_empty() || !self.writing.is_empty() {
            return Err(StateError("operations are in progress".to_owned()));
        }
        to.put(&(&self.pages, self.wanted, self.broken, self.last_request));
        to.put(&(self.period_set, self.idle_set));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let pages: PageTable;
        (pages, self.wanted, self.broken, self.last_request) = from.take()?;
        (self.period_set, self.idle_set) = from.take()?;
        if !pages.is_like(&self.pages) {
            return Err(StateError("it is of a cache of another size or policy".to_owned()));
        }
        self.pages = pages;
        Ok(())
    }
}
