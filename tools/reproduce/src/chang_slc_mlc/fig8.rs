//! Figures 8 and 12(b) and table 4: speed, wear and energy over the size of the SLC flash, for a
//! month each. Values at 256 MB over ten replays are in `fig9`.

use super::analysis::TABLE_3;
use super::{EXT3, NTFS, costs, energy_percent, job, mean, number, range, seeds, speed_up, sum};
use crate::published::setting;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Variants};
use hybridsim_report::study::Curve;

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/fig8", run: reproduce };

const SIZES_MB: [u64; 5] = [32, 64, 128, 256, 512];
const NAMES: [&str; 5] = ["32 MB", "64 MB", "128 MB", "256 MB", "512 MB"];

/// The second reading of where small writes lie.
const OTHER: &str = "one month, hot data of 160 MiB in clusters of 4";

/// Sizes of figure 12(b) up to where the throttle decides.
const SMALL_MB: [u64; 2] = [8, 16];

/// One configuration under one load: by seed, without SLC flash, then with each size.
struct SizeSeries {
    sizes: Vec<u64>,
    seeds: Vec<Vec<JobOutput>>,
}

impl SizeSeries {
    fn run(
        runner: &Runner,
        name: &str,
        load: &str,
        sizes: &[u64],
    ) -> Result<Self, ExperimentError> {
        let jobs: Vec<Job> = [0].iter().chain(sizes).map(|size| job(name, *size, load)).collect();
        let seeds = Variants::run(runner, &jobs, seeds(&["H16", "H24"]), &[])?.seeds;
        Ok(Self { sizes: sizes.to_vec(), seeds })
    }

    fn place(&self, size: u64) -> usize {
        self.sizes.iter().position(|other| *other == size).map_or(0, |at| at + 1)
    }

    fn with(&self, size: u64) -> &JobOutput {
        &self.seeds[0][self.place(size)]
    }

    /// The speed-up by `size` at every seed.
    fn speed_ups(&self, size: u64) -> Vec<f64> {
        self.seeds.iter().map(|ran| speed_up(&ran[0], &ran[self.place(size)])).collect()
    }

    /// Sectors of small writes that the throttle refused with `size`, at every seed.
    fn refused(&self, size: u64) -> Vec<f64> {
        let of = |ran: &JobOutput| number(ran, "throttle_reject_sectors").0;
        self.seeds.iter().map(|ran| of(&ran[self.place(size)])).collect()
    }

    fn energy_percents(&self, size: u64) -> Vec<f64> {
        self.seeds.iter().map(|ran| energy_percent(&ran[0], &ran[self.place(size)])).collect()
    }

    /// The gain of the second size over the first, at every seed.
    fn gains(&self, from: u64, to: u64) -> Vec<f64> {
        let pairs = self.speed_ups(from).into_iter().zip(self.speed_ups(to));
        pairs.map(|(from, to)| to / from - 1.0).collect()
    }

    /// The claim about wear with `size`, and the reason why the throttle does not hold `ratio`:
    /// the share of small writes it accepted, and the share that would wear no faster.
    fn wear_claim(&self, size: u64, ratio: f64) -> Claim {
        let count = |name| number(self.with(size), name).0;
        let taken = count("slc_write_sectors");
        let share =
            taken / (taken + count("throttle_reject_sectors") + count("hash_reject_sectors"));
        let allowed = 100.0 * share * ratio / self.wear_ratio(size);
        Claim::of("chang-slc-mlc/mb-bw-ratio")
            .with("k_min", range(self.with(size), "log_space_blocks").0)
            .with_figures(&[("share", 100.0 * share), ("allowed", allowed)])
    }

    /// Mean erases of an SLC block over those of an MLC block.
    fn wear_ratio(&self, size: u64) -> f64 {
        mean(self.with(size), "slc_wear") / mean(self.with(size), "mlc_wear")
    }
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let all: Vec<u64> = SMALL_MB.into_iter().chain(SIZES_MB).collect();
    let durable_sizes = [8, 16, 32, 256];
    let ntfs = SizeSeries::run(runner, "C3", NTFS, &all)?;
    let ext3 = SizeSeries::run(runner, "C3", EXT3, &SIZES_MB)?;
    let same = SizeSeries::run(runner, "C1", NTFS, &SIZES_MB)?;
    let durable = SizeSeries::run(runner, "C2", NTFS, &durable_sizes)?;
    let mut findings = Findings::default();
    let capped = |load| {
        let job = job("C3", 512, load).set("component.ssd.hash_entries", 65_536);
        job.named(format!("C3, 512 MB SLC, the hash table of 256 MB, {load}")).at_seed(1)
    };
    let capped = runner.run(&[capped(NTFS), capped(EXT3)])?;
    let all_series = [("C3, NTFS", &ntfs), ("C3, ext3", &ext3), ("C1, NTFS", &same)];
    for (name, series) in all_series {
        let rising: Vec<(&str, Vec<f64>)> = NAMES[..4]
            .iter()
            .zip(SIZES_MB)
            .map(|(name, size)| (*name, series.speed_ups(size)))
            .collect();
        let claim = Claim::of("chang-slc-mlc/rs-rises-size-slc-flash").with("name", name);
        findings.row(claim.ranked_at_seeds(&rising));
        let (before, beyond) = (series.gains(128, 256), series.gains(256, 512));
        let names = ["128 to 256 MB", "256 to 512 MB"];
        let claim = Claim::of("chang-slc-mlc/saturates-gain-256-512-mb").with("name", name);
        let claim = claim.ranked_at_seeds(&[(names[0], before.clone()), (names[1], beyond)]);
        let capped = match name {
            "C3, NTFS" => Some(&capped[0]),
            "C3, ext3" => Some(&capped[1]),
            _ => None,
        };
        findings.row(match capped {
            Some(ran) => {
                let gain = speed_up(&series.seeds[0][0], ran) / series.speed_ups(256)[0] - 1.0;
                let gains = [(names[0], before[0]), (names[1], gain)];
                claim.sensitive_ranked("the hash table of 256 MB with 512 MB", &gains)
            }
            None => claim,
        });
    }
    limited(&mut findings, &all_series[..2]);
    findings.row(overwritten(&all_series, &durable));
    let pair = [("C2", durable.speed_ups(32)), ("C3", ntfs.speed_ups(32))];
    let ratios = [("c2", durable.wear_ratio(32)), ("c3", ntfs.wear_ratio(32))];
    let claim = Claim::of("chang-slc-mlc/c2-is-slower-than-c3-when-small").with_figures(&ratios);
    findings.row(claim.ranked_at_seeds(&pair));
    for size in SMALL_MB {
        let pair = [("C2", durable.refused(size)), ("C3", ntfs.refused(size))];
        let claim = Claim::of("chang-slc-mlc/c2-rejects-more-than-c3-when-small");
        findings.row(claim.with("size", size).ranked_at_seeds(&pair));
    }
    let pairs = durable.speed_ups(256).into_iter().zip(ntfs.speed_ups(256));
    let ratios: Vec<f64> = pairs.map(|(c2, c3)| c2 / c3).collect();
    findings.row(Claim::of("chang-slc-mlc/c2-behaves-as-c3-at-256-mb").ours_at_seeds(&ratios));
    let dense = density(&mut findings, runner, [("NTFS", NTFS, &ntfs), ("ext3", EXT3, &ext3)])?;
    wear(&mut findings, "C3", 20.0, &ntfs, &all);
    wear(&mut findings, "C2", 10.0, &durable, &durable_sizes);
    let load = setting("chang-slc-mlc/one-month-ntfs", OTHER, &[]);
    let other = |size: &u64| job("C3", *size, NTFS).at_seed(1).at(&load);
    let other: Vec<Job> = [0].iter().chain(&SIZES_MB).map(other).collect();
    energy(&mut findings, &ntfs, &ext3, &runner.run(&other)?);
    findings.plot("chang-slc-mlc/speed-ups", &[], speed_ups(all_series));
    findings.plot("chang-slc-mlc/speed-ups-by-density-control", &[], dense);
    findings.plot("chang-slc-mlc/energies", &[], energies([("NTFS", &ntfs), ("ext3", &ext3)]));
    let series = [("C3", 20.0, &ntfs), ("C2", 10.0, &durable)];
    findings.plot("chang-slc-mlc/wear-ratios", &[], wear_ratios(series));
    Ok(findings)
}

/// Figure 8(b): density control with twice the SLC size in MLC flash beyond the 21 GB.
fn density(
    findings: &mut Findings,
    runner: &Runner,
    loads: [(&str, &str, &SizeSeries); 2],
) -> Result<Vec<Curve>, ExperimentError> {
    let mut curves = Vec::new();
    for (name, load, series) in loads {
        let dense = |size: u64| {
            let extra_mb = 2 * size;
            job("C3", 0, load)
                .named(format!("density control, {extra_mb} MB extra, {load}"))
                .set("component.ssd.mlc_size", format!("\"{}MiB\"", 21 * 1024 + extra_mb))
                .set("component.ssd.density_size", format!("\"{extra_mb}MiB\""))
        };
        let ran = Variants::run(runner, &SIZES_MB.map(dense), seeds(&["H17"]), &[])?.seeds;
        let speed_ups = |at: usize| -> Vec<f64> {
            series
                .seeds
                .iter()
                .zip(&ran)
                .map(|(plain, ran)| speed_up(&plain[0], &ran[at]))
                .collect()
        };
        for (at, size) in SIZES_MB.into_iter().enumerate() {
            let pair = [("hybrid", series.speed_ups(size)), ("density", speed_ups(at))];
            findings.row(
                Claim::of("chang-slc-mlc/rs-mb-slc-density-control-twice")
                    .with("name", name)
                    .with("size", size)
                    .ranked_at_seeds(&pair),
            );
        }
        // No read and no write takes less than on SLC flash alone.
        findings.row(
            Claim::of("chang-slc-mlc/rs-density-control-1-024-mb")
                .with("name", name)
                .ours_at_seeds(&speed_ups(SIZES_MB.len() - 1)),
        );
        let points = SIZES_MB.iter().enumerate();
        let points = points.map(|(at, size)| (2.0 * *size as f64, speed_ups(at)[0])).collect();
        curves.push(Curve::ours(&format!("C3, {name}"), points));
    }
    Ok(curves)
}

/// Sizes below 128 MB: the share of the time saved with 256 MB, beside that of the energy in table
/// 4, which the paper says goes with it.
fn limited(findings: &mut Findings, series: &[(&str, &SizeSeries)]) {
    for ((name, series), (_, percents)) in series.iter().zip(TABLE_4) {
        let saved = |size| series.speed_ups(size).into_iter().map(|speed_up| 1.0 - 1.0 / speed_up);
        for (size, percent) in SIZES_MB.into_iter().zip(percents).filter(|(size, _)| *size < 128) {
            let energy = (100.0 - percent) / (100.0 - percents[3]);
            let shares: Vec<f64> =
                saved(size).zip(saved(256)).map(|(one, all)| one / all).collect();
            let claim = Claim::of("chang-slc-mlc/limited-below-128-mb")
                .with("name", name)
                .with("size", size)
                .with_figures(&[("small", series.speed_ups(size)[0]), ("energy", energy)])
                .with_figures(&[("large", series.speed_ups(256)[0])])
                .between("limited", f64::NEG_INFINITY, energy + 0.15);
            findings.row(claim.ours_at_seeds(&shares));
        }
    }
}

/// The row of overwrites of the SLC flash in a month, in the setting with the fewest.
fn overwritten(series: &[(&str, &SizeSeries)], durable: &SizeSeries) -> Claim {
    let all = series.iter().copied().chain([("C2, NTFS", durable)]);
    let times = all.flat_map(|(name, series)| {
        series.sizes.iter().map(move |size| {
            let bytes = sum(series.with(*size), "slc_write_sectors") * 512.0;
            (bytes / (*size as f64 * 1_048_576.0), format!("{name}, {size} MB"))
        })
    });
    let least = times.min_by(|one, other| one.0.total_cmp(&other.0)).expect("there are settings");
    Claim::of("chang-slc-mlc/slc-flash-is-written-more-than-twice")
        .with("setting", &least.1)
        .ours(least.0)
}

fn wear(findings: &mut Findings, name: &str, ratio: f64, series: &SizeSeries, sizes: &[u64]) {
    for size in sizes.iter().copied().filter(|size| *size <= 32 || *size == 256) {
        let claim = series.wear_claim(size, ratio).with("name", name).with("size", size);
        let claim = match size {
            0..=16 => claim.published(ratio),
            _ => claim.between("no higher than the endurance ratio", f64::NEG_INFINITY, ratio),
        };
        findings.row(claim.ours(series.wear_ratio(size)));
    }
}

/// ES ratios of table 4, by size.
const TABLE_4: [(&str, [f64; 5]); 2] =
    [("NTFS", [83.8, 68.9, 58.0, 54.2, 52.2]), ("ext3", [94.2, 87.0, 78.6, 73.6, 70.9])];

/// Table 4 but for 256 MB. `other` is the other load under NTFS, without SLC flash and with each
/// size.
fn energy(findings: &mut Findings, ntfs: &SizeSeries, ext3: &SizeSeries, other: &[JobOutput]) {
    for ((name, published), row, series) in [(TABLE_4[0], 0, ntfs), (TABLE_4[1], 2, ext3)] {
        let ran = [&series.seeds[0][0], series.with(256)];
        let why = costs(ran, [&TABLE_3[row], &TABLE_3[row + 1]]);
        let falling = NAMES.into_iter().zip(SIZES_MB);
        let named: Vec<(&str, Vec<f64>)> =
            falling.map(|(name, size)| (name, series.energy_percents(size))).collect();
        findings.row(
            Claim::of("chang-slc-mlc/table-4-es-ratio-falls-size")
                .with("name", name)
                .ranked_at_seeds(&named)
                .if_it_differs(&why),
        );
        let sizes = SIZES_MB.into_iter().zip(published).enumerate();
        for (at, (size, percent)) in sizes.filter(|(_, (size, _))| *size != 256) {
            let claim = Claim::of("chang-slc-mlc/table-4-es-ratio-mb")
                .with("name", name)
                .with("size", size)
                .published(percent)
                .ours_at_seeds(&series.energy_percents(size))
                .if_it_differs(&why);
            findings.row(match name {
                "NTFS" => claim.sensitive(OTHER, energy_percent(&other[0], &other[at + 1])),
                _ => claim,
            });
        }
    }
}

/// Figure 8(a) with the values that the text prints.
fn speed_ups(series: [(&str, &SizeSeries); 3]) -> Vec<Curve> {
    let ours = |(name, series): (&str, &SizeSeries)| {
        let point = |size: &u64| (*size as f64, series.speed_ups(*size)[0]);
        Curve::ours(name, series.sizes.iter().map(point).collect())
    };
    let printed = [("C3, NTFS", 1.84), ("C3, ext3", 1.38), ("C1, NTFS", 1.3)];
    let printed = printed
        .map(|(name, value)| Curve::published(&format!("{name}, printed"), vec![(256.0, value)]));
    series.map(ours).into_iter().chain(printed).collect()
}

fn energies(series: [(&str, &SizeSeries); 2]) -> Vec<Curve> {
    let ours = series.iter().map(|(name, series)| {
        let point = |size: u64| (size as f64, series.energy_percents(size)[0]);
        Curve::ours(name, SIZES_MB.map(point).to_vec())
    });
    let printed = TABLE_4.iter().map(|(name, percents)| {
        let points = SIZES_MB.iter().map(|size| *size as f64).zip(*percents);
        Curve::published(&format!("{name}, printed"), points.collect())
    });
    ours.chain(printed).collect()
}

/// Figure 12(b). The text prints the ratio of sizes up to 16 MB.
fn wear_ratios(series: [(&str, f64, &SizeSeries); 2]) -> Vec<Curve> {
    let ours = series.iter().map(|(name, _, series)| {
        let point = |size: &u64| (*size as f64, series.wear_ratio(*size));
        Curve::ours(name, series.sizes.iter().map(point).collect())
    });
    let printed = series.iter().map(|(name, ratio, _)| {
        let points = SMALL_MB.map(|size| (size as f64, *ratio)).to_vec();
        Curve::published(&format!("{name}, printed"), points)
    });
    ours.chain(printed).collect()
}
