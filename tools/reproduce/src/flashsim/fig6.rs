//! Figure 6: distributions of response times under page-mapped, DFTL and FAST.

use super::{DFTL, Evaluation, FAST, LAYERS, PAGE, flash};
use crate::runner::ms;
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Runner};
use hybridsim_report::study::Curve;

/// Figure 6(a).
pub const FINANCIAL: Experiment = Experiment { id: "flashsim/fig6a", run: financial };

/// Figure 6(b).
pub const TPC_H: Experiment = Experiment { id: "flashsim/fig6b", run: tpc_h };

fn financial(runner: &Runner) -> Result<Findings, ExperimentError> {
    let ran = Evaluation::run(runner, "financial", &["F25", "F26"], &["flashsim/fig6a"])?.ran;
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
    findings.plot("flashsim/response-times-of-layers", &[], distributions(ran.first()));
    Ok(findings)
}

fn tpc_h(runner: &Runner) -> Result<Findings, ExperimentError> {
    let ran = Evaluation::run(runner, "tpc-h", &["F27", "F28"], &["flashsim/fig6b"])?.ran;
    let mut findings = Findings::default();
    let faster = Claim::of("flashsim/fast-serves-about-95-requests-faster");
    findings.row(ran.number(faster, |ran| crossing(&ran[FAST], &ran[DFTL])));
    let of = |layers: [usize; 2], value: fn(&JobOutput) -> f64| {
        move |ran: &[JobOutput]| layers.map(|at| (LAYERS[at], value(&ran[at]))).to_vec()
    };
    let tail = Claim::of("flashsim/fast-has-longer-tail-99-9th-percentile");
    findings.row(ran.order(tail, of([FAST, DFTL], percentile_ms)));
    let higher = Claim::of("flashsim/higher-mean-response-ms");
    findings.row(ran.order(higher, of([FAST, DFTL], JobOutput::mean_ms)));
    let deviates = Claim::of("flashsim/dftl-deviates-page-mapping-when-reads");
    findings.row(ran.order(deviates, of([DFTL, PAGE], JobOutput::mean_ms)));
    findings.plot("flashsim/response-times-of-layers", &[], distributions(ran.first()));
    Ok(findings)
}

/// Pages read and programmed for anything but the host.
fn extra_pages(ran: &JobOutput) -> f64 {
    let flash = flash(ran);
    let host =
        |causes: &std::collections::BTreeMap<String, u64>| causes.get("host").copied().unwrap_or(0);
    let reads = flash.reads - host(&flash.reads_by_cause);
    (reads + flash.programs - host(&flash.programs_by_cause)) as f64
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
