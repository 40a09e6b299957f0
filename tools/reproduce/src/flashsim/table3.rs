//! Table 3: the workloads of the evaluation, as generators.

use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use serde::Deserialize;

/// The table.
pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/table3", run: reproduce };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    workloads: Vec<Workload>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    title: String,
    preset: String,
    size_kb: f64,
    read: f64,
    sequential: f64,
    interarrival_ms: f64,
    seconds: f64,
}

/// 32 GB, the drives of Table 2.
const CAPACITY_SECTORS: u64 = 62_500_000;

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    for row in &parameters::<Parameters>("flashsim/table3").workloads {
        let text = format!("generator = {{ kind = \"server\", preset = \"{}\" }}", row.preset);
        let job = Job::of_workload(&row.title, &text);
        let profile = runner.profile(&job, CAPACITY_SECTORS, &mut |_| {})?;
        let gap = profile.interarrival_ns.map_or(f64::NAN, |gaps| gaps.mean / 1e6);
        for (id, published, ours) in [
            ("flashsim/request-size", row.size_kb, profile.request_bytes_mean / 1024.0),
            ("flashsim/reads", row.read, profile.read_fraction),
            ("flashsim/sequential-requests", row.sequential, profile.sequential_fraction),
            ("flashsim/inter-arrival-time", row.interarrival_ms, gap),
            ("flashsim/span", row.seconds, profile.span_ns as f64 / 1e9),
        ] {
            let claim = Claim::of(id).with("title", &row.title);
            findings.row(claim.published(published).ours(ours));
        }
    }
    Ok(findings)
}
