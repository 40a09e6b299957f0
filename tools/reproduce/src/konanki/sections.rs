//! Claims of the text that no figure shows: section 3.3 on cleanup, section 5.2 on the parameters.

use super::seeds;
use crate::published::settings;
use crate::{
    Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting, Variants,
};
use hybridsim_observe::results::Flash;
use hybridsim_report::study::Curve;

/// Section 3.3.
pub const CLEANUP: Experiment = Experiment { id: "konanki/sec3.3", run: cleanup };

/// Section 5.2.
pub const EXTRACTION: Experiment = Experiment { id: "konanki/sec5.2", run: extraction };

fn cleanup(runner: &Runner) -> Result<Findings, ExperimentError> {
    let policies = settings("konanki/cleanup-policies", &[]);
    let job = |policy: &Setting| Job::paper("konanki/cleanup.toml").named(&policy.name).at(policy);
    let jobs: Vec<Job> = policies.iter().map(job).collect();
    let ran = Variants::run(runner, &jobs, seeds("K27"), &settings("konanki/cleanup", &[]))?;
    let mut findings = Findings::default();
    let mut order = |id: &str, other: usize, value: fn(&JobOutput) -> f64| {
        let claim = Claim::of(id).with("other", &policies[other].name);
        let of = |ran: &[JobOutput]| {
            [0, other].map(|at| (policies[at].name.as_str(), value(&ran[at]))).to_vec()
        };
        findings.row(ran.order(claim, of));
    };
    for other in [1, 2] {
        order("konanki/complete-cleanup-spins-up-less", other, spin_ups);
        order("konanki/complete-cleanup-flushes-better", other, destage_kib);
        order("konanki/complete-cleanup-takes-less-power", other, kilojoules);
        order("konanki/no-full-flush-delays-a-request", other, |ran| ran.longest_ms() / 1e3);
    }
    Ok(findings)
}

fn spin_ups(ran: &JobOutput) -> f64 {
    let disk = ran.results.components.values().find_map(|component| component.disk.as_ref());
    disk.map_or(0.0, |disk| disk.spin_ups as f64)
}

fn kilojoules(ran: &JobOutput) -> f64 {
    ran.results.totals.energy_j.map_or(f64::NAN, |joules| joules / 1e3)
}

/// Mean length of a write to the disk while cleaning, KiB.
fn destage_kib(ran: &JobOutput) -> f64 {
    let cache = ran.results.components.values().find_map(|component| component.cache.as_ref());
    cache.map_or(f64::NAN, |cache| cache.destaged_bytes as f64 / 1024.0 / cache.destages as f64)
}

/// Pages written or read at once by the micro-benchmarks.
const PAGES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// `stick.toml` and its preset.
const READ_US: f64 = 78.0;
const PROGRAM_US: f64 = 84.0;
const ERASE_US: f64 = 1500.0;
const OVERHEAD_US: f64 = 50.0;

fn extraction(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut curves = Vec::new();
    for (what, rw, slope_us) in [("read", "read", READ_US), ("write", "write", PROGRAM_US)] {
        let job = |pages: u32| {
            Job::paper("konanki/micro.toml")
                .named(format!("{what} {pages} pages"))
                .set("workload.generator.rw", format!("{rw:?}"))
                .set("workload.generator.bs", format!("\"{}KiB\"", 2 * pages))
        };
        let ran = runner.run(&PAGES.map(job))?;
        // "The minimum observed latency was chosen."
        let shortest =
            |ran: &JobOutput| ran.results.latency_ns.all.min.map_or(f64::NAN, |ns| ns as f64);
        let points: Vec<(f64, f64)> =
            PAGES.iter().zip(&ran).map(|(pages, ran)| (f64::from(*pages), shortest(ran))).collect();
        let (slope, intercept) = line(&points);
        let row = |id: &str, published: f64, ours: f64| {
            Claim::of(id).with("what", what).published(published).ours(ours)
        };
        findings.row(row("konanki/slope-is-the-time-of-a-page", slope_us, slope / 1e3));
        findings.row(row("konanki/intercept-is-the-overhead", OVERHEAD_US, intercept / 1e3));
        curves.push(Curve::ours(what, points));
    }
    findings.plot("konanki/latency-by-pages", &[], curves);
    erases_per_write(runner, &mut findings)?;
    findings.row(Claim::of("konanki/anand-best-models-the-sandisk"));
    Ok(findings)
}

/// The least-squares line through `points`: slope and intercept.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = both / square;
    (slope, y - slope * x)
}

/// k, the erases per write that section 5.2 reads off latencies, beside those that took place.
fn erases_per_write(runner: &Runner, findings: &mut Findings) -> Result<(), ExperimentError> {
    let job =
        Job::paper("konanki/stick.toml").named("k").set("workload.generator.mix", "\"postmark\"");
    let settings = settings("konanki/erases-per-write", &[]);
    let ran = Variants::run(runner, &[job], seeds("K32"), &settings)?;
    for (formula, overhead_us) in
        [("(L - n W - C) / E", OVERHEAD_US), ("(L - n W) / E, as printed", 0.0)]
    {
        let claim = Claim::of("konanki/k-is-the-erases-of-a-write").with("formula", formula);
        findings.row(ran.number(claim, |ran| {
            let Some(flash) = flash(&ran[0]) else { return f64::NAN };
            let requests = ran[0].results.latency_ns.all.count as f64;
            let host = flash.programs_by_cause.get("host").copied().unwrap_or(0);
            let latency_us = ran[0].mean_ms() * 1e3;
            let k = (latency_us - overhead_us - host as f64 / requests * PROGRAM_US) / ERASE_US;
            k / (flash.erases as f64 / requests)
        }));
    }
    Ok(())
}

fn flash(ran: &JobOutput) -> Option<&Flash> {
    ran.results.components.values().find_map(|component| component.flash.as_ref())
}
