//! Flash-backed I/O requests (bisson-fqueue): a host's I/O scheduler over a drive with an NV cache.
//!
//! Requests wait in the request queue, ordered by a scheduler. A write the disk would take long to
//! reach is redirected: pinned and written to the NV cache, kept in memory, and done. Memory and NV
//! cache hold the same (the FQueue); it is written to the disk with a write it lies beside, when
//! nothing else is to do, or when it is full. Reads are answered from memory.
//!
//! - `rule`: which writes are redirected. `fqueue`: the FQueue in memory.
//! - `choose`: what is done next. `work`: the steps of it. `power_cut`: recovery.
//! - [`curve_disk`]: a disk as the paper's simulator has it.
//!
//! One operation is under way at a time, as the rule assumes; the request that is looked ahead to
//! is the one that goes next. With `flash_in_flight` above one, redirected writes are under way
//! beside it; requests that touch one of them wait for it. But for the sectors an operation is
//! about, the FQueue in memory and the pinned set of the drive are the same at all times.
//!
//! The order of steps when data leave the FQueue is a choice (`order`). The paper unpins first,
//! then writes; a power failure between the two loses what was acknowledged. By default the disk
//! is written first, past the NV cache, and has forced it to its medium before it is unpinned.

mod choose;
mod fqueue;
mod power_cut;
pub mod rule;
#[cfg(test)]
mod tests;
mod work;

use fqueue::FQueue;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::schedule::{Positioner, Queued, Scheduler};
use hybridsim_engine::{
    Command, Completion, Component, ComponentInfo, Ctx, Lba, PowerFailure, Request, RequestId,
    SECTOR_BYTES, SimDuration, SimTime, Stream,
};
use rule::Access;
use std::rc::Rc;
use work::{Active, Step};

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "flash-backed",
        summary: "an I/O scheduler that redirects writes to the NV cache of the drive below",
        origin: "bisson-fqueue, section III",
        params: PARAMS,
    },
    build,
};

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const PARAMS: &[Param] = &[
    Param::required(
        "drive",
        Kind::Component,
        "A part that knows NV cache commands: `nv-cache-disk`",
    ),
    Param::with(
        "scheduler",
        Kind::Entry(SchedulerEntry::CATEGORY),
        "\"c-look\"",
        "The order of the request queue; bisson-fqueue tries fcfs, sstf and c-look",
    ),
    Param::with(
        "redirect",
        Kind::Flag,
        "true",
        "Without it this is a plain scheduler, which the paper compares with",
    ),
    Param::optional(
        "fqueue",
        Kind::Bytes,
        "Memory for the FQueue; must equal the NV cache of the drive, and is as large when absent",
    ),
    Param::with(
        "access",
        Kind::Choice(&["curve", "exact"]),
        "\"curve\"",
        "What the host knows of the disk: mean access times by distance, measured when the run \
         begins, or the disk's own estimate",
    ),
    Param::with(
        "flash_latency",
        Kind::Duration,
        "\"0.7ms\"",
        "What the host knows of the flash: time of a write but for its data (assumed)",
    ),
    Param::with("flash_rate", Kind::Rate, "\"9MB/s\"", "The same: the rate data are written at"),
    Param::with(
        "flash_in_flight",
        Kind::Count { min: 1, max: 4096 },
        "1",
        "Redirected writes under way at once. With 1 nothing else is done meanwhile, as in paper \
         001's simulator, whose access times add up; with more, the disk goes on beside them",
    ),
    Param::with(
        "ties",
        Kind::Choice(&["redirect", "disk"]),
        "\"redirect\"",
        "Where both ways cost the same: bisson-fqueue's text redirects, its figure 6 does not",
    ),
    Param::with(
        "coalesce",
        Kind::Choice(&["touching", "overlapping"]),
        "\"touching\"",
        "What goes to the disk together with a write: all of the FQueue that overlaps it or lies \
         against it, or what overlaps only",
    ),
    Param::with(
        "overwrites",
        Kind::Choice(&["coalesce", "replace"]),
        "\"coalesce\"",
        "A write that covers all it meets in the FQueue: goes to the disk like any other that \
         meets something (figure 6), or is redirected in its place if the rule says so",
    ),
    Param::with("high", SHARE, "1", "Share of the FQueue from which on it is flushed"),
    Param::with("low", SHARE, "0.9", "Share down to which; the paper flushes a tenth"),
    Param::with(
        "merge_max",
        Kind::Bytes,
        "\"1MiB\"",
        "The longest write that neighbours in the FQueue are merged to while flushing (assumed)",
    ),
    Param::with("idle", Kind::Flag, "true", "Write back while the request queue is empty"),
    Param::with(
        "idle_delay",
        Kind::Duration,
        "\"0ns\"",
        "How long it has to be empty; the paper waits no longer",
    ),
    Param::with(
        "order",
        Kind::Choice(&["safe", "printed"]),
        "\"safe\"",
        "Write to the disk, then unpin; or, as figure 5(b) has it, unpin first, which a power \
         failure in between turns into lost data",
    ),
];

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    Ok(Box::new(make(input)?))
}

fn make(input: &BuildInput<'_>) -> Result<FlashBacked, Vec<Problem>> {
    let settings = input.settings;
    let drive = &input.children[0];
    let mut problems = Vec::new();
    let options = Options::read(settings, &mut problems);
    if drive.capacity > u64::from(u32::MAX) {
        problems
            .push(Problem::new("drive", "is larger than 2 TiB, more than one command can name"));
    }
    let access = access(input, options.redirect, &mut problems);
    let (entry, own) = input.chosen::<SchedulerEntry>("scheduler");
    let scheduler = (entry.build)(own).map_err(|more| problems.extend(more)).ok();
    let beside = match settings.count("flash_in_flight") {
        1 => 0,
        more => more,
    };
    let Some(scheduler) = scheduler.filter(|_| problems.is_empty()) else { return Err(problems) };
    Ok(FlashBacked {
        capacity: drive.capacity,
        positioner: drive.positioner.clone(),
        scheduler,
        access,
        options,
        fqueue: FQueue::default(),
        staged: None,
        held: None,
        beside: vec![None; beside as usize],
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
        met: Vec::new(),
        waiting: 0,
        level_told: 0,
    })
}

#[derive(Debug)]
struct Options {
    redirect: bool,
    fqueue: Option<u64>,
    flash_latency: SimDuration,
    flash_rate: u64,
    ties: bool,
    touching: bool,
    replace: bool,
    high: f64,
    low: f64,
    merge_max: u64,
    idle: bool,
    idle_delay: SimDuration,
    safe: bool,
}

impl Options {
    fn read(settings: &Settings, problems: &mut Vec<Problem>) -> Self {
        let (high, low) = (settings.number("high"), settings.number("low"));
        if low > high {
            problems.push(Problem::new("low", format!("must be at most `high` ({high})")));
        }
        let merge_max = settings.bytes("merge_max") / SECTOR_BYTES;
        if merge_max == 0 {
            problems.push(Problem::new("merge_max", "must be at least one sector of 512 bytes"));
        }
        Self {
            redirect: settings.flag("redirect"),
            fqueue: settings.bytes_opt("fqueue").map(|bytes| bytes / SECTOR_BYTES),
            flash_latency: settings.duration("flash_latency"),
            flash_rate: settings.rate_opt("flash_rate").unwrap_or(0),
            ties: settings.text("ties") == "redirect",
            touching: settings.text("coalesce") == "touching",
            replace: settings.text("overwrites") == "replace",
            high,
            low,
            merge_max,
            idle: settings.flag("idle"),
            idle_delay: settings.duration("idle_delay"),
            safe: settings.text("order") == "safe",
        }
    }
}

/// What the host knows of the disk.
fn access(input: &BuildInput<'_>, redirect: bool, problems: &mut Vec<Problem>) -> Access {
    let drive = &input.children[0];
    match &drive.positioner {
        _ if !redirect => Access::Curve(Vec::new()),
        Some(disk) if input.settings.text("access") == "exact" => Access::Exact(disk.clone()),
        Some(disk) => {
            let stream = Stream::new(input.seed, &format!("{}/curve", input.path));
            Access::measure(&**disk, drive.capacity, stream)
        }
        None => {
            let message = "has no moving head: nothing is known of its access times";
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
    options: Options,
    fqueue: FQueue,
    /// Taken from the request queue to look at; goes next.
    staged: Option<Queued>,
    /// Taken from the request queue and waiting for a write beside; goes even before that.
    held: Option<Queued>,
    /// Redirected writes under way beside the operation; none where only one is at a time.
    beside: Vec<Option<Active>>,
    /// Sectors they will add to the FQueue.
    reserved: u64,
    /// Where the disk's head was left.
    last: Lba,
    active: Option<Active>,
    /// Between the watermarks, on the way down.
    flushing: bool,
    /// How far down, in sectors.
    flush_to: u64,
    /// While flushing: whether it is the FQueue's turn.
    flush_turn: bool,
    /// The drive could not write back: nothing is redirected or flushed any more.
    broken: bool,
    /// When the last operation for the host ended.
    idle_since: SimTime,
    idle_armed: bool,
    recovering: Option<SimTime>,
    /// Pinned ranges still to be read into memory after a power failure.
    restores: Vec<(Lba, u64)>,
    /// Entries of the FQueue the operation meets.
    met: Vec<(u64, u64)>,
    /// Requests in the request queue.
    waiting: u64,
    level_told: u64,
}

/// Names of [`CommonEvent::Custom`], in the order of [`Told`].
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

/// What is told besides latencies. Times are those of one operation, from leaving the request
/// queue to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Told {
    /// A write that went to the disk alone, ns.
    DiskWrite,
    /// A redirected write, ns.
    FlashWrite,
    /// A write that took part of the FQueue along, ns.
    CoalescedWrite,
    /// Writing back between the watermarks, ns.
    FlushBack,
    /// Writing back while idle, ns.
    IdleSync,
    /// A read that was not all in memory, ns.
    DiskRead,
    /// Sectors of a redirected write.
    Redirected,
    /// Sectors of the FQueue that went along with a write.
    Coalesced,
    /// Sectors of the FQueue that a write made obsolete.
    Overwritten,
    /// Sectors in the FQueue.
    Level,
    /// Sectors read from memory.
    MemoryRead,
    /// Sectors written back between the watermarks.
    FlushedBack,
    /// Sectors written back while idle.
    IdleSynced,
}

impl Component for FlashBacked {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn info(&self) -> ComponentInfo {
        // Where it is left out, the drive tells when the run begins.
        let size = self.options.fqueue.map(|size| ("fqueue_sectors_max", size as f64));
        let constants = size.into_iter().collect();
        ComponentInfo {
            kind: ENTRY.description.name,
            constants,
            custom: CUSTOM,
            ..ComponentInfo::default()
        }
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if self.options.redirect {
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

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
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
