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

/// What a replay gave, in milliseconds.
struct Replayed {
    /// All, reads, writes.
    demerit: [f64; 3],
    mean: [f64; 3],
    observed: [f64; 3],
}

/// Replays one request deep: each arrives its logged gap after the completion of the one before.
fn replay(name: &str, log: &[Logged], drive: toml::Table) -> Replayed {
    let mut gap = SimDuration::ZERO;
    let mut work = Vec::new();
    for line in log {
        work.push((gap, line.request));
        gap = line.gap;
    }
    let layer = common::build_table(drive, "disk").unwrap_or_else(|p| panic!("{name}: {p:?}"));
    let (done, _) = common::one_by_one_on(layer, work);
    let mut out = Replayed { demerit: [0.0; 3], mean: [0.0; 3], observed: [0.0; 3] };
    for (at, op) in [None, Some(Op::Read), Some(Op::Write)].into_iter().enumerate() {
        let wanted = |request: &Request| op.is_none_or(|op| request.op == op);
        let ours = done.iter().filter(|d| wanted(&d.request));
        let mut ours: Vec<f64> = ours.map(|d| d.latency.as_ns() as f64 / 1e6).collect();
        let theirs = log.iter().filter(|line| wanted(&line.request));
        let mut theirs: Vec<f64> = theirs.map(|line| line.observed_us / 1e3).collect();
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        (out.mean[at], out.observed[at]) = (mean(&ours), mean(&theirs));
        out.demerit[at] = demerit_ms(ours.clone(), theirs.clone());
        ours.sort_by(f64::total_cmp);
        theirs.sort_by(f64::total_cmp);
        if std::env::var_os("HYBRIDSIM_QUANTILES").is_some() {
            let what = ["all", "reads", "writes"][at];
            let row = |v: &[f64]| -> String {
                let at = |percent: usize| format!("{:7.3}", v[v.len() * percent / 100]);
                [1, 5, 10, 25, 40, 50, 60, 75, 90, 95, 99].map(at).join("")
            };
            println!("{name:24} {what:7} ours     {}", row(&ours));
            println!("{name:24} {what:7} observed {}", row(&theirs));
        }
    }
    out
}

/// Drive, folder, parameter file, log; the exact demerit figure of DiskSim 4.0 with the same
/// parameters, and the bound to keep. For the last drive the figure is that of DiskSim 2.0; 4.0
/// does not finish its log. Two drives are not yet as close as DiskSim; their bounds say so.
const DRIVES: &[(&str, &str, &str, &str, f64, f64)] = &[
    ("Atlas III", "quantum_atlas_iii", "atlas_III", "atlas_III", 0.3782, 0.3782),
    ("Barracuda", "seagate_barracuda", "barracuda", "barracuda", 0.3483, 0.3483),
    ("Cheetah 9LP", "seagate_cheetah9lp", "cheetah9LP", "cheetah9LP", 0.1076, 0.1076),
    ("Ultrastar 18ES", "ibm_18es", "ibm18es", "ibm18es", 0.1343, 0.1343),
    ("C2247A", "hp_c2247a", "hp_c2247a", "hp_c2247a", 0.0910, 0.14),
    ("C3323A", "hp_c3323a", "hp_c3323a_validate", "hp_c3323a", 0.2713, 0.2713),
    ("Cheetah 15K.5", "seagate_cheetah15k5", "Seagate-Cheetah15k5", "random", 0.2943, 0.2943),
    ("ST41601N", "seagate_st41601n", "st41601n", "st41601n", 0.083, 0.09),
];

#[test]
fn measured_drives() {
    let Ok(data) = std::env::var("HYBRIDSIM_DATA") else {
        println!("SKIPPED: set HYBRIDSIM_DATA to the folder with the measured logs");
        return;
    };
    let disks = std::path::Path::new(&data).join("disksim/disks");
    println!("drive            demerit ms  DiskSim   reads  writes  mean ms  observed  of mean");
    let mut worse = Vec::new();
    for &(name, folder, specs, trace, disksim, bound) in DRIVES {
        let parv = specs.trim_end_matches("_validate");
        let folder = disks.join(folder);
        let log = log(&folder.join(format!("{trace}.trace.gz")));
        let mut drive = common::disksim::drive(
            &folder.join(format!("{specs}.diskspecs")),
            &folder.join(format!("{parv}.parv")),
        );
        if name == "Cheetah 15K.5" {
            // As the validation published with it: all caching off.
            drive.insert("write_cache".into(), false.into());
            drive.insert("cache_segments".into(), 0.into());
            drive.remove("cache_write_segments");
        }
        let got = replay(name, &log, drive);
        let [all, reads, writes] = got.demerit;
        println!(
            "{name:16} {all:9.4} {disksim:9.4} {reads:8.3} {writes:7.3} {:8.3} {:9.3} {:7.2} %",
            got.mean[0],
            got.observed[0],
            100.0 * all / got.observed[0]
        );
        println!(
            "{:16} mean of reads {:.3} / {:.3}, of writes {:.3} / {:.3}",
            "", got.mean[1], got.observed[1], got.mean[2], got.observed[2]
        );
        if all > bound {
            worse.push(name);
        }
    }
    assert!(worse.is_empty(), "worse than they should be: {worse:?}");
}
