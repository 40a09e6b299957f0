//! Section 6 and after: a third tier, and the SLC cache of today's drives. The paper has no
//! figures of either.

use super::{NTFS, job};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::Curve;

pub const EXPERIMENT: Experiment = Experiment { id: "chang-slc-mlc/today", run: reproduce };

const MIB: [u64; 9] = [128, 256, 384, 512, 768, 1024, 2048, 3072, 4096];

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let plain = job("C3", 32, NTFS);
    let tiers = job("C3", 32, NTFS).set("component.ssd.nvram", "\"8MiB\"").named("three tiers");
    let ran = runner.run(&[plain, tiers])?;
    let mut findings = Findings::default();
    let means = [("with", ran[1].mean_ms()), ("without", ran[0].mean_ms())];
    let claim = Claim::of("chang-slc-mlc/write-buffer-front-slc-mlc-flash");
    findings.row(claim.with_figures(&means));
    cliffs(&mut findings, runner)?;
    Ok(findings)
}

fn written(preset: &str, mib: u64) -> Job {
    let text = format!(
        "[host]\nmode = \"closed\"\nqueue_depth = 1\n[workload]\ngenerator = {{ kind = \
         \"sequence\", phases = [{{ length = \"{mib}MiB\", request = \"1MiB\" }}] }}\n\
         [component.ssd]\n\
         preset = \"{preset}\"\n"
    );
    Job::new(format!("{preset}, {mib} MiB in sequence"), text)
}

/// MB/s of what was written between one length and the next, by the middle of the two.
fn rates(ran: &[JobOutput]) -> Vec<(f64, f64)> {
    let ends = MIB.into_iter().zip(ran).map(|(mib, ran)| (mib as f64, ran.results.simulated_ns));
    let ends: Vec<(f64, f64)> = ends.map(|(mib, ns)| (mib, ns as f64 / 1e9)).collect();
    let rate = |(from, to): (&(f64, f64), &(f64, f64))| {
        ((from.0 + to.0) / 2.0, (to.0 - from.0) * 1.048_576 / (to.1 - from.1))
    };
    ends.iter().zip(&ends[1..]).map(rate).collect()
}

/// The write cliff of drives with SLC caches.
fn cliffs(findings: &mut Findings, runner: &Runner) -> Result<(), ExperimentError> {
    let mut curves = Vec::new();
    for (preset, name, fast, folding) in [
        // 1 MiB in 0.3 ms and 10 µs of the controller. Folding 8 MiB: as long as writing them, a
        // round of reads and one of programs, the erase of the SLC block.
        ("tlc-slc-cache", "3-bit cells, fixed cache", 1.048_576 / 310e-6, {
            8.388_608 / (8.0 * 310e-6 + 25.5e-6 + 1.91e-3 + 5e-3)
        }),
        // Blocks of 8 MiB as well, four rounds each. The cache of 253 blocks shrinks as the drive
        // of 2,048 fills, and what it gives up for that has to be folded too.
        ("qlc-slc-cache", "4-bit cells, borrowed cache", 1.048_576 / 310e-6, {
            let fold = (4.0 * 30e-6 + 4.0 * 3e-3 + 5e-3) / (1.0 - 253.0 / 2048.0);
            8.388_608 / (8.0 * 310e-6 + fold)
        }),
    ] {
        let ran = runner.run(&MIB.map(|mib| written(preset, mib)))?;
        let rates = rates(&ran);
        let last = rates.last().map_or(f64::NAN, |(_, rate)| *rate);
        let figures = [("rate", rates[0].1), ("fast", fast), ("last", last), ("folding", folding)];
        let claim = Claim::of("chang-slc-mlc/of-each").with("name", name);
        findings.row(claim.with_figures(&figures));
        curves.push(Curve::ours(name, rates));
    }
    findings.plot("chang-slc-mlc/write-cliff", &[], curves);
    Ok(())
}
