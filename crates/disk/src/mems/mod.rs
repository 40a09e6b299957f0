//! A MEMS storage device: a sled moved under an array of probe tips, without rotation.

pub mod sled;

use crate::event::DiskEvent;
use crate::power::{SpinDown, StateClock};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::schedule::{Head, Positioner, Queued, Scheduler, idle_scheduler};
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Contents, Ctx, LatencyBreakdown,
    LatencyPhase, Lba, Loader, Op, PowerState, Request, RequestId, Saver, SimDuration, SimTime,
    StateError,
};
use sled::{Sled, SledPosition, SledSpec};
use std::collections::VecDeque;
use std::rc::Rc;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "mems",
        summary: "A MEMS store: a spring-mounted sled moved under thousands of probe tips.",
        origin: "J. L. Griffin, S. W. Schlosser, G. R. Ganger and D. F. Nagle, Modeling and \
                 performance of MEMS-based storage devices, 2000 (DiskSim 3 `memsmodel`)",
        params: PARAMS,
    },
    build,
};

const BITS: Kind = Kind::Count { min: 1, max: 1 << 20 };

/// The parameters of `mems`; the defaults are the paper's device of the first generation.
pub const PARAMS: &[Param] = &[
    Param::with("bits_x", BITS, "2500", "Bits each tip covers along X: the cylinders."),
    Param::with("bits_y", BITS, "2500", "Bits each tip covers along Y, the direction of access."),
    Param::with(
        "bit_nm",
        Kind::Number { min: 1.0, max: 10_000.0 },
        "40",
        "Distance between bits, in nanometres.",
    ),
    Param::with("tips", BITS, "6400", "Probe tips."),
    Param::with("active_tips", BITS, "1280", "Tips that work at a time."),
    Param::with("tips_per_sector", BITS, "64", "Tips over which a sector is striped."),
    Param::with("tip_sector_bits", BITS, "80", "Bits of a sector under one tip."),
    Param::with("servo_bits", BITS, "10", "Servo bits before them."),
    Param::with(
        "tip_bits_per_s",
        Kind::Number { min: 1.0, max: 1e12 },
        "700000",
        "Bits per second each tip reads or writes.",
    ),
    Param::with(
        "acceleration_m_per_s2",
        Kind::Number { min: 0.001, max: 1e9 },
        "803.6",
        "Acceleration of the sled by its actuators.",
    ),
    Param::with(
        "spring_factor",
        Kind::Number { min: 0.0, max: 0.99 },
        "0.75",
        "Force of the springs at full displacement, as a part of the actuators' force.",
    ),
    Param::with(
        "settle",
        Kind::Duration,
        "\"215us\"",
        "Time to settle after moving along X: one time constant of a sled resonant at 739 Hz.",
    ),
    Param::with("command_overhead", Kind::Duration, "\"200us\"", "Command processing time."),
    Param::optional("host_rate", Kind::Rate, "Rate of the host link; takes no time if absent."),
    Param::with("scheduler", Kind::Entry("scheduler"), "\"fcfs\"", "Order of the device's queue."),
    Param::with(
        "queue_depth",
        Kind::Count { min: 1, max: 65_536 },
        "32",
        "Commands the device can choose from.",
    ),
    Param::with("idle_power", Kind::Power, "\"0.1W\"", "Sled held in place (assumed)."),
    Param::with("seek_power", Kind::Power, "\"0.1W\"", "Moving the sled (assumed)."),
    Param::with("access_power", Kind::Power, "\"1.4W\"", "Moving data: 1 mW per tip (assumed)."),
    Param::with("standby_power", Kind::Power, "\"0.05W\"", "Sled at rest (assumed)."),
    Param::optional("standby_after", Kind::Duration, "Idle time before the sled is let go."),
    Param::with("restart_time", Kind::Duration, "\"0.5ms\"", "From standby to ready."),
];

/// A MEMS store.
pub struct Mems {
    sled: Rc<Sled>,
    overhead: SimDuration,
    link_bytes_per_s: u64,
    scheduler: Box<dyn Scheduler>,
    /// The scheduler has chosen between commands.
    chose: bool,
    depth: usize,
    overflow_queue: VecDeque<Queued>,
    position: SledPosition,
    last: Lba,
    free_at: SimTime,
    wake_at: SimTime,
    clock: StateClock,
    contents: Contents,
    info: ComponentInfo,
}

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let settings = input.settings;
    let mut problems = Vec::new();
    for name in ["settle", "command_overhead", "standby_after", "restart_time"] {
        if let Some(time) = settings.duration_opt(name).filter(|time| time.as_s_f64() > 86_400.0) {
            problems.push(Problem::new(name, format!("{time} is longer than a day")));
        }
    }
    let sled = Sled::new(spec(settings));
    if sled.is_none() {
        let message = "it holds no sector, or more than 2^50: `active_tips` must be at most \
                       `tips` and at least `tips_per_sector`, and `bits_y` must hold \
                       `tip_sector_bits` and `servo_bits`";
        problems.push(Problem::new("", message));
    }
    let (scheduler, settings_of_entry) = input.chosen::<SchedulerEntry>("scheduler");
    let inside =
        |more: Vec<Problem>| more.into_iter().map(|p| Problem::new("scheduler", p.message));
    let scheduler =
        (scheduler.build)(settings_of_entry).map_err(|more| problems.extend(inside(more))).ok();
    let (Some(sled), Some(scheduler), true) = (sled, scheduler, problems.is_empty()) else {
        return Err(problems);
    };
    let spin_down = SpinDown {
        after: settings.duration_opt("standby_after"),
        down: SimDuration::ZERO,
        up: settings.duration("restart_time"),
    };
    Ok(Box::new(Mems {
        overhead: settings.duration("command_overhead"),
        link_bytes_per_s: settings.rate_opt("host_rate").unwrap_or(0),
        scheduler,
        chose: false,
        depth: settings.count("queue_depth") as usize,
        overflow_queue: VecDeque::new(),
        position: sled.locate(0),
        last: Lba(0),
        free_at: SimTime::ZERO,
        wake_at: SimTime::NEVER,
        clock: StateClock::new(spin_down),
        contents: Contents::default(),
        info: info(settings, &sled),
        sled: Rc::new(sled),
    }))
}

fn spec(settings: &Settings) -> SledSpec {
    let count = |name| settings.count(name) as u32;
    SledSpec {
        bits_x: count("bits_x"),
        bits_y: count("bits_y"),
        bit_m: settings.number("bit_nm") * 1e-9,
        tips: count("tips"),
        active_tips: count("active_tips"),
        tips_per_sector: count("tips_per_sector"),
        tip_sector_bits: count("tip_sector_bits"),
        servo_bits: count("servo_bits"),
        tip_rate: settings.number("tip_bits_per_s"),
        acceleration: settings.number("acceleration_m_per_s2"),
        spring: settings.number("spring_factor"),
        settle: settings.duration("settle"),
    }
}

fn info(settings: &Settings, sled: &Sled) -> ComponentInfo {
    let mut watts = [0.0; PowerState::COUNT];
    for (state, name) in [
        (PowerState::Idle, "idle_power"),
        (PowerState::Active, "idle_power"),
        (PowerState::Seek, "seek_power"),
        (PowerState::Read, "access_power"),
        (PowerState::Write, "access_power"),
        (PowerState::Standby, "standby_power"),
        (PowerState::SpinUp, "seek_power"),
    ] {
        watts[state as usize] = settings.number(name);
    }
    ComponentInfo {
        kind: "mems",
        watts: Some(watts),
        constants: vec![
            ("capacity_bytes", sled.capacity() as f64 * 512.0),
            ("bytes_per_s", sled.bytes_per_s()),
        ],
        ..ComponentInfo::default()
    }
}

impl Mems {
    /// Serves `item`, the sled being free.
    fn serve(&mut self, ctx: &mut Ctx<'_>, item: &Queued) {
        let (now, request) = (ctx.now(), item.request);
        let ready = self.clock.wake(now);
        let begin = ready + self.overhead;
        self.clock.plan(PowerState::Active, begin);
        let motion = self.sled.access(self.position, request.lba.0, request.sectors);
        let write = request.op == Op::Write;
        let link = SimDuration::transfer(request.bytes(), self.link_bytes_per_s);
        let end = begin + motion.seek + motion.transfer.max(link);
        if !motion.seek.is_zero() {
            ctx.emit(DiskEvent::Seek { distance: motion.distance, duration: motion.seek });
        }
        let (sectors, time) = (request.sectors, motion.transfer);
        ctx.emit(DiskEvent::MediaTransfer { sectors, duration: time });
        self.clock.plan(PowerState::Seek, begin + motion.seek);
        let state = if write { PowerState::Write } else { PowerState::Read };
        self.clock.plan(state, begin + motion.seek + motion.transfer);
        let breakdown = LatencyBreakdown::NONE
            .plus(LatencyPhase::Queue, now.since(item.since))
            .plus(LatencyPhase::SpinUp, ready.since(now))
            .plus(LatencyPhase::Overhead, self.overhead)
            .plus(LatencyPhase::Seek, motion.seek)
            .plus(LatencyPhase::Transfer, motion.transfer)
            .plus(LatencyPhase::Bus, link.saturating_sub(motion.transfer));
        self.position = motion.last;
        self.last = request.end();
        self.free_at = end;
        ctx.complete_at(RequestId(item.key as u32), end, breakdown);
    }

    fn schedule_next(&mut self, ctx: &mut Ctx<'_>) {
        while ctx.now() >= self.free_at {
            let positioner: &dyn Positioner = &*self.sled;
            let head = Head { now: ctx.now(), last: self.last, positioner: Some(positioner) };
            self.chose = self.chose || self.scheduler.len() > 1;
            let Some(item) = self.scheduler.pop(&head) else { break };
            if let Some(next) = self.overflow_queue.pop_front() {
                self.scheduler.push(next);
            }
            self.serve(ctx, &item);
        }
        if !self.scheduler.is_empty() && self.free_at < self.wake_at {
            self.wake_at = self.free_at;
            ctx.wake_at(self.free_at, 0);
        }
    }
}

impl Component for Mems {
    fn capacity(&self) -> u64 {
        self.sled.capacity()
    }

    fn info(&self) -> ComponentInfo {
        let idle_policies = idle_scheduler("scheduler", self.chose);
        ComponentInfo { idle_policies, ..self.info.clone() }
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        Some(Rc::clone(&self.sled) as Rc<dyn Positioner>)
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let now = ctx.now();
        self.clock
            .report(now, |state, time| ctx.emit(CommonEvent::StateTime { state, duration: time }));
        match request.op {
            // What is acknowledged is on the medium: there is no buffer for writes.
            Op::Flush | Op::Trim => {
                let breakdown = LatencyBreakdown::NONE.plus(LatencyPhase::Overhead, self.overhead);
                ctx.complete_at(id, now + self.overhead, breakdown);
            }
            Op::Read | Op::Write => {
                if ctx.verifying() && request.op == Op::Write {
                    let versions = ctx.data().versions(request.data, request.sectors);
                    self.contents.write(request.lba.0, versions);
                } else if ctx.verifying() {
                    let versions = ctx.data().versions_mut(request.data, request.sectors);
                    self.contents.read(request.lba.0, versions);
                }
                let item = Queued { key: u64::from(id.0), request: *request, since: now };
                if self.scheduler.len() < self.depth {
                    self.scheduler.push(item);
                } else {
                    self.overflow_queue.push_back(item);
                }
            }
        }
        self.schedule_next(ctx);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, done: &Completion) {
        unreachable!("a device has no children, yet {:?} completed", done.request);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, _token: u64) {
        self.wake_at = SimTime::NEVER;
        let now = ctx.now();
        self.clock
            .report(now, |state, time| ctx.emit(CommonEvent::StateTime { state, duration: time }));
        self.schedule_next(ctx);
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.clock
            .report(now, |state, time| ctx.emit(CommonEvent::StateTime { state, duration: time }));
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }
}

impl Checkpoint for Mems {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(self.position, self.last, self.free_at, self.wake_at, &self.clock));
        self.scheduler.save(to)
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.position, self.last, self.free_at, self.wake_at, self.clock) = from.take()?;
        self.scheduler.restore(from)
    }
}
