//! The bundle of folds, and the summary worked out of them.

use hybridsim_disk::DiskEvent;
use hybridsim_engine::event::{Times, TimesWriter};
use hybridsim_engine::{
    CommonEvent, ComponentId, ComponentInfo, Event, EventRecord, EventSink, LatencyPhase, Lba, Op,
    PowerState, SimDuration, SimTime,
};
use hybridsim_flash::event::joules::{ERASES, PROGRAMS, READS, VICTIM_SEARCH};
use hybridsim_flash::{Cause, FlashEvent};
use hybridsim_observe::spans::SpanFold;
use hybridsim_observe::{Cost, Detail, EndedBy, Ending, Finished, Label, Recorder, Warmup};

const GAP_NS: u64 = 1000;

fn nodes() -> Vec<(String, ComponentInfo)> {
    let mut watts = [0.0; PowerState::COUNT];
    watts[PowerState::Idle as usize] = 2.0;
    watts[PowerState::Write as usize] = 5.0;
    let flash = ComponentInfo {
        kind: "ssd",
        watts: Some(watts),
        operation_joules: vec![
            (READS, 1e-6),
            (PROGRAMS, 2e-6),
            (ERASES, 4e-6),
            (VICTIM_SEARCH, 3e-6),
        ],
        constants: vec![("blocks", 64.0), ("page_bytes", 4096.0), ("broken", f64::NAN)],
        custom: &["swaps"],
        always_watts: vec![("memory", 0.25)],
        idle_policies: Vec::new(),
        loses_writes: false,
    };
    let host = ComponentInfo { kind: "host", ..ComponentInfo::default() };
    vec![("host".into(), host), ("host/flash".into(), flash)]
}

fn emit(events: &mut Vec<EventRecord>, time: u64, component: u16, event: impl Event) {
    events.push(EventRecord::new(SimTime::from_ns(time), ComponentId(component), event));
}

/// `count` writes of 100 ns + `at` % 10, one every microsecond; the device idles in between.
fn events(count: u64) -> Vec<EventRecord> {
    let mut events = Vec::new();
    for at in 0..count {
        let (op, sectors, lba) = (Op::Write, 8, Lba(at * 8));
        let ns = SimDuration::from_ns;
        let (start, latency) = (at * GAP_NS, 100 + at % 10);
        emit(&mut events, start, 0, CommonEvent::Arrived { op, sectors, lba });
        let done = start + latency;
        emit(&mut events, done, 1, FlashEvent::Program { cause: Cause::Host, die: 0 });
        if at % 2 == 1 {
            emit(&mut events, done, 1, FlashEvent::Program { cause: Cause::Gc, die: 0 });
        }
        if at % 10 == 0 {
            emit(&mut events, done, 1, CommonEvent::Custom { name: 0, value: 5 });
            emit(&mut events, done, 1, FlashEvent::VictimSearch { blocks: 5 });
        }
        emit(
            &mut events,
            done,
            1,
            CommonEvent::StateTime { state: PowerState::Write, duration: ns(latency) },
        );
        emit(
            &mut events,
            done,
            0,
            CommonEvent::PhaseTime { op, phase: LatencyPhase::FlashProgram, duration: ns(latency) },
        );
        emit(
            &mut events,
            done,
            0,
            CommonEvent::Completed { op, sectors, lba, latency: ns(latency) },
        );
        let (state, time) = (PowerState::Idle, ns(GAP_NS - latency));
        emit(&mut events, start + GAP_NS, 1, CommonEvent::StateTime { state, duration: time });
    }
    events
}

fn finish(
    events: &[EventRecord],
    count: u64,
    detail: Detail,
    warmup: Warmup,
    batch: usize,
) -> Finished {
    let mut recorder = Recorder::new(nodes(), detail, warmup);
    events.chunks(batch).for_each(|events| recorder.take(events));
    let ending =
        Ending { time: SimTime::from_ns(count * GAP_NS), events: 7, by: EndedBy::Completion };
    let label = Label { title: "test".into(), ..Label::default() };
    let cost = Cost { wall_s: 0.5, peak_rss_bytes: Some(1 << 20) };
    recorder.finish(ending, label, cost, Vec::new())
}

#[test]
fn the_summary_is_worked_out_by_hand() {
    let run = finish(&events(1000), 1000, Detail::Bare, Warmup::None, 256).results;
    assert_eq!(run.violations, [""; 0]);
    assert_eq!((run.requests, run.simulated_ns, run.events), (1000, 1_000_000, 7));
    assert_eq!(run.requests_per_wall_s, Some(2000.0));
    assert_eq!(run.latency_ns.all.mean, Some(104.5));
    assert_eq!((run.latency_ns.read.count, run.latency_ns.read.mean), (0, None));
    assert_eq!(run.throughput.iops, Some(1e6));
    assert_eq!(run.throughput.bytes_per_s, Some(4096e6));
    assert_eq!(run.breakdown_ns.all["flash_program"], 104.5);
    let flash = &run.components["host/flash"];
    let programs = flash.flash.as_ref().expect("programs were reported");
    assert_eq!((programs.host_programs, programs.gc_programs), (1000, 500));
    assert_eq!(programs.write_amplification, Some(1.5));
    assert_eq!(programs.host_bytes, 1000 * 4096);
    let power = flash.power.as_ref().expect("states were reported");
    assert_eq!(power.busy_fraction, Some(0.1045));
    // 104.5 us at 5 W, 895.5 us at 2 W, 1500 programs of 2 uJ; 1 ms at 0.25 W, 500 steps of 3 uJ.
    let by = [
        ("write", 104.5e-6 * 5.0),
        ("idle", 895.5e-6 * 2.0),
        ("flash_programs", 1500.0 * 2e-6),
        ("memory", 1e-3 * 0.25),
        ("victim_search", 500.0 * 3e-6),
    ];
    for (name, joules) in by {
        assert!((power.energy_by_j[name] - joules).abs() < 1e-12, "{name}");
    }
    assert_eq!(power.energy_by_j.len(), by.len(), "{:?}", power.energy_by_j);
    let energy: f64 = by.iter().map(|(_, joules)| joules).sum();
    assert!((power.energy_j.expect("it has watts") - energy).abs() < 1e-12);
    assert_eq!(flash.constants.len(), 2, "a constant that is not finite is left out");
    assert!(run.warnings[0].contains("99.9th"), "{:?}", run.warnings);
}

#[test]
fn neither_batches_nor_detail_nor_warmup_change_the_fingerprint() {
    let events = events(300);
    let bare = finish(&events, 300, Detail::Bare, Warmup::None, 256).results;
    for batch in [1, 7, 10_000] {
        assert_eq!(finish(&events, 300, Detail::Bare, Warmup::None, batch).results, bare);
    }
    let full = finish(&events, 300, Detail::Full, Warmup::None, 256);
    assert_eq!(full.results, bare);
    let pictures = full.pictures.expect("observed in full");
    assert_eq!(pictures.series.writes.iter().sum::<u64>(), 300);
    let warm = finish(&events, 300, Detail::Bare, Warmup::Requests(100), 256).results;
    assert_eq!((warm.fingerprint, warm.events), (bare.fingerprint, bare.events));
}

#[test]
fn a_warm_up_is_left_out_to_the_event() {
    let events = events(1000);
    for batch in [1, 3, 256, 100_000] {
        let run = finish(&events, 1000, Detail::Bare, Warmup::Requests(400), batch).results;
        assert_eq!((run.requests, run.warmup.requests), (1000, 400));
        assert_eq!(run.warmup.ns, 399 * GAP_NS + 109);
        assert_eq!(run.latency_ns.all.count, 600);
        let flash = &run.components["host/flash"];
        let power = flash.power.as_ref().expect("states");
        assert_eq!(power.state_ns.values().sum::<u64>(), 1_000_000 - run.warmup.ns);
        assert_eq!(flash.flash.as_ref().expect("flash").host_programs, 600);
        // Time instead: the request that arrives at the boundary is the first one measured.
        let time = Warmup::Time(SimDuration::from_ns(400 * GAP_NS));
        let run = finish(&events, 1000, Detail::Bare, time, batch).results;
        assert_eq!((run.warmup.requests, run.warmup.ns), (400, 400 * GAP_NS));
        assert_eq!(run.throughput.iops, Some(1e6));
    }
}

#[test]
fn a_warm_up_longer_than_the_run_causes_a_warning() {
    for warmup in [Warmup::Requests(51), Warmup::Time(SimDuration::MAX)] {
        let run = finish(&events(50), 50, Detail::Full, warmup, 256).results;
        assert_eq!((run.requests, run.latency_ns.all.count), (50, 0));
        assert!(run.warnings[0].contains("nothing was measured"), "{:?}", run.warnings);
    }
}

#[test]
fn a_system_that_falls_behind_causes_a_warning() {
    // A request each microsecond that takes `service` ns of the one server.
    let warned = |service: u64, count: u64| {
        let mut recorder = Recorder::new(nodes(), Detail::Bare, Warmup::None);
        let (op, sectors, mut free) = (Op::Read, 8, 0);
        let mut events: Vec<EventRecord> = Vec::new();
        let ns = SimDuration::from_ns;
        for at in 0..count {
            let (arrival, lba) = (at * GAP_NS, Lba(at));
            emit(&mut events, arrival, 0, CommonEvent::Arrived { op, sectors, lba });
            let wait = ns(free.max(arrival) - arrival);
            free = free.max(arrival) + service;
            let latency = ns(free - arrival);
            emit(
                &mut events,
                free,
                0,
                CommonEvent::PhaseTime { op, phase: LatencyPhase::Queue, duration: wait },
            );
            emit(
                &mut events,
                free,
                0,
                CommonEvent::PhaseTime {
                    op,
                    phase: LatencyPhase::FlashRead,
                    duration: ns(service),
                },
            );
            emit(&mut events, free, 0, CommonEvent::Completed { op, sectors, lba, latency });
        }
        events.sort_by_key(|record| record.time);
        recorder.take(&events);
        let ending = Ending { time: SimTime::from_ns(free), events: 1, by: EndedBy::Completion };
        recorder.finish(ending, Label::default(), Cost::default(), Vec::new()).behind
    };
    assert_eq!(warned(900, 1000), None, "it keeps up");
    assert_eq!(warned(1_020, 1000), None, "by and large");
    let behind = warned(1_500, 1000).expect("half of the time is missing");
    assert!(behind.contains("501.000 us after") && behind.contains("time_scale"), "{behind}");
    assert_eq!(warned(1_500, 50), None, "a burst");
}

#[test]
fn a_run_of_nothing_has_no_figures_and_says_so() {
    let run = finish(&[], 0, Detail::Full, Warmup::None, 1).results;
    assert_eq!((run.throughput.iops, run.totals.write_amplification), (None, None));
    assert!(run.warnings[0].contains("no request completed"));
    let json = serde_json::to_string(&run).expect("it has only plain values");
    assert!(!json.contains("NaN") && !json.contains("inf"), "{json}");
}

#[test]
fn results_and_pictures_are_read_back_as_written() {
    let run = finish(&events(500), 500, Detail::Full, Warmup::None, 256);
    let json = serde_json::to_string(&run.results).expect("plain values");
    let back: hybridsim_observe::RunResults = serde_json::from_str(&json).expect("our own JSON");
    assert_eq!(back, run.results);
    let json = serde_json::to_string(&run.pictures).expect("plain values");
    let back: Option<hybridsim_observe::Pictures> = serde_json::from_str(&json).expect("our own");
    assert!(back == run.pictures, "pictures differ once read back");
}

/// Requests of a disk: each time by itself, or several to a record.
fn disk_requests(count: u64, packed: bool) -> Vec<EventRecord> {
    let mut events = Vec::new();
    let (op, sectors, ns) = (Op::Read, 8, SimDuration::from_ns);
    for at in 0..count {
        let (start, lba) = (at * GAP_NS, Lba(at * 50));
        let [seek, rotate, transfer] = [at % 7, 100 + at % 50, 30].map(ns);
        let latency = seek + rotate + transfer;
        let done = start + latency.as_ns();
        let rest = ns(GAP_NS) - latency;
        emit(&mut events, start, 0, CommonEvent::Arrived { op, sectors, lba });
        let phases = [
            (LatencyPhase::Seek, seek),
            (LatencyPhase::Rotate, rotate),
            (LatencyPhase::Transfer, transfer),
        ];
        let states = [
            (PowerState::Seek, seek),
            (PowerState::Active, rotate),
            (PowerState::Read, transfer),
            (PowerState::Idle, rest),
        ];
        let phases = phases.into_iter().filter(|(_, time)| !time.is_zero());
        let states = states.into_iter().filter(|(_, time)| !time.is_zero());
        let distance = at as u32 % 7;
        let plain = |node: u64, time: u64, a: u8| EventRecord {
            time: SimTime::from_ns(time),
            head: node | u64::from(a) << 24,
            ..EventRecord::default()
        };
        if packed {
            let access = DiskEvent::Access { distance, seek, rotate, transfer, sectors };
            emit(&mut events, done, 1, access);
            let plain = plain(0, done, op.code());
            let mut times = TimesWriter::new(&mut events, Times::PHASES, plain, latency);
            phases.for_each(|(phase, time)| times.add(phase as u8, time));
        } else {
            if !seek.is_zero() {
                emit(&mut events, done, 1, DiskEvent::Seek { distance, duration: seek });
            }
            emit(&mut events, done, 1, DiskEvent::Rotate { duration: rotate });
            emit(&mut events, done, 1, DiskEvent::MediaTransfer { sectors, duration: transfer });
            for (phase, duration) in phases {
                emit(&mut events, done, 0, CommonEvent::PhaseTime { op, phase, duration });
            }
        }
        emit(&mut events, done, 0, CommonEvent::Completed { op, sectors, lba, latency });
        let end = start + GAP_NS;
        if packed {
            let plain = plain(1, end, 0);
            let mut times = TimesWriter::new(&mut events, Times::STATES, plain, ns(GAP_NS));
            states.for_each(|(state, time)| times.add(state as u8, time));
        } else {
            for (state, duration) in states {
                emit(&mut events, end, 1, CommonEvent::StateTime { state, duration });
            }
        }
    }
    events
}

#[test]
fn several_times_in_a_record_count_as_one_by_one() {
    let (single, packed) = (disk_requests(300, false), disk_requests(300, true));
    assert!(packed.len() * 3 < single.len() * 2, "{} {}", packed.len(), single.len());
    // It ends within a report of states.
    let within = SimDuration::from_ns(100 * GAP_NS + 60);
    let warmups = [Warmup::None, Warmup::Requests(100), Warmup::Time(within)];
    for (warmup, detail) in
        warmups.into_iter().flat_map(|it| [(it, Detail::Bare), (it, Detail::Full)])
    {
        let [one, mut other] =
            [&single, &packed].map(|events| finish(events, 300, detail, warmup, 64));
        assert_eq!(one.results.violations, [""; 0]);
        assert_ne!(one.results.fingerprint, other.results.fingerprint);
        other.results.fingerprint = one.results.fingerprint.clone();
        other.results.event_records = one.results.event_records;
        assert_eq!(one, other, "{warmup:?} {detail:?}");
    }
    let [one, other] = [&single, &packed].map(|events| {
        let mut spans = SpanFold::new(50 * GAP_NS, 70 * GAP_NS, 10_000);
        spans.take(events);
        spans.finish()
    });
    assert!(one.len() > 60, "{}", one.len());
    assert_eq!(one, other);
}
