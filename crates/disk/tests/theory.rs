//! Queueing, energy and the presets against closed formulas.

mod common;

use common::{build, machine, one_by_one};
use hybridsim_disk::DiskEvent;
use hybridsim_engine::{
    CommonEvent, Completion, EventRecord, LatencyPhase, Lba, Op, PowerState, Request, SimDuration,
    Stream,
};
use std::cell::RefCell;
use std::rc::Rc;

/// A drive whose service time is a constant, a uniform wait and a sector.
const SERVER: &str = r#"
kind = "hard-disk"
rpm = "7200rpm"
heads = 4
cylinders = 2000
outer_sectors_per_track = 500
inner_sectors_per_track = 500
zone_count = 1
cache_segments = 0
write_cache = false
queue_depth = 1
resettle_share = 0
seek = { kind = "constant", time = "3ms" }
"#;
const TURN_MS: f64 = 60e3 / 7200.0;

fn close(got: f64, expected: f64, tolerance: f64) {
    let error = (got / expected - 1.0).abs();
    assert!(error < tolerance, "{got} against {expected}: off by {error}");
}

fn preset(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../presets/disk");
    std::fs::read_to_string(format!("{folder}/{name}.toml")).expect("a preset")
}

/// Mean response time, in milliseconds, of random reads that arrive at random.
fn poisson_response_ms(text: &str, mean_gap_ms: f64, count: usize) -> f64 {
    let sectors = build(text).capacity();
    let sum = Rc::new(RefCell::new((0.0, 0)));
    let seen = Rc::clone(&sum);
    let mut stream = Stream::new(11, "arrivals");
    let mut run = machine(text, false, move |ctx, done: Option<&Completion>| {
        if let Some(done) = done {
            let mut sum = seen.borrow_mut();
            sum.0 += done.latency.as_ns() as f64 / 1e6;
            sum.1 += 1;
            if sum.1 == count {
                ctx.halt();
            }
            return;
        }
        ctx.issue(0, Request::new(Op::Read, Lba(stream.below(sectors)), 1), 0);
        let uniform = (stream.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
        ctx.wake_after(SimDuration::from_ns_f64(-uniform.ln() * mean_gap_ms * 1e6), 0);
    });
    let mut events: Vec<EventRecord> = Vec::new();
    run.run(&mut events, &mut |_| true).expect("a good run");
    let (total, done) = *sum.borrow();
    total / f64::from(u32::try_from(done).expect("a small count"))
}

/// M/G/1: the mean wait is the load's rate times the second moment of service, by 2 (1 - load)
/// (Pollaczek and Khinchine).
#[test]
fn poisson_arrivals_wait_as_pollaczek_and_khinchine_say() {
    let sector = TURN_MS / 500.0;
    // Only one in 8,000 requests is to the track the arm is on.
    let constant = 3.0 * (1.0 - 1.0 / 8_000.0) + sector;
    let mean = constant + TURN_MS / 2.0;
    let second_moment = mean * mean + TURN_MS * TURN_MS / 12.0;
    for (load, tolerance) in [(0.3, 0.02), (0.6, 0.02), (0.8, 0.05)] {
        let rate = load / mean;
        let expected = mean + rate * second_moment / (2.0 * (1.0 - load));
        close(poisson_response_ms(SERVER, 1.0 / rate, 100_000), expected, tolerance);
    }
}

/// Energy is the watts of each state times its time: here each time is known beforehand.
#[test]
fn joules_add_up_over_a_stop_a_start_and_a_read() {
    let text = format!(
        "{SERVER}idle_power = \"5W\"\nactive_power = \"6W\"\nseek_power = \"8W\"\n\
         read_power = \"10W\"\nstandby_power = \"1W\"\nspin_up_power = \"20W\"\n\
         spin_down_power = \"3W\"\nspin_down_after = \"1s\"\nspin_down_time = \"500ms\"\n\
         spin_up_time = \"2s\"\n"
    );
    let read = Request::new(Op::Read, Lba(2_000_000), 100);
    let (done, events) = one_by_one(&text, vec![(SimDuration::from_s(10), read)]);
    let watts = build(&text).info().watts.expect("a drive draws power");
    let joules: f64 = events
        .iter()
        .filter_map(EventRecord::event)
        .flat_map(CommonEvent::states)
        .map(|(state, time)| watts[state as usize] * time.as_s_f64())
        .sum();
    let seconds = |part| done[0].breakdown.get(part).as_s_f64();
    assert_eq!(done[0].breakdown.get(LatencyPhase::SpinUp), SimDuration::from_s(2));
    let expected = 1.0 * 5.0
        + 0.5 * 3.0
        + 8.5 * 1.0
        + 2.0 * 20.0
        + 0.003 * 8.0
        + seconds(LatencyPhase::Rotate) * 6.0
        + 100.0 / 500.0 * TURN_MS / 1e3 * 10.0;
    close(joules, expected, 1e-6);
    let spun: u64 = events
        .iter()
        .filter_map(EventRecord::event)
        .flat_map(CommonEvent::states)
        .filter(|(state, _)| *state == PowerState::Standby)
        .map(|(_, time)| time.as_ns())
        .sum();
    assert_eq!(spun, 8_500_000_000);
}

/// The mean random 4 KiB read of a preset is its mean seek, half a turn and the transfer.
#[test]
fn the_mean_random_read_of_a_preset_is_seek_half_turn_and_transfer() {
    for name in ["desktop-7200-160gb", "generic-sata-7200-250gb", "seagate-cheetah-15k5-146gb"] {
        let text = preset(name);
        let drive = build(&text);
        let (capacity, positioner) = (drive.capacity(), drive.positioner().expect("a disk's"));
        let constants = drive.info().constants;
        let rpm = constants.iter().find(|(name, _)| *name == "rpm").expect("a speed").1;
        let mut stream = Stream::new(17, "places");
        let mut expected_ms = 60e3 / rpm / 2.0;
        let draws = 40_000;
        for _ in 0..draws {
            let to = Request::new(Op::Read, Lba(stream.below(capacity - 8)), 8);
            let time = positioner.seek(Lba(stream.below(capacity)), &to) + positioner.transfer(&to);
            expected_ms += time.as_ns() as f64 / 1e6 / f64::from(draws);
        }
        let work = (0..20_000).map(|_| {
            let pause = SimDuration::from_ns(stream.below(20_000_000) + 1);
            (pause, Request::new(Op::Read, Lba(stream.below(capacity - 8)), 8))
        });
        let (done, _) = one_by_one(&text, work.collect());
        let total: f64 = done.iter().map(|done| done.latency.as_ns() as f64 / 1e6).sum();
        println!("{name}: {} expected {expected_ms}", total / done.len() as f64);
        close(total / done.len() as f64, expected_ms, 0.05);
    }
}

/// A preset reads in sequence at the rate of its medium: a turn per track, and the skews.
#[test]
fn a_preset_reads_a_band_at_media_rate_including_skews() {
    let text = preset("seagate-cheetah-15k5-146gb");
    // The 65 tracks of the first band on its first surface, 1,200 sectors each.
    let (tracks, per_track) = (65u32, 1_200u32);
    let turns = f64::from(tracks) + f64::from(tracks - 1) * 0.1417;
    let expected_ms = turns * 60e3 / 15_020.0;
    let whole = Request::new(Op::Read, Lba(0), tracks * per_track);
    let (done, _) = one_by_one(&text, vec![(SimDuration::ZERO, whole)]);
    let got_ms = done[0].latency.as_ns() as f64 / 1e6;
    println!("{got_ms} {expected_ms}");
    assert!((0.0..60e3 / 15_020.0 + 1.0).contains(&(got_ms - expected_ms)), "{got_ms}");
}

/// Time to read 400 tracks of the outer zone of drives that go back and forth over the
/// surfaces: a turn per track, and the skews of tracks and cylinders.
#[test]
fn presets_read_a_zone_at_media_rate_including_skews() {
    for name in [
        "desktop-7200-80gb",
        "desktop-7200-160gb",
        "generic-sata-7200-250gb",
        "hitachi-travelstar-5k160",
    ] {
        let text = preset(name);
        let value = |key: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
            let value = line.and_then(|line| line.split_whitespace().next()).expect("a value");
            value.trim_matches('"').trim_end_matches("rpm").parse().expect("a number")
        };
        let (heads, tracks) = (value("heads"), 400.0);
        let crossings = tracks / heads - 1.0;
        let skews =
            (tracks - 1.0 - crossings) * value("track_skew") + crossings * value("cylinder_skew");
        let turn_ms = 60e3 / value("rpm");
        let expected_ms = (tracks + skews) * turn_ms;
        let sectors = (tracks * value("outer_sectors_per_track")) as u32;
        let whole = Request::new(Op::Read, Lba(0), sectors);
        let (done, _) = one_by_one(&text, vec![(SimDuration::ZERO, whole)]);
        let got_ms = done[0].latency.as_ns() as f64 / 1e6;
        println!("{name}: {got_ms} {expected_ms}");
        assert!((0.0..turn_ms + 1.0).contains(&(got_ms - expected_ms)), "{name}: {got_ms}");
    }
}

/// Presets of every seek model there is a preset of, old and new.
const PRESETS: [&str; 5] = [
    "hp-c2247a-1gb",
    "quantum-atlas-iii-9gb",
    "maxtor-atlas-10k-iv-146gb",
    "desktop-7200-160gb",
    "seagate-cheetah-15k5-146gb",
];

/// A preset that does one thing after the other, on its medium.
fn without_buffer(name: &str) -> toml::Table {
    let mut table: toml::Table = preset(name).parse().expect("a preset");
    table.insert("cache_segments".to_owned(), 0.into());
    table.insert("write_cache".to_owned(), false.into());
    table.insert("queue_depth".to_owned(), 1.into());
    for key in ["cache_write_segments", "separate_write_segment", "read_ahead"] {
        table.remove(key);
    }
    table
}

/// One key to a line, tables within it.
fn text_of(table: &toml::Table) -> String {
    table.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
}

/// Random reads of a sector, one after the other, with random pauses.
fn random_reads(text: &str, count: usize) -> (Vec<Completion>, Vec<EventRecord>) {
    let capacity = build(text).capacity();
    let mut stream = Stream::new(23, "reads");
    let work = (0..count).map(|_| {
        let pause = SimDuration::from_ns(stream.below(30_000_000) + 1);
        (pause, Request::new(Op::Read, Lba(stream.below(capacity)), 1))
    });
    one_by_one(text, work.collect())
}

fn milliseconds(value: &toml::Value) -> f64 {
    let text = value.as_str().expect("a time");
    let number = |unit| text.strip_suffix(unit).and_then(|number| number.parse::<f64>().ok());
    number("ms").or(number("us").map(|us| us / 1e3)).expect("milliseconds or microseconds")
}

fn numbers(value: &toml::Value) -> Vec<f64> {
    let number = |it: &toml::Value| it.as_float().or(it.as_integer().map(|n| n as f64));
    value.as_array().expect("a list").iter().map(|it| number(it).expect("a number")).collect()
}

/// The seek time over a distance, in ms, as the preset's own numbers say: worked out here anew.
fn seek_curve(seek: &toml::Value, cylinders: f64) -> Box<dyn Fn(f64) -> f64> {
    match seek["kind"].as_str().expect("a kind") {
        "curve" => {
            let [min, mean, max] =
                ["single", "average", "full"].map(|key| milliseconds(&seek[key]));
            // Lee and Katz 1993.
            let a = (-10.0 * min + 15.0 * mean - 5.0 * max) / (3.0 * cylinders.sqrt());
            let b = (7.0 * min - 15.0 * mean + 8.0 * max) / (3.0 * cylinders);
            Box::new(move |d| a * (d - 1.0).sqrt() + b * (d - 1.0) + min)
        }
        "hpl-plus-10" => {
            let (ten, v) = (numbers(&seek["first_ten"]), numbers(&seek["values"]));
            Box::new(move |d| match d {
                d if d <= 10.0 => ten[d as usize - 1],
                d if d < v[0] => v[1] + v[2] * d.sqrt(),
                d => v[3] + v[4] * d,
            })
        }
        "table" => {
            let points = seek["points"].as_array().expect("a list");
            let point = |it: &toml::Value| {
                let distance = it[0].as_integer().map(|n| n as f64).or(it[0].as_float());
                (distance.expect("a distance"), milliseconds(&it[1]))
            };
            let points: Vec<(f64, f64)> = points.iter().map(point).collect();
            Box::new(move |d| {
                let after = points.partition_point(|point| point.0 < d).clamp(1, points.len() - 1);
                let ((d0, t0), (d1, t1)) = (points[after - 1], points[after]);
                if d <= points[0].0 { points[0].1 } else { t0 + (t1 - t0) * (d - d0) / (d1 - d0) }
            })
        }
        other => panic!("{other} is in no preset"),
    }
}

/// Cylinders that cut a preset's sectors into `count` equal parts, and how many cylinders it has.
fn even_cylinders(table: &toml::Table, count: usize) -> (Vec<f64>, f64) {
    let number = |value: &toml::Value| value.as_integer().expect("a count") as f64;
    let zones: Vec<(f64, f64, f64)> = match table.get("zones") {
        Some(zones) => zones
            .as_array()
            .expect("zones")
            .iter()
            .map(|zone| {
                let [first, last, sectors] =
                    ["first_cylinder", "last_cylinder", "sectors_per_track"]
                        .map(|it| number(&zone[it]));
                (first, last + 1.0, sectors)
            })
            .collect(),
        // Zones of equal width whose tracks grow shorter evenly: in the limit, a straight line.
        None => {
            let [cylinders, outer, inner] =
                ["cylinders", "outer_sectors_per_track", "inner_sectors_per_track"]
                    .map(|key| number(&table[key]));
            let zones = number(table.get("zone_count").unwrap_or(&16.into()));
            (0..zones as u32)
                .map(|zone| {
                    let share = f64::from(zone) / (zones - 1.0).max(1.0);
                    let (first, last) = (f64::from(zone) / zones, f64::from(zone + 1) / zones);
                    (first * cylinders, last * cylinders, outer + (inner - outer) * share)
                })
                .collect()
        }
    };
    let whole: f64 = zones.iter().map(|(first, last, sectors)| (last - first) * sectors).sum();
    let (mut cuts, mut before) = (Vec::new(), 0.0);
    for (first, last, sectors) in &zones {
        let held = (last - first) * sectors;
        while cuts.len() < count {
            let wanted = (cuts.len() as f64 + 0.5) / count as f64 * whole - before;
            if wanted > held {
                break;
            }
            cuts.push(first + wanted / sectors);
        }
        before += held;
    }
    (cuts, zones.last().expect("a zone").1)
}

/// Half a turn of waiting, and the integral of the seek curve over random pairs of sectors.
#[test]
fn presets_wait_half_a_turn_and_seek_the_integral_of_their_curve() {
    for name in PRESETS {
        let table = without_buffer(name);
        let (done, events) = random_reads(&text_of(&table), 20_000);
        let count = done.len() as f64;
        let rpm = table["rpm"].as_str().and_then(|rpm| rpm.strip_suffix("rpm"));
        let turn = 60e3 / rpm.and_then(|rpm| rpm.parse::<f64>().ok()).expect("a speed");
        let waited: f64 =
            done.iter().map(|it| it.breakdown.get(LatencyPhase::Rotate).as_ns() as f64).sum();
        println!("{name}: waits {} of a turn", waited / count / 1e6 / turn);
        close(waited / count / 1e6, turn / 2.0, 0.012);

        let (cylinders, all) = even_cylinders(&table, 500);
        let time = seek_curve(&table["seek"], all);
        let mut integral = 0.0;
        for from in &cylinders {
            for to in &cylinders {
                let distance = (from - to).abs();
                integral += if distance < 1.0 { 0.0 } else { time(distance) };
            }
        }
        integral /= (cylinders.len() * cylinders.len()) as f64;
        let sought: f64 = events
            .iter()
            .filter_map(EventRecord::event)
            .flat_map(DiskEvent::parts)
            .map(|part| {
                if let DiskEvent::Seek { duration, .. } = part {
                    duration.as_ns() as f64
                } else {
                    0.0
                }
            })
            .sum();
        println!("{name}: seeks {} ms, {integral} by the curve", sought / count / 1e6);
        close(sought / count / 1e6, integral, 0.012);
    }
}

/// M/G/1 again, with the service times of real drives: sampled without queueing.
#[test]
fn presets_wait_as_pollaczek_and_khinchine_say() {
    for name in PRESETS {
        let text = text_of(&without_buffer(name));
        let (done, _) = random_reads(&text, 20_000);
        let count = done.len() as f64;
        let ms = |done: &Completion| done.latency.as_ns() as f64 / 1e6;
        let mean = done.iter().map(ms).sum::<f64>() / count;
        let second = done.iter().map(|done| ms(done).powi(2)).sum::<f64>() / count;
        let rate = 0.5 / mean;
        let expected = mean + rate * second / (2.0 * (1.0 - 0.5));
        let got = poisson_response_ms(&text, 1.0 / rate, 40_000);
        println!("{name}: {got} ms, {expected} expected, {mean} alone");
        close(got, expected, 0.03);
    }
}
