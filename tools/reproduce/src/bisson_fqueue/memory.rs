//! Memory and flash of the FQueue (section IV.A and the conclusions), and related work.

use super::weeks;
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Runner};

pub const EXPERIMENT: Experiment = Experiment { id: "bisson-fqueue/memory", run: reproduce };

const SECTOR_BYTES: f64 = 512.0;

/// Bytes of memory and of flash.
fn footprint(ran: &JobOutput) -> [f64; 2] {
    let constant = |component: &str, name: &str| {
        let mut components = ran.results.components.iter();
        let component = components.find(|(path, _)| path.rsplit('/').next() == Some(component));
        component
            .and_then(|(_, component)| component.constants.get(name))
            .copied()
            .unwrap_or(f64::NAN)
            * SECTOR_BYTES
    };
    [constant("scheduler", "fqueue_sectors_max"), constant("drive", "nv_cache_sectors")]
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let machine = &weeks(runner)[0];
    // Given, it is checked against the drive when the run begins.
    let short = |mb: f64| {
        let job = machine.backed(mb).set("workload.generator.requests", 1000);
        let bytes = (mb * 1e6 / SECTOR_BYTES).ceil() * SECTOR_BYTES;
        job.set("component.scheduler.fqueue", format!("\"{bytes}B\""))
    };
    let ran = runner.run(&[short(100.0 * 1.048_576), short(80.0)])?;
    let [memory, _] = footprint(&ran[0]);
    for (megabytes, published) in [(512.0, 0.2), (1024.0, 0.1)] {
        findings.row(
            Claim::of("bisson-fqueue/fqueue-100-mb-share-mb-memory")
                .with("megabytes", megabytes)
                .published(published)
                .ours(memory / (megabytes * 1024.0 * 1024.0)),
        );
    }
    let [memory, flash] = footprint(&ran[1]);
    findings.row(Claim::of("bisson-fqueue/80-mb-both-nvcache-dram-flash").ours(flash / 1e6));
    findings.row(Claim::of("bisson-fqueue/memory-flash-must-same").ours(memory / flash));
    findings.row(Claim::of("bisson-fqueue/shortest-mimicked-time-first-anticipatory-scheduling"));
    Ok(findings)
}
