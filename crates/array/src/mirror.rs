//! Mirroring: the common part of RAID 1 and RAID 10.
//!
//! The members form groups of copies; chunks are striped over the groups. A read is served by one
//! copy of each group it touches; writes and trims go to all copies. Writes lock their range of the
//! group, so overlapping writes reach every copy in the same order. A spare under rebuild receives
//! every write and is read only where it has been rebuilt. A flush goes to every member present.
//!
//! A write succeeds if a readable copy holds it; requests fail where no readable copy is left.
//!
//! After a power failure copies may differ ([`resync`]). The first copy present wins: it is copied
//! to the others in the background, and in the foreground before a region not yet in sync is read.
//! So data that were read once are on every copy, whichever member fails next.

use super::params::{REPAIRS, Redundancy};
use super::parity::chunk_of;
use super::rebuild::{self, Members, Step};
use super::redundant::{Redundant, RedundantArray, Shared};
use super::resync::{self, Resync};
use super::striping::Striping;
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_engine::range_locks::RangeLocks;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::state::same_length;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, DataSlice, Flags, LatencyAccount,
    LatencyBreakdown, Lba, Loader, Op, PendingRequest, PowerFailure, Request, RequestId,
    SECTOR_BYTES, Saver, SimTime, StateError, Stream,
};
use slab::Slab;
use std::collections::VecDeque;
use std::rc::Rc;

hybridsim_config::choices! {
    enum ReadChoice {
        Primary = "primary",
        Random = "random",
        RoundRobin = "round-robin",
        ShortestQueue = "shortest-queue",
        ShortestSeek = "shortest-seek",
        QueueThenSeek = "shortest-queue-then-seek",
    }
}

hybridsim_config::params! {
    /// Parameters of all arrays of copies.
    pub struct Parameters includes { redundancy: Redundancy } {
        read_choice: ReadChoice = Kind::Choice(ReadChoice::NAMES),
            default "\"shortest-queue-then-seek\"",
            "Which copy is read: the first, any, each in turn, the one with fewest requests, the \
             one whose arm is nearest (by the members' own estimates where they give any, else by \
             address), or the nearest of those with fewest requests";
        rebuild_step: u64 = Kind::Bytes, default "\"512KiB\"" needs &[REPAIRS],
            "Bytes copied to a spare at a time";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Part of a request.
    Request { parent: u32 },
    /// A rebuild step of the rebuild with this number: reads a copy, then writes it to the spare.
    Rebuild { number: u32, step: u64, column: usize, writes: bool },
    /// A resync step: reads one copy, then writes it to the others.
    Resync { step: u64, from: Option<usize> },
}

/// An operation on one group of copies, for a request, a rebuild or a resync.
#[derive(Clone, Copy, Debug)]
struct GroupOp {
    purpose: Purpose,
    group: usize,
    /// The request as issued to members.
    request: Request,
    left: u32,
    locked: bool,
    /// Whether its regions are marked in the write-intent bitmap, or are being marked.
    marked: bool,
    latency: LatencyAccount,
}

/// The array.
pub struct Mirror {
    kind: &'static str,
    copies: usize,
    striping: Striping,
    /// Sectors used on each member.
    each: u64,
    step_sectors: u64,
    choice: ReadChoice,
    stream: Stream,
    /// Round-robin position of each group.
    turns: Vec<usize>,
    /// By child: end of the last request issued, requests in flight, positioning estimates.
    last: Vec<Lba>,
    in_flight: Vec<u32>,
    positioners: Vec<Option<Rc<dyn Positioner>>>,
    members: Members,
    resync: Resync,
    pending: Slab<PendingRequest>,
    ops: Slab<GroupOp>,
    ready: VecDeque<u32>,
    /// Operations on behalf of requests.
    active: usize,
    flushes: usize,
    locks: RangeLocks,
}

/// Builds an array of `groups` of so many copies, with chunks of so many bytes striped over them;
/// without `groups` all members hold copies.
///
/// # Errors
/// All problems found.
pub fn build(
    kind: &'static str,
    input: &BuildInput<'_>,
    params: &Parameters,
    groups: Option<(usize, u64)>,
) -> Built<dyn Component> {
    let mut problems = Vec::new();
    let redundancy = &params.redundancy;
    let (columns, smallest) = rebuild::columns_of(input, redundancy, false);
    let copies = groups.map_or(columns.max(1), |(copies, _)| copies);
    let chunk = groups.map(|(_, bytes)| chunk_of(bytes, smallest, &mut problems));
    let step_bytes = params.rebuild_step;
    if step_bytes == 0 || !step_bytes.is_multiple_of(SECTOR_BYTES) || step_bytes > 1 << 30 {
        let message = "must be a multiple of 512 bytes, at most 1GiB";
        problems.push(Problem::new("rebuild_step", message));
    }
    if columns == 0 || !columns.is_multiple_of(copies) {
        let message = format!("must be a multiple of the {copies} copies, found {columns}");
        problems.push(Problem::new("members", message));
        return Err(problems);
    }
    let groups = (columns / copies) as u64;
    let step_sectors = (step_bytes / SECTOR_BYTES).max(1);
    let bound = groups.saturating_mul(smallest.div_ceil(step_sectors));
    let reserved = resync::reserve(&redundancy.resync, bound, step_sectors, &mut problems);
    let smallest = smallest.saturating_sub(reserved);
    let each = chunk.map_or(smallest, |chunk| smallest / chunk * chunk);
    if each == 0 {
        problems.push(Problem::new("members", "are too small"));
    }
    if each.checked_mul(groups).is_none() {
        problems.push(Problem::new("members", "together exceed 2^64 sectors"));
    }
    let steps = each.div_ceil(step_sectors).max(1);
    let members =
        Members::read(input, redundancy, (columns, false), (steps, step_sectors), &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let children = input.children.len();
    let resync = Resync::read(&redundancy.resync, (steps * groups, step_sectors), (each, reserved));
    Ok(Box::new(Redundant(Mirror {
        kind,
        copies,
        striping: Striping { members: groups, chunk: chunk.unwrap_or(each) },
        each,
        step_sectors,
        choice: params.read_choice,
        stream: Stream::new(input.seed, input.path),
        turns: vec![0; groups as usize],
        last: vec![Lba(0); children],
        in_flight: vec![0; children],
        positioners: input.children.iter().map(|child| child.positioner.clone()).collect(),
        members,
        resync,
        pending: Slab::new(),
        ops: Slab::new(),
        ready: VecDeque::new(),
        active: 0,
        flushes: 0,
        locks: RangeLocks::default(),
    })))
}

impl Mirror {
    fn columns(&self, group: usize) -> std::ops::Range<usize> {
        group * self.copies..(group + 1) * self.copies
    }

    /// The child that holds `column`'s copy of the request's range, if it is readable.
    fn holder(&self, column: usize, request: &Request) -> Option<usize> {
        let (from, end) = (request.lba.0, request.end().0);
        self.members.holder(column, from / self.step_sectors, end.div_ceil(self.step_sectors))
    }

    fn is_readable(&self, group: usize, request: &Request) -> bool {
        self.columns(group).any(|column| self.holder(column, request).is_some())
    }

    fn choose(&mut self, ctx: &Ctx<'_>, group: usize, request: &Request) -> Option<usize> {
        let columns = self.columns(group);
        let holders = |mirror: &Self, turn: usize| {
            let position = (mirror.turns[group] + turn) % mirror.copies;
            mirror.holder(columns.start + position, request)
        };
        if self.choice == ReadChoice::Primary {
            self.turns[group] = 0;
            return (0..self.copies).find_map(|turn| holders(self, turn));
        }
        if self.choice == ReadChoice::Random {
            let count = (0..self.copies).filter_map(|turn| holders(self, turn)).count();
            let chosen = self.stream.below(count as u64) as usize;
            return (0..self.copies).filter_map(|turn| holders(self, turn)).nth(chosen);
        }
        // Ties are broken round-robin.
        let mut best: Option<((u64, u64), usize, usize)> = None;
        for turn in 0..self.copies {
            let Some(child) = holders(self, turn) else { continue };
            let cost = self.cost(ctx.now(), child, request);
            if best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, child, turn));
            }
        }
        let (_, child, turn) = best?;
        self.turns[group] = (self.turns[group] + turn + 1) % self.copies;
        Some(child)
    }

    fn cost(&self, now: SimTime, child: usize, request: &Request) -> (u64, u64) {
        let queue = u64::from(self.in_flight[child]);
        let seek = || {
            let last = self.last[child];
            match &self.positioners[child] {
                Some(positioner) => positioner.positioning(now, last, request).as_ns(),
                None => request.lba.0.abs_diff(last.0),
            }
        };
        match self.choice {
            ReadChoice::ShortestQueue => (queue, 0),
            ReadChoice::ShortestSeek => (seek(), queue),
            ReadChoice::QueueThenSeek => (queue, seek()),
            ReadChoice::Primary | ReadChoice::Random | ReadChoice::RoundRobin => (0, 0),
        }
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, index: u32, child: usize, request: Request) {
        self.ops[index as usize].left += 1;
        self.in_flight[child] += 1;
        self.last[child] = request.end();
        ctx.issue(child, request, u64::from(index));
    }

    fn open(&mut self, id: RequestId, request: &Request, left: u32) -> u32 {
        self.pending.insert(PendingRequest::new(id, request, left)) as u32
    }

    /// Starts one operation for each group the request touches.
    fn split(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let (lba, end) = (request.lba.0, request.end().0);
        let (first, count) = self.striping.concerned(lba, end);
        let parent = self.open(id, request, count as u32);
        self.active += count as usize;
        for turn in 0..count {
            let group = (first + turn) % self.striping.members;
            let share = self.striping.share(group, lba, end);
            let (from, sectors) = share.expect("the group holds part of the range");
            let mut part = request.part(0, sectors as u32, Lba(from));
            if self.scatters() && !request.data.is_none() {
                part.data = ctx.take_data(part.sectors);
                if request.op == Op::Write {
                    self.striping.copy(ctx, request, &part, group, true);
                }
            }
            let now = ctx.now();
            self.enter(Purpose::Request { parent }, group as usize, part, now);
        }
    }

    /// Whether a group's share of a request is not contiguous in the request's data.
    fn scatters(&self) -> bool {
        self.striping.members > 1
    }

    fn enter(&mut self, purpose: Purpose, group: usize, request: Request, since: SimTime) {
        let locked = request.op != Op::Read || !matches!(purpose, Purpose::Request { .. });
        let latency = LatencyAccount::new(since);
        let op = GroupOp { purpose, group, request, left: 0, locked, marked: false, latency };
        let index = self.ops.insert(op) as u32;
        if !locked || self.lock(index, true) {
            self.ready.push_back(index);
        }
    }

    /// Locks the operation's range of its group, exclusively or shared; returns whether it holds
    /// the lock now.
    fn lock(&mut self, index: u32, exclusive: bool) -> bool {
        let GroupOp { group, request, .. } = &self.ops[index as usize];
        let first = *group as u64 * self.each;
        self.locks.acquire(index, first + request.lba.0, first + request.end().0, exclusive)
    }

    /// The array's resync steps that a request to a group touches.
    fn steps_of(&self, group: usize, request: &Request) -> std::ops::Range<u64> {
        let first = self.steps_each() * group as u64;
        let end = request.end().0.div_ceil(self.step_sectors);
        first + request.lba.0 / self.step_sectors..first + end
    }

    fn steps_each(&self) -> u64 {
        self.each.div_ceil(self.step_sectors)
    }

    /// The children that hold the request's range, the first copy first.
    fn holders(&self, group: usize, request: &Request) -> impl Iterator<Item = usize> {
        self.columns(group).filter_map(|column| self.holder(column, request))
    }

    /// Whether two copies are present and at least one of them is readable.
    fn may_differ(&self, group: usize, request: &Request) -> bool {
        let present = self.columns(group).filter_map(|column| self.members.present(column));
        present.count() > 1 && self.is_readable(group, request)
    }

    /// Makes a request wait until the copies of a step are in sync.
    fn wait_for_resync(&mut self, ctx: &mut Ctx<'_>, index: u32, step: u64) {
        let op = self.ops[index as usize];
        if op.locked {
            let ready = &mut self.ready;
            self.locks.release(index, |granted| ready.push_back(granted));
        }
        if self.resync.claim(step) {
            self.enter_resync(ctx, step, op.request.flags);
        }
        // The resync operation holds the lock or requested it earlier.
        self.ops[index as usize].locked = true;
        if self.lock(index, false) {
            self.ready.push_back(index);
        }
    }

    fn start_resync_step(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let idle = self.active == 0 && self.flushes == 0;
        let Some(step) = self.resync.next_step(ctx, &mut self.members, idle) else { return false };
        self.enter_resync(ctx, step, Flags::BACKGROUND);
        true
    }

    fn enter_resync(&mut self, ctx: &mut Ctx<'_>, step: u64, flags: Flags) {
        let group = (step / self.steps_each()) as usize;
        let from = step % self.steps_each() * self.step_sectors;
        let sectors = self.step_sectors.min(self.each - from) as u32;
        let mut request = Request { flags, ..Request::new(Op::Read, Lba(from), sectors) };
        request.data = ctx.take_data(sectors);
        let now = ctx.now();
        self.enter(Purpose::Resync { step, from: None }, group, request, now);
    }

    /// Reads the first copy present, then writes it to the others.
    fn resync_copies(&mut self, ctx: &mut Ctx<'_>, index: u32, read_from: Option<usize>) {
        let op = self.ops[index as usize];
        let Some(winner) = read_from.or_else(|| self.holders(op.group, &op.request).next()) else {
            return self.finish(ctx, index, true);
        };
        let others = self.columns(op.group).filter_map(|column| self.members.present(column));
        let others: Vec<usize> = others.filter(|child| *child != winner).collect();
        if others.is_empty() {
            self.finish(ctx, index, false);
        } else if read_from.is_none() {
            self.issue(ctx, index, winner, op.request);
        } else {
            for child in others {
                self.issue(ctx, index, child, Request { op: Op::Write, ..op.request });
            }
        }
    }

    fn start_rebuild_step(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let idle = self.active == 0 && self.flushes == 0;
        let Some(Step { rebuild, step, column }) = self.members.next_step(ctx, idle, |_, _| true)
        else {
            return false;
        };
        let from = step * self.step_sectors;
        let sectors = self.step_sectors.min(self.each - from) as u32;
        let mut request = Request::new(Op::Read, Lba(from), sectors);
        request.flags = Flags::BACKGROUND;
        request.data = ctx.take_data(sectors);
        let purpose = Purpose::Rebuild { number: rebuild, step, column, writes: false };
        let now = ctx.now();
        self.enter(purpose, column / self.copies, request, now);
        true
    }

    /// Issues the next requests of an operation, which holds its lock if it needs one.
    fn begin(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let now = ctx.now();
        let op = &mut self.ops[index as usize];
        op.latency.queued(now);
        let op = *op;
        match op.purpose {
            Purpose::Rebuild { number, .. } if !self.members.is_rebuilding(number) => {
                self.finish(ctx, index, true);
            }
            Purpose::Rebuild { writes: true, column, .. } => {
                let child = self.members.present(column).expect("the rebuild is in progress");
                self.issue(ctx, index, child, Request { op: Op::Write, ..op.request });
            }
            Purpose::Resync { from, .. } => self.resync_copies(ctx, index, from),
            Purpose::Request { .. } if op.request.op != Op::Read => self.write(ctx, index),
            Purpose::Request { .. } | Purpose::Rebuild { .. } => self.read(ctx, index),
        }
    }

    /// Reads from one copy, for a request or a rebuild.
    fn read(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let op = self.ops[index as usize];
        let unsynced = match self.resync.is_synced() {
            true => None,
            false => self.resync.unsynced_of(self.steps_of(op.group, &op.request)),
        };
        let child = match (unsynced, op.purpose) {
            (Some(step), Purpose::Request { .. }) if self.may_differ(op.group, &op.request) => {
                return self.wait_for_resync(ctx, index, step);
            }
            // The copy that the resync will keep.
            (Some(_), _) => self.holders(op.group, &op.request).next(),
            (None, _) => self.choose(ctx, op.group, &op.request),
        };
        if let Some(child) = child {
            self.issue(ctx, index, child, op.request);
            return;
        }
        if matches!(op.purpose, Purpose::Rebuild { .. }) {
            self.members.abandon_rebuild(ctx);
        }
        self.finish(ctx, index, true);
    }

    /// Writes to all copies once the regions are marked.
    fn write(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let op = self.ops[index as usize];
        if !op.marked && self.resync.has_bitmap() {
            let steps = self.steps_of(op.group, &op.request);
            self.ops[index as usize].marked = true;
            if !self.resync.mark(ctx, &self.members, index, steps) {
                return;
            }
        }
        if !self.is_readable(op.group, &op.request) {
            self.finish(ctx, index, true);
            return;
        }
        for column in self.columns(op.group) {
            if let Some(child) = self.members.present(column) {
                self.issue(ctx, index, child, op.request);
            }
        }
    }

    fn copy_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion, served: bool) {
        let index = done.tag as u32;
        self.in_flight[done.child] -= 1;
        let op = &mut self.ops[index as usize];
        op.left -= 1;
        if op.left > 0 {
            return;
        }
        op.latency.served(ctx.now(), &done.breakdown);
        match &mut op.purpose {
            Purpose::Rebuild { writes, .. } if !*writes => {
                *writes = served;
                self.ready.push_back(index);
            }
            Purpose::Resync { from, .. } if from.is_none() => {
                *from = served.then_some(done.child);
                self.ready.push_back(index);
            }
            Purpose::Request { .. } if op.request.op == Op::Read && !served => {
                self.ready.push_back(index);
            }
            Purpose::Request { .. } if op.request.op != Op::Read => {
                let op = *op;
                let failed = !self.is_readable(op.group, &op.request);
                self.finish(ctx, index, failed);
            }
            _ => self.finish(ctx, index, false),
        }
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>, index: u32, failed: bool) {
        let op = self.ops.remove(index as usize);
        if op.locked {
            let ready = &mut self.ready;
            self.locks.release(index, |granted| ready.push_back(granted));
        }
        if op.marked {
            let steps = self.steps_of(op.group, &op.request);
            self.resync.unmark(ctx, steps);
        }
        match op.purpose {
            Purpose::Resync { step, .. } => {
                ctx.data().give_back(op.request.data);
                self.resync.step_done(ctx, step, !failed);
            }
            Purpose::Request { parent } => {
                let data = op.request.data;
                if self.scatters() && data != DataSlice::NONE {
                    let request = self.pending[parent as usize].request;
                    if op.request.op == Op::Read && !failed {
                        self.striping.copy(ctx, &request, &op.request, op.group as u64, false);
                    }
                    ctx.data().give_back(data);
                }
                self.active -= 1;
                self.part_done(ctx, parent, op.latency.breakdown(), failed);
            }
            Purpose::Rebuild { number, step, .. } => {
                ctx.data().give_back(op.request.data);
                if !failed {
                    self.members.step_done(ctx, number, step);
                }
            }
        }
    }
}

impl RedundantArray for Mirror {
    fn capacity(&self) -> u64 {
        self.each * self.striping.members
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: self.kind,
            constants: vec![
                ("members", self.members.columns() as f64),
                ("copies", self.copies as f64),
                ("chunk_sectors", self.striping.chunk as f64),
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

    /// Whether a group has no complete copy left.
    fn is_beyond_redundancy(&self) -> bool {
        let groups = 0..self.turns.len();
        let lost = |group| !self.columns(group).any(|column| self.members.is_good(column));
        groups.into_iter().any(lost)
    }

    fn serve(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.split(ctx, id, request);
    }

    fn open_flush(&mut self, id: RequestId, request: &Request, parts: u32) -> u32 {
        self.open(id, request, parts)
    }

    fn part_done(
        &mut self,
        ctx: &mut Ctx<'_>,
        slot: u32,
        breakdown: LatencyBreakdown,
        failed: bool,
    ) {
        if !self.pending[slot as usize].one_done(failed) {
            return;
        }
        let parent = self.pending.remove(slot as usize);
        if parent.failed {
            Members::report_unserved(ctx, parent.request.sectors);
        }
        parent.complete(ctx, breakdown);
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, done: &Completion, served: bool) {
        self.copy_done(ctx, done, served);
    }

    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        while !self.resync.is_reading() {
            if let Some(index) = self.ready.pop_front() {
                self.begin(ctx, index);
            } else if !self.start_resync_step(ctx) && !self.start_rebuild_step(ctx) {
                return;
            }
        }
    }
}

impl Checkpoint for Mirror {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if !self.ops.is_empty() {
            return Err(StateError("a rebuild or resync step is under way".to_owned()));
        }
        to.put(&(&self.members, &self.resync));
        to.put(&(&self.stream, &self.turns, &self.last));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.members, self.resync) = from.take()?;
        (self.stream, self.turns, self.last) = from.take()?;
        same_length("the list of members", self.last.len(), self.in_flight.len())
    }
}

impl PowerFailure for Mirror {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.members.power_cut(now);
        self.resync.power_cut(now, false);
        self.pending.clear();
        self.ops.clear();
        self.ready.clear();
        self.locks = RangeLocks::default();
        self.in_flight.fill(0);
        (self.active, self.flushes) = (0, 0);
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.members.power_on(ctx);
        self.resync.power_on(ctx, &self.members);
        self.advance(ctx);
    }
}
