//! DiskSim's own regression scenarios, imported.

use super::super::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_import::search_path::SearchPath;
use hybridsim_import::{Request, Trace, disksim};
use std::path::Path;

pub const EXPERIMENT: Experiment = Experiment { id: "disk/regressions", run };

struct Regression {
    name: &'static str,
    words: &'static str,
    /// Its trace, and the format if it cannot be recognised from the file.
    trace: Option<(&'static str, Option<&'static str>)>,
    expected_ms: f64,
    /// Whether the requests to the drives count.
    of_drives: bool,
    /// What is known if it comes out otherwise.
    known: &'static str,
}

const fn regression(name: &'static str, words: &'static str, expected_ms: f64) -> Regression {
    Regression { name, words, trace: None, expected_ms, of_drives: false, known: "" }
}

const REGRESSIONS: [Regression; 9] = [
    regression("synthsimpledisk", "a device of constant time", 13.5),
    regression("synthclosed", "closed synthetic workload", 87.6),
    Regression {
        trace: Some(("ajw.1week.srt.gz", None)),
        ..regression("hplajw", "a week of an HP-UX system", 48.8)
    },
    Regression {
        trace: Some(("ascii.trace.gz", Some("disksim"))),
        ..regression("ascii", "ASCII trace", 13.8)
    },
    regression("syntharrays", "set of arrays on shared buses", 34.3),
    Regression {
        of_drives: true,
        ..regression("synthraid5", "RAID 5 at the driver, requests to the drives", 22.8)
    },
    Regression {
        known: "a matter of luck: DiskSim itself gives 22.09 where it is built for 32 bits and \
                35.16 ms for 64 bits, where its processors are lost later; see the row below",
        ..regression("synthmixed", "mixed synthetic workload", 22.08)
    },
    regression("synthcachemem", "memory cache at a controller", 24.6),
    regression("synthcachedev", "a drive caches another", 28.9),
];

const SEEDS: u64 = 15;

/// In DiskSim's run of the mixed workload three of five processors are lost within 0.1 s, the
/// fourth after this time, as what it prints of idle processors says.
const MIXED_PAIR_S: f64 = 11.993;
const MIXED_SEEDS: usize = 5;

fn run(runner: &Runner) -> Result<Findings, ExperimentError> {
    let folder = runner.data("disksim")?;
    let mut findings = means(runner, &folder)?;
    mixed_without_luck(runner, &folder, &mut findings)?;
    Ok(findings)
}

fn means(runner: &Runner, folder: &Path) -> Result<Findings, ExperimentError> {
    let mut jobs = Vec::new();
    for regression in &REGRESSIONS {
        let text = import(regression, folder)?;
        for seed in 0..regression.runs() {
            let name = format!("{}, seed {seed}", regression.name);
            // 42 is the seed of the files.
            let seed = if seed == 0 { 42 } else { seed };
            let job = Job::new(name, text.clone()).set("run.seed", seed);
            jobs.push(match regression.trace {
                Some(_) => job,
                None => job.set("workload.generator.drand48_seed", seed),
            });
        }
    }
    let ran = runner.run(&jobs)?;
    let mut left = ran.as_slice();
    let mut findings = Findings::default();
    for regression in &REGRESSIONS {
        let (own, others) = left.split_at(regression.runs() as usize);
        left = others;
        let mut means: Vec<f64> = own.iter().map(|ran| regression.mean_ms(ran)).collect();
        means.sort_by(f64::total_cmp);
        let (least, most) = (means[0], means[means.len() - 1]);
        let range = match means.len() {
            1 => String::new(),
            count => format!("{least:.1} to {most:.1} ms over {count} seeds"),
        };
        findings.row(
            Claim::of("disk/mean-response")
                .with("name", regression.name)
                .with("words", regression.words)
                .within_share(regression.expected_ms, 0.03)
                .ours(means[means.len() / 2])
                .remark(&range)
                .if_it_differs(regression.known),
        );
    }
    Ok(findings)
}

/// The mixed workload with as many processors as DiskSim's run had at the time: two at first, then
/// one. That leaves the drive, its queue and the requests as what can differ.
fn mixed_without_luck(
    runner: &Runner,
    folder: &Path,
    to: &mut Findings,
) -> Result<(), ExperimentError> {
    let mixed = REGRESSIONS.iter().find(|it| it.name == "synthmixed").expect("it is one of them");
    let text = import(mixed, folder)?;
    let mut jobs = Vec::new();
    for (seed, processors) in (1..=MIXED_SEEDS).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let name = format!("synthmixed, {processors} processors, seed {seed}");
        let job = Job::new(name, text.clone()).set("workload.generator.drand48_seed", seed);
        let job = job.set("workload.generator.processors", processors);
        jobs.push(job.set("workload.generator.idle_processors", "\"used\""));
    }
    let ran = runner.run(&jobs)?;
    let mean = |skip: usize, of: &dyn Fn(&JobOutput) -> f64| {
        ran.iter().skip(skip).step_by(2).map(of).sum::<f64>() / MIXED_SEEDS as f64
    };
    let (one, two) = (mean(0, &JobOutput::mean_ms), mean(1, &JobOutput::mean_ms));
    // With two processors all requests take so long; those of the first seconds have their share.
    let share = MIXED_PAIR_S / mean(1, &|ran| ran.results.simulated_ns as f64 / 1e9);
    let words = "mixed synthetic workload, two processors for 12 s, then one, as in DiskSim's run";
    to.row(
        Claim::of("disk/synthmixed-mean-response")
            .with("words", words)
            .within_share(mixed.expected_ms, 0.03)
            .ours(two * share + one * (1.0 - share))
            .remark(&format!("{one:.1} ms with one, {two:.1} ms with two")),
    );
    Ok(())
}

impl Regression {
    /// How many runs it takes.
    const fn runs(&self) -> u64 {
        if self.trace.is_some() { 1 } else { SEEDS }
    }

    fn mean_ms(&self, ran: &JobOutput) -> f64 {
        if !self.of_drives {
            return ran.mean_ms();
        }
        let queues = ran.results.components.values();
        let reported: Vec<(f64, f64)> = queues
            .filter_map(|queue| queue.custom.get("response_ns"))
            .map(|reported| (reported.mean.unwrap_or(0.0), reported.count as f64))
            .collect();
        let count: f64 = reported.iter().map(|(_, count)| count).sum();
        reported.iter().map(|(mean, share)| mean * share).sum::<f64>() / count / 1e6
    }
}

fn import(regression: &Regression, folder: &Path) -> Result<String, ExperimentError> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let request = Request {
        file: text(&folder.join(format!("configs/{}.parv", regression.name))),
        overrides: Vec::new(),
        trace: regression.trace.map(|(trace, format)| Trace {
            path: text(&folder.join("workloads").join(trace)),
            format: format.map(str::to_owned),
        }),
    };
    let include = ["specs_only/hp_c3323a_simple", "specs_only/hp_c2249a"];
    let include = include.iter().map(|name| folder.join(name)).collect();
    let imported = disksim(&request, &mut SearchPath { include });
    let failed = |error| ExperimentError::Failed(format!("{}: {error}", regression.name));
    imported.map(|imported| imported.text).map_err(failed)
}
