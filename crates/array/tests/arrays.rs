//! What arrays cost: requests to members, time, work.

mod support;

use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{Lba, Op, Request, Stream};
use support::{Asked, entry, failing, read, run, settings, write};

/// Reads and writes to members of one request, on `members` members with chunks of 8 sectors.
fn cost(name: &str, members: usize, settings: &Settings, request: Request) -> (usize, usize) {
    let seen = run(name, settings, (members, 800), &[request], 1);
    (seen.count(Op::Read), seen.count(Op::Write))
}

#[test]
fn small_writes_cost_what_the_textbook_says() {
    let plain = settings(8);
    let check = |name, members, request, expect| {
        assert_eq!(cost(name, members, &plain, request), expect, "{name} {members} {request:?}");
    };
    check("raid5", 5, write(16, 8), (2, 2));
    check("raid5", 5, write(17, 3), (2, 2));
    check("raid4", 5, write(16, 8), (2, 2));
    check("raid6", 6, write(16, 8), (3, 3));
    check("raid6", 8, write(17, 1), (3, 3));
    check("declustered", 9, write(16, 8), (1, 2)); // stripes of 2 + P: reconstructing is cheaper
    check("raid5", 3, write(8, 8), (1, 2));
    // Full stripes read nothing.
    check("raid5", 5, write(32, 32), (0, 5));
    check("raid6", 6, write(32, 32), (0, 6));
    check("raid5", 5, write(0, 320), (0, 50));
    // Most of a stripe: the rest is read.
    check("raid5", 5, write(0, 24), (1, 4));
    check("raid5", 9, write(0, 24), (4, 4));
    // Two chunks whose ranges meet share their parity; apart they are two small writes.
    check("raid5", 7, write(2, 10), (3, 3));
    check("raid5", 7, write(6, 4), (4, 4));
    // Across stripes: two of the last and two of the first.
    check("raid5", 5, write(28, 8), (4, 4));
    // Reads cost what they touch.
    check("raid5", 5, read(16, 8), (1, 0));
    check("raid6", 6, read(0, 32), (4, 0));
    check("raid1", 3, read(0, 200), (1, 0));
    check("raid1", 3, write(0, 200), (0, 3));
    check("raid10", 6, write(4, 8), (0, 4));
    check("raid10", 6, write(4, 300), (0, 6));
    check("raid10", 6, read(4, 300), (3, 0));
}

#[test]
fn the_way_to_parity_can_be_chosen() {
    let with = |word: &str| settings(8).and("small_write", Value::Text(word.into()));
    let check = |word: &str, sectors, expect| {
        assert_eq!(cost("raid5", 9, &with(word), write(0, sectors)), expect, "{word} {sectors}");
    };
    check("read-modify-write", 56, (8, 8));
    check("reconstruct-write", 8, (7, 2));
    check("break-point", 24, (4, 4));
    check("break-point", 32, (4, 5));
    check("read-modify-write", 64, (0, 9));
}

#[test]
fn degraded_requests_cost_what_is_left() {
    // Left-symmetric over five: chunk 2 of stripe 0 is on member 2, parity on member 4.
    let check = |failed: &[(u64, u64)], name, members, request, expect| {
        let seen = cost(name, members, &failing(8, 0, failed), request);
        assert_eq!(seen, expect, "{name} {failed:?} {request:?}");
    };
    check(&[(2, 0)], "raid5", 5, read(16, 8), (4, 0));
    check(&[(2, 0)], "raid5", 5, read(0, 32), (4, 0));
    check(&[(2, 0)], "raid5", 5, read(0, 8), (1, 0));
    check(&[(2, 0)], "raid5", 5, write(16, 8), (3, 1));
    check(&[(2, 0)], "raid5", 5, write(0, 8), (2, 2));
    check(&[(4, 0)], "raid5", 5, write(0, 8), (0, 1));
    // Two chunks of which one is missing in part: everything is read and solved for.
    check(&[(1, 0)], "raid5", 5, write(2, 10), (4, 2));
    // Stripe 0 of RAID 6 over six: Q 0 1 2 3 P.
    check(&[(1, 0), (2, 0)], "raid6", 6, read(0, 8), (4, 0));
    check(&[(5, 0), (2, 0)], "raid6", 6, read(8, 8), (4, 0));
    check(&[(0, 0)], "raid6", 6, write(0, 8), (2, 2));
}

#[test]
fn units_are_where_the_rotation_says() {
    let places = |rotation: &str| -> Vec<Asked> {
        let settings = settings(8).and("rotation", Value::Text(rotation.into()));
        run("raid5", &settings, (4, 80), &[read(24, 24)], 1).asked
    };
    let on = |members: [usize; 3]| members.map(|member| (member, Op::Read, 8, 8)).to_vec();
    // The second stripe of four members.
    assert_eq!(places("left-symmetric"), on([3, 0, 1]));
    assert_eq!(places("left-asymmetric"), on([0, 1, 3]));
    assert_eq!(places("right-asymmetric"), on([0, 2, 3]));
    assert_eq!(places("right-symmetric"), on([2, 3, 0]));
}

fn random_reads(capacity: u64, count: usize) -> Vec<Request> {
    let mut stream = Stream::new(3, "reads");
    (0..count).map(|_| read(stream.below(capacity / 8) * 8, 8)).collect()
}

#[test]
fn members_add_up() {
    let time = |name, members: usize| {
        let settings = settings(8).and("width", Value::Count(4));
        let requests = random_reads(800 * 4, 4000);
        run(name, &settings, (members, 8000), &requests, 64 * members as u32).end.time.as_ns()
    };
    let one = time("stripe", 1) as f64;
    for (name, members) in [
        ("stripe", 4),
        ("stripe", 8),
        ("raid5", 8),
        ("raid10", 8),
        ("raid1", 4),
        ("declustered", 7),
    ] {
        let gain = one / time(name, members) as f64;
        let share = gain / members as f64;
        assert!((0.85..=1.001).contains(&share), "{name} of {members}: {gain} times one");
    }
}

#[test]
fn sequential_reads_use_all_members_of_a_left_symmetric_array() {
    // 50 chunks in a row over five members: ten each, parity costs nothing.
    let seen = run("raid5", &settings(8), (5, 800), &[read(0, 400)], 1);
    for member in 0..5 {
        assert_eq!(seen.asked.iter().filter(|asked| asked.0 == member).count(), 10);
    }
}

#[test]
fn copies_are_chosen_as_asked() {
    let reads: Vec<_> = (0..300).map(|at| read(at * 37 % 700, 1)).collect();
    let shares = |choice: &str, depth| {
        let settings = settings(8).and("read_choice", Value::Text(choice.into()));
        let seen = run("raid1", &settings, (3, 800), &reads, depth);
        [0, 1, 2].map(|member| seen.asked.iter().filter(|asked| asked.0 == member).count())
    };
    assert_eq!(shares("primary", 8), [300, 0, 0]);
    assert_eq!(shares("round-robin", 8), [100, 100, 100]);
    assert_eq!(shares("shortest-queue", 9), [100, 100, 100]);
    assert!(shares("random", 8).iter().all(|count| (60..140).contains(count)));
    // Two streams of neighbours, far apart: each keeps its own arm.
    let two: Vec<_> = (0..100).map(|at| read(if at % 2 == 0 { at } else { 600 + at }, 1)).collect();
    let seek = settings(8).and("read_choice", Value::Text("shortest-seek".into()));
    let asked = run("raid1", &seek, (2, 800), &two, 1).asked;
    let arm = |far: bool| {
        let mut members = asked[4..].iter().filter(|asked| (asked.2 > 400) == far);
        let first = members.next().expect("both streams are read").0;
        assert!(members.all(|asked| asked.0 == first), "{asked:?}");
        first
    };
    assert_ne!(arm(true), arm(false));
}

/// Random small writes and reads; `span` sectors from the start on.
fn mixed(count: usize, span: u64, seed: u64) -> Vec<Request> {
    let mut stream = Stream::new(seed, "mixed");
    let mut draw = || {
        let op = if stream.chance(0.7) { Op::Write } else { Op::Read };
        Request::new(op, Lba(stream.below(span)), 1 + stream.below(12) as u32)
    };
    (0..count).map(|_| draw()).collect()
}

#[test]
fn a_request_costs_the_same_however_many_came_before() {
    for name in ["raid5", "raid6", "raid10", "raid1", "declustered"] {
        let events = |count| {
            let seen = run(name, &settings(8), (6, 8000), &mixed(count, 6000, 5), 32);
            seen.end.events as f64 / count as f64
        };
        let (few, many) = (events(1_000), events(20_000));
        assert!((many / few - 1.0).abs() < 0.03, "{name}: {few} then {many} events per request");
    }
}

#[test]
fn trims_reach_members_only_when_they_may() {
    let trim = Request::new(Op::Trim, Lba(10), 120);
    let asked = |settings: &Settings| run("raid5", settings, (5, 800), &[trim], 1).asked;
    assert_eq!(asked(&settings(8)), []);
    let pass = settings(8).and("trim", Value::Text("pass".into()));
    // Sectors 32 to 128 are three full stripes of 32: 15 units.
    assert_eq!(asked(&pass).len(), 15);
    assert!(asked(&pass).iter().all(|asked| asked.1 == Op::Trim && asked.3 == 8));
}

#[test]
fn a_request_for_everything_is_worked_off_a_window_at_a_time() {
    let few = settings(8).and("in_progress", Value::Count(2));
    let seen = run("raid5", &few, (5, 8000), &[write(0, 32_000), read(0, 32_000)], 1);
    assert_eq!((seen.count(Op::Write), seen.count(Op::Read)), (5000, 4000));
}

#[test]
fn all_wrong_parameters_are_reported() {
    let problems = |name: &str, settings: &Settings, children: &[u64]| -> String {
        use hybridsim_config::build::{BuildInput, ChildView};
        let view = |(at, capacity): (usize, &u64)| ChildView {
            name: format!("d{at}"),
            capacity: *capacity,
            ..ChildView::default()
        };
        let views: Vec<_> = children.iter().enumerate().map(view).collect();
        let registry = hybridsim_config::registry::Registry::default();
        let input =
            BuildInput { settings, registry: &registry, seed: 1, path: "a", children: &views };
        match (entry(name).build)(&input) {
            Ok(component) => format!("built with {} sectors", component.capacity()),
            Err(list) => list.iter().map(|problem| format!("{problem}; ")).collect(),
        }
    };
    let check = |name, settings: Settings, children: &[u64], expect: &str| {
        let reported = problems(name, &settings, children);
        assert!(reported.contains(expect), "{name}: {reported}");
    };
    let bytes = |bytes| settings(8).and("chunk", Value::Bytes(bytes));
    check("raid5", bytes(1000), &[], "multiple of 512");
    check("raid5", bytes(1000), &[], "at least 2 devices, found 0");
    check("raid5", bytes(0), &[80; 3], "multiple of 512");
    check("raid6", bytes(u64::MAX / 512 * 512), &[u64::MAX; 4], "1GiB");
    check("raid6", settings(8), &[80, 80], "at least 3 devices");
    check("raid4", settings(100), &[80; 3], "smallest member of 80");
    check("raid5", settings(8), &[u64::MAX; 3], "exceed 2^64");
    check("raid5", settings(8), &[80; 2000], "at most 1024");
    check("raid6", settings(8), &[80; 300], "255 data units");
    check("raid10", settings(8), &[80; 3], "multiple of the 2 copies");
    check("raid1", settings(8), &[], "found 0");
    check("raid1", settings(8).and("rebuild_step", Value::Bytes(7)), &[80], "rebuild_step");
    let step = |bytes| settings(8).and("rebuild_step", Value::Bytes(bytes));
    check("raid1", step((1 << 30) + 512), &[80], "at most 1GiB");
    let largest = problems("raid1", &step(1 << 30), &[80; 2]);
    assert!(!largest.contains("rebuild_step"), "{largest}");
    check("raid10", settings(8), &[u64::MAX; 6], "exceed 2^64");
    check("raid5", failing(8, 1, &[(9, 5)]), &[80; 4], "member 9 does not exist; there are 4");
    check("declustered", settings(8), &[80; 2], "must not exceed the 2 members");
    let narrow = settings(8).and("width", Value::Count(2)).and("parity", Value::Count(2));
    check("declustered", narrow, &[80; 5], "must exceed the 2 parity");
    check("declustered", settings(8), &[8; 4], "too small for the array's layout");
    check("raid5", failing(8, 1, &[]), &[80, 80, 80, 40], "built with 80 sectors");
}
