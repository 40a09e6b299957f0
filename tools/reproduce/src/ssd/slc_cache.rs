//! Consumer drives with SLC caches, filled from empty: three rates of writing, and where they end.

use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::Curve;
use serde::Deserialize;

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/slc-cache", run };

/// Simulated dies, and what each programs at once in native mode and in SLC mode.
const DIES: f64 = 32.0;
const NATIVE_BYTES: f64 = 98_304.0;
const SLC_BYTES: f64 = 32_768.0;
/// The simulated exported capacity in GB, and in how many lengths it is filled.
const EXPORTED_GB: f64 = 15.625;
const LENGTHS: u32 = 40;
/// A rate below this share of that of direct writes is one of folding.
const FOLDS_BELOW: f64 = 0.9;

/// Drives as their reviews describe them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    drives: Vec<ReviewedDrive>,
}

/// Sizes in GB, and rates in GB/s.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewedDrive {
    name: String,
    exported: f64,
    cache: f64,
    fast: f64,
    direct: f64,
    /// Data written when direct writes end, if the review says.
    ends: Option<f64>,
    /// The rate from then on, and that of the whole fill.
    folding: f64,
    mean: f64,
}

impl ReviewedDrive {
    fn scale(&self) -> f64 {
        self.exported / EXPORTED_GB
    }

    /// A fill of the first `part` of [`LENGTHS`].
    fn job(&self, part: u32) -> Job {
        let us = |bytes: f64, rate: f64| format!("\"{:.3}us\"", DIES * bytes / rate / 1e3);
        let mib = EXPORTED_GB * 1e9 / 1_048_576.0 * f64::from(part) / f64::from(LENGTHS);
        let cache = (self.cache / self.scale() * 1e9) as u64;
        Job::paper("ssd/slc-cache.toml")
            .named(format!("{}, {part} of {LENGTHS} written", self.name))
            .set(
                "workload.generator.phases",
                format!("[{{ length = \"{}MiB\", request = \"1MiB\" }}]", mib as u64),
            )
            .set("component.ssd.ftl.dynamic_size", format!("\"{cache}B\""))
            .set("component.ssd.program_time", us(NATIVE_BYTES, self.direct))
            .set("component.ssd.slc.program_time", us(SLC_BYTES, self.fast))
    }

    /// GB written, and the rate in GB/s since the length before.
    fn rates(&self, runner: &Runner) -> Result<Vec<(f64, f64)>, ExperimentError> {
        let ran = runner.run(&(1..=LENGTHS).map(|part| self.job(part)).collect::<Vec<_>>())?;
        let step = self.exported / f64::from(LENGTHS);
        let mut before = 0.0;
        let rate = |(part, of): (u32, &JobOutput)| {
            let seconds = of.results.simulated_ns as f64 / 1e9 * self.scale();
            let took = seconds - std::mem::replace(&mut before, seconds);
            (f64::from(part) * step, step / took)
        };
        Ok((1..=LENGTHS).zip(&ran).map(rate).collect())
    }
}

/// The harmonic mean: lengths are equal.
fn mean_rate(rates: &[(f64, f64)]) -> f64 {
    rates.len() as f64 / rates.iter().map(|(_, rate)| rate.recip()).sum::<f64>()
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    for drive in parameters::<Parameters>("ssd/slc-cache").drives {
        let rates = drive.rates(runner)?;
        let ReviewedDrive { name, cache, fast, direct, .. } = &drive;
        let mut row = |id: &str, published: f64, ours: f64| {
            let claim = Claim::of(id).with("name", name).with("fast", fast).with("cache", cache);
            findings.row(claim.with("direct", direct).published(published).ours(ours));
        };
        let folds = rates.iter().position(|(_, rate)| *rate < FOLDS_BELOW * direct);
        let folds = folds.unwrap_or(rates.len());
        let before = rates.get(folds.saturating_sub(1)).map_or(f64::NAN, |(_, rate)| *rate);
        row("ssd/direct-writes", *direct, before);
        // The rate falls within the next length.
        let written = (folds as f64 + 0.5) * drive.exported / f64::from(LENGTHS);
        if let Some(ends) = drive.ends {
            row("ssd/end-of-direct-writes", ends, written);
        }
        let folding = mean_rate(&rates[(folds + 1).min(rates.len())..]);
        row("ssd/rate-of-folding", drive.folding, folding);
        row("ssd/mean-rate-of-a-fill", drive.mean, mean_rate(&rates));
        let curves = [Curve::ours("simulated", rates)];
        findings.plot("ssd/rate-of-a-fill", &[("name", name)], curves);
    }
    Ok(findings)
}
