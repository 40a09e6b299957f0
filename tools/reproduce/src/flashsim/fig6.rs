//! Figure 6: distributions of response times under page-mapped, DFTL and FAST.

use super::{Evaluated, Evaluation, MapMemory, SEEDS, Setting, flash};
use crate::{Claim, Experiment, ExperimentError, Findings, JobOutput, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

/// Figure 6(a).
pub const FINANCIAL: Experiment = Experiment { id: "flashsim/fig6a", run: financial };

/// Figure 6(b).
pub const TPC_H: Experiment = Experiment { id: "flashsim/fig6b", run: tpc_h };

/// What the paper leaves open for Financial.
const FINANCIAL_SETTINGS: &[Setting] = &[
    setting("DFTL with FAST's memory for the active region", &[], MapMemory::Region),
    setting("DFTL with the whole map in memory", &[], MapMemory::Whole),
    setting("collected pages apart (page map)", &[(APART, "true")], MapMemory::Drive),
    setting("addresses by a Zipf law of 0.9", &[(LOCALITY, INDEPENDENT)], MapMemory::Drive),
    setting(
        "the same, DFTL with FAST's memory for the active region",
        &[(LOCALITY, INDEPENDENT)],
        MapMemory::Region,
    ),
    setting(
        "addresses by a Zipf law of 1.2",
        &[(LOCALITY, INDEPENDENT), (THETA, "1.2")],
        MapMemory::Drive,
    ),
    setting("flash of 576 MiB", &[(BLOCKS, "4752")], MapMemory::Drive),
    setting("flash of 1 GiB", &[(BLOCKS, "8448")], MapMemory::Drive),
    setting("flash of 4 GiB", &[(BLOCKS, "33792")], MapMemory::Drive),
    setting("flash full before", &[(BEFORE, "\"fill\"")], MapMemory::Drive),
];

/// What it leaves open for TPC-H.
const TPC_H_SETTINGS: &[Setting] = &[
    setting("DFTL with FAST's memory for the active region", &[], MapMemory::Region),
    setting("DFTL with the whole map in memory", &[], MapMemory::Whole),
    setting("flash of 512 MiB", &[(BLOCKS, "4224")], MapMemory::Drive),
    setting("flash of 1 GiB", &[(BLOCKS, "8448")], MapMemory::Drive),
    setting("flash of 4 GiB", &[(BLOCKS, "33792")], MapMemory::Drive),
    setting("arrivals in bursts of ten, 1 ms apart", BURSTS, MapMemory::Drive),
];

const LOCALITY: &str = "workload.generator.locality";
const INDEPENDENT: &str = "\"independent\"";
const THETA: &str = "workload.generator.theta";
const APART: &str = "component.ssd.ftl.gc_separate";
const BLOCKS: &str = "component.ssd.blocks_per_plane";
const BEFORE: &str = "component.ssd.precondition";
/// Nine of ten gaps are 1 ms; the mean is that of Table 3.
const BURSTS: &[(&str, &str)] = &[(
    "workload.generator.interarrival_ms",
    "{ kind = \"two-valued\", default = 1.0, second = 1546.6, probability = 0.1 }",
)];

/// A setting; see [`Setting`].
pub const fn setting(
    name: &'static str,
    sets: &'static [(&'static str, &'static str)],
    memory: MapMemory,
) -> Setting {
    Setting { name, sets, memory }
}

fn financial(runner: &Runner) -> Result<Findings, ExperimentError> {
    let ran = Evaluation::run(runner, "financial", SEEDS, FINANCIAL_SETTINGS)?;
    let mut findings = Findings::default();
    let matches = Claim::of("flashsim/dftl-closely-matches-page-mapping-mean");
    findings.row(ran.number(matches, |ran| ran.dftl.mean_ms() / ran.page.mean_ms()));
    let improves = Claim::of("flashsim/dftl-improves-mean-response-about-78");
    findings.row(ran.number(improves, |ran| 1.0 - ran.dftl.mean_ms() / ran.fast.mean_ms()));
    let erases = |ran: &JobOutput| flash(ran).erases as f64;
    let claim = Claim::of("flashsim/erases-fast-dftl");
    findings.row(ran.number(claim, |ran| erases(&ran.fast) / erases(&ran.dftl)));
    let claim = Claim::of("flashsim/page-reads-writes-beyond-host-s");
    findings.row(ran.number(claim, |ran| extra_pages(&ran.fast) / extra_pages(&ran.dftl)));
    findings.plot(distributions(ran.first()));
    Ok(findings)
}

fn tpc_h(runner: &Runner) -> Result<Findings, ExperimentError> {
    let ran = Evaluation::run(runner, "tpc-h", SEEDS, TPC_H_SETTINGS)?;
    let mut findings = Findings::default();
    let faster = Claim::of("flashsim/fast-serves-about-95-requests-faster");
    findings.row(ran.number(faster, |ran| crossing(&ran.fast, &ran.dftl)));
    let tail = Claim::of("flashsim/fast-has-longer-tail-99-9th-percentile");
    findings.row(
        ran.order(tail, ["FAST", "DFTL"], |ran| {
            [percentile_ms(&ran.fast), percentile_ms(&ran.dftl)]
        }),
    );
    let higher = Claim::of("flashsim/higher-mean-response-ms");
    findings
        .row(ran.order(higher, ["FAST", "DFTL"], |ran| [ran.fast.mean_ms(), ran.dftl.mean_ms()]));
    let deviates = Claim::of("flashsim/dftl-deviates-page-mapping-when-reads");
    findings
        .row(ran.order(deviates, ["DFTL", "page"], |ran| [ran.dftl.mean_ms(), ran.page.mean_ms()]));
    findings.plot(distributions(ran.first()));
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
