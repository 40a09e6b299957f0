//! Figure 12(a): wear of the blocks, over as many writes as the paper has.

use super::{EXT3, NTFS, WRITES, job, mean, number, range};
use crate::{Artefact, Claim, Findings, Lab, LabError, Order, Ran};

/// The figure.
pub const ARTEFACT: Artefact = Artefact {
    id: "chang-slc-mlc/fig12a",
    title: "Wear of SLC and MLC blocks after ten months",
    method: "C3 with 256 MB of SLC flash under ten months of the NTFS load (the paper replays one \
             month ten times). That load leaves no data alone for long, so that wear levelling has \
             little to do; what it is for is shown under two months of the ext3 load, which uses \
             2.2 GB of 20, with the dual pool and with no levelling at all.",
    run: reproduce,
};

/// Section 5.1: every trace is replayed ten times. Of all requests 52 % are writes.
const MONTH: u64 = WRITES * 100 / 52;

/// Three times the threshold of the dual pool.
const APART_MAX: f64 = 48.0;

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let long = |load: &str, months: u64, wear: &str| {
        job("C3", 256, load)
            .named(format!("{months} months, {load}, wear levelling: {wear}"))
            .set("workload.generator.requests", months * MONTH)
            .set("component.ssd.wear_levelling", format!("\"{wear}\""))
    };
    let ran =
        lab.run(&[long(NTFS, 10, "dual-pool"), long(EXT3, 2, "dual-pool"), long(EXT3, 2, "none")])?;
    let apart = |ran: &Ran, name| {
        let (low, high) = range(ran, name);
        high - low
    };
    let mut findings = Findings::default();
    let written = number(&ran[0], "slc_write_sectors").0 + number(&ran[0], "mlc_write_sectors").0;
    findings.row(
        Claim::new("H27", "write requests of ten months")
            .within_share(10.0 * WRITES as f64, 0.01)
            .ours(written)
            .given(),
    );
    findings.row(
        Claim::new("H22", "NTFS: SLC wear, greatest minus least")
            .at_most("perfect: erased one after the other", 1.0)
            .ours(apart(&ran[0], "slc_wear"))
            .remark(&format!("{:.1} erases a block", mean(&ran[0], "slc_wear"))),
    );
    findings.row(
        Claim::new("H22", "NTFS: MLC wear, greatest minus least")
            .at_most("even; dual pool with TH = 16", APART_MAX)
            .ours(apart(&ran[0], "mlc_wear"))
            .remark(&format!("{:.1} erases a block", mean(&ran[0], "mlc_wear")))
            .if_it_differs(
                "chance: without any levelling it is 58. The load comes back to every block, so \
                 no data stay where they are moved to let a worn block rest",
            ),
    );
    findings.row(
        Claim::new("H22", "ext3, most data cold: MLC wear, greatest minus least, dual pool")
            .at_most("even; dual pool with TH = 16", APART_MAX)
            .ours(apart(&ran[1], "mlc_wear")),
    );
    findings.row(
        Claim::new("H22", "which the dual pool does: the same without levelling and with").ranked(
            Order::Falling,
            &[("without", apart(&ran[2], "mlc_wear")), ("dual pool", apart(&ran[1], "mlc_wear"))],
        ),
    );
    Ok(findings)
}
