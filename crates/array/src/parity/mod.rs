//! What arrays with parity have in common: requests become operations on stripes.
//!
//! A *stripe* is one chunk on each of several members: data units, then P, then Q. An operation
//! touches a range of one stripe's data:
//!
//! - Reads go straight to the members. Where a member is missing, the others and parity are read
//!   and its data solved for.
//! - Writes lock the range (the same sectors of all units), read what parity needs, then write data
//!   and parity together. *Modify* reads the old data and parity; *reconstruct* reads the data that
//!   is not written; the one with fewer reads is taken, or the one `small_write` names. A full
//!   stripe needs no reads. A two-chunk write whose ranges do not meet is two operations.
//! - Trims never reach the members unless `trim = "pass"`, and then only full stripes do: a member
//!   that answers anything but zeros for a trimmed sector would spoil the stripe's parity.
//! - A flush goes to every member that is present. Writes are acknowledged when data and parity
//!   are with the members, so that makes all of them durable.
//! - A rebuild reads a stripe under an exclusive lock and writes what was missing to the spare.
//!
//! A member that fails, at its time or by failing a request, is out of the array. What was being
//! read from it is planned anew; what was being written is in parity. An operation that meets more
//! missing units than there is parity fails, and its request with it.
//!
//! A power failure may leave stripes whose parity does not match their data ([`super::resync`]).
//! Parity is computed anew from the data. Until then a stripe that misses a data unit cannot be
//! solved (the write hole): what would need it is refused, and a rebuild leaves the unit out, until
//! the whole stripe is written anew.
//!
//! Invariant: parity stamps are the code of the data stamps ([`galois`]), so a degraded read in a
//! verified run returns the right stamps only if parity was kept right all along.

pub mod galois;
pub mod journal;
pub mod layout;
mod op;
mod plan;
mod stamps;

use super::locks::RangeLocks;
use super::members::{self, Members, Step};
use super::resync::{self, BITMAP_TAG, BITMAP_TOKEN, Resync};
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_engine::{
    Completion, Component, ComponentInfo, Ctx, LatencyBreakdown, LatencyPhase, Op, Outcome,
    PowerFailure, Request, RequestId, SECTOR_BYTES, SimTime,
};
use journal::{JOURNAL_TAG, Journal, REPLAY_TAG};
use layout::Layout;
use op::{StripeOp, Unit, Work};
use plan::SmallWrite;
use rustc_hash::FxHashSet;
use slab::Slab;
use std::collections::VecDeque;

/// Bytes in a row on one member.
pub const CHUNK: Param =
    Param::with("chunk", Kind::Bytes, "\"64KiB\"", "Bytes in a row on one member (stripe unit)");

/// How parity is updated.
pub const SMALL_WRITE: Param = Param::with(
    "small_write",
    Kind::Choice(SmallWrite::NAMES),
    "\"cheaper\"",
    "How a write of part of a stripe gets its parity: by reading old data and parity, by reading \
     the rest of the stripe, whichever reads less, or by break_point",
);

/// DiskSim's way to choose.
pub const BREAK_POINT: Param = Param::with(
    "break_point",
    Kind::Number { min: 0.0, max: 1.0 },
    "0.5",
    "With `small_write = \"break-point\"`: writes to a smaller share of a stripe's data units \
     read and modify, others reconstruct (DiskSim's \"RMW vs. reconstruct\")",
);

/// What waits for what.
pub const WRITE_ORDER: Param = Param::with(
    "write_order",
    Kind::Choice(&["together", "early"]),
    "\"together\"",
    "together: new data and parity are written when all that parity needs has been read \
     (DiskSim's \"Synch writes for safety\"); early: a read-modify-write of one unit writes its \
     data as soon as the old data has been read",
);

/// What becomes of trims.
pub const TRIM: Param = Param::with(
    "trim",
    Kind::Choice(&["ignore", "pass"]),
    "\"ignore\"",
    "ignore: members never see a trim; pass: trims of full stripes reach them, which is safe only \
     if every member and spare reads trimmed sectors as zeros",
);

/// Whether parity is believed after a power failure.
pub const UNSYNCED_PARITY: Param = Param::with(
    "unsynced_parity",
    Kind::Choice(&["refuse", "trust"]),
    "\"refuse\"",
    "After a power failure, what is asked of a missing member while parity may not match: refuse: \
     requests fail and say so (`write_hole_sectors`); trust: it is computed from that parity, \
     right or wrong, as by an array forced to start",
);

/// How much is done at a time.
pub const IN_PROGRESS: Param = Param::with(
    "in_progress",
    Kind::Count { min: 1, max: 65_536 },
    "4096",
    "Stripes requests work on at a time (the controller's stripe cache); further ones wait",
);

/// A stripe's units.
#[derive(Debug)]
pub struct Shape {
    /// Registered name of the kind.
    pub kind: &'static str,
    /// Where units are.
    pub layout: Box<dyn Layout>,
    /// Data units in a stripe.
    pub data: usize,
    /// Parity units in a stripe.
    pub parities: usize,
}

/// A request being served.
#[derive(Clone, Copy, Debug)]
struct Parent {
    id: RequestId,
    request: Request,
    /// The next sector no operation has been made for.
    at: u64,
    end: u64,
    /// Operations, or flushes, not done yet.
    left: u32,
    failed: bool,
}

/// The array.
#[derive(Debug)]
pub struct ParityArray {
    shape: Shape,
    /// Sectors of a chunk.
    chunk: u64,
    /// Stripes in the array.
    stripes: u64,
    small_write: SmallWrite,
    writes_early: bool,
    pass_trims: bool,
    in_progress: usize,
    trusts_parity: bool,
    members: Members,
    resync: Resync,
    journal: Option<Journal>,
    /// Units (stripe, number) a rebuild could not fill.
    lost: FxHashSet<(u64, usize)>,
    parents: Slab<Parent>,
    /// Parents that still need operations made, in order of arrival.
    queue: VecDeque<u32>,
    ops: Slab<StripeOp>,
    /// The units of all operations, as many for each as a stripe has.
    units: Vec<Unit>,
    /// Operations that may go on now.
    ready: VecDeque<u32>,
    /// Operations of requests.
    active: usize,
    /// Flushes at members.
    flushes: usize,
    locks: RangeLocks,
    /// Stamps of a stripe being computed, one row per unit; verified runs only.
    matrix: Vec<u64>,
}

/// Marks the tag of a flush; the rest is its parent.
const FLUSH_TAG: u64 = 1 << 63;

/// The largest chunk, so that a stripe's sectors fit 32 bits.
const CHUNK_SECTORS_MAX: u64 = 1 << 21;
/// As many members.
const COLUMNS_MAX: usize = 1 << 10;

/// Checks the parameters all arrays with parity share and builds the array; `shape` makes the
/// stripes for so many columns.
///
/// # Errors
/// Everything that is wrong.
pub fn build(
    input: &BuildInput<'_>,
    columns_min: usize,
    shape: impl FnOnce(usize, &mut Vec<Problem>) -> Shape,
) -> Result<Box<dyn Component>, Vec<Problem>> {
    let settings = input.settings;
    let (columns, smallest) = members::columns_of(input);
    let mut problems = Vec::new();
    let chunk = chunk_of(settings.bytes("chunk"), smallest, &mut problems);
    if columns < columns_min {
        let message = format!("needs at least {columns_min} devices, found {columns}");
        problems.push(Problem::new("members", message));
        return Err(problems);
    }
    if columns > COLUMNS_MAX {
        let message = format!("at most {COLUMNS_MAX} devices, found {columns}");
        problems.push(Problem::new("members", message));
        return Err(problems);
    }
    let shape = shape(columns, &mut problems);
    if shape.parities == 2 && shape.data > galois::DATA_UNITS_MAX {
        problems.push(Problem::new("members", "Q parity covers at most 255 data units"));
    }
    let bound = shape.layout.stripes(smallest / chunk);
    let reserved = resync::reserve(settings, bound, chunk, &mut problems);
    let stripes = shape.layout.stripes(smallest.saturating_sub(reserved) / chunk);
    if stripes == 0 {
        problems.push(Problem::new("members", "are too small for the array's layout"));
    }
    let stripe_sectors = chunk.saturating_mul(shape.data as u64);
    if stripes.checked_mul(stripe_sectors).is_none() {
        problems.push(Problem::new("members", "together exceed 2^64 sectors"));
    }
    let width = (shape.data + shape.parities) as u64;
    let journal = Journal::read(input, chunk.saturating_mul(width), &mut problems);
    let members = Members::read(input, stripes, chunk, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let resync = Resync::read(input, (stripes, chunk), (smallest - reserved, reserved));
    Ok(Box::new(ParityArray {
        shape,
        chunk,
        stripes,
        small_write: SmallWrite::read(settings),
        writes_early: settings.text("write_order") == "early",
        pass_trims: settings.text("trim") == "pass",
        in_progress: settings.count("in_progress") as usize,
        trusts_parity: settings.text("unsynced_parity") == "trust",
        members,
        resync,
        journal,
        lost: FxHashSet::default(),
        parents: Slab::new(),
        queue: VecDeque::new(),
        ops: Slab::new(),
        units: Vec::new(),
        ready: VecDeque::new(),
        active: 0,
        flushes: 0,
        locks: RangeLocks::default(),
        matrix: Vec::new(),
    }))
}

/// Sectors of a chunk; 1 when it makes no sense.
pub fn chunk_of(bytes: u64, smallest: u64, problems: &mut Vec<Problem>) -> u64 {
    let chunk = bytes / SECTOR_BYTES;
    if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
        problems.push(Problem::new("chunk", "must be a multiple of 512 bytes"));
    } else if chunk > CHUNK_SECTORS_MAX {
        problems.push(Problem::new("chunk", "must not exceed 1GiB"));
    } else if chunk > smallest {
        let message = format!("must not exceed the smallest member of {smallest} sectors");
        problems.push(Problem::new("chunk", message));
    } else {
        return chunk;
    }
    1
}

impl ParityArray {
    fn stripe_sectors(&self) -> u64 {
        self.chunk * self.shape.data as u64
    }

    /// Units of a stripe, parity included.
    fn width(&self) -> usize {
        self.shape.data + self.shape.parities
    }

    /// Opens a request that needs operations for sectors `at..end`, or `left` flushes.
    fn open(&mut self, id: RequestId, request: &Request, range: (u64, u64), left: u32) -> u32 {
        let parent =
            Parent { id, request: *request, at: range.0, end: range.1, left, failed: false };
        self.parents.insert(parent) as u32
    }

    /// One operation, or flush, of a parent is done; `breakdown` covers the time since it arrived.
    fn part_done(
        &mut self,
        ctx: &mut Ctx<'_>,
        slot: u32,
        breakdown: LatencyBreakdown,
        failed: bool,
    ) {
        let parent = &mut self.parents[slot as usize];
        parent.failed |= failed;
        parent.left -= 1;
        if parent.left > 0 || parent.at < parent.end {
            return;
        }
        let parent = self.parents.remove(slot as usize);
        if parent.failed {
            Members::tell_unserved(ctx, parent.request.sectors);
            ctx.fail_request(parent.id, breakdown);
        } else {
            ctx.complete(parent.id, breakdown);
        }
    }

    fn flush(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let present = |array: &Self, column| array.members.present(column);
        let count = (0..self.members.columns()).filter_map(|column| present(self, column)).count();
        if count == 0 {
            Members::tell_unserved(ctx, request.sectors);
            ctx.fail_request(id, LatencyBreakdown::NONE);
            return;
        }
        self.flushes += count;
        let parent = self.open(id, request, (0, 0), count as u32);
        for column in 0..self.members.columns() {
            if let Some(child) = present(self, column) {
                ctx.issue(child, *request, FLUSH_TAG | u64::from(parent));
            }
        }
    }

    fn trim(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let sectors = self.stripe_sectors();
        let from = request.lba.0.next_multiple_of(sectors);
        let end = request.end().0 / sectors * sectors;
        if !self.pass_trims || from >= end {
            ctx.complete(id, LatencyBreakdown::NONE);
            return;
        }
        let parent = self.open(id, request, (from, end), 0);
        self.queue.push_back(parent);
    }

    /// Whether more columns are missing than parity can stand in for.
    fn is_beyond_redundancy(&self) -> bool {
        self.members.lacking() > self.shape.parities
    }

    fn tell_if_beyond(&mut self, ctx: &mut Ctx<'_>) {
        if self.is_beyond_redundancy() {
            self.members.tell_beyond_redundancy(ctx);
        }
    }

    /// Whether `done` was served; a member that failed it is out of the array from now on.
    fn served(&mut self, ctx: &mut Ctx<'_>, done: &Completion) -> bool {
        if done.outcome == Outcome::Failed && !self.members.has_failed(done.child) {
            self.members.fail(ctx, done.child);
            self.tell_if_beyond(ctx);
        }
        !self.members.has_failed(done.child)
    }

    /// Lets everything go on that can, until all wait for members.
    fn settle(&mut self, ctx: &mut Ctx<'_>) {
        while !self.resync.is_reading() && !self.is_replaying() {
            if let Some(op) = self.ready.pop_front() {
                self.begin(ctx, op);
            } else if !self.admit(ctx)
                && !self.start_resync_step(ctx)
                && !self.start_rebuild_step(ctx)
            {
                return;
            }
        }
    }

    /// Makes the next operation of the request that has waited longest.
    fn admit(&mut self, ctx: &mut Ctx<'_>) -> bool {
        if self.active >= self.in_progress {
            return false;
        }
        let Some(&slot) = self.queue.front() else { return false };
        let parent = self.parents[slot as usize];
        let end = self.operation_end(&parent);
        let since = ctx.issued(parent.id);
        let op = StripeOp::of_request(slot, &parent.request, (parent.at, end), self, since);
        let parent = &mut self.parents[slot as usize];
        parent.at = end;
        parent.left += 1;
        if end == parent.end {
            self.queue.pop_front();
        }
        self.active += 1;
        self.enter(op);
        true
    }

    /// Where the operation that starts at the parent's cursor ends.
    fn operation_end(&self, parent: &Parent) -> u64 {
        let (at, chunk) = (parent.at, self.chunk);
        let sectors = self.stripe_sectors();
        let end = parent.end.min((at / sectors + 1).saturating_mul(sectors));
        let boundary = (at / chunk + 1).saturating_mul(chunk);
        let over = end.saturating_sub(boundary);
        let apart = over > 0 && over < chunk && at % chunk >= over;
        if parent.request.op == Op::Write && apart { boundary } else { end }
    }

    fn is_idle(&self) -> bool {
        self.active == 0 && self.flushes == 0 && self.queue.is_empty()
    }

    fn start_resync_step(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let idle = self.is_idle();
        let Some(step) = self.resync.next_step(ctx, &mut self.members, idle) else { return false };
        let op = StripeOp::of_stripe(Work::Resync, step, self, ctx.now());
        self.enter(op);
        true
    }

    fn start_rebuild_step(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let idle = self.is_idle();
        let layout = &*self.shape.layout;
        let concerns = |stripe, column| layout.unit_on(stripe, column).is_some();
        let Some(step) = self.members.next_step(ctx, idle, concerns) else { return false };
        let Step { rebuild: number, step, column } = step;
        let work = Work::Rebuild { number, column };
        let op = StripeOp::of_stripe(work, step, self, ctx.now());
        self.enter(op);
        true
    }
}

impl Component for ParityArray {
    fn capacity(&self) -> u64 {
        self.stripes * self.stripe_sectors()
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: self.shape.kind,
            constants: vec![
                ("members", self.members.columns() as f64),
                ("chunk_sectors", self.chunk as f64),
                ("data_units", self.shape.data as f64),
                ("parity_units", self.shape.parities as f64),
            ],
            custom: members::CUSTOM,
            ..ComponentInfo::default()
        }
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.members.start(ctx);
        self.tell_if_beyond(ctx);
        self.settle(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        match request.op {
            Op::Flush => self.flush(ctx, id, request),
            Op::Trim => self.trim(ctx, id, request),
            Op::Read | Op::Write => {
                let parent = self.open(id, request, (request.lba.0, request.end().0), 0);
                self.queue.push_back(parent);
            }
        }
        self.settle(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let served = self.served(ctx, done);
        if done.tag & JOURNAL_TAG != 0 {
            self.journal_done(ctx, done);
        } else if done.tag == REPLAY_TAG {
            self.replay_done(ctx, done);
        } else if done.tag == BITMAP_TAG {
            let ready = &mut self.ready;
            self.resync.completion(ctx, &self.members, done, |owner| ready.push_back(owner));
        } else if done.tag & FLUSH_TAG == 0 {
            self.unit_done(ctx, done, served);
        } else {
            self.flushes -= 1;
            let failed = self.is_beyond_redundancy();
            self.part_done(ctx, (done.tag & !FLUSH_TAG) as u32, done.breakdown, failed);
        }
        self.settle(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        if token == BITMAP_TOKEN {
            self.resync.wake(ctx, &self.members);
            return;
        }
        self.members.wake(ctx, token);
        self.tell_if_beyond(ctx);
        self.settle(ctx);
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
}

impl PowerFailure for ParityArray {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.members.power_cut(now);
        // What the journal knows is done again; nothing else was under way.
        let knows_all = self.cut_journal();
        self.resync.power_cut(now, knows_all);
        self.parents.clear();
        self.queue.clear();
        self.ops.clear();
        self.units.clear();
        self.ready.clear();
        self.locks = RangeLocks::default();
        (self.active, self.flushes) = (0, 0);
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.members.power_on(ctx);
        self.resync.power_on(ctx, &self.members);
        self.read_journal(ctx);
        self.settle(ctx);
    }
}

/// Adds `more` to `breakdown`.
fn add_parts(breakdown: &mut LatencyBreakdown, more: &LatencyBreakdown) {
    for part in LatencyPhase::ALL {
        breakdown.add(part, more.get(part));
    }
}

/// Adds the time from `since` to now as waiting, and starts counting from now.
fn add_wait(breakdown: &mut LatencyBreakdown, since: &mut SimTime, now: SimTime) {
    breakdown.add(LatencyPhase::Queue, now.since(*since));
    *since = now;
}
