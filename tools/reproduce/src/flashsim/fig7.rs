//! Figure 7: energy by operation.

use super::{
    BLOCK_ENTRY_BYTES, CACHED_BYTES, DFTL, DRIVE_BLOCKS, Evaluation, FAST, LAYERS, MapMemory,
    Named, PAGE, constant, extra_pages, extra_programs, flash, for_host, named,
};
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Runner, Variants};

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

/// Joules for anything but the pages that the host reads and writes.
fn collection(ran: &JobOutput) -> f64 {
    let flash = flash(ran);
    let [reads, programs] = [&flash.reads_by_cause, &flash.programs_by_cause].map(for_host);
    total(ran) - reads as f64 * READ_J - programs as f64 * PROGRAM_J
}

fn total(ran: &JobOutput) -> f64 {
    joules(ran).iter().sum()
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut evaluations = Vec::new();
    for (title, preset, open) in [
        ("Financial", "financial", &["flashsim/financial-flash"][..]),
        ("TPC-H", "tpc-h", &["flashsim/tpc-h-flash", "flashsim/tpc-h-arrivals"]),
    ] {
        let ran = Evaluation::run(runner, preset, &["F29"], open)?;
        by_layer(&mut findings, title, &ran.ran);
        if preset == "financial" {
            memory(&mut findings, &ran);
            findings.row(erases(&ran.ran.first()[FAST]));
        }
        evaluations.push(ran.ran);
    }
    by_workload(&mut findings, &evaluations[0], &evaluations[1]);
    Ok(findings)
}

/// Energy and its causes by translation layer.
fn by_layer(findings: &mut Findings, title: &str, ran: &Variants) {
    let mut row = |id: &str, of: &dyn Fn(&[JobOutput]) -> Named| {
        findings.row(ran.order(Claim::of(id).with("title", title), of));
    };
    row("flashsim/energy-j", &named([FAST, DFTL, PAGE], total));
    let erased = |ran: &JobOutput| flash(ran).erases as f64;
    row("flashsim/erases-of-fast", &named([FAST, DFTL], erased));
    row("flashsim/writes-of-fast", &named([FAST, DFTL], extra_programs));
    row("flashsim/extra-operations-of-dftl", &named([DFTL, PAGE], extra_pages));
}

/// The energy of an erase beside those of writes and reads: one of each, and all of a run.
fn erases(fast: &JobOutput) -> Claim {
    let names = ["erase", "write", "read"];
    let [reads, writes, erases] = joules(fast);
    let one = [ERASE_J, PROGRAM_J, READ_J].map(|joules| joules * 1e6);
    let named = |values: [f64; 3]| [0, 1, 2].map(|at| (names[at], values[at]));
    Claim::of("flashsim/erases-have-a-greater-impact")
        .with("pages", PAGES_PER_BLOCK)
        .with_figures(&[("writes", ERASE_J / PROGRAM_J)])
        .with_figures(&[("written", flash(fast).programs as f64 / flash(fast).erases as f64)])
        .ranked(&named(one))
        .sensitive_ranked("all of a run, FAST, Financial, J", &named([erases, writes, reads]))
}

/// A setting of one workload that another has as well, and the outputs of both.
fn in_both<'a>(
    (name, one): &'a (String, Vec<JobOutput>),
    another: &'a Variants,
) -> Option<(&'a str, &'a [JobOutput], &'a [JobOutput])> {
    let (_, other) = another.others.iter().find(|(other, _)| other == name)?;
    Some((name, one, other))
}

/// Energy under Financial over that under TPC-H.
fn by_workload(findings: &mut Findings, financial: &Variants, tpc_h: &Variants) {
    let pairs = financial.seeds.iter().zip(&tpc_h.seeds);
    let others: Vec<_> = financial.others.iter().filter_map(|one| in_both(one, tpc_h)).collect();
    // A ratio of the two workloads at every seed, and at the settings that both have.
    let compare = |claim: Claim, of: &dyn Fn(&[JobOutput], &[JobOutput]) -> f64| {
        let values: Vec<f64> = pairs.clone().map(|(one, other)| of(one, other)).collect();
        let claim = claim.ours_at_seeds(&values);
        others
            .iter()
            .fold(claim, |claim, (name, one, other)| claim.sensitive(*name, of(one, other)))
    };
    for (at, name) in LAYERS.iter().enumerate() {
        let claim = Claim::of("flashsim/energy-financial-tpc-h").with("one", name);
        findings.row(compare(claim, &|one, other| total(&one[at]) / total(&other[at])));
        let claim = Claim::of("flashsim/energy-financial-due-to-collection").with("one", name);
        findings.row(compare(claim, &|one, other| {
            let more = total(&one[at]) - total(&other[at]);
            (collection(&one[at]) - collection(&other[at])) / more
        }));
    }
    for (operation, kind) in [("writes", 1), ("erases", 2)] {
        let claim = Claim::of("flashsim/cost-more-financial-every-ftl");
        findings.row(compare(claim.with("operation", operation), &|one, other| {
            let pairs = one.iter().zip(other);
            let ratios = pairs.map(|(one, other)| joules(one)[kind] / joules(other)[kind]);
            ratios.fold(f64::INFINITY, f64::min)
        }));
    }
}
