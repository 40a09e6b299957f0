//! The drive: queues commands and serves them from the buffer or the medium.
//!
//! A command served alone takes at most one event: all of its times are computed when it starts.
//! The drive wakes up again only for queued commands and buffered writes.

mod checkpoint;
mod commands;
mod electronics;
mod params;
mod positioner;
mod power_cut;
mod queue;
mod reads;
mod writes;

pub use electronics::{Electronics, Handshake, Link, Overheads};

use crate::cache::segments::Hit;
use crate::cache::{ReadAhead, ReadAheadPolicy, Segments, SegmentsSpec};
use crate::event::DiskCacheOutcome;
use crate::event::DiskEvent;
use crate::faults::SlowMechanism;
use crate::mechanics::{AccessTimes, Arm, Mechanics, Transfer};
use crate::power::{SpinDown, StateClock};
use hybridsim_config::build::ComponentEntry;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Positioner, Queued, Scheduler, idle_scheduler};
use hybridsim_engine::{
    Command, Completion, Component, ComponentInfo, Contents, Ctx, Flags, InFlightWrites, Inject,
    LatencyBreakdown, LatencyPhase, Lba, Op, PowerFailure, PowerState, Request, RequestId,
    SimDuration, SimTime, Stream,
};
use positioner::DrivePositioner;
use queue::CommandQueue;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "hard-disk",
        summary: "A hard disk: zones, seek curve, rotation, segmented buffer, power states.",
        origin: "C. Ruemmler and J. Wilkes, An introduction to disk drive modeling, 1994; \
                 vocabulary of DiskSim 4.0",
        params: params::PARAMS,
    },
    params::build,
);

/// Policies of a drive's buffer and of its mechanism.
#[derive(Clone, Copy, Debug)]
pub struct DrivePolicy {
    /// Whether writes complete when they are in the buffer.
    pub write_cache: bool,
    /// Whether the buffer takes a write while the mechanism is busy.
    pub prebuffers: bool,
    /// Whether only sequential writes are added to a non-empty write buffer.
    pub appends_only: bool,
    /// Whether a read-ahead stops within a sector.
    pub stops_in_sector: bool,
    /// Whether a read buffers the sectors that pass before its first one.
    pub free_blocks: bool,
    /// Whether full read hits overtake other commands.
    pub hits_overtake: bool,
    /// Time that a buffered write waits in an idle drive.
    pub destage_delay: SimDuration,
    /// Settling time of a read after the drive was idle.
    pub settle: SimDuration,
}

/// The parts of a drive.
pub struct DriveParts {
    /// The moving parts.
    pub mechanics: Rc<Mechanics>,
    /// Overheads and link.
    pub electronics: Electronics,
    pub buffer: SegmentsSpec,
    pub ahead: ReadAheadPolicy,
    pub policy: DrivePolicy,
    /// Draws how far writes got when the power fails.
    pub power: Stream,
    pub scheduler: Box<dyn Scheduler>,
    /// Idle time and transition times of the spindle.
    pub spin_down: SpinDown,
    /// Constants for the report.
    pub info: ComponentInfo,
}

/// A hard disk.
pub struct HardDisk {
    mechanics: Rc<Mechanics>,
    electronics: Electronics,
    /// End of the electronics' work on the last hit or buffered write.
    electronics_free: SimTime,
    /// Time at which the host has the answer of the last command.
    answered: SimTime,
    buffer: Rc<RefCell<Segments>>,
    /// Estimates for the drive's own scheduler.
    own_positioner: Rc<DrivePositioner>,
    /// Estimates for schedulers above.
    positioner: Rc<DrivePositioner>,
    /// First sector of the last read looked up on arrival, and the segment that holds it.
    looked_up: (u64, Option<Hit>),
    ahead: ReadAheadPolicy,
    policy: DrivePolicy,
    queue: CommandQueue,
    /// Until when the scheduler holds commands.
    held_until: SimTime,
    /// Writes waiting for buffer space, in order of arrival.
    stalled_writes: VecDeque<Queued>,
    /// Whether the queue had the last turn of the mechanism while writes were stalled.
    owes_destage: bool,
    /// Flushes waiting for buffered writes numbered up to the second value.
    flushes: VecDeque<(RequestId, u64)>,
    /// Power commands waiting, in order of arrival.
    commands: VecDeque<(RequestId, Command)>,
    arm: Arm,
    /// The first sector after the last one that passed under the head.
    head: Lba,
    /// The first sector after the last foreground write to the medium.
    written: u64,
    /// Time from which the mechanism can take the next request.
    free_at: SimTime,
    read_ahead: Option<ReadAhead>,
    destaging: Option<usize>,
    clock: StateClock,
    contents: Contents,
    /// Writes that a power failure may undo, in verified runs.
    undo: InFlightWrites,
    power: Stream,
    slow: SlowMechanism,
    /// The earliest timer set; [`SimTime::NEVER`] for none.
    wake_at: SimTime,
    info: ComponentInfo,
}

/// Start of a command in the mechanism, and its latency until then.
#[derive(Clone, Copy, Debug)]
struct CommandStart {
    at: SimTime,
    /// Time at which the drive disconnected from the link after a read command.
    left_link: SimTime,
    spin_up: SimDuration,
    overhead: SimDuration,
    queue: SimDuration,
}

/// Latency of a command in the mechanism, from its start on.
#[derive(Clone, Copy, Debug)]
struct MediumLatency {
    seek: SimDuration,
    rotate: SimDuration,
    transfer: SimDuration,
    bus: SimDuration,
}

impl CommandStart {
    #[inline]
    fn latency(&self, medium: &MediumLatency) -> LatencyBreakdown {
        LatencyBreakdown::of([
            (LatencyPhase::SpinUp, self.spin_up),
            (LatencyPhase::Overhead, self.overhead),
            (LatencyPhase::Queue, self.queue),
            (LatencyPhase::Seek, medium.seek),
            (LatencyPhase::Rotate, medium.rotate),
            (LatencyPhase::Transfer, medium.transfer),
            (LatencyPhase::Bus, medium.bus),
        ])
    }
}

impl HardDisk {
    /// A drive at rest at the outer edge.
    pub fn new(parts: DriveParts) -> Self {
        let first = parts.mechanics.layout.locate(Lba(0));
        let buffer = Rc::new(RefCell::new(Segments::new(parts.buffer)));
        let positioner = |lead| {
            Rc::new(DrivePositioner {
                mechanics: Rc::clone(&parts.mechanics),
                buffer: Rc::clone(&buffer),
                policy: parts.policy,
                lead,
            })
        };
        let queue_depth = parts.electronics.queue_depth;
        Self {
            own_positioner: positioner([SimDuration::ZERO; 2]),
            positioner: positioner(parts.electronics.usual_overheads()),
            buffer: Rc::clone(&buffer),
            arm: Arm::from(&first),
            mechanics: parts.mechanics,
            electronics: parts.electronics,
            electronics_free: SimTime::ZERO,
            answered: SimTime::ZERO,
            looked_up: (u64::MAX, None),
            ahead: parts.ahead,
            policy: parts.policy,
            queue: CommandQueue::new(parts.scheduler, queue_depth),
            held_until: SimTime::ZERO,
            stalled_writes: VecDeque::new(),
            owes_destage: false,
            flushes: VecDeque::new(),
            commands: VecDeque::new(),
            head: Lba(0),
            written: u64::MAX,
            free_at: SimTime::ZERO,
            read_ahead: None,
            destaging: None,
            clock: StateClock::new(parts.spin_down),
            contents: Contents::default(),
            undo: InFlightWrites::default(),
            power: parts.power,
            slow: SlowMechanism::NONE,
            wake_at: SimTime::NEVER,
            info: parts.info,
        }
    }

    /// Advances read-ahead, power states and destaging, which are computed lazily, to now.
    #[inline]
    fn catch_up(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.advance_read_ahead(ctx, now);
        self.clock.emit(ctx);
        if now >= self.free_at
            && let Some(segment) = self.destaging.take()
        {
            self.buffer.borrow_mut().end_destage(segment);
        }
    }

    /// Time at which a command selected now has been processed: its overhead counts from its
    /// arrival, in drives without command queueing from the answer to the command before, even
    /// while the mechanism finishes work of the drive's own.
    #[inline]
    fn command_end(&self, now: SimTime, item: &Queued, overhead: SimDuration) -> SimTime {
        let looked_at = match self.electronics.overlaps() {
            true => item.since,
            false => item.since.max(self.answered.min(now)),
        };
        now.max(looked_at + overhead)
    }

    /// Time at which a command that has been processed at `ready` begins in the mechanism: a
    /// read-ahead is stopped at `stop`, or goes on for a command `joining` it.
    #[inline]
    fn released(&self, ready: SimTime, stop: SimTime, joining: bool) -> SimTime {
        let Some(read_ahead) = &self.read_ahead else { return ready };
        let ready = match self.policy.stops_in_sector {
            true => ready,
            false => ready.max(read_ahead.sector_end(&self.mechanics, stop)),
        };
        // As in DiskSim, the command time starts only when the arm has settled on the track that
        // the read-ahead was moving to.
        if joining { ready } else { ready + read_ahead.moves_on(stop) }
    }

    /// Start of a command in the mechanism, selected now: after its overhead `delay` and spin-up. A
    /// read-ahead continues meanwhile if the command is `joining` it, and stops otherwise.
    #[inline]
    fn begin(
        &mut self,
        ctx: &mut Ctx<'_>,
        item: &Queued,
        delay: SimDuration,
        joining: bool,
    ) -> CommandStart {
        let (now, issued) = (ctx.now(), item.since);
        let ready = self.command_end(now, item, delay);
        let stop = if joining { ready } else { now };
        self.advance_read_ahead(ctx, stop);
        let ready = self.released(ready, stop, joining);
        let spun_up = if self.read_ahead.is_some() { now } else { self.clock.wake(now) };
        let at = ready.max(spun_up);
        self.clock.plan(PowerState::Active, at);
        let total = at.since(issued);
        let spin_up = spun_up.since(now);
        let overhead = delay.min(total - spin_up);
        let queue = total - spin_up - overhead;
        let left_link = at + self.electronics.read_disconnect();
        self.electronics.processed(item.request.op);
        CommandStart { at, left_link, spin_up, overhead, queue }
    }

    /// Reads or writes sectors on the medium; the arm starts to move at `start`.
    fn move_sectors(
        &mut self,
        ctx: &mut Ctx<'_>,
        start: SimTime,
        transfer: &Transfer,
        data_ready: SimTime,
    ) -> AccessTimes {
        let Transfer { lba, sectors, write, .. } = *transfer;
        let mut access = self.mechanics.access(start, self.arm, transfer, data_ready);
        if !self.slow.is_none() {
            self.slow_down(&mut access, start);
        }
        emit_access(ctx, &access, sectors);
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

    /// `access`, which started at `start`, is of a slow mechanism. It takes longer by the factor,
    /// not by whole turns; read-ahead goes on from its last sector.
    #[cold]
    fn slow_down(&self, access: &mut AccessTimes, start: SimTime) {
        let took = access.end.since(start);
        let lost = self.slow.of(took).saturating_sub(took);
        access.rotate += lost;
        access.marked += lost;
        access.linked += lost;
        access.end += lost;
    }

    /// Starts work in the mechanism while it is free, and sets the next timer.
    fn schedule_next(&mut self, ctx: &mut Ctx<'_>) {
        if !self.stalled_writes.is_empty() || !self.flushes.is_empty() {
            self.complete_flushes(ctx);
            self.retry_stalled_writes(ctx);
        }
        while ctx.now() >= self.free_at && self.serve_next(ctx) {}
        if !self.commands.is_empty() {
            self.run_power_commands(ctx);
        }
        self.order_wake(ctx);
    }

    /// Starts the most urgent work; `false` if none is ready.
    fn serve_next(&mut self, ctx: &mut Ctx<'_>) -> bool {
        if let Some(&(_, until)) = self.flushes.front() {
            // Nothing to destage: the last buffered write is being written.
            return self.destage(ctx, until, SimTime::NEVER);
        }
        let stalled_writes = !self.stalled_writes.is_empty();
        if stalled_writes && (self.owes_destage || self.queue.is_empty()) {
            self.owes_destage = false;
            return self.destage(ctx, u64::MAX, SimTime::NEVER);
        }
        let positioner: &dyn Positioner = &*self.own_positioner;
        let head = Head { now: ctx.now(), last: self.head, positioner: Some(positioner) };
        if let Some(until) = self.queue.held_until(&head) {
            self.held_until = until;
            return self.destage(ctx, u64::MAX, self.destage_due(ctx.now()));
        }
        let Some(item) = self.queue.pop(&head) else {
            return self.destage(ctx, u64::MAX, self.destage_due(ctx.now()));
        };
        self.owes_destage = stalled_writes;
        match item.request.op {
            Op::Read => self.serve_read(ctx, &item),
            Op::Write if self.is_cached(&item.request) => self.buffer_queued_write(ctx, &item),
            Op::Write | Op::Trim | Op::Flush | Op::Zone(_) => self.serve_write(ctx, &item),
        }
        true
    }

    fn order_wake(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        let waiting = !self.queue.is_empty()
            || !self.stalled_writes.is_empty()
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
        let idle_policies = idle_scheduler("scheduler", self.queue.has_chosen());
        ComponentInfo { idle_policies, loses_writes: self.policy.write_cache, ..self.info.clone() }
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        Some(Rc::clone(&self.positioner) as Rc<dyn Positioner>)
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        self.catch_up(ctx);
        let item = Queued { key: u64::from(id.0), request: *request, since: ctx.now() };
        match request.op {
            Op::Read => self.read_arrived(ctx, item),
            Op::Write => self.write_arrived(ctx, item),
            Op::Flush => self.flush_arrived(ctx, id),
            Op::Zone(_) => unreachable!("the machine refuses zone commands here"),
            Op::Trim => {
                // A disk ignores trims: the data stay.
                let overhead = self.electronics.overhead(Op::Trim, true);
                let breakdown = LatencyBreakdown::of([(LatencyPhase::Overhead, overhead)]);
                ctx.complete_at(id, ctx.now() + overhead, breakdown);
            }
        }
        self.schedule_next(ctx);
    }

    fn command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command, _request: &Request) {
        if command.is_about_spindle() {
            self.catch_up(ctx);
            return self.power_command_arrived(ctx, id, command);
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
        self.schedule_next(ctx);
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        self.catch_up(ctx);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);

    fn faults(&mut self) -> Option<&mut dyn Inject> {
        Some(&mut self.slow)
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

/// Emits what the mechanism did for `sectors` sectors.
#[inline]
fn emit_access(ctx: &mut Ctx<'_>, access: &AccessTimes, sectors: u32) {
    let AccessTimes { distance, seek, rotate, transfer, .. } = *access;
    if seek.max(rotate).max(transfer).as_ns() <= u64::from(u32::MAX) {
        return ctx.emit(DiskEvent::Access { distance, seek, rotate, transfer, sectors });
    }
    if !seek.is_zero() {
        ctx.emit(DiskEvent::Seek { distance, duration: seek });
    }
    ctx.emit(DiskEvent::Rotate { duration: rotate });
    ctx.emit(DiskEvent::MediaTransfer { sectors, duration: transfer });
}

fn outcome(op: Op, outcome: DiskCacheOutcome) -> DiskEvent {
    DiskEvent::DiskCache { op, outcome }
}

fn forced(request: &Request) -> bool {
    request.flags.contains(Flags::FUA)
}
