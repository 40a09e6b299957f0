//! What observing costs per request: `cargo bench -p hybridsim-observe`.
//!
//! Two streams as the devices tell them: eleven events per disk request, ten per flash write.

use hybridsim_engine::{
    Cause, ComponentId, ComponentInfo, Event, EventRecord, EventSink, LatencyPhase, Lba, Op,
    PowerState, SimDuration, SimTime,
};
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

fn disk(at: u64) -> Vec<(u16, Event)> {
    let ns = SimDuration::from_ns;
    let draw = scramble(at);
    let (seek, rotate, transfer) = (draw % 8_000_000, draw % 5_900_000, 100_000);
    let op = if draw.is_multiple_of(3) { Op::Write } else { Op::Read };
    let (sectors, lba) = (8, Lba(draw % 400_000_000));
    let latency = ns(seek + rotate + transfer);
    vec![
        (0, Event::Arrived { op, sectors, lba }),
        (1, Event::QueueDepth { depth: (draw % 5) as u32 }),
        (1, Event::Seek { distance: (draw % 50_000) as u32, time: ns(seek) }),
        (1, Event::Rotate { time: ns(rotate) }),
        (1, Event::MediaTransfer { sectors, time: ns(transfer) }),
        (1, Event::StateTime { state: PowerState::Seek, time: ns(seek) }),
        (1, Event::StateTime { state: PowerState::Active, time: ns(rotate + transfer) }),
        (0, Event::PhaseTime { op, phase: LatencyPhase::Seek, time: ns(seek) }),
        (0, Event::PhaseTime { op, phase: LatencyPhase::Rotate, time: ns(rotate) }),
        (0, Event::PhaseTime { op, phase: LatencyPhase::Transfer, time: ns(transfer) }),
        (0, Event::Completed { op, sectors, lba, latency }),
    ]
}

fn flash(at: u64) -> Vec<(u16, Event)> {
    let ns = SimDuration::from_ns;
    let draw = scramble(at);
    let (op, sectors, lba) = (Op::Write, 8, Lba(draw % 400_000_000));
    let (wait, die) = (draw % 500_000, (draw % 32) as u16);
    vec![
        (0, Event::Arrived { op, sectors, lba }),
        (1, Event::FlashProgram { cause: Cause::Host, die }),
        (1, Event::FlashRead { cause: Cause::Gc, die }),
        (1, Event::FlashProgram { cause: Cause::Gc, die }),
        (1, Event::FreeBlocks { free: (draw % 100) as u32 }),
        (1, Event::StateTime { state: PowerState::Write, time: ns(1000) }),
        (0, Event::PhaseTime { op, phase: LatencyPhase::Gc, time: ns(wait) }),
        (0, Event::PhaseTime { op, phase: LatencyPhase::FlashBus, time: ns(40_000) }),
        (0, Event::PhaseTime { op, phase: LatencyPhase::FlashProgram, time: ns(200_000) }),
        (0, Event::Completed { op, sectors, lba, latency: ns(wait + 240_000) }),
    ]
}

fn stream(request: fn(u64) -> Vec<(u16, Event)>) -> Vec<EventRecord> {
    let mut events = Vec::new();
    for at in 0..REQUESTS {
        let time = SimTime::from_ns((at + 1) * 15_000_000);
        let stamped = request(at).into_iter();
        events.extend(stamped.map(|(node, event)| EventRecord {
            time,
            node: ComponentId(node),
            event,
        }));
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
    for (name, request) in [("disk", disk as fn(u64) -> Vec<(u16, Event)>), ("flash", flash)] {
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
