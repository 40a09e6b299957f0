//! A log-structured translation layer.
//!
//! Blocks are never overwritten: a write is appended to an open segment, and the map leads to the
//! block's new place. A segment is a zone of a zoned device, or a range of `segment_size` of any
//! other. [`segments`] has their states and those to clean, [`map`] the map; [`writes`]
//! appends, [`cleaning`] moves valid blocks and frees segments, [`recovery`] finds the map after a
//! power failure.
//!
//! A request that writes or trims locks its blocks. The map changes when a block has been written:
//! a read in the meantime returns the previous data, and so does one after a power failure. Reads
//! hold no lock; their segments are not reset before they complete.

mod cleaning;
mod map;
mod params;
mod recovery;
mod segments;
mod writes;

pub use params::ENTRY;

use cleaning::Cleaning;
use hybridsim_engine::range_locks::RangeLocks;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, DataSlice, Flags, LatencyBreakdown,
    LatencyPhase, Loader, Op, Request, RequestId, Saver, SimDuration, SimTime, StateError,
};
use hybridsim_flash::gc::VictimPolicy;
use map::{BlockMap, NONE, Shape};
use params::Behaviour;
use recovery::Recovery;
use segments::{Segments, State};
use slab::Slab;
use std::collections::VecDeque;

/// The log of a host write.
#[derive(Clone, Copy, Debug)]
pub enum Logs {
    One,
    /// By placement handle; handles from the number on count as 0.
    ByHandle(u32),
    /// So many, each for the lifetimes that its open segment takes: handles are lifetimes, 1 the
    /// shortest; 0 is none.
    ByLifetime(u32),
    /// Hot, warm or cold.
    ByTemperature,
}

impl Logs {
    const fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::ByHandle(logs) | Self::ByLifetime(logs) => logs,
            Self::ByTemperature => 3,
        }
    }

    /// The log of a write with these flags; `open` are the lifetimes of the logs, where they have
    /// an open segment.
    fn of(self, flags: Flags, open: impl Fn(usize) -> Option<u8>) -> usize {
        match self {
            Self::One => 0,
            Self::ByLifetime(logs) => by_lifetime(logs as usize, flags.handle(), open),
            Self::ByHandle(handles) => {
                let handle = u32::from(flags.handle());
                if handle < handles { handle as usize } else { 0 }
            }
            Self::ByTemperature if flags.contains(Flags::META) => 0,
            Self::ByTemperature if flags.contains(Flags::BACKGROUND) => 2,
            Self::ByTemperature => 1,
        }
    }
}

/// The one of `logs` for data of `lifetime`.
fn by_lifetime(logs: usize, lifetime: u8, open: impl Fn(usize) -> Option<u8>) -> usize {
    let opened = || (0..logs).filter_map(|log| Some((open(log)?, log)));
    let equal = opened().find(|it| it.0 == lifetime);
    // Data without a lifetime join their like alone.
    let fits = match lifetime {
        0 => equal,
        _ => opened().filter(|it| it.0 > lifetime).min(),
    };
    if let Some((_, log)) = fits {
        return log;
    }
    let unused = (0..logs).find(|log| open(*log).is_none());
    unused.unwrap_or_else(|| equal.or_else(|| opened().max()).map_or(0, |it| it.1))
}

/// A request of the parent.
#[derive(Clone, Copy, Debug)]
struct HostRequest {
    id: RequestId,
    request: Request,
    /// Requests outstanding for it.
    left: u32,
    failed: bool,
    /// The next block to append, and the end of its blocks; equal unless it is a write.
    next: u32,
    end: u32,
    /// The blocks of a write that covers some in part; reads of their old data are outstanding.
    blocks: DataSlice,
    filling: bool,
    /// Of the last request that completed.
    breakdown: LatencyBreakdown,
}

/// What a request to the device is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// A read of the parent, or of old data for a write.
    Read,
    Flush,
    Write,
    MoveRead,
    MoveWrite,
    Summary,
    /// The flush before a segment is reset.
    Settle,
    Reset,
    Finish,
    /// A read of addresses after a power failure.
    Scan,
}

/// A request to the device.
#[derive(Clone, Copy, Debug)]
struct Part {
    work: Work,
    /// Number of the parent's request, or of a segment.
    of: u32,
    /// First physical block.
    physical: u32,
    /// First logical block of a write; physical block that is moved.
    from: u32,
    blocks: u32,
}

/// Number of a timer: the device may have been idle for `idle_after`.
const IDLE: u64 = 0;

/// The layer.
pub struct LogStructured {
    shape: Shape,
    logical_blocks: u32,
    behaviour: Behaviour,
    map: BlockMap,
    segments: Segments,
    /// Open segment of each log, or [`NONE`].
    heads: Vec<u32>,
    /// The lifetime that each open segment was opened for, by log.
    lifetimes: Vec<u8>,
    requests: Slab<HostRequest>,
    parts: Slab<Part>,
    locks: RangeLocks,
    /// Requests that hold their locks and may begin.
    ready: VecDeque<u32>,
    /// Writes that wait for a free segment.
    waiting: VecDeque<u32>,
    cleaning: Option<Cleaning>,
    /// Writes of the cleaning that have completed.
    moves: Vec<Part>,
    recovery: Option<Recovery>,
    /// No segment can be freed any more, or the device cannot be written: writes fail.
    read_only: bool,
    /// Segments closed after a failed write since the last one that succeeded.
    sealed: u32,
    /// No request has arrived for `idle_after`.
    idle: bool,
    timer_set: bool,
    last_completion: SimTime,
}

impl LogStructured {
    fn new(
        shape: Shape,
        logical_blocks: u32,
        behaviour: Behaviour,
        policy: Box<dyn VictimPolicy>,
    ) -> Self {
        Self {
            shape,
            logical_blocks,
            behaviour,
            map: BlockMap::new(&shape, logical_blocks),
            segments: Segments::new(shape.segments, shape.data_blocks, policy),
            heads: vec![NONE; behaviour.heads],
            lifetimes: vec![0; behaviour.heads],
            requests: Slab::new(),
            parts: Slab::new(),
            locks: RangeLocks::default(),
            ready: VecDeque::new(),
            waiting: VecDeque::new(),
            cleaning: None,
            moves: Vec::new(),
            recovery: None,
            read_only: false,
            sealed: 0,
            idle: false,
            timer_set: false,
            last_completion: SimTime::ZERO,
        }
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, part: Part, request: Request) {
        let tag = self.parts.insert(part) as u64;
        ctx.issue(0, request, tag);
    }

    /// Issues a request for the parent's request number `of`.
    fn issue_for(&mut self, ctx: &mut Ctx<'_>, part: Part, request: Request) {
        self.requests[part.of as usize].left += 1;
        self.issue(ctx, part, request);
    }

    /// Starts everything that can start now.
    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        if self.recovery.is_some() {
            return;
        }
        while let Some(at) = self.ready.pop_front() {
            let HostRequest { request, .. } = self.requests[at as usize];
            match request.op {
                Op::Read => self.read(ctx, at, &request),
                Op::Write => self.begin_write(ctx, at),
                Op::Trim => self.trim(ctx, at, &request),
                Op::Flush => {
                    let part = Part { work: Work::Flush, of: at, physical: 0, from: 0, blocks: 0 };
                    self.issue_for(ctx, part, request);
                }
                Op::Zone(_) => unreachable!("the machine refuses zone commands here"),
            }
        }
        while let Some(at) = self.segments.take_empty() {
            self.settle(ctx, at);
        }
        self.append_waiting(ctx);
        while self.clean_next(ctx) {}
        self.read_only |= !self.waiting.is_empty() && self.is_stuck();
        if self.read_only {
            while let Some(at) = self.waiting.pop_front() {
                self.fail(ctx, at);
            }
        }
    }

    /// Whether nothing is under way that frees a segment, or that cleaning waits for.
    fn is_stuck(&self) -> bool {
        let frees = |part: &Part| !matches!(part.work, Work::Read | Work::Flush);
        self.cleaning.is_none()
            && self.segments.emptied == 0
            && !self.parts.iter().any(|(_, part)| frees(part))
    }

    /// Reads runs of blocks that are in order on the device; blocks without data read as zeros.
    fn read(&mut self, ctx: &mut Ctx<'_>, of: u32, request: &Request) {
        let per_block = u64::from(self.shape.block_sectors);
        let (mut at, end) = (request.lba.0, request.end().0);
        while at < end {
            let (block, within) = ((at / per_block) as u32, at % per_block);
            let skip = (at - request.lba.0) as u32;
            let physical = self.map.get(block);
            let mut blocks = 1;
            if physical != NONE {
                let last = self.shape.first(self.shape.segment(physical)) + self.shape.blocks;
                while u64::from(block + blocks) * per_block < end
                    && physical + blocks < last
                    && self.map.get(block + blocks) == physical + blocks
                {
                    blocks += 1;
                }
            }
            let sectors = (u64::from(blocks) * per_block - within).min(end - at) as u32;
            at += u64::from(sectors);
            if physical == NONE {
                ctx.data().versions_mut(request.data.skip(skip), sectors).fill(0);
                continue;
            }
            let lba = self.shape.lba(physical).offset(within);
            self.issue_read(ctx, (of, physical), request.part(skip, sectors, lba));
        }
        if self.requests[of as usize].left == 0 {
            self.complete(ctx, of);
        }
    }

    /// Issues a read of the segment of `physical` for the parent's request number `of`.
    fn issue_read(&mut self, ctx: &mut Ctx<'_>, (of, physical): (u32, u32), request: Request) {
        self.segments.get_mut(self.shape.segment(physical)).readers += 1;
        let part = Part { work: Work::Read, of, physical, from: NONE, blocks: 0 };
        self.issue_for(ctx, part, request);
    }

    /// Unmaps the blocks that the range covers as a whole.
    fn trim(&mut self, ctx: &mut Ctx<'_>, at: u32, request: &Request) {
        let per_block = u64::from(self.shape.block_sectors);
        let first = request.lba.0.div_ceil(per_block);
        for block in first..request.end().0 / per_block {
            self.remap(block as u32, NONE);
        }
        self.complete(ctx, at);
    }

    /// Maps a block to its new place, or to none.
    fn remap(&mut self, logical: u32, physical: u32) {
        let before = self.map.replace(logical, physical);
        if before != NONE {
            self.segments.invalidated(self.shape.segment(before));
        }
        if physical != NONE {
            self.segments.get_mut(self.shape.segment(physical)).valid += 1;
        }
    }

    /// A request for the parent's request `of` has completed.
    fn one_done(&mut self, ctx: &mut Ctx<'_>, of: u32, done: &Completion) {
        let request = &mut self.requests[of as usize];
        request.left -= 1;
        request.failed |= done.failed();
        request.breakdown = done.breakdown;
        let HostRequest { left, filling, failed, next, end, .. } = *request;
        match (left, filling, failed) {
            (0, true, true) => self.fail(ctx, of),
            (0, true, false) => self.filled(ctx, of),
            (0, false, _) if next == end => self.complete(ctx, of),
            _ => {}
        }
    }

    /// Fails a request once nothing is outstanding for it.
    fn fail(&mut self, ctx: &mut Ctx<'_>, at: u32) {
        let request = &mut self.requests[at as usize];
        (request.failed, request.next) = (true, request.end);
        if request.left == 0 {
            self.complete(ctx, at);
        }
    }

    fn complete(&mut self, ctx: &mut Ctx<'_>, at: u32) {
        let HostRequest { id, request, failed, blocks, breakdown, .. } =
            self.requests.remove(at as usize);
        ctx.data().give_back(blocks);
        let total = ctx.now().since(ctx.issued(id));
        let queued = total.saturating_sub(breakdown.total());
        let breakdown = breakdown.plus(LatencyPhase::Queue, queued);
        if total.is_zero() {
            // Repeating a request that takes no time must not stop the time.
            let tick = SimDuration::from_ns(1);
            let breakdown = breakdown.plus(LatencyPhase::Overhead, tick);
            match failed {
                true => ctx.fail_at(id, ctx.now() + tick, breakdown),
                false => ctx.complete_at(id, ctx.now() + tick, breakdown),
            }
        } else {
            ctx.complete_as(id, breakdown, failed);
        }
        if matches!(request.op, Op::Write | Op::Trim) {
            let ready = &mut self.ready;
            self.locks.release(at, |granted| ready.push_back(granted));
        }
        self.last_completion = ctx.now();
        self.set_timer(ctx);
    }

    fn set_timer(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(time) = self.behaviour.idle_after
            && self.requests.is_empty()
            && !self.timer_set
        {
            self.timer_set = true;
            ctx.wake_at(self.last_completion.max(ctx.now()) + time, IDLE);
        }
    }
}

impl Component for LogStructured {
    fn capacity(&self) -> u64 {
        u64::from(self.logical_blocks) * u64::from(self.shape.block_sectors)
    }

    fn info(&self) -> ComponentInfo {
        let Shape { segments, data_blocks, block_sectors, .. } = self.shape;
        ComponentInfo {
            kind: ENTRY.description.name,
            constants: vec![
                ("segments", segments.into()),
                ("segment_blocks", data_blocks.into()),
                ("block_sectors", block_sectors.into()),
            ],
            ..ComponentInfo::default()
        }
    }

    fn writes_zones(&self) -> bool {
        true
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let per_block = u64::from(self.shape.block_sectors);
        let first = request.lba.0 / per_block;
        let end = request.end().0.div_ceil(per_block);
        let writes = request.op == Op::Write;
        let at = self.requests.insert(HostRequest {
            id,
            request: *request,
            left: 0,
            failed: false,
            next: if writes { first as u32 } else { 0 },
            end: if writes { end as u32 } else { 0 },
            blocks: DataSlice::NONE,
            filling: false,
            breakdown: LatencyBreakdown::NONE,
        }) as u32;
        self.idle = false;
        let locks = matches!(request.op, Op::Write | Op::Trim);
        if !locks || self.locks.acquire(at, first, end, true) {
            self.ready.push_back(at);
        }
        self.advance(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let part = self.parts.remove(done.tag as usize);
        match part.work {
            Work::Read => {
                let segment = self.shape.segment(part.physical);
                self.segments.get_mut(segment).readers -= 1;
                self.one_done(ctx, part.of, done);
                self.reset_unread(ctx, segment);
            }
            Work::Flush => self.one_done(ctx, part.of, done),
            Work::Write => self.written(ctx, &part, done),
            Work::MoveRead => self.move_read(ctx, &part, done),
            Work::MoveWrite => self.moved(ctx, &part, done),
            Work::Summary => self.summary_written(ctx, &part, done),
            Work::Settle => {
                self.segments.get_mut(part.of).state = State::Settled;
                self.reset_unread(ctx, part.of);
            }
            Work::Reset => self.was_reset(ctx, part.of, done.failed()),
            Work::Finish => self.finished(ctx, &part, done.failed()),
            Work::Scan => self.scanned(ctx, done),
        }
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, _token: u64) {
        self.timer_set = false;
        let idle_since = self.last_completion + self.behaviour.idle_after.unwrap_or_default();
        if self.requests.is_empty() && ctx.now() < idle_since {
            self.timer_set = true;
            ctx.wake_at(idle_since, IDLE);
        } else if self.requests.is_empty() {
            self.idle = true;
            self.advance(ctx);
        }
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl Checkpoint for LogStructured {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if !self.parts.is_empty() || !self.requests.is_empty() {
            return Err(StateError("requests are outstanding".to_owned()));
        }
        self.segments.save(to)?;
        to.put(&(&self.heads, &self.lifetimes, self.read_only, self.idle, self.timer_set));
        to.put(&(self.last_completion, self.sealed));
        self.map.save(to);
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.segments.restore(from)?;
        (self.heads, self.lifetimes, self.read_only, self.idle, self.timer_set) = from.take()?;
        (self.last_completion, self.sealed) = from.take()?;
        let open = |(at, head): (usize, &u32)| {
            *head == NONE
                || !self.heads[..at].contains(head)
                    && *head < self.segments.len()
                    && self.segments.get(*head).state == State::Open
        };
        let lengths = [self.heads.len(), self.lifetimes.len()];
        let fits = lengths == [self.behaviour.heads; 2] && self.heads.iter().enumerate().all(open);
        let other = || StateError("it is the state of a log with other segments".to_owned());
        if !fits {
            return Err(other());
        }
        self.map.restore(from)?;
        let valid = self.map.valid_blocks(&self.shape).ok_or_else(other)?;
        let agrees = |(at, valid): (u32, u32)| self.segments.get(at).valid == valid;
        if (0..).zip(valid).all(agrees) { Ok(()) } else { Err(other()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_join_the_open_segment_of_the_next_longer_lifetime() {
        let log = |lifetime: u8, open: [Option<u8>; 3]| {
            Logs::ByLifetime(3).of(Flags::NONE.with_handle(lifetime), |log| open[log])
        };
        assert_eq!(log(4, [None; 3]), 0, "a new one");
        assert_eq!(log(2, [Some(4), None, None]), 0, "they are gone before the others");
        assert_eq!(log(4, [Some(4), None, None]), 1, "they may outlive the others");
        assert_eq!(log(3, [Some(5), Some(3), None]), 0);
        assert_eq!(log(4, [Some(6), Some(3), Some(5)]), 2, "the closest");
        assert_eq!(log(4, [Some(4), Some(3), Some(2)]), 0, "the same, if all are open");
        assert_eq!(log(7, [Some(4), Some(6), Some(5)]), 1, "the longest");
        assert_eq!(log(0, [Some(4), Some(0), None]), 1, "those without a lifetime");
        assert_eq!(log(0, [Some(4), None, None]), 1);
    }
}
