//! What the hybrid disk does with single requests: konanki, figures 4.8 and 4.9.

mod common;

use common::heard::heard;
use common::{cleanup, count, entry_choice, hybrid_disk, registry, settings, threshold};
use hybridsim_cache::CacheEvent;
use hybridsim_config::param::{Settings, Value};
use hybridsim_conformance::Rig;
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{
    Arrival, Component, ComponentId, ComponentTree, EventRecord, Flags, LatencyPhase, Lba, Machine,
    Op, PowerFailureInjector, Request, SimDuration, SimTime, Stream, source::ListSource,
};
use hybridsim_host::{Host, HostOptions};

const FLASH_US: u64 = 100;
const DISK_US: u64 = 10_000;

/// Runs requests (time in us, request) over flash of `flash_pages` pages of 8 sectors that takes
/// 100 us and a disk that takes 10 ms, both with any number of requests at a time.
fn run(settings: &Settings, flash_pages: u64, requests: &[(u64, Request)]) -> Vec<EventRecord> {
    let registry = registry();
    let children = [flash_pages * 8, 100_000];
    let rig =
        Rig { entry: hybrid_disk(), settings, registry: &registry, children: &children, seed: 0 };
    let device =
        |capacity, us| ConstantDevice::new(Timing::fixed(capacity, SimDuration::from_us(us)));
    let arrivals =
        requests.iter().map(|&(us, request)| Arrival { at: SimTime::from_ns(us * 1000), request });
    let host = Host::plain(HostOptions::open(64), ListSource::new(arrivals.collect()));
    let component: Box<dyn Component> = rig.build().expect("fine");
    let children = vec![
        ComponentTree::leaf("flash", device(children[0], FLASH_US)),
        ComponentTree::leaf("disk", device(children[1], DISK_US)),
    ];
    let hybrid = ComponentTree { path: "hybrid".into(), component, children };
    let mut events = Vec::new();
    Machine::new(ComponentTree::inner("host", host, vec![hybrid]), true)
        .run(&mut events, &mut |_| true)
        .expect("runs");
    events
}

fn read(page: u64, pages: u32) -> Request {
    Request::new(Op::Read, Lba(page * 8), pages * 8)
}

fn write(page: u64, pages: u32) -> Request {
    Request::new(Op::Write, Lba(page * 8), pages * 8)
}

/// Latencies in us, in order of completion.
fn latencies(events: &[EventRecord]) -> Vec<u64> {
    let latency = |record: &EventRecord| match record.event() {
        Some(CommonEvent::Completed { latency, .. }) => Some(latency.as_ns() / 1000),
        _ => None,
    };
    events.iter().filter_map(latency).collect()
}

/// Total time of one part, in us.
fn spent(events: &[EventRecord], wanted: LatencyPhase) -> u64 {
    let phases = events.iter().filter_map(EventRecord::event).flat_map(CommonEvent::phases);
    phases.filter(|(phase, _)| *phase == wanted).map(|(_, time)| time.as_ns() / 1000).sum()
}

#[test]
fn small_writes_go_to_flash_and_are_read_from_there() {
    let events = run(&settings(8), 100, &[(0, write(7, 2)), (200, read(7, 2)), (400, read(3, 1))]);
    assert_eq!(latencies(&events), [FLASH_US, FLASH_US, DISK_US]);
    let lookups: Vec<_> = events
        .iter()
        .filter_map(|record| match record.event() {
            Some(CacheEvent::CacheLookup { op, hits, misses }) => Some((op, hits, misses)),
            _ => None,
        })
        .collect();
    assert_eq!(lookups, [(Op::Write, 0, 2), (Op::Read, 2, 0), (Op::Read, 0, 1)]);
    // ComponentTree 1 is the hybrid: host, hybrid, flash, disk.
    assert!(events.iter().any(|record| {
        record.component() == ComponentId(1)
            && record.event() == Some(CacheEvent::DirtyPages { pages: 2 })
    }));
}

#[test]
fn a_read_of_both_media_takes_as_long_as_the_slower() {
    let events = run(&settings(8), 100, &[(0, write(7, 1)), (200, read(6, 3))]);
    assert_eq!(latencies(&events), [FLASH_US, DISK_US]);
}

#[test]
fn a_busy_controller_lets_requests_wait() {
    let requests = [(0, read(500, 1)), (1, write(7, 1)), (2, read(7, 1))];
    let at_once = run(&settings(8), 100, &requests);
    assert_eq!(latencies(&at_once), [FLASH_US, 2 * FLASH_US - 1, DISK_US]);
    let busy = settings(8).and("queue_depth", Value::Count(1));
    let events = run(&busy, 100, &requests);
    assert_eq!(latencies(&events), [DISK_US, DISK_US + FLASH_US - 1, DISK_US + 2 * FLASH_US - 2]);
    assert_eq!(spent(&events, LatencyPhase::Queue), 2 * DISK_US + FLASH_US - 3);
}

#[test]
fn large_writes_go_round_unless_part_of_them_is_cached() {
    let settings = settings(8).and("admission", threshold(31));
    let bypassed = |events: &[EventRecord]| {
        count(events, |event| {
            matches!(event.event(), Some(CacheEvent::Bypassed { op: Op::Write, sectors: 32 }))
        })
    };
    let events = run(&settings, 100, &[(0, write(7, 4)), (20_000, read(7, 4))]);
    assert_eq!((latencies(&events), bypassed(&events)), (vec![DISK_US, DISK_US], 1));
    let events = run(&settings, 100, &[(0, write(8, 1)), (200, write(7, 4)), (400, read(7, 4))]);
    assert_eq!((latencies(&events), bypassed(&events)), (vec![FLASH_US; 3], 0));
    // One sector less is not large.
    let almost = Request::new(Op::Write, Lba(56), 31);
    assert_eq!(latencies(&run(&settings, 100, &[(0, almost)])), [FLASH_US]);
}

#[test]
fn a_full_cache_is_cleaned_completely_while_everybody_waits() {
    let mut requests: Vec<_> = (0..10).map(|page| (page * 200, write(page * 50, 1))).collect();
    requests.push((5000, write(999, 1)));
    requests.push((5001, read(0, 1)));
    let events = run(&settings(8), 10, &requests);
    // Ten runs, eight at a time: two rounds of flash and disk, then the writes.
    let cleaning = 2 * (FLASH_US + DISK_US);
    assert_eq!(latencies(&events)[10], cleaning + FLASH_US);
    assert_eq!(latencies(&events)[11], cleaning - 1 + DISK_US, "the read waits, too");
    assert_eq!(spent(&events, LatencyPhase::Destage), 2 * cleaning - 1);
    assert_eq!(count(&events, |event| event.event() == Some(CacheEvent::CleanupStarted)), 1);
    assert_eq!(
        count(&events, |event| event.event() == Some(CacheEvent::CleanupEnded { pages: 10 })),
        1
    );
    assert_eq!(
        count(&events, |event| event.event() == Some(CacheEvent::Destaged { sectors: 8 })),
        10
    );
}

#[test]
fn neighbouring_pages_are_written_back_as_one_run() {
    let mut requests: Vec<_> = [5, 2, 4, 9, 3].map(|page| (0, write(page, 1))).to_vec();
    // Half of page 6: only its sectors that were written are written back.
    requests.push((0, Request::new(Op::Write, Lba(48), 4)));
    requests.push((1000, write(500, 1)));
    let events = run(&settings(8), 6, &requests);
    let destaged = |wanted| {
        count(&events, |event| event.event() == Some(CacheEvent::Destaged { sectors: wanted }))
    };
    assert_eq!((destaged(36), destaged(8)), (1, 1));
}

#[test]
fn partial_cleaning_waits_less_than_complete_cleaning() {
    let worst = |policy: &str| {
        let settings =
            settings(8).and("cleanup", cleanup(policy)).and("destage_depth", Value::Count(1));
        let writes: Vec<_> = (0..200).map(|at| (at * 20_000, write(at * 97 % 5000, 1))).collect();
        *latencies(&run(&settings, 20, &writes)).iter().max().expect("completed")
    };
    let complete = worst("on-demand-complete");
    let partial = worst("on-demand-partial");
    let watermark = worst("low-watermark");
    let idle = worst("idle-periodic");
    assert_eq!(complete, 20 * (FLASH_US + DISK_US) + FLASH_US);
    assert_eq!(partial, FLASH_US + DISK_US + FLASH_US, "the first page is enough");
    assert_eq!((watermark, idle), (FLASH_US, FLASH_US), "cleaned before it was needed");
}

#[test]
fn cleanup_may_begin_before_flash_is_full() {
    let cleanups = |free_min: f64| {
        let policy = Settings::default().and("free_min", Value::Number(free_min));
        let settings = settings(8).and("cleanup", entry_choice("on-demand-complete", policy));
        let writes: Vec<_> = (0..20).map(|at| (at * 100_000, write(at * 10, 1))).collect();
        let events = run(&settings, 20, &writes);
        count(&events, |event| event.event() == Some(CacheEvent::CleanupStarted))
    };
    assert_eq!(cleanups(0.0), 0, "twenty pages fit");
    assert_eq!(cleanups(0.5), 1, "after ten");
    assert_eq!(cleanups(1.0), 19, "before each but the first, of an empty cache");
}

#[test]
fn pinned_pages_stay() {
    let pinned = Request { flags: Flags::PIN, ..write(3, 2) };
    let mut requests = vec![(0, pinned)];
    requests.extend((0..40).map(|at| (1000 + at * 50_000, write(100 + at * 10, 1))));
    requests.push((9_000_000, read(3, 2)));
    for policy in ["on-demand-complete", "on-demand-partial", "low-watermark", "idle-periodic"] {
        let events = run(&settings(8).and("cleanup", cleanup(policy)), 8, &requests);
        assert_eq!(latencies(&events).last(), Some(&FLASH_US), "{policy}");
    }
    // When all pages are pinned, writes bypass.
    let all = Request { flags: Flags::PIN, ..write(3, 8) };
    let events = run(&settings(8), 8, &[(0, all), (1000, write(50, 1)), (20_000, read(3, 8))]);
    assert_eq!(latencies(&events), [FLASH_US, DISK_US, FLASH_US]);
}

#[test]
fn a_write_larger_than_the_cache_goes_round() {
    let events =
        run(&settings(8), 4, &[(0, write(2, 1)), (1000, write(0, 20)), (20_000, read(2, 1))]);
    assert_eq!(latencies(&events), [FLASH_US, DISK_US, FLASH_US]);
}

#[test]
fn trims_forget_and_flushes_reach_both_media() {
    let trim = Request::new(Op::Trim, Lba(56), 16);
    let flush = Request::new(Op::Flush, Lba(0), 0);
    let events = run(
        &settings(8),
        100,
        &[(0, write(7, 2)), (200, trim), (20_000, read(7, 2)), (40_000, flush)],
    );
    assert_eq!(latencies(&events), [FLASH_US, DISK_US, DISK_US, DISK_US]);
    assert_eq!(
        count(&events, |event| event.event() == Some(CacheEvent::DirtyPages { pages: 0 })),
        1
    );
}

#[test]
fn all_wrong_parameters_are_reported() {
    let registry = registry();
    let problems = |settings: &Settings, children: &[u64]| {
        let rig = Rig { entry: hybrid_disk(), settings, registry: &registry, children, seed: 0 };
        rig.build().err().unwrap_or_default()
    };
    assert_eq!(problems(&settings(8), &[8, 8]), "");
    assert!(problems(&settings(65), &[800, 800]).contains("page_size: must be a multiple of 512"));
    assert!(problems(&settings(0), &[800, 800]).contains("page_size"));
    let tiny = settings(8).and("destage_bytes", Value::Bytes(512));
    let both = problems(&tiny, &[7, 800]);
    assert!(both.contains("flash: has 0 pages") && both.contains("destage_bytes"), "{both}");
    assert!(problems(&settings(1), &[u64::MAX, 800]).contains("flash: has"));
    let marks = Settings::default().and("low", Value::Number(0.5)).and("high", Value::Number(0.1));
    let marks = settings(8).and("cleanup", common::entry_choice("low-watermark", marks));
    assert!(problems(&marks, &[80, 800]).contains("high: must not be less"));
}

#[test]
fn what_policies_know_is_lost_with_the_power() {
    const SECOND: u64 = 1_000_000;
    let registry = registry();
    let remembered = Settings::default().and("remembered", Value::Count(1000));
    let settings = settings(8).and("admission", entry_choice("second-touch", remembered));
    let children = [8_000, 100_000];
    let rig = Rig {
        entry: hybrid_disk(),
        settings: &settings,
        registry: &registry,
        children: &children,
        seed: 0,
    };
    // Every page is written twice, a hundred seconds apart.
    let at = |second: u64| SimTime::from_ns(second * SECOND * 1000);
    let arrivals =
        (0..200).map(|second| Arrival { at: at(second), request: write(second % 100, 1) });
    let host = Host::plain(HostOptions::open(64), ListSource::new(arrivals.collect()));
    let component: Box<dyn Component> = rig.build().expect("fine");
    let (flash, _) = heard("flash", children[0], FLASH_US);
    let (disk, _) = heard("disk", children[1], DISK_US);
    let hybrid = ComponentTree { path: "hybrid".into(), component, children: vec![flash, disk] };
    let mut machine = Machine::new(ComponentTree::inner("host", host, vec![hybrid]), true);
    machine.fail_power(PowerFailureInjector::new(300, 1, Stream::new(1, "cut")));
    let mut events = Vec::new();
    machine.run(&mut events, &mut |_| true).expect("runs");
    let cut =
        events.iter().find(|record| matches!(record.event(), Some(CommonEvent::PowerCut { .. })));
    let cut = cut.expect("it failed").time;
    let round = |second| {
        let is = |record: &EventRecord| record.time == at(second);
        events
            .iter()
            .any(|record| is(record) && matches!(record.event(), Some(CacheEvent::Bypassed { .. })))
    };
    let (mut forgotten, mut known) = (0, 0);
    for second in 100..200 {
        if at(second - 100) < cut && cut < at(second) {
            assert!(round(second), "the write at {second} s, after the failure at {cut}");
            forgotten += 1;
        } else if cut < at(second - 100) {
            assert!(!round(second), "the write at {second} s");
            known += 1;
        }
    }
    assert!(forgotten > 10 && known > 10, "{forgotten}, {known}");
}
