//! A controller with a queue for each device behind it, and the same in front of one device.
//!
//! At most so many requests are at a device, and at all devices together; the others wait in the
//! device's queue. A dumb controller (DiskSim's 53C700) is one with `scheduler = "fcfs"` and a
//! limit for all; a smart one schedules.

use super::Controller;
use super::queue::{self, IoQueue, QueuedRequest};
use crate::targets::Targets;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::schedule::{Head, Positioner, Queued, idle_scheduler};
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, DataSlice, LatencyBreakdown,
    LatencyPhase, Lba, Loader, Op, Request, RequestId, Saver, SimDuration, SimTime, StateError,
    Target,
};
use std::rc::Rc;

hybridsim_config::choices! {
    /// The time at which the next request is selected.
    enum Next { AtOnce = "at-once", AfterCompletion = "after-completion" }
}

hybridsim_config::params! {
    /// Parameters of the queues, and of the requests at the devices.
    struct Parameters includes { queue: queue::Parameters } {
        device_queue_depth: u32 = Kind::Count { min: 1, max: 65_536 }, default "1",
            "Requests at a device at a time; the others wait in its queue";
        read_delay: SimDuration = Kind::Duration, default "\"0us\"",
            "Time from the selection of a read until it is issued to the device (read initiation \
             delay)";
        write_delay: SimDuration = Kind::Duration, default "\"0us\"",
            "Time from the selection of any other request until it is issued (write initiation \
             delay)";
        next: Next = Kind::Choice(Next::NAMES), default "\"at-once\"",
            "When the next request is selected: immediately on a completion, or after the \
             requests that the completion triggers at that time, such as an array's write of what \
             it has just read";
    }
}

hybridsim_config::params! {
    struct ControllerParameters includes { controller: Controller, queues: Parameters } {
        queue_depth: Option<u64> = Kind::Count { min: 1, max: 65_536 }, optional,
            "Requests at all devices together at a time; as many as each may have if absent";
    }
}

hybridsim_config::params! {
    pub struct IoQueueParameters includes { queues: Parameters } {
        pub device: String = Kind::Component, required,
            "The device, or whatever stands for one";
        command_time: SimDuration = Kind::Duration, default "\"0us\"",
            "Time from the arrival of a command until it is forwarded or queued";
    }
}

/// A controller.
pub const CONTROLLER: ComponentEntry = ComponentEntry::new(
    Description {
        name: "queueing-controller",
        summary: "A controller with a queue and a scheduler for each device behind it",
        origin: "DiskSim 4.0, disksim_ctlr types 2 (53C700) and 3 (smart)",
        params: ControllerParameters::PARAMS,
    },
    |input| {
        let params = ControllerParameters::from_settings(input.settings);
        let mut problems = Vec::new();
        params.controller.check(&mut problems);
        let limits = (params.controller.command_time, params.queue_depth);
        build(input, "queueing-controller", "buses", limits, &params.queues, problems)
    },
);

/// A queue in front of one device.
pub const IO_QUEUE: ComponentEntry = ComponentEntry::new(
    Description {
        name: "io-queue",
        summary: "A queue with a scheduler in front of one device, as a driver has",
        origin: "DiskSim 4.0, disksim_ioqueue",
        params: IoQueueParameters::PARAMS,
    },
    |input| {
        let params = IoQueueParameters::from_settings(input.settings);
        let limits = (params.command_time, None);
        build(input, "io-queue", "device", limits, &params.queues, Vec::new())
    },
);

/// Builds a component `kind` with the devices in parameter `children`; `command` is its command
/// time, `depth_all` the most requests at all devices.
fn build(
    input: &BuildInput<'_>,
    kind: &'static str,
    children: &'static str,
    (command, depth_all): (SimDuration, Option<u64>),
    params: &Parameters,
    mut problems: Vec<Problem>,
) -> Built<dyn Component> {
    let targets = Targets::new(input.children, children).map_err(|more| problems.extend(more)).ok();
    let queue = || IoQueue::read(&params.queue, input.registry).map(Queue::new);
    let queues: Result<Vec<Queue>, Vec<Problem>> =
        (0..input.children.len()).map(|_| queue()).collect();
    let queues = queues.map_err(|more| problems.extend(more)).ok();
    let (Some(targets), Some(queues), true) = (targets, queues, problems.is_empty()) else {
        return Err(problems);
    };
    Ok(Box::new(Queueing {
        kind,
        targets,
        queues,
        command,
        delays: [params.read_delay, params.write_delay],
        waits: params.next == Next::AfterCompletion,
        depth: params.device_queue_depth,
        depth_all: depth_all.unwrap_or(u64::MAX),
        active: 0,
        turn: 0,
        jobs: Vec::new(),
        free: Vec::new(),
        last_reported_depth: 0,
    }))
}

/// A device's queue and what is at the device.
struct Queue {
    queue: IoQueue,
    active: u32,
    /// The first sector after the last request handed on.
    last: Lba,
    held_until: SimTime,
    /// The scheduler has chosen between requests, or held one.
    chose: bool,
}

impl Queue {
    fn new(queue: IoQueue) -> Self {
        Self { queue, active: 0, last: Lba(0), held_until: SimTime::ZERO, chose: false }
    }
}

/// A request to a device, for one or more requests of the parent.
#[derive(Debug, Default)]
struct DeviceRequest {
    members: Vec<QueuedRequest>,
    target: usize,
    request: Option<Request>,
    delay: SimDuration,
}

/// Custom event: response time of a request.
const RESPONSE_NS: u8 = 0;

/// The controller, or the queue.
pub struct Queueing {
    kind: &'static str,
    targets: Targets,
    queues: Vec<Queue>,
    command: SimDuration,
    delays: [SimDuration; 2],
    /// Whether the next request is selected after the requests that a completion triggers.
    waits: bool,
    depth: u32,
    depth_all: u64,
    active: u64,
    /// The device that is first in round-robin order.
    turn: usize,
    jobs: Vec<DeviceRequest>,
    free: Vec<u32>,
    last_reported_depth: u32,
}

/// Purpose of a timer: a command processed, an initiation delay over, the end of a hold, or a
/// device that has become free.
const COMMAND: u64 = 0;
const DELAY: u64 = 1;
const HELD: u64 = 2;
const FREE: u64 = 3;

impl Queueing {
    fn open(&mut self, target: usize) -> u32 {
        let job = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(DeviceRequest::default());
            self.jobs.len() as u32 - 1
        });
        let job_ref = &mut self.jobs[job as usize];
        job_ref.members.clear();
        (job_ref.target, job_ref.request, job_ref.delay) = (target, None, SimDuration::ZERO);
        job
    }

    /// Adds a processed command to the queue of its device.
    fn enqueue(&mut self, ctx: &mut Ctx<'_>, id: RequestId, target: usize, request: Request) {
        let queue = &mut self.queues[target];
        if let Some(write) = queue.queue.answering(&request) {
            copy(ctx, &write, &request);
            let total = ctx.now().since(ctx.issued(id));
            ctx.complete(id, LatencyBreakdown::NONE.plus(LatencyPhase::Overhead, total));
            return;
        }
        queue.queue.push(id, request, ctx.now());
        self.dispatch(ctx, target);
    }

    /// Dispatches requests to `target` as far as its queue depth allows.
    fn dispatch(&mut self, ctx: &mut Ctx<'_>, target: usize) {
        while self.queues[target].active < self.depth && self.active < self.depth_all {
            let positioner = self.targets.positioner(target).map(|positioner| &**positioner);
            let queue = &mut self.queues[target];
            if queue.queue.is_empty() {
                break;
            }
            let head = Head { now: ctx.now(), last: queue.last, positioner };
            if let Some(until) = queue.queue.hold_until(&head)
                && until > ctx.now()
            {
                if queue.held_until != until {
                    queue.held_until = until;
                    queue.chose = true;
                    ctx.wake_at(until, (target as u64) << 2 | HELD);
                }
                break;
            }
            queue.chose = queue.chose || queue.queue.len() > 1;
            let Some(first) = queue.queue.pop(&head) else { break };
            self.start(ctx, target, first);
        }
        self.report_depth(ctx);
    }

    /// Issues `first`, merged with the requests that continue it.
    fn start(&mut self, ctx: &mut Ctx<'_>, target: usize, first: QueuedRequest) {
        let job = self.open(target);
        self.active += 1;
        let queue = &mut self.queues[target];
        queue.active += 1;
        let DeviceRequest { members, request, delay, .. } = &mut self.jobs[job as usize];
        let mut whole = first.item.request;
        members.push(first);
        while let Some(next) = queue.queue.continuing(&whole, whole.end().0, whole.sectors) {
            members.push(next);
            whole.sectors += next.item.request.sectors;
        }
        if members.len() > 1 && !first.item.request.data.is_none() {
            whole.data = ctx.take_data(whole.sectors);
            if whole.op == Op::Write {
                members.iter().for_each(|member| copy(ctx, &member.item.request, &whole));
            }
        }
        if whole.op != Op::Flush {
            queue.last = whole.end();
        }
        *delay = self.delays[usize::from(whole.op != Op::Read)];
        *request = Some(whole);
        if delay.is_zero() {
            ctx.issue(target, whole, u64::from(job));
        } else {
            ctx.wake_after(*delay, u64::from(job) << 2 | DELAY);
        }
    }

    fn device_freed(&mut self, ctx: &mut Ctx<'_>, target: usize) {
        if self.depth_all == u64::MAX {
            self.dispatch(ctx, target);
            return;
        }
        // Any device may get the next request, in round-robin order.
        let count = self.queues.len();
        self.turn = (self.turn + 1) % count;
        for step in 0..count {
            self.dispatch(ctx, (self.turn + step) % count);
        }
    }

    fn report_depth(&mut self, ctx: &mut Ctx<'_>) {
        let depth: usize = self.queues.iter().map(|queue| queue.queue.len()).sum();
        if depth as u32 != self.last_reported_depth {
            self.last_reported_depth = depth as u32;
            ctx.emit(CommonEvent::QueueDepth { depth: depth as u32 });
        }
    }

    /// Completes the waiting requests within the range of a completed one.
    fn complete_covered(&mut self, ctx: &mut Ctx<'_>, target: usize, done: &QueuedRequest) {
        let queue = &mut self.queues[target];
        while let Some(covered) = queue.queue.covered(&done.item.request, done.item.key) {
            let QueuedRequest { id, item } = covered;
            if item.request.op == Op::Read {
                copy(ctx, &done.item.request, &item.request);
            }
            let total = ctx.now().since(ctx.issued(id));
            ctx.complete(id, LatencyBreakdown::NONE.plus(LatencyPhase::Queue, total));
        }
    }

    fn complete(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: RequestId,
        delay: SimDuration,
        done: &Completion,
    ) {
        let mut breakdown = done.breakdown.plus(LatencyPhase::Overhead, self.command + delay);
        let total = ctx.now().since(ctx.issued(id));
        ctx.emit(CommonEvent::Custom { name: RESPONSE_NS, value: total.as_ns() });
        breakdown.add(LatencyPhase::Queue, total.saturating_sub(breakdown.total()));
        ctx.complete_as(id, breakdown, done.failed());
    }
}

/// Copies the data versions of the sectors that both requests contain.
fn copy(ctx: &mut Ctx<'_>, from: &Request, to: &Request) {
    if from.data.is_none() || to.data.is_none() {
        return;
    }
    let (first, end) = (from.lba.max(to.lba).0, from.end().min(to.end()).0);
    for sector in first..end {
        let source = from.data.skip((sector - from.lba.0) as u32);
        let version = ctx.data().versions(source, 1)[0];
        ctx.data().versions_mut(to.data.skip((sector - to.lba.0) as u32), 1)[0] = version;
    }
}

impl Component for Queueing {
    fn capacity(&self) -> u64 {
        self.targets.capacity()
    }

    fn info(&self) -> ComponentInfo {
        let constants = vec![
            ("devices", self.targets.len() as f64),
            ("device_queue_depth", f64::from(self.depth)),
        ];
        let custom = &["response_ns"];
        let chose = self.queues.iter().any(|queue| queue.chose);
        let idle_policies = idle_scheduler("scheduler", chose);
        ComponentInfo {
            kind: self.kind,
            constants,
            custom,
            idle_policies,
            ..ComponentInfo::default()
        }
    }

    fn targets(&self) -> Vec<Target> {
        if self.kind == IO_QUEUE.description.name { Vec::new() } else { self.targets.all() }
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        self.targets.only_positioner()
    }

    fn accepts_zone_commands(&self) -> bool {
        self.queues.iter().all(|queue| queue.queue.forwards_writes())
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let (target, request) = self.targets.split(request);
        if self.command.is_zero() {
            self.enqueue(ctx, id, target, request);
            return;
        }
        let job = self.open(target);
        let item = Queued { key: 0, request, since: ctx.now() };
        self.jobs[job as usize].members.push(QueuedRequest { id, item });
        ctx.wake_after(self.command, u64::from(job) << 2 | COMMAND);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        let at = (token >> 2) as usize;
        match token & 3 {
            COMMAND => {
                let DeviceRequest { members, target, .. } = &self.jobs[at];
                let (QueuedRequest { id, item }, target) = (members[0], *target);
                self.free.push(at as u32);
                self.enqueue(ctx, id, target, item.request);
            }
            DELAY => {
                let DeviceRequest { request, target, .. } = &self.jobs[at];
                ctx.issue(*target, request.expect("set when the job began"), at as u64);
            }
            HELD => {
                self.queues[at].held_until = SimTime::ZERO;
                self.dispatch(ctx, at);
            }
            _ => self.device_freed(ctx, at),
        }
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let index = done.tag as usize;
        let mut job = std::mem::take(&mut self.jobs[index]);
        let target = job.target;
        let own_data = job.members.len() > 1 && done.request.data != DataSlice::NONE;
        for member in &job.members {
            if own_data && done.request.op == Op::Read {
                copy(ctx, &done.request, &member.item.request);
            }
        }
        for member in &job.members {
            if !done.failed() {
                self.complete_covered(ctx, target, member);
            }
            self.complete(ctx, member.id, job.delay, done);
        }
        if own_data {
            ctx.data().give_back(done.request.data);
        }
        job.members.clear();
        self.jobs[index] = job;
        self.free.push(index as u32);
        self.active -= 1;
        self.queues[target].active -= 1;
        if !self.waits {
            self.device_freed(ctx, target);
        } else if self.queues.iter().any(|queue| !queue.queue.is_empty()) {
            ctx.wake_at(ctx.now(), (target as u64) << 2 | FREE);
        }
    }

    hybridsim_engine::supports!(Checkpoint);
}

impl Checkpoint for Queueing {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(self.turn, self.last_reported_depth));
        for queue in &self.queues {
            to.put(&(queue.last, queue.held_until));
            queue.queue.save(to)?;
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.turn, self.last_reported_depth) = from.take()?;
        for queue in &mut self.queues {
            (queue.last, queue.held_until) = from.take()?;
            queue.queue.restore(from)?;
        }
        Ok(())
    }
}
