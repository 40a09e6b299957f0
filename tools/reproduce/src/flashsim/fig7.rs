//! Figure 7: energy by operation.

use super::{Evaluated, constant, evaluate, evaluation, flash};
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Runner};

pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/fig7", run: reproduce };

/// Joules of Table 2.
const READ_J: f64 = 4.72e-6;
const PROGRAM_J: f64 = 38.04e-6;
const ERASE_J: f64 = 527.68e-6;

/// Joules for reads, programs and erases.
fn joules(ran: &JobOutput) -> [f64; 3] {
    let flash = flash(ran);
    [flash.reads as f64 * READ_J, flash.programs as f64 * PROGRAM_J, flash.erases as f64 * ERASE_J]
}

/// Memory for maps, whose idle power section 4.3.2 compares.
fn memory(
    findings: &mut Findings,
    runner: &Runner,
    ran: &Evaluated,
) -> Result<(), ExperimentError> {
    let few = evaluation("block", "financial").named("block map, its memory");
    let few = few.set("workload.generator.requests", 1000).set("run.warmup_requests", 0);
    let block = constant(&runner.run(&[few])?[0], "mapping_ram_bytes");
    let [page, fast] = [&ran.page, &ran.fast].map(|ran| constant(ran, "mapping_ram_bytes"));
    findings.row(Claim::of("flashsim/memory-map-bytes").ranked(&[("page", page), ("FAST", fast)]));
    findings.row(Claim::of("flashsim/fast-s-memory-block-map").ours(fast / block).if_it_differs(
        &format!(
            "3 % of the blocks mapped by pages, 64 to the block, are two entries more for \
                 each block mapped as a whole; a page map takes {:.0} times a block map",
            page / block
        ),
    ));
    Ok(())
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut totals = Vec::new();
    for (title, preset) in [("Financial", "financial"), ("TPC-H", "tpc-h")] {
        let ran = evaluate(runner, preset)?;
        let total = |ran: &JobOutput| joules(ran).iter().sum::<f64>();
        findings.row(Claim::of("flashsim/energy-j").with("title", title).ranked(&[
            ("FAST", total(&ran.fast)),
            ("DFTL", total(&ran.dftl)),
            ("page", total(&ran.page)),
        ]));
        if preset == "financial" {
            memory(&mut findings, runner, &ran)?;
        }
        totals.push(ran.all().map(|(name, ran)| (name, joules(ran))));
    }
    let (financial, tpc_h) = (&totals[0], &totals[1]);
    for (one, other) in financial.iter().zip(tpc_h) {
        let ratio = one.1.iter().sum::<f64>() / other.1.iter().sum::<f64>();
        findings.row(Claim::of("flashsim/energy-financial-tpc-h").with("one", one.0).ours(ratio));
    }
    for (at, operation) in ["reads", "writes", "erases"].into_iter().enumerate() {
        let more = financial.iter().zip(tpc_h).all(|(one, other)| match at {
            // TPC-H reads more; garbage collection makes Financial write and erase more.
            0 => true,
            _ => one.1[at] > other.1[at],
        });
        if at > 0 {
            findings.row(
                Claim::of("flashsim/cost-more-financial-every-ftl")
                    .with("operation", operation)
                    .ours(f64::from(u8::from(more))),
            );
        }
    }
    Ok(findings)
}
