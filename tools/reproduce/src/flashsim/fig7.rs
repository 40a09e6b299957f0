//! Figure 7: energy by operation.

use super::{
    BLOCK_ENTRY_BYTES, CACHED_BYTES, DFTL, DRIVE_BLOCKS, Evaluation, FAST, LAYERS, MapMemory, PAGE,
    constant, flash,
};
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Runner};

pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/fig7", run: reproduce };

/// Joules of Table 2.
pub const READ_J: f64 = 4.72e-6;
pub const PROGRAM_J: f64 = 38.04e-6;
const ERASE_J: f64 = 527.68e-6;

/// Joules for reads, programs and erases.
fn joules(ran: &JobOutput) -> [f64; 3] {
    let flash = flash(ran);
    [flash.reads as f64 * READ_J, flash.programs as f64 * PROGRAM_J, flash.erases as f64 * ERASE_J]
}

/// Memory for maps, whose idle power section 4.3.2 compares. FAST and DFTL as on the drives of
/// Table 2; over the active region alone the log blocks weigh more.
fn memory(findings: &mut Findings, ran: &Evaluation) {
    let (fast, block) = (ran.tables.fast_on_drive(), DRIVE_BLOCKS * BLOCK_ENTRY_BYTES);
    let page = DRIVE_BLOCKS * PAGES_PER_BLOCK * BLOCK_ENTRY_BYTES;
    let names = ["page", "FAST"];
    let claim = Claim::of("flashsim/memory-map-bytes");
    let region = [constant(&ran.ran.first()[PAGE], "mapping_ram_bytes"), ran.tables.fast];
    findings.row(
        claim
            .ranked(&[(names[0], page), (names[1], fast)])
            .sensitive_ranked(ACTIVE, &[(names[0], region[0]), (names[1], region[1])]),
    );
    findings.row(
        Claim::of("flashsim/fast-s-memory-block-map")
            .ours(fast / block)
            .sensitive(ACTIVE, ran.tables.fast / ran.tables.block),
    );
    let dftl = ran.tables.entries(MapMemory::Drive) as f64 * CACHED_BYTES;
    findings.row(
        Claim::of("flashsim/dftl-s-memory-block-map")
            .ours(dftl / block)
            .sensitive(ACTIVE, ran.tables.fast / ran.tables.block),
    );
}

const ACTIVE: &str = "tables for the active region alone";
const PAGES_PER_BLOCK: f64 = 64.0;

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let total = |ran: &JobOutput| joules(ran).iter().sum::<f64>();
    let mut evaluations = Vec::new();
    for (title, preset) in [("Financial", "financial"), ("TPC-H", "tpc-h")] {
        let ran = Evaluation::run(runner, preset, &["F29"], &[])?;
        let claim = Claim::of("flashsim/energy-j").with("title", title);
        findings.row(ran.ran.order(claim, |ran| {
            [FAST, DFTL, PAGE].map(|at| (LAYERS[at], total(&ran[at]))).to_vec()
        }));
        if preset == "financial" {
            memory(&mut findings, &ran);
        }
        evaluations.push(ran.ran);
    }
    let (financial, tpc_h) = (&evaluations[0], &evaluations[1]);
    // A ratio of the two workloads at every seed and setting.
    let compare = |claim: Claim, of: &dyn Fn(&[JobOutput], &[JobOutput]) -> f64| {
        let pairs = financial.seeds.iter().zip(&tpc_h.seeds);
        let values: Vec<f64> = pairs.map(|(one, other)| of(one, other)).collect();
        let others = financial.others.iter().zip(&tpc_h.others);
        others.fold(claim.ours_at_seeds(&values), |claim, ((name, one), (_, other))| {
            claim.sensitive(name, of(one, other))
        })
    };
    for (at, name) in LAYERS.iter().enumerate() {
        let claim = Claim::of("flashsim/energy-financial-tpc-h").with("one", name);
        findings.row(compare(claim, &|one, other| total(&one[at]) / total(&other[at])));
    }
    for (operation, kind) in [("writes", 1), ("erases", 2)] {
        let claim = Claim::of("flashsim/cost-more-financial-every-ftl");
        findings.row(compare(claim.with("operation", operation), &|one, other| {
            let pairs = one.iter().zip(other);
            let ratios = pairs.map(|(one, other)| joules(one)[kind] / joules(other)[kind]);
            ratios.fold(f64::INFINITY, f64::min)
        }));
    }
    Ok(findings)
}
