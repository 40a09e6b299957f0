//! Tables 5.1 to 5.4: the applications' request sizes and randomness, as generators.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};

/// Tables 5.1 and 5.2, the applications the flash model was validated with.
pub const VALIDATION: Experiment =
    Experiment { id: "konanki/tables5.1-5.2", run: |runner| profile(runner, &VALIDATION_MIXES) };

/// Tables 5.3 and 5.4, the applications the hybrid disk was analysed with.
pub const ANALYSIS: Experiment =
    Experiment { id: "konanki/tables5.3-5.4", run: |runner| profile(runner, &ANALYSIS_MIXES) };

struct Mix {
    title: &'static str,
    generator: &'static str,
    /// Size in sectors and its share of the requests.
    sizes: &'static [(u64, f64)],
    random: f64,
}

/// Tables 5.1 and 5.2.
const VALIDATION_MIXES: [Mix; 5] = [
    Mix {
        title: "Bonnie",
        generator: "bonnie",
        sizes: &[(8, 0.02), (32, 0.03), (256, 0.95)],
        random: 0.061,
    },
    Mix {
        title: "Download",
        generator: "download",
        sizes: &[(8, 0.01), (32, 0.02), (256, 0.97)],
        random: 0.064,
    },
    Mix {
        title: "MP3",
        generator: "mp3",
        sizes: &[(8, 0.01), (32, 0.01), (64, 0.01), (128, 0.02), (256, 0.95)],
        random: 0.105,
    },
    Mix {
        title: "Untar",
        generator: "untar",
        sizes: &[(8, 0.22), (16, 0.03), (32, 0.04), (64, 0.07), (128, 0.11), (256, 0.53)],
        random: 0.669,
    },
    Mix {
        title: "Postmark",
        generator: "postmark",
        sizes: &[(8, 0.39), (16, 0.24), (32, 0.20), (64, 0.10), (128, 0.04), (256, 0.03)],
        random: 0.98,
    },
];

/// Tables 5.3 and 5.4.
const ANALYSIS_MIXES: [Mix; 5] = [
    Mix {
        title: "Firefox",
        generator: "firefox-analysis",
        sizes: &[
            (16, 0.62),
            (32, 0.10),
            (64, 0.10),
            (128, 0.12),
            (256, 0.04),
            (512, 0.01),
            (1024, 0.01),
        ],
        random: 0.847,
    },
    Mix {
        title: "Dia",
        generator: "dia-analysis",
        sizes: &[(16, 0.77), (32, 0.06), (64, 0.04), (128, 0.13)],
        random: 0.813,
    },
    Mix {
        title: "MP3",
        generator: "mp3-analysis",
        sizes: &[(16, 0.17), (128, 0.08), (256, 0.02), (512, 0.08), (1024, 0.65)],
        random: 0.275,
    },
    Mix {
        title: "Untar",
        generator: "untar-analysis",
        sizes: &[
            (16, 0.09),
            (32, 0.05),
            (64, 0.09),
            (128, 0.16),
            (256, 0.28),
            (512, 0.20),
            (1024, 0.13),
        ],
        random: 0.947,
    },
    Mix {
        title: "Postmark",
        generator: "postmark-analysis",
        sizes: &[(16, 0.62), (32, 0.23), (64, 0.10), (128, 0.04), (256, 0.01)],
        random: 0.998,
    },
];

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

fn profile(runner: &Runner, mixes: &[Mix]) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    for mix in mixes {
        let text = format!(
            "generator = {{ kind = \"histogram\", mix = \"{}\", requests = {DRAWS} }}",
            mix.generator
        );
        let job = Job::of_workload(mix.title, &text);
        let profile = runner.profile(&job, CAPACITY_SECTORS, &mut |_| {})?;
        let farthest = mix.sizes.iter().map(|&(sectors, share)| {
            let class = profile.sizes.iter().find(|class| class.up_to_bytes == sectors * 512);
            let found = class.map_or(0.0, |class| (class.reads + class.writes) as f64);
            (found / profile.requests as f64 - share).abs() / deviation(share)
        });
        let claim = format!(
            "{}: shares of {} sizes, the farthest from the table in standard deviations of a draw",
            mix.title,
            mix.sizes.len()
        );
        let claim = Claim::new("K36", claim).at_most("the table's shares", DEVIATIONS_MAX);
        findings.row(claim.ours(farthest.fold(0.0, f64::max)).given());
        let claim = format!("{}: share of random requests", mix.title);
        let claim = Claim::new("K36", claim);
        let claim = claim.within(mix.random, DEVIATIONS_MAX * deviation(mix.random));
        findings.row(claim.ours(1.0 - profile.sequential_fraction).given());
    }
    Ok(findings)
}
