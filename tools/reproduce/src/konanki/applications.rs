//! Figures 5.9 to 5.13: five applications on a standard disk and on hybrids with two translation
//! layers.

use super::seeds;
use crate::published::{parameters, settings};
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Variants};
use hybridsim_observe::results::Cache;
use hybridsim_report::study::Curve;
use serde::Deserialize;

pub const FIREFOX: Experiment =
    Experiment { id: "konanki/fig5.9", run: |runner| compare(runner, "konanki/fig5.9") };
pub const DIA: Experiment =
    Experiment { id: "konanki/fig5.10", run: |runner| compare(runner, "konanki/fig5.10") };
pub const MP3: Experiment =
    Experiment { id: "konanki/fig5.11", run: |runner| compare(runner, "konanki/fig5.11") };
pub const UNTAR: Experiment =
    Experiment { id: "konanki/fig5.12", run: |runner| compare(runner, "konanki/fig5.12") };
pub const POSTMARK: Experiment =
    Experiment { id: "konanki/fig5.13", run: |runner| compare(runner, "konanki/fig5.13") };

/// An application's workload beyond the tables; all assumed but where `burst` says otherwise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Application {
    /// The row of its claims that says at how many seeds it is run.
    row: String,
    mix: String,
    requests: u32,
    /// The range that random writes go to, MiB.
    range_mib: u32,
    /// Requests in a burst on average.
    burst: f64,
    /// The share of short writes that returns to few places, and their number.
    hot: f64,
    hot_places: u32,
    /// Whether the writes are more than the flash holds.
    #[serde(default)]
    fills_flash: bool,
    /// Whether a hybrid with a page map is run as well.
    #[serde(default)]
    page_map: bool,
    /// Points of curves from the paper's text on its figure, drawn beside ours.
    #[serde(default)]
    published: Vec<(String, Vec<(f64, f64)>)>,
    rows: Vec<ComparedFigure>,
}

/// A claim about a figure of one system, about the ratio of two, or about the order of several.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComparedFigure {
    id: String,
    figure: Figure,
    /// The time of [`Figure::Within`] and [`Figure::SmallWithin`].
    #[serde(default)]
    ms: f64,
    of: Option<System>,
    over: Option<System>,
    #[serde(default)]
    order: Vec<System>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Figure {
    /// The share of requests within a time.
    Within,
    /// As [`Figure::Within`], of the requests below 128 KiB.
    SmallWithin,
    Mean,
    Median,
    P99,
    Longest,
    /// The mean of requests from 128 KiB on, which are below the threshold: the upper half of the
    /// mix's sizes.
    MeanOfLarge,
    /// The share of requests that bypass the flash.
    Bypassed,
    Cleanups,
}

/// The systems compared, in the order of the jobs; the page map, which never folds, is not in the
/// paper.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum System {
    Standard,
    Anand,
    Fmax,
    PageMap,
}

const NAMES: [&str; 4] = ["standard", "ANAND", "FMAX", "page map"];

/// Units of ANAND's chains: 3 and 4 both give the wear of figure 5.8.
const CHAIN_MAX: u32 = 3;

/// Sectors of the least request that counts as large.
const LARGE_SECTORS: u32 = 256;

impl ComparedFigure {
    fn value(&self, ran: &[JobOutput], system: System) -> f64 {
        let ran = &ran[system as usize];
        let cache = |of: fn(&Cache) -> u64| {
            let hybrid = ran.results.components.get("hybrid");
            let cache = hybrid.and_then(|hybrid| hybrid.cache.as_ref());
            cache.map_or(f64::NAN, |cache| of(cache) as f64)
        };
        match self.figure {
            Figure::Within => ran.share_within_ms("all", self.ms),
            Figure::SmallWithin => ran.share_within_ms_below(LARGE_SECTORS, self.ms),
            Figure::Mean => ran.mean_ms(),
            Figure::Median => ran.median_ms(),
            Figure::P99 => ran.p99_ms(),
            Figure::Longest => ran.longest_ms(),
            Figure::MeanOfLarge => ran.mean_ms_from(LARGE_SECTORS),
            Figure::Bypassed => {
                cache(|cache| cache.bypasses) / ran.results.latency_ns.all.count as f64
            }
            Figure::Cleanups => cache(|cache| cache.cleanups),
        }
    }

    fn claim(&self, systems: &Variants) -> Claim {
        let claim = Claim::of(&self.id).with("ms", self.ms);
        match (self.of, self.over) {
            (Some(of), None) => systems.number(claim, |ran| self.value(ran, of)),
            (Some(of), Some(over)) => {
                systems.number(claim, |ran| self.value(ran, of) / self.value(ran, over))
            }
            _ => systems.order(claim, |ran| {
                let named = |system: &System| (NAMES[*system as usize], self.value(ran, *system));
                self.order.iter().map(named).collect()
            }),
        }
    }
}

fn jobs(application: &Application) -> Vec<Job> {
    let Application { mix, requests, range_mib, burst, hot, hot_places, .. } = application;
    let job = |file: &str, name: &str| {
        Job::paper(file)
            .named(format!("{mix}, {name}"))
            .set("workload.generator.mix", format!("\"{mix}\""))
            .set("workload.generator.requests", requests)
            .set("workload.generator.span", format!("\"{range_mib}MiB\""))
            .set("workload.generator.interarrival_ms.probability", 1.0 / burst)
            .set("workload.generator.hot", hot)
            .set("workload.generator.hot_places", hot_places)
            .with_latencies()
    };
    let hybrid = |ftl: &str| {
        let ftl_value = match ftl {
            "anand" => format!("{{ kind = \"anand\", chain_max = {CHAIN_MAX} }}"),
            _ => format!("\"{ftl}\""),
        };
        job("konanki/analysis-hybrid.toml", ftl).set("component.flash.ftl", ftl_value)
    };
    let disk = job("konanki/analysis-disk.toml", "disk");
    let mut jobs = vec![disk, hybrid("anand"), hybrid("fmax")];
    if application.page_map {
        jobs.push(hybrid("page"));
    }
    jobs
}

fn compare(runner: &Runner, id: &str) -> Result<Findings, ExperimentError> {
    let application: Application = parameters(id);
    let probability = |factor: f64| (1.0 / (application.burst * factor)).min(1.0);
    let mut open = settings(
        "konanki/applications",
        &[
            ("half", &probability(0.5)),
            ("twice", &probability(2.0)),
            ("range", &(application.range_mib * 4)),
        ],
    );
    if application.fills_flash {
        let requests = application.requests * 2;
        open.extend(settings("konanki/applications-that-fill-flash", &[("requests", &requests)]));
    }
    let systems = Variants::run(runner, &jobs(&application), seeds(&application.row), &open)?;
    let mut findings = Findings::default();
    for row in &application.rows {
        findings.row(row.claim(&systems));
    }
    let ours = systems.first().iter().zip(NAMES).take(System::PageMap as usize);
    let ours = ours.map(|(ran, name)| Curve::ours(name, ran.distribution("all")).stepped());
    let published = application.published.iter().map(|(name, points)| {
        let points = points.iter().map(|(ms, share)| (ms * 1e6, *share)).collect();
        Curve::published(&format!("{name}, published"), points)
    });
    let curves: Vec<Curve> = ours.chain(published).collect();
    findings.plot("konanki/response-times-of-systems", &[], curves);
    Ok(findings)
}
