//! The drive as a whole: what its buffer does, that data is never lost, hostile settings.

mod common;

use common::{build_at, machine, one_by_one};
use hybridsim_disk::{DiskCacheOutcome, DiskEvent};
use hybridsim_engine::reference_model::ReferenceModel;
use hybridsim_engine::{
    EventRecord, Flags, LatencyPhase, Lba, Op, Request, SimDuration, SimTime, Stream,
};
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

const DRIVE: &str = r#"
kind = "hard-disk"
rpm = "7200rpm"
heads = 2
cylinders = 100
outer_sectors_per_track = 100
inner_sectors_per_track = 80
zone_count = 2
cache_segment_size = "32KiB"
cache_segments = 4
read_hit_overhead = "0.1ms"
read_miss_overhead = "0.2ms"
write_hit_overhead = "0.3ms"
write_miss_overhead = "0.4ms"
host_rate = "51.2MB/s"
idle_power = "5W"
seek = { kind = "linear", single = "1ms", full = "10ms" }
"#;

fn ms(ms: u64) -> SimDuration {
    SimDuration::from_ms(ms)
}

fn read(lba: u64, sectors: u32) -> Request {
    Request::new(Op::Read, Lba(lba), sectors)
}

fn write(lba: u64, sectors: u32) -> Request {
    Request::new(Op::Write, Lba(lba), sectors)
}

fn outcomes(text: &str, work: Vec<(SimDuration, Request)>) -> Vec<DiskCacheOutcome> {
    let (_, events) = one_by_one(text, work);
    let outcome = |event: &EventRecord| match event.event() {
        Some(DiskEvent::DiskCache { outcome, .. }) => Some(outcome),
        _ => None,
    };
    events.iter().filter_map(outcome).collect()
}

#[test]
fn buffer_outcomes() {
    use DiskCacheOutcome::{Buffered, Hit, Miss, Partial};
    let after = |wait, request| (ms(wait), request);
    let fua = Request { flags: Flags::FUA, ..read(9, 8) };
    let check = |work: &[(SimDuration, Request)], expect: &[DiskCacheOutcome]| {
        assert_eq!(outcomes(DRIVE, work.to_vec()), expect, "{work:?}");
    };
    let first = after(0, read(0, 8));
    // A segment holds 64 sectors, and read-ahead may replace what was returned: 8 to 71.
    check(&[first, after(100, read(8, 64))], &[Miss, Hit]);
    check(&[first, after(100, read(7, 8))], &[Miss, Miss]);
    check(&[first, after(100, read(40, 40))], &[Miss, Partial]);
    check(&[first, after(0, read(30, 8))], &[Miss, Partial]);
    check(&[first, after(100, fua)], &[Miss, Miss]);
    check(&[after(0, write(0, 8)), after(0, read(0, 8))], &[Buffered, Hit]);
    let overwrite = after(9, write(30, 2));
    check(&[first, overwrite, after(9, read(20, 10))], &[Miss, Buffered, Hit]);
    check(&[first, overwrite, after(9, read(30, 2))], &[Miss, Buffered, Hit]);
    check(&[first, overwrite, after(9, read(31, 2))], &[Miss, Buffered, Partial]);
    check(&[after(0, write(0, 65))], &[Miss]);
}

#[test]
fn a_hit_costs_overhead_and_link_only() {
    let (done, _) = one_by_one(DRIVE, vec![(ms(0), read(0, 8)), (ms(100), read(8, 8))]);
    let breakdown = done[1].breakdown;
    assert_eq!(breakdown.get(LatencyPhase::Overhead), SimDuration::from_us(100));
    assert_eq!(breakdown.get(LatencyPhase::Bus), SimDuration::from_us(80));
    assert_eq!(done[1].latency, SimDuration::from_us(180));
}

#[test]
fn read_ahead_modes_end_where_they_should() {
    // 16 sectors into a track of 100: what is in the buffer a second later, from sector 16 on.
    let held = |mode: &str| {
        let text = format!("{DRIVE}read_ahead = \"{mode}\"\n").replace("\"32KiB\"", "\"128KiB\"");
        let hit = |sector: u64| {
            let work = vec![(ms(0), read(0, 16)), (ms(1_000), read(sector, 1))];
            outcomes(&text, work)[1] == DiskCacheOutcome::Hit
        };
        (16..400).take_while(|&sector| hit(sector)).count()
    };
    assert_eq!(held("none"), 0);
    assert_eq!(held("track"), 84);
    assert_eq!(held("cylinder"), 184);
    assert_eq!(held("segment"), 256);
    assert_eq!(held("next-track"), 84, "no stream yet");
}

#[test]
fn flush_and_fua_wait_for_the_medium() {
    let flush = Request::new(Op::Flush, Lba(0), 0);
    let fua = Request { flags: Flags::FUA, ..write(5_000, 8) };
    let (done, events) =
        one_by_one(DRIVE, vec![(ms(0), write(9_000, 8)), (ms(0), flush), (ms(0), fua)]);
    assert!(done[0].latency < ms(1), "buffered: {}", done[0].latency);
    assert!(done[1].latency > ms(1), "destaged: {}", done[1].latency);
    assert!(done[2].breakdown.get(LatencyPhase::Seek) > SimDuration::ZERO);
    let moved: u32 = events
        .iter()
        .filter_map(EventRecord::event)
        .flat_map(DiskEvent::parts)
        .map(|part| if let DiskEvent::MediaTransfer { sectors, .. } = part { sectors } else { 0 })
        .sum();
    assert_eq!(moved, 16);
    let (done, _) = one_by_one(DRIVE, vec![(ms(0), write(9_000, 8)), (ms(1_000), flush)]);
    assert_eq!(done[1].latency, SimDuration::from_us(300), "nothing is left to write");
}

#[test]
fn a_standby_drive_spins_up_first() {
    let text = format!(
        "{DRIVE}spin_down_after = \"1s\"\nspin_down_time = \"100ms\"\nspin_up_time = \"2s\"\n"
    );
    let (done, _) = one_by_one(&text, vec![(ms(5_000), read(9_000, 8)), (ms(1_050), read(0, 8))]);
    assert_eq!(done[0].breakdown.get(LatencyPhase::SpinUp), ms(2_000));
    let spin_up = done[1].breakdown.get(LatencyPhase::SpinUp);
    assert!(spin_up > ms(2_000) && spin_up < ms(2_100), "the stop is finished first: {spin_up}");
}

/// Closed loop of `depth` random requests over a small range, checked against the reference model.
fn verified(text: &str, seed: u64, depth: u32, requests: u32, range: u64) -> u32 {
    let mut stream = Stream::new(seed, "work");
    let mut reference = ReferenceModel::default();
    let (mut issued, done) = (0u32, Rc::new(Cell::new(0u32)));
    let seen = Rc::clone(&done);
    let mut flying: Vec<(u64, Request, SimTime, u64)> = Vec::new();
    let mut machine = machine(text, true, move |ctx, completion| {
        let now = ctx.now();
        if let Some(done) = completion {
            let at = flying.iter().position(|f| f.0 == done.tag).expect("issued");
            let (_, request, began, version) = flying.swap_remove(at);
            let oldest = flying.iter().map(|f| f.2).min().unwrap_or(now);
            match request.op {
                Op::Read => {
                    let versions = ctx.data().versions(request.data, request.sectors);
                    reference.check_read(request.lba, versions, began).expect("the last write");
                }
                Op::Write => {
                    reference.write_ends(request.lba, request.sectors, version, now, oldest)
                }
                Op::Trim | Op::Flush | Op::Zone(_) => {}
            }
            ctx.data().give_back(request.data);
            seen.set(seen.get() + 1);
        }
        while (flying.len() as u32) < depth && issued < requests {
            let op = [Op::Read, Op::Write, Op::Flush][stream.below(21) as usize / 10];
            let sectors = 1 + stream.below(90) as u32;
            let mut request = Request::new(op, Lba(stream.below(range)), sectors);
            if stream.chance(0.1) {
                request.flags = Flags::FUA;
            }
            request.data = ctx.take_data(sectors);
            let version = if op == Op::Write { reference.next_version() } else { 0 };
            if op == Op::Write {
                ctx.data().versions_mut(request.data, sectors).fill(version);
                reference.write_begins(request.lba, sectors, version, now);
            }
            flying.push((u64::from(issued), request, now, version));
            ctx.issue(0, request, u64::from(issued));
            issued += 1;
        }
    });
    machine.run(&mut (), &mut |_| true).expect("a good run");
    done.get()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the settings: every request completes, reads return the last write, phases add up
    /// (the machine checks that), and the drive never waits for nothing.
    #[test]
    fn any_drive_serves_any_load(
        seed in 0u64..1_000,
        depth in 1u32..40,
        queue in 1u32..33,
        segments in 0u32..5,
        mode in prop::sample::select(vec!["none", "track", "cylinder", "segment", "next-track"]),
        min in 0u32..64,
        flags in prop::array::uniform5(any::<bool>()),
        scheduler in prop::sample::select(vec!["fcfs", "sptf"]),
        mapping in prop::sample::select(vec!["cylinder", "serpentine", "surface"]),
        delay in 0u32..30,
        range in prop::sample::select(vec![200u64, 17_000]),
    ) {
        let [cache, combine, zero, spin, over] = flags;
        let min = if segments == 0 || mode == "none" { 0 } else { min };
        let mut text = DRIVE.replace("cache_segments = 4", &format!("cache_segments = {segments}"));
        text += &format!(
            "write_cache = {cache}\ncombine_writes = {combine}\nzero_latency = {zero}\n\
             read_ahead = \"{mode}\"\nread_ahead_min = {min}\nread_ahead_over_requested = {over}\n\
             queue_depth = {queue}\nscheduler = \"{scheduler}\"\nmapping = \"{mapping}\"\n\
             band_cylinders = 7\ndestage_delay = \"{delay}ms\"\n"
        );
        if spin {
            text += "spin_down_after = \"3ms\"\nspin_down_time = \"1ms\"\nspin_up_time = \"9ms\"\n";
        }
        prop_assert_eq!(verified(&text, seed, depth, 400, range), 400);
    }
}

#[test]
fn shortest_positioning_is_faster_than_arrival_order_at_depth_32() {
    let total = |scheduler: &str| {
        let text = format!("{DRIVE}scheduler = \"{scheduler}\"\nqueue_depth = 32\n")
            .replace("cache_segments = 4", "cache_segments = 0");
        let mut stream = Stream::new(9, "load");
        let mut left = 4_000;
        let mut machine = machine(&text, false, move |ctx, completion| {
            for _ in 0..if completion.is_some() { 1 } else { 32 } {
                if left > 0 {
                    left -= 1;
                    ctx.issue(0, read(stream.below(17_000), 8), 0);
                }
            }
        });
        machine.run(&mut (), &mut |_| true).expect("a good run").time.as_ns() as f64
    };
    let ratio = total("fcfs") / total("sptf");
    println!("fcfs / sptf at depth 32: {ratio:.2}");
    assert!(ratio > 1.8, "{ratio}");
}

#[test]
fn hostile_settings_are_refused_with_every_reason() {
    let check = |change: &[(&str, &str)], expect: &[&str]| {
        let mut text = DRIVE.to_owned();
        for (from, to) in change {
            assert!(text.contains(from) || from.is_empty());
            text = if from.is_empty() { format!("{text}{to}\n") } else { text.replace(from, to) };
        }
        let problems = build_at(&text, "disk").err().expect("refused");
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        for word in expect {
            assert!(all.iter().any(|problem| problem.contains(word)), "{word}: {all:?}");
        }
        assert_eq!(all.len(), expect.len(), "{all:?}");
    };
    check(&[("7200rpm", "1rpm")], &["rpm: 1 rpm; a drive turns at"]);
    check(&[("cylinders = 100\n", "")], &["cylinders: needed when no `zones`"]);
    check(&[("", "sectors = 99999999")], &["but the zones hold only 18000"]);
    check(
        &[("7200rpm", "99999999rpm"), ("\"10ms\"", "\"10s\""), ("", "cache_write_segments = 9")],
        &["a drive turns at", "seek: a read seek over 44 cylinders", "only 4 `cache_segments`"],
    );
    check(&[("", "head_switch = \"9000000s\"")], &["head_switch: 9000000.000 s is longer"]);
    check(&[("32KiB", "1B")], &["cache_segment_size: 1 bytes"]);
    check(
        &[("", "read_ahead_min = 65"), ("", "read_ahead_max = 64")],
        &["read_ahead_max", "holds only 64"],
    );
    check(
        &[("", "zones = [{ first_cylinder = 5, last_cylinder = 4, sectors_per_track = 9 }]")],
        &["zones: zone 0 covers cylinders 5 to 4"],
    );
}

#[test]
fn the_start_angle_is_random_unless_synchronised() {
    let latency = |text: &str, path: &str| {
        let component = build_at(text, path).unwrap_or_else(|p| panic!("{p:?}"));
        let positioner = component.positioner().expect("a moving head");
        positioner.positioning(SimTime::ZERO, Lba(1), &read(50, 1))
    };
    assert_ne!(latency(DRIVE, "a"), latency(DRIVE, "b"));
    assert_eq!(latency(DRIVE, "a"), latency(DRIVE, "a"));
    let synchronised = format!("{DRIVE}synchronised = true\n");
    assert_eq!(latency(&synchronised, "a"), latency(&synchronised, "b"));
}
