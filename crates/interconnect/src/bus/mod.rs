//! Buses: transfer of commands, data and messages.
//!
//! A request occupies the bus for its command and again for its data. In between, the bus is free
//! (`disconnect`) or held. The data of a read cross the bus while they come off the medium, as far
//! as the bus was idle at that time, the last sector one block time after it left the medium; the
//! data of a write cross while the arm moves.
//!
//! - A *tenured* bus has one owner at a time, until the end of its phase. Arbitration is by slot
//!   (the device listed first wins) or in order of arrival.
//! - An *interleaved* bus is shared: each of n transfers proceeds at 1/n of the rate.
//!
//! The part of a read that crossed the bus before it was requested is accounted for afterwards:
//! exact if the bus was idle at that time; otherwise no part is counted.
//!
//! A device with a link rate of its own (`host_rate`) adds its time; omit it below a bus.

mod params;
mod shared;
mod tenured;

use crate::targets::Targets;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, LatencyBreakdown, LatencyPhase, Loader,
    Op, PendingRequest, Request, RequestId, Saver, SimDuration, SimTime, StateError, Target,
};
use shared::Shared;
use slab::Slab;
use std::rc::Rc;
use tenured::{Arbitration, Tenured};

pub use params::ENTRY;

/// Phase times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// To win the bus.
    pub arbitration: SimDuration,
    pub command: SimDuration,
    /// The message at the end.
    pub message: SimDuration,
    /// A sector on its way to the host.
    pub read_block: SimDuration,
    /// A sector on its way to the device.
    pub write_block: SimDuration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The command; with the data of a write that does not overlap.
    Command,
    /// Data, with the message of a read.
    Data,
    Message,
}

/// A request for the bus.
#[derive(Clone, Copy, Debug)]
struct Claim {
    op: u32,
    phase: Phase,
    slot: usize,
    since: SimTime,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    /// With the request in the device's addresses; outstanding are the phases and the completion
    /// that precede the message.
    pending: PendingRequest,
    target: usize,
    /// Breakdown of the device's time.
    breakdown: LatencyBreakdown,
    /// Time the command took once the bus was won, and time data need on the bus.
    command: SimDuration,
    transfer: SimDuration,
}

enum Medium {
    Tenured(Tenured),
    Shared(Shared),
}

/// A bus.
pub struct Bus {
    targets: Targets,
    times: Times,
    overlap: bool,
    disconnect: bool,
    medium: Medium,
    ops: Slab<Operation>,
    /// Claims whose phase is finished, in that order.
    finished: Vec<Claim>,
}

/// Custom events.
const BUSY_NS: u8 = 0;
const WAIT_NS: u8 = 1;

impl Bus {
    fn open(&mut self, operation: Operation) -> u32 {
        self.ops.insert(operation) as u32
    }

    fn data_time(&self, request: &Request) -> SimDuration {
        let block = match request.op {
            Op::Read => self.times.read_block,
            Op::Write => self.times.write_block,
            Op::Trim | Op::Flush | Op::Zone(_) => SimDuration::ZERO,
        };
        SimDuration::from_ns(block.as_ns().saturating_mul(u64::from(request.sectors)))
    }

    /// Duration of a phase that starts now, the bus having been idle for `idle`.
    fn duration(
        times: &Times,
        overlap: bool,
        op: &Operation,
        phase: Phase,
        idle: SimDuration,
    ) -> SimDuration {
        let reads = op.pending.request.op == Op::Read;
        match phase {
            Phase::Command if op.pending.request.op == Op::Write && !overlap => {
                times.command + op.transfer
            }
            Phase::Command => times.command,
            Phase::Message => times.message,
            Phase::Data if reads => {
                let ahead = if overlap {
                    op.breakdown.get(LatencyPhase::Transfer).min(idle)
                } else {
                    SimDuration::ZERO
                };
                let block = times.read_block.min(op.transfer);
                op.transfer.saturating_sub(ahead).max(block) + times.message
            }
            Phase::Data => op.transfer,
        }
    }

    fn claim(&mut self, ctx: &mut Ctx<'_>, op: u32, phase: Phase) {
        let slot = self.ops[op as usize].target;
        let claim = Claim { op, phase, slot, since: ctx.now() };
        match &mut self.medium {
            Medium::Tenured(bus) => bus.waiting.push_back(claim),
            Medium::Shared(bus) => {
                let op = &self.ops[op as usize];
                let idle = SimDuration::MAX;
                let work = Self::duration(&self.times, self.overlap, op, phase, idle);
                bus.begin(ctx.now(), claim, self.times.arbitration + work);
            }
        }
    }

    /// Starts and ends phases until none starts or ends at this instant.
    fn advance(&mut self, ctx: &mut Ctx<'_>) {
        loop {
            self.grant(ctx);
            if self.finished.is_empty() {
                return;
            }
            for at in 0..self.finished.len() {
                self.phase_finished(ctx, self.finished[at]);
            }
            self.finished.clear();
        }
    }

    fn grant(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        match &mut self.medium {
            Medium::Shared(bus) => {
                bus.advance(now, &mut self.finished);
                if let Some((at, token)) = bus.timer() {
                    ctx.wake_at(at, token);
                }
            }
            Medium::Tenured(bus) => {
                while let Some((claim, idle)) = bus.next(now) {
                    let op = &self.ops[claim.op as usize];
                    let time = Self::duration(&self.times, self.overlap, op, claim.phase, idle);
                    let time = self.times.arbitration + time;
                    let wait = now.since(claim.since);
                    if !wait.is_zero() {
                        ctx.emit(CommonEvent::Custom { name: WAIT_NS, value: wait.as_ns() });
                    }
                    if !time.is_zero() {
                        ctx.emit(CommonEvent::Custom { name: BUSY_NS, value: time.as_ns() });
                        bus.take(claim);
                        ctx.wake_after(time, 0);
                        return;
                    }
                    // The phase takes no time and ends at once; a holder keeps the bus.
                    if claim.phase == Phase::Command && !self.disconnect {
                        bus.hold(claim.op);
                    }
                    self.finished.push(claim);
                    if !self.disconnect {
                        return;
                    }
                }
            }
        }
    }

    fn phase_finished(&mut self, ctx: &mut Ctx<'_>, claim: Claim) {
        let op = &mut self.ops[claim.op as usize];
        match claim.phase {
            Phase::Command => {
                let spent = ctx.now().since(claim.since);
                op.command = spent.min(self.times.arbitration + self.times.command);
                let (request, target) = (op.pending.request, op.target);
                let overlaps = request.op == Op::Write && self.overlap && !op.transfer.is_zero();
                op.pending.outstanding = 1 + u32::from(overlaps);
                ctx.issue(target, request, u64::from(claim.op));
                if overlaps {
                    self.claim(ctx, claim.op, Phase::Data);
                }
            }
            Phase::Data if op.pending.request.op == Op::Read => self.finish(ctx, claim.op),
            Phase::Data => self.one_done(ctx, claim.op, false),
            Phase::Message => self.finish(ctx, claim.op),
        }
    }

    /// The data transfer or the device has completed.
    fn one_done(&mut self, ctx: &mut Ctx<'_>, index: u32, failed: bool) {
        let op = &mut self.ops[index as usize];
        if !op.pending.one_done(failed) {
            return;
        }
        let reads = op.pending.request.op == Op::Read && !op.pending.failed;
        if reads && !(op.transfer + self.times.message).is_zero() {
            self.claim(ctx, index, Phase::Data);
        } else if !self.times.message.is_zero() {
            self.claim(ctx, index, Phase::Message);
        } else {
            self.finish(ctx, index);
        }
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>, index: u32) {
        let op = self.ops.remove(index as usize);
        if let Medium::Tenured(bus) = &mut self.medium {
            bus.release_holder(index, ctx.now());
        }
        let total = ctx.now().since(ctx.issued(op.pending.id));
        let mut breakdown = op.breakdown.plus(LatencyPhase::Overhead, op.command);
        let rest = total.saturating_sub(breakdown.total());
        let moving = rest.min(op.transfer + self.times.message);
        breakdown.add(LatencyPhase::Bus, moving);
        breakdown.add(LatencyPhase::Queue, rest - moving);
        op.pending.complete(ctx, breakdown);
    }
}

impl Component for Bus {
    fn capacity(&self) -> u64 {
        self.targets.capacity()
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: params::ENTRY.description.name,
            constants: vec![
                ("devices", self.targets.len() as f64),
                ("read_block_ns", self.times.read_block.as_ns() as f64),
                ("write_block_ns", self.times.write_block.as_ns() as f64),
            ],
            custom: &["bus_busy_ns", "bus_wait_ns"],
            ..ComponentInfo::default()
        }
    }

    fn targets(&self) -> Vec<Target> {
        self.targets.all()
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        self.targets.only_positioner()
    }

    fn accepts_zone_commands(&self) -> bool {
        true
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let (target, request) = self.targets.split(request);
        let op = self.open(Operation {
            pending: PendingRequest::new(id, &request, 0),
            target,
            breakdown: LatencyBreakdown::NONE,
            command: SimDuration::ZERO,
            transfer: self.data_time(&request),
        });
        self.claim(ctx, op, Phase::Command);
        self.advance(ctx);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let index = done.tag as u32;
        let op = &mut self.ops[index as usize];
        op.breakdown = done.breakdown;
        self.one_done(ctx, index, done.failed());
        self.advance(ctx);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        match &mut self.medium {
            Medium::Tenured(bus) => {
                let holds = !self.disconnect;
                let claim = bus.release(ctx.now(), holds);
                self.phase_finished(ctx, claim);
            }
            Medium::Shared(bus) => bus.timer_expired(token),
        }
        self.advance(ctx);
    }

    hybridsim_engine::supports!(Checkpoint);
}

impl Checkpoint for Bus {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        match &self.medium {
            Medium::Tenured(bus) => bus.save(to),
            Medium::Shared(bus) => bus.save(to),
        }
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        match &mut self.medium {
            Medium::Tenured(bus) => bus.restore(from),
            Medium::Shared(bus) => bus.restore(from),
        }
    }
}
