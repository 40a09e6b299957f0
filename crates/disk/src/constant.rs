//! A device that serves every request in a fixed time plus its length divided by a rate.
//!
//! With `jitter` the time varies and requests overtake each other; a request then accesses the data
//! at a random time between its arrival and its completion, as a real device may. Controllers and
//! caches are tested on top of it.

use crate::faults::SlowMechanism;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::state;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Contents, Ctx, Durable, InFlightWrites,
    Inject, LatencyBreakdown, LatencyPhase, Loader, Op, PowerFailure, Request, RequestId,
    SECTOR_BYTES, Saver, SimDuration, SimTime, StateError, Stream,
};
use slab::Slab;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "constant-device",
        summary: "an ideal device: a fixed latency plus length divided by rate",
        origin: "a lower bound for comparison; no real device",
        params: Parameters::PARAMS,
    },
    build,
)
.with_capacity(|settings| settings.bytes("capacity"));

hybridsim_config::params! {
    struct Parameters {
        capacity: u64 = Kind::Bytes, required, "Size of the device, at least one sector";
        latency: SimDuration = Kind::Duration, default "\"0ns\"", "Time every request takes";
        rate: Option<u64> = Kind::Rate, optional, "Added: the time the request's bytes take";
        jitter: SimDuration = Kind::Duration, default "\"0ns\"",
            "Added: a random time, even between nothing and this; requests overtake each other";
        queue_depth: usize = Kind::Count { min: 0, max: 1024 }, default "0",
            "Requests served at a time, the others wait in order; 0: any number";
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let capacity = params.capacity / SECTOR_BYTES;
    if capacity == 0 {
        return Err(vec![Problem::new("capacity", "must be at least one sector of 512 bytes")]);
    }
    Ok(Box::new(ConstantDevice::new(Timing {
        capacity,
        latency: params.latency,
        rate: params.rate.unwrap_or(0),
        jitter: params.jitter,
        queue_depth: params.queue_depth,
        stream: Stream::new(input.seed, input.path),
        power_failures: Stream::new(input.seed, &format!("{}/power", input.path)),
    })))
}

/// Parameters of a [`ConstantDevice`].
#[derive(Clone, Debug)]
pub struct Timing {
    /// Sectors.
    pub capacity: u64,
    /// Time every request takes.
    pub latency: SimDuration,
    /// Bytes per second added to it; 0 for none.
    pub rate: u64,
    /// Largest random time added to it.
    pub jitter: SimDuration,
    /// Requests served at a time; 0 for any number.
    pub queue_depth: usize,
    /// Draws the jitter.
    pub stream: Stream,
    /// Draws what a power failure leaves of writes in flight, in verified runs only: a stream of
    /// its own, so that the jitter is the same in other runs.
    pub power_failures: Stream,
}

impl Timing {
    /// A device of `capacity` sectors that takes `latency` for everything.
    pub fn fixed(capacity: u64, latency: SimDuration) -> Self {
        Self {
            capacity,
            latency,
            rate: 0,
            jitter: SimDuration::ZERO,
            queue_depth: 0,
            stream: Stream::new(0, ""),
            power_failures: Stream::new(0, "power"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct DelayedRequest {
    id: RequestId,
    request: Request,
    breakdown: LatencyBreakdown,
    end: SimTime,
}

/// The device.
#[derive(Debug)]
pub struct ConstantDevice {
    timing: Timing,
    /// Completion times of the requests in service.
    free_at: Vec<SimTime>,
    contents: Contents,
    undo: InFlightWrites,
    /// Requests that have not accessed the data yet; only with jitter.
    pending: Slab<DelayedRequest>,
    slow: SlowMechanism,
}

impl ConstantDevice {
    /// A device with these times.
    pub fn new(timing: Timing) -> Self {
        let free_at = vec![SimTime::ZERO; timing.queue_depth];
        Self {
            timing,
            free_at,
            contents: Contents::default(),
            undo: InFlightWrites::default(),
            pending: Slab::new(),
            slow: SlowMechanism::NONE,
        }
    }

    /// Start of the service of a request that arrives now.
    fn start_of(&mut self, now: SimTime, service: SimDuration) -> SimTime {
        match self.free_at.iter_mut().min() {
            Some(free_at) => {
                let start = (*free_at).max(now);
                *free_at = start + service;
                start
            }
            None => now,
        }
    }

    /// Applies a request that completes at `end` to the data.
    fn apply(&mut self, ctx: &mut Ctx<'_>, request: &Request, end: SimTime, clears: bool) {
        if !ctx.verifying() {
            return;
        }
        let Request { lba, sectors, data, .. } = *request;
        if ctx.power_may_fail() && request.op == Op::Write {
            let now = ctx.now();
            let versions = ctx.data().versions(data, sectors);
            let durable = Durable::At(end);
            self.undo.note(&self.contents, lba.0, versions, durable, now);
        }
        match request.op {
            Op::Read => self.contents.read(lba.0, ctx.data().versions_mut(data, sectors)),
            Op::Write => self.contents.write(lba.0, ctx.data().versions(data, sectors)),
            // A device may return zeros or the old data afterwards; this one does either.
            Op::Trim if clears => {
                self.contents.clear(lba.0, u64::from(sectors));
            }
            Op::Trim | Op::Flush | Op::Zone(_) => {}
        }
    }
}

impl Component for ConstantDevice {
    fn capacity(&self) -> u64 {
        self.timing.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: ENTRY.description.name, ..ComponentInfo::default() }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let now = ctx.now();
        let moves_data = matches!(request.op, Op::Read | Op::Write);
        let bytes = if moves_data { request.bytes() } else { 0 };
        let transfer = self.slow.of(SimDuration::transfer(bytes, self.timing.rate));
        let jitter = self.timing.jitter.as_ns();
        let extra = if jitter == 0 { 0 } else { self.timing.stream.below(jitter + 1) };
        let fixed = self.slow.of(self.timing.latency + SimDuration::from_ns(extra));
        let start = self.start_of(now, fixed + transfer);
        let end = start + fixed + transfer;
        let breakdown = LatencyBreakdown::of([
            (LatencyPhase::Queue, start.since(now)),
            (LatencyPhase::Overhead, fixed),
            (LatencyPhase::Bus, transfer),
        ]);
        if jitter == 0 {
            self.apply(ctx, request, end, true);
            ctx.complete_at(id, end, breakdown);
            return;
        }
        let pending = DelayedRequest { id, request: *request, breakdown, end };
        let slot = self.pending.insert(pending);
        let moment = self.timing.stream.below(end.since(now).as_ns() + 1);
        ctx.wake_after(SimDuration::from_ns(moment), slot as u64);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {}

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        let DelayedRequest { id, request, breakdown, end } = self.pending.remove(token as usize);
        // The parity of the completion time decides; a random draw would make verified runs differ.
        self.apply(ctx, &request, end, end.as_ns() % 2 == 0);
        ctx.complete_at(id, end, breakdown);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);

    fn faults(&mut self) -> Option<&mut dyn Inject> {
        Some(&mut self.slow)
    }
}

impl Checkpoint for ConstantDevice {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        let Timing { stream, power_failures, .. } = &self.timing;
        to.put(&(&self.free_at, stream, power_failures, self.slow));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (free_at, stream, power_failures, slow): (Vec<SimTime>, _, _, _) = from.take()?;
        state::same_length(
            "the list of requests served at a time",
            free_at.len(),
            self.free_at.len(),
        )?;
        (self.free_at, self.slow) = (free_at, slow);
        (self.timing.stream, self.timing.power_failures) = (stream, power_failures);
        Ok(())
    }
}

impl PowerFailure for ConstantDevice {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.undo.cut(&mut self.contents, now, &mut self.timing.power_failures);
        self.pending.clear();
        self.free_at.fill(now);
        Ok(())
    }
}
