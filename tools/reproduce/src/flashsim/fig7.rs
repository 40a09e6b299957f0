//! Figure 7: energy by operation.

use super::{Evaluated, constant, evaluate, evaluation, flash};
use crate::{Artefact, Claim, Findings, Lab, LabError, Order, Ran};

/// The figure.
pub const ARTEFACT: Artefact = Artefact {
    id: "flashsim/fig7",
    title: "Energy of flash operations, and memory, under three translation layers",
    method: "The runs of Figure 6; operations times the energies of Table 2 (4.72, 38.04 and \
             527.68 µJ per page read, page written and block erased).",
    run: reproduce,
};

/// Joules of Table 2.
const READ_J: f64 = 4.72e-6;
const PROGRAM_J: f64 = 38.04e-6;
const ERASE_J: f64 = 527.68e-6;

/// Joules for reads, programs and erases.
fn joules(ran: &Ran) -> [f64; 3] {
    let flash = flash(ran);
    [flash.reads as f64 * READ_J, flash.programs as f64 * PROGRAM_J, flash.erases as f64 * ERASE_J]
}

/// Memory for maps, whose idle power section 4.3.2 compares.
fn memory(findings: &mut Findings, lab: &Lab, ran: &Evaluated) -> Result<(), LabError> {
    let few = evaluation("block", "financial").named("block map, its memory");
    let few = few.set("workload.generator.requests", 1000).set("run.warmup_requests", 0);
    let block = constant(&lab.run(&[few])?[0], "mapping_ram_bytes");
    let [page, fast] = [&ran.page, &ran.fast].map(|ran| constant(ran, "mapping_ram_bytes"));
    findings.row(
        Claim::new("F31", "memory of the map, bytes")
            .ranked(Order::Falling, &[("page", page), ("FAST", fast)]),
    );
    findings.row(
        Claim::new("F31", "FAST's memory over that of a block map")
            .between("as close to that of the block-level FTL", 1.0, 2.0)
            .ours(fast / block)
            .if_it_differs(&format!(
                "3 % of the blocks mapped by pages, 64 to the block, are two entries more for \
                 each block mapped as a whole; a page map takes {:.0} times a block map",
                page / block
            )),
    );
    Ok(())
}

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let mut totals = Vec::new();
    for (title, preset) in [("Financial", "financial"), ("TPC-H", "tpc-h")] {
        let ran = evaluate(lab, preset)?;
        let total = |ran: &Ran| joules(ran).iter().sum::<f64>();
        findings.row(Claim::new("F29", format!("{title}: energy, J")).ranked(
            Order::Falling,
            &[("FAST", total(&ran.fast)), ("DFTL", total(&ran.dftl)), ("page", total(&ran.page))],
        ));
        if preset == "financial" {
            memory(&mut findings, lab, &ran)?;
        }
        totals.push(ran.all().map(|(name, ran)| (name, joules(ran))));
    }
    let (financial, tpc_h) = (&totals[0], &totals[1]);
    for (one, other) in financial.iter().zip(tpc_h) {
        let ratio = one.1.iter().sum::<f64>() / other.1.iter().sum::<f64>();
        findings.row(
            Claim::new("F29", format!("{}: energy, Financial over TPC-H", one.0))
                .at_least("much higher", 3.0)
                .ours(ratio)
                .if_it_differs(
                    "TPC-H starts from full flash and collects at once, Financial from flash that \
                     holds only what it wrote",
                ),
        );
    }
    for (at, operation) in ["reads", "writes", "erases"].into_iter().enumerate() {
        let more = financial.iter().zip(tpc_h).all(|(one, other)| match at {
            // TPC-H reads more; garbage collection makes Financial write and erase more.
            0 => true,
            _ => one.1[at] > other.1[at],
        });
        if at > 0 {
            findings.row(
                Claim::new("F29", format!("{operation} cost more in Financial, every component"))
                    .between("yes", 1.0, 1.0)
                    .ours(f64::from(u8::from(more)))
                    .if_it_differs("as for the sums"),
            );
        }
    }
    Ok(findings)
}
