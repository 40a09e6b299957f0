//! Figure 7 (the text's; the caption says 8): schedulers.

use super::{foreground_ns, machines, sum};
use crate::reproduce::{Artefact, Claim, Findings, Lab, LabError};

/// The figure.
pub const ARTEFACT: Artefact = Artefact {
    id: "001/fig7",
    title: "Write access time by scheduler",
    method: "Each week with an FQueue of 80 MB and without, under three schedulers. Access time is \
             that of writes users wait for: from leaving the request queue to disk or flash, and \
             flushing between the watermarks. Each scheduler is normalised to itself without. \
             Everything the paper says about the simulator is in the scenario; what it does not \
             say is marked assumed there.",
    run: reproduce,
};

const SCHEDULERS: [&str; 3] = ["fcfs", "sstf", "c-look"];

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let mut reductions = Vec::new();
    for machine in machines(lab) {
        let plain = lab.run(&SCHEDULERS.map(|scheduler| machine.plain(scheduler)))?;
        let backed = lab.run(&SCHEDULERS.map(|scheduler| {
            let job = machine.backed(80).named(format!("{}, {scheduler}", machine.name));
            job.set("part.scheduler.scheduler", format!("\"{scheduler}\""))
        }))?;
        let pairs = plain.iter().zip(&backed);
        let normalised: Vec<f64> = pairs
            .map(|(plain, backed)| foreground_ns(backed) / sum(plain, "disk_write_ns"))
            .collect();
        let most = normalised.iter().copied().fold(0.0, f64::max);
        let least = normalised.iter().copied().fold(f64::MAX, f64::min);
        let values: Vec<String> = SCHEDULERS
            .iter()
            .zip(&normalised)
            .map(|(name, value)| format!("{name} {value:.3}"))
            .collect();
        let name = machine.name;
        findings.row(
            Claim::new("B11", format!("{name}: spread of the schedulers, each over itself"))
                .at_most("does not differ significantly", 0.10)
                .ours(most - least)
                .remark(&values.join(", "))
                .if_it_differs(
                    "the long bursts of this generator (assumed) build queues in which sorting \
                     alone saves much of what redirection would; weeks with short queues agree",
                ),
        );
        reductions.push((name, 1.0 - normalised[2]));
        findings.row(
            Claim::new("B12", format!("{name}: write access time is less than without"))
                .between("decreases", 0.0, 0.999)
                .ours(normalised[2]),
        );
    }
    let (real, generated): (Vec<_>, Vec<_>) =
        reductions.into_iter().partition(|(name, _)| name.ends_with("real"));
    let best = generated.into_iter().fold(("", 0.0), |best, one| match one.1 > best.1 {
        true => one,
        false => best,
    });
    for (name, reduction) in [best].into_iter().chain(real) {
        findings.row(
            Claim::new("B12", format!("{name}: reduction at 80 MB, C-LOOK (greatest, or real)"))
                .between("up to 0.7", 0.4, 0.8)
                .ours(reduction)
                .if_it_differs(
                    "a generated week, the numbers of which are assumed: hardly a write finds \
                     another waiting, so nearly all are redirected",
                ),
        );
    }
    Ok(findings)
}
