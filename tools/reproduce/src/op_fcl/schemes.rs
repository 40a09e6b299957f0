//! The figures of results: response time and erases against caching space for the three schemes,
//! and how OP-FCL divides flash over time.

use crate::{
    Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting, Variants,
};
use hybridsim_report::study::Curve;

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
    requests: u32,
    /// The shape of the paper's curves.
    expect: Expect,
    /// The end of the axis of response times.
    axis_ms: f64,
    /// Whether the rate was set after that axis.
    rate_given: bool,
    /// Other values of keys, which the paper leaves open: name, key, value.
    settings: &'static [(&'static str, &'static str, &'static str)],
}

#[derive(PartialEq)]
enum Expect {
    /// The best size lies inside, and much space is left free.
    Writes,
    /// More caching is better, and most of it for reads.
    Reads,
}

/// A sixteenth of the requests of Financial1 (5,334,987, public statistics), at its rate.
const FINANCIAL_WORKLOAD: Workload = Workload {
    name: "Financial",
    scenario: "op-fcl/config1.toml",
    generator: "{ kind = \"server\", preset = \"financial-24\", locality = \"stack\", \
                whole_blocks = true, span = \"264MiB\", \
                interarrival_ms = { kind = \"exponential\", mean = 8.2 } }",
    requests: 333_436,
    expect: Expect::Writes,
    axis_ms: 1.2,
    rate_given: false,
    settings: &[
        (
            "addresses by a Zipf law of 0.9 over equal volumes",
            "workload.generator.locality",
            "\"independent\"",
        ),
        ("reads of parts of pages", "workload.generator.whole_blocks", "false"),
    ],
};

const SEARCH_WORKLOAD: Workload = Workload {
    name: "Search Engine",
    scenario: "op-fcl/config1.toml",
    generator: "{ kind = \"server\", preset = \"websearch\", span = \"2GiB\", \
                interarrival_ms = { kind = \"exponential\", mean = 4.5 } }",
    requests: 200_000,
    expect: Expect::Reads,
    axis_ms: 14.0,
    rate_given: true,
    settings: &[("a request each 20 ms", INTERARRIVAL, "{ kind = \"exponential\", mean = 20.0 }")],
};

/// Only the mixture of reads and writes is known of the mail server (assumed: 40 % reads of 8 KiB).
const EXCHANGE_WORKLOAD: Workload = Workload {
    name: "Exchange",
    scenario: "op-fcl/config2.toml",
    generator: "{ kind = \"server\", preset = \"custom\", sizes_sectors = [16], weights = [1.0], \
                read = 0.4, sequential = 0.05, volumes = 4, span = \"600MiB\", \
                interarrival_ms = { kind = \"exponential\", mean = 2.5 } }",
    requests: 200_000,
    expect: Expect::Writes,
    axis_ms: 14.0,
    rate_given: true,
    settings: &[("a request each 4 ms", INTERARRIVAL, "{ kind = \"exponential\", mean = 4.0 }")],
};

const SIZES: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];

const INTERARRIVAL: &str = "workload.generator.interarrival_ms";

fn job(workload: &Workload, scheme: &str, space: f64) -> Job {
    Job::paper(workload.scenario)
        .named(format!("{}, {scheme} {space}", workload.name))
        .set("workload.generator", workload.generator)
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
    let values = SIZES.iter().zip(runs).map(|(size, ran)| (*size, of(ran)));
    values.min_by(|a, b| a.1.total_cmp(&b.1)).expect("nine sizes")
}

const MEAN: fn(&JobOutput) -> f64 = JobOutput::mean_ms;

fn study(runner: &Runner, workload: &Workload) -> Result<Findings, ExperimentError> {
    let settings =
        workload.settings.iter().map(|(name, key, value)| Setting::key(name, key, value));
    let seeds = crate::seeds("op-fcl", &["O03", "O17", "O18", "O19"]);
    let ran = Variants::run(runner, &jobs(workload), seeds, &settings.collect::<Vec<_>>())?;
    let mut findings = Findings::default();
    let first = ran.first();
    let (best_fixed, best_divided) = (best(fixed(first), MEAN), best(divided(first), MEAN));
    let mean = full(first).mean_ms();
    let claim = Claim::of("op-fcl/op-fcl-best-fixed-partition-mean");
    let claim = claim
        .remark(&format!("{mean:.3} ms; best fixed {:.3} ms at {}", best_fixed.1, best_fixed.0));
    findings.row(ran.number(claim, |ran| full(ran).mean_ms() / best(fixed(ran), MEAN).1));
    let claim = Claim::of("op-fcl/op-fcl-best-division-fixed-size");
    let claim =
        claim.remark(&format!("best RW-FCL {:.3} ms at {}", best_divided.1, best_divided.0));
    findings.row(ran.number(claim, |ran| full(ran).mean_ms() / best(divided(ran), MEAN).1));
    let means = |runs: &[JobOutput]| {
        let means: Vec<String> = runs.iter().map(|ran| format!("{:.2}", ran.mean_ms())).collect();
        means.join(" ")
    };
    findings.row(Claim::of("op-fcl/rw-fcl-fp-fcl-best-size").with("name", workload.name).remark(
        &format!(
            "ms at 10 to 90 %: FP-FCL {}; RW-FCL {}",
            means(fixed(first)),
            means(divided(first))
        ),
    ));
    shape(&mut findings, workload, &ran);
    division(&mut findings, workload, &ran);
    let deviation = |ran: &JobOutput| ran.results.latency_ns.all.stddev.unwrap_or(f64::NAN) / 1e6;
    findings.row(
        Claim::of("op-fcl/standard-deviation")
            .with("name", workload.name)
            .remark(&format!("here {:.2} ms for OP-FCL", deviation(full(first)))),
    );
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
    let claim = Claim::of("op-fcl/optimal-point-of-lifetime-differs").with("name", workload.name);
    findings.row(ran.number(claim, |ran| {
        let fixed = fixed(ran);
        (best(fixed, MEAN).0 - best(fixed, erases).0).abs()
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

/// Rows and a plot of the division of flash by OP-FCL.
fn division(findings: &mut Findings, workload: &Workload, ran: &Variants) {
    let share = |ran: &[JobOutput], part: usize| {
        let pages = partition(full(ran));
        pages[part] / pages.iter().sum::<f64>()
    };
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
            findings.row(Claim::of("op-fcl/model-chooses-0-92").remark(&format!(
                "for the generated load the model chooses u = {}, of steps of a sixteenth up to \
                 the 0.935 that the device and the map leave",
                chosen.join(", ")
            )));
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
