//! The drive: takes requests, keeps them in its queue, serves them from buffer or medium.
//!
//! There is at most one event per request served alone: the mechanism's future is computed when
//! it is given work, and only a queue or buffered writes make the drive wake up again.

mod checkpoint;
mod commands;
mod electronics;
mod estimates;
mod params;
mod power_cut;
mod reads;
mod writes;

pub use electronics::{Electronics, Handshake, Link, Overheads};
pub use params::PARAMS;

use crate::cache::segments::Found;
use crate::cache::{AheadPolicy, Segments, SegmentsSpec, Sweep};
use crate::event::{DiskCacheOutcome, DiskEvent};
use crate::mechanics::{Access, Arm, Mechanics, Run};
use crate::power::{SpinDown, StateClock};
use estimates::Estimates;
use hybridsim_config::build::ComponentEntry;
use hybridsim_config::registry::Description;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::schedule::{Head, Positioner, Queued, Scheduler};
use hybridsim_engine::{
    Checkpoint, Command, Completion, Component, ComponentInfo, Contents, Ctx, Flags,
    InFlightWrites, LatencyPhase, Lba, Op, PowerFailure, PowerState, Request, RequestId,
    SimDuration, SimTime, Stream,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The registered part.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "hard-disk",
        summary: "A hard disk: zones, seek curve, rotation, segmented buffer, power states.",
        origin: "C. Ruemmler and J. Wilkes, An introduction to disk drive modeling, 1994; \
                 vocabulary of DiskSim 4.0",
        params: PARAMS,
    },
    build: params::build,
};

/// Everything a drive is made of.
pub struct DriveParts {
    /// The moving parts.
    pub mechanics: Rc<Mechanics>,
    /// Overheads and link.
    pub electronics: Electronics,
    /// The buffer.
    pub buffer: SegmentsSpec,
    /// How far it reads ahead.
    pub ahead: AheadPolicy,
    /// Whether writes are complete when buffered.
    pub write_cache: bool,
    /// How far writes got when the power fails; each drive has its own.
    pub power: Stream,
    /// Whether only appended writes join what is buffered.
    pub appends_only: bool,
    /// Whether a read-ahead is broken off within a sector.
    pub stops_in_sector: bool,
    /// Whether a read keeps what passes before its first sector does.
    pub free_blocks: bool,
    /// Whether reads found whole in the buffer go before others.
    pub hits_overtake: bool,
    /// How long a buffered write waits in an idle drive.
    pub destage_delay: SimDuration,
    /// What a read takes to find its track again after a rest.
    pub settle: SimDuration,
    /// Order of the queue.
    pub scheduler: Box<dyn Scheduler>,
    /// When the spindle stops.
    pub spin_down: SpinDown,
    /// What the report needs to know.
    pub info: ComponentInfo,
}

/// A hard disk.
pub struct HardDisk {
    mechanics: Rc<Mechanics>,
    electronics: Electronics,
    /// When the electronics are done with the last hit or buffered write.
    electronics_free: SimTime,
    buffer: Rc<RefCell<Segments>>,
    estimates: Rc<Estimates>,
    /// The first sector of the last read looked up on arrival, and what was found of it.
    looked_up: (u64, Option<Found>),
    ahead: AheadPolicy,
    write_cache: bool,
    appends_only: bool,
    stops_in_sector: bool,
    free_blocks: bool,
    hits_overtake: bool,
    destage_delay: SimDuration,
    /// What finding the track again takes after a rest.
    settle: SimDuration,
    scheduler: Box<dyn Scheduler>,
    /// Whether the scheduler may hold its commands, and until when it does.
    holds: bool,
    held_until: SimTime,
    /// Commands beyond the queue depth, in order of arrival.
    outside: VecDeque<Queued>,
    /// Writes waiting for room in the buffer, in order of arrival.
    stalled: VecDeque<Queued>,
    /// Whether the last turn of the mechanism went to the queue while writes were stalled.
    owes_destage: bool,
    /// Flushes waiting for buffered writes numbered up to the second value.
    flushes: VecDeque<(RequestId, u64)>,
    /// Commands about the spindle that wait, in order of arrival.
    commands: VecDeque<(RequestId, Command)>,
    arm: Arm,
    /// The first sector after the last one that passed under the head.
    head: Lba,
    /// The first sector after the last write to the medium the host waited for.
    written: u64,
    /// When the mechanism can take the next request.
    free_at: SimTime,
    sweep: Option<Sweep>,
    destaging: Option<usize>,
    clock: StateClock,
    contents: Contents,
    /// What a power failure takes back, in verified runs where there are any.
    undo: InFlightWrites,
    power: Stream,
    /// The earliest wake-up ordered; [`SimTime::NEVER`] for none.
    wake_at: SimTime,
    info: ComponentInfo,
}

/// When the mechanism begins with a command, and what happened before.
struct Begin {
    at: SimTime,
    /// When it has left the link after a read command.
    left_link: SimTime,
    breakdown: hybridsim_engine::LatencyBreakdown,
}

impl HardDisk {
    /// A drive at rest at the outer edge.
    pub fn new(parts: DriveParts) -> Self {
        let first = parts.mechanics.layout.locate(Lba(0));
        let buffer = Rc::new(RefCell::new(Segments::new(parts.buffer)));
        let estimates = Rc::new(Estimates {
            mechanics: Rc::clone(&parts.mechanics),
            buffer: Rc::clone(&buffer),
            write_cache: parts.write_cache,
            appends_only: parts.appends_only,
        });
        Self {
            buffer,
            estimates,
            arm: Arm::from(&first),
            mechanics: parts.mechanics,
            electronics: parts.electronics,
            electronics_free: SimTime::ZERO,
            looked_up: (u64::MAX, None),
            ahead: parts.ahead,
            write_cache: parts.write_cache,
            appends_only: parts.appends_only,
            stops_in_sector: parts.stops_in_sector,
            free_blocks: parts.free_blocks,
            hits_overtake: parts.hits_overtake,
            destage_delay: parts.destage_delay,
            settle: parts.settle,
            holds: parts.scheduler.sees_all(),
            held_until: SimTime::ZERO,
            scheduler: parts.scheduler,
            outside: VecDeque::new(),
            stalled: VecDeque::new(),
            owes_destage: false,
            flushes: VecDeque::new(),
            commands: VecDeque::new(),
            head: Lba(0),
            written: u64::MAX,
            free_at: SimTime::ZERO,
            sweep: None,
            destaging: None,
            clock: StateClock::new(parts.spin_down),
            contents: Contents::default(),
            undo: InFlightWrites::default(),
            power: parts.power,
            wake_at: SimTime::NEVER,
            info: parts.info,
        }
    }

    /// Brings everything that is computed lazily up to now.
    #[inline]
    fn catch_up(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.settle_sweep(ctx, now);
        self.clock
            .tell(now, |state, time| ctx.emit(CommonEvent::StateTime { state, duration: time }));
        if now >= self.free_at
            && let Some(segment) = self.destaging.take()
        {
            self.buffer.borrow_mut().end_destage(segment);
        }
    }

    /// When the mechanism begins with a command that needs it, chosen now: after `delay`, its
    /// overhead, which runs from its arrival when the drive looks at commands early, and after
    /// spinning up. A read-ahead goes on meanwhile if the command is `joining` it, and else stops.
    fn begin(
        &mut self,
        ctx: &mut Ctx<'_>,
        item: &Queued,
        delay: SimDuration,
        joining: bool,
    ) -> Begin {
        let (now, issued) = (ctx.now(), item.since);
        let looked_at = if self.electronics.overlaps() { issued } else { now };
        let ready = now.max(looked_at + delay);
        let stop = if joining { ready } else { now };
        self.settle_sweep(ctx, stop);
        let ready = match &self.sweep {
            Some(sweep) if !self.stops_in_sector => {
                ready.max(sweep.sector_end(&self.mechanics, stop))
            }
            _ => ready,
        };
        // The arm first comes to rest on the track the read-ahead was going to, and only then, as
        // in DiskSim, the command time begins.
        let ready = match &self.sweep {
            Some(sweep) if !joining => ready + sweep.moves_on(stop),
            _ => ready,
        };
        let spun_up = if self.sweep.is_some() { now } else { self.clock.wake(now) };
        let at = ready.max(spun_up);
        self.clock.plan(PowerState::Active, at);
        let total = at.since(issued);
        let spin_up = spun_up.since(now);
        let overhead = delay.min(total - spin_up);
        let mut breakdown = hybridsim_engine::LatencyBreakdown::NONE;
        breakdown.add(LatencyPhase::SpinUp, spin_up);
        breakdown.add(LatencyPhase::Overhead, overhead);
        breakdown.add(LatencyPhase::Queue, total - spin_up - overhead);
        let left_link = at + self.electronics.read_disconnect();
        self.electronics.processed(item.request.op);
        Begin { at, left_link, breakdown }
    }

    /// Moves sectors from or to the medium, the arm starting at `start`.
    fn move_sectors(
        &mut self,
        ctx: &mut Ctx<'_>,
        start: SimTime,
        run: &Run,
        data_ready: SimTime,
    ) -> Access {
        let Run { lba, sectors, write, .. } = *run;
        let access = self.mechanics.access(start, self.arm, run, data_ready);
        if !access.seek.is_zero() {
            ctx.emit(DiskEvent::Seek { distance: access.distance, duration: access.seek });
        }
        ctx.emit(DiskEvent::Rotate { duration: access.rotate });
        ctx.emit(DiskEvent::MediaTransfer { sectors, duration: access.transfer });
        let transfer = if write { PowerState::Write } else { PowerState::Read };
        self.clock.plan(PowerState::Seek, start + access.seek);
        let passing = start + access.end.since(start).saturating_sub(access.transfer);
        self.clock.plan(PowerState::Active, passing);
        self.clock.plan(transfer, access.end);
        self.arm = Arm::from(&access.last);
        self.head = Lba(lba.0 + u64::from(sectors));
        self.free_at = access.end;
        access
    }

    /// Puts a command that needs the mechanism into the queue, or before it.
    fn enqueue(&mut self, item: Queued) {
        if self.scheduler.len() < self.electronics.queue_depth {
            self.scheduler.push(item);
        } else {
            self.outside.push_back(item);
        }
    }

    /// Gives the mechanism work while it is free, and orders the next wake-up.
    fn pump(&mut self, ctx: &mut Ctx<'_>) {
        if !self.stalled.is_empty() || !self.flushes.is_empty() {
            self.complete_flushes(ctx);
            self.retry_stalled(ctx);
        }
        while ctx.now() >= self.free_at && self.serve_next(ctx) {}
        if !self.commands.is_empty() {
            self.obey(ctx);
        }
        self.order_wake(ctx);
    }

    /// Starts the most urgent work there is; `false` when there is none yet.
    fn serve_next(&mut self, ctx: &mut Ctx<'_>) -> bool {
        if let Some(&(_, until)) = self.flushes.front() {
            // Nothing to destage means the last of it is just being written.
            return self.destage(ctx, until, SimTime::NEVER);
        }
        let stalled = !self.stalled.is_empty();
        if stalled && (self.owes_destage || self.scheduler.is_empty()) {
            self.owes_destage = false;
            return self.destage(ctx, u64::MAX, SimTime::NEVER);
        }
        let positioner: &dyn Positioner = &*self.estimates;
        let head = Head { now: ctx.now(), last: self.head, positioner: Some(positioner) };
        if self.holds
            && let Some(until) = self.scheduler.hold_until(&head)
            && until > ctx.now()
        {
            self.held_until = until;
            return self.destage(ctx, u64::MAX, self.destage_due(ctx.now()));
        }
        let Some(item) = self.scheduler.pop(&head) else {
            return self.destage(ctx, u64::MAX, self.destage_due(ctx.now()));
        };
        self.owes_destage = stalled;
        if let Some(next) = self.outside.pop_front() {
            self.scheduler.push(next);
        }
        match item.request.op {
            Op::Read => self.serve_read(ctx, &item),
            Op::Write | Op::Trim | Op::Flush => self.serve_write(ctx, &item),
        }
        true
    }

    fn order_wake(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        let waiting = !self.scheduler.is_empty()
            || !self.stalled.is_empty()
            || !self.flushes.is_empty()
            || !self.commands.is_empty();
        let time = if waiting {
            self.free_at.max(self.held_until)
        } else if let Some(ready) = self.next_destage() {
            ready.max(self.free_at)
        } else {
            return;
        };
        if time < self.wake_at && time > now {
            self.wake_at = time;
            ctx.wake_at(time, 0);
        }
    }
}

impl Component for HardDisk {
    fn capacity(&self) -> u64 {
        self.mechanics.layout.capacity()
    }

    fn info(&self) -> ComponentInfo {
        self.info.clone()
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        Some(Rc::clone(&self.estimates) as Rc<dyn Positioner>)
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.catch_up(ctx);
        let item = Queued { key: u64::from(id.0), request: *request, since: ctx.now() };
        match request.op {
            Op::Read => self.take_read(ctx, item),
            Op::Write => self.take_write(ctx, item),
            Op::Flush => self.take_flush(ctx, id),
            Op::Trim => {
                // A disk has nothing to gain from it: the data stay.
                let overhead = self.electronics.overhead(Op::Trim, true);
                let breakdown =
                    hybridsim_engine::LatencyBreakdown::NONE.plus(LatencyPhase::Overhead, overhead);
                ctx.complete_at(id, ctx.now() + overhead, breakdown);
            }
        }
        self.pump(ctx);
    }

    fn command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command, _request: &Request) {
        if command.is_about_spindle() {
            self.catch_up(ctx);
            return self.take_command(ctx, id, command);
        }
        ctx.unknown_command(self.info.kind, command);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, done: &Completion) {
        unreachable!("a disk has no children, yet {:?} completed", done.request);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, _token: u64) {
        if ctx.now() >= self.wake_at {
            self.wake_at = SimTime::NEVER;
        }
        self.catch_up(ctx);
        self.pump(ctx);
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        self.catch_up(ctx);
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
}

impl PowerFailure for HardDisk {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.lose_power(now);
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.spin_up_again(ctx);
    }
}

fn request_id(item: &Queued) -> RequestId {
    RequestId(item.key as u32)
}

fn outcome(op: Op, outcome: DiskCacheOutcome) -> DiskEvent {
    DiskEvent::DiskCache { op, outcome }
}

fn forced(request: &Request) -> bool {
    request.flags.contains(Flags::FUA)
}
