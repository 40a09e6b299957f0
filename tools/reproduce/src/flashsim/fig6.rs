//! Figure 6: distributions of response times under page-mapped, DFTL and FAST.

use super::{Evaluated, evaluate, flash};
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

/// Figure 6(a).
pub const FINANCIAL: Experiment = Experiment { id: "flashsim/fig6a", run: financial };

/// Figure 6(b).
pub const TPC_H: Experiment = Experiment { id: "flashsim/fig6b", run: tpc_h };

fn financial(runner: &Runner) -> Result<Findings, ExperimentError> {
    let ran = evaluate(runner, "financial")?;
    let mut findings = Findings::default();
    let (page, dftl, fast) = (ran.page.mean_ms(), ran.dftl.mean_ms(), ran.fast.mean_ms());
    findings.row(Claim::of("flashsim/dftl-closely-matches-page-mapping-mean").ours(dftl / page));
    findings
        .row(Claim::of("flashsim/dftl-improves-mean-response-about-78").ours(1.0 - dftl / fast));
    findings.row(
        Claim::of("flashsim/erases-fast-dftl")
            .ours(flash(&ran.fast).erases as f64 / flash(&ran.dftl).erases as f64),
    );
    findings.row(
        Claim::of("flashsim/page-reads-writes-beyond-host-s")
            .ours(extra_pages(&ran.fast) / extra_pages(&ran.dftl)),
    );
    findings.plot(distributions(&ran));
    Ok(findings)
}

fn tpc_h(runner: &Runner) -> Result<Findings, ExperimentError> {
    let ran = evaluate(runner, "tpc-h")?;
    let mut findings = Findings::default();
    findings.row(
        Claim::of("flashsim/fast-serves-about-95-requests-faster")
            .ours(crossing(&ran.fast, &ran.dftl)),
    );
    findings.row(
        Claim::of("flashsim/fast-has-longer-tail-99-9th-percentile")
            .ranked(&[("FAST", percentile_ms(&ran.fast)), ("DFTL", percentile_ms(&ran.dftl))]),
    );
    findings.row(
        Claim::of("flashsim/higher-mean-response-ms")
            .ranked(&[("FAST", ran.fast.mean_ms()), ("DFTL", ran.dftl.mean_ms())]),
    );
    findings.row(
        Claim::of("flashsim/dftl-deviates-page-mapping-when-reads")
            .ranked(&[("DFTL", ran.dftl.mean_ms()), ("page", ran.page.mean_ms())]),
    );
    findings.plot(distributions(&ran));
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
    ran.results.latency_ns.all.p999.map_or(f64::NAN, |ns| ns as f64 / 1e6)
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

fn distributions(ran: &Evaluated) -> Plot {
    Plot {
        title: "Response times".to_owned(),
        caption: "Share of requests that took at most so long, queueing included.".to_owned(),
        x: Axis::logarithmic("Response time", "ns"),
        y: Axis::linear("Requests", "share"),
        curves: ran
            .all()
            .iter()
            .map(|(name, ran)| Curve::ours(name, ran.distribution("all")).stepped())
            .collect(),
    }
}
