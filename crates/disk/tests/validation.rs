//! Replays the response times measured on a real drive and compares the distributions.
//!
//! The figure is the rms demerit of Ruemmler and Wilkes: the root mean square horizontal distance
//! between the two cumulative distributions of access time.

mod common;

use hybridsim_engine::{Lba, Op, Request, SimDuration};
use std::io::Read;

struct Logged {
    request: Request,
    observed_us: f64,
    /// From its completion to the next arrival.
    gap: SimDuration,
}

fn log(path: &std::path::Path) -> Vec<Logged> {
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the measured log");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("a gzip file");
    let line = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| columns[at].parse::<f64>().expect("a number");
        let op = if columns[0] == "R" { Op::Read } else { Op::Write };
        Logged {
            request: Request::new(op, Lba(number(2) as u64), number(3) as u32),
            observed_us: number(4),
            gap: SimDuration::from_ns_f64(number(5) * 1e3),
        }
    };
    text.lines().filter(|text| !text.trim().is_empty()).map(line).collect()
}

/// Both samples sorted, quantiles at (i + 0.5) / 10000 with straight lines between.
fn demerit_ms(mut ours: Vec<f64>, mut theirs: Vec<f64>) -> f64 {
    ours.sort_by(f64::total_cmp);
    theirs.sort_by(f64::total_cmp);
    let quantile = |sorted: &[f64], p: f64| {
        let at = p * (sorted.len() - 1) as f64;
        let low = at.floor() as usize;
        let high = (low + 1).min(sorted.len() - 1);
        sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
    };
    let steps = 10_000;
    let square = |i: u32| {
        let p = (f64::from(i) + 0.5) / f64::from(steps);
        (quantile(&ours, p) - quantile(&theirs, p)).powi(2)
    };
    ((0..steps).map(square).sum::<f64>() / f64::from(steps)).sqrt()
}

fn preset(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../presets/disk");
    std::fs::read_to_string(format!("{folder}/{name}.toml")).expect("a preset")
}

/// Replays one request deep: each arrives its logged gap after the completion of the one before.
fn replay(name: &str, log: &[Logged], text: &str, bound_ms: f64) {
    let mut gap = SimDuration::ZERO;
    let mut work = Vec::new();
    for line in log {
        work.push((gap, line.request));
        gap = line.gap;
    }
    let (done, _) = common::one_by_one(text, work);
    let ms = |latency: SimDuration| latency.as_ns() as f64 / 1e6;
    let split = |op: Option<Op>| {
        let wanted = |request: &Request| op.is_none_or(|op| request.op == op);
        let ours: Vec<f64> =
            done.iter().filter(|d| wanted(&d.request)).map(|d| ms(d.latency)).collect();
        let theirs = log.iter().filter(|line| wanted(&line.request));
        let theirs: Vec<f64> = theirs.map(|line| line.observed_us / 1e3).collect();
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        (demerit_ms(ours.clone(), theirs.clone()), mean(&ours), mean(&theirs), ours, theirs)
    };
    let (all, ours, theirs, mut our, mut their) = split(None);
    let (reads, writes) = (split(Some(Op::Read)), split(Some(Op::Write)));
    println!("{name}: demerit {all:.4} ms (reads {:.3}, writes {:.3})", reads.0, writes.0);
    println!("  mean {ours:.4} ms, observed {theirs:.4} ms");
    println!("  reads {:.4} / {:.4}, writes {:.4} / {:.4}", reads.1, reads.2, writes.1, writes.2);
    our.sort_by(f64::total_cmp);
    their.sort_by(f64::total_cmp);
    for percent in [5, 25, 50, 75, 95, 99] {
        let at = |v: &[f64]| v[v.len() * percent / 100];
        println!("  {percent} %: {:.3} ms, observed {:.3} ms", at(&our), at(&their));
    }
    assert!(all < bound_ms, "{name}: {all:.4} ms");
}

#[test]
fn measured_drives() {
    let Ok(data) = std::env::var("HYBRIDSIM_DATA") else {
        println!("SKIPPED: set HYBRIDSIM_DATA to the folder with the measured logs");
        return;
    };
    let disks = std::path::Path::new(&data).join("disksim/disks");
    let cheetah = log(&disks.join("seagate_cheetah9lp/cheetah9LP.trace.gz"));
    replay("Cheetah 9LP", &cheetah, &preset("seagate-cheetah-9lp"), 0.14);
    let cheetah = log(&disks.join("seagate_cheetah15k5/random.trace.gz"));
    // As the validation published with it: all caching off.
    let text = preset("seagate-cheetah-15k5-146gb")
        .replace("write_cache = true", "write_cache = false")
        .replace("cache_segments = 32", "cache_segments = 0")
        .replace("cache_write_segments = 11", "");
    replay("Cheetah 15K.5, caches off", &cheetah, &text, 0.31);
}
