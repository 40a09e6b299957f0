//! konanki's flash: erase distributions of figures 5.7 and 5.8, table 4.1 and its extraction
//! from measured latencies (section 5.2), and every FTL on a verified device.

mod common;

use common::{Host, build, chosen, run, settings, text, us};
use hybridsim_config::param::{Settings, Value};
use hybridsim_engine::{Component, Lba, Op, Request, SimTime};
use hybridsim_flash::FlashEvent;
use hybridsim_flash::{defaults, ftl};
use std::collections::BTreeMap;

const MIB_SECTORS: u64 = 2048;

fn with_ftl(settings: Settings, name: &str) -> Settings {
    settings.and("ftl", defaults::entry("ftl", name, &hybridsim_ssd::registry()))
}

/// The 1 GB medium: 8,192 blocks of 64 pages of 2 KiB, 64 of them spare for log blocks.
fn medium(name: &str) -> Settings {
    with_ftl(settings(), name)
        .and("channels", Value::Count(1))
        .and("dies_per_channel", Value::Count(1))
        .and("planes_per_die", Value::Count(1))
        .and("blocks_per_plane", Value::Count(8192))
        .and("pages_per_block", Value::Count(64))
        .and("over_provisioning", Value::Number(64.0 / 8128.0))
        .and("program_order", text("any"))
        .and("timing", chosen("timing", "none"))
}

/// An 85 MB file written `passes` times from sector `start` on in requests of `sectors`.
fn file(start: u64, sectors: u64, passes: u64) -> Vec<(SimTime, Request)> {
    let mut listed = Vec::new();
    for _ in 0..passes {
        let mut done = 0;
        while done < 85 * MIB_SECTORS {
            let length = sectors.min(85 * MIB_SECTORS - done) as u32;
            let at = SimTime::from_ns(1_000_000 * (listed.len() as u64 + 1));
            listed.push((at, Request::new(Op::Write, Lba(start + done), length)));
            done += u64::from(length);
        }
    }
    listed
}

/// The fraction of the first `blocks` blocks by erase count.
fn erased(settings: &Settings, requests: Vec<(SimTime, Request)>, blocks: u32) -> Fractions {
    let (_, events, end) = run(build(settings).expect("valid settings"), Host::new(requests));
    end.expect("a run without a fault");
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for record in events {
        if let Some(FlashEvent::Erase { block, erases, .. }) = record.event() {
            counts.insert(block, erases);
        }
    }
    let mut fractions = Fractions::new();
    for block in 0..blocks {
        let times = counts.get(&block).copied().unwrap_or(0);
        *fractions.entry(times).or_default() += 1.0 / f64::from(blocks);
    }
    println!("{:?}: {fractions:.4?}", settings.value("ftl").map(Value::word));
    fractions
}

type Fractions = BTreeMap<u32, f64>;

fn share(fractions: &Fractions, times: impl std::ops::RangeBounds<u32>) -> f64 {
    fractions.range(times).map(|(_, fraction)| fraction).sum()
}

fn close(what: &str, got: f64, wanted: f64, within: f64) {
    assert!((got - wanted).abs() <= within, "{what}: {got:.4}, expected {wanted} +- {within}");
}

#[test]
fn figure_5_7_one_pass_over_a_partition() {
    // Linux sends USB storage at most 240 sectors; partitions begin at sector 63.
    let partition = (100 * MIB_SECTORS / 256) as u32;
    for chains in ["anand", "fmax"] {
        let fractions = erased(&medium(chains), file(63, 240, 1), 8192);
        assert_eq!(fractions.into_keys().collect::<Vec<_>>(), [0], "{chains} erases nothing");
    }
    let fractions = erased(&medium("in-place"), file(63, 240, 1), partition);
    assert_eq!(fractions.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    close("not erased", fractions[&0], 0.15, 0.01);
    close("erased once", fractions[&1], 0.79, 0.01);
    close("erased twice", fractions[&2], 0.06, 0.01);
}

#[test]
fn figure_5_8_fifteen_passes_over_a_large_medium() {
    let passes = |name| erased(&medium(name), file(0, 256, 15), 8192);
    let anand = passes("anand");
    assert!(share(&anand, 1..=1) >= 0.95, "{anand:?}");
    let fmax = passes("fmax");
    let twice = share(&fmax, 2..=2);
    assert!((0.70..=0.90).contains(&twice), "{fmax:?}");
    close("the rest of FMAX at 3", share(&fmax, 3..=3), 1.0 - twice, 1e-9);
    let page = passes("in-place");
    close("fixed addresses at 14", share(&page, 14..=14), 0.083, 0.01);
    close("fixed addresses at 0", share(&page, 0..=0), 0.917, 0.01);
    let log = passes("log-block");
    close("log blocks at 13 and 14", share(&log, 13..=14), 0.09, 0.01);
    close("log blocks at 0", share(&log, 0..=0), 0.91, 0.01);
}

/// The USB stick of the paper with made-up latencies: RL 130 us, WL 400 us, C 500 and 700 us.
fn stick(name: &str) -> Settings {
    medium(name)
        .and("blocks_per_plane", Value::Count(256))
        .and("over_provisioning", Value::Number(0.07))
        .and("timing", chosen("timing", "serial"))
        .and("read_time", us(130))
        .and("program_time", us(400))
        .and("erase_time", us(1_500))
        .and("controller.read_overhead", us(500))
        .and("controller.write_overhead", us(700))
}

/// Latencies in microseconds of requests of `pages` pages at the pages `first`.
fn latencies(settings: &Settings, op: Op, requests: &[(u64, u32)]) -> Vec<f64> {
    let listed = (1..).zip(requests).map(|(number, (first, pages))| {
        let request = Request::new(op, Lba(first * 4), pages * 4);
        (SimTime::from_ns(number * 1_000_000_000), request)
    });
    let (mut done, _, end) =
        run(build(settings).expect("valid settings"), Host::new(listed.collect()));
    end.expect("a run without a fault");
    done.sort_by_key(|done| done.issued);
    done.iter().map(|done| done.completed.since(done.issued).as_s_f64() * 1e6).collect()
}

/// Slope and intercept of the least-squares line through `points`.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let variance: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    (covariance / variance, y - covariance / variance * x)
}

#[test]
fn latencies_and_overheads_come_back_out_of_measurements() {
    // Section 5.2: the lowest latency of ten repetitions per size, then a line L = n * slope + C.
    for name in ["anand", "fmax", "log-block", "in-place"] {
        for (op, slope, overhead) in [(Op::Read, 130.0, 500.0), (Op::Write, 400.0, 700.0)] {
            let settings = match op {
                Op::Read => stick(name).and("precondition", text("fill")),
                _ => stick(name),
            };
            let sizes = [1, 2, 4, 8, 16, 32];
            let requests: Vec<(u64, u32)> = sizes
                .iter()
                .flat_map(|pages| (0..10).map(move |at| (at * 997 + u64::from(*pages), *pages)))
                .collect();
            let measured = latencies(&settings, op, &requests);
            let least = |rows: &[f64]| rows.iter().copied().fold(f64::INFINITY, f64::min);
            let points: Vec<(f64, f64)> = sizes
                .iter()
                .zip(measured.chunks(10))
                .map(|(pages, rows)| (f64::from(*pages), least(rows)))
                .collect();
            let (found_slope, found_overhead) = line(&points);
            close(&format!("{name} {op:?} slope"), found_slope, slope, 0.02 * slope);
            close(&format!("{name} {op:?} overhead"), found_overhead, overhead, 0.02 * overhead);
        }
    }
}

#[test]
fn a_dirty_medium_takes_whole_erases_longer() {
    // Section 5.2: L = n * WL + k * EL on flash that is not clean, here with every page programmed.
    let mut choice = defaults::entry("ftl", "in-place", &hybridsim_ssd::registry());
    if let Value::Entry(entry) = &mut choice {
        entry.settings.set("prewrite_probability", Value::Number(1.0));
    }
    let settings = stick("in-place").and("ftl", choice);
    // A block: 64 reads, an erase, 64 programs. Four pages across a block boundary: two blocks.
    let block = 64.0 * (130.0 + 400.0) + 1_500.0;
    let got = latencies(&settings, Op::Write, &[(3, 1), (3, 8), (62, 4)]);
    assert_eq!(got, [700.0 + block, 700.0 + block, 700.0 + 2.0 * block]);
}

#[test]
fn every_ftl_returns_the_last_write_of_requests_of_any_size() {
    for entry in ftl::ENTRIES.iter().filter(|entry| entry.description.name != "raw") {
        for order in ["sequential", "ascending", "any"] {
            for timing in ["interleaved", "serial"] {
                let settings = with_ftl(settings(), entry.description.name)
                    .and("program_order", text(order))
                    .and("timing", chosen("timing", timing));
                let ssd = build(&settings).expect("valid settings");
                let capacity = ssd.capacity();
                for depth in [1, 4] {
                    // The host checks what each read returns.
                    let ssd = build(&settings).expect("valid settings");
                    let (done, _, end) = run(ssd, Host::random(1_500, depth, capacity));
                    let name = entry.description.name;
                    end.unwrap_or_else(|fault| panic!("{name}, {order}, {timing}: {fault}"));
                    assert_eq!(done.len(), 1_500);
                }
            }
        }
    }
}

#[test]
fn the_host_erases_raw_flash() {
    let raw = with_ftl(settings(), "raw").and("program_order", text("any"));
    let write = |us: u64, first: u64, pages: u32| {
        (SimTime::from_ns(us * 1_000), Request::new(Op::Write, Lba(first * 4), pages * 4))
    };
    let trim = |us: u64, first: u64, pages: u32| {
        (SimTime::from_ns(us * 1_000), Request::new(Op::Trim, Lba(first * 4), pages * 4))
    };
    // Eight pages to the block: written, erased, written again.
    let listed = vec![write(0, 0, 8), trim(10_000, 0, 8), write(20_000, 0, 8)];
    let (done, _, end) = run(build(&raw).expect("valid settings"), Host::new(listed));
    end.expect("a run without a fault");
    let took = |number: usize| done[number].completed.since(done[number].issued).as_ns() / 1_000;
    assert_eq!([took(0), took(1), took(2)], [2_400, 2_000, 2_400]);
    // Without the erase the write fails, with a remedy.
    let listed = vec![write(0, 0, 8), trim(10_000, 0, 7), write(20_000, 0, 1)];
    let (_, _, end) = run(build(&raw).expect("valid settings"), Host::new(listed));
    let fault = end.expect_err("not erased").to_string();
    assert!(
        fault.contains("page 0 of block 0") && fault.contains("trim the whole block"),
        "{fault}"
    );
}

#[test]
fn mapping_tables_have_the_reported_size() {
    let bytes = |name: &str| {
        let info = build(&medium(name)).expect("valid settings").info();
        let found = info.constants.iter().find(|(key, _)| *key == "mapping_ram_bytes");
        found.expect("every device reports it").1
    };
    let (blocks, exported) = (8192.0, 8128.0);
    assert_eq!(bytes("raw"), 0.0);
    assert_eq!(bytes("in-place"), (exported * 64.0 / 8.0_f64).floor(), "a bit per page");
    assert_eq!(bytes("anand"), exported * 12.0 + blocks * 4.0, "chains; a link for each unit");
    assert_eq!(bytes("fmax"), exported * 12.0 + blocks / 2.0 * 64.0 * 2.0, "chains; page tables");
    let log = bytes("log-block");
    assert_eq!(
        log,
        exported * 8.0 + 64.0 * (16.0 + 64.0 * 2.0),
        "maps; log blocks and their page tables"
    );
    assert_eq!(log, bytes("bast"));
    let page = bytes("page");
    assert!(["anand", "fmax", "log-block"].iter().all(|name| bytes(name) < page / 3.0));
}
