//! DiskSim's own regression scenarios, imported.

use super::super::{Artefact, Claim, Findings, Job, Lab, LabError, Ran};
use crate::import::Folder;
use hybridsim_import::{Request, Trace, disksim};
use std::path::Path;

/// The artefact.
pub const ARTEFACT: Artefact = Artefact {
    id: "disk/regressions",
    title: "DiskSim's regression scenarios, imported",
    method: "The parameter files of DiskSim's regression script are imported and run. Published is \
             the mean response time the script expects. It is that of requests to the array or \
             device, but for RAID 5: there the script reads the mean of the driver's requests to \
             the drives. DiskSim draws other random numbers, and it is a matter of luck when it \
             loses a processor of its synthetic workload, which is then slower for the rest of the \
             run: of scenarios with random requests the middle of fifteen seeds counts.",
    run,
};

/// A scenario.
struct Regression {
    name: &'static str,
    words: &'static str,
    /// Its trace, and the format if that cannot be told from the file.
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
        known: "with priorities fewer processes wait at a time and processors are lost later; were \
                all but one lost at the start, it would be 20.8 ms",
        ..regression("synthmixed", "mixed synthetic workload", 22.08)
    },
    Regression {
        known: "what the workload asks for depends on when DiskSim loses processors; were all but \
                one lost at the start, it would be 20.0 ms",
        ..regression("synthcachemem", "memory cache at a controller", 24.6)
    },
    Regression {
        known: "what the workload asks for depends on when DiskSim loses processors; were all but \
                one lost at the start, it would be 21.6 ms",
        ..regression("synthcachedev", "a drive caches another", 28.9)
    },
];

const SEEDS: u64 = 15;

fn run(lab: &Lab) -> Result<Findings, LabError> {
    let folder = lab.data("disksim")?;
    let mut jobs = Vec::new();
    for regression in &REGRESSIONS {
        let text = import(regression, &folder)?;
        for seed in 0..regression.runs() {
            let name = format!("{}, seed {seed}", regression.name);
            // 42 is the seed of the files.
            let seed = if seed == 0 { 42 } else { seed };
            jobs.push(Job::new(name, text.clone()).set("run.seed", seed));
        }
    }
    let ran = lab.run(&jobs)?;
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
            Claim::new("K08", format!("{}: {}, mean response", regression.name, regression.words))
                .unit("ms")
                .within_share(regression.expected_ms, 0.03)
                .ours(means[means.len() / 2])
                .remark(&range)
                .if_it_differs(regression.known),
        );
    }
    Ok(findings)
}

impl Regression {
    /// How many runs it takes.
    const fn runs(&self) -> u64 {
        if self.trace.is_some() { 1 } else { SEEDS }
    }

    fn mean_ms(&self, ran: &Ran) -> f64 {
        if !self.of_drives {
            return ran.mean_ms();
        }
        let queues = ran.results.components.values();
        let told: Vec<(f64, f64)> = queues
            .filter_map(|queue| queue.custom.get("response_ns"))
            .map(|told| (told.mean.unwrap_or(0.0), told.count as f64))
            .collect();
        let count: f64 = told.iter().map(|(_, count)| count).sum();
        told.iter().map(|(mean, share)| mean * share).sum::<f64>() / count / 1e6
    }
}

fn import(regression: &Regression, folder: &Path) -> Result<String, LabError> {
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
    let imported = disksim(&request, &mut Folder { include });
    let failed = |error| LabError::Failed(format!("{}: {error}", regression.name));
    imported.map(|imported| imported.text).map_err(failed)
}
