//! Figures 3 and 4: distances between successive requests, of writes.

use super::machines;
use crate::reproduce::{Artefact, Claim, Findings, Lab, LabError};
use hybridsim_engine::{Op, SimTime};
use hybridsim_report::study::{Axis, Curve, Plot};

/// The figures.
pub const ARTEFACT: Artefact = Artefact {
    id: "001/fig3-4",
    title: "Seek distances of writes",
    method: "Distance from the request before to each write, absolute, in sectors; over seven \
             days for figure 4, over the first for figure 3. The generators are built to have the \
             shape of figure 4, so only the real week is evidence. A band of figure 3 is a \
             distance that comes back: of 1000 equal ranges of distance, the ten fullest.",
    run: reproduce,
};

/// Sectors of the disk.
const CAPACITY: u64 = 120_000_000_000 / 512;
/// One megabyte, as an octave of sectors.
const MEGABYTE: usize = 11;
const DAY: SimTime = SimTime::from_ns(86_400_000_000_000);

struct Distances {
    /// Writes by octave of distance.
    octaves: [f64; 64],
    /// Distances beyond a megabyte on the first day.
    far: Vec<u64>,
}

impl Distances {
    /// Writes per sector of distance in an octave.
    fn density(&self, octave: usize) -> f64 {
        self.octaves[octave] / (1u64 << octave) as f64
    }

    /// Greatest over least density of these octaves; `None` if one has no write.
    fn unevenness(&self, octaves: std::ops::Range<usize>) -> Option<f64> {
        let densities: Vec<f64> = octaves.map(|octave| self.density(octave)).collect();
        let most = densities.iter().copied().fold(0.0, f64::max);
        let least = densities.iter().copied().fold(f64::MAX, f64::min);
        (least > 0.0).then(|| most / least)
    }

    fn bands(&self) -> f64 {
        let widest = self.far.iter().copied().max().unwrap_or(1);
        let mut ranges = vec![0u64; 1001];
        for distance in &self.far {
            ranges[(distance * 1000 / widest) as usize] += 1;
        }
        ranges.sort_unstable_by(|a, b| b.cmp(a));
        ranges[..10].iter().sum::<u64>() as f64 / self.far.len().max(1) as f64
    }
}

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let mut curves = Vec::new();
    for machine in machines(lab) {
        let mut seen = Distances { octaves: [0.0; 64], far: Vec::new() };
        let mut last = None;
        lab.each(machine.name, &machine.workload, CAPACITY, &mut |arrival| {
            let request = arrival.request;
            let before = last.replace(request.lba.0);
            let distance = before.map_or(0, |before: u64| before.abs_diff(request.lba.0));
            if request.op == Op::Write && distance > 0 {
                seen.octaves[63 - distance.leading_zeros() as usize] += 1.0;
                if arrival.at < DAY && distance >= 1 << MEGABYTE {
                    seen.far.push(distance);
                }
            }
        })?;
        let name = machine.name;
        let fall = seen.density(4) / seen.density(MEGABYTE);
        findings.row(
            Claim::new("B05", format!("{name}: writes per distance, at 8-16 KB over at 1-2 MB"))
                .at_least("falls until about 1 MB", 10.0)
                .ours(fall),
        );
        let claim =
            Claim::new("B05", format!("{name}: the same beyond, most over least, 1 to 256 MB"))
                .at_most("relatively constant", 10.0);
        findings.row(match seen.unevenness(MEGABYTE..MEGABYTE + 8) {
            Some(ratio) => claim.ours(ratio).if_it_differs(
                "less than the fall before it, and more than level: writes up to 1 MB behind the \
                 end of the request before reach beyond 1 MB from its start, and what is \
                 written again lies at a few distances",
            ),
            None => claim.not_comparable("an octave of distance has no write at all"),
        });
        let bands = Claim::new("B04", format!("{name}: share of far writes in the ten fullest"));
        findings.row(
            bands
                .at_least("horizontal bands; 0.01 without", 0.05)
                .ours(seen.bands())
                .if_it_differs(
                    "the generator spreads metadata over all 890 block groups (assumed), so its \
                     bands are more than ten",
                ),
        );
        let octave = |at: usize| ((1u64 << at) as f64 / 2048.0, seen.density(at));
        curves.push(Curve::ours(name, (0..28).map(octave).filter(|point| point.1 > 0.0).collect()));
    }
    findings.plot(Plot {
        title: "Writes by distance from the request before".to_owned(),
        caption: "Seven days; number of writes per sector of distance.".to_owned(),
        x: Axis::logarithmic("Distance", "MiB"),
        y: Axis::logarithmic("Writes", "per sector"),
        curves,
    });
    Ok(findings)
}
