//! Section 3.2: the threshold of the hot-data filter.

use super::{EXT3, NTFS, job, range};
use crate::{Artefact, Claim, Findings, Job, Lab, LabError, Ran};
use std::path::Path;

/// The artefact.
pub const ARTEFACT: Artefact = Artefact {
    id: "chang-slc-mlc/threshold",
    title: "The threshold of small writes",
    method: "2-means over all splits of the size histogram each 1,000 writes, on the generated \
             loads and on two public logs of Windows machines. Smallest and greatest threshold of \
             the run; Algorithm 1 as printed and its loop with the sum it means for comparison.",
    run: reproduce,
};

fn sectors(ran: &Ran, name: &str) -> Claim {
    let (low, high) = range(ran, "threshold_sectors");
    let claim = Claim::new("H04", format!("the threshold, {name}: farthest from 8"))
        .unit("sectors")
        .exactly(8.0);
    claim.ours(if (low - 8.0).abs() > (high - 8.0).abs() { low } else { high })
}

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let short = |load| job("C3", 256, load).set("workload.generator.requests", 200_000);
    let literal = |how: &str| {
        let job = short(NTFS).named(format!("threshold, {how}"));
        job.set("component.ssd.threshold_search", format!("\"{how}\""))
    };
    let ran = lab.run(&[short(NTFS), short(EXT3), literal("lloyd"), literal("literal")])?;
    findings.row(sectors(&ran[0], "generated NTFS"));
    findings.row(sectors(&ran[1], "generated ext3"));
    for (name, ran) in [("the loop of Algorithm 1", &ran[2]), ("as printed", &ran[3])] {
        findings.row(sectors(ran, name).if_it_differs(
            "the printed sum is 0 for any i = j = p, and the loop stays near its start (0, 0, \
                 0) even with the sum that is meant; hence all splits are tried by default",
        ));
    }
    for name in ["sys1", "mayun2"] {
        let claim = || Claim::new("H04", format!("the threshold, Windows log {name}"));
        match lab.data(format!("traces/desktop/diskmon-{name}.txt.gz")) {
            Err(LabError::NoData(reason)) => findings.row(claim().not_comparable(&reason)),
            Err(other) => return Err(other),
            Ok(path) => {
                let ran = lab.run(&[log(&path)])?;
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
