use super::*;
use hybridsim_config::param::{Settings, Value};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Positioner, Queued, Scheduler};
use hybridsim_engine::{Flags, Lba, Op, Request, SimDuration, SimTime, Stream};
use proptest::prelude::*;

fn item(key: u64, lba: u64) -> Queued {
    Queued { key, request: Request::new(Op::Read, Lba(lba), 1), since: SimTime::ZERO }
}

/// The parameters of all schedulers together; each reads its own.
fn settings() -> Settings {
    let text = |text: &str| Value::Text(text.to_owned());
    Settings::default()
        .and("by", text("lbn"))
        .and("window", Value::Count(8))
        .and("batch", Value::Count(16))
        .and("r", Value::Number(0.2))
        .and("age_weight", Value::Number(0.006))
        .and("weight", Value::Number(1.0))
        .and("slack", Value::Number(0.0))
        .and("wait_max", Value::Duration(SimDuration::from_s(3)))
        .and("distance", text("exact"))
        .and("read_expire", Value::Duration(SimDuration::from_ms(500)))
        .and("write_expire", Value::Duration(SimDuration::from_s(5)))
        .and("writes_starved", Value::Count(2))
        .and("wait", Value::Duration(SimDuration::from_us(6700)))
        .and("near", Value::Bytes(4 << 20))
        .and("any_read", Value::Flag(true))
        .and("memory", Value::Count(10_000))
}

fn make_with(name: &str, settings: &Settings) -> Box<dyn Scheduler> {
    let entry = ENTRIES.iter().find(|entry| entry.description.name == name);
    let built = (entry.expect("a known name").build)(settings);
    built.unwrap_or_else(|problems| panic!("{name}: {problems:?}"))
}

fn make(name: &str) -> Box<dyn Scheduler> {
    let count = if name == "tsps" { 8 } else { 256 };
    make_with(name, &settings().and("window", Value::Count(count)))
}

/// Every registered scheduler, also by cylinder where it has that parameter.
fn all() -> Vec<(&'static str, Box<dyn Scheduler>)> {
    let mut all = Vec::new();
    for entry in ENTRIES {
        let Description { name, params, .. } = entry.description;
        all.push((name, make(name)));
        if params.iter().any(|param| param.name == "by") {
            let by = Value::Text("cylinder".to_owned());
            all.push((name, make_with(name, &settings().and("by", by))));
        }
    }
    all
}

/// Pops all requests with the head following; returns the addresses in order.
fn order(scheduler: &mut dyn Scheduler, start: u64) -> Vec<u64> {
    let mut last = Lba(start);
    let mut lbas = Vec::new();
    loop {
        let head = Head { now: SimTime::ZERO, last, positioner: None };
        let Some(item) = scheduler.pop(&head) else { return lbas };
        last = item.request.lba;
        lbas.push(item.request.lba.0);
    }
}

#[test]
fn orders_worked_by_hand() {
    // Head at 53 and this queue: Silberschatz, Galvin and Gagne, Operating System Concepts.
    let queue = [98, 183, 37, 122, 14, 124, 65, 67];
    for (name, expect) in [
        ("fcfs", [98, 183, 37, 122, 14, 124, 65, 67]),
        ("sstf", [65, 67, 37, 14, 98, 122, 124, 183]),
        ("look", [65, 67, 98, 122, 124, 183, 37, 14]),
        ("c-look", [65, 67, 98, 122, 124, 183, 14, 37]),
        ("scan", [65, 67, 98, 122, 124, 183, 37, 14]),
        ("c-scan", [65, 67, 98, 122, 124, 183, 14, 37]),
        // Turning costs 0.2 of the largest address, 183: 37 is 30 + 36 below 67, and 98 31 above.
        ("vscan", [65, 67, 98, 122, 124, 183, 37, 14]),
        ("pri-vscan", [65, 67, 98, 122, 124, 183, 37, 14]),
        ("sdf", [65, 67, 37, 14, 98, 122, 124, 183]),
        ("sptf", [65, 67, 37, 14, 98, 122, 124, 183]),
        ("satf", [65, 67, 37, 14, 98, 122, 124, 183]),
        ("wptf", [65, 67, 37, 14, 98, 122, 124, 183]),
        ("asptf", [65, 67, 37, 14, 98, 122, 124, 183]),
        ("sptf-rot-opt", [65, 67, 37, 14, 98, 122, 124, 183]),
        // Untrained, it goes by distance.
        ("smtf", [65, 67, 37, 14, 98, 122, 124, 183]),
        ("sptf-rot-weight", [65, 67, 37, 14, 98, 122, 124, 183]),
        // Down first: 39 and then 169 is less than 130 and then 169. 37 is on the way both times.
        ("tsps", [14, 37, 65, 67, 98, 122, 124, 183]),
        ("batch-fcfs", [14, 37, 65, 67, 98, 122, 124, 183]),
        // The first batch starts at address 0.
        ("deadline", [14, 37, 65, 67, 98, 122, 124, 183]),
    ] {
        let mut scheduler = make(name);
        for (key, lba) in queue.into_iter().enumerate() {
            scheduler.push(item(key as u64, lba));
        }
        assert_eq!(order(&mut *scheduler, 53), expect, "{name}");
    }
}

/// Requests for the same sectors are dispatched in order of arrival.
#[test]
fn ties_are_broken_by_arrival() {
    // A plan has no ties: it minimises the total time.
    for (name, mut scheduler) in all().into_iter().filter(|(name, _)| *name != "tsps") {
        // Equal addresses, and two equally far on both sides.
        for (key, lba) in [(0, 10), (1, 10), (2, 30), (3, 10), (4, 30)] {
            scheduler.push(item(key, lba));
        }
        let (mut last, mut order) = (Lba(20), Vec::new());
        while !scheduler.is_empty() {
            let head = Head { now: SimTime::ZERO, last, positioner: None };
            let next = scheduler.pop(&head).expect("not empty");
            (last, _) = (next.request.lba, order.push(next.key));
        }
        let of = |wanted: [u64; 3]| -> Vec<u64> {
            order.iter().copied().filter(|key| wanted.contains(key)).collect()
        };
        assert_eq!(of([0, 1, 3]), [0, 1, 3], "{name}: {order:?}");
        assert_eq!(of([2, 4, 4]), [2, 4], "{name}: {order:?}");
    }
}

/// Between two requests equally far on either side, elevators take the upper one, the others the
/// one that arrived first.
#[test]
fn of_equally_far_neighbours_a_sweep_takes_the_one_ahead() {
    let upwards = ["look", "c-look", "scan", "c-scan", "vscan", "pri-vscan"];
    for (name, expect) in upwards.map(|name| (name, 1)).into_iter().chain([("sstf", 0)]) {
        let mut scheduler = make(name);
        scheduler.push(item(0, 10));
        scheduler.push(item(1, 30));
        let head = Head { now: SimTime::ZERO, last: Lba(20), positioner: None };
        assert_eq!(scheduler.pop(&head).map(|item| item.key), Some(expect), "{name}");
    }
}

#[test]
fn look_turns_only_when_nothing_is_ahead() {
    let mut look = make("look");
    look.push(item(0, 50));
    look.push(item(1, 10));
    let at = |last| Head { now: SimTime::ZERO, last: Lba(last), positioner: None };
    assert_eq!(look.pop(&at(40)).map(|item| item.key), Some(0));
    assert_eq!(look.pop(&at(50)).map(|item| item.key), Some(1), "turns");
    look.push(item(2, 60));
    look.push(item(3, 5));
    assert_eq!(look.pop(&at(10)).map(|item| item.key), Some(3), "still going down");
    assert_eq!(look.pop(&at(5)).map(|item| item.key), Some(2));
}

proptest! {
    #[test]
    fn every_request_is_popped_exactly_once(
        steps in prop::collection::vec((0u64..40, prop::bool::weighted(0.6)), 1..200),
    ) {
        for (name, mut scheduler) in all() {
            let (mut pushed, mut popped, mut last) = (0u64, Vec::new(), Lba(0));
            for &(lba, push) in &steps {
                if push {
                    scheduler.push(item(pushed, lba));
                    pushed += 1;
                } else {
                    let head = Head { now: SimTime::ZERO, last, positioner: None };
                    if let Some(item) = scheduler.pop(&head) {
                        last = item.request.end();
                        popped.push(item.key);
                    }
                }
                prop_assert_eq!(scheduler.len(), pushed as usize - popped.len(), "{}", name);
            }
            let head = Head { now: SimTime::ZERO, last, positioner: None };
            popped.extend(std::iter::from_fn(|| scheduler.pop(&head)).map(|item| item.key));
            popped.sort_unstable();
            prop_assert_eq!(popped, (0..pushed).collect::<Vec<_>>(), "{}", name);
        }
    }

    #[test]
    fn the_sorted_queue_agrees_with_a_sorted_list(
        steps in prop::collection::vec((0u64..50, 0u8..4), 1..300),
    ) {
        let mut sorted = hybridsim_engine::sorted::Sorted::default();
        let mut model: Vec<(u64, u64)> = Vec::new();
        let mut arrivals = 0;
        for (lba, step) in steps {
            let above = model.iter().copied().filter(|key| key.0 >= lba).min();
            let low = model.iter().map(|key| key.0).filter(|key| *key < lba).max();
            let below = low.and_then(|low| model.iter().copied().filter(|key| key.0 == low).min());
            prop_assert_eq!(sorted.at_or_after(lba), above);
            prop_assert_eq!(sorted.below(lba), below);
            match (step, above) {
                (0, Some(key)) => {
                    model.retain(|other| *other != key);
                    prop_assert_eq!(sorted.take(key).map(|item| item.key), Some(key.1));
                }
                _ => {
                    sorted.push(item(arrivals, lba));
                    model.push((lba, arrivals));
                    arrivals += 1;
                }
            }
            prop_assert_eq!(sorted.len(), model.len());
        }
    }
}

/// 1,000 tracks of 100 sectors; seek grows with the root of the distance, a turn takes 10 ms.
struct TestDisk;

impl Positioner for TestDisk {
    fn positioning(&self, now: SimTime, last: Lba, to: &Request) -> SimDuration {
        const SECTOR_NS: u64 = 100_000;
        let tracks = self.cylinder(last).abs_diff(self.cylinder(to.lba));
        let seek = if tracks == 0 { 0 } else { 800_000 + 300_000 * u64::from(tracks.isqrt()) };
        let arrived = (now.as_ns() + seek) % (100 * SECTOR_NS);
        let wanted = to.lba.0 % 100 * SECTOR_NS;
        let wait = (wanted + 100 * SECTOR_NS - arrived) % (100 * SECTOR_NS);
        SimDuration::from_ns(seek + wait)
    }

    fn cylinder(&self, lba: Lba) -> u32 {
        (lba.0 / 100) as u32
    }
}

/// Mean positioning time in milliseconds with `depth` random requests always waiting.
fn mean_positioning_ms(scheduler: &mut dyn Scheduler, depth: u64) -> f64 {
    let mut stream = Stream::new(1, "positioning");
    let (mut now, mut last, mut total) = (SimTime::ZERO, Lba(0), SimDuration::ZERO);
    let served = 4_000;
    for key in 0..depth + served {
        scheduler.push(item(key, stream.below(100_000)));
        if key < depth {
            continue;
        }
        let head = Head { now, last, positioner: Some(&TestDisk) };
        let item = scheduler.pop(&head).expect("requests wait");
        let time = TestDisk.positioning(now, last, &item.request);
        total += time;
        now += time + SimDuration::from_us(100);
        last = item.request.end();
    }
    total.as_s_f64() * 1e3 / served as f64
}

#[test]
fn better_estimates_position_faster() {
    let mean = |name: &str| mean_positioning_ms(&mut *make(name), 32);
    let (fcfs, sstf, sptf) = (mean("fcfs"), mean("sstf"), mean("sptf"));
    assert!(sptf < 0.8 * sstf && sstf < 0.8 * fcfs, "sptf {sptf}, sstf {sstf}, fcfs {fcfs}");
    // First come, first served pays a mean seek and half a turn.
    let seek = 0.8 + 0.3 * 1000f64.sqrt() * 8.0 / 15.0;
    assert!((fcfs - seek - 5.0).abs() < 0.4, "fcfs {fcfs}, theory {}", seek + 5.0);
}

fn waiting(key: u64, lba: u64, since_ms: u64) -> Queued {
    Queued { since: SimTime::ZERO + SimDuration::from_ms(since_ms), ..item(key, lba) }
}

fn at(now_ms: u64, last: u64) -> Head<'static> {
    let now = SimTime::ZERO + SimDuration::from_ms(now_ms);
    Head { now, last: Lba(last), positioner: Some(&TestDisk) }
}

#[test]
fn ageing_schedulers_count_queueing_time() {
    // A near request that just came against one far away that has waited longer and longer.
    for (name, patient_ms, impatient_ms) in
        [("sptf", 1_000_000, u64::MAX), ("wptf", 100, 3_000), ("asptf", 100, 3_000)]
    {
        let far_goes_first = |age_ms: u64| {
            let mut scheduler = make(name);
            scheduler.push(waiting(0, 90_050, 0));
            scheduler.push(waiting(1, 150, age_ms));
            scheduler.pop(&at(age_ms, 100)).expect("two wait").key == 0
        };
        assert!(!far_goes_first(patient_ms), "{name}");
        if impatient_ms < u64::MAX {
            assert!(far_goes_first(impatient_ms), "{name}");
        }
    }
}

#[test]
fn synchronous_requests_go_first() {
    for name in ["pri-vscan", "pri-asptf", "pri-aspctf"] {
        let mut scheduler = make(name);
        scheduler.push(item(0, 100));
        let mut sync = item(1, 90_000);
        sync.request.flags = Flags::SYNC;
        scheduler.push(sync);
        assert_eq!(scheduler.pop(&at(0, 100)).map(|item| item.key), Some(1), "{name}");
    }
}

#[test]
fn buffered_requests_go_first() {
    struct Buffered;
    impl Positioner for Buffered {
        fn positioning(&self, now: SimTime, last: Lba, to: &Request) -> SimDuration {
            TestDisk.positioning(now, last, to)
        }
        fn cylinder(&self, lba: Lba) -> u32 {
            TestDisk.cylinder(lba)
        }
        fn is_buffered(&self, to: &Request) -> bool {
            to.lba.0 >= 50_000
        }
    }
    let first = |name: &str| {
        let mut scheduler = make(name);
        scheduler.push(item(0, 100));
        scheduler.push(item(1, 90_000));
        let head = Head { now: SimTime::ZERO, last: Lba(0), positioner: Some(&Buffered) };
        scheduler.pop(&head).map(|item| item.key)
    };
    for name in ["spctf", "wpctf", "aspctf", "pri-aspctf"] {
        assert_eq!(first(name), Some(1), "{name}");
    }
    assert_eq!(first("sptf"), Some(0));
}

#[test]
fn requests_on_one_cylinder_go_in_order_of_arrival() {
    let by = settings().and("by", Value::Text("cylinder".to_owned()));
    for (name, expect) in [("look", [0, 1, 2]), ("sstf", [0, 1, 2]), ("c-look", [0, 1, 2])] {
        let mut scheduler = make_with(name, &by);
        for (key, lba) in [(0, 590), (1, 510), (2, 620)] {
            scheduler.push(item(key, lba));
        }
        let keys = [500, 591, 511].map(|last| scheduler.pop(&at(0, last)).map(|item| item.key));
        assert_eq!(keys, expect.map(Some), "{name}");
    }
}

#[test]
fn deadlines_hold_and_writes_do_not_starve() {
    let mut scheduler = make("deadline");
    for key in 0..100 {
        scheduler.push(waiting(key, 50_000 + key, 0));
    }
    let mut write = waiting(100, 10, 0);
    write.request.op = Op::Write;
    scheduler.push(write);
    scheduler.push(waiting(101, 20, 0));
    let order: Vec<_> = (0..102)
        .map(|step| scheduler.pop(&at(if step < 40 { 0 } else { 600 }, 0)).expect("waits").key)
        .collect();
    // Two batches of 16 reads, then the write; the others are past their deadline and go by age.
    assert_eq!(order[32], 100);
    assert_eq!(order[0], 101, "the first batch starts at address 0");
    assert_eq!(order[1..32], (0..31).collect::<Vec<_>>());
}

#[test]
fn anticipation_waits_for_the_same_stream_and_learns() {
    let mut scheduler = make("anticipatory");
    scheduler.push(waiting(0, 100, 0));
    assert_eq!(scheduler.hold_until(&at(0, 0)), None);
    assert_eq!(scheduler.pop(&at(0, 0)).map(|item| item.key), Some(0));
    scheduler.push(waiting(1, 90_000, 1));
    let until = SimTime::ZERO + SimDuration::from_us(5_000 + 6_700);
    assert_eq!(scheduler.hold_until(&at(5, 101)), Some(until), "the far one waits");
    scheduler.push(waiting(2, 101, 6));
    assert_eq!(scheduler.hold_until(&at(6, 101)), None, "the near one came");
    // Idle waits that never succeed end.
    let mut held = 0;
    for round in 1..20u64 {
        let now = round * 100;
        while scheduler.pop(&at(now, 0)).is_some() {}
        scheduler.push(waiting(round, round % 2 * 90_000, now));
        held += u64::from(scheduler.hold_until(&at(now, 0)).is_some());
    }
    assert!((1..12).contains(&held), "{held} waits");
}

#[test]
fn anticipation_ends_at_a_near_write() {
    let mut scheduler = make("anticipatory");
    scheduler.push(waiting(0, 100, 0));
    assert!(scheduler.pop(&at(0, 0)).is_some());
    scheduler.push(waiting(1, 90_000, 1));
    assert!(scheduler.hold_until(&at(5, 101)).is_some());
    let mut write = waiting(2, 101, 6);
    write.request.op = Op::Write;
    scheduler.push(write);
    assert_eq!(scheduler.hold_until(&at(6, 101)), None);
}

#[test]
fn scan_travels_to_the_edge() {
    struct Sized;
    impl Positioner for Sized {
        fn positioning(&self, now: SimTime, last: Lba, to: &Request) -> SimDuration {
            TestDisk.positioning(now, last, to)
        }
        fn cylinder(&self, lba: Lba) -> u32 {
            TestDisk.cylinder(lba)
        }
        fn seek(&self, last: Lba, to: &Request) -> SimDuration {
            SimDuration::from_us(last.0.saturating_sub(1).abs_diff(to.lba.0))
        }
        fn sectors(&self) -> u64 {
            100_000
        }
    }
    let head = Head { now: SimTime::ZERO, last: Lba(60_001), positioner: Some(&Sized) };
    for (name, expect_us) in [
        // From 60,000 to 99,999 and back to 20,000, instead of straight there.
        ("scan", 39_999 + 79_999 - 40_000),
        ("c-scan", 39_999 + 99_999 + 20_000 - 40_000),
    ] {
        let mut scheduler = make(name);
        scheduler.push(item(0, 20_000));
        let until = SimTime::ZERO + SimDuration::from_us(expect_us);
        assert_eq!(scheduler.hold_until(&head), Some(until), "{name}");
        assert_eq!(scheduler.hold_until(&Head { now: until, ..head }), None, "{name}");
        scheduler.push(item(1, 70_000));
        assert_eq!(scheduler.hold_until(&head), None, "{name} has one ahead");
    }
}

/// The end of the last request in the fastest of all orders.
fn fastest_end(from: (SimTime, Lba), left: &[Queued]) -> SimTime {
    let ends = (0..left.len()).map(|at| {
        let mut others = left.to_vec();
        let Queued { request, .. } = others.remove(at);
        let (now, last) = from;
        let now = now + TestDisk.positioning(now, last, &request);
        fastest_end((now, request.end()), &others)
    });
    ends.min().unwrap_or(from.0)
}

#[test]
fn a_planned_order_is_the_fastest_of_all() {
    let mut stream = Stream::new(3, "plans");
    for _ in 0..20 {
        let items: Vec<Queued> = (0..6).map(|key| item(key, stream.below(100_000))).collect();
        let mut scheduler = make("tsps");
        items.iter().for_each(|item| scheduler.push(*item));
        let (mut now, mut last) = (SimTime::ZERO, Lba(0));
        while let Some(item) = scheduler.pop(&Head { now, last, positioner: Some(&TestDisk) }) {
            now += TestDisk.positioning(now, last, &item.request);
            last = item.request.end();
        }
        assert_eq!(now, fastest_end((SimTime::ZERO, Lba(0)), &items), "{items:?}");
    }
}

#[test]
fn fair_schedulers_bound_the_wait() {
    // One distant request while near ones keep arriving: it must go within this many others.
    for (name, bound) in [
        ("fcfs", 33),
        ("batch-fcfs", 64),
        ("tsps", 48),
        ("wptf", 1_000),
        ("watf", 1_000),
        ("asptf", 1_000),
        ("deadline", 200),
        ("look", 600),
        ("c-look", 600),
        ("scan", 600),
        ("c-scan", 600),
    ] {
        let mut scheduler = make(name);
        let (mut last, mut waited) = (0, None);
        for step in 0..32 {
            scheduler.push(waiting(step, 10 * step, 0));
        }
        scheduler.push(waiting(u64::MAX, 90_000, 0));
        for step in 0..2_000u64 {
            let item = scheduler.pop(&at(step * 10, last)).expect("requests wait");
            last = item.request.end().0;
            if item.key == u64::MAX {
                waited = Some(step);
                break;
            }
            scheduler.push(waiting(step + 32, step * 199 % 400 + 200 * step.min(480), step * 10));
        }
        assert!(waited.is_some_and(|waited| waited <= bound), "{name}: {waited:?}");
    }
}
