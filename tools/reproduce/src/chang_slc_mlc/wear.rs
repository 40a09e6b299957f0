//! Figure 12(a): wear of the blocks, over as many writes as the paper has.

use super::{EXT3, NTFS, REPLAYS, WRITES, job, mean, number, range};
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Runner};

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/fig12a", run: reproduce };

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let long = |load: &str, count: u64, wear: &str| {
        job("C3", 256, load)
            .set("workload.loops", count)
            .named(format!("{load}, a month replayed {count} times, wear levelling: {wear}"))
            .set("component.ssd.wear_levelling", format!("\"{wear}\""))
    };
    let ran = runner.run(&[
        long(NTFS, REPLAYS, "dual-pool"),
        long(EXT3, 2, "dual-pool"),
        long(EXT3, 2, "none"),
    ])?;
    let apart = |ran: &JobOutput, name| {
        let (low, high) = range(ran, name);
        high - low
    };
    let mut findings = Findings::default();
    let written = number(&ran[0], "slc_write_sectors").0 + number(&ran[0], "mlc_write_sectors").0;
    findings.row(
        Claim::of("chang-slc-mlc/write-requests-ten-months")
            .published(10.0 * WRITES as f64)
            .ours(written),
    );
    findings.row(
        Claim::of("chang-slc-mlc/ntfs-slc-wear-greatest-minus-least")
            .with("erases", mean(&ran[0], "slc_wear"))
            .ours(apart(&ran[0], "slc_wear")),
    );
    findings.row(
        Claim::of("chang-slc-mlc/ntfs-mlc-wear-greatest-minus-least")
            .with("erases", mean(&ran[0], "mlc_wear"))
            .ours(apart(&ran[0], "mlc_wear")),
    );
    findings.row(
        Claim::of("chang-slc-mlc/ext3-most-data-cold-mlc-wear").ours(apart(&ran[1], "mlc_wear")),
    );
    findings.row(Claim::of("chang-slc-mlc/dual-pool-does-same-without-levelling").ranked(&[
        ("without", apart(&ran[2], "mlc_wear")),
        ("dual pool", apart(&ran[1], "mlc_wear")),
    ]));
    Ok(findings)
}
