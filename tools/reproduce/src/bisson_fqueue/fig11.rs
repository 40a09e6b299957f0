//! Figure 11: faster flash.

use super::{foreground_ns, sum, weeks, with_flash};
use crate::{Claim, Experiment, ExperimentError, Findings, Runner};
use hybridsim_report::study::Curve;

pub const EXPERIMENT: Experiment = Experiment { id: "bisson-fqueue/fig11", run: reproduce };

const SPEEDS: [u32; 4] = [1, 2, 4, 8];

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut curves = Vec::new();
    for machine in weeks(runner) {
        let mut jobs = vec![machine.plain("c-look")];
        jobs.extend(SPEEDS.map(|speed| {
            let name = format!("{}, flash {speed} times as fast", machine.name);
            with_flash(machine.backed(100.0).named(name), f64::from(speed))
        }));
        let ran = runner.run(&jobs)?;
        let base = sum(&ran[0], "disk_write_ns");
        let times: Vec<f64> = ran[1..].iter().map(|ran| foreground_ns(ran) / base).collect();
        let named: Vec<(&str, f64)> =
            ["1x", "2x", "4x", "8x"].into_iter().zip(times.iter().copied()).collect();
        let name = machine.name;
        findings.row(
            Claim::of("bisson-fqueue/faster-flash-shorter-access-time")
                .with("name", name)
                .ranked(&named)
                .with("saved", (times[2] - times[3]) / times[2])
                .with("flash", sum(&ran[3], "flash_write_ns") / foreground_ns(&ran[3])),
        );
        curves.push(Curve::ours(name, SPEEDS.iter().map(|s| f64::from(*s)).zip(times).collect()));
    }
    findings.plot("bisson-fqueue/access-time-by-flash-speed", &[], curves);
    Ok(findings)
}
