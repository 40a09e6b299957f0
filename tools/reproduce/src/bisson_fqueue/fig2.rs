//! Figure 2 and Table I: access times by distance, and sequential ones.

use crate::{Artefact, Claim, Findings, Job, Lab, LabError, Order};
use hybridsim_report::study::{Axis, Curve, Plot};

/// The figure.
pub const ARTEFACT: Artefact = Artefact {
    id: "bisson-fqueue/fig2",
    title: "Access time by distance: disk and flash",
    method: "Writes of 4 KiB at random within the first part of the device, one at a time; the \
             mean distance is a third of the component. The disk as a curve, as the paper's simulator \
             has it, and the full mechanical model of the same generation (Travelstar 5K160, \
             write cache off); the flash card as a fixed time plus 9 MB/s. Sequential: 1 MiB. \
             Curve and card are put in; the mechanical model is not.",
    run: reproduce,
};

/// Sizes of the component, MiB.
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

fn reproduce(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    let mut curves = Vec::new();
    for device in ["curve", "mechanics", "flash"] {
        let job = |component: u64| {
            let job =
                Job::paper("bisson-fqueue/access.toml").named(format!("{device}, {component} MiB"));
            on(device, job).set("workload.generator.size", format!("\"{component}MiB\""))
        };
        let ran = lab.run(&PARTS.map(job))?;
        let times: Vec<f64> = ran.iter().map(crate::Ran::mean_ms).collect();
        if device == "flash" {
            let least = times.iter().copied().fold(f64::MAX, f64::min);
            let most = times.iter().copied().fold(0.0, f64::max);
            findings.row(
                Claim::new("B03", "flash: longest over shortest mean access time")
                    .within(1.0, 0.01)
                    .ours(most / least)
                    .given(),
            );
        } else {
            let named: Vec<(&str, f64)> = ["1 MiB", "64 MiB", "4 GiB", "whole disk"]
                .into_iter()
                .zip([times[0], times[2], times[4], times[6]])
                .collect();
            let name = format!("disk ({device}): mean access time rises with distance, ms");
            let claim = Claim::new("B03", name).ranked(Order::Rising, &named);
            // The curve is put in; that the mechanics give one like it is a result.
            findings.row(if device == "curve" { claim.given() } else { claim });
        }
        let points = PARTS.iter().map(|component| *component as f64 / 3.0).zip(times).collect();
        curves.push(Curve::ours(device, points));
    }
    findings.plot(Plot {
        title: "Mean access time by mean distance".to_owned(),
        caption: "The paper's own numbers did not survive.".to_owned(),
        x: Axis::logarithmic("Mean distance", "MiB"),
        y: Axis::linear("Mean access time", "ms"),
        curves,
    });
    let jobs = ["curve", "flash"].map(|device| {
        on(device, Job::paper("bisson-fqueue/access.toml").named(format!("{device}, sequential")))
            .set("workload.generator.rw", "\"write\"")
            .set("workload.generator.bs", "\"1MiB\"")
            .set("workload.generator.size", "\"1GiB\"")
            .set("workload.generator.requests", 500)
    });
    let ran = lab.run(&jobs)?;
    findings.row(
        Claim::new("B01", "sequential access is slower on flash: ms per MiB")
            .ranked(Order::Falling, &[("flash", ran[1].mean_ms()), ("disk", ran[0].mean_ms())])
            .given(),
    );
    Ok(findings)
}
