//! Parity arrays: the common part of RAID 4, 5, 6 and declustered parity. Requests are split into
//! operations on stripes.
//!
//! A *stripe* is one chunk on each of several members: data units, then P, then Q. An operation
//! touches a range of one stripe's data:
//!
//! - Reads go directly to the members. A missing unit is reconstructed from the other units and
//!   parity (degraded read).
//! - Writes lock the range (the same sectors of all units), read the input of the parity
//!   computation, then write data and parity together. A *read-modify-write* reads the old data and
//!   parity; a *reconstruct-write* reads the data that is not written; the one with fewer reads is
//!   chosen, or the one `small_write` selects. A full-stripe write needs no reads. A write to two
//!   chunks whose sector ranges do not overlap becomes two operations.
//! - Trims reach the members only with `trim = "pass"`, and then only as full stripes: a member
//!   that returns anything but zeros for a trimmed sector would invalidate the stripe's parity.
//! - A flush goes to every member present. Writes are acknowledged when the members have completed
//!   data and parity, so a flush makes all of them durable.
//! - A rebuild step reads a stripe under an exclusive lock and writes the missing unit to the
//!   spare.
//!
//! A member that fails, at its configured time or by failing a request, leaves the array. Reads in
//! flight to it are planned again; writes in flight to it are covered by parity. An operation with
//! more missing units than the stripe has parity fails, and its request with it.
//!
//! After a power failure the parity of some stripes may not match their data ([`super::resync`]).
//! It is recomputed from the data. Until then a stripe with a missing data unit cannot be
//! reconstructed (the write hole): requests that need it fail, and a rebuild skips the unit until
//! the full stripe is written.
//!
//! Invariant: parity is computed over data versions with the code's own arithmetic ([`galois`]), so
//! a degraded read in a verified run returns the right versions only if parity is correct.

pub mod galois;
pub mod journal;
pub mod layout;
mod op;
mod plan;
mod versions;

use super::params::Redundancy;
use super::rebuild::{self, Members, Step};
use super::redundant::{Redundant, RedundantArray, Shared};
use super::resync::{self, Resync};
use hybridsim_config::build::BuildInput;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_engine::range_locks::RangeLocks;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, LatencyBreakdown, Loader, Op,
    PendingRequest, PowerFailure, Request, RequestId, SECTOR_BYTES, Saver, SimTime, StateError,
};
use journal::{JOURNAL_TAG, Journal, REPLAY_TAG};
use layout::Layout;
use op::{Purpose, StripeOp, Unit};
use plan::SmallWrite;
use rustc_hash::FxHashSet;
use slab::Slab;
use std::collections::VecDeque;

hybridsim_config::choices! {
    /// The time at which new data are written.
    enum WriteOrder { Together = "together", Early = "early" }
}

hybridsim_config::choices! {
    enum Trims { Ignore = "ignore", Pass = "pass" }
}

hybridsim_config::choices! {
    /// Use of parity that may not match the data.
    enum UnsyncedParity { Refuse = "refuse", Trust = "trust" }
}

hybridsim_config::params! {
    /// Parameters of all arrays with parity.
    pub struct Parameters includes { redundancy: Redundancy } {
        chunk: u64 = Kind::Bytes, default "\"64KiB\"",
            "Contiguous bytes on one member (stripe unit)";
        small_write: SmallWrite = Kind::Choice(SmallWrite::NAMES), default "\"cheaper\"",
            "How the parity of a partial-stripe write is computed: from old data and parity, from \
             the rest of the stripe, whichever reads less, or by break_point";
        break_point: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.5"
            needs &[Needs::Is("small_write", &["break-point"])],
            "With `small_write = \"break-point\"`: writes to a smaller share of a stripe's data \
             units read and modify, others reconstruct (DiskSim's \"RMW vs. reconstruct\")";
        write_order: WriteOrder = Kind::Choice(WriteOrder::NAMES), default "\"together\"",
            "together: new data and parity are written when all that parity needs has been read \
             (DiskSim's \"Synch writes for safety\"); early: a read-modify-write of one unit \
             writes its data as soon as the old data has been read";
        trim: Trims = Kind::Choice(Trims::NAMES), default "\"ignore\"",
            "ignore: members never see a trim; pass: trims of full stripes reach them, which is \
             safe only if every member and spare reads trimmed sectors as zeros";
        in_progress: usize = Kind::Count { min: 1, max: 65_536 }, default "4096",
            "Stripes that requests operate on at a time (the controller's stripe cache); others \
             wait";
        unsynced_parity: UnsyncedParity = Kind::Choice(UnsyncedParity::NAMES), default "\"refuse\""
            needs &[Needs::Not("resync", &["none"])],
            "After a power failure, requests that need the data of a missing member from parity \
             that may not match: refuse: they fail and are reported (`write_hole_sectors`); \
             trust: the data are computed from that parity, right or wrong, as by an array forced \
             to start";
        journal: Option<String> = Kind::Component, optional,
            "A device that holds stripe writes until they have completed (write journal): closes \
             the write hole; excludes `trim = \"pass\"` and `write_order = \"early\"`";
    }
}

/// A stripe's units.
#[derive(Debug)]
pub struct Shape {
    /// Registered name of the kind.
    pub kind: &'static str,
    /// Placement of the units.
    pub layout: Box<dyn Layout>,
    pub data: usize,
    /// Parity units in a stripe.
    pub parities: usize,
}

/// A request being served by operations on stripes, or by flushes.
#[derive(Clone, Copy, Debug)]
struct StripedRequest {
    pending: PendingRequest,
    /// First sector that no operation covers yet.
    at: u64,
    end: u64,
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
    break_point: f64,
    writes_early: bool,
    pass_trims: bool,
    in_progress: usize,
    trusts_parity: bool,
    members: Members,
    resync: Resync,
    journal: Option<Journal>,
    /// Units (stripe, number) that a rebuild could not reconstruct.
    lost: FxHashSet<(u64, usize)>,
    pending: Slab<StripedRequest>,
    /// Requests that are not entirely split into operations, in order of arrival.
    queue: VecDeque<u32>,
    ops: Slab<StripeOp>,
    /// The units of all operations, a stripe's width for each.
    units: Vec<Unit>,
    /// Operations that can proceed.
    ready: VecDeque<u32>,
    /// Operations on behalf of requests.
    active: usize,
    flushes: usize,
    locks: RangeLocks,
    /// Data versions of the stripe being computed, one row per unit; verified runs only.
    matrix: Vec<u64>,
}

/// The largest chunk: a stripe's sectors fit 32 bits.
const CHUNK_SECTORS_MAX: u64 = 1 << 21;
/// The most members.
const COLUMNS_MAX: usize = 1 << 10;

/// Checks the common parameters and builds the array; `shape` lays out the stripes for a number
/// of columns.
///
/// # Errors
/// All problems found.
pub fn build(
    input: &BuildInput<'_>,
    params: &Parameters,
    columns_min: usize,
    shape: impl FnOnce(usize, &mut Vec<Problem>) -> Shape,
) -> Built<dyn Component> {
    let (redundancy, has_journal) = (&params.redundancy, params.journal.is_some());
    let (columns, smallest) = rebuild::columns_of(input, redundancy, has_journal);
    let mut problems = Vec::new();
    let chunk = chunk_of(params.chunk, smallest, &mut problems);
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
    let reserved = resync::reserve(&redundancy.resync, bound, chunk, &mut problems);
    let stripes = shape.layout.stripes(smallest.saturating_sub(reserved) / chunk);
    if stripes == 0 {
        problems.push(Problem::new("members", "are too small for the array's layout"));
    }
    let stripe_sectors = chunk.saturating_mul(shape.data as u64);
    if stripes.checked_mul(stripe_sectors).is_none() {
        problems.push(Problem::new("members", "together exceed 2^64 sectors"));
    }
    let width = (shape.data + shape.parities) as u64;
    let journal = Journal::read(input, params, chunk.saturating_mul(width), &mut problems);
    let columns = (columns, has_journal);
    let members = Members::read(input, redundancy, columns, (stripes, chunk), &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let resync =
        Resync::read(&redundancy.resync, (stripes, chunk), (smallest - reserved, reserved));
    Ok(Box::new(Redundant(ParityArray {
        shape,
        chunk,
        stripes,
        small_write: params.small_write,
        break_point: params.break_point,
        writes_early: params.write_order == WriteOrder::Early,
        pass_trims: params.trim == Trims::Pass,
        in_progress: params.in_progress,
        trusts_parity: params.unsynced_parity == UnsyncedParity::Trust,
        members,
        resync,
        journal,
        lost: FxHashSet::default(),
        pending: Slab::new(),
        queue: VecDeque::new(),
        ops: Slab::new(),
        units: Vec::new(),
        ready: VecDeque::new(),
        active: 0,
        flushes: 0,
        locks: RangeLocks::default(),
        matrix: Vec::new(),
    })))
}

/// Sectors of a chunk; 1 when it is invalid.
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

    /// Units of a stripe, including parity.
    fn width(&self) -> usize {
        self.shape.data + self.shape.parities
    }

    /// Enters a request for sectors `range`, or one of `left` flushes.
    fn open(&mut self, id: RequestId, request: &Request, range: (u64, u64), left: u32) -> u32 {
        let pending = PendingRequest::new(id, request, left);
        self.pending.insert(StripedRequest { pending, at: range.0, end: range.1 }) as u32
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

    /// Whether more columns are degraded than parity can reconstruct.
    /// Starts the next operation of the oldest request in the queue.
    fn admit(&mut self, ctx: &mut Ctx<'_>) -> bool {
        if self.active >= self.in_progress {
            return false;
        }
        let Some(&slot) = self.queue.front() else { return false };
        let parent = self.pending[slot as usize];
        let end = self.operation_end(&parent);
        let StripedRequest { pending, at, .. } = parent;
        let since = ctx.issued(pending.id);
        let op = StripeOp::of_request(slot, &pending.request, (at, end), self, since);
        let parent = &mut self.pending[slot as usize];
        parent.at = end;
        parent.pending.outstanding += 1;
        if end == parent.end {
            self.queue.pop_front();
        }
        self.active += 1;
        self.enter(op);
        true
    }

    /// End of the operation that starts at the request's next sector.
    fn operation_end(&self, parent: &StripedRequest) -> u64 {
        let (at, chunk) = (parent.at, self.chunk);
        let sectors = self.stripe_sectors();
        let end = parent.end.min((at / sectors + 1).saturating_mul(sectors));
        let boundary = (at / chunk + 1).saturating_mul(chunk);
        let over = end.saturating_sub(boundary);
        let apart = over > 0 && over < chunk && at % chunk >= over;
        if parent.pending.request.op == Op::Write && apart { boundary } else { end }
    }

    fn is_idle(&self) -> bool {
        self.active == 0 && self.flushes == 0 && self.queue.is_empty()
    }

    fn start_resync_step(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let idle = self.is_idle();
        let Some(step) = self.resync.next_step(ctx, &mut self.members, idle) else { return false };
        let op = StripeOp::of_stripe(Purpose::Resync, step, self, ctx.now());
        self.enter(op);
        true
    }

    fn start_rebuild_step(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let idle = self.is_idle();
        let layout = &*self.shape.layout;
        let concerns = |stripe, column| layout.unit_on(stripe, column).is_some();
        let Some(step) = self.members.next_step(ctx, idle, concerns) else { return false };
        let Step { rebuild: number, step, column } = step;
        let purpose = Purpose::Rebuild { number, column };
        let op = StripeOp::of_stripe(purpose, step, self, ctx.now());
        self.enter(op);
        true
    }
}

impl RedundantArray for ParityArray {
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
            custom: rebuild::CUSTOM,
            ..ComponentInfo::default()
        }
    }

    fn members(&self) -> &Members {
        &self.members
    }

    fn shared(&mut self) -> Shared<'_> {
        let Self { members, resync, ready, flushes, .. } = self;
        Shared { members, resync, ready, flushes }
    }

    fn is_beyond_redundancy(&self) -> bool {
        self.members.degraded() > self.shape.parities
    }

    fn serve(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if request.op == Op::Trim {
            return self.trim(ctx, id, request);
        }
        let parent = self.open(id, request, (request.lba.0, request.end().0), 0);
        self.queue.push_back(parent);
    }

    fn open_flush(&mut self, id: RequestId, request: &Request, parts: u32) -> u32 {
        self.open(id, request, (0, 0), parts)
    }

    fn part_done(
        &mut self,
        ctx: &mut Ctx<'_>,
        slot: u32,
        breakdown: LatencyBreakdown,
        failed: bool,
    ) {
        let parent = &mut self.pending[slot as usize];
        if !parent.pending.one_done(failed) || parent.at < parent.end {
            return;
        }
        let StripedRequest { pending, .. } = self.pending.remove(slot as usize);
        if pending.failed {
            Members::report_unserved(ctx, pending.request.sectors);
        }
        pending.complete(ctx, breakdown);
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, done: &Completion, served: bool) {
        if done.tag & JOURNAL_TAG != 0 {
            self.journal_done(ctx, done);
        } else if done.tag == REPLAY_TAG {
            self.replay_done(ctx, done);
        } else {
            self.unit_done(ctx, done, served);
        }
    }

    fn advance(&mut self, ctx: &mut Ctx<'_>) {
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
}

impl Checkpoint for ParityArray {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if !self.ops.is_empty() {
            return Err(StateError("a rebuild or resync step is under way".to_owned()));
        }
        to.put(&(&self.members, &self.resync, &self.lost));
        if let Some(journal) = &self.journal {
            journal.save(to)?;
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.members, self.resync, self.lost) = from.take()?;
        match &mut self.journal {
            Some(journal) => journal.restore(from),
            None => Ok(()),
        }
    }
}

impl PowerFailure for ParityArray {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.members.power_cut(now);
        // The writes in the journal are replayed; no others were in flight.
        let has_journal = self.cut_journal();
        self.resync.power_cut(now, has_journal);
        self.pending.clear();
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
        self.advance(ctx);
    }
}
