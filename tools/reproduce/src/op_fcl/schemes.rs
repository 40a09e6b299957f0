//! The figures of results: response time and erases against caching space for the three schemes,
//! and how OP-FCL divides flash over time.

use crate::published::parameters;
use crate::{
    Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting, Variants,
};
use hybridsim_report::study::Curve;
use serde::Deserialize;

pub const FINANCIAL: Experiment =
    Experiment { id: "op-fcl/financial", run: |runner| study(runner, "op-fcl/financial") };
pub const SEARCH: Experiment =
    Experiment { id: "op-fcl/search", run: |runner| study(runner, "op-fcl/search") };
pub const EXCHANGE: Experiment =
    Experiment { id: "op-fcl/exchange", run: |runner| study(runner, "op-fcl/exchange") };

/// A workload under the three schemes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    name: String,
    /// The machine it runs on.
    scenario: String,
    generator: String,
    requests: u32,
    /// The shape of the paper's curves.
    expect: Expect,
    /// The end of the axis of response times.
    axis_ms: f64,
    /// Whether the rate was set after that axis.
    rate_given: bool,
    /// Other values of keys, which the paper leaves open.
    settings: Vec<Setting>,
}

#[derive(PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Expect {
    /// The best size lies inside, and much space is left free.
    Writes,
    /// More caching is better, and most of it for reads.
    Reads,
}

const SIZES: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

fn job(workload: &Workload, scheme: &str, space: f64) -> Job {
    Job::paper(&workload.scenario)
        .named(format!("{}, {scheme} {space}", workload.name))
        .set("workload.generator", &workload.generator)
        .set("workload.generator.requests", workload.requests)
        .set("run.warmup_requests", workload.requests / 2)
        .set("component.cache.scheme", format!("\"{scheme}\""))
        .set("component.cache.caching_space", space)
}

/// All sizes under FP-FCL, all under RW-FCL, and OP-FCL.
fn jobs(workload: &Workload) -> Vec<Job> {
    let sizes = |scheme| SIZES.iter().map(move |space| job(workload, scheme, *space));
    let full = job(workload, "op", 0.95).with_numbers();
    sizes("fp").chain(sizes("rw")).chain([full]).collect()
}

/// The outputs of FP-FCL.
fn fixed(ran: &[JobOutput]) -> &[JobOutput] {
    &ran[..SIZES.len()]
}

/// The outputs of RW-FCL.
fn divided(ran: &[JobOutput]) -> &[JobOutput] {
    &ran[SIZES.len()..2 * SIZES.len()]
}

/// The output of OP-FCL.
fn full(ran: &[JobOutput]) -> &JobOutput {
    &ran[2 * SIZES.len()]
}

fn erases(ran: &JobOutput) -> f64 {
    ran.results.totals.erases.map_or(f64::NAN, |erases| erases as f64)
}

/// The size with the least of something, and how little; the smallest of equals.
fn best(runs: &[JobOutput], of: fn(&JobOutput) -> f64) -> (f64, f64) {
    let at = best_at(runs, of);
    (SIZES[at], of(&runs[at]))
}

/// The place of the best size among [`SIZES`].
fn best_at(runs: &[JobOutput], of: fn(&JobOutput) -> f64) -> usize {
    let values = runs.iter().map(of).enumerate();
    values.min_by(|a, b| a.1.total_cmp(&b.1)).expect("nine sizes").0
}

const MEAN: fn(&JobOutput) -> f64 = JobOutput::mean_ms;

fn study(runner: &Runner, id: &str) -> Result<Findings, ExperimentError> {
    let workload: Workload = parameters(id);
    let seeds = crate::seeds("op-fcl", &["O03", "O17", "O18", "O19"]);
    let ran = Variants::run(runner, &jobs(&workload), seeds, &workload.settings)?;
    let mut findings = Findings::default();
    let first = ran.first();
    let named = |id: &str| Claim::of(id).with("name", &workload.name);
    let with_best = |id: &str, runs: &[JobOutput]| {
        let (size, best) = best(runs, MEAN);
        let figures = [("mean", full(first).mean_ms()), ("best", best), ("size", size)];
        Claim::of(id).with_figures(&figures)
    };
    let claim = with_best("op-fcl/op-fcl-best-fixed-partition-mean", fixed(first));
    findings.row(ran.number(claim, |ran| full(ran).mean_ms() / best(fixed(ran), MEAN).1));
    let claim = with_best("op-fcl/op-fcl-best-division-fixed-size", divided(first));
    findings.row(ran.number(claim, |ran| full(ran).mean_ms() / best(divided(ran), MEAN).1));
    let means = |runs: &[JobOutput]| {
        let means: Vec<String> = runs.iter().map(|ran| format!("{:.2}", ran.mean_ms())).collect();
        means.join(" ")
    };
    let claim = named("op-fcl/rw-fcl-fp-fcl-best-size").with("fixed", means(fixed(first)));
    findings.row(claim.with("divided", means(divided(first))));
    shape(&mut findings, &workload, &ran);
    division(&mut findings, &workload, &ran);
    if workload.expect == Expect::Writes {
        contrast(&mut findings, runner, &workload, &ran)?;
    }
    let deviation = full(first).results.latency_ns.all.stddev.unwrap_or(f64::NAN) / 1e6;
    findings.row(named("op-fcl/standard-deviation").with("deviation", deviation));
    plots(&mut findings, first);
    Ok(findings)
}

fn shape(findings: &mut Findings, workload: &Workload, ran: &Variants) {
    let last = SIZES.len() - 1;
    match workload.expect {
        Expect::Reads => {
            let claim = Claim::of("op-fcl/response-improves-more-caching-space-10");
            findings
                .row(ran.number(claim, |ran| fixed(ran)[0].mean_ms() / fixed(ran)[last].mean_ms()));
        }
        Expect::Writes => {
            let claim = Claim::of("op-fcl/best-size-lies-inside-best-caching");
            findings.row(ran.number(claim, |ran| best(fixed(ran), MEAN).0));
        }
    }
    let claim = Claim::of("op-fcl/optimal-point-of-lifetime-differs").with("name", &workload.name);
    findings.row(ran.number(claim, |ran| {
        let fixed = fixed(ran);
        // In steps of the grid: 0.6 - 0.5 is less than 0.1 in binary.
        best_at(fixed, MEAN).abs_diff(best_at(fixed, erases)) as f64
    }));
    let claim = Claim::of("op-fcl/mean-response-worst-size-fp-fcl");
    let words = format!("an axis to {}", workload.axis_ms);
    let claim = claim.between(&words, f64::NEG_INFINITY, workload.axis_ms);
    let claim = claim.given_if(workload.rate_given);
    findings.row(
        ran.number(claim, |ran| fixed(ran).iter().map(JobOutput::mean_ms).fold(0.0, f64::max)),
    );
}

/// Pages of the read and the write cache and over-provisioned ones that OP-FCL reported last.
fn partition(ran: &JobOutput) -> [f64; 3] {
    [0, 1, 2].map(|name| {
        let reported = ran.numbers.iter().rev().find(|(_, number, _)| *number == name);
        reported.map_or(f64::NAN, |(.., value)| *value as f64)
    })
}

/// The share of all flash of a part of the [`partition`].
fn share_of(ran: &JobOutput, part: usize) -> f64 {
    let pages = partition(ran);
    pages[part] / pages.iter().sum::<f64>()
}

/// The best fixed size and what is left free, against those under the workload of reads.
fn contrast(
    findings: &mut Findings,
    runner: &Runner,
    workload: &Workload,
    ran: &Variants,
) -> Result<(), ExperimentError> {
    let other: Workload = parameters(SEARCH.id);
    let mut jobs = SIZES.map(|space| job(&other, "fp", space)).to_vec();
    jobs.push(job(&other, "op", 0.95).with_numbers());
    let search = Variants::run(runner, &jobs, ran.seeds.len() as u32, &[])?.seeds;
    findings.row(best_sizes(workload, ran, &search));
    let free = |ran: &JobOutput| share_of(ran, 2);
    let here = ran.seeds.iter().map(|ran| free(full(ran))).collect();
    let there = search.iter().map(|ran| free(&ran[SIZES.len()])).collect();
    let named = [(workload.name.as_str(), here), (other.name.as_str(), there)];
    let claim = Claim::of("op-fcl/leaves-more-free-than-under-search");
    findings.row(claim.with("name", &workload.name).ranked_at_seeds(&named));
    Ok(())
}

/// The row of the distance of the best fixed size from that under `search`, the workload of reads.
fn best_sizes(workload: &Workload, ran: &Variants, search: &[Vec<JobOutput>]) -> Claim {
    let apart = |here: &[JobOutput], there: &[JobOutput]| {
        best_at(fixed(here), MEAN).abs_diff(best_at(fixed(there), MEAN)) as f64
    };
    let (size, of_reads) = (best(fixed(ran.first()), MEAN).0, best(fixed(&search[0]), MEAN).0);
    let seeds = ran.seeds.iter().zip(search);
    let values: Vec<f64> = seeds.map(|(here, there)| apart(here, there)).collect();
    let claim = Claim::of("op-fcl/optimal-performance-depends-on-the-workload")
        .with("name", &workload.name)
        .with_figures(&[("size", size), ("search", of_reads)])
        .ours_at_seeds(&values);
    let other = |claim: Claim, (name, here): &(String, Vec<JobOutput>)| {
        claim.sensitive(name, apart(here, &search[0]))
    };
    ran.others.iter().fold(claim, other)
}

/// Rows and a plot of the division of flash by OP-FCL.
fn division(findings: &mut Findings, workload: &Workload, ran: &Variants) {
    let share = |ran: &[JobOutput], part: usize| share_of(full(ran), part);
    match workload.expect {
        Expect::Writes => {
            let claim = Claim::of("op-fcl/settles-considerable-provisioned-space-its-share");
            findings.row(ran.number(claim, |ran| share(ran, 2)));
        }
        Expect::Reads => {
            let claim = Claim::of("op-fcl/gives-most-space-what-read-its");
            findings.row(ran.number(claim, |ran| share(ran, 0)));
            let chosen: Vec<String> =
                ran.seeds.iter().map(|ran| format!("{:.3}", 1.0 - share(ran, 2))).collect();
            let claim = Claim::of("op-fcl/model-chooses-0-92");
            findings.row(claim.with("chosen", chosen.join(", ")));
        }
    }
    let full = full(ran.first());
    let all = partition(full).iter().sum::<f64>();
    let series = |name: u8| {
        let of = full.numbers.iter().filter(move |(_, number, _)| *number == name);
        of.map(|(time, _, value)| (*time, *value as f64 / all)).collect::<Vec<_>>()
    };
    findings.plot(
        "op-fcl/division-of-flash",
        &[],
        vec![
            Curve::ours("read cache", series(0)).stepped(),
            Curve::ours("write cache", series(1)).stepped(),
            Curve::ours("over-provisioned", series(2)).stepped(),
        ],
    );
}

fn plots(findings: &mut Findings, ran: &[JobOutput]) {
    let curve = |name: &str, runs: &[JobOutput], of: fn(&JobOutput) -> f64| {
        Curve::ours(name, SIZES.iter().zip(runs).map(|(size, ran)| (*size, of(ran))).collect())
    };
    type Figure = (&'static str, &'static str, fn(&JobOutput) -> f64);
    let figures: [Figure; 2] =
        [("Response time", "ms", |ran| ran.mean_ms()), ("Erases", "blocks", erases)];
    for (title, unit, of) in figures {
        let full = of(full(ran));
        findings.plot(
            "op-fcl/by-caching-space",
            &[("title", &title), ("unit", &unit)],
            vec![
                curve("FP-FCL", fixed(ran), of),
                curve("RW-FCL", divided(ran), of),
                Curve::ours("OP-FCL", vec![(SIZES[0], full), (SIZES[8], full)]),
            ],
        );
    }
}
