//! Arrays whose members fail: nothing is lost that may not be, and what is lost is reported.

mod support;

use hybridsim_config::param::{Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_conformance::{Checked, Load, Rig};
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{Op, Request, SimDuration};
use support::{Asked, entry, failing, read, reported, run, run_over, settings, write};

const CHILD_SECTORS: u64 = 72;

/// Runs a random load over `children` members and spares of about equal size.
fn load(name: &str, settings: &Settings, children: usize, seed: u64) -> Result<Checked, String> {
    let sizes: Vec<u64> = (0..children as u64).map(|at| CHILD_SECTORS + at).collect();
    let (registry, children) = (Registry::default(), sizes.as_slice());
    let rig = Rig { entry: entry(name), settings, registry: &registry, children, seed };
    let load = Load { requests: 400, sectors_max: 120, seed };
    rig.check_random(&load, [1, 4, 32][seed as usize % 3])
}

/// Everything is served and right.
fn survives(name: &str, settings: &Settings, children: usize, seed: u64) -> Checked {
    let seen = load(name, settings, children, seed)
        .unwrap_or_else(|error| panic!("{settings:?}: {error}"));
    assert_eq!(reported(&seen.events, "unserved_sectors"), [], "{name} {settings:?}");
    assert_eq!(reported(&seen.events, "beyond_redundancy"), [], "{name} {settings:?}");
    seen
}

const ROTATIONS: [&str; 4] =
    ["left-symmetric", "left-asymmetric", "right-asymmetric", "right-symmetric"];

#[test]
fn arrays_conform_when_whole() {
    for seed in 0..6 {
        for name in ["raid1", "raid10", "raid4", "raid5", "raid6", "declustered"] {
            survives(name, &settings(1 + seed * 3), 6, seed);
        }
        for word in ["read-modify-write", "reconstruct-write", "break-point"] {
            let settings = settings(4).and("small_write", Value::Text(word.into()));
            survives("raid5", &settings, 5, seed);
            let rows = settings.and("parity_rows", Value::Count(2 + seed));
            survives("raid6", &rows, 5, seed);
        }
    }
}

/// The suite's own devices answer anything for trimmed sectors; these answer zeros.
#[test]
fn trims_may_pass_to_members_that_read_zeros_then() {
    for name in ["raid4", "raid5", "raid6", "declustered"] {
        for seed in 0..10 {
            let failures = [(seed % 6, 1 + 300_000 * seed)];
            let pass = failing(2, seed as usize % 2, &failures)
                .and("trim", Value::Text("pass".into()))
                .and("in_progress", Value::Count(3 + seed * 10));
            let load = Load { requests: 600, sectors_max: 120, seed };
            let mut requests = load.draw(96);
            requests.extend((0..48).map(|at| read(at * 2, 2)));
            let seen = run(name, &pass, (6 + seed as usize % 2, 80), &requests, 8);
            assert_eq!(seen.reported("unserved_sectors"), [], "{name} {seed}");
            assert!(seen.count(Op::Trim) > 0);
        }
    }
}

#[test]
fn any_one_member_may_fail_at_the_start_or_any_time() {
    for name in ["raid1", "raid10", "raid4", "raid5", "raid6", "declustered"] {
        for member in 0..6 {
            for (seed, at) in [0, 1, 1_000_000, 7_654_321, 20_000_000].into_iter().enumerate() {
                let rotation = Value::Text(ROTATIONS[(member as usize + seed) % 4].into());
                let settings = failing(4, 0, &[(member, at)]).and("rotation", rotation);
                survives(name, &settings, 6, seed as u64);
            }
        }
    }
}

#[test]
fn members_may_fail_while_data_are_written_before_parity() {
    for name in ["raid4", "raid5", "raid6", "declustered"] {
        for member in 0..6 {
            for (seed, at) in [0, 1, 900_000, 5_432_100, 12_345_678].into_iter().enumerate() {
                let early = failing(4, 0, &[(member, at)])
                    .and("small_write", Value::Text("read-modify-write".into()))
                    .and("write_order", Value::Text("early".into()));
                survives(name, &early, 6, seed as u64 + 7 * member);
            }
        }
    }
}

#[test]
fn early_data_do_not_wait_for_parity() {
    // A member that serves one request at a time in 10 us holds parity, and is busy.
    let asked = |order: &str| {
        let settings = settings(4)
            .and("small_write", Value::Text("read-modify-write".into()))
            .and("write_order", Value::Text(order.into()));
        // Stripe 0 has parity on device 3, stripe 1 on device 2, where its data unit 0 is device 3.
        let requests: Vec<Request> = (0..4).map(|_| read(12, 1)).chain([write(0, 1)]).collect();
        let seen = run("raid5", &settings, (4, 80), &requests, 8);
        let at = |op, device| {
            let found =
                seen.asked.iter().position(|(number, asked, ..)| (*number, *asked) == (device, op));
            found.unwrap_or_else(|| panic!("no {op:?} on {device} in {:?}", seen.asked))
        };
        (at(Op::Write, 0), at(Op::Write, 3), seen.events)
    };
    let latency = |events: &[hybridsim_engine::EventRecord]| {
        let write = |record: &hybridsim_engine::EventRecord| match record.event() {
            Some(CommonEvent::Completed { op: Op::Write, latency, .. }) => Some(latency),
            _ => None,
        };
        events.iter().find_map(write).expect("a write")
    };
    let (early, late) = (asked("early"), asked("together"));
    assert!(early.0 < early.1 && late.0 < late.1, "data before parity in either order");
    // Parity is the bottleneck, so both are done at the same time: 4 reads, then read and write.
    assert_eq!(latency(&early.2), SimDuration::from_us(60));
    assert_eq!(latency(&late.2), SimDuration::from_us(60));
}

#[test]
fn any_two_members_of_a_double_parity_array_may_fail() {
    let double = |first, second| {
        failing(4, 0, &[first, second]).and("parity", Value::Count(2)).and("width", Value::Count(4))
    };
    for first in 0..6 {
        for second in 0..6u64 {
            if first != second {
                survives("raid6", &double((first, 0), (second, 0)), 6, first);
                survives("declustered", &double((first, 0), (second, 3_000_000)), 6, second);
                survives("raid6", &double((first, 2_000_000), (second, 5_000_000)), 6, second);
                survives("raid6", &double((first, 3_000_000), (second, 3_000_000)), 6, second);
            }
        }
    }
}

#[test]
fn all_but_one_copy_may_fail() {
    let all = [(0, 0), (2, 1_000_000), (3, 5_000_000)];
    survives("raid1", &failing(4, 0, &all), 4, 1);
    let one_of_each = [(0, 0), (3, 1_000_000), (4, 5_000_000)];
    survives("raid10", &failing(4, 0, &one_of_each), 6, 1);
}

const REBUILT: [(&str, usize); 6] =
    [("raid1", 3), ("raid10", 6), ("raid4", 4), ("raid5", 5), ("raid6", 5), ("declustered", 7)];

#[test]
fn a_spare_is_filled_and_then_another_member_may_fail() {
    for (name, members) in REBUILT {
        for seed in 0..6u64 {
            let first = (seed % members as u64, [0, 2_000_000][seed as usize % 2]);
            let seen = survives(name, &failing(4, 1, &[first]), members + 1, seed);
            assert_eq!(reported(&seen.events, "rebuild_started"), [members as u64]);
            let took = reported(&seen.events, "rebuild_ended_ns");
            assert_eq!(took.len(), 1, "{name} seed {seed}: the load outlasts the rebuild");
            assert_eq!(reported(&seen.events, "rebuild_percent").last(), Some(&100));
            // As before to the end of the rebuild; then another one goes.
            let ended = first.1 + took[0];
            assert!(ended < seen.end.time.as_ns());
            for second in (0..=members as u64).filter(|second| *second != first.0) {
                let settings = failing(4, 1, &[first, (second, ended + 1)]);
                survives(name, &settings, members + 1, seed);
            }
        }
    }
}

#[test]
fn spares_take_over_one_after_the_other() {
    let settings = failing(4, 2, &[(1, 0), (3, 0)]).and("rebuild_parallel", Value::Count(1));
    let seen = survives("raid6", &settings, 8, 3);
    assert_eq!(reported(&seen.events, "rebuild_started"), [6, 7]);
    assert_eq!(reported(&seen.events, "rebuild_ended_ns").len(), 2);
    // A spare that fails while it is filled is replaced by the next.
    let settings =
        failing(4, 2, &[(1, 0), (6, 1_000_000)]).and("rebuild_parallel", Value::Count(1));
    let seen = survives("raid6", &settings, 8, 0);
    assert_eq!(reported(&seen.events, "rebuild_aborted"), [6]);
    assert_eq!(reported(&seen.events, "rebuild_started"), [6, 7]);
    assert_eq!(reported(&seen.events, "rebuild_ended_ns").len(), 1);
}

#[test]
fn a_rebuild_may_wait_for_quiet() {
    let wait = Value::Duration(SimDuration::from_ms(2));
    let settings = failing(4, 1, &[(1, 0)]).and("rebuild_after_idle", wait);
    let registry = Registry::default();
    for (name, members) in REBUILT {
        let children = vec![CHILD_SECTORS; members + 1];
        let rig = Rig {
            entry: entry(name),
            settings: &settings,
            registry: &registry,
            children: &children,
            seed: 3,
        };
        let requests = Load { requests: 400, sectors_max: 40, seed: 3 }.draw(72);
        let busy = rig.check(&requests, 1).expect("conforms");
        assert_eq!(reported(&busy.events, "rebuild_percent"), [], "{name}: there is no quiet");
        let bursts = rig.check_bursts(&requests, 8).expect("conforms");
        assert_eq!(reported(&bursts.events, "rebuild_ended_ns").len(), 1, "{name}: 20 ms pauses");
    }
}

#[test]
fn a_member_lost_during_a_rebuild_is_borne_by_double_parity_only() {
    let both = [(1, 0), (3, 600_000)];
    let slow = |name: &str| {
        failing(4, 1, &both).and("rebuild_parallel", Value::Count(1)).and(
            "rotation",
            Value::Text(if name == "raid6" { "right-symmetric" } else { "left-symmetric" }.into()),
        )
    };
    for seed in 0..4 {
        survives("raid6", &slow("raid6"), 7, seed);
        let seen = load("raid5", &slow("raid5"), 7, seed).expect("what is served is right");
        assert_eq!(reported(&seen.events, "beyond_redundancy"), [2]);
        assert_eq!(reported(&seen.events, "rebuild_aborted"), [6]);
        assert!(!reported(&seen.events, "unserved_sectors").is_empty());
    }
}

#[test]
fn one_failure_too_many_is_reported_and_never_wrong() {
    for (name, failures) in [
        ("raid1", vec![(0, 0), (1, 0), (2, 2_000_000), (3, 0), (4, 0), (5, 0)]),
        ("raid10", vec![(2, 2_000_000), (3, 1_000_000)]),
        ("raid4", vec![(0, 0), (5, 2_000_000)]),
        ("raid5", vec![(0, 1), (5, 2_000_000)]),
        ("raid6", vec![(0, 0), (5, 1), (2, 2_000_000)]),
        ("declustered", vec![(0, 0), (5, 2_000_000)]),
    ] {
        for seed in 0..6 {
            let seen = load(name, &failing(4, 0, &failures), 6, seed).expect("never wrong");
            assert_eq!(reported(&seen.events, "beyond_redundancy").len(), 1, "{name}");
            assert!(!reported(&seen.events, "unserved_sectors").is_empty(), "{name}");
            assert_eq!(reported(&seen.events, "member_failed").len(), failures.len());
            let host_reported = seen.events.iter().any(|record| {
                record.component().0 == 0
                    && matches!(record.event(), Some(CommonEvent::Custom { .. }))
            });
            assert!(host_reported, "the host reports failed requests");
        }
    }
}

#[test]
fn nothing_is_asked_of_a_member_that_failed() {
    for name in ["raid1", "raid10", "raid5", "raid6", "declustered"] {
        let requests: Vec<Request> =
            (0..200).map(|at| if at % 3 == 0 { write(at, 7) } else { read(at, 20) }).collect();
        let seen = run(name, &failing(4, 0, &[(1, 0)]), (6, 800), &requests, 8);
        assert!(seen.asked.iter().all(|asked| asked.0 != 1), "{name}");
    }
}

#[test]
fn members_that_fail_a_request_are_dropped_and_nothing_is_lost() {
    for name in ["raid1", "raid10", "raid4", "raid5", "raid6", "declustered"] {
        for good_for in [0, 1, 7, 40, 100] {
            let mut requests: Vec<Request> =
                (0..150).map(|at| write(at * 29 % 200, 1 + at as u32 % 30)).collect();
            requests.extend((0..20).map(|at| Request { op: Op::Flush, ..read(at, 1) }));
            requests.extend((0..40).map(|at| read(at * 6, 6)));
            let settings = failing(4, 1, &[]);
            let shape = (7, 240);
            let seen = run_over(name, &settings, shape, (&requests, 6), |device| {
                if device.number == 2 {
                    device.good_for = good_for;
                }
            });
            let seen = seen.unwrap_or_else(|fault| panic!("{name} {good_for}: {fault}"));
            assert_eq!(seen.reported("unserved_sectors"), [], "{name} {good_for}");
            if good_for < 40 {
                assert_eq!(seen.reported("member_failed"), [2], "{name} {good_for}");
            }
        }
    }
}

#[test]
fn what_a_failing_member_returns_is_never_believed() {
    for name in ["raid1", "raid10", "raid4", "raid5", "raid6", "declustered"] {
        for (failing_member, good_for) in (0..60).map(|case| (case % 6, 5 + case as u64 * 7)) {
            // One member fails at the start, so that a rebuild reads from the one that fails next.
            let bears_two = ["raid1", "raid6"].contains(&name);
            let first: &[(u64, u64)] = if bears_two { &[(3, 0)] } else { &[] };
            let settings = failing(4, 1, first);
            let load = Load { requests: 300, sectors_max: 40, seed: good_for };
            let requests = load.draw(96);
            let seen = run_over(name, &settings, (7, 120), (&requests, 6), |device| {
                if device.number == failing_member {
                    device.good_for = good_for;
                }
            });
            let seen = seen.unwrap_or_else(|fault| panic!("{name} {good_for}: {fault}"));
            assert_eq!(seen.reported("unserved_sectors"), [], "{name} {good_for}");
        }
    }
}

#[test]
fn a_write_lost_while_it_is_under_way_is_not_done() {
    let lost = [(0, 5_000), (1, 6_000)];
    for (name, members, request) in [
        ("raid1", 2, write(0, 8)),
        ("raid10", 4, write(0, 16)),
        ("raid5", 4, write(0, 12)),
        ("raid4", 4, write(0, 12)),
    ] {
        let seen = run(name, &failing(4, 0, &lost), (members, 800), &[request], 1);
        assert_eq!(seen.reported("unserved_sectors"), [u64::from(request.sectors)], "{name}");
        let one = run(name, &failing(4, 0, &lost[..1]), (members, 800), &[request], 1);
        assert_eq!(one.reported("unserved_sectors"), [], "{name}");
    }
    let flush = Request { op: Op::Flush, ..read(0, 1) };
    for name in ["raid1", "raid5"] {
        let all = failing(4, 0, &[(0, 0), (1, 0)]);
        let seen = run(name, &all, (2, 800), &[flush], 1);
        assert_eq!(seen.reported("unserved_sectors").len(), 1, "{name}: a flush of nothing");
        let three = failing(4, 0, &[(0, 0), (1, 0), (2, 0)]);
        let seen = run(name, &three, (if name == "raid1" { 3 } else { 5 }, 800), &[flush], 1);
        assert_eq!(seen.reported("unserved_sectors").len(), 1, "{name}: what was written is lost");
    }
}

#[test]
fn the_rate_of_a_rebuild_is_kept() {
    let reads: Vec<Request> = (0..4000).map(|at| read(at % 200, 1)).collect();
    let time = |settings: &Settings, name: &str| {
        let seen = run(name, settings, (6, 400), &reads, 1);
        assert_eq!(seen.reported("rebuild_ended_ns").len(), 1, "{name}");
        seen.reported("rebuild_ended_ns")[0]
    };
    for name in ["raid5", "raid1"] {
        let free = time(&failing(4, 1, &[(0, 0)]), name);
        let slow = failing(4, 1, &[(0, 0)]).and("rebuild_rate", Value::Rate(20_480_000));
        let slow = time(&slow, name);
        // 400 sectors at 20.48 MB/s are 10 ms; the last step does not wait for the next.
        assert!((9_800_000..10_300_000).contains(&slow), "{name}: {slow}");
        assert!(free < slow / 2, "{name}: {free} of {slow}");
    }
}

#[test]
fn a_declustered_rebuild_reads_its_share_of_the_others() {
    let settings = failing(4, 1, &[(0, 0)]).and("width", Value::Count(3));
    // 36 chunks are 12 tiles of 3 rows: two rounds of the six orders.
    let reads: Vec<Request> = (0..400).map(|_| read(0, 1)).collect();
    let seen = run("declustered", &settings, (8, 4 * 36), &reads, 1);
    assert_eq!(seen.reported("rebuild_ended_ns").len(), 1);
    let is_chunk = |asked: &&Asked| asked.1 == Op::Read && asked.3 == 4;
    // Each of the six others is read for (3 - 1) / (7 - 1) of its 36 chunks.
    for member in 1..7 {
        let chunks = seen.asked.iter().filter(is_chunk).filter(|asked| asked.0 == member).count();
        assert_eq!(chunks, 12, "member {member}");
    }
}
