//! Replays a drive's measured log on its parameters, and the figure that compares the two.

use hybridsim_engine::{Lba, Op, Request, SimDuration, Stream};
use std::io::Read;

#[derive(Clone, Debug)]
pub struct Logged {
    pub request: Request,
    pub observed_us: f64,
    /// From its completion to the next arrival.
    pub gap: SimDuration,
}

pub fn log(path: &std::path::Path) -> Vec<Logged> {
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
pub fn demerit_ms(mut ours: Vec<f64>, mut theirs: Vec<f64>) -> f64 {
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

/// Results of a replay, in milliseconds.
pub struct Replayed {
    /// All, reads, writes.
    pub demerit: [f64; 3],
    pub mean: [f64; 3],
    pub observed: [f64; 3],
}

/// Replays one request deep: each arrives its logged gap after the completion of the one before.
/// The platters begin at an angle drawn for `path`.
pub fn latencies_ms(log: &[Logged], drive: toml::Table, path: &str) -> Vec<f64> {
    let mut gap = SimDuration::ZERO;
    let mut work = Vec::with_capacity(log.len());
    for line in log {
        work.push((gap, line.request));
        gap = line.gap;
    }
    let component = super::build_table(drive, path).unwrap_or_else(|p| panic!("{path}: {p:?}"));
    let (done, _) = super::one_by_one_on(component, work);
    done.iter().map(|done| done.latency.as_ns() as f64 / 1e6).collect()
}

/// Compares a replay with its log.
pub fn compare(log: &[Logged], replayed_ms: &[f64]) -> Replayed {
    let mut out = Replayed { demerit: [0.0; 3], mean: [0.0; 3], observed: [0.0; 3] };
    for (at, op) in [None, Some(Op::Read), Some(Op::Write)].into_iter().enumerate() {
        let pairs = log.iter().zip(replayed_ms);
        let pairs = pairs.filter(|(line, _)| op.is_none_or(|op| line.request.op == op));
        let (theirs, ours): (Vec<f64>, Vec<f64>) =
            pairs.map(|(line, &ours)| (line.observed_us / 1e3, ours)).unzip();
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        (out.mean[at], out.observed[at]) = (mean(&ours), mean(&theirs));
        out.demerit[at] = demerit_ms(ours, theirs);
    }
    out
}

/// The log with other angles of the platters: a pause of up to a turn more before each request that
/// does not go on where the one before ended, half a turn less where the pause is long. A drive's
/// angle at a random request is chance; this shows how much of a figure is.
pub fn with_other_angles(log: &[Logged], turn: SimDuration, draw: u64) -> Vec<Logged> {
    let mut stream = Stream::new(draw, "angles");
    let mut out = log.to_vec();
    for at in 1..out.len() {
        let before = out[at - 1].request.end();
        if out[at].request.lba == before {
            continue;
        }
        let gap = &mut out[at - 1].gap;
        *gap += SimDuration::from_ns(stream.below(turn.as_ns()));
        if *gap > turn {
            *gap -= turn / 2;
        }
    }
    out
}
