//! Bit errors in an SSD: read retries, uncorrectable reads, and the refresh that avoids them.

mod common;

use common::{Done, Host, build, chosen, page_ftl, run, settings, text, unbuffered, us};
use hybridsim_config::build::BuildInput;
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{
    EventRecord, LatencyPhase, Lba, Op, Outcome, Request, SimDuration, SimTime, Stream,
};
use hybridsim_flash::ftl::{ENTRIES, REFRESH};
use hybridsim_flash::{Cause, FlashEvent, defaults};
use hybridsim_ssd::device::build_ssd;
use std::collections::BTreeSet;

const PAGES: u64 = 256;

/// A filled device with bit errors, which are too rare to occur.
fn modelled() -> Settings {
    settings()
        .and("errors", chosen("errors", "power-law"))
        .and("errors.rber_base", number(1e-30))
        .and("precondition", text("fill"))
}

fn number(value: f64) -> Value {
    Value::Number(value)
}

/// Every page is read twice: the first attempt fails for certain, the retry succeeds for certain.
fn retried_once(settings: Settings) -> Settings {
    settings.and("errors.rber_base", number(0.3)).and("errors.retry_rber_factor", number(0.0))
}

fn page(op: Op, page: u64) -> Request {
    Request::new(op, Lba(page * 4), 4)
}

fn at(us: u64) -> SimTime {
    SimTime::from_ns(us * 1_000)
}

fn simulate(settings: &Settings, listed: Vec<(SimTime, Request)>) -> (Vec<Done>, Vec<EventRecord>) {
    let ssd = build(settings).unwrap_or_else(|wrong| panic!("{wrong:?}"));
    let (mut done, events, end) = run(ssd, Host::new(listed));
    end.expect("a run without a fault");
    done.sort_by_key(|done| done.issued);
    (done, events)
}

/// Heating of the device, at 1 J per K without loss to the air, and its events.
fn heat(settings: &Settings, listed: Vec<(SimTime, Request)>) -> (f64, Vec<EventRecord>) {
    let device = settings
        .clone()
        .and("throttle", chosen("throttle", "thermal"))
        .and("throttle.thermal_resistance", number(10_000.0))
        .and("throttle.heat_capacity", number(1.0))
        .and("energy.read_energy", number(0.5))
        .and("energy.program_energy", number(2.0));
    let (_, events) = simulate(&device, listed);
    let celsius = events.iter().filter_map(|record| match record.event() {
        Some(FlashEvent::Temperature { millikelvin, .. }) => Some(f64::from(millikelvin) / 1e3),
        _ => None,
    });
    let celsius: Vec<f64> = celsius.collect();
    (celsius[celsius.len() - 1] - celsius[0], events)
}

#[test]
fn each_retry_heats_as_a_read() {
    let reads = || (0..10).map(|n| (at(n * 100_000), page(Op::Read, n))).collect();
    let (plain, _) = heat(&modelled(), reads());
    let (retried, _) = heat(&retried_once(modelled()), reads());
    assert!((plain - 5.0).abs() < 0.01 && (retried - 10.0).abs() < 0.01, "{plain} K, {retried} K");
    // Copies of garbage collection.
    let mut stream = Stream::new(5, "writes");
    let writes = (0..600).map(|n| (at(n * 1_000), page(Op::Write, stream.below(PAGES)))).collect();
    let (found, events) = heat(&retried_once(modelled()), writes);
    let joules = |record: &EventRecord| match record.event() {
        Some(FlashEvent::Read { .. }) => 0.5,
        Some(FlashEvent::ReadRetried { retries, .. }) => 0.5 * f64::from(retries),
        Some(FlashEvent::Program { .. }) => 2.0,
        _ => 0.0,
    };
    let copies = events.iter().filter(|record| {
        matches!(record.event(), Some(FlashEvent::ReadRetried { cause: Cause::Gc, .. }))
    });
    assert!(copies.count() > 100);
    let expected: f64 = events.iter().map(joules).sum();
    assert!((found / expected - 1.0).abs() < 0.01, "{found} K instead of {expected}");
}

/// Reads by their number of retries, without those that need none, and uncorrectable reads.
fn errors(events: &[EventRecord]) -> (Vec<u64>, u64) {
    let (mut by_retries, mut uncorrectable) = (vec![0; 10], 0);
    for event in events.iter().filter_map(EventRecord::event) {
        match event {
            FlashEvent::ReadRetried { retries, .. } => by_retries[retries as usize] += 1,
            FlashEvent::Uncorrectable { .. } => uncorrectable += 1,
            _ => {}
        }
    }
    (by_retries, uncorrectable)
}

/// The probability of more than `corrects` errors among `n` bits, from the definition.
fn tail(n: u32, corrects: u32, p: f64) -> f64 {
    let (mut term, mut sum) = ((1.0 - p).powi(n as i32), 0.0);
    for k in 0..=corrects {
        sum += term;
        term *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
    }
    1.0 - sum
}

#[test]
fn retries_are_as_frequent_as_the_binomial_distribution_says() {
    // Pages of 2 KiB are four codewords of 512 B, of which 8 bits are corrected.
    let device = modelled()
        .and("timing", chosen("timing", "none"))
        .and("errors.ecc_codeword", Value::Bytes(512))
        .and("errors.ecc_bits", Value::Count(8))
        .and("errors.retries_max", Value::Count(3))
        .and("errors.retry_rber_factor", number(0.8))
        .and("errors.rber_base", number(1.6e-3));
    let count = 40_000;
    let mut stream = Stream::new(3, "reads");
    let reads = (0..count).map(|n| (at(n), page(Op::Read, stream.below(PAGES)))).collect();
    let (done, events) = simulate(&device, reads);
    let (by_retries, uncorrectable) = errors(&events);
    let failed = done.iter().filter(|done| done.outcome == Outcome::Failed);
    assert_eq!(failed.clone().count() as u64, uncorrectable);
    // Lost pages are not tried again, and fail at once.
    let lost = failed.map(|done| done.request.lba.0).collect::<BTreeSet<_>>().len() as u64;
    let drawn = count - (uncorrectable - lost);
    assert!(drawn < count);
    let fails = |rber: f64| 1.0 - (1.0 - tail(4_096, 8, rber)).powi(4);
    let mut reached = drawn as f64;
    for (retries, found) in (1..).zip(&by_retries[1..=3]) {
        let chance: f64 = (0..retries).map(|n| fails(1.6e-3 * 0.8_f64.powi(n))).product();
        reached = drawn as f64 * chance;
        // Reads with at least so many retries; four standard deviations.
        let at_least: u64 = by_retries[retries as usize..].iter().sum();
        let off = (at_least as f64 - reached).abs();
        assert!(off < 4.0 * (reached * (1.0 - chance)).sqrt(), "{at_least}, {reached}: {found}");
    }
    let wanted = reached * fails(1.6e-3 * 0.512);
    assert!((lost as f64 - wanted).abs() < 4.0 * wanted.sqrt().max(1.0), "{lost} {wanted}");
}

#[test]
fn a_retry_lengthens_a_read_by_its_time() {
    for (timing, several) in
        [("serial", 1), ("interleaved", 1), ("queued", 1), ("serial", 4), ("queued", 4)]
    {
        let plain = modelled()
            .and("timing", chosen("timing", timing))
            .and("read_pages", Value::Count(several));
        let latency = |device: &Settings| {
            let (done, _) = simulate(device, vec![(at(0), page(Op::Read, 7))]);
            (done[0].completed, done[0].breakdown.get(LatencyPhase::FlashRead))
        };
        let (usual, usual_read) = latency(&plain);
        let times = [(None, 25), (Some(us(40)), 40)];
        for (time, wanted) in times {
            let mut device = retried_once(plain.clone());
            if let Some(time) = time {
                device = device.and("errors.retry_time", time);
            }
            let (end, read) = latency(&device);
            let longer = SimDuration::from_us(wanted);
            assert_eq!((end, read), (usual + longer, usual_read + longer), "{timing}");
        }
    }
}

#[test]
fn pages_read_by_one_operation_of_the_chip_are_retried_one_by_one() {
    // Four pages of a page of the chip: one read of the cells, and a retry of each.
    for timing in ["serial", "queued"] {
        let one_die = modelled()
            .and("timing", chosen("timing", timing))
            .and("channels", Value::Count(1))
            .and("dies_per_channel", Value::Count(1))
            .and("read_pages", Value::Count(4));
        let all = vec![(at(0), Request::new(Op::Read, Lba(0), 16))];
        let (usual, _) = simulate(&one_die, all.clone());
        let (retried, events) = simulate(&retried_once(one_die), all);
        assert_eq!(errors(&events).0[1], 4);
        assert_eq!(
            retried[0].completed,
            usual[0].completed + SimDuration::from_us(100),
            "{timing}"
        );
    }
}

#[test]
fn a_copy_is_retried_as_well() {
    for (timing, copy) in [
        ("serial", "none"),
        ("serial", "plane"),
        ("interleaved", "none"),
        ("interleaved", "plane"),
        ("queued", "none"),
        ("queued", "plane"),
    ] {
        // One die without parallel work: what copies take longer, writes take longer in all.
        let one_die = modelled()
            .and("timing", unbuffered(timing))
            .and("copy_back.within", text(copy))
            .and("channels", Value::Count(1))
            .and("dies_per_channel", Value::Count(1))
            .and("blocks_per_plane", Value::Count(24));
        let mut stream = Stream::new(3, "writes");
        let write = |n: u64, stream: &mut Stream| (at(n), page(Op::Write, stream.below(100)));
        let writes: Vec<_> = (0..200).map(|n| write(n, &mut stream)).collect();
        let last = |device: &Settings| {
            let (done, events) = simulate(device, writes.clone());
            (done.iter().map(|done| done.completed).max().expect("writes"), events)
        };
        let (usual, _) = last(&one_die);
        let (retried, events) = last(&retried_once(one_die));
        let copies = errors(&events).0[1];
        assert!(copies > 50, "{copies} copies");
        let longer = retried.since(usual);
        // Copies that follow the last write are not waited for.
        let (most, least) =
            (SimDuration::from_us(25) * copies, SimDuration::from_us(25) * (copies - 8));
        assert!(longer <= most && longer >= least, "{timing} {copy}: {longer:?} {copies}");
    }
}

/// Data of before the run cannot be read any more, those of the run can.
fn too_old() -> Settings {
    modelled()
        .and("errors.rber_retention", number(0.01))
        .and("errors.retention_age", Value::Duration(SimDuration::from_s(86_400 * 100)))
        .and("errors.retries_max", Value::Count(2))
}

#[test]
fn uncorrectable_reads_fail_after_their_retries() {
    let device = too_old().and("timing", chosen("timing", "serial"));
    let two = Request::new(Op::Read, Lba(4), 8);
    let listed = vec![
        (at(0), page(Op::Read, 1)),
        (at(1_000), page(Op::Write, 1)),
        (at(2_000), page(Op::Read, 1)),
        (at(3_000), two),
        (at(4_000), page(Op::Trim, 2)),
        (at(5_000), two),
    ];
    let (done, events) = simulate(&device, listed);
    let outcomes: Vec<_> = done.iter().map(|done| done.outcome == Outcome::Done).collect();
    assert_eq!(outcomes, [false, true, true, false, true, true]);
    // Three attempts of 25 us at the first read; the second page of two takes as many.
    let took = |number: usize| done[number].completed.since(done[number].issued);
    assert_eq!([took(0), took(2), took(3)], [75, 25, 100].map(SimDuration::from_us));
    assert_eq!(errors(&events), (vec![0, 0, 2, 0, 0, 0, 0, 0, 0, 0], 2));
}

#[test]
fn garbage_collection_loses_what_it_cannot_read() {
    let mut stream = Stream::new(7, "writes");
    let written: Vec<u64> = (0..600).map(|_| stream.below(128)).collect();
    let mut listed: Vec<_> =
        (0..).zip(&written).map(|(n, lpn)| (at(1_000 * n), page(Op::Write, *lpn))).collect();
    listed.extend((0..PAGES).map(|lpn| (at(1_000_000 + 1_000 * lpn), page(Op::Read, lpn))));
    let (done, events) = simulate(&too_old(), listed);
    let is_lost_copy = |event: &EventRecord| {
        matches!(event.event(), Some(FlashEvent::Uncorrectable { cause: Cause::Gc, .. }))
    };
    assert!(events.iter().filter(|event| is_lost_copy(event)).count() > 20);
    for done in done.iter().filter(|done| done.request.op == Op::Read) {
        let lpn = done.request.lba.0 / 4;
        assert_eq!(done.outcome == Outcome::Done, written.contains(&lpn), "page {lpn}");
    }
}

#[test]
fn worn_blocks_err_more_and_injected_wear_counts() {
    let share = |device: &Settings| {
        let reads = (0..2_000).map(|n| (at(100 * n), page(Op::Read, n % PAGES))).collect();
        errors(&simulate(device, reads).1).0[1]
    };
    let worn = modelled()
        .and("endurance", Value::Count(10_000))
        .and("errors.rber_wear", number(1e-3))
        .and("errors.wear_exponent", number(1.2));
    // 5,000 erases: 1e-3 * 5^1.2 = 6.9e-3 of 8,192 bits, 57 errors of which 72 are corrected; at
    // 6,000 erases they are 70, at 7,000 85.
    let at_wear = |fraction: f64| share(&worn.clone().and("initial_wear", number(fraction)));
    let found = [0.0, 0.3, 0.5, 0.6, 0.7].map(at_wear);
    let fails = |rber: f64| 2_000.0 * (1.0 - (1.0 - tail(8_192, 72, rber)).powi(2));
    assert_eq!(found[..2], [0, 0]);
    assert!(found[2] < found[3] && found[3] < found[4], "{found:?}");
    let wanted = fails(1e-3 * 6.0_f64.powf(1.2));
    assert!((found[3] as f64 - wanted).abs() < 4.0 * wanted.sqrt(), "{found:?} {wanted}");
}

#[test]
fn reads_of_a_block_disturb_it_until_it_is_refreshed() {
    // Each read adds 5e-6, so after 1,760 of them a codeword has 72 errors on average.
    let device = modelled()
        .and("timing", chosen("timing", "interleaved"))
        .and("errors.rber_read", number(5e-6))
        .and("errors.retries_max", Value::Count(8));
    let reads: Vec<_> = (0..4_000).map(|n| (at(100 * n), page(Op::Read, 0))).collect();
    let first_retry = |events: &[EventRecord]| {
        let is_retry =
            |event: &&EventRecord| matches!(event.event(), Some(FlashEvent::ReadRetried { .. }));
        events.iter().find(is_retry).map(|event| event.time.as_ns() / 100_000)
    };
    // The number of the first read that fails, by the chances of those before.
    let (mut survives, mut mean, mut square) = (1.0, 0.0, 0.0);
    for read in 0..2_500_u32 {
        let fails = 1.0 - (1.0 - tail(8_192, 72, 5e-6 * f64::from(read))).powi(2);
        mean += survives * fails * f64::from(read);
        square += survives * fails * f64::from(read).powi(2);
        survives *= 1.0 - fails;
    }
    let deviation = (square - mean * mean).sqrt();
    let registry = hybridsim_ssd::registry();
    let first = |seed| {
        let (settings, registry) = (&device, &registry);
        let input = BuildInput { settings, registry, seed, path: "ssd", children: &[] };
        let ssd = build_ssd(&input).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let (_, events, _) = run(ssd, Host::new(reads.clone()));
        first_retry(&events).expect("a retry") as f64
    };
    let found = (0..20).map(first).sum::<f64>() / 20.0;
    assert!((found - mean).abs() < 4.0 * deviation / 20.0_f64.sqrt(), "{found}, {mean} expected");

    let refreshed = device.and("idle_after", us(20)).and("errors.refresh_reads", Value::Count(500));
    let (done, events) = simulate(&refreshed, reads);
    assert_eq!(first_retry(&events), None);
    assert!(done.iter().all(|done| done.outcome == Outcome::Done));
    let moved = events.iter().filter(|event| {
        matches!(event.event(), Some(FlashEvent::Erase { cause: Cause::Refresh, .. }))
    });
    // 4,000 reads of a page whose block is moved after so many.
    let wanted = 4_000 / 500;
    let moved = moved.count() as u64;
    assert!(moved.abs_diff(wanted) <= 2, "{moved} refreshes of {wanted}");
}

#[test]
fn refreshed_data_remain_what_the_host_wrote() {
    let paced = |gc| page_ftl(&[("gc_pace", text(gc))]);
    let registry = hybridsim_ssd::registry();
    let refreshing = ENTRIES.iter().filter(|entry| entry.provides.contains(&REFRESH));
    let defaults = refreshing
        .map(|entry| defaults::entry("ftl", entry.description.name, &registry))
        .collect::<Vec<_>>();
    assert_eq!(defaults.len(), ENTRIES.len() - 1, "all but raw flash");
    for ftl in defaults.into_iter().chain([paced("blocking")]) {
        for rule in ["errors.refresh_reads", "errors.refresh_age", "errors.refresh_retries"] {
            let value = match rule {
                "errors.refresh_reads" => Value::Count(10),
                "errors.refresh_age" => us(200_000),
                _ => Value::Count(1),
            };
            let device = modelled()
                .and("ftl", ftl.clone())
                .and("idle_after", us(5))
                .and("errors.rber_base", number(7.5e-3))
                .and(rule, value);
            let mut stream = Stream::new(11, "requests");
            let mut request = |n: u64| {
                let op = if stream.chance(0.3) { Op::Write } else { Op::Read };
                (at(8_000 * n), page(op, stream.below(PAGES)))
            };
            let listed = (0..1_500).map(&mut request).collect();
            let ssd = build(&device).expect("valid settings");
            let mut host = Host::new(listed);
            host.halts = true;
            let (_, events, end) = run(ssd, host);
            end.expect("a run without a fault");
            let refreshed = events.iter().filter(|event| {
                matches!(event.event(), Some(FlashEvent::Erase { cause: Cause::Refresh, .. }))
            });
            assert!(refreshed.count() > 3, "{ftl:?} {rule}");
        }
    }
}

#[test]
fn data_are_refreshed_for_their_age_in_a_long_pause() {
    let day = 86_400_000_000;
    let device = modelled()
        .and("idle_after", us(1_000))
        .and("errors.refresh_age", Value::Duration(SimDuration::from_us(10 * day)));
    let listed = vec![(at(0), page(Op::Read, 0)), (at(35 * day), page(Op::Read, 0))];
    let mut host = Host::new(listed);
    host.halts = true;
    let (_, events, end) = run(build(&device).expect("valid settings"), host);
    end.expect("a run without a fault");
    let refreshes: Vec<u64> = events
        .iter()
        .filter(|event| {
            matches!(event.event(), Some(FlashEvent::Erase { cause: Cause::Refresh, .. }))
        })
        .map(|event| event.time.as_ns() / 1_000 / day)
        .collect();
    let by_day = |day| refreshes.iter().filter(|at| **at == day).count();
    // 256 pages of data in blocks of 8, every ten days.
    assert_eq!([10, 20, 30].map(by_day), [32; 3], "{refreshes:?}");
    assert_eq!(refreshes.len(), 96);
}

#[test]
fn one_pause_refreshes_all_blocks_that_need_it() {
    let device = modelled()
        .and("ftl", defaults::entry("ftl", "fast", &hybridsim_ssd::registry()))
        .and("idle_after", us(20))
        .and("errors.refresh_reads", Value::Count(20));
    // Pages of three blocks without a pause, then nothing for a second.
    let read = |n: u64| (at(n), page(Op::Read, 64 * (n % 3)));
    let listed = (0..90).map(read).chain([(at(1_000_000), page(Op::Read, 0))]).collect();
    let mut host = Host::new(listed);
    host.halts = true;
    let (_, events, end) = run(build(&device).expect("valid settings"), host);
    end.expect("a run without a fault");
    let erased = events.iter().filter(|event| {
        matches!(event.event(), Some(FlashEvent::Erase { cause: Cause::Refresh, .. }))
    });
    assert_eq!(erased.filter(|event| event.time < at(1_000_000)).count(), 3);
}

#[test]
fn writes_during_a_refresh_wait_for_single_copies() {
    let quiet = modelled().and("timing", chosen("timing", "serial")).and("erase_time", us(100));
    let refreshed =
        quiet.clone().and("idle_after", us(10)).and("errors.refresh_reads", Value::Count(1));
    let mut listed: Vec<_> = (0..8).map(|n| (at(0), page(Op::Read, 8 * n))).collect();
    // The refresh has begun when the writes arrive.
    listed.extend((0..8).map(|n| (at(3_000 + 3_000 * n), page(Op::Write, 200 + n))));
    let (done, events) = simulate(&refreshed, listed.clone());
    let copies = |event: &&EventRecord| {
        matches!(event.event(), Some(FlashEvent::Program { cause: Cause::Refresh, .. }))
    };
    assert!(events.iter().filter(copies).count() > 8);
    let slowest = |done: &[Done]| {
        let writes = done.iter().filter(|done| done.request.op == Op::Write);
        writes.map(|done| done.completed.since(done.issued)).max().expect("writes")
    };
    let (usual, _) = simulate(&quiet, listed);
    // An idle step that has begun, a copy with the write, and the erase that may follow it.
    let longer = slowest(&done).saturating_sub(slowest(&usual));
    assert!(longer <= SimDuration::from_us(2 * 325 + 100), "{longer:?}");
}

#[test]
fn a_refresh_ends_before_the_host_needs_another_block() {
    // One plane of 10 blocks of 64 pages with 426 pages of data. Of the open block 38 pages are
    // left when a refresh begins.
    let device = modelled()
        .and("timing", chosen("timing", "serial"))
        .and("channels", Value::Count(1))
        .and("dies_per_channel", Value::Count(1))
        .and("pages_per_block", Value::Count(64))
        .and("blocks_per_plane", Value::Count(10))
        .and("erase_time", us(100))
        .and("idle_after", us(10))
        .and("errors.refresh_reads", Value::Count(1));
    let mut listed: Vec<_> = (0..48).map(|n| (at(4_000 * n), page(Op::Write, n))).collect();
    listed.push((at(400_000), page(Op::Read, 100)));
    listed.extend((0..64).map(|n| (at(400_400), page(Op::Write, 128 + n))));
    let (done, events) = simulate(&device, listed);
    let is_copy = |event: &&EventRecord| {
        matches!(event.event(), Some(FlashEvent::Program { cause: Cause::Refresh, .. }))
    };
    assert_eq!(events.iter().filter(is_copy).count(), 64);
    let mut ends: Vec<_> = done.iter().map(|done| done.completed).collect();
    ends.sort();
    let burst = &ends[ends.len() - 64..];
    let longest = burst.windows(2).map(|pair| pair[1].since(pair[0])).max().expect("writes");
    // A write, the two copies by which 64 pages are copied within 38 writes, and an erase.
    assert!(longest <= SimDuration::from_us(300 + 2 * 325 + 100), "{longest:?}");
}

#[test]
fn settings_that_cannot_work_are_named() {
    let names = |settings: &Settings| -> Vec<&str> {
        build(settings).err().into_iter().flatten().map(|problem| problem.param).collect()
    };
    let registry = hybridsim_ssd::registry();
    let raw = modelled()
        .and("ftl", defaults::entry("ftl", "raw", &registry))
        .and("idle_after", us(5))
        .and("errors.refresh_reads", Value::Count(10))
        .and("errors.refresh_age", us(5));
    assert_eq!(names(&raw), ["errors.refresh_reads", "errors.refresh_age"]);
    assert_eq!(
        names(&modelled().and("errors.ecc_codeword", Value::Bytes(0))),
        ["errors.ecc_codeword"]
    );
    for codeword in [9, 4_096, 1 << 20] {
        let device = modelled().and("errors.ecc_codeword", Value::Bytes(codeword));
        assert_eq!(names(&device), ["errors.ecc_codeword"], "pages are 2 KiB");
    }
    let all = modelled()
        .and("errors.ecc_codeword", Value::Bytes(8))
        .and("errors.ecc_bits", Value::Count(72));
    assert_eq!(names(&all), ["errors.ecc_bits"]);
    assert_eq!(names(&modelled().and("errors.rber_base", number(0.0))), ["errors"]);
    let always = modelled().and("idle_after", us(5)).and("errors.refresh_age", us(0));
    assert_eq!(names(&always), ["errors.refresh_age"]);
    let never = modelled().and("idle_after", us(5)).and("errors.refresh_retries", Value::Count(9));
    assert_eq!(names(&never), ["errors.refresh_retries"], "of 8 retries");
    let types = modelled().and("errors.rber_types", Value::Numbers(vec![1.0, -1.0]));
    assert_eq!(names(&types), ["errors.rber_types"]);
}
