//! Differences by seek distance, and the correction of the seek curve that a log calls for.
//!
//! Where the angles are chance, a seek that takes longer by some time makes the access take longer
//! by the same time on average. So the mean difference between log and simulation at a distance is
//! the error of the curve there, once the constants are fitted.

use super::distance::demerit;
use super::log_fit::Sample;
use super::start::DiskDrive;
use super::{Change, log};
use hybridsim_engine::Op;
use serde::Serialize;

/// Runs with other angles that simulated means are over.
const RUNS: usize = 8;
/// Upper ends of the bands in reports, as shares of the stroke.
const BANDS: [f64; 7] = [0.01, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0];
/// Bands of a correction, with as many requests each.
const KNOTS: usize = 5;
/// Fewest requests in a band of a correction.
const BAND_MIN: usize = 40;

/// Random requests over a band of distances, with the start's values and with the fitted ones.
#[derive(Clone, Debug, Serialize)]
pub struct DistanceChange {
    /// `read` or `write`.
    pub op: &'static str,
    /// The band, as shares of the stroke.
    pub from: f64,
    pub to: f64,
    /// Requests in it.
    pub requests: usize,
    /// Mean response time measured.
    pub measured_ms: f64,
    /// Mean response time simulated, over runs with other angles.
    pub mean: Change,
}

/// A correction of a seek curve: knots of share of the stroke and time to add, ascending, with
/// straight lines between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeekCorrection {
    /// For reads, and for writes where these have no knots of their own.
    pub read_ms: Vec<(f64, f64)>,
    /// Empty with a write cache, which hides the seeks of writes.
    pub write_ms: Vec<(f64, f64)>,
}

/// A random request.
struct Access {
    op: Op,
    /// Share of the stroke.
    distance: f64,
    measured_ms: f64,
    simulated_ms: f64,
}

/// The random requests of `sample` on `drive`.
fn accesses(sample: &Sample<'_>, drive: &DiskDrive<'_>) -> Vec<Access> {
    let bench = sample.bench;
    let scripts = &bench.other_angles[..RUNS];
    let runs: Vec<_> = scripts.iter().map(|script| sample.latencies(drive, script)).collect();
    let is_random = |&(log, at): &(usize, usize)| {
        let class = bench.classes[bench.numbers[log][at]];
        class.place == log::RANDOM && bench.distances[log][at] > 0.0
    };
    // A drive that stops early has no accesses.
    let mean = |(log, at): (usize, usize)| {
        let all = runs.iter().map(|run| run[log].get(at).copied());
        Some(all.sum::<Option<f64>>()? / RUNS as f64)
    };
    let access = |of: (usize, usize)| {
        let line = &bench.logs[of.0].lines[of.1];
        Some(Access {
            op: line.request.op,
            distance: bench.distances[of.0][of.1],
            measured_ms: line.response_ms,
            simulated_ms: mean(of)?,
        })
    };
    sample.of.iter().copied().filter(is_random).filter_map(access).collect()
}

/// The random requests of `sample` by distance, on the drives `before` and `after` a fit.
pub(super) fn by_distance(
    sample: &Sample<'_>,
    before: &DiskDrive<'_>,
    after: &DiskDrive<'_>,
) -> Vec<DistanceChange> {
    let (before, after) = (accesses(sample, before), accesses(sample, after));
    let pairs: Vec<(&Access, &Access)> = before.iter().zip(&after).collect();
    let mut changes = Vec::new();
    for op in [Op::Read, Op::Write] {
        let mut from = 0.0;
        for to in BANDS {
            let within = |it: &&(&Access, &Access)| {
                it.0.op == op && it.0.distance > from && it.0.distance <= to
            };
            let band: Vec<_> = pairs.iter().filter(within).collect();
            let mean = |of: fn(&(&Access, &Access)) -> f64| {
                band.iter().map(|pair| of(pair)).sum::<f64>() / band.len() as f64
            };
            if !band.is_empty() {
                changes.push(DistanceChange {
                    op: log::word(op),
                    from,
                    to,
                    requests: band.len(),
                    measured_ms: mean(|pair| pair.0.measured_ms),
                    mean: Change {
                        before_ms: mean(|pair| pair.0.simulated_ms),
                        after_ms: mean(|pair| pair.1.simulated_ms),
                    },
                });
            }
            from = to;
        }
    }
    changes
}

/// The correction by which `drive` comes closest to `sample` at every distance.
fn closest(sample: &Sample<'_>, drive: &DiskDrive<'_>) -> SeekCorrection {
    let all = accesses(sample, drive);
    let knots = |op: Op| {
        let mut own: Vec<&Access> = all.iter().filter(|access| access.op == op).collect();
        own.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        let size = own.len().div_ceil(KNOTS);
        if size < BAND_MIN {
            return Vec::new();
        }
        let mean = |band: &[&Access], of: fn(&Access) -> f64| {
            band.iter().map(|access| of(access)).sum::<f64>() / band.len() as f64
        };
        let knot = |band: &[&Access]| {
            (mean(band, |it| it.distance), mean(band, |it| it.measured_ms - it.simulated_ms))
        };
        own.chunks(size).map(knot).collect()
    };
    let hidden = drive.hides_writes();
    SeekCorrection {
        read_ms: knots(Op::Read),
        write_ms: if hidden { Vec::new() } else { knots(Op::Write) },
    }
}

/// The correction of the curve of `drive` that `sample` calls for, if it is no chance: that of
/// either half brings the drive closer to the other half, and that of both to the whole.
pub(super) fn correction(sample: &Sample<'_>, drive: &DiskDrive<'_>) -> Option<SeekCorrection> {
    let halves = sample.halves();
    let [first, second] = &halves;
    let of_halves = [first, second].map(|half| closest(half, drive));
    let mut found = closest(sample, drive);
    // An operation without knots in either half is not confirmed.
    of_halves.iter().for_each(|half| found.keep_confirmed(half));
    let gains = |(found, judge): (&SeekCorrection, &&Sample<'_>)| {
        judge.demerit_ms(&drive.with_seeks(found)) < judge.demerit_ms(drive)
    };
    if found.is_empty() || !of_halves.iter().zip([second, first].iter()).all(gains) {
        return None;
    }
    let with = drive.with_seeks(&found);
    let exact = |drive: &DiskDrive<'_>| {
        let own = sample.latencies(drive, &sample.bench.exact);
        demerit(&sample.all(&own), &sample.all_measured())
    };
    (exact(&with) < exact(drive)).then_some(found)
}

impl SeekCorrection {
    fn is_empty(&self) -> bool {
        self.read_ms.is_empty() && self.write_ms.is_empty()
    }

    /// Drops the knots of an operation for which `other` has none.
    fn keep_confirmed(&mut self, other: &Self) {
        for (own, other) in
            [(&mut self.read_ms, &other.read_ms), (&mut self.write_ms, &other.write_ms)]
        {
            if other.is_empty() {
                own.clear();
            }
        }
    }

    /// The times in words.
    pub fn words(&self) -> String {
        let knots = |knots: &[(f64, f64)]| {
            let all = knots.iter().map(|(share, ms)| format!("{ms:+.2} at {:.0} %", share * 100.0));
            all.collect::<Vec<_>>().join(", ")
        };
        let mut text = String::new();
        if !self.read_ms.is_empty() {
            text = format!("reads {}", knots(&self.read_ms));
        }
        if !self.write_ms.is_empty() {
            let comma = if text.is_empty() { "" } else { "; " };
            text += &format!("{comma}writes {}", knots(&self.write_ms));
        }
        text + " of the stroke"
    }

    /// The time to add to a seek over `share` of the stroke, in ms.
    pub(super) fn at(&self, share: f64, write: bool) -> f64 {
        let own = if write && !self.write_ms.is_empty() { &self.write_ms } else { &self.read_ms };
        let after = own.partition_point(|knot| knot.0 < share);
        let (Some(last), Some(first)) = (own.last(), own.first()) else { return 0.0 };
        match after {
            0 => first.1,
            after if after == own.len() => last.1,
            after => {
                let ((x0, y0), (x1, y1)) = (own[after - 1], own[after]);
                y0 + (y1 - y0) * (share - x0) / (x1 - x0)
            }
        }
    }
}
