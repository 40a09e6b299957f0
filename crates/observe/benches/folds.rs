//! What observing costs per request: `cargo bench -p hybridsim-observe`.
//!
//! Two streams as devices emit them: six events per disk request, eight per flash write.

use hybridsim_disk::DiskEvent;
use hybridsim_engine::event::{Times, TimesWriter};
use hybridsim_engine::{
    CommonEvent, ComponentId, ComponentInfo, Event, EventRecord, EventSink, LatencyPhase, Lba, Op,
    PowerState, SimDuration, SimTime,
};
use hybridsim_flash::{Cause, FlashEvent};
use hybridsim_observe::breakdown::Breakdown;
use hybridsim_observe::counters::Counters;
use hybridsim_observe::latency::LatencyFold;
use hybridsim_observe::series::SeriesFold;
use hybridsim_observe::{Detail, Fingerprint, Invariants, Recorder, Warmup};
use std::time::Instant;

const REQUESTS: u64 = 200_000;
const BATCH: usize = 256;

fn scramble(x: u64) -> u64 {
    let z = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
}

fn of(component: u16, event: impl Event) -> EventRecord {
    EventRecord::new(SimTime::ZERO, ComponentId(component), event)
}

/// The record of three times above zero.
fn several(component: u16, (kinds, a): (Times, u8), all: [(u8, u64); 3]) -> EventRecord {
    let head = u64::from(component) | u64::from(a) << 24;
    let plain = EventRecord { head, ..EventRecord::default() };
    let mut records = Vec::new();
    let sum = SimDuration::from_ns(all.iter().map(|(_, ns)| ns + 1).sum());
    let mut times = TimesWriter::new(&mut records, kinds, plain, sum);
    all.iter().for_each(|&(code, ns)| times.add(code, SimDuration::from_ns(ns + 1)));
    drop(times);
    records[0]
}

fn disk(at: u64) -> Vec<EventRecord> {
    let ns = SimDuration::from_ns;
    let draw = scramble(at);
    let (seek, rotate, transfer) = (draw % 8_000_000, draw % 5_900_000, 100_000);
    let op = if draw.is_multiple_of(3) { Op::Write } else { Op::Read };
    let (sectors, lba) = (8, Lba(draw % 400_000_000));
    let latency = ns(seek + rotate + transfer);
    vec![
        of(0, CommonEvent::Arrived { op, sectors, lba }),
        of(1, CommonEvent::QueueDepth { depth: (draw % 5) as u32 }),
        of(
            1,
            DiskEvent::Access {
                distance: (draw % 50_000) as u32,
                seek: ns(seek),
                rotate: ns(rotate),
                transfer: ns(transfer),
                sectors,
            },
        ),
        several(
            1,
            (Times::STATES, 0),
            [
                (PowerState::Seek as u8, seek),
                (PowerState::Active as u8, rotate),
                (PowerState::Read as u8, transfer),
            ],
        ),
        several(
            0,
            (Times::PHASES, op.code()),
            [
                (LatencyPhase::Seek as u8, seek),
                (LatencyPhase::Rotate as u8, rotate),
                (LatencyPhase::Transfer as u8, transfer),
            ],
        ),
        of(0, CommonEvent::Completed { op, sectors, lba, latency }),
    ]
}

fn flash(at: u64) -> Vec<EventRecord> {
    let ns = SimDuration::from_ns;
    let draw = scramble(at);
    let (op, sectors, lba) = (Op::Write, 8, Lba(draw % 400_000_000));
    let (wait, die) = (draw % 500_000, (draw % 32) as u16);
    vec![
        of(0, CommonEvent::Arrived { op, sectors, lba }),
        of(1, FlashEvent::Program { cause: Cause::Host, die }),
        of(1, FlashEvent::Read { cause: Cause::Gc, die }),
        of(1, FlashEvent::Program { cause: Cause::Gc, die }),
        of(1, FlashEvent::FreeBlocks { free: (draw % 100) as u32 }),
        of(1, CommonEvent::StateTime { state: PowerState::Write, duration: ns(1000) }),
        several(
            0,
            (Times::PHASES, op.code()),
            [
                (LatencyPhase::Gc as u8, wait),
                (LatencyPhase::FlashBus as u8, 40_000),
                (LatencyPhase::FlashProgram as u8, 200_000),
            ],
        ),
        of(0, CommonEvent::Completed { op, sectors, lba, latency: ns(wait + 240_000) }),
    ]
}

fn stream(request: fn(u64) -> Vec<EventRecord>) -> Vec<EventRecord> {
    let mut events = Vec::new();
    for at in 0..REQUESTS {
        let time = SimTime::from_ns((at + 1) * 15_000_000);
        events.extend(request(at).into_iter().map(|record| EventRecord { time, ..record }));
    }
    events
}

fn nodes() -> Vec<(String, ComponentInfo)> {
    vec![
        ("host".to_owned(), ComponentInfo::default()),
        ("host/device".to_owned(), ComponentInfo::default()),
    ]
}

fn measure(name: &str, events: &[EventRecord], make: impl Fn() -> Box<dyn EventSink>) {
    let run = || {
        let mut sink = make();
        let start = Instant::now();
        events.chunks(BATCH).for_each(|batch| sink.take(std::hint::black_box(batch)));
        start.elapsed().as_nanos() as f64 / REQUESTS as f64
    };
    let best = (0..7).map(|_| run()).fold(f64::INFINITY, f64::min);
    println!("  {name:<28} {best:7.1} ns/request");
}

fn main() {
    for (name, request) in [("disk", disk as fn(u64) -> Vec<EventRecord>), ("flash", flash)] {
        let events = stream(request);
        println!("{name}: {} events per request", events.len() as u64 / REQUESTS);
        measure("nothing", &events, || Box::new(()));
        measure("fingerprint", &events, || Box::new(Fingerprint::default()));
        measure("invariants", &events, || Box::new(Invariants::new(vec![String::new(); 2])));
        measure("counters", &events, || Box::new(Counters::new(2, SimTime::ZERO)));
        measure("latency", &events, || Box::new(LatencyFold::default()));
        measure("breakdown", &events, || Box::new(Breakdown::default()));
        measure("series", &events, || Box::new(SeriesFold::default()));
        for detail in [Detail::Bare, Detail::Full] {
            let make = || Box::new(Recorder::new(nodes(), detail, Warmup::None));
            measure(&format!("recorder, {detail:?}"), &events, || make());
        }
    }
}
