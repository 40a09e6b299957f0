//! Write amplification of RocksDB by compaction style, as its authors measured it.

use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_simulation::write_amplification::WriteAmplification;
use serde::Deserialize;

pub const EXPERIMENT: Experiment = Experiment { id: "ssd/lsm", run };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    styles: Vec<Style>,
}

/// A compaction style: its settings, and others that the measurement leaves open.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Style {
    name: String,
    measured: f64,
    compaction: String,
    #[serde(default)]
    loaded: bool,
    others: Vec<(String, String)>,
}

impl Style {
    fn job(&self, compaction: &str) -> Job {
        Job::paper("ssd/lsm.toml")
            .named(format!("{}, {compaction}", self.name))
            .set("workload.generator.compaction", compaction)
            .set("workload.generator.loaded", self.loaded)
    }
}

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    for style in parameters::<Parameters>("ssd/lsm").styles {
        let others = style.others.iter().map(|(_, compaction)| style.job(compaction));
        let jobs: Vec<Job> = std::iter::once(style.job(&style.compaction)).chain(others).collect();
        let amplification = |counted: &WriteAmplification| {
            counted.application.and_then(|it| it.write_amplification).unwrap_or(f64::NAN)
        };
        let ours: Vec<f64> = runner.count(&jobs)?.iter().map(amplification).collect();
        let claim = Claim::of("ssd/amplification-of-a-style").with("name", &style.name);
        let claim = claim.published(style.measured).ours(ours[0]);
        let others = style.others.iter().zip(&ours[1..]);
        findings.row(
            others.fold(claim, |claim, ((words, _), value)| claim.sensitive(words.clone(), *value)),
        );
    }
    Ok(findings)
}
