//! Figures 5.1 to 5.6: the flash model on applications, and configuration 1.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

/// Figures 5.1 to 5.5.
pub const STICK: Experiment = Experiment { id: "konanki/fig5.1-5.5", run: stick };

/// Figure 5.6.
pub const ROUND_TRIP: Experiment = Experiment { id: "konanki/fig5.6", run: round_trip };

const APPLICATIONS: [(&str, &str, f64); 5] = [
    ("Bonnie", "bonnie", 0.061),
    ("Download", "download", 0.064),
    ("MP3", "mp3", 0.105),
    ("Untar", "untar", 0.669),
    ("Postmark", "postmark", 0.98),
];

fn stick(runner: &Runner) -> Result<Findings, ExperimentError> {
    let job = |(name, mix, _): &(&str, &str, f64)| {
        Job::paper("konanki/stick.toml")
            .named(*name)
            .set("workload.generator.mix", format!("\"{mix}\""))
    };
    let jobs: Vec<Job> = APPLICATIONS.iter().map(job).collect();
    let ran = runner.run(&jobs)?;
    let mut findings = Findings::default();
    for ((name, ..), ran) in APPLICATIONS.iter().zip(&ran).take(3) {
        let steep = format!("{name}: one steep step: share of requests within 20 % of the median");
        findings.row(Claim::new("K37", steep).at_least("most", 0.75).ours(at_the_step(ran)));
    }
    for ((name, ..), ran) in APPLICATIONS.iter().zip(&ran).skip(3) {
        let spread = format!("{name}: no single step: share of requests within 20 % of the median");
        findings.row(Claim::new("K37", spread).at_most("a part", 0.75).ours(at_the_step(ran)));
    }
    let tails: Vec<(&str, f64)> = [4, 3, 0].map(|at| (APPLICATIONS[at].0, tail(&ran[at]))).to_vec();
    findings.row(Claim::of("konanki/more-random-longer-tail-99th-percentile").ranked(&tails));
    let medians = [4, 3, 0].map(|at| (APPLICATIONS[at].0, median_ms(&ran[at])));
    findings.row(Claim::of("konanki/longer-requests-longer-they-take-median").ranked(&medians));
    findings.plot(Plot {
        title: "Response times".to_owned(),
        caption: "Share of requests that took at most so long.".to_owned(),
        x: Axis::logarithmic("Response time", "ns"),
        y: Axis::linear("Requests", "share"),
        curves: APPLICATIONS
            .iter()
            .zip(&ran)
            .map(|((name, ..), ran)| Curve::ours(name, ran.distribution("all")).stepped())
            .collect(),
    });
    Ok(findings)
}

fn median_ms(ran: &JobOutput) -> f64 {
    ran.results.latency_ns.all.p50.map_or(f64::NAN, |ns| ns as f64 / 1e6)
}

fn at_the_step(ran: &JobOutput) -> f64 {
    let median = median_ms(ran);
    ran.share_within_ms("all", 1.2 * median) - ran.share_within_ms("all", 0.8 * median)
}

fn tail(ran: &JobOutput) -> f64 {
    let p99 = ran.results.latency_ns.all.p99.map_or(f64::NAN, |ns| ns as f64 / 1e6);
    p99 / median_ms(ran)
}

fn round_trip(runner: &Runner) -> Result<Findings, ExperimentError> {
    let ran = runner.run(&[Job::paper("konanki/round-trip.toml").with_latencies()])?;
    let ran = &ran[0];
    let mut findings = Findings::default();
    let third = ran.latencies.len() / 3;
    let names = ["written to flash", "read from flash", "written to the disk"];
    let mut medians = Vec::new();
    for (name, third_of_run) in names.iter().zip(ran.latencies.chunks(third.max(1))) {
        let mut times: Vec<f64> = third_of_run.iter().map(|(_, ns)| *ns as f64 / 1e6).collect();
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let near = times.iter().filter(|ms| (0.8..1.2).contains(&(*ms / median))).count();
        let claim = format!("a plateau for what is {name}: share within 20 % of its median");
        let share = near as f64 / times.len() as f64;
        let claim = Claim::new("K38", claim).at_least("nearly all", 0.9).ours(share);
        findings.row(claim.if_it_differs(
            "the disk takes writes into its buffer, and one in ten has to wait until there is room",
        ));
        medians.push((*name, median));
    }
    findings.row(Claim::of("konanki/three-plateaus-apart-medians-ms").ranked(&medians));
    findings.plot(Plot {
        title: "Response times".to_owned(),
        caption: "Share of requests that took at most so long.".to_owned(),
        x: Axis::logarithmic("Response time", "ns"),
        y: Axis::linear("Requests", "share"),
        curves: vec![Curve::ours("all three phases", ran.distribution("all")).stepped()],
    });
    Ok(findings)
}
