//! The figures of results: response time and erases against caching space for the three schemes,
//! and how OP-FCL divides flash over time.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

/// A workload under the three schemes.
pub const FINANCIAL: Experiment =
    Experiment { id: "op-fcl/financial", run: |runner| study(runner, &FINANCIAL_WORKLOAD) };

/// A workload under the three schemes.
pub const SEARCH: Experiment =
    Experiment { id: "op-fcl/search", run: |runner| study(runner, &SEARCH_WORKLOAD) };

/// A workload under the three schemes.
pub const EXCHANGE: Experiment =
    Experiment { id: "op-fcl/exchange", run: |runner| study(runner, &EXCHANGE_WORKLOAD) };

struct Workload {
    name: &'static str,
    /// The machine it runs on.
    scenario: &'static str,
    generator: &'static str,
    /// What the paper says of its curves.
    expect: Expect,
    /// Why response times are on another level.
    level: &'static str,
}

#[derive(PartialEq)]
enum Expect {
    /// The best size lies inside, and much space is left free.
    Writes,
    /// More caching is better, and most of it for reads.
    Reads,
}

const FINANCIAL_WORKLOAD: Workload = Workload {
    name: "Financial",
    scenario: "op-fcl/config1.toml",
    generator: "{ kind = \"server\", preset = \"financial-24\", span = \"264MiB\", \
                requests = 200000, interarrival_ms = { kind = \"exponential\", mean = 8.2 } }",
    expect: Expect::Writes,
    level: "a page missed costs 4 to 8 ms on the one disk, and a tenth of flash finds 39 % of the \
            pages; with a footprint of 480 MiB instead of 264 it is 7.1 ms, with 176 MiB 5.0; how \
            skewed the trace is beyond its number of addresses is not published",
};

const SEARCH_WORKLOAD: Workload = Workload {
    name: "Search Engine",
    scenario: "op-fcl/config1.toml",
    generator: "{ kind = \"server\", preset = \"websearch\", span = \"2GiB\", requests = 200000, \
                interarrival_ms = { kind = \"exponential\", mean = 20.0 } }",
    expect: Expect::Reads,
    level: "the rate is assumed: the disk is busy a third of the time, so hardly anybody waits for \
            others; at four times the rate it is busy nine tenths of it, and the mean is 8.9 ms",
};

/// Only the mixture of reads and writes is known of the mail server (assumed: 40 % reads of 8 KiB,
/// and the rate: 12 ms between requests for each of the three disks).
const EXCHANGE_WORKLOAD: Workload = Workload {
    name: "Exchange",
    scenario: "op-fcl/config2.toml",
    generator: "{ kind = \"server\", preset = \"custom\", sizes_sectors = [16], weights = [1.0], \
                read = 0.4, sequential = 0.05, volumes = 4, span = \"600MiB\", requests = 200000, \
                interarrival_ms = { kind = \"exponential\", mean = 4.0 } }",
    expect: Expect::Writes,
    level: "the rate is assumed: each disk is busy a third of the time, so hardly anybody waits \
            for others; at twice the rate the mean at a tenth of flash rises from 3.0 to 5.1 ms",
};

const SIZES: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

fn job(workload: &Workload, scheme: &str, space: f64) -> Job {
    Job::paper(workload.scenario)
        .named(format!("{}, {scheme} {space}", workload.name))
        .set("workload.generator", workload.generator)
        .set("component.cache.scheme", format!("\"{scheme}\""))
        .set("component.cache.caching_space", space)
}

struct Results {
    fixed: Vec<JobOutput>,
    divided: Vec<JobOutput>,
    full: JobOutput,
}

fn run(runner: &Runner, workload: &Workload) -> Result<Results, ExperimentError> {
    let mut jobs: Vec<Job> = SIZES.iter().map(|space| job(workload, "fp", *space)).collect();
    jobs.extend(SIZES.iter().map(|space| job(workload, "rw", *space)));
    jobs.push(job(workload, "op", 0.95).with_numbers());
    let mut ran = runner.run(&jobs)?;
    let full = ran.pop().expect("one for each job");
    let divided = ran.split_off(SIZES.len());
    Ok(Results { fixed: ran, divided, full })
}

fn erases(ran: &JobOutput) -> f64 {
    ran.results.totals.erases.map_or(f64::NAN, |erases| erases as f64)
}

/// The size with the least of something, and how little.
fn best(runs: &[JobOutput], of: fn(&JobOutput) -> f64) -> (f64, f64) {
    let values = SIZES.iter().zip(runs).map(|(size, ran)| (*size, of(ran)));
    values.min_by(|a, b| a.1.total_cmp(&b.1)).expect("nine sizes")
}

fn study(runner: &Runner, workload: &Workload) -> Result<Findings, ExperimentError> {
    let results = run(runner, workload)?;
    let mut findings = Findings::default();
    let mean = |ran: &JobOutput| ran.mean_ms();
    let (fixed, divided) = (best(&results.fixed, mean), best(&results.divided, mean));
    let full = results.full.mean_ms();
    findings.row(
        Claim::of("op-fcl/op-fcl-best-fixed-partition-mean")
            .ours(full / fixed.1)
            .remark(&format!("{full:.3} ms; best fixed {:.3} ms at {}", fixed.1, fixed.0)),
    );
    findings.row(
        Claim::of("op-fcl/op-fcl-best-division-fixed-size")
            .ours(full / divided.1)
            .remark(&format!("best RW-FCL {:.3} ms at {}", divided.1, divided.0)),
    );
    let at_best = SIZES.iter().position(|size| *size == fixed.0).expect("one of the sizes");
    findings.row(
        Claim::of("op-fcl/rw-fcl-fp-fcl-best-size")
            .ours(results.divided[at_best].mean_ms() / fixed.1),
    );
    shape(&mut findings, workload, &results, fixed.0);
    division(&mut findings, workload, &results.full);
    plots(&mut findings, &results);
    Ok(findings)
}

fn shape(findings: &mut Findings, workload: &Workload, results: &Results, best_size: f64) {
    let first_last = results.fixed[0].mean_ms() / results.fixed[SIZES.len() - 1].mean_ms();
    match workload.expect {
        Expect::Reads => findings
            .row(Claim::of("op-fcl/response-improves-more-caching-space-10").ours(first_last)),
        Expect::Writes => {
            findings.row(Claim::of("op-fcl/best-size-lies-inside-best-caching").ours(best_size));
            let wear = best(&results.fixed, erases);
            findings.row(
                Claim::of("op-fcl/fewest-erases-smaller-size-best-response")
                    .ranked(&[("size of fewest erases", wear.0), ("of best response", best_size)]),
            );
        }
    }
    let most = results.fixed.iter().map(JobOutput::mean_ms).fold(0.0, f64::max);
    let high = if workload.name == "Financial" { 1.2 } else { 14.0 };
    findings.row(
        Claim::of("op-fcl/mean-response-worst-size-fp-fcl")
            .between(&format!("in the upper half of an axis to {high}"), high / 2.0, high)
            .ours(most)
            .if_it_differs(workload.level),
    );
}

/// How OP-FCL divided flash at the end.
fn division(findings: &mut Findings, workload: &Workload, ran: &JobOutput) {
    let last = |name: u8| {
        let reported = ran.numbers.iter().rev().find(|(_, number, _)| *number == name);
        reported.map_or(f64::NAN, |(.., value)| *value as f64)
    };
    let (read, write, spare) = (last(0), last(1), last(2));
    let all = read + write + spare;
    match workload.expect {
        Expect::Writes => findings.row(
            Claim::of("op-fcl/settles-considerable-provisioned-space-its-share").ours(spare / all),
        ),
        Expect::Reads => {
            findings.row(Claim::of("op-fcl/gives-most-space-what-read-its").ours(read / all))
        }
    }
    let series = |name: u8| {
        let of = ran.numbers.iter().filter(move |(_, number, _)| *number == name);
        of.map(|(time, _, value)| (*time, *value as f64 / all)).collect::<Vec<_>>()
    };
    findings.plot(Plot {
        title: "How OP-FCL divides flash".to_owned(),
        caption: "Shares of all flash over simulated time.".to_owned(),
        x: Axis::linear("Time", "s"),
        y: Axis::linear("Flash", "share"),
        curves: vec![
            Curve::ours("read cache", series(0)).stepped(),
            Curve::ours("write cache", series(1)).stepped(),
            Curve::ours("over-provisioned", series(2)).stepped(),
        ],
    });
}

fn plots(findings: &mut Findings, results: &Results) {
    let curve = |name: &str, runs: &[JobOutput], of: fn(&JobOutput) -> f64| {
        Curve::ours(name, SIZES.iter().zip(runs).map(|(size, ran)| (*size, of(ran))).collect())
    };
    type Figure = (&'static str, &'static str, fn(&JobOutput) -> f64);
    let figures: [Figure; 2] =
        [("Response time", "ms", |ran| ran.mean_ms()), ("Erases", "blocks", erases)];
    for (title, unit, of) in figures {
        let full = of(&results.full);
        findings.plot(Plot {
            title: title.to_owned(),
            caption: "Against the share of flash that caches; OP-FCL chooses its own.".to_owned(),
            x: Axis::linear("Caching space", "share"),
            y: Axis::linear(title, unit),
            curves: vec![
                curve("FP-FCL", &results.fixed, of),
                curve("RW-FCL", &results.divided, of),
                Curve::ours("OP-FCL", vec![(SIZES[0], full), (SIZES[8], full)]),
            ],
        });
    }
}
