//! Tables 5.1 to 5.4: the applications' request sizes and randomness, as generators.

use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use serde::Deserialize;

/// Tables 5.1 and 5.2, the applications the flash model was validated with.
pub const VALIDATION: Experiment = Experiment {
    id: "konanki/tables5.1-5.2",
    run: |runner| profile(runner, "konanki/tables5.1-5.2"),
};

/// Tables 5.3 and 5.4, the applications the hybrid disk was analysed with.
pub const ANALYSIS: Experiment = Experiment {
    id: "konanki/tables5.3-5.4",
    run: |runner| profile(runner, "konanki/tables5.3-5.4"),
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    mixes: Vec<Mix>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mix {
    title: String,
    generator: String,
    /// Size in sectors and its share of the requests.
    sizes: Vec<(u64, f64)>,
    random: f64,
}

/// Requests of each application.
const DRAWS: u32 = 200_000;
/// A generated share deviates by more once in 16,000 times.
const DEVIATIONS_MAX: f64 = 4.0;

/// The standard deviation of a share found in so many draws.
fn deviation(share: f64) -> f64 {
    (share * (1.0 - share) / f64::from(DRAWS)).sqrt()
}

/// An 80 GB disk, as the thesis's.
const CAPACITY_SECTORS: u64 = 156_250_000;

fn profile(runner: &Runner, id: &str) -> Result<Findings, ExperimentError> {
    let table: Table = parameters(id);
    let mut findings = Findings::default();
    for mix in &table.mixes {
        let text = format!(
            "generator = {{ kind = \"histogram\", mix = \"{}\", requests = {DRAWS} }}",
            mix.generator
        );
        let job = Job::of_workload(&mix.title, &text);
        let profile = runner.profile(&job, CAPACITY_SECTORS, &mut |_| {})?;
        let farthest = mix.sizes.iter().map(|&(sectors, share)| {
            let class = profile.sizes.iter().find(|class| class.up_to_bytes == sectors * 512);
            let found = class.map_or(0.0, |class| (class.reads + class.writes) as f64);
            (found / profile.requests as f64 - share).abs() / deviation(share)
        });
        let claim = Claim::of("konanki/shares-of-sizes").with("title", &mix.title);
        let claim = claim.with("sizes", mix.sizes.len());
        findings.row(claim.ours(farthest.fold(0.0, f64::max)));
        let claim = Claim::of("konanki/share-of-random-requests").with("title", &mix.title);
        let claim = claim.within(mix.random, DEVIATIONS_MAX * deviation(mix.random));
        findings.row(claim.ours(1.0 - profile.sequential_fraction));
    }
    Ok(findings)
}
