//! Figures 3 and 4: distances between successive requests, of writes.

use super::machines;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_engine::{Op, SimTime};
use hybridsim_report::study::Curve;

pub const EXPERIMENT: Experiment = Experiment { id: "bisson-fqueue/fig3-4", run: reproduce };

/// One megabyte, as an octave of sectors.
const MEGABYTE: usize = 11;
const DAY: SimTime = SimTime::from_ns(86_400_000_000_000);

#[derive(Default)]
struct Distances {
    /// Distances other than zero.
    all: Vec<u64>,
    /// Distances beyond a megabyte on the first day.
    far: Vec<u64>,
}

impl Distances {
    /// Mean count of the distances that occur, per octave; `None` where none does.
    fn counts(&mut self) -> Vec<Option<f64>> {
        self.all.sort_unstable();
        let (mut writes, mut distinct) = ([0.0; 64], [0.0; 64]);
        for same in self.all.chunk_by(|a, b| a == b) {
            let octave = 63 - same[0].leading_zeros() as usize;
            writes[octave] += same.len() as f64;
            distinct[octave] += 1.0;
        }
        let mean = |(writes, distinct): (&f64, &f64)| (*distinct > 0.0).then(|| writes / distinct);
        writes.iter().zip(&distinct).map(mean).collect()
    }

    /// The share of far writes in each of a thousand equal ranges of distance, and the last.
    fn ranges(&self) -> Vec<f64> {
        let widest = self.far.iter().copied().max().unwrap_or(1);
        let mut ranges = vec![0.0; 1001];
        for distance in &self.far {
            ranges[(distance * 1000 / widest) as usize] += 1.0 / self.far.len() as f64;
        }
        ranges
    }

    fn bands(&self) -> f64 {
        let mut ranges = self.ranges();
        ranges.sort_by(|a, b| b.total_cmp(a));
        ranges[..10].iter().sum()
    }

    /// The ranges by their distance in GB.
    fn band_points(&self) -> Vec<(f64, f64)> {
        let widest = self.far.iter().copied().max().unwrap_or(1) as f64 * 512e-9;
        let ranges = self.ranges().into_iter().enumerate();
        ranges.map(|(at, share)| (widest * at as f64 / 1000.0, share)).collect()
    }
}

/// Greatest over least; `None` if one is missing.
fn unevenness(counts: &[Option<f64>]) -> Option<f64> {
    let counts: Option<Vec<f64>> = counts.iter().copied().collect();
    let counts = counts?;
    let most = counts.iter().copied().fold(0.0, f64::max);
    Some(most / counts.iter().copied().fold(f64::MAX, f64::min))
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let (mut curves, mut bands) = (Vec::new(), Vec::new());
    for machine in machines(runner) {
        let mut seen = Distances::default();
        let mut last = None;
        let job = Job::of_workload(machine.name, &machine.workload);
        runner.each(&job, machine.sectors(), &mut |arrival| {
            let request = arrival.request;
            let before = last.replace(request.lba.0);
            let distance = before.map_or(0, |before: u64| before.abs_diff(request.lba.0));
            if request.op == Op::Write && distance > 0 {
                seen.all.push(distance);
                if arrival.at < DAY && distance >= 1 << MEGABYTE {
                    seen.far.push(distance);
                }
            }
        })?;
        let (name, counts) = (machine.name, seen.counts());
        // The generators are built to this shape.
        let weighed = |claim: Claim| claim.given_if(!machine.real);
        let far = counts[MEGABYTE].unwrap_or(f64::NAN);
        findings.row(weighed(
            Claim::of("bisson-fqueue/count-distance-8-16-kb-1")
                .with("name", name)
                .ours(counts[4].unwrap_or(f64::NAN) / far),
        ));
        // As far as the machine's disk goes, and the last octave is cut by its end.
        let end = counts.iter().rposition(Option::is_some).unwrap_or(0).min(MEGABYTE + 8);
        let claim = Claim::of("bisson-fqueue/same-beyond-most-least").with("name", name);
        findings.row(weighed(match unevenness(&counts[MEGABYTE..end.max(MEGABYTE + 1)]) {
            Some(ratio) => claim.ours(ratio),
            None => claim.not_comparable("an octave of distance has no write at all"),
        }));
        findings.row(weighed(
            Claim::of("bisson-fqueue/share-far-writes-ten-fullest")
                .with("name", name)
                .ours(seen.bands()),
        ));
        let point =
            |(at, count): (usize, &Option<f64>)| Some(((1u64 << at) as f64 / 2048.0, (*count)?));
        bands.push(Curve::ours(name, seen.band_points()).stepped());
        curves.push(Curve::ours(name, counts.iter().enumerate().filter_map(point).collect()));
    }
    findings.plot("bisson-fqueue/bands-of-seek-distance", &[], bands);
    findings.plot("bisson-fqueue/writes-at-a-distance", &[], curves);
    Ok(findings)
}
