//! Shingled disks: every read returns what was written, and times and amounts of cleaning are those
//! that follow from the parameters.

mod common;

use common::{Root, registry};
use hybridsim_config::check;
use hybridsim_config::param::Settings;
use hybridsim_conformance::zones::ZoneRig;
use hybridsim_conformance::{Checked, Load, Rig};
use hybridsim_disk::constant::{ConstantDevice, Timing};
use hybridsim_disk::smr::ENTRY;
use hybridsim_engine::zone_table::ZoneStatus;
use hybridsim_engine::{
    CommonEvent, Completion, Component, ComponentTree, EventRecord, Flags, Lba, Machine, Op,
    Request, SimDuration, Stream, ZoneAction, ZoneState,
};
use std::cell::RefCell;
use std::rc::Rc;

/// Sectors of the device below.
const DEVICE: u64 = 4_000;
/// Sectors of a band or zone in these tests.
const BAND: u64 = 256;
const CACHE: &str = "cache_size = \"160KiB\", cache_header = \"4KiB\", clean_step = \"48KiB\", \
                     recovery_read = \"32KiB\"";

fn settings(management: &str) -> Settings {
    let text = format!("device = \"disk\"\nmanagement = {{ {management} }}\n");
    let settings = check::read(&text, &[ENTRY.description.params], &registry());
    settings.unwrap_or_else(|problems| panic!("{problems}"))
}

fn drive_managed(more: &str) -> Settings {
    settings(&format!(
        "kind = \"drive-managed\", band_size = \"128KiB\", stream_min = \"8KiB\", {CACHE}{more}"
    ))
}

fn zoned(kind: &str, more: &str) -> Settings {
    settings(&format!("kind = \"{kind}\", zone_size = \"128KiB\"{more}"))
}

fn host_aware(more: &str) -> Settings {
    zoned("host-aware", &format!(", {CACHE}{more}"))
}

/// Sum of a statistic, and how often it was reported.
fn sum(events: &[EventRecord], component: &dyn Component, name: &str) -> (u64, u64) {
    let names = component.info().custom;
    let number = names.iter().position(|it| *it == name).expect("it is declared");
    let values = events.iter().filter_map(|record| match record.event() {
        Some(CommonEvent::Custom { name, value }) if usize::from(name) == number => Some(value),
        _ => None,
    });
    values.fold((0, 0), |(sum, count), value| (sum + value, count + 1))
}

/// Random loads with sequences among them, as fast as possible and in bursts with pauses.
fn check_all(settings: &Settings, every: Option<u64>) -> Vec<Checked> {
    let registry = registry();
    let mut all = Vec::new();
    for (seed, depth) in [(1, 1), (2, 4), (3, 32)] {
        let rig = Rig { entry: &ENTRY, settings, registry: &registry, children: &[DEVICE], seed };
        let load = Load { requests: 1500, sectors_max: 200, seed };
        let checked = match every {
            None => {
                let sequences = sequences(seed, rig.build().expect("it fits").capacity());
                all.push(rig.check(&sequences, depth).expect("sequences conform"));
                all.push(rig.check_bursts(&sequences, depth).expect("sequences conform"));
                rig.check_random(&load, depth)
            }
            Some(every) => rig.check_power_cuts(&load, depth, (every, 50)),
        };
        all.push(checked.unwrap_or_else(|problem| panic!("{problem}")));
    }
    all
}

/// Writes that continue each other for a while, between others.
fn sequences(seed: u64, capacity: u64) -> Vec<Request> {
    let mut stream = Stream::new(seed, "sequences");
    let (mut all, mut next) = (Vec::new(), 0);
    for _ in 0..1500 {
        if stream.chance(0.03) {
            next = stream.below(capacity / BAND) * BAND;
        }
        let op = if stream.chance(0.8) { Op::Write } else { Op::Read };
        let length = 8 * (1 + stream.below(12));
        if stream.chance(0.2) {
            let lba = stream.below(capacity - length);
            all.push(Request::new(op, Lba(lba), length as u32));
        } else {
            let length = length.min(capacity - next);
            all.push(Request::new(op, Lba(next), length as u32));
            next = (next + length * u64::from(op == Op::Write)) % capacity;
        }
    }
    all
}

#[test]
fn every_management_returns_what_was_written() {
    let small = ", cache_records = 7, clean_after = \"3ms\"";
    let all = [
        drive_managed(""),
        drive_managed(small),
        drive_managed(", precondition_fill = 0.3, streams = 1, clean_after = \"1ms\""),
        host_aware(""),
        host_aware(&format!("{small}, conventional_zones = 2, max_open_zones = 1")),
        zoned("host-managed", ", conventional_zones = 3, max_open_zones = 2"),
        zoned("host-managed", ", precondition_fill = 0.5"),
    ];
    let mut cleaned = 0;
    for (at, settings) in all.iter().enumerate() {
        let rig =
            Rig { entry: &ENTRY, settings, registry: &registry(), children: &[DEVICE], seed: 1 };
        let component = rig.build().expect("it fits");
        let checked = check_all(settings, None);
        let of = |name| checked.iter().map(|it| sum(&it.events, &*component, name).1).sum::<u64>();
        let (direct, cached) = (of("direct_bytes"), of("cached_bytes"));
        assert!(direct > 50, "{at}: {direct}");
        assert_eq!(cached > 1_000, at < 5, "{at}: {cached}");
        cleaned += of("cleaned_bytes");
    }
    assert!(cleaned > 1_000, "{cleaned}");
}

#[test]
fn a_host_aware_disk_returns_what_was_written_beside_resets() {
    let settings = host_aware(", cache_records = 20, clean_after = \"1ms\"");
    let registry = registry();
    for (seed, depth) in [(1, 1), (2, 4), (3, 32)] {
        let mut stream = Stream::new(seed, "resets");
        let rig = Rig {
            entry: &ENTRY,
            settings: &settings,
            registry: &registry,
            children: &[DEVICE],
            seed,
        };
        let mut requests = sequences(seed, DEVICE / BAND * BAND - 2 * BAND);
        for request in &mut requests {
            if stream.chance(0.05) {
                *request = zone(ZoneAction::Reset, stream.below(10));
            }
        }
        rig.check(&requests, depth).unwrap_or_else(|problem| panic!("{problem}"));
        rig.check_bursts(&requests, depth).unwrap_or_else(|problem| panic!("{problem}"));
    }
}

#[test]
fn acknowledged_writes_survive_power_failures() {
    let short = ", cache_records = 20, clean_after = \"1ms\"";
    for settings in [
        drive_managed(short),
        drive_managed(", precondition_fill = 0"),
        host_aware(short),
        zoned("host-managed", ", conventional_zones = 4"),
    ] {
        for every in [30, 300] {
            check_all(&settings, Some(every));
        }
    }
}

/// Latency of every request of the device below, whose rate is a sector per microsecond.
const LATENCY: SimDuration = SimDuration::from_ms(5);

/// Serves requests one by one, each this long after the one before.
fn serve(
    settings: &Settings,
    work: Vec<(SimDuration, Request)>,
) -> (Vec<Completion>, Vec<EventRecord>, Box<dyn Component>) {
    let build = || {
        let registry = registry();
        Rig { entry: &ENTRY, settings, registry: &registry, children: &[DEVICE], seed: 1 }
            .build()
            .unwrap_or_else(|problem| panic!("{problem}"))
    };
    let device = ConstantDevice::new(Timing {
        rate: 512_000_000,
        queue_depth: 1,
        ..Timing::fixed(DEVICE, LATENCY)
    });
    let disk = ComponentTree {
        path: "disk".into(),
        component: build(),
        children: vec![ComponentTree::leaf("disk/child", device)],
    };
    let done = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&done);
    let (mut next, mut waits) = (0, true);
    let script = move |ctx: &mut hybridsim_engine::Ctx<'_>, ended: Option<&Completion>| {
        seen.borrow_mut().extend(ended);
        match work.get(next) {
            None => ctx.halt(),
            Some((wait, _)) if waits => {
                waits = false;
                ctx.wake_after(*wait, 0);
            }
            Some((_, request)) => {
                (waits, next) = (true, next + 1);
                ctx.issue(0, *request, 0);
            }
        }
    };
    let root = ComponentTree::inner("root", Root(Box::new(script)), vec![disk]);
    let mut events = Vec::new();
    Machine::new(root, false).run(&mut events, &mut |_| true).expect("a good run");
    let done = done.borrow().clone();
    (done, events, build())
}

fn write(lba: u64, sectors: u32) -> Request {
    Request::new(Op::Write, Lba(lba), sectors)
}

fn us(us: u64) -> SimDuration {
    SimDuration::from_us(us)
}

/// Random writes with a full cache: `k` writes to each of the bands, in turn, so that each cleaning
/// reads and writes a band for `k` writes. All times follow from the parameters.
#[test]
fn the_steady_state_of_random_writes_is_a_band_read_and_written_per_cleaning() {
    let (bands, k, sectors) = (10, 4, 8);
    let settings = settings(&format!(
        "kind = \"drive-managed\", band_size = \"128KiB\", cache_size = \"512KiB\", \
         cache_records = {}, clean_step = \"128KiB\", clean_after = \"1000s\"",
        bands * k
    ));
    let mut work = Vec::new();
    for round in 0..20 {
        let each = (0..bands).map(|band| write(band * BAND + round % k * 16, sectors));
        work.extend(each.map(|request| (SimDuration::ZERO, request)));
    }
    let (done, events, disk) = serve(&settings, work);
    assert!(done.iter().all(|it| !it.failed()));
    let of = |name| sum(&events, &*disk, name);
    let (merged, cleanings) = of("cleaned_bytes");
    assert!(cleanings >= 4 * bands, "{cleanings}");
    let band = BAND * 512;
    // A band is full of its own k writes when it is cleaned.
    assert_eq!(merged, cleanings * k * u64::from(sectors) * 512);
    assert_eq!(of("cleaning_write_bytes").0, cleanings * band);
    assert_eq!(of("cleaning_read_bytes").0, cleanings * band + merged);
    let step = |sectors: u64| LATENCY + us(sectors);
    let time = step(BAND) + step(BAND) + step(u64::from(sectors)) * k;
    assert_eq!(of("cleaning_us").0, cleanings * time.as_ns() / 1_000);
    // Every k-th write, once the cache is full, waits for a cleaning.
    let slow = done.iter().filter(|it| it.latency > time).count() as u64;
    assert_eq!(slow, cleanings);
    let amplification = of("cleaning_write_bytes").0 as f64 / merged as f64;
    assert!((amplification - (BAND / (k * u64::from(sectors))) as f64).abs() < 1e-9);
}

#[test]
fn an_idle_disk_cleans_until_a_request_arrives() {
    let settings = drive_managed(", clean_after = \"500ms\"");
    let mut work: Vec<_> = (0..5).map(|band| (us(0), write(band * BAND, 8))).collect();
    work.push((SimDuration::from_ms(540), write(9 * BAND, 8)));
    let (_, events, disk) = serve(&settings, work.clone());
    let some = sum(&events, &*disk, "cleaned_bytes");
    assert_eq!(some, (4096, 1), "the first step of a band takes 5.1 ms, the others follow");
    work.push((SimDuration::from_s(5), Request::new(Op::Read, Lba(0), 8)));
    let (_, events, disk) = serve(&settings, work);
    assert_eq!(sum(&events, &*disk, "cleaned_bytes"), (6 * 4096, 6));
    assert_eq!(sum(&events, &*disk, "stalled_writes").1, 0);
}

#[test]
fn streams_bypass_the_cache_and_a_stream_that_ends_early_is_repaired() {
    let settings = drive_managed(", clean_after = \"500ms\"");
    // 16 sectors make a stream, which enters the first band that it reaches the start of.
    let stream = |from: u64, to: u64| (from..to).step_by(16).map(|lba| (us(0), write(lba, 16)));
    let (_, events, disk) = serve(&settings, stream(0, 3 * BAND).collect());
    assert_eq!(sum(&events, &*disk, "direct_bytes").0, 3 * BAND * 512);
    assert_eq!(sum(&events, &*disk, "cached_bytes").0, 0);
    let mut work: Vec<_> = stream(BAND, BAND + 64).collect();
    work.push((SimDuration::from_s(2), Request::new(Op::Read, Lba(0), 8)));
    let (_, events, disk) = serve(&settings, work);
    assert_eq!(sum(&events, &*disk, "cleaning_write_bytes"), (BAND * 512, 1));
    assert_eq!(sum(&events, &*disk, "cleaned_bytes").0, 0);
    // A new disk has nothing to repair.
    let settings = drive_managed(", clean_after = \"500ms\", precondition_fill = 0");
    let mut work: Vec<_> = stream(BAND, BAND + 64).collect();
    work.push((SimDuration::from_s(2), Request::new(Op::Read, Lba(0), 8)));
    let (_, events, disk) = serve(&settings, work);
    assert_eq!(sum(&events, &*disk, "cleaning_write_bytes").1, 0);
}

/// Statuses of failed requests, by request.
fn statuses(settings: &Settings, requests: &[Request]) -> Vec<Option<&'static str>> {
    let work: Vec<_> = requests.iter().map(|it| (us(1), *it)).collect();
    let (done, events, _) = serve(settings, work);
    let mut found = events.iter().filter_map(|record| match record.event() {
        Some(CommonEvent::Custom { name, .. }) => ZoneStatus::NAMES.get(usize::from(name)).copied(),
        _ => None,
    });
    let statuses = done.iter().map(|it| it.refused.then(|| found.next().expect("it is reported")));
    statuses.collect()
}

fn zone(action: ZoneAction, zone: u64) -> Request {
    Request::new(Op::Zone(action), Lba(zone * BAND), BAND as u32)
}

#[test]
fn a_host_managed_disk_refuses_what_its_zones_do_not_allow() {
    let settings = zoned("host-managed", ", conventional_zones = 2, max_open_zones = 1");
    let append = Request { flags: Flags::APPEND, ..write(3 * BAND, 8) };
    let at = |within: u64| write(2 * BAND + within, 8);
    let found = statuses(
        &settings,
        &[
            write(100, 3),
            at(8),
            at(0),
            at(8),
            at(0),
            write(2 * BAND + 16, 4),
            write(3 * BAND - 8, 16),
            write(BAND - 8, 16),
            append,
            zone(ZoneAction::Reset, 1),
            Request::new(Op::Zone(ZoneAction::Reset), Lba(2 * BAND), 8),
            zone(ZoneAction::Open, 2),
            write(3 * BAND, 8),
            zone(ZoneAction::Close, 2),
            write(3 * BAND, 8),
            zone(ZoneAction::Finish, 2),
            at(16),
            zone(ZoneAction::Open, 2),
            zone(ZoneAction::Reset, 2),
            at(0),
        ],
    );
    let expected = [
        None,
        Some("zone_invalid_write"),
        None,
        None,
        Some("zone_invalid_write"),
        Some("invalid_field"),
        Some("zone_boundary_error"),
        None, // from one conventional zone into the next
        Some("invalid_field"),
        Some("invalid_field"),
        Some("invalid_field"),
        None,
        Some("too_many_open_zones"),
        None,
        None,
        None,
        Some("zone_is_full"),
        Some("invalid_zone_state_transition"),
        None,
        None,
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_host_aware_disk_writes_in_order_directly_and_takes_all_other_writes() {
    let settings = host_aware(", conventional_zones = 1, clean_after = \"100s\"");
    let requests = [
        write(5, 3),             // conventional
        write(BAND, 8),          // at the write pointer
        write(BAND + 8, 8),      // again
        write(BAND, 8),          // not in order
        write(2 * BAND - 8, 16), // not in order, and at the write pointer
        zone(ZoneAction::Reset, 1),
        write(BAND, 8),
    ];
    let (done, events, disk) = serve(&settings, requests.map(|it| (us(0), it)).to_vec());
    assert!(done.iter().all(|it| !it.failed()));
    assert_eq!(sum(&events, &*disk, "direct_bytes"), (35 * 512, 5));
    assert_eq!(sum(&events, &*disk, "cached_bytes"), (16 * 512, 2));
    let layout = disk.zones().expect("it has zones").layout();
    assert_eq!((layout.first, layout.size, layout.in_order_only), (BAND, BAND, false));
}

#[test]
fn impossible_sizes_are_reported() {
    let registry = registry();
    let problem = |settings: &Settings, device: u64| {
        let rig =
            Rig { entry: &ENTRY, settings, registry: &registry, children: &[device], seed: 1 };
        rig.build().err().expect("it is impossible")
    };
    let odd = settings("kind = \"drive-managed\", band_size = \"5000B\", cache_size = \"1KiB\"");
    let message = problem(&odd, DEVICE);
    assert!(message.contains("band_size") && message.contains("cache_size"), "{message}");
    assert!(problem(&drive_managed(""), 300).contains("use a larger device"));
    let header =
        settings("kind = \"drive-managed\", cache_size = \"3TiB\", cache_header = \"2TiB\"");
    assert!(problem(&header, DEVICE).contains("cache_header"));
    let none = zoned("host-managed", ", conventional_zones = 15");
    assert!(problem(&none, DEVICE).contains("at least 16"));
    let huge = settings("kind = \"host-managed\", zone_size = \"4TiB\"");
    assert!(problem(&huge, DEVICE).contains("zone_size"));
}

/// Zones over a device that writes in order of arrival, and may lose writes in flight at a power
/// failure.
fn zone_rig(more: &str) -> ZoneRig {
    let (settings, registry) = (zoned("host-managed", more), registry());
    let rig = Rig {
        entry: &ENTRY,
        settings: &settings,
        registry: &registry,
        children: &[DEVICE],
        seed: 1,
    };
    let device = ConstantDevice::new(Timing { queue_depth: 1, ..Timing::fixed(DEVICE, us(300)) });
    let system = ComponentTree {
        path: "host/disk".into(),
        component: rig.build().expect("it fits"),
        children: vec![ComponentTree::leaf("host/disk/child", device)],
    };
    ZoneRig::new(system, true).expect("it has zones").without_appends()
}

#[test]
fn zones_conform_to_the_reference_model() {
    use ZoneState::{Closed, Empty, ExplicitlyOpen, Full, ImplicitlyOpen};
    for state in [Empty, ImplicitlyOpen, ExplicitlyOpen, Closed, Full] {
        for action in ZoneAction::ALL.map(Some).into_iter().chain([None]) {
            let checked = zone_rig("").check_transition(state, action);
            checked.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    for seed in 0..20 {
        let mut rig = zone_rig(", conventional_zones = 2, max_open_zones = 2");
        rig.check_random(seed, 400).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Issues all requests at once; returns how they ended, in the order of the requests.
fn serve_together(settings: &Settings, work: Vec<Request>) -> Vec<Completion> {
    let registry = registry();
    let rig = Rig { entry: &ENTRY, settings, registry: &registry, children: &[DEVICE], seed: 1 };
    let disk = ComponentTree {
        path: "disk".into(),
        component: rig.build().expect("it fits"),
        children: vec![ComponentTree::leaf(
            "disk/child",
            ConstantDevice::new(Timing::fixed(DEVICE, LATENCY)),
        )],
    };
    let done = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&done);
    let script = move |ctx: &mut hybridsim_engine::Ctx<'_>, ended: Option<&Completion>| {
        match ended {
            None => {
                for (tag, request) in (0..).zip(&work) {
                    ctx.issue(0, *request, tag);
                }
            }
            Some(ended) => seen.borrow_mut().push(*ended),
        }
        if seen.borrow().len() == work.len() {
            ctx.halt();
        }
    };
    let root = ComponentTree::inner("root", Root(Box::new(script)), vec![disk]);
    Machine::new(root, false).run(&mut Vec::new(), &mut |_| true).expect("a good run");
    let mut done = done.borrow().clone();
    done.sort_by_key(|it| it.tag);
    done
}

#[test]
fn writes_in_order_are_not_refused_beside_a_read_across_the_write_pointer() {
    let read = Request::new(Op::Read, Lba(0), 16);
    let work = vec![write(0, 8), read, write(8, 8), write(16, 8)];
    let done = serve_together(&zoned("host-managed", ""), work);
    assert!(done.iter().all(|it| !it.failed()), "{done:?}");
}

#[test]
fn a_torn_band_is_repaired_although_another_stream_appends_to_it() {
    let settings = drive_managed(", clean_after = \"500ms\", precondition_fill = 0");
    let stream = |from: u64, to: u64| (from..to).step_by(16).map(|lba| (us(0), write(lba, 16)));
    let mut work: Vec<_> = stream(BAND, BAND + 128).chain(stream(BAND, BAND + 32)).collect();
    work.push((us(0), write(BAND + 128, 16)));
    work.push((SimDuration::from_s(2), Request::new(Op::Read, Lba(0), 8)));
    let (_, events, disk) = serve(&settings, work);
    assert_eq!(sum(&events, &*disk, "cached_bytes").0, 0);
    assert_eq!(sum(&events, &*disk, "cleaning_write_bytes"), (144 * 512, 1));
}

#[test]
fn streams_are_found_among_as_many_others_as_the_drive_follows() {
    // Two sequences in turn, each a stream from its second write on.
    let work = || (0..16).flat_map(|at| [0, BAND].map(|from| (us(0), write(from + at * 8, 8))));
    for (streams, direct) in [(1, 0), (2, 2 * 15)] {
        let settings = drive_managed(&format!(", streams = {streams}, precondition_fill = 0"));
        let (_, events, disk) = serve(&settings, work().collect());
        assert_eq!(sum(&events, &*disk, "direct_bytes").1, direct);
    }
}

#[test]
fn the_log_is_read_after_a_power_failure_unless_nothing_of_it_has_to_be() {
    for (size, recovers) in [("0KiB", false), ("32KiB", true)] {
        let settings = settings(&format!(
            "kind = \"host-aware\", zone_size = \"128KiB\", cache_size = \"160KiB\", \
             recovery_read = \"{size}\""
        ));
        let is_end = |it: &EventRecord| matches!(it.event(), Some(CommonEvent::Recovered { .. }));
        let all = check_all(&settings, Some(300));
        assert_eq!(all.iter().any(|it| it.events.iter().any(is_end)), recovers, "{size}");
    }
}
