//! A host with several tenants: workloads that share one device.
//!
//! Each tenant has a submission queue of its own, in order of arrival. An [`Arbiter`] chooses the
//! queue the next request is issued from while fewer than `queue_depth` requests are at the device.
//! A tenant with a rate limit takes part only when its limit allows the next request. The time from
//! arrival to issue is that of the phase `queue`, whether it is spent behind other requests of the
//! tenant, behind other tenants, or for a rate limit. With `latency_from = "issue"` it is in no
//! latency.
//!
//! With one tenant without limits the host emits the same events as [`Host`](crate::Host) with the
//! scheduler `fcfs`. Only power failures are at other times: they are drawn between messages, and
//! this host does not announce requests to the device.

mod arbitration;
mod limit;
mod options;

pub use arbitration::{Arbiter, Arbitration};
pub use limit::RateLimit;
pub use options::{HOST_PARAMS, PARAMS, Parameters, Shared, TenantOptions};

use crate::arrivals::Arrivals;
use crate::driver::{
    Mode, UNFINISHED_REQUESTS, WAITS_FOR_COMPLETIONS, check::Check, idle_latency_from,
    latency_from, not_completed, report_completed,
};
use hybridsim_engine::{
    Checkpoint, CommonEvent, Completion, Component, ComponentInfo, Ctx, Fault, Loader,
    PowerFailure, Request, RequestId, Saver, SimTime, Source, StateError,
};
use std::collections::VecDeque;

/// The timers of tenant `t`: `TIMERS * t`, plus what the timer is for.
const TIMERS: u64 = 3;
/// The tenant's next request arrives.
const ARRIVAL: u64 = 0;
/// A think time has passed.
const THOUGHT: u64 = 1;
/// The tenant's rate limit allows the next request.
const ALLOWED: u64 = 2;

/// A workload and its queue.
struct Tenant {
    options: TenantOptions,
    arrivals: Arrivals,
    limit: RateLimit,
    /// Requests that have arrived, with their times of arrival.
    queue: VecDeque<(Request, SimTime)>,
    /// Closed loop with think time: requests due in this order.
    thinking: VecDeque<Request>,
    outstanding: u64,
    at_device: u32,
    /// The timer of its rate limit, while it is in the future.
    allowed_armed: SimTime,
}

impl Tenant {
    fn new(options: TenantOptions, source: Box<dyn Source>) -> Self {
        Self {
            limit: RateLimit::new(options.iops_max, options.bandwidth_max),
            options,
            arrivals: Arrivals::new(source),
            queue: VecDeque::new(),
            thinking: VecDeque::new(),
            outstanding: 0,
            at_device: 0,
            allowed_armed: SimTime::ZERO,
        }
    }

    /// Whether a request could be issued but for the rate limit.
    fn has_request(&self) -> bool {
        !self.queue.is_empty() && self.at_device < self.options.queue_depth
    }

    fn is_done(&self) -> bool {
        self.arrivals.is_exhausted() && self.outstanding == 0 && self.thinking.is_empty()
    }
}

/// The root component of a system that several workloads share.
pub struct TenantHost {
    shared: Shared,
    tenants: Vec<Tenant>,
    arbiter: Arbiter,
    /// The tenant of the request of this number.
    owners: Vec<u16>,
    at_device: u32,
    outstanding: u64,
    queued: u32,
    reported_depth: u32,
    /// The run has ended with the last arrival, before every request had completed.
    ended: bool,
    /// Requests lost in the last power failure.
    lost: u64,
    check: Option<Check>,
    /// A request was not issued when it arrived.
    waited: bool,
}

impl TenantHost {
    /// A host for tenants that have these options and workloads.
    pub fn new(shared: Shared, tenants: Vec<(TenantOptions, Box<dyn Source>)>) -> Self {
        let classes: Vec<(u32, bool)> =
            tenants.iter().map(|(options, _)| (options.weight, options.urgent)).collect();
        let tenants = tenants.into_iter().map(|(options, source)| Tenant::new(options, source));
        Self {
            arbiter: Arbiter::new(shared.arbitration, shared.burst, &classes),
            shared,
            tenants: tenants.collect(),
            owners: Vec::new(),
            at_device: 0,
            outstanding: 0,
            queued: 0,
            reported_depth: 0,
            ended: false,
            lost: 0,
            check: None,
            waited: false,
        }
    }

    /// The settings that the arbiter and the rate limits depend on.
    fn configuration(&self) -> String {
        let tenants = self.tenants.iter().map(|tenant| {
            let TenantOptions { weight, urgent, iops_max, bandwidth_max, .. } = tenant.options;
            (weight, urgent, iops_max, bandwidth_max)
        });
        let Shared { arbitration, burst, .. } = self.shared;
        format!("{arbitration:?} {burst} {:?}", tenants.collect::<Vec<_>>())
    }

    /// Open loop: lets every due request of a tenant arrive, and sets the timer for its next.
    fn arrive_due(&mut self, ctx: &mut Ctx<'_>, at: usize) {
        let timer = TIMERS * at as u64 + ARRIVAL;
        while let Some(request) = self.tenants[at].arrivals.due(ctx, timer) {
            self.arrive(ctx, at, request);
            self.tenants[at].arrivals.look_ahead(ctx);
        }
    }

    /// Closed loop: the request that follows a completion, or one of the first.
    fn follow(&mut self, ctx: &mut Ctx<'_>, at: usize) {
        if let Some(arrival) = self.tenants[at].arrivals.pull(ctx) {
            self.arrive(ctx, at, arrival.request);
        }
    }

    fn arrive(&mut self, ctx: &mut Ctx<'_>, at: usize, request: Request) {
        let Request { op, sectors, lba, .. } = request;
        ctx.emit(CommonEvent::Arrived { op, sectors, lba });
        let now = ctx.now();
        let tenant = &mut self.tenants[at];
        tenant.outstanding += 1;
        self.outstanding += 1;
        if tenant.outstanding > self.shared.outstanding_max && tenant.options.mode == Mode::Open {
            let max = self.shared.outstanding_max;
            tenant.arrivals.end();
            ctx.fault(Fault::Overload(format!(
                "overload: more than {max} requests of workload {} are outstanding at {now}, it \
                 asks for more than its share of the system; slow it down, use `mode = \
                 \"closed\"`, or raise `outstanding_max` under [host]",
                at + 1
            )));
            return;
        }
        tenant.queue.push_back((request, now));
        self.queued += 1;
        self.dispatch(ctx);
    }

    /// Issues requests while the device takes them.
    fn dispatch(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        while self.queued > 0 && self.at_device < self.shared.queue_depth {
            let tenants = &self.tenants;
            let ready = |at: usize| tenants[at].has_request() && tenants[at].limit.next() <= now;
            let Some(at) = self.arbiter.choose(&ready) else { break };
            self.issue(ctx, at);
        }
        if self.at_device < self.shared.queue_depth {
            self.await_limits(ctx);
        }
        self.report_depth(ctx);
    }

    /// Sets the timers of tenants that only their rate limit keeps from issuing a request.
    fn await_limits(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        for (at, tenant) in self.tenants.iter_mut().enumerate() {
            let next = tenant.limit.next();
            if tenant.has_request() && next > now && tenant.allowed_armed != next {
                tenant.allowed_armed = next;
                ctx.wake_at(next, TIMERS * at as u64 + ALLOWED);
            }
        }
    }

    fn issue(&mut self, ctx: &mut Ctx<'_>, at: usize) {
        let tenant = &mut self.tenants[at];
        let Some((mut request, arrived)) = tenant.queue.pop_front() else { return };
        tenant.at_device += 1;
        tenant.limit.issued(&request, ctx.now());
        self.queued -= 1;
        self.at_device += 1;
        if let Some(check) = &mut self.check {
            check.begin(ctx, &mut request);
        }
        self.waited = self.waited || arrived < ctx.now();
        let from = latency_from(self.shared.from_issue, arrived, ctx.now());
        let id = ctx.issue(0, request, from.as_ns());
        if let Some(check) = &mut self.check {
            check.issued(id);
        }
        let number = id.0 as usize;
        if number >= self.owners.len() {
            self.owners.resize(number + 1, 0);
        }
        self.owners[number] = at as u16;
    }

    fn report_depth(&mut self, ctx: &mut Ctx<'_>) {
        if self.queued != self.reported_depth {
            self.reported_depth = self.queued;
            ctx.emit(CommonEvent::QueueDepth { depth: self.queued });
        }
    }

    /// With no request outstanding: lets due requests arrive.
    fn go_on(&mut self, ctx: &mut Ctx<'_>) {
        for at in 0..self.tenants.len() {
            match self.tenants[at].options.mode {
                Mode::Open => self.arrive_due(ctx, at),
                Mode::Closed => {
                    (0..self.tenants[at].options.outstanding).for_each(|_| self.follow(ctx, at));
                }
            }
        }
        self.halt_if_done(ctx);
    }

    fn halt_if_done(&mut self, ctx: &mut Ctx<'_>) {
        if self.tenants.iter().all(Tenant::is_done) {
            ctx.halt();
        } else if self.shared.ends_early
            && !self.ended
            && self.tenants.iter().all(|tenant| tenant.arrivals.is_exhausted())
        {
            self.ended = true;
            ctx.emit(CommonEvent::Custom { name: UNFINISHED_REQUESTS, value: self.outstanding });
            ctx.halt();
        }
    }
}

impl Component for TenantHost {
    fn capacity(&self) -> u64 {
        0
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: "host",
            custom: &["failed_requests", "unfinished_requests"],
            idle_policies: idle_latency_from(self.shared.from_issue, self.waited)
                .into_iter()
                .collect(),
            ..ComponentInfo::default()
        }
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.check = ctx.verifying().then(Check::default);
        for tenant in &mut self.tenants {
            tenant.arrivals.start(ctx, false);
            if tenant.options.mode == Mode::Open {
                tenant.arrivals.look_ahead(ctx);
            } else if tenant.arrivals.reacts() {
                ctx.fault(Fault::Workload(
                    "this workload waits for completions itself; use `mode = \"open\"`".to_owned(),
                ));
            }
        }
        self.go_on(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, _id: RequestId, _request: &Request) {
        ctx.device_fault("the host is the root and takes no requests");
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let at = self.owners[done.id.0 as usize] as usize;
        let Request { op, sectors, .. } = done.request;
        let latency = ctx.now().since(SimTime::from_ns(done.tag));
        // Before the completion, with which a warm-up may end.
        ctx.emit(CommonEvent::TenantCompleted { op, sectors, tenant: at as u16, latency });
        report_completed(ctx, done);
        self.at_device -= 1;
        self.outstanding -= 1;
        self.tenants[at].at_device -= 1;
        self.tenants[at].outstanding -= 1;
        if let Some(check) = &mut self.check {
            check.end(ctx, done);
        }
        if self.tenants[at].arrivals.completed(ctx, &done.request) {
            self.arrive_due(ctx, at);
        }
        self.dispatch(ctx);
        let tenant = &mut self.tenants[at];
        if tenant.options.mode == Mode::Closed {
            if tenant.options.think_time.is_zero() {
                self.follow(ctx, at);
            } else if let Some(arrival) = tenant.arrivals.pull(ctx) {
                tenant.thinking.push_back(arrival.request);
                ctx.wake_after(tenant.options.think_time, TIMERS * at as u64 + THOUGHT);
            }
        }
        self.halt_if_done(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        let at = (token / TIMERS) as usize;
        match token % TIMERS {
            ARRIVAL => self.arrive_due(ctx, at),
            THOUGHT => {
                if let Some(request) = self.tenants[at].thinking.pop_front() {
                    self.arrive(ctx, at, request);
                }
            }
            _ => self.dispatch(ctx),
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

/// The arbiter and the rate limits. In a host with other tenants, or others of their settings, they
/// start afresh.
impl Checkpoint for TenantHost {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        let mut own = Saver::default();
        self.arbiter.save(&mut own);
        self.tenants.iter().for_each(|tenant| own.put(&tenant.limit.next()));
        to.put(&self.configuration());
        to.put_bytes(&own.into_bytes());
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let configuration: String = from.take()?;
        let mut own = Loader::new(from.take_bytes()?);
        if configuration != self.configuration() {
            return Ok(());
        }
        self.arbiter.restore(&mut own)?;
        for tenant in &mut self.tenants {
            tenant.limit.set_next(own.take()?);
        }
        own.end()
    }
}

impl PowerFailure for TenantHost {
    /// As for a host with one workload: requests that had not completed are lost, and each workload
    /// continues after them.
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        if self.tenants.iter().any(|tenant| tenant.arrivals.reacts()) {
            return Err(WAITS_FOR_COMPLETIONS.to_owned());
        }
        for tenant in &mut self.tenants {
            tenant.queue.clear();
            tenant.thinking.clear();
            (tenant.outstanding, tenant.at_device) = (0, 0);
            tenant.allowed_armed = SimTime::ZERO;
            tenant.arrivals.power_cut();
        }
        self.lost = std::mem::take(&mut self.outstanding);
        (self.at_device, self.queued) = (0, 0);
        if let Some(check) = &mut self.check {
            check.power_cut();
        }
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        ctx.emit(CommonEvent::PowerCut { lost: u32::try_from(self.lost).unwrap_or(u32::MAX) });
        self.report_depth(ctx);
        self.go_on(ctx);
    }
}
