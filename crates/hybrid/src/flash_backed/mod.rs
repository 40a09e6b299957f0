//! Flash-backed I/O requests (bisson-fqueue): a host I/O scheduler over a drive with an NV cache.
//!
//! Requests wait in the request queue, ordered by a scheduler. A write with a long positioning time
//! is redirected: its range is pinned, its data are written to the NV cache and kept in memory, and
//! it completes. Memory and NV cache hold the same data (the FQueue). They are written to the disk
//! together with a write they are adjacent to, while idle, or when the FQueue is full. Reads are
//! served from memory.
//!
//! - `rule`: which writes are redirected. `fqueue`: the FQueue in memory.
//! - `choose`: selection of the next operation. `work`: the steps of an operation. `power_cut`:
//!   recovery.
//!
//! One operation executes at a time, as the rule assumes; it looks ahead to the next request of the
//! queue. With `flash_queue_depth` above one, redirected writes execute concurrently; requests that
//! overlap one of them wait for it. Except for the sectors of the current operations, the FQueue in
//! memory and the pinned set of the drive are equal at all times.
//!
//! The order of steps when data leave the FQueue is a parameter (`order`). The paper unpins first,
//! then writes; a power failure in between loses acknowledged data. By default the disk is written
//! first, bypassing the NV cache, with a forced write, and the range is unpinned afterwards.

mod choose;
mod fqueue;
mod power_cut;
pub mod rule;
#[cfg(test)]
mod tests;
mod work;

use crate::nv_cache::NV_CACHE_SECTORS;
use fqueue::FQueue;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::schedule::{Positioner, Queued, Scheduler};
use hybridsim_engine::{
    Checkpoint, Command, Completion, Component, ComponentInfo, Ctx, Lba, Loader, PowerFailure,
    Request, RequestId, SECTOR_BYTES, Saver, SimDuration, SimTime, StateError, Stream,
};
use rule::Access;
use std::rc::Rc;
use work::{Active, Step};

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "flash-backed",
        summary: "an I/O scheduler that redirects writes to the NV cache of the drive below",
        origin: "bisson-fqueue, section III",
        params: Parameters::PARAMS,
    },
    build,
);

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
hybridsim_config::choices! {
    enum AccessTimes { Curve = "curve", Exact = "exact" }
}

hybridsim_config::choices! {
    /// Destinations of writes with equal costs.
    enum Ties { Redirect = "redirect", Disk = "disk" }
}

hybridsim_config::choices! {
    /// Destinations of writes without a successor in the request queue.
    enum Last { Cheaper = "cheaper", Disk = "disk" }
}

hybridsim_config::choices! {
    /// Entries of the FQueue that are written to the disk together with a write.
    enum Coalesced { Touching = "touching", Overlapping = "overlapping" }
}

hybridsim_config::choices! {
    /// Treatment of a write that covers all entries it overlaps.
    enum Overwrites { Coalesce = "coalesce", Replace = "replace" }
}

hybridsim_config::choices! {
    /// Order of steps when data leave the FQueue.
    enum Order { Safe = "safe", Printed = "printed" }
}

const REDIRECTS: &[Needs] = &[Needs::Is("redirect", &["true"])];
const DESTAGES_IDLE: &[Needs] = &[Needs::Is("redirect", &["true"]), Needs::Is("idle", &["true"])];

hybridsim_config::params! {
    pub struct Parameters {
        pub drive: String = Kind::Component, required,
            "A component with NV cache commands: `nv-cache-disk`.";
        scheduler: EntryChoice = Kind::Entry(SchedulerEntry::CATEGORY), default "\"c-look\"",
            "Scheduler of the request queue; bisson-fqueue evaluates fcfs, sstf and c-look.";
        redirect: bool = Kind::Flag, default "true",
            "Whether writes are redirected; without, this is the baseline scheduler of the paper.";
        fqueue: Option<u64> = Kind::Bytes, optional needs REDIRECTS,
            "Size of the FQueue; must equal the NV cache of the drive, which is the default.";
        access: AccessTimes = Kind::Choice(AccessTimes::NAMES), default "curve" needs REDIRECTS,
            "Access times the host assumes: mean times by distance, measured when the run begins, \
             or the exact positioning times of the disk.";
        flash_latency: SimDuration = Kind::Duration, default "\"0.7ms\"" needs REDIRECTS,
            "Write latency of the flash as the host assumes it, without data transfer (assumed).";
        flash_rate: u64 = Kind::Rate, default "\"9MB/s\"" needs REDIRECTS,
            "Write rate of the flash as the host assumes it.";
        flash_queue_depth: usize = Kind::Count { min: 1, max: 4096 }, default "1" needs REDIRECTS,
            "Redirected writes outstanding at once. With 1 no other operation executes meanwhile, \
             as in the simulator of bisson-fqueue, where access times add up; with more, the disk \
             works in parallel.";
        ties: Ties = Kind::Choice(Ties::NAMES), default "redirect" needs REDIRECTS,
            "Writes with equal costs: the text of bisson-fqueue redirects them, its figure 6 does \
             not.";
        last: Last = Kind::Choice(Last::NAMES), default "cheaper" needs REDIRECTS,
            "A write without a successor in the request queue, for which the rule of \
             bisson-fqueue is not defined: goes where its own access is `cheaper`, or to the disk.";
        coalesce: Coalesced = Kind::Choice(Coalesced::NAMES), default "touching" needs REDIRECTS,
            "Entries of the FQueue written to the disk together with a write: those that overlap \
             it or are adjacent to it, or those that overlap it.";
        overwrites: Overwrites = Kind::Choice(Overwrites::NAMES), default "coalesce"
            needs REDIRECTS,
            "A write that covers all entries it overlaps: goes to the disk like any other \
             overlapping write (figure 6), or may be redirected in their place.";
        high: f64 = SHARE, default "1" needs REDIRECTS,
            "High watermark: FQueue utilisation that starts a flush.";
        low: f64 = SHARE, default "0.9" needs REDIRECTS,
            "Low watermark, which ends a flush; the paper flushes a tenth.";
        merge_max: u64 = Kind::Bytes, default "\"1MiB\"" needs REDIRECTS,
            "Longest write of adjacent entries merged while flushing (assumed).";
        idle: bool = Kind::Flag, default "true" needs REDIRECTS,
            "Destage while the request queue is empty.";
        idle_delay: SimDuration = Kind::Duration, default "\"0ns\"" needs DESTAGES_IDLE,
            "Idle time before the FQueue is destaged; none in the paper.";
        idle_to: f64 = SHARE, default "0" needs DESTAGES_IDLE,
            "FQueue utilisation down to which it is destaged while idle. Section III.C of the \
             paper does not say; its evaluation flushes a tenth, which is the low watermark.";
        order: Order = Kind::Choice(Order::NAMES), default "safe" needs REDIRECTS,
            "safe: write to the disk, then unpin; printed: unpin first, as in figure 5(b), where a \
             power failure in between loses data.";
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    Ok(Box::new(make(input)?))
}

fn make(input: &BuildInput<'_>) -> Result<FlashBacked, Vec<Problem>> {
    let params = Parameters::from_settings(input.settings);
    let drive = &input.children[0];
    let mut problems = Vec::new();
    if params.low > params.high {
        let message = format!("must be at most `high` ({})", params.high);
        problems.push(Problem::new("low", message));
    }
    if params.merge_max < SECTOR_BYTES {
        problems.push(Problem::new("merge_max", "must be at least one sector of 512 bytes"));
    }
    if drive.capacity > u64::from(u32::MAX) {
        problems
            .push(Problem::new("drive", "is larger than 2 TiB, the longest range of a command"));
    }
    let fqueue = params.fqueue.filter(|_| params.redirect).map(|bytes| bytes / SECTOR_BYTES);
    let cache = drive.constant(NV_CACHE_SECTORS).map(|sectors| sectors as u64);
    if let (Some(fqueue), Some(cache)) = (fqueue, cache)
        && fqueue != cache
    {
        let message = format!(
            "{fqueue} sectors, and the NV cache of the drive has {cache}; both must hold the \
             same, so make them equal or leave `fqueue` out"
        );
        problems.push(Problem::new("fqueue", message));
    }
    let access = access(input, &params, &mut problems);
    let (entry, own) = input.registry.chosen::<SchedulerEntry>(&params.scheduler);
    let scheduler = (entry.build)(own).map_err(|more| problems.extend(more)).ok();
    let concurrent = match params.flash_queue_depth {
        1 => 0,
        more => more,
    };
    let Some(scheduler) = scheduler.filter(|_| problems.is_empty()) else { return Err(problems) };
    Ok(FlashBacked {
        capacity: drive.capacity,
        positioner: drive.positioner.clone(),
        scheduler,
        access,
        params,
        fqueue: FQueue::default(),
        lookahead: None,
        held: None,
        redirects: vec![None; concurrent],
        reserved: 0,
        last: Lba(0),
        active: None,
        flushing: false,
        flush_to: 0,
        flush_turn: true,
        broken: false,
        idle_since: SimTime::ZERO,
        idle_armed: false,
        recovering: None,
        restores: Vec::new(),
        overlaps: Vec::new(),
        waiting: 0,
        reported_level: 0,
    })
}

/// The access times the host assumes.
fn access(input: &BuildInput<'_>, params: &Parameters, problems: &mut Vec<Problem>) -> Access {
    let drive = &input.children[0];
    match &drive.positioner {
        _ if !params.redirect => Access::Curve(Vec::new()),
        Some(disk) if params.access == AccessTimes::Exact => Access::Exact(disk.clone()),
        Some(disk) => {
            let stream = Stream::new(input.seed, &format!("{}/curve", input.path));
            Access::measure(&**disk, drive.capacity, stream)
        }
        None => {
            let message = "has no moving head, so its access times are unknown";
            problems.push(Problem::new("drive", message));
            Access::Curve(Vec::new())
        }
    }
}

/// The scheduler.
pub struct FlashBacked {
    capacity: u64,
    positioner: Option<Rc<dyn Positioner>>,
    scheduler: Box<dyn Scheduler>,
    access: Access,
    params: Parameters,
    fqueue: FQueue,
    /// The next request of the queue, taken out to look ahead.
    lookahead: Option<Queued>,
    /// A request that waits for a concurrent redirected write; served before `lookahead`.
    held: Option<Queued>,
    /// Concurrent redirected writes; empty with a queue depth of 1.
    redirects: Vec<Option<Active>>,
    /// Sectors they will add to the FQueue.
    reserved: u64,
    /// Position of the head: the sector after the last access.
    last: Lba,
    active: Option<Active>,
    /// Flushing down to the low watermark.
    flushing: bool,
    /// The low watermark in sectors.
    flush_to: u64,
    /// While flushing, which alternates with requests: whether a flush is next.
    flush_turn: bool,
    /// A destage has failed: no redirection or flush from now on.
    broken: bool,
    /// Completion time of the last host request.
    idle_since: SimTime,
    idle_armed: bool,
    recovering: Option<SimTime>,
    /// Recovery: pinned ranges still to be read into memory.
    restores: Vec<(Lba, u64)>,
    /// Entries of the FQueue that the operation overlaps.
    overlaps: Vec<(u64, u64)>,
    /// Requests in the request queue.
    waiting: u64,
    reported_level: u64,
}

/// Names of [`hybridsim_engine::CommonEvent::Custom`], in the order of [`Metric`].
const CUSTOM: &[&str] = &[
    "disk_write_ns",
    "flash_write_ns",
    "coalesced_write_ns",
    "flush_back_ns",
    "idle_sync_ns",
    "disk_read_ns",
    "redirected_sectors",
    "coalesced_sectors",
    "overwritten_sectors",
    "fqueue_sectors",
    "memory_read_sectors",
    "flush_back_sectors",
    "idle_sync_sectors",
];

/// Reported numbers. Times are those of one operation, from leaving the request queue to its
/// completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Metric {
    /// A write that went to the disk alone, ns.
    DiskWrite,
    /// A redirected write, ns.
    FlashWrite,
    /// A write coalesced with entries of the FQueue, ns.
    CoalescedWrite,
    /// A flush between the watermarks, ns.
    FlushBack,
    /// A destage while idle, ns.
    IdleSync,
    /// A read that was not all in memory, ns.
    DiskRead,
    /// Sectors of a redirected write.
    Redirected,
    /// Sectors of the FQueue coalesced with a write.
    Coalesced,
    /// Sectors of the FQueue overwritten.
    Overwritten,
    /// Sectors in the FQueue.
    Level,
    /// Sectors read from memory.
    MemoryRead,
    /// Sectors flushed between the watermarks.
    FlushedBack,
    /// Sectors destaged while idle.
    IdleSynced,
}

impl Component for FlashBacked {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        // Without the parameter the drive reports the size when the run begins.
        let size = self.params.fqueue.filter(|_| self.params.redirect);
        let size = size.map(|bytes| ("fqueue_sectors_max", (bytes / SECTOR_BYTES) as f64));
        let constants = size.into_iter().collect();
        ComponentInfo {
            kind: ENTRY.description.name,
            constants,
            custom: CUSTOM,
            loses_writes: self.params.redirect && self.params.order == Order::Printed,
            ..ComponentInfo::default()
        }
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        // A restored state has the size.
        if self.params.redirect && self.fqueue.size() == 0 {
            self.active = Some(Active::own(Step::Sizing, ctx.now()));
            ctx.command(0, Command::QuerySize, (Lba(0), 0), 0);
        }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let item = Queued { key: u64::from(id.0), request: *request, since: ctx.now() };
        self.scheduler.push(item);
        self.waiting += 1;
        self.advance(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        self.done(ctx, done);
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, _token: u64) {
        self.idle_armed = false;
        self.advance(ctx);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl PowerFailure for FlashBacked {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        self.lose_power();
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.recover(ctx);
    }
}

impl Checkpoint for FlashBacked {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if self.active.is_some() || self.redirects.iter().any(Option::is_some) || self.waiting > 0 {
            return Err(StateError("operations are in progress".to_owned()));
        }
        to.put(&(&self.fqueue, self.last.0, self.broken, self.reported_level));
        to.put(&(self.flushing, self.flush_to, self.flush_turn));
        to.put(&(self.idle_since, self.idle_armed));
        self.scheduler.save(to)
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let last: u64;
        (self.fqueue, last, self.broken, self.reported_level) = from.take()?;
        (self.flushing, self.flush_to, self.flush_turn) = from.take()?;
        (self.idle_since, self.idle_armed) = from.take()?;
        self.last = Lba(last);
        self.scheduler.restore(from)
    }
}
