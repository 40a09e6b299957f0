//! One device as the cache of another.
//!
//! Cached data have the same addresses on both devices; bitmaps record which sectors are valid in
//! the cache and which of them are dirty. A request locks its sectors; reads share them.
//!
//! - A read whose sectors are all valid is served by the cache; any other by the device, and is
//!   promoted afterwards. Its dirty sectors are read from the cache in addition.
//! - A write completes when the cache has it (`back`), when both have it (`through`), or when the
//!   device has it, which invalidates it in the cache (`sync`). The last also holds for writes
//!   beyond the size of the cache.
//! - A flush goes to both devices. A trim does nothing: the data stay.
//!
//! Dirty sectors are written back run by run, one at a time, periodically or after an idle time, as
//! long as at most one request is outstanding (DiskSim: as long as no request waits). A run that
//! cannot be read or written stays dirty, is reported, and is retried in the next round; so is a
//! write that the device has failed. A write that the cache fails goes to the device.

use super::bits::Bits;
use crate::event::CacheEvent;
use crate::flush::{self, Flush};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::range_locks::RangeLocks;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, DataSlice, Flags, LatencyBreakdown,
    LatencyPhase, Lba, Loader, Op, Request, RequestId, SECTOR_BYTES, Saver, SimDuration, SimTime,
    StateError,
};
use slab::Slab;
use std::collections::VecDeque;

hybridsim_config::choices! {
    /// Completion of writes.
    enum Scheme { Back = "back", Through = "through", Sync = "sync" }
}

/// Sectors are dirty with `back`, and with `through` when the device has failed their write.
const WRITES_BACK: Needs = Needs::Not("write_scheme", &["sync"]);

hybridsim_config::params! {
    pub struct Parameters {
        pub devices: Vec<String> = Kind::Components, required,
            "Two devices: the backing device, and the cache.";
        cache_first: bool = Kind::Flag, default "false",
            "Whether the first of the two is the cache.";
        size: Option<u64> = Kind::Bytes, optional,
            "Size of the cached address range, from sector 0; all that fits when absent.";
        write_scheme: Scheme = Kind::Choice(Scheme::NAMES), default "back",
            "back: a write completes when the cache has it; through: when both devices have it; \
             sync: when the device has it, without staying in the cache.";
        flush: Flush = Kind::Choice(Flush::NAMES), default "demand" needs &[WRITES_BACK],
            "periodic: dirty sectors are written back every `flush_period`.";
        flush_period: SimDuration = Kind::Duration, default "\"30s\""
            needs &[WRITES_BACK, Needs::Is("flush", &["periodic"])],
            "Interval of periodic write-backs.";
        flush_idle: Option<SimDuration> = Kind::Duration, optional needs &[WRITES_BACK],
            "Also write back after this idle time of the device, until requests wait.";
        flush_sectors_max: u64 = Kind::Count { min: 1, max: 1 << 20 }, default "512"
            needs &[
                WRITES_BACK,
                Needs::Any(&[Needs::Is("flush", &["periodic"]), Needs::given("flush_idle")]),
            ],
            "Longest write-back in sectors.";
    }
}

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "cache-device",
        summary: "One device as the cache of another, at the same addresses",
        origin: "DiskSim 4.0, disksim_cachedev",
        params: Parameters::PARAMS,
    },
    build,
);

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let [first, second] = input.children else {
        let message = format!("takes two devices, found {}", input.children.len());
        return Err(vec![Problem::new("devices", message)]);
    };
    let (device, cache) = if params.cache_first { (second, first) } else { (first, second) };
    let most = device.capacity.min(cache.capacity);
    let size = params.size.map_or(most, |bytes| bytes / SECTOR_BYTES);
    if size == 0 || size > most {
        let message = format!("{size} sectors; must be 1 to the {most} both devices have");
        problems.push(Problem::new("size", message));
    }
    let flush = (params.flush, params.flush_period);
    let period = flush::period(flush, params.flush_idle, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Box::new(CacheDevice {
        capacity: device.capacity,
        size,
        device: usize::from(params.cache_first),
        cache: usize::from(!params.cache_first),
        scheme: params.write_scheme,
        idle: params.flush_idle,
        period,
        sectors_max: params.flush_sectors_max,
        valid: Bits::new(size),
        dirty: Bits::new(size),
        ops: Slab::new(),
        ready: VecDeque::new(),
        locks: RangeLocks::default(),
        present: 0,
        at_device: 0,
        last_completion: SimTime::ZERO,
        round: None,
        only_idle: false,
        writing_back: false,
        timers: [false; 2],
    }))
}

/// The step an operation is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A read of the cache, of the device, or of dirty sectors in the cache.
    ReadCache,
    ReadDevice,
    ReadDirty,
    /// The request is complete; its data are written to the cache.
    Promote,
    /// A write to the cache, to the device, or to both.
    WriteCache,
    WriteDevice,
    WriteBoth,
    Flush,
    /// Write-back: read of the cache, then write to the device.
    WriteBackRead,
    WriteBack,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    step: Step,
    id: RequestId,
    request: Request,
    /// Requests outstanding at the devices.
    left: u32,
    breakdown: LatencyBreakdown,
    /// By child, whether it failed one of them.
    failed: [bool; 2],
}

/// A device and its cache.
pub struct CacheDevice {
    capacity: u64,
    /// Sectors of the cached address range.
    size: u64,
    /// Child numbers.
    device: usize,
    cache: usize,
    scheme: Scheme,
    idle: Option<SimDuration>,
    period: Option<SimDuration>,
    sectors_max: u64,
    /// Sectors valid and dirty in the cache.
    valid: Bits,
    dirty: Bits,
    ops: Slab<Operation>,
    /// Operations that have their locks and may begin.
    ready: VecDeque<u32>,
    locks: RangeLocks,
    /// Host requests outstanding.
    present: u64,
    /// Requests outstanding at the device, and when it last completed one.
    at_device: u64,
    last_completion: SimTime,
    /// Sector at which the current round of write-backs continues.
    round: Option<u64>,
    /// The round ends when a request arrives.
    only_idle: bool,
    writing_back: bool,
    timers: [bool; 2],
}

const PERIOD: u64 = 0;
const IDLE: u64 = 1;
/// Custom event: sectors whose write-back failed.
const UNSAVED_SECTORS: u8 = 0;

impl CacheDevice {
    fn open(&mut self, step: Step, id: RequestId, request: Request, shared: bool) {
        let op = Operation {
            step,
            id,
            request,
            left: 0,
            breakdown: LatencyBreakdown::NONE,
            failed: [false; 2],
        };
        let index = self.ops.insert(op) as u32;
        let (from, to) = (request.lba.0, request.end().0);
        if step == Step::Flush || self.locks.acquire(index, from, to, !shared) {
            self.ready.push_back(index);
        }
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, index: u32, child: usize, request: Request) {
        self.ops[index as usize].left += 1;
        self.at_device += u64::from(child == self.device);
        ctx.issue(child, request, u64::from(index));
    }

    /// The part of a request within the cached address range.
    fn cached(&self, request: &Request) -> (u64, u64) {
        (request.lba.0.min(self.size), request.end().0.min(self.size))
    }

    /// Starts everything that can start now.
    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(index) = self.ready.pop_front() {
            let op = self.ops[index as usize];
            match (op.step, op.request.op) {
                (Step::WriteBackRead, _) => self.begin_write_back(ctx, index),
                (_, Op::Read) => self.read(ctx, index),
                (_, Op::Write) => self.write(ctx, index),
                (_, Op::Zone(_)) => unreachable!("the machine refuses zone commands here"),
                (_, Op::Flush | Op::Trim) => {
                    for child in [self.device, self.cache] {
                        self.issue(ctx, index, child, op.request);
                    }
                }
            }
        }
        self.next_write_back(ctx);
        self.set_timers(ctx);
    }

    fn read(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let request = self.ops[index as usize].request;
        let (from, to) = (request.lba.0, request.end().0);
        let hit = to <= self.size && self.valid.all(from, to);
        // A read that is not cached as a whole is served by the device.
        let hits = if hit { request.sectors } else { 0 };
        let misses = request.sectors - hits;
        ctx.emit(CacheEvent::CacheLookup { op: Op::Read, hits, misses });
        self.ops[index as usize].step = if hit { Step::ReadCache } else { Step::ReadDevice };
        self.issue(ctx, index, if hit { self.cache } else { self.device }, request);
    }

    fn write(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let request = self.ops[index as usize].request;
        let fits = request.end().0 <= self.size;
        let step = match self.scheme {
            Scheme::Back if fits => Step::WriteCache,
            Scheme::Through if fits => Step::WriteBoth,
            _ => Step::WriteDevice,
        };
        let (from, to) = self.cached(&request);
        let hits = self.valid.count(from, to) as u32;
        let misses = request.sectors - hits;
        ctx.emit(CacheEvent::CacheLookup { op: Op::Write, hits, misses });
        self.ops[index as usize].step = step;
        if step != Step::WriteDevice {
            self.issue(ctx, index, self.cache, request);
        }
        if step != Step::WriteCache {
            self.issue(ctx, index, self.device, request);
        }
    }

    fn step_completed(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let op = self.ops[index as usize];
        let (from, to) = self.cached(&op.request);
        let (cache_failed, device_failed) = (op.failed[self.cache], op.failed[self.device]);
        self.ops[index as usize].failed = [false; 2];
        match op.step {
            Step::ReadCache if cache_failed && !self.dirty.any(from, to) => {
                self.valid.clear(from, to);
                self.ops[index as usize].step = Step::ReadDevice;
                self.issue(ctx, index, self.device, op.request);
            }
            Step::ReadDevice if !device_failed && self.dirty.any(from, to) => {
                self.read_dirty(ctx, index);
            }
            Step::ReadDevice if !device_failed && from < to => self.promote(ctx, index),
            Step::ReadCache | Step::ReadDevice | Step::ReadDirty => {
                self.complete(ctx, index, cache_failed || device_failed);
                self.close(index);
            }
            Step::Promote => {
                if !cache_failed {
                    self.valid.set(from, to);
                }
                ctx.data().give_back(op.request.data);
                self.close(index);
            }
            Step::WriteCache if cache_failed => {
                self.ops[index as usize].step = Step::WriteDevice;
                self.issue(ctx, index, self.device, op.request);
            }
            Step::WriteCache | Step::WriteDevice | Step::WriteBoth => {
                self.written(ctx, index, cache_failed, device_failed);
            }
            Step::Flush => {
                self.complete(ctx, index, cache_failed || device_failed);
                self.ops.remove(index as usize);
            }
            Step::WriteBackRead if !cache_failed => {
                let request = Request { op: Op::Write, ..op.request };
                self.ops[index as usize].step = Step::WriteBack;
                self.issue(ctx, index, self.device, request);
            }
            Step::WriteBackRead | Step::WriteBack => {
                if cache_failed || device_failed {
                    ctx.emit(CommonEvent::Custom { name: UNSAVED_SECTORS, value: to - from });
                } else {
                    self.dirty.clear(from, to);
                    ctx.emit(CacheEvent::Destaged { sectors: op.request.sectors });
                }
                ctx.data().give_back(op.request.data);
                self.writing_back = false;
                self.close(index);
            }
        }
    }

    /// Reads the dirty sectors from the cache, over what the device has returned.
    fn read_dirty(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let request = self.ops[index as usize].request;
        let (mut at, to) = self.cached(&request);
        self.ops[index as usize].step = Step::ReadDirty;
        while let Some((from, end)) = self.dirty.run(at, to, u64::MAX) {
            let skipped = (from - request.lba.0) as u32;
            let data =
                if request.data.is_none() { DataSlice::NONE } else { request.data.skip(skipped) };
            let sectors = (end - from) as u32;
            let newer = Request { lba: Lba(from), sectors, data, ..request };
            self.issue(ctx, index, self.cache, newer);
            at = end;
        }
    }

    /// Completes a read and promotes its data.
    fn promote(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let request = self.ops[index as usize].request;
        let (from, to) = self.cached(&request);
        let sectors = (to - from) as u32;
        let data = ctx.copy_data(&Request { sectors, ..request });
        self.complete(ctx, index, false);
        let write = Request::new(Op::Write, Lba(from), sectors);
        let write = Request { flags: Flags::BACKGROUND, data, ..write };
        let op = &mut self.ops[index as usize];
        (op.step, op.request) = (Step::Promote, write);
        // The lock stays the one of the whole request.
        self.issue(ctx, index, self.cache, write);
    }

    /// A write has completed on the devices, or failed on some of them.
    fn written(&mut self, ctx: &mut Ctx<'_>, index: u32, no_cache: bool, no_device: bool) {
        let op = self.ops[index as usize];
        let (from, to) = self.cached(&op.request);
        let in_cache = op.step != Step::WriteDevice && !no_cache;
        let in_device = op.step != Step::WriteCache && !no_device;
        if in_cache {
            self.valid.set(from, to);
            self.dirty.set(from, to);
        } else if in_device {
            self.valid.clear(from, to);
        }
        if in_device {
            self.dirty.clear(from, to);
        }
        self.complete(ctx, index, !in_cache && !in_device);
        self.close(index);
    }

    fn complete(&mut self, ctx: &mut Ctx<'_>, index: u32, failed: bool) {
        let op = self.ops[index as usize];
        self.present -= 1;
        let total = ctx.now().since(ctx.issued(op.id));
        let breakdown =
            op.breakdown.plus(LatencyPhase::Queue, total.saturating_sub(op.breakdown.total()));
        ctx.complete_as(op.id, breakdown, failed);
    }

    fn close(&mut self, index: u32) {
        let ready = &mut self.ready;
        self.locks.release(index, |granted| ready.push_back(granted));
        self.ops.remove(index as usize);
    }

    fn next_write_back(&mut self, ctx: &mut Ctx<'_>) {
        let Some(from) = self.round else { return };
        if self.writing_back {
            return;
        }
        let run = if self.dirty.is_empty() || (self.only_idle && self.present > 1) {
            None
        } else {
            self.dirty.run(from, self.size, self.sectors_max)
        };
        let Some((start, end)) = run else {
            self.round = None;
            return;
        };
        self.round = Some(end);
        self.writing_back = true;
        let read = Request::new(Op::Read, Lba(start), (end - start) as u32);
        let read = Request { flags: Flags::BACKGROUND, ..read };
        self.open(Step::WriteBackRead, RequestId(0), read, false);
        if let Some(index) = self.ready.pop_front() {
            // Nothing else was ready: it is the operation just opened.
            self.begin_write_back(ctx, index);
        }
    }

    /// A run has been locked; it may have become shorter or clean meanwhile.
    fn begin_write_back(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let request = self.ops[index as usize].request;
        let (from, to) = (request.lba.0, request.end().0);
        let Some((start, end)) = self.dirty.run(from, to, u64::MAX) else {
            self.writing_back = false;
            self.close(index);
            // Lets operations that waited for the lock start, and the next write-back.
            ctx.wake_at(ctx.now(), PERIOD | AGAIN);
            return;
        };
        let sectors = (end - start) as u32;
        let data = ctx.take_data(sectors);
        let read = Request { lba: Lba(start), sectors, data, ..request };
        self.ops[index as usize].request = read;
        self.issue(ctx, index, self.cache, read);
    }

    fn set_timers(&mut self, ctx: &mut Ctx<'_>) {
        let times = [self.period, self.idle];
        let dirty = !self.dirty.is_empty();
        for (token, time) in times.into_iter().enumerate() {
            let Some(time) = time.filter(|_| dirty && self.round.is_none()) else { continue };
            if !std::mem::replace(&mut self.timers[token], true) {
                ctx.wake_after(time, token as u64);
            }
        }
    }
}

/// Marks the token of a timer that only advances.
const AGAIN: u64 = 1 << 1;

impl Component for CacheDevice {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: ENTRY.description.name,
            constants: vec![("cached_sectors", self.size as f64)],
            custom: &["unsaved_sectors"],
            ..ComponentInfo::default()
        }
    }

    hybridsim_engine::supports!(Checkpoint);

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if request.op == Op::Trim {
            ctx.complete(id, LatencyBreakdown::NONE);
            return;
        }
        self.present += 1;
        let step = if request.op == Op::Flush { Step::Flush } else { Step::ReadDevice };
        self.open(step, id, *request, request.op == Op::Read);
        self.advance(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.child == self.device {
            self.at_device -= 1;
            self.last_completion = ctx.now();
        }
        let index = done.tag as u32;
        let op = &mut self.ops[index as usize];
        op.left -= 1;
        op.failed[done.child] |= done.failed();
        if op.left == 0 {
            op.breakdown = done.breakdown;
            self.step_completed(ctx, index);
        }
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        if token & AGAIN == 0 {
            self.timers[token as usize] = false;
            let idle = self.idle.unwrap_or(SimDuration::ZERO);
            let busy = self.at_device > 0 || self.present > 1;
            if token == IDLE && (busy || ctx.now() < self.last_completion + idle) {
                self.timers[IDLE as usize] = true;
                let at = if busy { ctx.now() } else { self.last_completion };
                ctx.wake_at(at + idle, IDLE);
            } else if self.round.is_none() {
                (self.round, self.only_idle) = (Some(0), token == IDLE);
            } else if token == PERIOD {
                self.only_idle = false;
            }
        }
        self.advance(ctx);
    }
}

impl Checkpoint for CacheDevice {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if !self.ops.is_empty() {
            return Err(StateError("operations are in progress".to_owned()));
        }
        to.put(&(self.size, &self.valid, &self.dirty, self.last_completion));
        to.put(&(self.round, self.only_idle, self.timers));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let size: u64;
        (size, self.valid, self.dirty, self.last_completion) = from.take()?;
        (self.round, self.only_idle, self.timers) = from.take()?;
        if size != self.size {
            let wanted = self.size;
            return Err(StateError(format!("it caches {size} sectors, this system {wanted}")));
        }
        Ok(())
    }
}
