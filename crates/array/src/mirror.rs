//! What arrays of copies have in common (RAID 1 and RAID 10).
//!
//! The members form groups of copies; chunks go round the groups. A read takes one copy of each
//! group it concerns, a write and a trim go to all of them. Writes lock their range of the group,
//! so overlapping writes reach every copy in the same order. A spare being filled gets every write
//! as well, and is read only where it is filled. A flush goes to every member that is present.
//!
//! A write is done if a copy that can be read holds it; where there is none, requests fail.
//!
//! A power failure may leave copies that disagree ([`resync`]). The first copy that is there wins:
//! it is copied to the others, in the background and before anything is read that has not been.
//! So what was read once is on every copy, whichever fails next.

use super::locks::{Range, RangeLocks};
use super::members::{self, Members, Step};
use super::resync::{self, BITMAP_TAG, BITMAP_TOKEN, Resync};
use super::striping::Striping;
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Completion, Component, ComponentInfo, Ctx, DataSlice, Flags, LatencyBreakdown, LatencyPhase,
    Lba, Op, Outcome, PowerFailure, Request, RequestId, SECTOR_BYTES, SimTime, Stream,
};
use slab::Slab;
use std::collections::VecDeque;
use std::rc::Rc;

/// Which copy is read.
pub const READ_CHOICE: Param = Param::with(
    "read_choice",
    Kind::Choice(&[
        "primary",
        "random",
        "round-robin",
        "shortest-queue",
        "shortest-seek",
        "shortest-queue-then-seek",
    ]),
    "\"shortest-queue-then-seek\"",
    "Which copy is read: the first, any, each in turn, the one with fewest requests, the one whose \
     arm is nearest (by the members' own estimates where they give any, else by address), or the \
     nearest of those with fewest requests",
);

/// How much of a spare is filled at a time.
pub const REBUILD_STEP: Param =
    Param::with("rebuild_step", Kind::Bytes, "\"512KiB\"", "Bytes copied to a spare in one piece");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Primary,
    Random,
    RoundRobin,
    ShortestQueue,
    ShortestSeek,
    QueueThenSeek,
}

#[derive(Clone, Copy, Debug)]
struct Parent {
    id: RequestId,
    request: Request,
    left: u32,
    failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// For a request.
    Request { parent: u32 },
    /// Fills a column, for the rebuild of this number: first the read, then the write.
    Rebuild { number: u32, step: u64, column: usize, writes: bool },
    /// Makes the copies of a step agree: reads one of them, then writes it to the others.
    Resync { step: u64, from: Option<usize> },
}

/// What a request, or a rebuild, asks of one group.
#[derive(Clone, Copy, Debug)]
struct GroupOp {
    work: Work,
    group: usize,
    /// As issued to members.
    request: Request,
    left: u32,
    locked: bool,
    /// Whether the regions it writes to are marked, or being so.
    marked: bool,
    since: SimTime,
    breakdown: LatencyBreakdown,
}

/// The array.
pub struct Mirror {
    kind: &'static str,
    copies: usize,
    striping: Striping,
    /// Sectors used of each member.
    each: u64,
    step_sectors: u64,
    choice: Choice,
    stream: Stream,
    /// Where each group's turn is.
    turns: Vec<usize>,
    /// By child: sector behind the last one asked for, requests in flight, estimates.
    last: Vec<Lba>,
    in_flight: Vec<u32>,
    positioners: Vec<Option<Rc<dyn Positioner>>>,
    members: Members,
    resync: Resync,
    parents: Slab<Parent>,
    ops: Slab<GroupOp>,
    ready: VecDeque<u32>,
    /// Operations of requests.
    active: usize,
    /// Flushes at members.
    flushes: usize,
    locks: RangeLocks,
}

/// Marks the tag of a flush; the rest is its parent.
const FLUSH_TAG: u64 = 1 << 63;

/// Groups of `copies` members, chunks of `chunk` sectors (all in one chunk when there is one
/// group) going round them.
///
/// # Errors
/// Everything that is wrong, `problems` included.
pub fn build(
    kind: &'static str,
    input: &BuildInput<'_>,
    copies: usize,
    chunk: Option<u64>,
    mut problems: Vec<Problem>,
) -> Result<Box<dyn Component>, Vec<Problem>> {
    let (columns, smallest) = members::columns_of(input);
    let step_bytes = input.settings.bytes("rebuild_step");
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
    let reserved = resync::reserve(input.settings, bound, step_sectors, &mut problems);
    let smallest = smallest.saturating_sub(reserved);
    let each = chunk.map_or(smallest, |chunk| smallest / chunk * chunk);
    if each == 0 {
        problems.push(Problem::new("members", "are too small"));
    }
    if each.checked_mul(groups).is_none() {
        problems.push(Problem::new("members", "together exceed 2^64 sectors"));
    }
    let steps = each.div_ceil(step_sectors).max(1);
    let members = Members::read(input, steps, step_sectors, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let children = input.children.len();
    let resync = Resync::read(input, (steps * groups, step_sectors), (each, reserved));
    Ok(Box::new(Mirror {
        kind,
        copies,
        striping: Striping { members: groups, chunk: chunk.unwrap_or(each) },
        each,
        step_sectors,
        choice: choice(input.settings.text("read_choice")),
        stream: Stream::new(input.seed, input.path),
        turns: vec![0; groups as usize],
        last: vec![Lba(0); children],
        in_flight: vec![0; children],
        positioners: input.children.iter().map(|child| child.positioner.clone()).collect(),
        members,
        resync,
        parents: Slab::new(),
        ops: Slab::new(),
        ready: VecDeque::new(),
        active: 0,
        flushes: 0,
        locks: RangeLocks::default(),
    }))
}

fn choice(name: &str) -> Choice {
    match name {
        "primary" => Choice::Primary,
        "random" => Choice::Random,
        "round-robin" => Choice::RoundRobin,
        "shortest-queue" => Choice::ShortestQueue,
        "shortest-seek" => Choice::ShortestSeek,
        _ => Choice::QueueThenSeek,
    }
}

impl Mirror {
    fn columns(&self, group: usize) -> std::ops::Range<usize> {
        group * self.copies..(group + 1) * self.copies
    }

    /// The child that holds what `column` has in the request's range.
    fn holder(&self, column: usize, request: &Request) -> Option<usize> {
        let (from, end) = (request.lba.0, request.end().0);
        self.members.holder(column, from / self.step_sectors, end.div_ceil(self.step_sectors))
    }

    /// Whether any copy of the range can be read.
    fn is_readable(&self, group: usize, request: &Request) -> bool {
        self.columns(group).any(|column| self.holder(column, request).is_some())
    }

    /// The child to read `request` from.
    fn choose(&mut self, ctx: &Ctx<'_>, group: usize, request: &Request) -> Option<usize> {
        let columns = self.columns(group);
        let holders = |mirror: &Self, turn: usize| {
            let place = (mirror.turns[group] + turn) % mirror.copies;
            mirror.holder(columns.start + place, request)
        };
        if self.choice == Choice::Primary {
            self.turns[group] = 0;
            return (0..self.copies).find_map(|turn| holders(self, turn));
        }
        if self.choice == Choice::Random {
            let count = (0..self.copies).filter_map(|turn| holders(self, turn)).count();
            let chosen = self.stream.below(count as u64) as usize;
            return (0..self.copies).filter_map(|turn| holders(self, turn)).nth(chosen);
        }
        // Even choices are made in turn.
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
            Choice::ShortestQueue => (queue, 0),
            Choice::ShortestSeek => (seek(), queue),
            Choice::QueueThenSeek => (queue, seek()),
            Choice::Primary | Choice::Random | Choice::RoundRobin => (0, 0),
        }
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, index: u32, child: usize, request: Request) {
        self.ops[index as usize].left += 1;
        self.in_flight[child] += 1;
        self.last[child] = request.end();
        ctx.issue(child, request, u64::from(index));
    }

    fn open(&mut self, id: RequestId, request: &Request, left: u32) -> u32 {
        let parent = Parent { id, request: *request, left, failed: false };
        self.parents.insert(parent) as u32
    }

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
        if parent.left > 0 {
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
        let columns = 0..self.members.columns();
        let count = columns.clone().filter_map(|column| self.members.present(column)).count();
        if count == 0 {
            Members::tell_unserved(ctx, request.sectors);
            ctx.fail_request(id, LatencyBreakdown::NONE);
            return;
        }
        self.flushes += count;
        let parent = self.open(id, request, count as u32);
        for column in columns {
            if let Some(child) = self.members.present(column) {
                ctx.issue(child, *request, FLUSH_TAG | u64::from(parent));
            }
        }
    }

    /// One operation per group the request concerns.
    fn split(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let (lba, end) = (request.lba.0, request.end().0);
        let (first, count) = self.striping.concerned(lba, end);
        let parent = self.open(id, request, count as u32);
        self.active += count as usize;
        for turn in 0..count {
            let group = (first + turn) % self.striping.members;
            let share = self.striping.share(group, lba, end);
            let (from, sectors) = share.expect("the group is concerned");
            let mut part = request.part(0, sectors as u32, Lba(from));
            if self.scatters() && !request.data.is_none() {
                part.data = ctx.take_data(part.sectors);
                if request.op == Op::Write {
                    self.striping.copy(ctx, request, &part, group, true);
                }
            }
            let now = ctx.now();
            self.enter(Work::Request { parent }, group as usize, part, now);
        }
    }

    /// Whether a group's share of a request's data is scattered over it.
    fn scatters(&self) -> bool {
        self.striping.members > 1
    }

    fn enter(&mut self, work: Work, group: usize, request: Request, since: SimTime) {
        let locked = request.op != Op::Read || !matches!(work, Work::Request { .. });
        let (breakdown, marked) = (LatencyBreakdown::NONE, false);
        let op = GroupOp { work, group, request, left: 0, locked, marked, since, breakdown };
        let index = self.ops.insert(op) as u32;
        let (from, to) = (request.lba.0, request.end().0);
        let range = Range { key: group as u64, from, to, exclusive: true };
        if !locked || self.locks.acquire(index, range) {
            self.ready.push_back(index);
        }
    }

    fn settle(&mut self, ctx: &mut Ctx<'_>) {
        while !self.resync.is_reading() {
            if let Some(index) = self.ready.pop_front() {
                self.begin(ctx, index);
            } else if !self.start_resync_step(ctx) && !self.start_rebuild_step(ctx) {
                return;
            }
        }
    }

    /// Steps of the array a request to a group concerns.
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

    /// Whether there are two copies, one of which can be read.
    fn can_disagree(&self, group: usize, request: &Request) -> bool {
        let present = self.columns(group).filter_map(|column| self.members.present(column));
        present.count() > 1 && self.is_readable(group, request)
    }

    /// A request waits until the copies of a step agree.
    fn wait_until_agreed(&mut self, ctx: &mut Ctx<'_>, index: u32, step: u64) {
        let op = self.ops[index as usize];
        if op.locked {
            let ready = &mut self.ready;
            self.locks.release(index, |granted| ready.push_back(granted));
        }
        if self.resync.claim(step) {
            self.enter_resync(ctx, step, op.request.flags);
        }
        // Whoever makes the step agree holds it, or asked for it before.
        self.ops[index as usize].locked = true;
        let (from, to) = (op.request.lba.0, op.request.end().0);
        let range = Range { key: op.group as u64, from, to, exclusive: false };
        if self.locks.acquire(index, range) {
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
        self.enter(Work::Resync { step, from: None }, group, request, now);
    }

    /// Reads the copy that wins, then writes it to the others that are there.
    fn make_agree(&mut self, ctx: &mut Ctx<'_>, index: u32, read_from: Option<usize>) {
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
        let work = Work::Rebuild { number: rebuild, step, column, writes: false };
        let now = ctx.now();
        self.enter(work, column / self.copies, request, now);
        true
    }

    /// Issues what the operation, which holds its lock if it needs one, has to do next.
    fn begin(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let now = ctx.now();
        let op = &mut self.ops[index as usize];
        op.breakdown.add(LatencyPhase::Queue, now.since(op.since));
        op.since = now;
        let op = *op;
        match op.work {
            Work::Rebuild { number, .. } if !self.members.is_rebuilding(number) => {
                self.finish(ctx, index, true);
            }
            Work::Rebuild { writes: true, column, .. } => {
                let child = self.members.present(column).expect("its rebuild goes on");
                self.issue(ctx, index, child, Request { op: Op::Write, ..op.request });
            }
            Work::Resync { from, .. } => self.make_agree(ctx, index, from),
            Work::Request { .. } if op.request.op != Op::Read => self.write(ctx, index),
            Work::Request { .. } | Work::Rebuild { .. } => self.read(ctx, index),
        }
    }

    /// Reads from a copy, for a request or a rebuild.
    fn read(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let op = self.ops[index as usize];
        let unsynced = match self.resync.is_synced() {
            true => None,
            false => self.resync.unsynced_of(self.steps_of(op.group, &op.request)),
        };
        let child = match (unsynced, op.work) {
            (Some(step), Work::Request { .. }) if self.can_disagree(op.group, &op.request) => {
                return self.wait_until_agreed(ctx, index, step);
            }
            // The copy that wins in the end.
            (Some(_), _) => self.holders(op.group, &op.request).next(),
            (None, _) => self.choose(ctx, op.group, &op.request),
        };
        if let Some(child) = child {
            self.issue(ctx, index, child, op.request);
            return;
        }
        if matches!(op.work, Work::Rebuild { .. }) {
            self.members.give_up_rebuild(ctx);
        }
        self.finish(ctx, index, true);
    }

    /// Writes to all copies, when the regions are marked.
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
        for part in LatencyPhase::ALL {
            op.breakdown.add(part, done.breakdown.get(part));
        }
        op.since = ctx.now();
        match &mut op.work {
            Work::Rebuild { writes, .. } if !*writes => {
                *writes = served;
                self.ready.push_back(index);
            }
            Work::Resync { from, .. } if from.is_none() => {
                *from = served.then_some(done.child);
                self.ready.push_back(index);
            }
            Work::Request { .. } if op.request.op == Op::Read && !served => {
                self.ready.push_back(index);
            }
            Work::Request { .. } if op.request.op != Op::Read => {
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
        match op.work {
            Work::Resync { step, .. } => {
                ctx.data().give_back(op.request.data);
                self.resync.step_done(ctx, step, !failed);
            }
            Work::Request { parent } => {
                let data = op.request.data;
                if self.scatters() && data != DataSlice::NONE {
                    let request = self.parents[parent as usize].request;
                    if op.request.op == Op::Read && !failed {
                        self.striping.copy(ctx, &request, &op.request, op.group as u64, false);
                    }
                    ctx.data().give_back(data);
                }
                self.active -= 1;
                self.part_done(ctx, parent, op.breakdown, failed);
            }
            Work::Rebuild { number, step, .. } => {
                ctx.data().give_back(op.request.data);
                if !failed {
                    self.members.step_done(ctx, number, step);
                }
            }
        }
    }

    /// Whether a group has no whole copy left.
    fn is_beyond_redundancy(&self) -> bool {
        let groups = 0..self.turns.len();
        let lost = |group| !self.columns(group).any(|column| self.members.is_good(column));
        groups.into_iter().any(lost)
    }

    fn tell_if_beyond(&mut self, ctx: &mut Ctx<'_>) {
        if self.is_beyond_redundancy() {
            self.members.tell_beyond_redundancy(ctx);
        }
    }
}

impl Component for Mirror {
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
            _ => self.split(ctx, id, request),
        }
        self.settle(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.outcome == Outcome::Failed && !self.members.has_failed(done.child) {
            self.members.fail(ctx, done.child);
            self.tell_if_beyond(ctx);
        }
        if done.tag == BITMAP_TAG {
            let ready = &mut self.ready;
            self.resync.completion(ctx, &self.members, done, |owner| ready.push_back(owner));
        } else if done.tag & FLUSH_TAG == 0 {
            let served = !self.members.has_failed(done.child);
            self.copy_done(ctx, done, served);
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

impl PowerFailure for Mirror {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.members.power_cut(now);
        self.resync.power_cut(now, false);
        self.parents.clear();
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
        self.settle(ctx);
    }
}
