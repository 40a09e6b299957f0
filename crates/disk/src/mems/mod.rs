//! A MEMS storage device: a sled moved under an array of probe tips, without rotation.

pub mod sled;

use crate::event::DiskEvent;
use crate::power::{SpinDown, StateClock};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Positioner, Queued, Scheduler, idle_scheduler};
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Contents, Ctx, LatencyBreakdown,
    LatencyPhase, Lba, Op, PowerState, Request, RequestId, SimDuration, SimTime,
};
use sled::{Sled, SledParameters, SledPosition};
use std::collections::VecDeque;
use std::rc::Rc;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "mems",
        summary: "A MEMS store: a spring-mounted sled moved under thousands of probe tips.",
        origin: "J. L. Griffin, S. W. Schlosser, G. R. Ganger and D. F. Nagle, Modeling and \
                 performance of MEMS-based storage devices, 2000 (DiskSim 3 `memsmodel`)",
        params: Parameters::PARAMS,
    },
    build,
);

const STANDBY: &[Needs] = &[Needs::given("standby_after")];

hybridsim_config::params! {
    /// Parameters of `mems`; the defaults are the paper's device of the first generation.
    struct Parameters includes { sled: SledParameters } {
        command_overhead: SimDuration = Kind::Duration, default "\"200us\"",
            "Command processing time.";
        host_rate: Option<u64> = Kind::Rate, optional,
            "Rate of the host link; takes no time if absent.";
        scheduler: EntryChoice = Kind::Entry("scheduler"), default "\"fcfs\"",
            "Order of the device's queue.";
        queue_depth: usize = Kind::Count { min: 1, max: 65_536 }, default "32",
            "Commands the device can choose from.";
        idle_power: f64 = Kind::Power, default "\"0.1W\"", "Sled held in place (assumed).";
        seek_power: f64 = Kind::Power, default "\"0.1W\"", "Moving the sled (assumed).";
        access_power: f64 = Kind::Power, default "\"1.4W\"", "Moving data: 1 mW per tip (assumed).";
        standby_power: f64 = Kind::Power, default "\"0.05W\"" needs STANDBY,
            "Sled at rest (assumed).";
        standby_after: Option<SimDuration> = Kind::Duration, optional,
            "Idle time before the sled is let go.";
        restart_time: SimDuration = Kind::Duration, default "\"0.5ms\"" needs STANDBY,
            "From standby to ready.";
    }
}

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

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    for (name, time) in [
        ("settle", Some(params.sled.settle)),
        ("command_overhead", Some(params.command_overhead)),
        ("standby_after", params.standby_after),
        ("restart_time", Some(params.restart_time)),
    ] {
        if let Some(time) = time.filter(|time| time.as_s_f64() > 86_400.0) {
            problems.push(Problem::new(name, format!("{time} is longer than a day")));
        }
    }
    let sled = Sled::new(params.sled.clone());
    if sled.is_none() {
        let message = "it holds no sector, or more than 2^50: `active_tips` must be at most \
                       `tips` and at least `tips_per_sector`, and `bits_y` must hold \
                       `tip_sector_bits` and `servo_bits`";
        problems.push(Problem::new("", message));
    }
    let (scheduler, settings_of_entry) = input.registry.chosen::<SchedulerEntry>(&params.scheduler);
    let inside =
        |more: Vec<Problem>| more.into_iter().map(|p| Problem::new("scheduler", p.message));
    let scheduler =
        (scheduler.build)(settings_of_entry).map_err(|more| problems.extend(inside(more))).ok();
    let (Some(sled), Some(scheduler), true) = (sled, scheduler, problems.is_empty()) else {
        return Err(problems);
    };
    let spin_down =
        SpinDown { after: params.standby_after, down: SimDuration::ZERO, up: params.restart_time };
    Ok(Box::new(Mems {
        overhead: params.command_overhead,
        link_bytes_per_s: params.host_rate.unwrap_or(0),
        scheduler,
        chose: false,
        depth: params.queue_depth,
        overflow_queue: VecDeque::new(),
        position: sled.locate(0),
        last: Lba(0),
        free_at: SimTime::ZERO,
        wake_at: SimTime::NEVER,
        clock: StateClock::new(spin_down),
        contents: Contents::default(),
        info: info(&params, &sled),
        sled: Rc::new(sled),
    }))
}

fn info(params: &Parameters, sled: &Sled) -> ComponentInfo {
    let mut watts = [0.0; PowerState::COUNT];
    for (state, power) in [
        (PowerState::Idle, params.idle_power),
        (PowerState::Active, params.idle_power),
        (PowerState::Seek, params.seek_power),
        (PowerState::Read, params.access_power),
        (PowerState::Write, params.access_power),
        (PowerState::Standby, params.standby_power),
        (PowerState::SpinUp, params.seek_power),
    ] {
        watts[state as usize] = power;
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
        self.clock.emit(ctx);
        match request.op {
            // What is acknowledged is on the medium: there is no buffer for writes.
            Op::Zone(_) => unreachable!("the machine refuses zone commands here"),
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
        self.clock.emit(ctx);
        self.schedule_next(ctx);
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        self.clock.emit(ctx);
    }

    hybridsim_engine::supports!(Checkpoint);
}

impl Checkpoint for Mems {
    hybridsim_engine::saves!(position, last, free_at, wake_at, clock; scheduler);
}
