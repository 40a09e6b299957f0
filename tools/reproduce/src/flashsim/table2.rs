//! Table 2: energies of the chip, and what the drives are sold for.

use super::flash;
use crate::{Artefact, Claim, Findings, Job, Lab, LabError, Ran};

/// The table.
pub const ARTEFACT: Artefact = Artefact {
    id: "flashsim/table2",
    title: "Energies of the chip, rates of the drives",
    method: "Random writes to a full chip until it collects, energies divided by operations; \
             requests of 128 KiB one after the other on drives written once. How channels and \
             dies of the drives are laid out is assumed so that they come to their rates; energies \
             are the presets'. The rows show that both arrive.",
    run: reproduce,
};

fn job(preset: &str, (rw, bs, requests): (&str, &str, u32)) -> Job {
    let text = format!(
        "[host]\nmode = \"closed\"\nqueue_depth = 4\n[workload]\ngenerator = {{ kind = \"fio\", \
         requests = {requests}, rw = \"{rw}\", bs = \"{bs}\" }}\n[component.ssd]\n\
         preset = \"{preset}\"\nprecondition = \"fill\"\n"
    );
    Job::new(format!("{preset} {rw}"), text)
}

/// Microjoules of one operation: all of `energy` over `count`.
fn microjoules(ran: &Ran, energy: &str, count: u64) -> f64 {
    let components = ran.results.components.values();
    let all: f64 =
        components.filter_map(|component| component.power.as_ref()?.energy_by_j.get(energy)).sum();
    all / count as f64 * 1e6
}

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let chip = lab.run(&[job("flashsim-large-block", ("randwrite", "2KiB", 60_000))])?;
    let counted = flash(&chip[0]);
    for (what, energy, count, published) in [
        ("page read", "flash_reads", counted.reads, 4.72),
        ("page write", "flash_programs", counted.programs, 38.04),
        ("block erase", "flash_erases", counted.erases, 527.68),
    ] {
        findings.row(
            Claim::new("F20", format!("large-block chip: energy of a {what}"))
                .unit("µJ")
                .within(published, 0.005)
                .ours(microjoules(&chip[0], energy, count))
                .given(),
        );
    }
    for (preset, rw, published) in [
        ("mtron-msp7000-like", "read", 120.0),
        ("mtron-msp7000-like", "write", 90.0),
        ("supertalent-fsd32-like", "read", 60.0),
        ("supertalent-fsd32-like", "write", 45.0),
    ] {
        let ran = lab.run(&[job(preset, (rw, "128KiB", 2_000))])?;
        findings.row(
            Claim::new("F20", format!("{preset}: sequential {rw}"))
                .unit("MB/s")
                .within_share(published, 0.05)
                .ours(ran[0].results.throughput.bytes_per_s.unwrap_or(f64::NAN) / 1e6)
                .given(),
        );
    }
    Ok(findings)
}
