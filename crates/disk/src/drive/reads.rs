//! Reads: buffer hits, hits in a read-ahead in progress, and reads from the medium.

use super::{CommandStart, HardDisk, MediumLatency, forced, outcome, request_id};
use crate::cache::{ReadAhead, ReadAheadLimit, segments::Hit};
use crate::event::DiskCacheOutcome;
use crate::event::DiskEvent;
use crate::mechanics::{AccessTimes, Arm, Transfer};
use crate::rotation::Rotation;
use hybridsim_engine::schedule::Queued;
use hybridsim_engine::{
    Ctx, LatencyBreakdown, LatencyPhase, Lba, Op, PowerState, SimDuration, SimTime,
};

#[derive(Clone, Copy, Debug)]
struct MediumRead {
    outcome: DiskCacheOutcome,
    /// Latency up to then.
    medium: MediumLatency,
    /// Time at which the data start to cross the link.
    link_start: SimTime,
    /// Earliest time at which they have crossed it, as each track lets them.
    linked: SimTime,
    /// Time at which the last sector has been read.
    end: SimTime,
}

impl HardDisk {
    pub(super) fn read_arrived(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        let request = &item.request;
        if ctx.verifying() {
            let versions = ctx.data().versions_mut(request.data, request.sectors);
            self.contents.read(request.lba.0, versions);
        }
        let found = if forced(request) { None } else { self.buffer.borrow().find(request.lba.0) };
        match found {
            Some(found) if found.until >= request.end().0 && self.may_overtake(ctx.now()) => {
                self.complete_hit(ctx, &item, found);
            }
            _ => {
                self.looked_up = (request.lba.0, found);
                self.queue.push(item);
            }
        }
    }

    /// Whether a hit that arrives at `now` is served at once: no other command is in the drive, or
    /// hits may overtake. Background work of the drive does not count.
    fn may_overtake(&self, now: SimTime) -> bool {
        let busy = now < self.free_at && self.destaging.is_none();
        self.policy.hits_overtake || !busy && self.queue.is_empty()
    }

    /// The segment that holds an entire read.
    #[inline]
    fn full_hit(&self, item: &Queued) -> Option<Hit> {
        if forced(&item.request) {
            return None;
        }
        let found = self.buffer.borrow().find(item.request.lba.0)?;
        (found.until >= item.request.end().0).then_some(found)
    }

    /// Completes a full hit; its data are in the buffer from `found.ready` on.
    fn complete_hit(&mut self, ctx: &mut Ctx<'_>, item: &Queued, found: Hit) {
        let (now, request) = (ctx.now(), &item.request);
        let overhead = self.electronics.overhead(Op::Read, true);
        let ready = self.command_end(now, item, overhead);
        let ready = ready.max(self.electronics_free).max(found.ready);
        let handshake = &self.electronics.handshake;
        let link = handshake.preparation
            + self.electronics.to_host(request.sectors)
            + handshake.read_completion;
        let total = ready.since(item.since);
        let overhead = overhead.min(total);
        let breakdown = LatencyBreakdown::of([
            (LatencyPhase::Overhead, overhead),
            (LatencyPhase::Queue, total - overhead),
            (LatencyPhase::Bus, link),
        ]);
        self.electronics_free = ready + link;
        self.answered = ready + link;
        self.electronics.processed(Op::Read);
        self.buffer.borrow_mut().touch(found.segment);
        ctx.emit(outcome(Op::Read, DiskCacheOutcome::Hit));
        ctx.complete_at(request_id(item), ready + link, breakdown);
        self.extend_read_ahead(found.segment, request.end().0);
        if self.ahead.on_hit {
            self.read_ahead_after_hit(ctx, item, found);
        }
    }

    /// After a hit an idle drive continues reading ahead at the end of its segment, as far as it
    /// would have after a read from the medium.
    fn read_ahead_after_hit(&mut self, ctx: &mut Ctx<'_>, item: &Queued, found: Hit) {
        let (now, segment) = (ctx.now(), found.segment);
        let idle = now >= self.free_at
            && self.queue.is_empty()
            && self.buffer.borrow().dirty() == 0
            && !self.clock.is_stopped(now);
        let reading = self.read_ahead.is_some_and(|read_ahead| read_ahead.segment == segment);
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
        self.arm = Arm::from(&at.address);
        self.head = Lba(found.until);
        if !at.seek.is_zero() {
            ctx.emit(DiskEvent::Seek { distance: at.distance, duration: at.seek });
        }
        ctx.emit(DiskEvent::Rotate { duration: at.time.since(start + at.seek) });
        self.clock.plan(PowerState::Seek, start + at.seek);
        self.clock.plan(PowerState::Active, at.time);
        let read_ahead = ReadAhead::new(segment, found.until, at.time, at.address, limit);
        self.read_ahead = Some(read_ahead.moving_until(start + at.seek));
    }

    fn extend_read_ahead(&mut self, segment: usize, end: u64) {
        if self.read_ahead.is_none_or(|read_ahead| read_ahead.segment != segment) {
            return;
        }
        let last = self.mechanics.layout.locate(Lba(end - 1)).skip(1);
        let start = self.buffer.borrow().start_of(segment);
        let limit = self.ahead.end(&self.mechanics, start, end, &last, true);
        if let Some(read_ahead) = &mut self.read_ahead {
            read_ahead.limit = read_ahead.limit.max(limit);
        }
    }

    /// Serves a read that was queued; the buffer may hold part or all of it by now.
    pub(super) fn serve_read(&mut self, ctx: &mut Ctx<'_>, item: &Queued) {
        // A read that arrived just now is no hit, unless hits have to wait for their turn.
        if (item.since < ctx.now() || !self.policy.hits_overtake)
            && let Some(found) = self.full_hit(item)
        {
            return self.complete_hit(ctx, item, found);
        }
        let reading = self.read_ahead.as_ref().map(|read_ahead| read_ahead.segment);
        let after_write = self.electronics.is_after_write();
        let lba = item.request.lba.0;
        let joining = !forced(&item.request) && self.is_ahead(lba);
        let partly = joining && self.read_ahead.as_ref().is_some_and(|ahead| lba < ahead.reported);
        let hit_overhead = self.electronics.overhead(Op::Read, true);
        let overhead = self.electronics.overhead(Op::Read, partly);
        let begin = self.begin(ctx, item, overhead, joining);
        if let Some(segment) = reading
            && joining
        {
            // The read-ahead continued during the command overhead and may have completed the
            // read; the other segments have not changed.
            let found = self.buffer.borrow().find_in(segment, lba);
            let whole = found.filter(|found| found.until >= item.request.end().0);
            if let Some(found) = whole {
                self.electronics.set_after_write(after_write);
                return self.complete_hit(ctx, item, found);
            }
            if self.joins_read_ahead(item, begin.at) {
                return self.join_read_ahead(ctx, item, begin, partly);
            }
        }
        self.read_ahead = None;
        let found = self.buffered_prefix(ctx.now(), item, reading);
        self.read_medium(ctx, item, begin, (found, hit_overhead));
    }

    /// Whether sector `lba` is in the range of the read-ahead.
    fn is_ahead(&self, lba: u64) -> bool {
        self.read_ahead.as_ref().is_some_and(|read_ahead| {
            (self.buffer.borrow().start_of(read_ahead.segment)..=read_ahead.limit).contains(&lba)
        })
    }

    /// Whether the read-ahead reaches the first sector no later than a seek would.
    fn joins_read_ahead(&self, item: &Queued, start: SimTime) -> bool {
        let (Some(mut read_ahead), lba) = (self.read_ahead, item.request.lba.0) else {
            return false;
        };
        let seek = self.mechanics.positioning(start, self.head, &item.request);
        lba <= read_ahead.reported || read_ahead.reach(&self.mechanics, lba) <= start + seek
    }

    /// Continues the read-ahead until it has read the entire request. If it had read part of it on
    /// arrival (`partly`), the transfer over the link starts at once.
    fn join_read_ahead(
        &mut self,
        ctx: &mut Ctx<'_>,
        item: &Queued,
        begin: CommandStart,
        partly: bool,
    ) {
        let Some(mut read_ahead) = self.read_ahead else { return };
        let mut before = read_ahead;
        let (lba, end) = (item.request.lba.0, item.request.end().0);
        let (start, reported) = (begin.at, read_ahead.reported);
        let reached =
            if lba > reported { read_ahead.reach(&self.mechanics, lba).max(start) } else { start };
        let (read, linked) =
            read_ahead.reach_over_link(&self.mechanics, (lba, end), self.electronics.sector[0]);
        let read = read.max(reached);
        ctx.emit(DiskEvent::MediaTransfer {
            sectors: (end - reported) as u32,
            duration: read.since(start),
        });
        self.clock.plan(PowerState::Read, read);
        let segment = read_ahead.segment;
        let last = read_ahead.place_at(end);
        let start_of = self.buffer.borrow().start_of(segment);
        self.buffer.borrow_mut().fill(segment, start_of, end, read);
        self.buffer.borrow_mut().touch(segment);
        let from = self.buffer.borrow().start_of(segment);
        read_ahead.limit = self.ahead.end(&self.mechanics, from, end, &last, true);
        (read_ahead.reported, read_ahead.reported_at) = (end, read);
        self.arm = read_ahead.arm();
        self.head = Lba(end);
        self.free_at = read;
        self.read_ahead = Some(read_ahead);
        let link = if partly {
            begin.at + self.electronics.handshake.preparation
        } else {
            let mark = lba + u64::from(self.electronics.read_mark(item.request.sectors));
            self.link_start(before.reach(&self.mechanics, mark).max(reached), &begin)
        };
        let medium = MediumLatency {
            seek: SimDuration::ZERO,
            rotate: reached.since(start),
            transfer: read.since(reached),
            bus: SimDuration::ZERO,
        };
        let outcome = DiskCacheOutcome::Partial;
        let read = MediumRead { outcome, medium, link_start: link, linked, end: read };
        self.finish_read(ctx, item, &begin, read);
    }

    /// The segment that holds the beginning of a read the mechanism starts; `reading` was being
    /// filled until now.
    fn buffered_prefix(&self, now: SimTime, item: &Queued, reading: Option<usize>) -> Option<Hit> {
        let lba = item.request.lba.0;
        if forced(&item.request) {
            return None;
        }
        // Looked up on arrival at this instant: only the segment being filled can have changed.
        if let (looked_for, found) = self.looked_up
            && looked_for == lba
            && item.since == now
            && found.is_none()
        {
            return self.buffer.borrow().find_in(reading?, lba);
        }
        self.buffer.borrow().find(lba)
    }

    /// Reads from the medium what is not in the buffer, which holds `found` and transfers it after
    /// `hit_overhead`.
    fn read_medium(
        &mut self,
        ctx: &mut Ctx<'_>,
        item: &Queued,
        begin: CommandStart,
        (found, hit_overhead): (Option<Hit>, SimDuration),
    ) {
        let (lba, end) = (item.request.lba.0, item.request.end().0);
        let from = found.map_or(lba, |found| found.until);
        let sectors = (end - from) as u32;
        let track_acquired = begin.at + self.reacquire_track(item);
        let mark = self.electronics.read_mark(sectors);
        let sector_over_link = self.electronics.sector[0];
        let transfer = Transfer { lba: Lba(from), sectors, write: false, mark, sector_over_link };
        let access = self.move_sectors(ctx, begin.at, &transfer, track_acquired);
        let seek = access.seek + track_acquired.since(begin.at + access.first_seek);
        let mut buffer = self.buffer.borrow_mut();
        let segment = match found {
            Some(found) if buffer.is_clean(found.segment) => Some(found.segment),
            _ => buffer.allocate(),
        };
        drop(buffer);
        if let Some(segment) = segment {
            let sequential = self.follows_a_read(lba);
            let arrived = track_acquired.max(begin.at + access.first_seek);
            let free = if found.is_none() { self.passing_before(arrived, from) } else { 0 };
            let mut buffer = self.buffer.borrow_mut();
            let kept = if found.is_some_and(|found| found.segment == segment) {
                buffer.start_of(segment)
            } else {
                from
            };
            buffer.fill(segment, kept - free, end, access.end);
            buffer.touch(segment);
            drop(buffer);
            let limit = self.ahead.end(&self.mechanics, kept, end, &access.last, sequential);
            if limit > end {
                let read_ahead = ReadAhead::new(segment, end, access.end, access.last, limit);
                if self.ahead.min > 0 {
                    let must = (end + self.ahead.min).min(limit);
                    self.free_at = self.free_at.max({ read_ahead }.reach(&self.mechanics, must));
                }
                self.read_ahead = Some(read_ahead);
            }
        }
        let (outcome, link_start) = match found {
            // The buffered part is transferred at once.
            Some(_) => {
                let ready = self.command_end(ctx.now(), item, hit_overhead);
                (DiskCacheOutcome::Partial, ready + self.electronics.handshake.preparation)
            }
            None => (DiskCacheOutcome::Miss, self.link_start(access.marked, &begin)),
        };
        let AccessTimes { rotate, transfer, linked, end, .. } = access;
        let medium = MediumLatency { seek, rotate, transfer, bus: SimDuration::ZERO };
        let read = MediumRead { outcome, medium, link_start, linked, end };
        self.finish_read(ctx, item, &begin, read);
    }

    /// Number of sectors before sector `lba` on its track that pass under the head from `arrived`
    /// on, if the drive buffers them.
    fn passing_before(&self, arrived: SimTime, lba: u64) -> u64 {
        if !self.policy.free_blocks {
            return 0;
        }
        let address = self.mechanics.layout.locate(Lba(lba));
        let wait = Rotation::ahead(self.mechanics.rotation.angle_at(arrived), address.angle());
        (wait / address.sector_angle).min(u64::from(address.sector)).min(lba)
    }

    /// Shortest positioning time of a read, also on the current track, after the drive was idle for
    /// a turn: the settling part of the shortest seek. Measured drives take markedly longer on the
    /// same track than their seek curves, which begin at one cylinder, suggest.
    fn reacquire_track(&self, item: &Queued) -> SimDuration {
        let rested = item.since > self.free_at + self.mechanics.rotation.period();
        if rested { self.policy.settle } else { SimDuration::ZERO }
    }

    /// Whether the buffer holds the sector before `lba`, or a sector of the previous track.
    fn follows_a_read(&self, lba: u64) -> bool {
        if self.ahead.limit != ReadAheadLimit::NextTrack || lba == 0 {
            return false;
        }
        let sector = u64::from(self.mechanics.layout.locate(Lba(lba)).sector);
        let before_track = lba.saturating_sub(sector + 1);
        self.buffer.borrow().holds_either(lba - 1, before_track)
    }

    /// Time at which data from the medium start to cross the link: the sectors up to the watermark
    /// have passed the head at `marked`, and the drive has reselected the host by then. In DiskSim
    /// it starts to reselect then, which makes the reads of an HP C2247A too late by as much.
    fn link_start(&self, marked: SimTime, begin: &CommandStart) -> SimTime {
        let handshake = &self.electronics.handshake;
        marked.max(begin.left_link + handshake.reselect[0] + handshake.preparation)
    }

    /// Completes a read whose data cross the link while they come off the medium.
    #[inline]
    fn finish_read(
        &mut self,
        ctx: &mut Ctx<'_>,
        item: &Queued,
        begin: &CommandStart,
        MediumRead { outcome: what, medium, link_start, linked, end: read }: MediumRead,
    ) {
        let electronics = &self.electronics;
        let link = electronics.to_host(item.request.sectors);
        let end = (read + electronics.sector[0]).max(link_start + link).max(linked)
            + electronics.handshake.read_completion;
        self.answered = end;
        ctx.emit(outcome(Op::Read, what));
        let latency = begin.latency(&MediumLatency { bus: end.since(read), ..medium });
        ctx.complete_at(request_id(item), end, latency);
        if self.electronics.stays() {
            self.free_at = self.free_at.max(end);
        }
    }

    /// Advances the read-ahead to `time`, reports the sectors read, and ends it at its limit.
    #[inline]
    pub(super) fn advance_read_ahead(&mut self, ctx: &mut Ctx<'_>, time: SimTime) {
        if self.read_ahead.as_ref().is_some_and(|read_ahead| time > read_ahead.reported_at) {
            self.report_read_ahead(ctx, time);
        }
    }

    fn report_read_ahead(&mut self, ctx: &mut Ctx<'_>, time: SimTime) {
        let Some(read_ahead) = &mut self.read_ahead else { return };
        let progress = read_ahead.advance(&self.mechanics, time);
        let at = progress.ended.unwrap_or(time);
        if progress.until > read_ahead.reported {
            let sectors = (progress.until - read_ahead.reported) as u32;
            ctx.emit(DiskEvent::MediaTransfer {
                sectors,
                duration: at.since(read_ahead.reported_at),
            });
            let mut buffer = self.buffer.borrow_mut();
            let start = buffer.start_of(read_ahead.segment);
            buffer.fill(read_ahead.segment, start, progress.until, at);
            read_ahead.reported = progress.until;
        }
        read_ahead.reported_at = at;
        self.clock.plan(PowerState::Read, at);
        self.arm = read_ahead.arm();
        self.head = Lba(progress.until);
        if progress.ended.is_some() {
            self.read_ahead = None;
        }
    }
}
