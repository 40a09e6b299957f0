//! Table 2: energies of the chip, and what the drives are sold for.

use super::flash;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};

/// The table.
pub const EXPERIMENT: Experiment = Experiment { id: "flashsim/table2", run: reproduce };

fn job(preset: &str, (rw, bs, requests): (&str, &str, u32)) -> Job {
    let text = format!(
        "[host]\nmode = \"closed\"\nqueue_depth = 4\n[workload]\ngenerator = {{ kind = \"fio\", \
         requests = {requests}, rw = \"{rw}\", bs = \"{bs}\" }}\n[component.ssd]\n\
         preset = \"{preset}\"\nprecondition = \"fill\"\n"
    );
    Job::new(format!("{preset} {rw}"), text)
}

/// Microjoules of one operation: all of `energy` over `count`.
fn microjoules(ran: &JobOutput, energy: &str, count: u64) -> f64 {
    let components = ran.results.components.values();
    let all: f64 =
        components.filter_map(|component| component.power.as_ref()?.energy_by_j.get(energy)).sum();
    all / count as f64 * 1e6
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let chip = runner.run(&[job("flashsim-large-block", ("randwrite", "2KiB", 60_000))])?;
    let counted = flash(&chip[0]);
    for (what, energy, count, published) in [
        ("page read", "flash_reads", counted.reads, 4.72),
        ("page write", "flash_programs", counted.programs, 38.04),
        ("block erase", "flash_erases", counted.erases, 527.68),
    ] {
        findings.row(
            Claim::of("flashsim/large-block-chip-energy")
                .with("what", what)
                .published(published)
                .ours(microjoules(&chip[0], energy, count)),
        );
    }
    for (preset, rw, published) in [
        ("mtron-msp7000-like", "read", 120.0),
        ("mtron-msp7000-like", "write", 90.0),
        ("supertalent-fsd32-like", "read", 60.0),
        ("supertalent-fsd32-like", "write", 45.0),
    ] {
        let ran = runner.run(&[job(preset, (rw, "128KiB", 2_000))])?;
        findings.row(
            Claim::of("flashsim/sequential")
                .with("preset", preset)
                .with("rw", rw)
                .published(published)
                .ours(ran[0].results.throughput.bytes_per_s.unwrap_or(f64::NAN) / 1e6),
        );
    }
    Ok(findings)
}
