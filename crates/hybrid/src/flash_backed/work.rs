//! The steps of an operation. One operation is under way at a time, one step after the other.

use super::{FlashBacked, Told};
use hybridsim_cache::CacheEvent;
use hybridsim_engine::schedule::Queued;
use hybridsim_engine::{
    Command, Completion, Ctx, DataSlice, Fault, Flags, LatencyBreakdown, LatencyPhase, Lba, Op,
    Outcome, Request, RequestId, SimTime,
};

/// Where an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The drive is asked how large its NV cache is.
    Sizing,
    /// After a power failure: which ranges are pinned.
    Query,
    /// After a power failure: reading them.
    Restore,
    /// What is asked for goes to the drive and nothing is left to do.
    Pass,
    /// A redirected write: pinning its range.
    Pin,
    /// A redirected write: its data go to the NV cache.
    FlashWrite,
    /// Flash did not take it: unpinning before it goes to the disk.
    GiveUp,
    /// Data leave the FQueue, in the order of figure 5(b): unpinning.
    UnpinFirst,
    /// Data leave the FQueue: writing them to the disk.
    DiskWrite,
    /// Data leave the FQueue, safely: unpinning.
    UnpinLast,
}

/// Why the FQueue is written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushing {
    /// It is too full.
    Watermark,
    /// There is nothing else to do.
    Idle,
}

/// The operation under way.
#[derive(Clone, Copy, Debug)]
pub struct Active {
    pub step: Step,
    /// Zero for the operation, one and more for the writes beside it.
    tag: u64,
    /// Sectors it will add to the FQueue.
    adds: u64,
    /// The host's request, if it is for one.
    request: Option<(RequestId, Request)>,
    flushing: Option<Flushing>,
    /// What goes to the disk: the request with what it took along.
    lba: u64,
    end: u64,
    data: DataSlice,
    started: SimTime,
    /// Requests at the drive not done.
    left: u32,
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
            left: 1,
            failed: false,
            breakdown: LatencyBreakdown::NONE,
        }
    }
}

impl Active {
    /// Sectors it is about.
    pub const fn range(&self) -> std::ops::Range<u64> {
        self.lba..self.end
    }
}

impl FlashBacked {
    /// Takes `item` up. Time in the request queue is over.
    fn begin(&mut self, ctx: &Ctx<'_>, item: Queued, step: Step) {
        let id = RequestId(item.key as u32);
        let waited = ctx.now().since(ctx.issued(id));
        // A write beside that goes to the disk after all stays where it is.
        let (tag, adds) = self.active.map_or((0, 0), |active| (active.tag, active.adds));
        self.active = Some(Active {
            tag,
            adds,
            request: Some((id, item.request)),
            lba: item.request.lba.0,
            end: item.request.end().0,
            left: 0,
            breakdown: LatencyBreakdown::NONE.plus(LatencyPhase::Queue, waited),
            ..Active::own(step, ctx.now())
        });
    }

    fn active(&mut self) -> &mut Active {
        self.active.as_mut().expect("an operation is under way")
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, request: Request) {
        let active = self.active();
        active.left += 1;
        ctx.issue(0, request, active.tag);
    }

    fn command(&mut self, ctx: &mut Ctx<'_>, step: Step, command: Command) {
        let active = self.active();
        active.step = step;
        active.left = 1;
        let range = (Lba(active.lba), (active.end - active.lba) as u32);
        ctx.command(0, command, range, active.tag);
    }

    /// Sends `item` on as it is.
    pub(super) fn pass(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        self.begin(ctx, item, Step::Pass);
        self.issue(ctx, item.request);
    }

    /// A write to the disk alone.
    pub(super) fn write(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        self.pass(ctx, item);
        self.last = item.request.end();
    }

    /// Reads what is not in the FQueue from the drive.
    pub(super) fn read(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        let request = item.request;
        let (lba, end) = (request.lba.0, request.end().0);
        let mut found = 0;
        for &(at, length) in &self.met {
            let (from, to) = (at.max(lba), end.min(at + length));
            found += to - from;
            let skip = (from - lba) as u32;
            let stamps = ctx.data().stamps_mut(request.data.skip(skip), (to - from) as u32);
            self.fqueue.data.read(from, stamps);
        }
        let (hits, misses) = (found as u32, request.sectors - found as u32);
        ctx.emit(CacheEvent::CacheLookup { op: Op::Read, hits, misses });
        if found > 0 {
            self.tell(ctx, Told::MemoryRead, found);
        }
        self.pass_gaps(ctx, item);
    }

    /// Sends on what lies between the entries met.
    pub(super) fn pass_gaps(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        self.begin(ctx, item, Step::Pass);
        let (request, met) = (item.request, std::mem::take(&mut self.met));
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
        self.met = met;
        if self.active().left == 0 {
            self.finish(ctx);
        }
    }

    /// A write to the FQueue, to which it adds `adds` sectors: pinned first, without populating.
    /// Whether there is room for it in flight.
    pub(super) fn redirect(&mut self, ctx: &mut Ctx<'_>, item: Queued, adds: u64) -> bool {
        let free = self.beside.iter().position(Option::is_none);
        if free.is_none() && !self.beside.is_empty() {
            return false;
        }
        self.begin(ctx, item, Step::Pin);
        self.reserved += adds;
        let active = self.active();
        (active.adds, active.tag) = (adds, free.map_or(0, |slot| slot as u64 + 1));
        self.command(ctx, Step::Pin, Command::Pin { populate: false });
        if let Some(slot) = free {
            self.beside[slot] = self.active.take();
        }
        true
    }

    /// A write that takes along what it meets in the FQueue (figure 5(b)).
    pub(super) fn coalesce(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        self.begin(ctx, item, Step::DiskWrite);
        let request = item.request;
        let (mut lba, mut end) = (request.lba.0, request.end().0);
        let (mut along, mut obsolete) = (0, 0);
        for &(at, length) in &self.met {
            let inside = (at + length).min(request.end().0).saturating_sub(at.max(request.lba.0));
            obsolete += inside;
            along += length - inside;
            (lba, end) = (lba.min(at), end.max(at + length));
        }
        let active = self.active();
        (active.lba, active.end) = (lba, end);
        if along > 0 {
            self.tell(ctx, Told::Coalesced, along);
        }
        if obsolete > 0 {
            self.tell(ctx, Told::Overwritten, obsolete);
        }
        self.gather(ctx);
        let active = *self.active();
        let skip = (request.lba.0 - lba) as u32;
        if !active.data.is_none() {
            let newest = ctx.data().stamps(request.data, request.sectors).to_vec();
            ctx.data().stamps_mut(active.data.skip(skip), request.sectors).copy_from_slice(&newest);
        }
        self.leave_fqueue(ctx);
    }

    /// The oldest of the FQueue goes to the disk; unless a write beside is about to replace some of
    /// it, which is waited for.
    pub(super) fn flush(&mut self, ctx: &mut Ctx<'_>, why: Flushing) -> bool {
        let run = self.fqueue.oldest_run(self.options.merge_max);
        let (lba, end) = run.expect("the FQueue is not empty");
        if self.meets_beside(lba, end) {
            return false;
        }
        let own = Active::own(Step::DiskWrite, ctx.now());
        self.active = Some(Active { flushing: Some(why), lba, end, ..own });
        self.gather(ctx);
        self.leave_fqueue(ctx);
        true
    }

    /// Takes a buffer for what goes to the disk, and fills it from memory.
    fn gather(&mut self, ctx: &mut Ctx<'_>) {
        let Active { lba, end, .. } = *self.active();
        let sectors = (end - lba) as u32;
        let data = ctx.take_data(sectors);
        self.fqueue.data.read(lba, ctx.data().stamps_mut(data, sectors));
        self.active().data = data;
    }

    fn leave_fqueue(&mut self, ctx: &mut Ctx<'_>) {
        if self.options.safe {
            self.write_back(ctx);
        } else {
            self.command(ctx, Step::UnpinFirst, Command::Unpin);
        }
    }

    /// Writes to the disk what leaves the FQueue. In the safe order it is still pinned, and must
    /// be on the medium before it is not.
    fn write_back(&mut self, ctx: &mut Ctx<'_>) {
        let safe = self.options.safe;
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
        active.left = 0;
        self.last = write.end();
        self.issue(ctx, write);
    }

    /// A request or command at the drive is done: of the operation, or of a write beside it.
    pub(super) fn done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let Some(slot) = (done.tag as usize).checked_sub(1) else {
            return self.step_done(ctx, done);
        };
        let operation = std::mem::replace(&mut self.active, self.beside[slot].take());
        self.step_done(ctx, done);
        self.beside[slot] = std::mem::replace(&mut self.active, operation);
    }

    fn step_done(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let active = self.active();
        active.left -= 1;
        active.failed |= done.outcome == Outcome::Failed;
        if active.left > 0 {
            return;
        }
        // What goes out at once is done when the last of it is; its time is that of the step.
        for part in LatencyPhase::ALL {
            active.breakdown.add(part, done.breakdown.get(part));
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
            // No room, because somebody else pins too.
            (Step::Pin, true) | (Step::GiveUp, _) => self.fall_back(ctx),
            (Step::FlashWrite, true) => self.command(ctx, Step::GiveUp, Command::Unpin),
            (Step::UnpinFirst, false) => self.write_back(ctx),
            (Step::DiskWrite, false) if self.options.safe => {
                self.command(ctx, Step::UnpinLast, Command::Unpin);
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
        if let Some(wanted) = self.options.fqueue
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

    /// Pinned: now the data. What is pinned goes to the NV cache.
    fn write_flash(&mut self, ctx: &mut Ctx<'_>) {
        let active = self.active();
        active.step = Step::FlashWrite;
        let (_, request) = active.request.expect("only requests are redirected");
        self.issue(ctx, request);
    }

    /// Both FQueues get the request at the same instant: it is in flash, it is done.
    fn redirected(&mut self, ctx: &mut Ctx<'_>) {
        let Active { lba, end, request, .. } = *self.active();
        let (_, request) = request.expect("only requests are redirected");
        let before = self.fqueue.used();
        if self.fqueue.remove(lba, end) > 0 {
            self.tell(ctx, Told::Overwritten, before - self.fqueue.used());
        }
        self.fqueue.add(lba, end - lba);
        self.fqueue.data.write(lba, ctx.data().stamps(request.data, request.sectors));
        self.tell(ctx, Told::Redirected, end - lba);
        self.finish(ctx);
    }

    /// Flash does not take the write: to the disk. What it was to replace in the FQueue is old
    /// then: already unpinned, or it leaves with the write.
    fn fall_back(&mut self, ctx: &mut Ctx<'_>) {
        let Active { step, lba, end, request, .. } = *self.active();
        let (id, request) = request.expect("only requests are redirected");
        if step == Step::GiveUp {
            self.broken = true;
            self.fqueue.remove(lba, end);
        }
        self.fqueue.find(lba, end, false, &mut self.met);
        if !self.met.is_empty() {
            self.coalesce(ctx, Queued { key: u64::from(id.0), request, since: ctx.now() });
            return;
        }
        let active = self.active();
        (active.step, active.failed) = (Step::Pass, false);
        self.last = request.end();
        self.issue(ctx, request);
    }

    /// On the disk and unpinned: memory gives it up.
    fn left_fqueue(&mut self, ctx: &mut Ctx<'_>) {
        let Active { lba, end, flushing, .. } = *self.active();
        self.fqueue.remove(lba, end);
        let sectors = end - lba;
        if let Some(why) = flushing {
            ctx.emit(CacheEvent::Destaged { sectors: sectors as u32 });
            let what = match why {
                Flushing::Watermark => Told::FlushedBack,
                Flushing::Idle => Told::IdleSynced,
            };
            self.tell(ctx, what, sectors);
        }
        self.finish(ctx);
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        let active = self.active.take().expect("an operation is under way");
        self.reserved -= active.adds;
        ctx.data().give_back(active.data);
        let took = ctx.now().since(active.started).as_ns();
        let what = match (active.request.map(|(_, request)| request.op), active.step) {
            (Some(Op::Write), Step::Pass) => Some(Told::DiskWrite),
            (Some(Op::Write), Step::FlashWrite) => Some(Told::FlashWrite),
            (Some(Op::Write), _) => Some(Told::CoalescedWrite),
            (Some(Op::Read), _) if took > 0 => Some(Told::DiskRead),
            (Some(_), _) => None,
            (None, _) => active.flushing.map(|why| match why {
                Flushing::Watermark => Told::FlushBack,
                Flushing::Idle => Told::IdleSync,
            }),
        };
        if let Some(what) = what {
            self.tell(ctx, what, took);
        }
        let Some((id, _)) = active.request else { return };
        self.idle_since = ctx.now();
        if active.failed {
            ctx.fail_request(id, active.breakdown);
        } else {
            ctx.complete(id, active.breakdown);
        }
    }
}
