//! Consumer drives with SLC caches, filled from empty: three rates of writing, and where they end.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

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

/// How far off a result may be: where direct writes end, and rates.
const END_WITHIN: f64 = 0.1;
const RATE_WITHIN: f64 = 0.2;

/// A drive as its review describes it: GB, and GB/s.
struct Drive {
    name: &'static str,
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

const DRIVES: [Drive; 3] = [
    Drive {
        name: "Adata XPG Atom 50, 1 TB",
        exported: 1000.0,
        cache: 280.0,
        fast: 4.5,
        direct: 2.0,
        ends: Some(500.0),
        folding: 0.5,
        mean: 0.8,
    },
    Drive {
        name: "Lexar NM800 Pro, 2 TB",
        exported: 2000.0,
        cache: 592.0,
        fast: 3.5,
        direct: 2.2,
        ends: None,
        folding: 1.0,
        mean: 1.514,
    },
    Drive {
        name: "MSI Spatium M480 Play, 2 TB",
        exported: 2000.0,
        cache: 200.0,
        fast: 5.0,
        direct: 3.5,
        ends: Some(1600.0),
        folding: 1.5,
        mean: 3.1,
    },
];

impl Drive {
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
        let rate = |(part, of): (u32, &crate::JobOutput)| {
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
    for drive in &DRIVES {
        let rates = drive.rates(runner)?;
        let Drive { name, cache, fast, direct, .. } = drive;
        let row = |claim: String| Claim::new("–", format!("{name}: {claim}"));
        let folds = rates.iter().position(|(_, rate)| *rate < FOLDS_BELOW * direct);
        let folds = folds.unwrap_or(rates.len());
        let before = rates.get(folds.saturating_sub(1)).map_or(f64::NAN, |(_, rate)| *rate);
        let rule = format!("{fast} GB/s until {cache} GB are written, then {direct} GB/s");
        findings.row(row(rule).given().within_share(*direct, 0.02).unit("GB/s").ours(before));
        // The rate falls within the next length.
        let written = (folds as f64 + 0.5) * drive.exported / f64::from(LENGTHS);
        if let Some(ends) = drive.ends {
            let claim = row("written when direct writes end".to_owned()).unit("GB");
            findings.row(claim.within_share(ends, END_WITHIN).ours(written).if_it_differs(
                "the drive leaves less of its flash to direct writes; how much it has is assumed",
            ));
        }
        let folding = mean_rate(&rates[(folds + 1).min(rates.len())..]);
        let claim = row("rate from then on".to_owned()).unit("GB/s");
        findings.row(claim.within_share(drive.folding, RATE_WITHIN).ours(folding).if_it_differs(
            "the drive folds more slowly than its program and transfer times allow; reviews of \
             the others do not show that",
        ));
        let claim = row("mean rate of the whole fill".to_owned()).unit("GB/s");
        let claim = claim.within_share(drive.mean, RATE_WITHIN).ours(mean_rate(&rates));
        findings.row(claim.if_it_differs("as the rate before, at which half of it is written"));
        findings.plot(Plot {
            title: drive.name.to_owned(),
            caption: "Sequential writes to the empty drive, simulated.".to_owned(),
            x: Axis::linear("Written before", "GB"),
            y: Axis::linear("Rate", "GB/s"),
            curves: vec![Curve::ours("simulated", rates)],
        });
    }
    Ok(findings)
}
