//! Reads: from the buffer, from a read-ahead still running, or from the medium.

use super::{Begin, Electronics, HardDisk, forced, outcome, request_id};
use crate::cache::{AheadLimit, Sweep, segments::Found};
use crate::event::{DiskCacheOutcome, DiskEvent};
use crate::mechanics::{Arm, Run};
use crate::rotation::Rotation;
use hybridsim_engine::schedule::{Positioner, Queued};
use hybridsim_engine::{
    Ctx, LatencyBreakdown, LatencyPhase, Lba, Op, PowerState, SimDuration, SimTime,
};

impl HardDisk {
    /// A read arrives.
    pub(super) fn take_read(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        let request = &item.request;
        if ctx.verifying() {
            let stamps = ctx.data().stamps_mut(request.data, request.sectors);
            self.contents.read(request.lba.0, stamps);
        }
        let found = if forced(request) { None } else { self.buffer.borrow().find(request.lba.0) };
        match found {
            Some(found) if found.until >= request.end().0 && self.may_overtake(ctx.now()) => {
                self.finish_hit(ctx, &item, found);
            }
            _ => {
                self.looked_up = (request.lba.0, found);
                self.enqueue(item);
            }
        }
    }

    /// Whether a hit that arrives at `now` need not wait for another command: there is none, or it
    /// may go before it. What the drive does of its own is none.
    fn may_overtake(&self, now: SimTime) -> bool {
        let busy = now < self.free_at && self.destaging.is_none();
        self.hits_overtake || !busy && self.scheduler.is_empty()
    }

    /// The segment that holds all of a read that may be served from the buffer.
    #[inline]
    fn full_hit(&self, item: &Queued) -> Option<Found> {
        if forced(&item.request) {
            return None;
        }
        let found = self.buffer.borrow().find(item.request.lba.0)?;
        (found.until >= item.request.end().0).then_some(found)
    }

    /// Everything is in the buffer, or will be at `found.ready`.
    fn finish_hit(&mut self, ctx: &mut Ctx<'_>, item: &Queued, found: Found) {
        let (now, request) = (ctx.now(), &item.request);
        let overhead = self.electronics.overhead(Op::Read, true);
        let looked_at = if self.electronics.overlaps() { item.since } else { now };
        let ready = now.max(looked_at + overhead).max(self.electronics_free).max(found.ready);
        let handshake = &self.electronics.handshake;
        let link = handshake.preparation
            + self.electronics.to_host(request.bytes())
            + handshake.read_completion;
        let total = ready.since(item.since);
        let overhead = overhead.min(total);
        let breakdown = LatencyBreakdown::NONE
            .plus(LatencyPhase::Overhead, overhead)
            .plus(LatencyPhase::Queue, total - overhead)
            .plus(LatencyPhase::Bus, link);
        self.electronics_free = ready + link;
        self.electronics.processed(Op::Read);
        self.buffer.borrow_mut().touch(found.segment);
        ctx.emit(outcome(Op::Read, DiskCacheOutcome::Hit));
        ctx.complete_at(request_id(item), ready + link, breakdown);
        self.stay_ahead(found.segment, request.end().0);
        if self.ahead.on_hit {
            self.go_on_ahead(ctx, item, found);
        }
    }

    /// Behind a hit an idle drive reads on from where its segment ends, as far as it would have
    /// after a read from the medium.
    fn go_on_ahead(&mut self, ctx: &mut Ctx<'_>, item: &Queued, found: Found) {
        let (now, segment) = (ctx.now(), found.segment);
        let idle = now >= self.free_at
            && self.scheduler.is_empty()
            && self.buffer.borrow().dirty() == 0
            && !self.clock.rests(now);
        let reading = self.sweep.is_some_and(|sweep| sweep.segment == segment);
        if !idle || reading || !self.buffer.borrow().is_read(segment) {
            return;
        }
        let (end, from) = (item.request.end().0, self.buffer.borrow().start_of(segment));
        let last = self.mechanics.layout.locate(Lba(end - 1)).skip(1);
        let limit = self.ahead.end(&self.mechanics, from, end, &last, true);
        if limit <= found.until {
            return;
        }
        let start = self.clock.wake(now + self.electronics.overhead(Op::Read, false));
        let at = self.mechanics.arrive(start, self.arm, Lba(found.until));
        self.arm = Arm::from(&at.place);
        self.head = Lba(found.until);
        if !at.seek.is_zero() {
            ctx.emit(DiskEvent::Seek { distance: at.distance, duration: at.seek });
        }
        ctx.emit(DiskEvent::Rotate { duration: at.time.since(start + at.seek) });
        self.clock.plan(PowerState::Seek, start + at.seek);
        self.clock.plan(PowerState::Active, at.time);
        let sweep = Sweep::new(segment, found.until, at.time, at.place, limit);
        self.sweep = Some(sweep.moving_until(start + at.seek));
    }

    /// A read-ahead whose stream is being consumed stays ahead of it.
    fn stay_ahead(&mut self, segment: usize, end: u64) {
        if self.sweep.is_none_or(|sweep| sweep.segment != segment) {
            return;
        }
        let last = self.mechanics.layout.locate(Lba(end - 1)).skip(1);
        let start = self.buffer.borrow().start_of(segment);
        let limit = self.ahead.end(&self.mechanics, start, end, &last, true);
        if let Some(sweep) = &mut self.sweep {
            sweep.limit = sweep.limit.max(limit);
        }
    }

    /// The mechanism is free for a read; by now the buffer may hold some of it, or all.
    pub(super) fn serve_read(&mut self, ctx: &mut Ctx<'_>, item: &Queued) {
        // One that arrived just now was looked up on arrival.
        if item.since < ctx.now()
            && let Some(found) = self.full_hit(item)
        {
            return self.finish_hit(ctx, item, found);
        }
        let (reading, electronics) = (self.sweep.map(|sweep| sweep.segment), self.electronics);
        let lba = item.request.lba.0;
        let joining = !forced(&item.request) && self.is_ahead(lba);
        let partly = joining && self.sweep.is_some_and(|sweep| lba < sweep.told);
        let begin = self.begin(ctx, item, electronics.overhead(Op::Read, partly), joining);
        if let Some(segment) = reading
            && joining
        {
            // The read-ahead went on during the command overhead and may have got it all; the
            // other segments are as they were.
            let found = self.buffer.borrow().find_in(segment, lba);
            let whole = found.filter(|found| found.until >= item.request.end().0);
            if let Some(found) = whole {
                self.electronics = electronics;
                return self.finish_hit(ctx, item, found);
            }
            if self.joins_sweep(item, begin.at) {
                return self.join_sweep(ctx, item, begin, partly);
            }
        }
        self.sweep = None;
        let found = self.held(ctx.now(), item, reading);
        self.read_medium(ctx, item, begin, found, electronics);
    }

    /// Whether the read-ahead has read sector `lba`, or would.
    fn is_ahead(&self, lba: u64) -> bool {
        self.sweep.is_some_and(|sweep| {
            (self.buffer.borrow().start_of(sweep.segment)..=sweep.limit).contains(&lba)
        })
    }

    /// Whether the read-ahead has read the first sector, or will, no later than a seek would.
    fn joins_sweep(&self, item: &Queued, start: SimTime) -> bool {
        let (Some(mut sweep), lba) = (self.sweep, item.request.lba.0) else { return false };
        let seek = self.mechanics.positioning(start, self.head, &item.request);
        lba <= sweep.told || sweep.reach(&self.mechanics, lba) <= start + seek
    }

    /// The head will come by: lets the read-ahead go on until it has all that is wanted.
    /// What it had when the command came, if that is `partly` what is wanted, goes out at once.
    fn join_sweep(&mut self, ctx: &mut Ctx<'_>, item: &Queued, begin: Begin, partly: bool) {
        let Some(mut sweep) = self.sweep else { return };
        let mut before = sweep;
        let (lba, end) = (item.request.lba.0, item.request.end().0);
        let (start, told) = (begin.at, sweep.told);
        let reached = if lba > told { sweep.reach(&self.mechanics, lba).max(start) } else { start };
        let read = sweep.reach(&self.mechanics, end).max(reached);
        ctx.emit(DiskEvent::MediaTransfer {
            sectors: (end - told) as u32,
            duration: read.since(start),
        });
        self.clock.plan(PowerState::Read, read);
        let segment = sweep.segment;
        let last = sweep.place_at(end);
        let start_of = self.buffer.borrow().start_of(segment);
        self.buffer.borrow_mut().fill(segment, start_of, end, read);
        self.buffer.borrow_mut().touch(segment);
        let from = self.buffer.borrow().start_of(segment);
        sweep.limit = self.ahead.end(&self.mechanics, from, end, &last, true);
        (sweep.told, sweep.told_at) = (end, read);
        self.arm = sweep.arm();
        self.head = Lba(end);
        self.free_at = read;
        self.sweep = Some(sweep);
        let breakdown = begin
            .breakdown
            .plus(LatencyPhase::Rotate, reached.since(start))
            .plus(LatencyPhase::Transfer, read.since(reached));
        let begin = Begin { breakdown, ..begin };
        let link = if partly {
            begin.at + self.electronics.handshake.preparation
        } else {
            let mark = lba + u64::from(self.electronics.read_mark(item.request.sectors));
            self.link_start(before.reach(&self.mechanics, mark).max(reached), &begin)
        };
        self.finish_read(ctx, item, DiskCacheOutcome::Partial, link, read, &begin);
    }

    /// What the buffer holds of the beginning of a read the mechanism takes on; the segment
    /// `reading` was being filled until now.
    fn held(&self, now: SimTime, item: &Queued, reading: Option<usize>) -> Option<Found> {
        let lba = item.request.lba.0;
        if forced(&item.request) {
            return None;
        }
        // Looked up on arrival, just now: only what was being read can have changed since.
        if let (looked_for, found) = self.looked_up
            && looked_for == lba
            && item.since == now
            && found.is_none()
        {
            return self.buffer.borrow().find_in(reading?, lba);
        }
        self.buffer.borrow().find(lba)
    }

    /// Reads what the buffer lacks, which holds `found`, from the medium.
    fn read_medium(
        &mut self,
        ctx: &mut Ctx<'_>,
        item: &Queued,
        begin: Begin,
        found: Option<Found>,
        before: Electronics,
    ) {
        let (lba, end) = (item.request.lba.0, item.request.end().0);
        let from = found.map_or(lba, |found| found.until);
        let sectors = (end - from) as u32;
        let found_again = begin.at + self.find_again(item);
        let mark = self.electronics.read_mark(sectors);
        let run = Run { lba: Lba(from), sectors, write: false, mark };
        let access = self.move_sectors(ctx, begin.at, &run, found_again);
        let seek = access.seek + found_again.since(begin.at + access.first_seek);
        let segment = match found {
            Some(found) if self.buffer.borrow().is_clean(found.segment) => Some(found.segment),
            _ => self.buffer.borrow_mut().allocate(),
        };
        if let Some(segment) = segment {
            let sequential = self.follows_a_read(lba);
            let kept = if found.is_some_and(|found| found.segment == segment) {
                self.buffer.borrow().start_of(segment)
            } else {
                from
            };
            let arrived = found_again.max(begin.at + access.first_seek);
            let free = if found.is_none() { self.passing_before(arrived, from) } else { 0 };
            self.buffer.borrow_mut().fill(segment, kept - free, end, access.end);
            self.buffer.borrow_mut().touch(segment);
            let limit = self.ahead.end(&self.mechanics, kept, end, &access.last, sequential);
            if limit > end {
                let sweep = Sweep::new(segment, end, access.end, access.last, limit);
                if self.ahead.min > 0 {
                    let must = (end + self.ahead.min).min(limit);
                    self.free_at = self.free_at.max({ sweep }.reach(&self.mechanics, must));
                }
                self.sweep = Some(sweep);
            }
        }
        let breakdown = begin
            .breakdown
            .plus(LatencyPhase::Seek, seek)
            .plus(LatencyPhase::Rotate, access.rotate)
            .plus(LatencyPhase::Transfer, access.transfer);
        let begin = Begin { breakdown, ..begin };
        let (what, link) = match found {
            // What is there goes out at once.
            Some(_) => {
                let looked_at = if before.overlaps() { item.since } else { ctx.now() };
                let ready = ctx.now().max(looked_at + before.overhead(Op::Read, true));
                (DiskCacheOutcome::Partial, ready + before.handshake.preparation)
            }
            None => (DiskCacheOutcome::Miss, self.link_start(access.marked, &begin)),
        };
        self.finish_read(ctx, item, what, link, access.end, &begin);
    }

    /// How many sectors just before sector `lba` on its track pass under the head from `arrived`
    /// on, before it does, if the drive keeps them.
    fn passing_before(&self, arrived: SimTime, lba: u64) -> u64 {
        if !self.free_blocks {
            return 0;
        }
        let place = self.mechanics.layout.locate(Lba(lba));
        let wait = Rotation::ahead(self.mechanics.rotation.angle_at(arrived), place.angle());
        (wait / place.sector_angle).min(u64::from(place.sector)).min(lba)
    }

    /// What a read takes at least to find its track, also the one the head is on, in a drive that
    /// has rested for a turn: the settling part of the shortest seek. On the same track drives
    /// take markedly longer than their seek curves, which begin at one cylinder, say.
    fn find_again(&self, item: &Queued) -> SimDuration {
        let rested = item.since > self.free_at + self.mechanics.rotation.period();
        if rested { self.settle } else { SimDuration::ZERO }
    }

    /// Whether the buffer has the sector before `lba`, or the track before that of `lba`.
    fn follows_a_read(&self, lba: u64) -> bool {
        if self.ahead.limit != AheadLimit::NextTrack || lba == 0 {
            return false;
        }
        let sector = u64::from(self.mechanics.layout.locate(Lba(lba)).sector);
        let before_track = lba.saturating_sub(sector + 1);
        self.buffer.borrow().holds_either(lba - 1, before_track)
    }

    /// When data begin to pass the link that come from the medium: those up to the mark have passed
    /// the head at `marked`, and by then the drive has connected again. In DiskSim it begins to
    /// connect then; request by request that makes the reads of a HP C2247A late by as much.
    fn link_start(&self, marked: SimTime, begin: &Begin) -> SimTime {
        let handshake = &self.electronics.handshake;
        marked.max(begin.left_link + handshake.reselect[0] + handshake.preparation)
    }

    /// Data pass the link from `start` on, as they come from the medium, the last at `read`.
    fn finish_read(
        &mut self,
        ctx: &mut Ctx<'_>,
        item: &Queued,
        what: DiskCacheOutcome,
        start: SimTime,
        read: SimTime,
        begin: &Begin,
    ) {
        let electronics = &self.electronics;
        let link = electronics.to_host(item.request.bytes());
        let end = (read + electronics.sector[0]).max(start + link)
            + electronics.handshake.read_completion;
        ctx.emit(outcome(Op::Read, what));
        ctx.complete_at(
            request_id(item),
            end,
            begin.breakdown.plus(LatencyPhase::Bus, end.since(read)),
        );
        if self.electronics.stays() {
            self.free_at = self.free_at.max(end);
        }
    }

    /// Brings the read-ahead up to `time`, tells what it read, and ends it at its limit.
    pub(super) fn settle_sweep(&mut self, ctx: &mut Ctx<'_>, time: SimTime) {
        let Some(mut sweep) = self.sweep else { return };
        if time <= sweep.told_at {
            return;
        }
        let progress = sweep.advance(&self.mechanics, time);
        let at = progress.ended.unwrap_or(time);
        if progress.until > sweep.told {
            let sectors = (progress.until - sweep.told) as u32;
            ctx.emit(DiskEvent::MediaTransfer { sectors, duration: at.since(sweep.told_at) });
            let start = self.buffer.borrow().start_of(sweep.segment);
            self.buffer.borrow_mut().fill(sweep.segment, start, progress.until, at);
            sweep.told = progress.until;
        }
        sweep.told_at = at;
        self.clock.plan(PowerState::Read, at);
        self.arm = sweep.arm();
        self.head = Lba(progress.until);
        self.sweep = if progress.ended.is_some() { None } else { Some(sweep) };
    }
}
