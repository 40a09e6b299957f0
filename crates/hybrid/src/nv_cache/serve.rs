//! Requests and commands.

use super::extents::Piece;
use super::{CachedWrites, ENTRY_SECTORS_MAX, NvCacheDisk};
use hybridsim_cache::CacheEvent;
use hybridsim_cache::paged::locks::Lock;
use hybridsim_engine::{
    Command, CommonEvent, Completion, Ctx, DataSlice, Flags, LatencyBreakdown, LatencyPhase, Lba,
    Op, Request, RequestId, SimTime,
};

/// Child numbers.
pub(super) const FLASH: usize = 0;
pub(super) const DISK: usize = 1;

/// A request or command in progress.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The host's request; `None` for a destage of the drive's own, and while the cache is filled.
    pub(super) id: Option<RequestId>,
    pub(super) request: Request,
    command: Option<Command>,
    pub(super) phase: Phase,
    /// A read that is cached if it misses.
    caches: bool,
    /// The range being moved between the media: first sector and length.
    moves: (u64, u32),
    pub(super) data: DataSlice,
    /// Requests outstanding at the media.
    outstanding: u32,
    pub(super) failed: bool,
    /// Start of the phase.
    since: SimTime,
    pub(super) breakdown: LatencyBreakdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    /// Requests are outstanding at the media.
    Serving,
    /// A read has completed; its data are being written to the cache.
    Filling,
    /// A range is read from one medium, to be written to the other.
    Reading,
    Writing,
    /// A command takes its processing time.
    Answering,
}

impl NvCacheDisk {
    /// A request or command arrives: starts, or waits for those it conflicts with.
    pub(super) fn accept(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: Option<RequestId>,
        request: &Request,
        command: Option<Command>,
    ) {
        let caches = id.is_some() && command.is_none() && self.caches_read(request);
        let job = Job {
            id,
            request: *request,
            command,
            phase: Phase::Waiting,
            caches,
            moves: (0, 0),
            data: DataSlice::NONE,
            outstanding: 0,
            failed: false,
            since: ctx.now(),
            breakdown: LatencyBreakdown::NONE,
        };
        let slot = self.jobs.insert(job) as u32;
        let (range, shared) = self.claims(id, request, command);
        // A read that fills the cache excludes others, which could miss and fill it as well.
        let shared = shared && !caches;
        if self.locks.acquire(slot, range, !shared, false) == Lock::Granted && self.start(ctx, slot)
        {
            self.end(ctx, slot);
        }
    }

    /// The sectors it locks, and whether the lock is shared.
    fn claims(
        &self,
        id: Option<RequestId>,
        request: &Request,
        command: Option<Command>,
    ) -> ((u64, u64), bool) {
        let (none, all) = ((u64::MAX, 0), (0, u64::MAX));
        let range = match (command, request.op) {
            (None, Op::Flush) | (Some(Command::QuerySize), _) => none,
            (Some(Command::FlushUnpinned | Command::LeavePowerMode), _) => all,
            (Some(Command::EnterPowerMode { .. }), _) => all,
            (Some(_), _) if request.sectors == 0 => all,
            _ => (request.lba.0, request.end().0 - 1),
        };
        let shared = match command {
            None => request.op == Op::Read && id.is_some(),
            Some(command) => matches!(command, Command::QueryPinned | Command::QuerySize),
        };
        (range, shared)
    }

    /// Starts an operation that has its lock; returns whether it is complete at once.
    fn start(&mut self, ctx: &mut Ctx<'_>, slot: u32) -> bool {
        let job = &mut self.jobs[slot as usize];
        job.breakdown.add(LatencyPhase::Queue, ctx.now().since(job.since));
        job.since = ctx.now();
        job.phase = Phase::Serving;
        let (request, command, own) = (job.request, job.command, job.id.is_none());
        match (command, request.op) {
            (None, _) if own => self.start_destage(ctx, slot, &request),
            (Some(command), _) => self.start_command(ctx, slot, command, &request),
            (None, Op::Flush) => {
                for child in [FLASH, DISK] {
                    self.issue(ctx, slot, child, Request { lba: Lba(0), ..request });
                }
            }
            (None, _) => self.start_request(ctx, slot, &request),
        }
        let job = &self.jobs[slot as usize];
        // True for a trim of cached sectors only.
        job.phase == Phase::Serving && job.outstanding == 0
    }

    /// Splits a request between the media.
    fn start_request(&mut self, ctx: &mut Ctx<'_>, slot: u32, request: &Request) {
        let (lba, end) = (request.lba.0, request.end().0);
        let past = request.flags.contains(Flags::PAST_CACHE);
        if past && request.op != Op::Trim {
            if request.op == Op::Write {
                self.extents.remove(lba, end, super::Extent::is_droppable);
            }
            self.issue(ctx, slot, DISK, *request);
            return;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        self.extents.pieces(lba, end, &mut pieces);
        // Sectors of a write that get space only now are misses.
        let held = pieces.iter().filter(|piece| piece.extent.is_some());
        let held: u64 = held.map(|piece| piece.sectors).sum();
        if request.op == Op::Write && self.allocate(ctx.now(), &pieces) {
            self.extents.pieces(lba, end, &mut pieces);
        }
        let (mut hits, mut misses) = (0, 0);
        for piece in &pieces {
            let (skip, sectors) = ((piece.lba - lba) as u32, piece.sectors as u32);
            let cached = piece.extent.filter(|extent| extent.valid || request.op == Op::Write);
            let (child, at) = match cached {
                Some(extent) => (FLASH, extent.at),
                None => (DISK, piece.lba),
            };
            *(if child == FLASH { &mut hits } else { &mut misses }) += sectors;
            if request.op != Op::Trim || child == DISK {
                self.issue(ctx, slot, child, request.part(skip, sectors, Lba(at)));
            }
        }
        if request.op != Op::Trim {
            if request.op == Op::Write {
                if self.spindle.mode && hits > 0 {
                    let name = super::WRITE_CACHED;
                    ctx.emit(CommonEvent::Custom { name, value: u64::from(hits) });
                }
                (hits, misses) = (held as u32, request.sectors - held as u32);
            }
            ctx.emit(CacheEvent::CacheLookup { op: request.op, hits, misses });
        }
        self.pieces = pieces;
    }

    /// Allocates space for the parts of a write that are not cached, where the power mode caches
    /// them; cached parts become dirty. Returns whether extents have changed.
    fn allocate(&mut self, now: SimTime, pieces: &[Piece]) -> bool {
        let mode = self.spindle.mode;
        let caches =
            mode && (self.params.cache_writes == CachedWrites::Always || self.spindle.standby);
        let mut changed = false;
        for piece in pieces {
            let (lba, sectors) = (piece.lba, piece.sectors);
            if let Some(extent) = piece.extent {
                if mode {
                    self.budget.spend(now, sectors);
                }
                if extent.clean {
                    self.extents.change(lba, lba + sectors, |extent| extent.clean = false);
                    changed = true;
                }
            } else if caches
                && self.budget.allows(now, sectors)
                && self.make_space(sectors, u64::MAX)
            {
                self.budget.spend(now, sectors);
                self.extents.reserve(lba, sectors, false);
                changed = true;
            }
        }
        changed
    }

    pub(super) fn issue(&mut self, ctx: &mut Ctx<'_>, slot: u32, child: usize, request: Request) {
        self.spindle.busy += u32::from(child == DISK);
        let flags = Flags(request.flags.0 & !Flags::PAST_CACHE.0);
        self.jobs[slot as usize].outstanding += 1;
        ctx.issue(child, Request { flags, ..request }, u64::from(slot));
    }

    fn start_command(&mut self, ctx: &mut Ctx<'_>, slot: u32, command: Command, request: &Request) {
        let (lba, end) = match request.sectors {
            0 => (0, self.capacity),
            _ => (request.lba.0, request.end().0),
        };
        let id = self.jobs[slot as usize].id.expect("commands come from the parent");
        let mut entries = (end - lba).div_ceil(ENTRY_SECTORS_MAX);
        match command {
            Command::QuerySize => {
                entries = 1;
                ctx.answer(id, vec![(Lba(0), self.extents.size())]);
            }
            Command::QueryPinned => {
                let pinned = self.pinned(lba, end);
                entries = pinned.len() as u64;
                ctx.answer(id, pinned);
            }
            Command::Unpin { discard: true } => {
                self.extents.remove(lba, end, |extent| extent.pinned);
            }
            Command::Unpin { discard: false } => {
                let on_disk = |extent: &super::Extent| extent.clean || !extent.valid;
                self.extents.remove(lba, end, |extent| extent.pinned && on_disk(extent));
                self.extents.change(lba, end, |extent| extent.pinned = false);
            }
            Command::Pin { .. } => {
                let fits = self.pin(lba, end);
                self.jobs[slot as usize].failed = !fits;
            }
            Command::EnterPowerMode { spinning_s_min } => {
                self.spindle.enter(spinning_s_min);
                entries = 0;
            }
            Command::LeavePowerMode => {
                self.extents.drop_clean(0, 0, |_, _| true);
                self.spindle.leave();
                entries = 0;
            }
            Command::FlushUnpinned => {
                // It has locked everything.
                self.extents.drop_clean(u64::from(request.sectors), u64::MAX, |_, _| true);
                entries = 0;
            }
            Command::Standby | Command::Idle => unreachable!("broadcast before"),
        }
        let time = self.params.command_time + self.params.entry_time * entries;
        let job = &mut self.jobs[slot as usize];
        job.breakdown.add(LatencyPhase::Overhead, time);
        job.phase = Phase::Answering;
        ctx.wake_at(ctx.now() + time, u64::from(slot));
    }

    /// Valid pinned ranges, ascending.
    fn pinned(&self, lba: u64, end: u64) -> Vec<(Lba, u64)> {
        let mut pieces = Vec::new();
        self.extents.pieces(lba, end, &mut pieces);
        let mut ranges: Vec<(Lba, u64)> = Vec::new();
        for piece in pieces {
            if piece.extent.is_none_or(|extent| !extent.pinned || !extent.valid) {
                continue;
            }
            match ranges.last_mut() {
                Some((first, sectors)) if first.0 + *sectors == piece.lba => {
                    *sectors += piece.sectors;
                }
                _ => ranges.push((Lba(piece.lba), piece.sectors)),
            }
        }
        ranges
    }

    /// Pins a range: allocates what is not cached. Changes nothing if the space is insufficient.
    fn pin(&mut self, lba: u64, end: u64) -> bool {
        let mut pieces = std::mem::take(&mut self.pieces);
        self.extents.pieces(lba, end, &mut pieces);
        let missing = pieces.iter().filter(|piece| piece.extent.is_none());
        let sectors = missing.clone().map(|piece| piece.sectors).sum::<u64>();
        let fits = self.make_space(sectors, u64::MAX);
        if fits {
            for piece in missing {
                self.extents.reserve(piece.lba, piece.sectors, true);
            }
            self.extents.change(lba, end, |extent| extent.pinned = true);
        }
        self.pieces = pieces;
        fits
    }

    /// A request to a medium has completed.
    pub(super) fn child_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.child == DISK {
            self.spindle.served(ctx.now(), done);
        }
        let slot = done.tag as u32;
        let job = &mut self.jobs[slot as usize];
        job.outstanding -= 1;
        job.failed |= done.failed();
        if job.outstanding > 0 {
            return;
        }
        // All requests of a phase are issued together, so the last one has the latency of the
        // phase.
        for (phase, time) in done.breakdown.phases() {
            job.breakdown.add(phase, time);
        }
        job.since = ctx.now();
        let Job { phase, failed, request, command, moves, caches, .. } = *job;
        match phase {
            Phase::Filling => self.filled(ctx, slot),
            Phase::Serving if caches && !failed && self.fill(ctx, slot) => {}
            Phase::Reading if !failed => self.write_moved(ctx, slot),
            Phase::Writing if !failed => self.moved(ctx, slot, moves),
            _ => {
                let past = request.flags.contains(Flags::PAST_CACHE);
                let written = command.is_none() && request.op == Op::Write && !past;
                let (lba, end) = (request.lba.0, request.end().0);
                if written && failed {
                    // Frees the space allocated for the failed write.
                    self.extents.remove(lba, end, |extent| !extent.pinned && !extent.valid);
                } else if written {
                    self.extents.change(lba, end, |extent| extent.valid = true);
                }
                self.step_completed(ctx, slot);
            }
        }
    }

    /// The processing time of a command is over, or a step has completed: continues or ends.
    pub(super) fn step_completed(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let job = self.jobs[slot as usize];
        if !job.failed && job.phase != Phase::Waiting && self.move_next(ctx, slot) {
            return;
        }
        self.end(ctx, slot);
    }

    /// Completes an operation, and those it unblocks that are complete at once. These may be many,
    /// hence a loop instead of recursion.
    fn end(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        self.finish(ctx, slot);
        while let Some(next) = self.locks.next_granted() {
            if self.start(ctx, next) {
                self.finish(ctx, next);
            }
        }
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let job = self.jobs.remove(slot as usize);
        ctx.data().give_back(job.data);
        if job.id.is_some() && job.command.is_none() {
            self.spindle.active(ctx.now(), job.request.op, &self.params);
        }
        match job.id {
            Some(id) => ctx.complete_as(id, job.breakdown, job.failed),
            None if job.caches => {}
            None => self.spindle.destaged(job.failed),
        }
        self.locks.release(slot);
    }

    /// Starts the next move of data for a command; returns `false` when there is none.
    fn move_next(&mut self, ctx: &mut Ctx<'_>, slot: u32) -> bool {
        let Job { command, request, .. } = self.jobs[slot as usize];
        let next = match command {
            Some(Command::Pin { populate: true }) => {
                self.extents.pieces(request.lba.0, request.end().0, &mut self.pieces);
                let empty = |extent: &super::Extent| !extent.valid;
                let missing =
                    self.pieces.iter().find(|piece| piece.extent.as_ref().is_some_and(empty));
                missing.map(|piece| (piece.lba, piece.sectors, DISK, piece.lba))
            }
            Some(Command::FlushUnpinned) if self.extents.free() < u64::from(request.sectors) => {
                self.dirty_extent()
            }
            Some(Command::LeavePowerMode) => self.dirty_extent(),
            _ => None,
        };
        let Some((lba, sectors, child, at)) = next else { return false };
        self.begin_move(ctx, slot, (lba, sectors), (child, at));
        true
    }

    /// Starts moving sectors `lba..lba + sectors`, which are at sector `at` of `child`, to the
    /// other medium.
    pub(super) fn begin_move(
        &mut self,
        ctx: &mut Ctx<'_>,
        slot: u32,
        (lba, sectors): (u64, u64),
        (child, at): (usize, u64),
    ) {
        let sectors = sectors.min(MOVE_SECTORS_MAX) as u32;
        let data = ctx.take_data(sectors);
        let job = &mut self.jobs[slot as usize];
        job.phase = Phase::Reading;
        job.moves = (lba, sectors);
        job.data = data;
        let read = Request { data, ..Request::new(Op::Read, Lba(at), sectors) };
        self.issue(ctx, slot, child, background(read));
    }

    /// The oldest dirty extent: first sector, length, child, and first sector there.
    pub(super) fn dirty_extent(&self) -> Option<(u64, u64, usize, u64)> {
        let (lba, extent) = self.extents.oldest_dirty()?;
        Some((lba, extent.sectors, FLASH, extent.at))
    }

    /// A range has been read: writes it to the other medium.
    fn write_moved(&mut self, ctx: &mut Ctx<'_>, slot: u32) {
        let Job { command, moves: (lba, sectors), data, .. } = self.jobs[slot as usize];
        self.jobs[slot as usize].phase = Phase::Writing;
        let write = Request { data, ..Request::new(Op::Write, Lba(lba), sectors) };
        if !matches!(command, Some(Command::Pin { .. })) {
            // The cached copy is dropped next, so the data must be on the medium.
            let flags = Flags::FUA;
            self.issue(ctx, slot, DISK, background(Request { flags, ..write }));
            return;
        }
        self.extents.pieces(lba, lba + u64::from(sectors), &mut self.pieces);
        let extent = self.pieces[0].extent.expect("it was reserved");
        self.issue(ctx, slot, FLASH, background(write.part(0, sectors, Lba(extent.at))));
    }

    fn moved(&mut self, ctx: &mut Ctx<'_>, slot: u32, (lba, sectors): (u64, u32)) {
        let end = lba + u64::from(sectors);
        let job = &mut self.jobs[slot as usize];
        ctx.data().give_back(std::mem::replace(&mut job.data, DataSlice::NONE));
        if matches!(job.command, Some(Command::Pin { .. })) {
            self.extents.change(lba, end, |extent| (extent.valid, extent.clean) = (true, true));
        } else {
            ctx.emit(CacheEvent::Destaged { sectors });
            self.extents.remove(lba, end, |extent| !extent.pinned);
        }
        self.step_completed(ctx, slot);
    }
}

/// Longest move between the media: 1 MiB.
const MOVE_SECTORS_MAX: u64 = 2048;

pub(super) fn background(request: Request) -> Request {
    Request { flags: request.flags.with(Flags::BACKGROUND), ..request }
}
