//! Section 3.2: the threshold of the hot-data filter.

use super::{EXT3, NTFS, job, range};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use std::path::Path;

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/threshold", run: reproduce };

fn sectors(ran: &JobOutput, name: &str) -> Claim {
    let (low, high) = range(ran, "threshold_sectors");
    let claim = Claim::of("chang-slc-mlc/threshold-farthest-8").with("name", name);
    claim.ours(if (low - 8.0).abs() > (high - 8.0).abs() { low } else { high })
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let short = |load| job("C3", 256, load).set("workload.generator.requests", 200_000);
    let literal = |how: &str| {
        let job = short(NTFS).named(format!("threshold, {how}"));
        job.set("component.ssd.threshold_search", format!("\"{how}\""))
    };
    let ran = runner.run(&[short(NTFS), short(EXT3), literal("lloyd"), literal("literal")])?;
    // The sizes of the generator's writes went in.
    findings.row(sectors(&ran[0], "generated NTFS").given_if(true));
    findings.row(sectors(&ran[1], "generated ext3").given_if(true));
    for (name, ran) in [("the loop of Algorithm 1", &ran[2]), ("as printed", &ran[3])] {
        findings.row(sectors(ran, name).if_it_differs(
            "the printed sum is 0 for any i = j = p, and the loop stays near its start (0, 0, \
                 0) even with the sum that is meant; hence all splits are tried by default",
        ));
    }
    for name in ["sys1", "mayun2"] {
        let claim = || Claim::of("chang-slc-mlc/threshold-windows-log").with("name", name);
        match runner.data(format!("traces/desktop/diskmon-{name}.txt.gz")) {
            Err(ExperimentError::NoData(reason)) => findings.row(claim().not_comparable(&reason)),
            Err(other) => return Err(other),
            Ok(path) => {
                let ran = runner.run(&[log(&path)])?;
                findings.row(sectors(&ran[0], &format!("Windows log {name}")));
            }
        }
    }
    Ok(findings)
}

fn log(path: &Path) -> Job {
    let text = format!(
        "[host]\nmode = \"closed\"\nqueue_depth = 1\n[workload]\ntrace = {:?}\naddress = \
         \"wrap\"\n[component.ssd]\nkind = \"slc-mlc-ssd\"\n",
        path.display().to_string()
    );
    Job::new(path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into()), text)
}
