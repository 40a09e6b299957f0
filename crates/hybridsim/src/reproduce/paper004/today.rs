//! Section 6 and after: a third tier, and the SLC cache of today's drives. The paper has no
//! figures of either.

use super::{NTFS, job};
use crate::reproduce::{Artefact, Claim, Findings, Lab, LabError, Order};

/// The artefact.
pub const ARTEFACT: Artefact = Artefact {
    id: "004/today",
    title: "A third tier of non-volatile memory (future work of the paper)",
    method: "C3 with 32 MB of SLC flash, with and without 8 MB of non-volatile memory that gathers \
             small writes in front. The paper names the idea only; what the memory does is \
             assumed.",
    run: reproduce,
};

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let plain = job("C3", 32, NTFS);
    let tiers = job("C3", 32, NTFS).set("part.ssd.nvram", "\"8MiB\"").named("three tiers");
    let ran = lab.run(&[plain, tiers])?;
    let mut findings = Findings::default();
    findings.row(Claim::new("H30", "a write buffer in front is faster: mean response, ms").ranked(
        Order::Rising,
        &[("three tiers", ran[1].mean_ms()), ("two tiers", ran[0].mean_ms())],
    ));
    Ok(findings)
}
