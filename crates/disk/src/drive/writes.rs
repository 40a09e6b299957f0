//! Writes, to the write buffer or to the medium; destaging and flushes.

use super::{HardDisk, MediumLatency, forced, outcome, request_id};
use crate::cache::segments::BufferedWrite;
use crate::event::DiskCacheOutcome;
use crate::mechanics::Transfer;
use hybridsim_engine::schedule::Queued;
use hybridsim_engine::{
    Ctx, Durable, LatencyBreakdown, LatencyPhase, Lba, Op, PowerState, Request, RequestId,
    SimDuration, SimTime,
};

/// Consecutive sectors to write.
const fn write_of(lba: Lba, sectors: u32) -> Transfer {
    Transfer { lba, sectors, write: true, mark: 1, sector_over_link: SimDuration::ZERO }
}

impl HardDisk {
    pub(super) fn write_arrived(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        let request = &item.request;
        if ctx.verifying() {
            let (now, may_fail) = (ctx.now(), ctx.power_may_fail());
            let versions = ctx.data().versions(request.data, request.sectors);
            if may_fail {
                let durable = Durable::Served(item.key);
                self.undo.note(&self.contents, request.lba.0, versions, durable, now);
            }
            self.contents.write(request.lba.0, versions);
        }
        if !self.is_cached(request) || !self.may_prebuffer(request, ctx.now()) {
            return self.queue.push(item);
        }
        self.stop_read_ahead_over(request.lba.0, request.end().0);
        // Writes keep their order: none overtakes one that waits for buffer space.
        let owns_arm = self.queue.is_empty() && self.flushes.is_empty();
        if !self.stalled_writes.is_empty()
            || !self.try_buffer(ctx, &item, LatencyPhase::Queue, owns_arm)
        {
            self.stalled_writes.push_back(item);
        }
    }

    /// Whether a write is complete when it is in the buffer.
    #[inline]
    pub(super) fn is_cached(&self, request: &Request) -> bool {
        let fits = || self.buffer.borrow().fits(u64::from(request.sectors));
        self.policy.write_cache && !forced(request) && fits()
    }

    /// Whether the buffer takes a write that arrives `now`: one for which the mechanism is free, or
    /// that goes on where the last one ended, or any with prebuffering. A read-ahead is no
    /// obstacle.
    #[inline]
    fn may_prebuffer(&self, request: &Request, now: SimTime) -> bool {
        self.policy.prebuffers || now >= self.free_at && self.queue.is_empty() || {
            let buffer = self.buffer.borrow();
            buffer.dirty() > 0 && buffer.last_write_end() == request.lba.0
        }
    }

    /// Takes a write from the queue into the buffer and to the medium, for which the mechanism is
    /// free.
    pub(super) fn buffer_queued_write(&mut self, ctx: &mut Ctx<'_>, item: &Queued) {
        self.stop_read_ahead_over(item.request.lba.0, item.request.end().0);
        if !self.try_buffer(ctx, item, LatencyPhase::Queue, true) {
            self.stalled_writes.push_back(*item);
        }
    }

    /// Ends a read-ahead whose range is being written.
    fn stop_read_ahead_over(&mut self, start: u64, end: u64) {
        if let Some(read_ahead) = self.read_ahead
            && start < read_ahead.limit
            && end > self.buffer.borrow().start_of(read_ahead.segment)
        {
            self.read_ahead = None;
        }
    }

    /// Accepts a write into the buffer, if there is space; the wait for it counts as `waited`. A
    /// write that `owns_arm` is on its way to the medium as soon as its command has been processed,
    /// if the mechanism is free for it (DiskSim's rule).
    fn try_buffer(
        &mut self,
        ctx: &mut Ctx<'_>,
        item: &Queued,
        waited: LatencyPhase,
        owns_arm: bool,
    ) -> bool {
        let request = &item.request;
        let mut buffer = self.buffer.borrow_mut();
        let goes_on = !self.policy.appends_only
            || buffer.dirty() == 0
            || buffer.last_write_end() == request.lba.0;
        if !goes_on {
            return false;
        }
        let taken = buffer.buffer(request.lba.0, request.end().0);
        drop(buffer);
        let Some(BufferedWrite { segment, joined }) = taken else { return false };
        let now = ctx.now();
        let overhead = self.electronics.overhead(Op::Write, true);
        let ready = self.command_end(now, item, overhead).max(self.electronics_free);
        let arm_leaves = self.released(ready, now, false);
        let is_turning = self.read_ahead.is_some() || !self.clock.is_stopped(now);
        let reused = self.read_ahead.is_some_and(|read_ahead| read_ahead.segment == segment);
        let owns_arm = owns_arm && !joined && is_turning && self.arm_is_free(now);
        if reused && !owns_arm {
            self.read_ahead = None;
        }
        let handshake = &self.electronics.handshake;
        let preparation = handshake.preparation;
        let link =
            preparation + self.electronics.from_host(request.sectors) + handshake.write_completion;
        let total = ready.since(item.since);
        let overhead = overhead.min(total);
        let breakdown = LatencyBreakdown::of([
            (LatencyPhase::Overhead, overhead),
            (waited, total - overhead),
            (LatencyPhase::Bus, link),
        ]);
        self.electronics_free = ready + link;
        self.answered = ready + link;
        self.electronics.processed(Op::Write);
        self.buffer.borrow_mut().set_ready(segment, ready + link);
        ctx.emit(outcome(Op::Write, DiskCacheOutcome::Buffered));
        ctx.complete_at(request_id(item), ready + link, breakdown);
        self.undo.settle(item.key, Durable::Buffered);
        if owns_arm {
            let data_ready = ready + preparation + self.link_lead(request);
            if self.read_ahead.take().is_none() {
                self.clock.wake(now);
            }
            self.clock.plan(PowerState::Active, arm_leaves);
            self.write_segment(
                ctx,
                segment,
                (request.lba, request.sectors),
                arm_leaves,
                data_ready,
            );
        }
        true
    }

    /// Whether a buffered write that arrives at `now` finds the mechanism free for it: without
    /// other work but a read-ahead, other writes in the buffer, or a delay of destaging.
    fn arm_is_free(&self, now: SimTime) -> bool {
        now >= self.free_at
            && self.buffer.borrow().dirty() == 1
            && self.policy.destage_delay.is_zero()
            && self.commands.is_empty()
    }

    /// Accepts stalled writes as far as there is buffer space now.
    pub(super) fn retry_stalled_writes(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(item) = self.stalled_writes.front().copied() {
            self.stop_read_ahead_over(item.request.lba.0, item.request.end().0);
            let owns_arm = self.queue.is_empty() && self.flushes.is_empty();
            if !self.try_buffer(ctx, &item, LatencyPhase::Destage, owns_arm) {
                break;
            }
            self.stalled_writes.pop_front();
        }
    }

    /// Writes to the medium while the data cross the link.
    pub(super) fn serve_write(&mut self, ctx: &mut Ctx<'_>, item: &Queued) {
        let request = &item.request;
        let times = self.electronics.write_times(self.written == request.lba.0);
        self.written = request.end().0;
        let begin = self.begin(ctx, item, times.command, false);
        self.read_ahead = None;
        self.buffer.borrow_mut().overwrite(request.lba.0, request.end().0, None);
        // Data may arrive before the arm moves, but not before the command.
        let asked = begin.at + times.data.saturating_sub(times.command);
        let moved = begin.at + self.electronics.handshake.seek_delay;
        let data_ready = (asked + self.link_lead(request)).max(moved);
        let transfer = write_of(request.lba, request.sectors);
        let access = self.move_sectors(ctx, begin.at, &transfer, data_ready);
        self.undo.destage(request.lba.0, request.end().0, access.end);
        // A short write near the head may be on the medium before the drive disconnects.
        let left = asked + self.electronics.from_host(request.sectors) + times.disconnect;
        let end = access.end.max(left) + times.report;
        let after = end.since(access.end);
        let medium = MediumLatency {
            seek: access.seek,
            rotate: access.rotate,
            transfer: access.transfer,
            bus: data_ready.since(begin.at + access.first_seek) + after,
        };
        ctx.emit(outcome(Op::Write, DiskCacheOutcome::Miss));
        ctx.complete_at(request_id(item), end, begin.latency(&medium));
        self.answered = end;
        self.undo.settle(item.key, Durable::At(end));
        if self.electronics.stays() {
            self.free_at = self.free_at.max(end);
        }
    }

    /// Lead of the link over the medium so that no sector arrives late: each must be in the buffer
    /// when it passes the head, and the first few when the first one does.
    fn link_lead(&self, request: &Request) -> SimDuration {
        let electronics = &self.electronics;
        let first = electronics.write_lead(request.sectors);
        let first = electronics.from_host(first);
        let address = self.mechanics.layout.locate(request.lba);
        let before_last = u128::from(address.sector_angle) * u128::from(request.sectors - 1);
        let all = electronics.from_host(request.sectors);
        all.saturating_sub(self.mechanics.rotation.time_of(before_last)).max(first)
    }

    /// Destages the dirty segment with the shortest positioning time, of those with a write
    /// numbered up to `until` that are due by `due`; `false` if there are none.
    pub(super) fn destage(&mut self, ctx: &mut Ctx<'_>, until: u64, due: SimTime) -> bool {
        let now = ctx.now();
        let nearest = self
            .buffer
            .borrow()
            .waiting(until)
            .filter(|&(.., ready)| {
                due == SimTime::NEVER || ready + self.policy.destage_delay <= due
            })
            .map(|(segment, lba, sectors, ready)| {
                let to = Request::new(Op::Write, Lba(lba), sectors);
                let start = now.max(ready);
                let wait = self.mechanics.positioning(start, self.head, &to);
                (start + wait, segment, lba, sectors, start)
            })
            .min();
        let Some((_, segment, lba, sectors, start)) = nearest else { return false };
        self.advance_read_ahead(ctx, start);
        if self.read_ahead.take().is_none() {
            let awake = self.clock.wake(start);
            self.write_segment(ctx, segment, (Lba(lba), sectors), awake, awake);
        } else {
            self.write_segment(ctx, segment, (Lba(lba), sectors), start, start);
        }
        true
    }

    /// Writes `segment`, which holds `sectors` from `lba` on, the arm leaving at `start`.
    fn write_segment(
        &mut self,
        ctx: &mut Ctx<'_>,
        segment: usize,
        (lba, sectors): (Lba, u32),
        start: SimTime,
        data_ready: SimTime,
    ) {
        self.buffer.borrow_mut().begin_destage(segment);
        let access = self.move_sectors(ctx, start, &write_of(lba, sectors), data_ready);
        self.undo.destage(lba.0, lba.0 + u64::from(sectors), access.end);
        self.destaging = Some(segment);
    }

    /// Time of the next destage of an idle drive.
    #[inline]
    pub(super) fn next_destage(&self) -> Option<SimTime> {
        if !self.policy.write_cache {
            return None;
        }
        let buffer = self.buffer.borrow();
        let due = buffer.waiting(u64::MAX).map(|(.., ready)| ready + self.policy.destage_delay);
        due.min()
    }

    /// A flush arrives; it completes when all writes buffered so far are on the medium.
    pub(super) fn flush_arrived(&mut self, ctx: &mut Ctx<'_>, id: RequestId) {
        self.flushes.push_back((id, self.buffer.borrow().writes()));
        self.complete_flushes(ctx);
    }

    /// Completes flushes whose writes are on the medium.
    pub(super) fn complete_flushes(&mut self, ctx: &mut Ctx<'_>) {
        if self.flushes.is_empty() {
            return;
        }
        let oldest = self.buffer.borrow().oldest_write().unwrap_or(u64::MAX);
        while let Some(&(id, until)) = self.flushes.front() {
            if oldest <= until {
                break;
            }
            self.flushes.pop_front();
            let overhead = self.electronics.overhead(Op::Flush, true);
            let waited = ctx.now().since(ctx.issued(id));
            let end = ctx.now().max(ctx.issued(id) + overhead);
            let overhead = end.since(ctx.issued(id)).saturating_sub(waited);
            let breakdown = LatencyBreakdown::NONE
                .plus(LatencyPhase::Overhead, overhead)
                .plus(LatencyPhase::Destage, waited);
            ctx.complete_at(id, end, breakdown);
        }
    }
}
