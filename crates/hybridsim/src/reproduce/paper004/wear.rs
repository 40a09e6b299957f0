//! Figure 12(a): wear of the blocks, over as many writes as the paper has.

use super::{NTFS, WRITES, job, mean, number, range};
use crate::reproduce::{Artefact, Claim, Findings, Lab, LabError, Order, Ran};

/// The figure.
pub const ARTEFACT: Artefact = Artefact {
    id: "004/fig12a",
    title: "Wear of SLC and MLC blocks after ten months",
    method: "C3 with 256 MB of SLC flash under ten months of the NTFS load (the paper replays one \
             month ten times), with the dual pool and with no wear levelling at all: what stays \
             even without it proves nothing of it.",
    run: reproduce,
};

/// Section 5.1: every trace is replayed ten times. Of all requests 52 % are writes.
const REQUESTS: u64 = 10 * WRITES * 100 / 52;

/// Three times the threshold of the dual pool, the bound of how far blocks drift apart.
const APART_MAX: f64 = 48.0;

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let long = |wear: &str| {
        job("C3", 256, NTFS)
            .named(format!("ten months, wear levelling: {wear}"))
            .set("workload.generator.requests", REQUESTS)
            .set("part.ssd.wear_levelling", format!("\"{wear}\""))
    };
    let ran = lab.run(&[long("dual-pool"), long("none")])?;
    let apart = |ran: &Ran, name| {
        let (low, high) = range(ran, name);
        high - low
    };
    let mut findings = Findings::default();
    let written =
        |ran: &Ran| number(ran, "slc_write_sectors").0 + number(ran, "mlc_write_sectors").0;
    findings.row(
        Claim::new("H27", "write requests of ten months")
            .within_share(10.0 * WRITES as f64, 0.01)
            .ours(written(&ran[0]))
            .given(),
    );
    findings.row(
        Claim::new("H22", "SLC wear, greatest minus least")
            .at_most("perfect: erased one after the other", 1.0)
            .ours(apart(&ran[0], "slc_wear"))
            .remark(&format!("{:.1} erases a block", mean(&ran[0], "slc_wear"))),
    );
    findings.row(
        Claim::new("H22", "MLC wear, greatest minus least")
            .at_most("even; dual pool with TH = 16", APART_MAX)
            .ours(apart(&ran[0], "mlc_wear"))
            .remark(&format!("{:.1} erases a block", mean(&ran[0], "mlc_wear"))),
    );
    findings.row(
        Claim::new("H22", "which the dual pool does: the same without levelling and with").ranked(
            Order::Falling,
            &[("without", apart(&ran[1], "mlc_wear")), ("with", apart(&ran[0], "mlc_wear"))],
        ),
    );
    Ok(findings)
}
