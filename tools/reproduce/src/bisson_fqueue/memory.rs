//! What the FQueue takes: section IV.A and the conclusions. And what the paper leaves to others.

use super::weeks;
use crate::{Artefact, Claim, Findings, Lab, LabError, Ran};

/// The artefact.
pub const ARTEFACT: Artefact = Artefact {
    id: "bisson-fqueue/memory",
    title: "Memory and flash of the FQueue; related work",
    method: "The FQueue as simulated, of 100 MB (in the binary unit memory is counted in, as the \
             paper divides by it) and of 80 MB: what the scheduler says it keeps in \
             memory, and what the drive says it has of flash.",
    run: reproduce,
};

const SECTOR_BYTES: f64 = 512.0;

/// Bytes of memory and of flash.
fn footprint(ran: &Ran) -> [f64; 2] {
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

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let machine = &weeks(lab)[0];
    // Given, it is checked against the drive when the run begins.
    let short = |mb: f64| {
        let job = machine.backed(mb).set("workload.generator.requests", 1000);
        let bytes = (mb * 1e6 / SECTOR_BYTES).ceil() * SECTOR_BYTES;
        job.set("component.scheduler.fqueue", format!("\"{bytes}B\""))
    };
    let ran = lab.run(&[short(100.0 * 1.048_576), short(80.0)])?;
    let [memory, _] = footprint(&ran[0]);
    for (megabytes, published) in [(512.0, 0.2), (1024.0, 0.1)] {
        findings.row(
            Claim::new("B20", format!("an FQueue of 100 MB, share of {megabytes} MB of memory"))
                .within(published, 0.01)
                .ours(memory / (megabytes * 1024.0 * 1024.0))
                .given(),
        );
    }
    let [memory, flash] = footprint(&ran[1]);
    findings.row(
        Claim::new("B23", "80 MB of both NVCache and DRAM: flash of it")
            .unit("MB")
            .within(80.0, 0.1)
            .ours(flash / 1e6)
            .given(),
    );
    findings.row(
        Claim::new("B23", "and memory over flash, which must be the same")
            .exactly(1.0)
            .ours(memory / flash)
            .given(),
    );
    findings.row(
        Claim::new("B21", "four spin-down algorithms on hybrid disks (related work, section V)")
            .not_comparable(
                "named only; they and their figures are in another paper. The drive has the NV \
                 cache power mode, in which it stops its disk",
            ),
    );
    findings.row(
        Claim::new("B22", "shortest mimicked time first, anticipatory scheduling (section V)")
            .not_comparable(
                "named only, without figures of their own; \"tangential\" by the paper's word",
            ),
    );
    Ok(findings)
}
