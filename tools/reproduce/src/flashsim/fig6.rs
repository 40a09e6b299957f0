//! Figure 6: distributions of response times under page-mapped, DFTL and FAST.

use super::{DFTL, Evaluation, FAST, LAYERS, PAGE, extra_pages, flash, named};
use crate::runner::ms;
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Runner};
use hybridsim_report::study::Curve;

/// Figure 6(a).
pub const FINANCIAL: Experiment = Experiment { id: "flashsim/fig6a", run: financial };

/// Figure 6(b).
pub const TPC_H: Experiment = Experiment { id: "flashsim/fig6b", run: tpc_h };

fn financial(runner: &Runner) -> Result<Findings, ExperimentError> {
    let open = ["flashsim/fig6a", "flashsim/financial-flash"];
    let ran = Evaluation::run(runner, "financial", &["F25", "F26"], &open)?.ran;
    let mut findings = Findings::default();
    let matches = Claim::of("flashsim/dftl-closely-matches-page-mapping-mean");
    findings.row(ran.number(matches, |ran| ran[DFTL].mean_ms() / ran[PAGE].mean_ms()));
    let improves = Claim::of("flashsim/dftl-improves-mean-response-about-78");
    findings.row(ran.number(improves, |ran| 1.0 - ran[DFTL].mean_ms() / ran[FAST].mean_ms()));
    let erases = |ran: &JobOutput| flash(ran).erases as f64;
    let claim = Claim::of("flashsim/erases-fast-dftl");
    findings.row(ran.number(claim, |ran| erases(&ran[FAST]) / erases(&ran[DFTL])));
    let claim = Claim::of("flashsim/page-reads-writes-beyond-host-s");
    findings.row(ran.number(claim, |ran| extra_pages(&ran[FAST]) / extra_pages(&ran[DFTL])));
    let queueing = Claim::of("flashsim/shorter-queueing-delays");
    findings.row(ran.order(queueing, named([FAST, DFTL], queueing_ms)));
    let service = Claim::of("flashsim/improved-service-times");
    let service_ms = |ran: &JobOutput| ran.mean_ms() - queueing_ms(ran);
    findings.row(ran.order(service, named([FAST, DFTL], service_ms)));
    findings.plot("flashsim/response-times-of-layers", &[], distributions(ran.first()));
    Ok(findings)
}

fn tpc_h(runner: &Runner) -> Result<Findings, ExperimentError> {
    let open = ["flashsim/fig6b", "flashsim/tpc-h-flash", "flashsim/tpc-h-arrivals"];
    let ran = Evaluation::run(runner, "tpc-h", &["F27", "F28"], &open)?.ran;
    let mut findings = Findings::default();
    let faster = Claim::of("flashsim/fast-serves-about-95-requests-faster");
    findings.row(ran.number(faster, |ran| crossing(&ran[FAST], &ran[DFTL])));
    let tail = Claim::of("flashsim/fast-has-longer-tail-99-9th-percentile");
    findings.row(ran.order(tail, named([FAST, DFTL], percentile_ms)));
    let higher = Claim::of("flashsim/higher-mean-response-ms");
    findings.row(ran.order(higher, named([FAST, DFTL], JobOutput::mean_ms)));
    let queueing = Claim::of("flashsim/high-latencies-in-the-driver-queue");
    findings.row(ran.order(queueing, named([FAST, DFTL], queueing_ms)));
    let deviates = Claim::of("flashsim/dftl-deviates-page-mapping-when-reads");
    findings.row(ran.order(deviates, named([DFTL, PAGE], JobOutput::mean_ms)));
    findings.plot("flashsim/response-times-of-layers", &[], distributions(ran.first()));
    Ok(findings)
}

/// The mean time that requests wait in the driver's queue.
fn queueing_ms(ran: &JobOutput) -> f64 {
    ran.results.breakdown_ns.all.get("queue").map_or(f64::NAN, |ns| ns / 1e6)
}

fn percentile_ms(ran: &JobOutput) -> f64 {
    ms(ran.results.latency_ns.all.p999)
}

/// The share of requests up to which `one` is at most as slow as `other`: the highest crossing of
/// their distributions.
fn crossing(one: &JobOutput, other: &JobOutput) -> f64 {
    let (one, other) = (one.distribution("all"), other.distribution("all"));
    let at = |points: &[(f64, f64)], share: f64| {
        let index = points.partition_point(|(_, below)| *below < share);
        points.get(index).map_or(f64::NAN, |(ns, _)| *ns)
    };
    let steps = (1..1000).rev().map(|step| f64::from(step) / 1000.0);
    // From the top: the first share at which `one` is no slower.
    let mut steps = steps.skip_while(|share| at(&one, *share) > at(&other, *share));
    steps.next().unwrap_or(0.0)
}

fn distributions(ran: &[JobOutput]) -> Vec<Curve> {
    LAYERS
        .iter()
        .zip(ran)
        .map(|(name, ran)| Curve::ours(name, ran.distribution("all")).stepped())
        .collect()
}
