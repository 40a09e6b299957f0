//! The root of the system: reads requests from a workload and issues them to the device.
//!
//! Time from arrival to issue counts as [`LatencyPhase::Queue`], unless latencies begin at the
//! issue ([`HostOptions::from_issue`]); the device reports the rest. At most `queue_depth` requests
//! are at the device, the others are queued in the scheduler.
//!
//! Requests that are read ahead ([`Arrivals`]) reach the device as advice. Memory grows with the
//! requests outstanding, never with the workload.

pub(crate) mod check;
mod options;
mod queue_pair;

pub use options::{HostOptions, Mode, PARAMS, Parameters};
pub use queue_pair::{Answer, Answered, QueuePair};

use crate::arrivals::Arrivals;
use crate::scheduler;
use check::Check;
use hybridsim_engine::event::Times;
use hybridsim_engine::schedule::{Head, Positioner, Queued, Scheduler, idle_scheduler};
use hybridsim_engine::{
    Checkpoint, CommonEvent, Completion, Component, ComponentInfo, Ctx, Fault, LatencyPhase, Lba,
    Loader, Op, PowerFailure, Request, RequestId, Saver, SimTime, Source, StateError,
};
use queue_pair::Outside;
use std::collections::VecDeque;
use std::rc::Rc;

/// A request the device below could not serve; the value is its length in sectors.
const FAILED_REQUESTS: u8 = 0;
/// The reason given where a power failure would meet a workload that waits for completions.
pub const WAITS_FOR_COMPLETIONS: &str = "a workload waits for completions, some of which a \
    power failure would take away; use times that do not depend on them";

/// The fault of a system that stops before it has completed all requests.
pub fn not_completed(count: u64, now: SimTime) -> Fault {
    Fault::Invariant(format!(
        "{count} requests had not completed when no event was pending at {now}"
    ))
}

/// The requests that had not completed when the run ended with the last arrival.
pub(crate) const UNFINISHED_REQUESTS: u8 = 1;

/// The timer of a scheduler that holds requests.
const HELD: u64 = 1;

/// The root component. It has one child, the device the workload addresses.
pub struct Host {
    options: HostOptions,
    arrivals: Arrivals,
    scheduler: Box<dyn Scheduler>,
    /// Whether the scheduler must see all requests and may hold them.
    sees_all: bool,
    /// Until when it holds them.
    held_until: SimTime,
    positioner: Option<Rc<dyn Positioner>>,
    /// Closed loop with think time: requests due in this order.
    thinking: VecDeque<Request>,
    /// The run has ended with the last arrival, before every request had completed.
    ended: bool,
    /// First sector after the last request issued.
    last: Lba,
    outstanding: u64,
    /// Requests in the scheduler.
    queued: u32,
    at_device: u32,
    reported_depth: u32,
    /// Requests lost in the last power failure.
    lost: u64,
    check: Option<Check>,
    /// Requests come from outside while the machine runs.
    outside: Option<Outside>,
    /// The scheduler has chosen between requests, or held one.
    chose: bool,
    /// A request was not issued when it arrived.
    waited: bool,
    /// See [`Host::configured_as`].
    configuration: String,
}

/// Entry of [`ComponentInfo::idle_policies`] for `latency_from`, which matters once a request
/// waits.
pub(crate) fn idle_latency_from(
    from_issue: bool,
    waited: bool,
) -> Option<(&'static str, &'static str)> {
    (from_issue && !waited).then_some(("latency_from", "every request was issued as it arrived"))
}

/// The time from which the latency of a request counts.
pub(crate) const fn latency_from(from_issue: bool, arrived: SimTime, now: SimTime) -> SimTime {
    if from_issue { now } else { arrived }
}

impl Host {
    /// A host that replays `source`; requests beyond the queue depth are queued in `scheduler`.
    pub fn new(
        options: HostOptions,
        source: Box<dyn Source>,
        scheduler: Box<dyn Scheduler>,
    ) -> Self {
        Self {
            options,
            arrivals: Arrivals::new(source),
            sees_all: scheduler.sees_all(),
            held_until: SimTime::ZERO,
            scheduler,
            positioner: None,
            thinking: VecDeque::new(),
            ended: false,
            last: Lba(0),
            outstanding: 0,
            queued: 0,
            at_device: 0,
            reported_depth: 0,
            lost: 0,
            check: None,
            outside: None,
            chose: false,
            waited: false,
            configuration: String::new(),
        }
    }

    /// A first-come, first-served host; for tests and benches.
    pub fn plain(options: HostOptions, source: impl Source + 'static) -> Self {
        Self::new(options, Box::new(source), Box::new(scheduler::fcfs::Fcfs::default()))
    }

    /// A host in an open loop whose requests come from `pair` and return there.
    pub fn attached(
        options: HostOptions,
        pair: QueuePair,
        versions: bool,
        scheduler: Box<dyn Scheduler>,
    ) -> Self {
        let host = Self::new(options, Box::new(pair.clone()), scheduler);
        Self { outside: Some(Outside::new(pair, versions)), ..host }
    }

    /// Gives the scheduler the positioning estimates of the device ([`Component::positioner`] of
    /// the child).
    #[must_use]
    pub fn with_positioner(mut self, positioner: Option<Rc<dyn Positioner>>) -> Self {
        self.positioner = positioner;
        self
    }

    /// Describes the scheduler with its settings. A saved state restores the scheduler only in a
    /// host with the same description; in any other it starts afresh.
    #[must_use]
    pub fn configured_as(self, configuration: String) -> Self {
        Self { configuration, ..self }
    }

    /// Open loop: lets every due request arrive, and sets the timer for the next.
    fn arrive_due(&mut self, ctx: &mut Ctx<'_>) {
        if self.outside.is_some() {
            self.arrivals.look_again(ctx);
        }
        while let Some(request) = self.arrivals.due(ctx, 0) {
            self.arrive(ctx, request);
            self.arrivals.look_ahead(ctx);
        }
        if self.outside.is_some() && !self.arrivals.has_next() {
            ctx.reserve_wake();
        }
    }

    /// Closed loop: the request that follows a completion, or one of the first.
    fn follow(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(arrival) = self.arrivals.pull(ctx) {
            self.arrive(ctx, arrival.request);
        }
    }

    fn arrive(&mut self, ctx: &mut Ctx<'_>, request: Request) {
        ctx.emit(CommonEvent::Arrived {
            op: request.op,
            sectors: request.sectors,
            lba: request.lba,
        });
        self.outstanding += 1;
        if self.outstanding > self.options.outstanding_max && self.options.mode == Mode::Open {
            self.overload(ctx);
            return;
        }
        let now = ctx.now();
        let key = self.outside.as_mut().map_or(0, Outside::arrives);
        let item = Queued { key, request, since: now };
        let free = self.at_device < self.options.queue_depth;
        if free && self.queued == 0 && !self.sees_all {
            self.issue(ctx, item);
            return;
        }
        self.queued += 1;
        self.scheduler.push(item);
        if free && self.sees_all {
            self.dispatch(ctx);
        }
        self.report_depth(ctx);
    }

    fn overload(&mut self, ctx: &mut Ctx<'_>) {
        let (now, max) = (ctx.now(), self.options.outstanding_max);
        self.arrivals.end();
        ctx.fault(Fault::Overload(format!(
            "overload: more than {max} requests are outstanding at {now}, the workload asks for \
             more than the system can serve; slow the workload down, use `mode = \"closed\"`, or \
             raise `outstanding_max` under [host]"
        )));
    }

    #[inline(always)]
    fn issue(&mut self, ctx: &mut Ctx<'_>, item: Queued) {
        let Queued { key, mut request, since: arrived } = item;
        self.at_device += 1;
        if request.op != Op::Flush {
            self.last = request.end();
        }
        if let Some(check) = &mut self.check {
            check.begin(ctx, &mut request);
        } else if let Some(outside) = &self.outside {
            outside.begin(ctx, key, &mut request);
        }
        let from = latency_from(self.options.from_issue, arrived, ctx.now());
        self.waited = self.waited || arrived < ctx.now();
        // The time its latency begins is all the host needs to know of a request: it is the tag.
        let id = ctx.issue(0, request, from.as_ns());
        if let Some(check) = &mut self.check {
            check.issued(id);
        }
        if let Some(outside) = &mut self.outside {
            outside.issued(id, key);
        }
    }

    /// Issues queued requests, of which there are some, while the device takes them.
    fn dispatch(&mut self, ctx: &mut Ctx<'_>) {
        while self.at_device < self.options.queue_depth {
            let positioner = self.positioner.clone();
            let head = Head { now: ctx.now(), last: self.last, positioner: positioner.as_deref() };
            if self.sees_all
                && let Some(until) = self.scheduler.hold_until(&head)
                && until > ctx.now()
            {
                if self.held_until != until {
                    self.held_until = until;
                    ctx.wake_at(until, HELD);
                }
                self.chose = true;
                break;
            }
            self.chose = self.chose || self.queued > 1;
            let Some(item) = self.scheduler.pop(&head) else { break };
            self.queued -= 1;
            self.issue(ctx, item);
        }
        self.report_depth(ctx);
    }

    fn report_depth(&mut self, ctx: &mut Ctx<'_>) {
        let depth = self.queued;
        if depth != self.reported_depth {
            self.reported_depth = depth;
            ctx.emit(CommonEvent::QueueDepth { depth });
        }
    }

    /// With no request outstanding: lets due requests arrive.
    fn go_on(&mut self, ctx: &mut Ctx<'_>) {
        match self.options.mode {
            Mode::Open => self.arrive_due(ctx),
            Mode::Closed => (0..self.options.outstanding).for_each(|_| self.follow(ctx)),
        }
        self.halt_if_done(ctx);
    }

    fn halt_if_done(&mut self, ctx: &mut Ctx<'_>) {
        if !self.arrivals.is_exhausted() {
            return;
        }
        if self.outstanding == 0 && self.thinking.is_empty() {
            ctx.halt();
        } else if self.options.ends_early && !self.ended {
            self.ended = true;
            ctx.emit(CommonEvent::Custom { name: UNFINISHED_REQUESTS, value: self.outstanding });
            ctx.halt();
        }
    }
}

/// Emits the latency of a request with its phases.
#[inline]
pub(crate) fn report_completed(ctx: &mut Ctx<'_>, done: &Completion) {
    let Request { op, sectors, lba, .. } = done.request;
    let latency = ctx.now().since(SimTime::from_ns(done.tag));
    let queued = latency - done.latency;
    let queue = done.breakdown.get(LatencyPhase::Queue) + queued;
    let mut times = ctx.emit_times(Times::PHASES, op.code(), latency);
    if !queue.is_zero() {
        times.add(LatencyPhase::Queue as u8, queue);
    }
    for (phase, time) in done.breakdown.phases_after(LatencyPhase::Queue) {
        times.add(phase as u8, time);
    }
    drop(times);
    ctx.emit(CommonEvent::Completed { op, sectors, lba, latency });
    if done.failed() {
        ctx.emit(CommonEvent::Failed { op, sectors });
        ctx.emit(CommonEvent::Custom { name: FAILED_REQUESTS, value: u64::from(sectors) });
    }
}

impl Component for Host {
    fn capacity(&self) -> u64 {
        0
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: "host",
            custom: &["failed_requests", "unfinished_requests"],
            idle_policies: idle_scheduler("scheduler", self.chose)
                .into_iter()
                .chain(idle_latency_from(self.options.from_issue, self.waited))
                .collect(),
            ..ComponentInfo::default()
        }
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.arrivals.start(ctx, true);
        let checks = ctx.verifying() && !self.outside.as_ref().is_some_and(Outside::has_versions);
        self.check = checks.then(Check::default);
        if self.outside.is_some() {
            self.arrivals.ignore_completions();
        }
        if self.arrivals.reacts() && self.options.mode == Mode::Closed {
            ctx.fault(Fault::Workload(
                "this workload waits for completions itself; use `mode = \"open\"` under [host]"
                    .to_owned(),
            ));
        }
        if self.options.mode == Mode::Open {
            self.arrivals.look_ahead(ctx);
        }
        self.go_on(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, _id: RequestId, _request: &Request) {
        ctx.device_fault("the host is the root and takes no requests");
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        report_completed(ctx, done);
        self.at_device -= 1;
        self.outstanding -= 1;
        if let Some(check) = &mut self.check {
            check.end(ctx, done);
        }
        if let Some(outside) = &mut self.outside {
            outside.completed(ctx, done, ctx.now() - self.arrivals.began());
        }
        if self.arrivals.completed(ctx, &done.request) {
            self.arrive_due(ctx);
        }
        if self.queued > 0 {
            self.dispatch(ctx);
        }
        if self.options.mode == Mode::Closed {
            if self.options.think_time.is_zero() {
                self.follow(ctx);
            } else if let Some(arrival) = self.arrivals.pull(ctx) {
                self.thinking.push_back(arrival.request);
                ctx.wake_after(self.options.think_time, 0);
            }
        }
        self.halt_if_done(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        if token == HELD {
            if self.queued > 0 {
                self.dispatch(ctx);
            }
            return;
        }
        match self.options.mode {
            Mode::Open => self.arrive_due(ctx),
            Mode::Closed => {
                if let Some(request) = self.thinking.pop_front() {
                    self.arrive(ctx, request);
                }
            }
        }
        self.halt_if_done(ctx);
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        if self.outstanding > 0 && !self.ended {
            ctx.fault(not_completed(self.outstanding, ctx.now()));
        }
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl Checkpoint for Host {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        let mut own = Saver::default();
        own.put(&self.last.0);
        self.scheduler.save(&mut own)?;
        to.put(&self.configuration);
        to.put_bytes(&own.into_bytes());
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let configuration: String = from.take()?;
        let mut own = Loader::new(from.take_bytes()?);
        if configuration != self.configuration {
            return Ok(());
        }
        self.last = Lba(own.take()?);
        self.scheduler.restore(&mut own)?;
        own.end()
    }
}

impl PowerFailure for Host {
    /// The host loses power too: requests that had not completed are lost, and the workload
    /// continues after them.
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        if self.arrivals.reacts() {
            return Err(WAITS_FOR_COMPLETIONS.to_owned());
        }
        let head = Head { now, last: self.last, positioner: None };
        while !self.scheduler.is_empty() && self.scheduler.pop(&head).is_some() {}
        self.queued = 0;
        self.thinking.clear();
        self.lost = std::mem::take(&mut self.outstanding);
        (self.at_device, self.held_until) = (0, SimTime::ZERO);
        self.arrivals.power_cut();
        if let Some(check) = &mut self.check {
            check.power_cut();
        }
        if let Some(outside) = &mut self.outside {
            outside.power_cut(now - self.arrivals.began());
        }
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        ctx.emit(CommonEvent::PowerCut { lost: u32::try_from(self.lost).unwrap_or(u32::MAX) });
        self.report_depth(ctx);
        self.go_on(ctx);
    }
}
