use super::*;
use hybridsim_engine::schedule::{Head, Positioner, Queued, Scheduler};
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime, Stream};
use proptest::prelude::*;

fn item(key: u64, lba: u64) -> Queued {
    Queued { key, request: Request::new(Op::Read, Lba(lba), 1), since: SimTime::ZERO }
}

fn all() -> Vec<(&'static str, Box<dyn Scheduler>)> {
    vec![
        ("fcfs", Box::new(fcfs::Fcfs::default())),
        ("sstf", Box::new(sstf::Sstf::default())),
        ("look", Box::new(look::Look::default())),
        ("c-look", Box::new(clook::CLook::default())),
        ("sptf", Box::new(sptf::Sptf::new(256))),
    ]
}

fn make(name: &str) -> Box<dyn Scheduler> {
    all().into_iter().find(|(other, _)| *other == name).expect("a known name").1
}

/// Pops everything with the head moving along; answers the addresses in order.
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
        ("sptf", [65, 67, 37, 14, 98, 122, 124, 183]),
    ] {
        let mut scheduler = make(name);
        for (key, lba) in queue.into_iter().enumerate() {
            scheduler.push(item(key as u64, lba));
        }
        assert_eq!(order(&mut *scheduler, 53), expect, "{name}");
    }
}

#[test]
fn every_registered_scheduler_is_tested_here() {
    let names: Vec<_> = ENTRIES.iter().map(|entry| entry.description.name).collect();
    assert_eq!(names, all().iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn ties_go_by_arrival() {
    for (name, mut scheduler) in all() {
        // Equal addresses, and two equally far on both sides.
        for (key, lba) in [(0, 10), (1, 10), (2, 30), (3, 10), (4, 30)] {
            scheduler.push(item(key, lba));
        }
        let head = Head { now: SimTime::ZERO, last: Lba(20), positioner: None };
        let first = scheduler.pop(&head).expect("five waiting");
        let expect = if matches!(name, "look" | "c-look") { 2 } else { 0 };
        assert_eq!(first.key, expect, "{name}");
        let head = Head { last: first.request.lba, ..head };
        let second = scheduler.pop(&head).expect("four waiting").key;
        assert_eq!(second, if expect == 2 { 4 } else { 1 }, "{name}");
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
        let mut sorted = sorted::Sorted::default();
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
fn knowing_more_positions_faster() {
    let mean = |name: &str| mean_positioning_ms(&mut *make(name), 32);
    let (fcfs, sstf, sptf) = (mean("fcfs"), mean("sstf"), mean("sptf"));
    assert!(sptf < 0.8 * sstf && sstf < 0.8 * fcfs, "sptf {sptf}, sstf {sstf}, fcfs {fcfs}");
    // First come, first served pays a mean seek and half a turn.
    let seek = 0.8 + 0.3 * 1000f64.sqrt() * 8.0 / 15.0;
    assert!((fcfs - seek - 5.0).abs() < 0.4, "fcfs {fcfs}, theory {}", seek + 5.0);
}
