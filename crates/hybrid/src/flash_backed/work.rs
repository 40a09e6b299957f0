//! The steps of an operation, which execute one after the other.

use super::{FlashBacked, Metric, Order};
use hybridsim_cache::CacheEvent;
use hybridsim_engine::schedule::Queued;
use hybridsim_engine::{
    Command, Completion, Ctx, DataSlice, Fault, Flags, LatencyBreakdown, LatencyPhase, Lba, Op,
    Request, RequestId, SECTOR_BYTES, SimTime,
};

/// The current step of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Query of the size of the NV cache.
    Sizing,
    /// Recovery: query of the pinned ranges.
    Query,
    /// Recovery: read of a pinned range.
    Restore,
    /// The request is at the drive, and completes with it.
    Pass,
    /// Redirected write: pin of its range.
    Pin,
    /// Redirected write: write of its data to the NV cache.
    FlashWrite,
    /// Redirected write that failed on flash: unpin before it goes to the disk.
    GiveUp,
    /// Destage in the order of figure 5(b): unpin.
    UnpinFirst,
    /// Destage: write to the disk.
    DiskWrite,
    /// Destage in the safe order: unpin.
    UnpinLast,
}

/// Why the FQueue is destaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushing {
    /// It is above the high watermark.
    Watermark,
    /// The scheduler is idle.
    Idle,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct Active {
    pub step: Step,
    /// Zero, or one plus the number of a concurrent redirected write.
    tag: u64,
    /// Sectors it adds to the FQueue.
    adds: u64,
    /// The host request, if it serves one.
    request: Option<(RequestId, Request)>,
    flushing: Option<Flushing>,
    /// The range written to the disk: the request and the entries coalesced with it.
    lba: u64,
    end: u64,
    data: DataSlice,
    started: SimTime,
    /// Requests outstanding at the drive.
    outstanding: u32,
    failed: bool,
    breakdown: LatencyBreakdown,
}

impl Active {
    /// An operation of the scheduler's own.
    pub const fn own(step: Step, now: SimTime) -> Self {
        Self {
            step,
            tag: 0,
            adds: 0,
            request: None,
            flushing: None,
            lba: 0,
            end: 0,
            data: DataSlice::NONE,
            started: now,
            outstanding: 1,
            failed: false,
            breakdown: LatencyBreakdown::NONE,
        }
    }
}

impl Active {
    pub const fn range(&self) -> std::ops::Range<u64> {
        self.lba..self.end
    }
}

impl FlashBacked {
    fn begin(&mut self, ctx: &Ctx<'_>, item: Queued, step: Step) {
        let id = RequestId(item.key as u32);
        let waited = ctx.now().since(ctx.issued(id));
        // A redirected write that falls back to the disk keeps its number.
        let (tag, adds) = self.active.map_or((0, 0), |active| (active.tag, active.adds));
        self.active = Some(Active {
            tag,
            adds,
            request: Some((id, item.request)),
            lba: item.request.lba.0,
            end: item.request.end().0,
            outstanding: 0,
            breakdown: LatencyBreakdown::NONE.plus(LatencyPhase::Queue, waited),
            ..Active::own(step, ctx.now())
        });
    }

    fn active(&mut self) -> &mut Active {
        self.active.as_mut().expect("an operation is under way")
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, request: Request) {
        let active = self.active();
        active.outstanding += 1;
        ctx.issue(0, request, active.tag);
    }

    fn command(&mut self, ctx: &mut Ctx<'_>, step: Step, command: Command) {
        let active = self.active();
        active.step = step;
        active.outstanding = 1;
        let range = (Lba(active.lba), (active.end - active.lba) as u32);
        ctx.command(0, command, range, active.tag);
    }

    /// Passes a request to the drive.
    pub(super) fn pass(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        self.begin(ctx, item, Step::Pass);
        self.issue(ctx, item.request);
    }

    pub(super) fn write(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        self.pass(ctx, item);
        self.last = item.request.end();
    }

    /// Reads from the FQueue, and the rest from the drive.
    pub(super) fn read(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        let request = item.request;
        let (lba, end) = (request.lba.0, request.end().0);
        let mut found = 0;
        for &(at, length) in &self.overlaps {
            let (from, to) = (at.max(lba), end.min(at + length));
            found += to - from;
            let skip = (from - lba) as u32;
            let versions = ctx.data().versions_mut(request.data.skip(skip), (to - from) as u32);
            self.fqueue.data.read(from, versions);
        }
        let (hits, misses) = (found as u32, request.sectors - found as u32);
        ctx.emit(CacheEvent::CacheLookup { op: Op::Read, hits, misses });
        if found > 0 {
            self.report(ctx, Metric::MemoryRead, found);
        }
        self.pass_gaps(ctx, item);
    }

    /// Passes the parts of a request that are not in the FQueue to the drive.
    pub(super) fn pass_gaps(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        self.begin(ctx, item, Step::Pass);
        let (request, met) = (item.request, std::mem::take(&mut self.overlaps));
        let (lba, end) = (request.lba.0, request.end().0);
        let mut at = lba;
        for (from, to) in met.iter().map(|(at, length)| (*at, at + length)).chain([(end, end)]) {
            if from > at {
                let part = request.part((at - lba) as u32, (from - at) as u32, Lba(at));
                self.issue(ctx, part);
                if request.op == Op::Read {
                    self.last = Lba(from);
                }
            }
            at = at.max(to);
        }
        self.overlaps = met;
        if self.active().outstanding == 0 {
            self.finish(ctx);
        }
    }

    /// Redirects a write, which adds `adds` sectors to the FQueue: pins its range without
    /// populating it. Returns `false` if too many redirected writes are outstanding.
    pub(super) fn redirect(&mut self, ctx: &mut Ctx<'_>, item: Queued, adds: u64) -> bool {
        let free = self.redirects.iter().position(Option::is_none);
        if free.is_none() && !self.redirects.is_empty() {
            return false;
        }
        self.begin(ctx, item, Step::Pin);
        self.reserved += adds;
        let active = self.active();
        (active.adds, active.tag) = (adds, free.map_or(0, |slot| slot as u64 + 1));
        self.command(ctx, Step::Pin, Command::Pin { populate: false });
        if let Some(slot) = free {
            self.redirects[slot] = self.active.take();
        }
        true
    }

    /// Writes to the disk together with the entries that the write overlaps (figure 5(b)).
    pub(super) fn coalesce(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        self.begin(ctx, item, Step::DiskWrite);
        let request = item.request;
        let (mut lba, mut end) = (request.lba.0, request.end().0);
        let (mut along, mut obsolete) = (0, 0);
        for &(at, length) in &self.overlaps {
            let inside = (at + length).min(request.end().0).saturating_sub(at.max(request.lba.0));
            obsolete += inside;
            along += length - inside;
            (lba, end) = (lba.min(at), end.max(at + length));
        }
        let active = self.active();
        (active.lba, active.end) = (lba, end);
        if along > 0 {
            self.report(ctx, Metric::Coalesced, along);
        }
        if obsolete > 0 {
            self.report(ctx, Metric::Overwritten, obsolete);
        }
        self.gather(ctx);
        let active = *self.active();
        let skip = (request.lba.0 - lba) as u32;
        if !active.data.is_none() {
            let newest = ctx.data().versions(request.data, request.sectors).to_vec();
            ctx.data()
                .versions_mut(active.data.skip(skip), request.sectors)
                .copy_from_slice(&newest);
        }
        self.leave_fqueue(ctx);
    }

    /// Destages the oldest entries of the FQueue. Returns `false` if a concurrent redirected write
    /// is about to overwrite one of them.
    pub(super) fn flush(&mut self, ctx: &mut Ctx<'_>, why: Flushing) -> bool {
        let run = self.fqueue.oldest_run(self.params.merge_max / SECTOR_BYTES);
        let (lba, end) = run.expect("the FQueue is not empty");
        if self.overlaps_redirect(lba, end) {
            return false;
        }
        let own = Active::own(Step::DiskWrite, ctx.now());
        self.active = Some(Active { flushing: Some(why), lba, end, ..own });
        self.gather(ctx);
        self.leave_fqueue(ctx);
        true
    }

    /// Copies the data of the range from the FQueue to a buffer.
    fn gather(&mut self, ctx: &mut Ctx<'_>) {
        let Active { lba, end, .. } = *self.active();
        let sectors = (end - lba) as u32;
        let data = ctx.take_data(sectors);
        self.fqueue.data.read(lba, ctx.data().versions_mut(data, sectors));
        self.active().data = data;
    }

    fn leave_fqueue(&mut self, ctx: &mut Ctx<'_>) {
        if self.params.order == Order::Safe {
            self.write_back(ctx);
        } else {
            self.command(ctx, Step::UnpinFirst, Command::Unpin { discard: true });
        }
    }

    /// Writes the range to the disk. In the safe order it is still pinned, and is forced to the
    /// medium before it is unpinned.
    fn write_back(&mut self, ctx: &mut Ctx<'_>) {
        let safe = self.params.order == Order::Safe;
        let active = self.active();
        let mut write = Request::new(Op::Write, Lba(active.lba), (active.end - active.lba) as u32);
        if let Some((_, request)) = active.request {
            (write.flags, write.volume) = (request.flags, request.volume);
        } else {
            write.flags = Flags::BACKGROUND;
        }
        if safe {
            write.flags = write.flags.with(Flags::PAST_CACHE).with(Flags::FUA);
        }
        write.data = active.data;
        active.step = Step::DiskWrite;
        active.outstanding = 0;
        self.last = write.end();
        self.issue(ctx, write);
    }

    /// A request or command of the operation, or of a concurrent redirected write, has completed.
    pub(super) fn done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let Some(slot) = (done.tag as usize).checked_sub(1) else {
            return self.step_done(ctx, done);
        };
        let operation = std::mem::replace(&mut self.active, self.redirects[slot].take());
        self.step_done(ctx, done);
        self.redirects[slot] = std::mem::replace(&mut self.active, operation);
    }

    fn step_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let active = self.active();
        active.outstanding -= 1;
        active.failed |= done.failed();
        if active.outstanding > 0 {
            return;
        }
        // Requests of a step are issued together, so the last one has the latency of the step.
        for (phase, time) in done.breakdown.phases() {
            active.breakdown.add(phase, time);
        }
        let (step, failed) = (active.step, active.failed);
        match (step, failed) {
            (Step::Sizing, _) => self.sized(ctx, done.id),
            (Step::Query, _) => {
                self.restores = ctx.take_answer(done.id);
                self.restore_next(ctx);
            }
            (Step::Restore, _) => self.restored(ctx, &done.request, failed),
            (Step::Pin, false) => self.write_flash(ctx),
            (Step::FlashWrite, false) => self.redirected(ctx),
            // No space, because another host component pins ranges as well.
            (Step::Pin, true) | (Step::GiveUp, _) => self.fall_back(ctx),
            (Step::FlashWrite, true) => {
                self.command(ctx, Step::GiveUp, Command::Unpin { discard: true })
            }
            (Step::UnpinFirst, false) => self.write_back(ctx),
            (Step::DiskWrite, false) if self.params.order == Order::Safe => {
                self.command(ctx, Step::UnpinLast, Command::Unpin { discard: true });
            }
            (Step::DiskWrite | Step::UnpinLast, false) => self.left_fqueue(ctx),
            (Step::UnpinFirst | Step::DiskWrite | Step::UnpinLast, true) => {
                self.broken = true;
                self.finish(ctx);
            }
            (Step::Pass, _) => self.finish(ctx),
        }
    }

    fn sized(&mut self, ctx: &mut Ctx<'_>, id: RequestId) {
        let size = ctx.take_answer(id).first().map_or(0, |range| range.1);
        self.active = None;
        self.fqueue.resize(size);
        if let Some(wanted) = self.params.fqueue.map(|bytes| bytes / SECTOR_BYTES)
            && wanted != size
        {
            let fault = Fault::Device {
                device: ctx.path().to_owned(),
                reason: format!(
                    "`fqueue` is {wanted} sectors and the NV cache of the drive {size}; both must \
                     hold the same, so make them equal or leave `fqueue` out"
                ),
            };
            ctx.fault(fault);
        } else if self.recovering.is_some() {
            self.query(ctx);
        }
    }

    /// The range is pinned: writes the data, which go to the NV cache.
    fn write_flash(&mut self, ctx: &mut Ctx<'_>) {
        let active = self.active();
        active.step = Step::FlashWrite;
        let (_, request) = active.request.expect("only requests are redirected");
        self.issue(ctx, request);
    }

    /// The data are on flash: adds them to the FQueue and completes the write.
    fn redirected(&mut self, ctx: &mut Ctx<'_>) {
        let Active { lba, end, request, .. } = *self.active();
        let (_, request) = request.expect("only requests are redirected");
        let before = self.fqueue.used();
        if self.fqueue.remove(lba, end) > 0 {
            self.report(ctx, Metric::Overwritten, before - self.fqueue.used());
        }
        self.fqueue.add(lba, end - lba);
        self.fqueue.data.write(lba, ctx.data().versions(request.data, request.sectors));
        self.report(ctx, Metric::Redirected, end - lba);
        self.finish(ctx);
    }

    /// The redirection has failed: writes to the disk. Entries the write overlaps are stale; they
    /// are unpinned already, or leave the FQueue with the write.
    fn fall_back(&mut self, ctx: &mut Ctx<'_>) {
        let Active { step, lba, end, request, .. } = *self.active();
        let (id, request) = request.expect("only requests are redirected");
        if step == Step::GiveUp {
            self.broken = true;
            self.fqueue.remove(lba, end);
        }
        self.fqueue.find(lba, end, false, &mut self.overlaps);
        if !self.overlaps.is_empty() {
            self.coalesce(ctx, Queued { key: u64::from(id.0), request, since: ctx.now() });
            return;
        }
        let active = self.active();
        (active.step, active.failed) = (Step::Pass, false);
        self.last = request.end();
        self.issue(ctx, request);
    }

    /// The range is on the disk and unpinned: removes it from the FQueue.
    fn left_fqueue(&mut self, ctx: &mut Ctx<'_>) {
        let Active { lba, end, flushing, .. } = *self.active();
        self.fqueue.remove(lba, end);
        let sectors = end - lba;
        if let Some(why) = flushing {
            ctx.emit(CacheEvent::Destaged { sectors: sectors as u32 });
            let what = match why {
                Flushing::Watermark => Metric::FlushedBack,
                Flushing::Idle => Metric::IdleSynced,
            };
            self.report(ctx, what, sectors);
        }
        self.finish(ctx);
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        let active = self.active.take().expect("an operation is under way");
        self.reserved -= active.adds;
        ctx.data().give_back(active.data);
        let took = ctx.now().since(active.started).as_ns();
        let what = match (active.request.map(|(_, request)| request.op), active.step) {
            (Some(Op::Write), Step::Pass) => Some(Metric::DiskWrite),
            (Some(Op::Write), Step::FlashWrite) => Some(Metric::FlashWrite),
            (Some(Op::Write), _) => Some(Metric::CoalescedWrite),
            (Some(Op::Read), _) if took > 0 => Some(Metric::DiskRead),
            (Some(_), _) => None,
            (None, _) => active.flushing.map(|why| match why {
                Flushing::Watermark => Metric::FlushBack,
                Flushing::Idle => Metric::IdleSync,
            }),
        };
        if let Some(what) = what {
            self.report(ctx, what, took);
        }
        let Some((id, _)) = active.request else { return };
        self.idle_since = ctx.now();
        ctx.complete_as(id, active.breakdown, active.failed);
    }
}
