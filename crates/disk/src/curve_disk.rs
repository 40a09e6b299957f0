//! A disk whose access time is a function of distance alone, as in bisson-fqueue's simulator
//! (figure 2: measured means, not mechanics).
//!
//! From where the last request ended, a request `d` sectors away takes half a turn plus a seek
//! over the share `x` of the disk: `single + (full - single) (a √x + (1 - a) x)`, with `a` such
//! that the mean over random pairs is `average`. At distance zero only the transfer takes time. It
//! has no buffer and serves one request at a time, in order.

use crate::event::DiskEvent;
use crate::faults::SlowMechanism;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Contents, Ctx, Durable, InFlightWrites,
    Inject, LatencyBreakdown, LatencyPhase, Lba, Op, PowerFailure, PowerState, Request, RequestId,
    SECTOR_BYTES, SimDuration, SimTime, Stream,
};
use std::rc::Rc;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "curve-disk",
        summary: "a disk whose access time depends on the distance only",
        origin: "bisson-fqueue, section IV and figure 2: access times measured by distance",
        params: Parameters::PARAMS,
    },
    build,
);

hybridsim_config::params! {
    struct Parameters {
        capacity: u64 = Kind::Bytes, default "\"120GB\"", "Size of the disk, at least 2 sectors";
        half_turn: SimDuration = Kind::Duration, default "\"5.556ms\"", "Mean rotational delay";
        single: SimDuration = Kind::Duration, default "\"1.1ms\"", "Shortest seek";
        average: SimDuration = Kind::Duration, default "\"13ms\"", "Mean seek over random pairs";
        full: SimDuration = Kind::Duration, default "\"21ms\"", "Longest seek";
        rate: u64 = Kind::Rate, default "\"44MB/s\"", "Sequential transfer";
    }
}

/// Means of the square root of the distance and of the distance between two random addresses.
const MEAN_ROOT: f64 = 8.0 / 15.0;
const MEAN: f64 = 1.0 / 3.0;

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let capacity = params.capacity / SECTOR_BYTES;
    let ms = |time: SimDuration| time.as_ns() as f64 / 1e6;
    let (single, average, full) = (ms(params.single), ms(params.average), ms(params.full));
    let mut problems = Vec::new();
    if capacity < 2 {
        problems.push(Problem::new("capacity", "must be at least two sectors of 512 bytes"));
    }
    if params.rate == 0 {
        problems.push(Problem::new("rate", "must be more than nothing"));
    }
    let share = if full > single { (average - single) / (full - single) } else { f64::NAN };
    let bend = (share - MEAN) / (MEAN_ROOT - MEAN);
    // Beyond 2 the curve would fall towards the full stroke, below 0 at its beginning.
    if !(0.0..=2.0).contains(&bend) {
        let message = format!(
            "single {single} ms, average {average} ms and full {full} ms fit no rising curve: the \
             average must lie between 33 % and 73 % of the way from single to full"
        );
        problems.push(Problem::new("average", message));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let (half_turn_ms, rate) = (ms(params.half_turn), params.rate);
    let curve = Curve { capacity, half_turn_ms, single, full, bend, rate };
    Ok(Box::new(CurveDisk {
        curve: Rc::new(curve),
        last: Lba(0),
        reported: SimTime::ZERO,
        busy_until: SimTime::ZERO,
        contents: Contents::default(),
        undo: InFlightWrites::default(),
        stream: Stream::new(input.seed, input.path),
        slow: SlowMechanism::NONE,
    }))
}

/// The function of distance.
#[derive(Debug)]
struct Curve {
    capacity: u64,
    half_turn_ms: f64,
    single: f64,
    full: f64,
    bend: f64,
    rate: u64,
}

impl Curve {
    fn access(&self, from: Lba, to: Lba) -> SimDuration {
        let distance = from.0.abs_diff(to.0);
        if distance == 0 {
            return SimDuration::ZERO;
        }
        let x = distance as f64 / self.capacity as f64;
        let shape = self.bend * libm::sqrt(x) + (1.0 - self.bend) * x;
        let ms = self.half_turn_ms + self.single + (self.full - self.single) * shape;
        SimDuration::from_ns_f64(ms * 1e6)
    }
}

impl Positioner for Curve {
    fn positioning(&self, _now: SimTime, last: Lba, to: &Request) -> SimDuration {
        self.access(last, to.lba)
    }

    fn cylinder(&self, lba: Lba) -> u32 {
        // It has none; a thousandth of the disk serves for sorting.
        (u128::from(lba.0) * 1000 / u128::from(self.capacity)) as u32
    }

    fn transfer(&self, to: &Request) -> SimDuration {
        SimDuration::transfer(to.bytes(), self.rate)
    }

    fn sectors(&self) -> u64 {
        self.capacity
    }
}

#[derive(Debug)]
struct CurveDisk {
    curve: Rc<Curve>,
    last: Lba,
    reported: SimTime,
    busy_until: SimTime,
    contents: Contents,
    undo: InFlightWrites,
    stream: Stream,
    slow: SlowMechanism,
}

impl CurveDisk {
    /// Reports power states up to now, when the disk is idle or the run ends.
    fn account(&mut self, ctx: &mut Ctx<'_>) {
        let busy_until = self.busy_until.min(ctx.now());
        for (state, until) in [(PowerState::Active, busy_until), (PowerState::Idle, ctx.now())] {
            if until > self.reported {
                ctx.emit(CommonEvent::StateTime { state, duration: until.since(self.reported) });
                self.reported = until;
            }
        }
    }

    fn apply(&mut self, ctx: &mut Ctx<'_>, request: &Request, end: SimTime) {
        let Request { lba, sectors, data, .. } = *request;
        match request.op {
            Op::Read => self.contents.read(lba.0, ctx.data().versions_mut(data, sectors)),
            Op::Write => {
                let (keeps, now) = (ctx.power_may_fail(), ctx.now());
                let versions = ctx.data().versions(data, sectors);
                if keeps {
                    let durable = Durable::At(end);
                    self.undo.note(&self.contents, lba.0, versions, durable, now);
                }
                self.contents.write(lba.0, versions);
            }
            Op::Trim | Op::Flush | Op::Zone(_) => {}
        }
    }
}

impl Component for CurveDisk {
    fn capacity(&self) -> u64 {
        self.curve.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: ENTRY.description.name, ..ComponentInfo::default() }
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        Some(self.curve.clone())
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let now = ctx.now();
        if now >= self.busy_until {
            self.account(ctx);
        }
        let start = self.busy_until.max(now);
        let mut breakdown = LatencyBreakdown::NONE.plus(LatencyPhase::Queue, start.since(now));
        if matches!(request.op, Op::Read | Op::Write) {
            let seek = self.slow.of(self.curve.access(self.last, request.lba));
            let time = self.slow.of(self.curve.transfer(request));
            breakdown = breakdown.plus(LatencyPhase::Seek, seek).plus(LatencyPhase::Transfer, time);
            self.last = request.end();
            ctx.emit(DiskEvent::MediaTransfer { sectors: request.sectors, duration: time });
        }
        let end = now + breakdown.total();
        self.busy_until = end;
        if ctx.verifying() {
            self.apply(ctx, request, end);
        }
        ctx.complete_at(id, end, breakdown);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {}

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        self.account(ctx);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);

    fn faults(&mut self) -> Option<&mut dyn Inject> {
        Some(&mut self.slow)
    }
}

impl Checkpoint for CurveDisk {
    hybridsim_engine::saves!(last, reported, busy_until, stream, slow);
}

impl PowerFailure for CurveDisk {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.undo.cut(&mut self.contents, now, &mut self.stream);
        self.busy_until = self.busy_until.min(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_rises_and_has_the_average_it_was_given() {
        let bend = ((11.9 / 19.9) - MEAN) / (MEAN_ROOT - MEAN);
        let curve = Curve {
            capacity: 1_000_000,
            half_turn_ms: 0.0,
            single: 1.1,
            full: 21.0,
            bend,
            rate: 1,
        };
        let ms = |from, to| curve.access(Lba(from), Lba(to)).as_ns() as f64 / 1e6;
        assert_eq!(ms(5, 5), 0.0);
        assert!((ms(0, 1) - 1.1).abs() < 0.05 && (ms(0, 1_000_000) - 21.0).abs() < 1e-6);
        assert!((0..1000).all(|d| ms(0, d * 1000) < ms(0, (d + 1) * 1000)));
        let mut stream = Stream::new(1, "pairs");
        let mut address = || stream.below(1_000_000);
        let mean = (0..100_000).map(|_| ms(address(), address())).sum::<f64>() / 1e5;
        assert!((mean - 13.0).abs() < 0.1, "{mean}");
    }
}
