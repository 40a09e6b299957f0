//! Figures 5.1 to 5.6: the flash model on applications, and configuration 1.

use super::seeds;
use crate::published::settings;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Variants};
use hybridsim_report::study::Curve;

/// Figures 5.1 to 5.5.
pub const STICK: Experiment = Experiment { id: "konanki/fig5.1-5.5", run: stick };

/// Figure 5.6.
pub const ROUND_TRIP: Experiment = Experiment { id: "konanki/fig5.6", run: round_trip };

/// Applications, and the generator's mix of each.
const APPLICATIONS: [(&str, &str); 5] = [
    ("Bonnie", "bonnie"),
    ("Download", "download"),
    ("MP3", "mp3"),
    ("Untar", "untar"),
    ("Postmark", "postmark"),
];

fn stick(runner: &Runner) -> Result<Findings, ExperimentError> {
    let job = |(name, mix): &(&str, &str)| {
        Job::paper("konanki/stick.toml")
            .named(*name)
            .set("workload.generator.mix", format!("\"{mix}\""))
    };
    let jobs: Vec<Job> = APPLICATIONS.iter().map(job).collect();
    let ran = Variants::run(runner, &jobs, seeds("K37"), &settings("konanki/stick", &[]))?;
    let mut findings = Findings::default();
    for (at, (name, _)) in APPLICATIONS.iter().enumerate() {
        let id = match at {
            0..=2 => "konanki/one-steep-step",
            _ => "konanki/no-single-step",
        };
        findings.row(ran.number(Claim::of(id).with("name", name), |ran| at_the_step(&ran[at])));
    }
    let each = |value: fn(&JobOutput) -> f64| {
        move |ran: &[JobOutput]| [4, 3, 0].map(|at| (APPLICATIONS[at].0, value(&ran[at]))).to_vec()
    };
    let longer = Claim::of("konanki/more-random-longer-tail-99th-percentile");
    findings.row(ran.order(longer, each(tail)));
    let medians = Claim::of("konanki/longer-requests-longer-they-take-median");
    findings.row(ran.order(medians, each(JobOutput::median_ms)));
    for (name, _) in &APPLICATIONS {
        findings.row(Claim::of("konanki/simulated-matches-observed").with("name", name));
    }
    findings.plot(
        "konanki/response-times-of-the-stick",
        &[],
        APPLICATIONS
            .iter()
            .zip(ran.first())
            .map(|((name, _), ran)| Curve::ours(name, ran.distribution("all")).stepped())
            .collect::<Vec<_>>(),
    );
    Ok(findings)
}

fn at_the_step(ran: &JobOutput) -> f64 {
    let median = ran.median_ms();
    ran.share_within_ms("all", 1.2 * median) - ran.share_within_ms("all", 0.8 * median)
}

fn tail(ran: &JobOutput) -> f64 {
    ran.p99_ms() / ran.median_ms()
}

/// Phases of the round trip, in their order.
const PHASES: [&str; 3] = ["written to flash", "read from flash", "written to the disk"];

/// Latencies of phase `at` in milliseconds, ascending.
fn phase(ran: &JobOutput, at: usize) -> Vec<f64> {
    let third = (ran.latencies.len() / 3).max(1);
    let served = ran.latencies.chunks(third).nth(at).unwrap_or_default();
    let mut times: Vec<f64> = served.iter().map(|served| served.ns as f64 / 1e6).collect();
    times.sort_by(f64::total_cmp);
    times
}

fn phase_median_ms(ran: &JobOutput, at: usize) -> f64 {
    let times = phase(ran, at);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

fn plateau(ran: &JobOutput, at: usize) -> f64 {
    let (times, median) = (phase(ran, at), phase_median_ms(ran, at));
    let near = times.iter().filter(|ms| (0.8..1.2).contains(&(*ms / median))).count();
    near as f64 / times.len() as f64
}

fn round_trip(runner: &Runner) -> Result<Findings, ExperimentError> {
    let jobs = [Job::paper("konanki/round-trip.toml").with_latencies()];
    let ran = Variants::run(runner, &jobs, seeds("K38"), &settings("konanki/round-trip", &[]))?;
    let mut findings = Findings::default();
    for (at, name) in PHASES.iter().enumerate() {
        let id = match at {
            2 => "konanki/plateau-of-the-disk",
            _ => "konanki/plateau-of-flash",
        };
        findings.row(ran.number(Claim::of(id).with("name", name), |ran| plateau(&ran[0], at)));
    }
    let medians = |ran: &[JobOutput]| {
        let median = |at: usize| (PHASES[at], phase_median_ms(&ran[0], at));
        [0, 1, 2].map(median).to_vec()
    };
    findings.row(ran.order(Claim::of("konanki/three-plateaus-apart-medians-ms"), medians));
    findings.row(Claim::of("konanki/simulated-matches-observed").with("name", "figure 5.6"));
    let curve = |(at, name): (usize, &&str)| {
        let times = phase(&ran.first()[0], at);
        let share = |at: usize| (at + 1) as f64 / times.len() as f64;
        let points = times.iter().enumerate().map(|(at, ms)| (ms * 1e6, share(at))).collect();
        Curve::ours(name, points).stepped()
    };
    let mut curves: Vec<Curve> = PHASES.iter().enumerate().map(curve).collect();
    curves.push(Curve::ours("all three", ran.first()[0].distribution("all")).stepped());
    findings.plot("konanki/response-times-of-a-round-trip", &[], curves);
    Ok(findings)
}
