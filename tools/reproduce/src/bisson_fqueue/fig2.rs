//! Figure 2 and Table I: access times by distance, and sequential ones.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_report::study::Curve;

pub const EXPERIMENT: Experiment = Experiment { id: "bisson-fqueue/fig2", run: reproduce };

/// Sizes of the range, MiB.
const PARTS: [u64; 7] = [1, 8, 64, 512, 4096, 32_768, 110_000];

fn on(device: &str, job: Job) -> Job {
    match device {
        "curve" => job,
        "flash" => {
            replaced(job, "kind = \"constant-device\"\nlatency = \"0.7ms\"\nrate = \"9MB/s\"")
        }
        _ => {
            let job = replaced(job, "preset = \"hitachi-travelstar-5k160\"\nwrite_cache = false");
            Job { text: job.text.replace("capacity = \"120GB\"\n", ""), ..job }
        }
    }
}

fn replaced(job: Job, by: &str) -> Job {
    Job { text: job.text.replace("kind = \"curve-disk\"", by), ..job }
}

/// Half of the 99 % confidence interval of the mean latency, in milliseconds.
fn half_interval_ms(ran: &crate::JobOutput) -> f64 {
    let (mean, count) = (ran.mean_ms(), ran.latencies.len() as f64);
    let squares = ran.latencies.iter().map(|served| (served.ns as f64 / 1e6 - mean).powi(2));
    2.576 * (squares.sum::<f64>() / (count - 1.0) / count).sqrt()
}

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut curves = Vec::new();
    let mut interval = f64::NAN;
    let mut bounds = Vec::new();
    for device in ["curve", "mechanics", "flash"] {
        let job = |mib: u64| {
            let job = Job::paper("bisson-fqueue/access.toml").named(format!("{device}, {mib} MiB"));
            on(device, job).set("workload.generator.span", format!("\"{mib}MiB\""))
        };
        let ran = runner.run(&PARTS.map(|mib| job(mib).with_latencies()))?;
        let times: Vec<f64> = ran.iter().map(crate::JobOutput::mean_ms).collect();
        if device == "mechanics" {
            let halves: Vec<f64> = ran.iter().map(half_interval_ms).collect();
            let shares = halves.iter().zip(&times).map(|(half, mean)| half / mean);
            interval = shares.fold(0.0, f64::max);
            for (name, sign) in [("99 % interval from", -1.0), ("to", 1.0)] {
                let ends = times.iter().zip(&halves).map(|(mean, half)| mean + sign * half);
                let points = PARTS.iter().map(|mib| *mib as f64 / 3.0).zip(ends).collect();
                bounds.push(Curve::ours(name, points));
            }
        }
        if device == "flash" {
            let least = times.iter().copied().fold(f64::MAX, f64::min);
            let most = times.iter().copied().fold(0.0, f64::max);
            findings.row(
                Claim::of("bisson-fqueue/flash-longest-shortest-mean-access-time")
                    .ours(most / least),
            );
        } else {
            let named: Vec<(&str, f64)> = ["1 MiB", "64 MiB", "4 GiB", "whole disk"]
                .into_iter()
                .zip([times[0], times[2], times[4], times[6]])
                .collect();
            let claim = Claim::of("bisson-fqueue/access-time-rises-with-distance");
            // The curve is put in; that the mechanics give one like it is a result.
            let claim = claim.with("device", device).given_if(device == "curve");
            findings.row(claim.ranked(&named));
        }
        let points = PARTS.iter().map(|mib| *mib as f64 / 3.0).zip(times).collect();
        curves.push(Curve::ours(device, points));
    }
    let times_by_part = curves.clone();
    curves.extend(bounds);
    findings.plot("bisson-fqueue/access-time-by-distance", &[], curves);
    findings.row(Claim::of("bisson-fqueue/confidence-interval-is-narrow").ours(interval));
    let whole = |curves: &[Curve], at: usize| curves[at].points.last().map_or(f64::NAN, |it| it.1);
    for (at, device) in [(0, "curve"), (1, "mechanics")] {
        let claim = Claim::of("bisson-fqueue/random-access-faster-flash").with("device", device);
        findings.row(
            claim.ranked(&[
                ("disk", whole(&times_by_part, at)),
                ("flash", whole(&times_by_part, 2)),
            ]),
        );
    }
    let jobs = ["curve", "flash"].map(|device| {
        on(device, Job::paper("bisson-fqueue/access.toml").named(format!("{device}, sequential")))
            .set("workload.generator.rw", "\"write\"")
            .set("workload.generator.bs", "\"1MiB\"")
            .set("workload.generator.span", "\"1GiB\"")
            .set("workload.generator.requests", 500)
    });
    let ran = runner.run(&jobs)?;
    findings.row(
        Claim::of("bisson-fqueue/sequential-access-slower-flash-ms-per")
            .ranked(&[("flash", ran[1].mean_ms()), ("disk", ran[0].mean_ms())]),
    );
    Ok(findings)
}
