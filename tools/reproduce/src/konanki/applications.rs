//! Figures 5.9 to 5.13: five applications on a standard disk and on hybrids with two translation
//! layers.

use super::seeds;
use crate::{
    Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting, Variants,
};
use hybridsim_report::study::Curve;

pub const FIREFOX: Experiment = Experiment { id: "konanki/fig5.9", run: firefox };
pub const DIA: Experiment = Experiment { id: "konanki/fig5.10", run: dia };
pub const MP3: Experiment = Experiment { id: "konanki/fig5.11", run: mp3 };
pub const UNTAR: Experiment = Experiment { id: "konanki/fig5.12", run: untar };
pub const POSTMARK: Experiment = Experiment { id: "konanki/fig5.13", run: postmark };

/// An application's workload beyond the tables; all assumed but where `burst` says otherwise.
struct Application {
    mix: &'static str,
    requests: u32,
    /// The range that random writes go to, MiB.
    range_mib: u32,
    /// Requests in a burst on average.
    burst: f64,
    /// Whether the writes are more than the flash holds.
    fills_flash: bool,
    /// Whether a hybrid with a page map is run as well.
    page_map: bool,
    /// Points of curves from the paper's text on its figure, drawn beside ours.
    published: &'static [(&'static str, &'static [(f64, f64)])],
}

/// The systems compared, in the order of the jobs; the page map, which never folds, is not in the
/// paper.
const STANDARD: usize = 0;
const ANAND: usize = 1;
const FMAX: usize = 2;
const PAGE_MAP: usize = 3;
const NAMES: [&str; 4] = ["standard", "ANAND", "FMAX", "page map"];

type Named = Vec<(&'static str, f64)>;

/// `value` of the systems `which`.
fn of(which: &[usize], value: impl Fn(&JobOutput) -> f64) -> impl Fn(&[JobOutput]) -> Named {
    move |ran: &[JobOutput]| which.iter().map(|at| (NAMES[*at], value(&ran[*at]))).collect()
}

fn within(ms: f64) -> impl Fn(&JobOutput) -> f64 {
    move |ran: &JobOutput| ran.share_within_ms("all", ms)
}

fn p99_ms(ran: &JobOutput) -> f64 {
    ran.results.latency_ns.all.p99.map_or(f64::NAN, |ns| ns as f64 / 1e6)
}

fn median_ms(ran: &JobOutput) -> f64 {
    ran.results.latency_ns.all.p50.map_or(f64::NAN, |ns| ns as f64 / 1e6)
}

const GENERATOR: &str = "workload.generator";

fn jobs(application: &Application) -> Vec<Job> {
    let job = |file: &str, name: &str| {
        Job::paper(file)
            .named(format!("{}, {name}", application.mix))
            .set(&format!("{GENERATOR}.mix"), format!("\"{}\"", application.mix))
            .set(&format!("{GENERATOR}.requests"), application.requests)
            .set(&format!("{GENERATOR}.span"), format!("\"{}MiB\"", application.range_mib))
            .set(&format!("{GENERATOR}.interarrival_ms.probability"), 1.0 / application.burst)
            .with_latencies()
    };
    let hybrid = |ftl: &str| {
        let ftl_value = format!("\"{ftl}\"");
        job("konanki/analysis-hybrid.toml", ftl).set("component.flash.ftl", ftl_value)
    };
    let disk = job("konanki/analysis-disk.toml", "disk");
    let mut jobs = vec![disk, hybrid("anand"), hybrid("fmax")];
    if application.page_map {
        jobs.push(hybrid("page"));
    }
    jobs
}

/// A setting of the hybrids alone.
fn hybrid(name: &str, make: impl Fn(Job) -> Job + 'static) -> Setting {
    Setting::new(name, move |at, job| if at == STANDARD { job } else { make(job) })
}

/// A setting of the hybrid with ANAND alone.
fn anand(name: &str, ftl: &'static str) -> Setting {
    Setting::new(name, move |at, job| match at {
        ANAND => job.set("component.flash.ftl", ftl),
        _ => job,
    })
}

/// Times of the flash relative to the scenario's.
fn flash_times(name: &str, factor: f64) -> Setting {
    hybrid(name, move |job| {
        let time = |us: f64| format!("\"{:.1}us\"", us * factor);
        job.set("component.flash.program_time", time(PROGRAM_US))
            .set("component.flash.read_time", time(READ_US))
    })
}

/// The times of `analysis-hybrid.toml`.
const PROGRAM_US: f64 = 84.0;
const READ_US: f64 = 78.0;

/// Settings that the paper leaves open.
fn settings(application: &Application) -> Vec<Setting> {
    let bursts = |name: &str, factor: f64| {
        let probability = (1.0 / (application.burst * factor)).min(1.0);
        Setting::key(name, "workload.generator.interarrival_ms.probability", probability)
    };
    let range = application.range_mib * 4;
    vec![
        Setting::key("no locality", "workload.generator.hot", 0.0),
        Setting::new("80 % of short writes to 16 places", |_, job| {
            job.set("workload.generator.hot", 0.8).set("workload.generator.hot_places", 16)
        }),
        bursts("bursts half as long", 0.5),
        bursts("bursts twice as long", 2.0),
        Setting::key(
            "a range four times as wide",
            "workload.generator.span",
            format!("\"{range}MiB\""),
        ),
        flash_times("flash half as fast", 2.0),
        flash_times("flash twice as fast", 0.5),
        flash_times("flash of 9.8 MB/s, as a SanDisk Ultra II", 2.5),
        hybrid("flash command overhead 500 us", |job| {
            job.set("component.flash.controller.write_overhead", "\"500us\"")
        }),
        hybrid("used flash, all pages written before", |job| {
            job.set("component.flash.precondition", "\"fill-random\"")
        }),
        anand("chains of 2", "{ kind = \"anand\", chain_max = 2 }"),
        anand("chains of 8", "{ kind = \"anand\", chain_max = 8 }"),
        Setting::key("the disk's write cache on", "component.disk.write_cache", true),
        Setting::key("the run ends with the last arrival", "host.end", "\"last-arrival\""),
    ]
}

/// Settings that matter once flash is full.
fn settings_when_full(application: &Application) -> Vec<Setting> {
    let requests =
        |name: &str, count: u32| Setting::key(name, "workload.generator.requests", count);
    vec![
        requests("1,800 requests, a tree of 300 MB", 1800),
        requests("2,300 requests, 390 MB", 2300),
        requests("as many requests again", application.requests * 2),
        hybrid("cleaned pages trimmed", |job| job.set("component.hybrid.trim_cleaned", true)),
        hybrid("clean-up with a tenth of flash free", |job| {
            let cleanup = "{ kind = \"on-demand-complete\", free_min = 0.1 }";
            job.set("component.hybrid.cleanup", cleanup)
        }),
        anand(
            "the longest chain folded when no unit is free",
            "{ kind = \"anand\", no_free_unit = \"longest\" }",
        ),
    ]
}

fn run(runner: &Runner, application: &Application, row: &str) -> Result<Variants, ExperimentError> {
    let mut settings = settings(application);
    if application.fills_flash {
        settings.extend(settings_when_full(application));
    }
    Variants::run(runner, &jobs(application), seeds(row), &settings)
}

fn plot(application: &Application, systems: &Variants, findings: &mut Findings) {
    let ours = systems.first().iter().zip(NAMES).take(PAGE_MAP);
    let ours = ours.map(|(ran, name)| Curve::ours(name, ran.distribution("all")).stepped());
    let published = application.published.iter().map(|(name, points)| {
        let points = points.iter().map(|(ms, share)| (ms * 1e6, *share)).collect();
        Curve::published(&format!("{name}, published"), points)
    });
    findings.plot(
        "konanki/response-times-of-systems",
        &[],
        ours.chain(published).collect::<Vec<_>>(),
    );
}

fn firefox(runner: &Runner) -> Result<Findings, ExperimentError> {
    let application = Application {
        mix: "firefox-analysis",
        requests: 5000,
        range_mib: 64,
        burst: 8.0,
        fills_flash: false,
        page_map: false,
        published: &[("standard", &[(10.0, 0.30)]), ("ANAND", &[(10.0, 0.50)])],
    };
    let systems = run(runner, &application, "K41")?;
    let mut findings = Findings::default();
    let mut number = |id: &str, system: usize| {
        let value = |ran: &[JobOutput]| within(10.0)(&ran[system]);
        findings.row(systems.number(Claim::of(id), value));
    };
    number("konanki/standard-disk-completes-30-within-10", STANDARD);
    number("konanki/hybrid-anand-completes-50-within-10", ANAND);
    let mut order = |id: &str, values: &dyn Fn(&[JobOutput]) -> Named| {
        findings.row(systems.order(Claim::of(id), values));
    };
    order("konanki/more-standard-disk", &of(&[ANAND, STANDARD], within(10.0)));
    order(
        "konanki/folds-after-other-make-few-very",
        &of(&[ANAND, STANDARD], JobOutput::longest_ms),
    );
    order("konanki/hybrid-fmax-does-better-standard-disk", &of(&[FMAX, STANDARD], within(10.0)));
    order("konanki/fmax-caps-the-longest", &of(&[ANAND, FMAX], JobOutput::longest_ms));
    plot(&application, &systems, &mut findings);
    Ok(findings)
}

fn dia(runner: &Runner) -> Result<Findings, ExperimentError> {
    let application = Application {
        mix: "dia-analysis",
        requests: 1000,
        range_mib: 16,
        burst: 1.6,
        fills_flash: false,
        page_map: true,
        published: &[("standard", &[(10.0, 0.91)]), ("ANAND", &[(10.0, 0.75)])],
    };
    let systems = run(runner, &application, "K42")?;
    let mut findings = Findings::default();
    let mut number = |id: &str, system: usize| {
        let value = |ran: &[JobOutput]| within(10.0)(&ran[system]);
        findings.row(systems.number(Claim::of(id), value));
    };
    number("konanki/standard-disk-completes-91-within-10", STANDARD);
    number("konanki/hybrid-anand-completes-75-within-10", ANAND);
    let mut order = |id: &str, values: &dyn Fn(&[JobOutput]) -> Named| {
        findings.row(systems.order(Claim::of(id), values));
    };
    order("konanki/less-standard-disk", &of(&[ANAND, STANDARD], within(10.0)));
    order("konanki/folds-make-the-tail", &of(&[ANAND, PAGE_MAP], p99_ms));
    order(
        "konanki/hybrid-fmax-does-slightly-better-standard",
        &of(&[FMAX, STANDARD], within(10.0)),
    );
    order("konanki/fmax-circumvents-the-tail", &of(&[ANAND, FMAX], p99_ms));
    plot(&application, &systems, &mut findings);
    Ok(findings)
}

/// Requests that count as large and lie below the threshold: the upper half of the mix's sizes.
const LARGE_SECTORS: u32 = 256;

fn mp3(runner: &Runner) -> Result<Findings, ExperimentError> {
    // 209 MB of files (section 5.3) make 600 requests of this mix.
    let application = Application {
        mix: "mp3-analysis",
        requests: 600,
        range_mib: 1024,
        burst: 8.0,
        fills_flash: false,
        page_map: false,
        published: &[],
    };
    let systems = run(runner, &application, "K43")?;
    let mut findings = Findings::default();
    let bypassed = |ran: &[JobOutput]| {
        let cache = ran[ANAND].results.components.get("hybrid");
        let cache = cache.and_then(|component| component.cache.as_ref());
        let count = ran[ANAND].results.latency_ns.all.count as f64;
        cache.map_or(f64::NAN, |cache| cache.bypasses as f64 / count)
    };
    findings
        .row(systems.number(Claim::of("konanki/share-writes-exceed-threshold-go-disk"), bypassed));
    let mut order = |id: &str, values: &dyn Fn(&[JobOutput]) -> Named| {
        findings.row(systems.order(Claim::of(id), values));
    };
    order("konanki/hybrid-anand-completes-more-within-5", &of(&[ANAND, STANDARD], within(5.0)));
    let large = |ran: &JobOutput| ran.mean_ms_from(LARGE_SECTORS);
    order("konanki/large-requests-quicker-on-the-disk", &of(&[ANAND, STANDARD], large));
    order("konanki/but-slower-all-standard-disk-mean", &of(&[ANAND, STANDARD], JobOutput::mean_ms));
    order("konanki/fmax-does-slightly-better-anand-mean", &of(&[ANAND, FMAX], JobOutput::mean_ms));
    order("konanki/fmax-still-outperformed", &of(&[FMAX, STANDARD], JobOutput::mean_ms));
    plot(&application, &systems, &mut findings);
    Ok(findings)
}

/// Times the standard disk's mean that an axis both fit on can still show (assumed).
const TIMES_MAX: f64 = 100.0;

fn untar(runner: &Runner) -> Result<Findings, ExperimentError> {
    // So many that the 256 MB of flash fill up, as the paper says they do.
    let application = Application {
        mix: "untar-analysis",
        requests: 3000,
        range_mib: 2048,
        burst: 8.0,
        fills_flash: true,
        page_map: false,
        published: &[],
    };
    let systems = run(runner, &application, "K44")?;
    let mut findings = Findings::default();
    let cleanups = |ran: &[JobOutput]| {
        let hybrid = ran[ANAND].results.components.get("hybrid");
        let cache = hybrid.and_then(|hybrid| hybrid.cache.as_ref());
        cache.map_or(f64::NAN, |cache| cache.cleanups as f64)
    };
    findings.row(systems.number(Claim::of("konanki/writes-flood-flash-flush-holds-up"), cleanups));
    let claim = Claim::of("konanki/so-part-takes-longer-standard-disk").between(
        "a significant fraction, on an axis of ms",
        1.0,
        TIMES_MAX,
    );
    findings.row(systems.number(claim, |ran| ran[ANAND].mean_ms() / ran[STANDARD].mean_ms()));
    let claim = Claim::of("konanki/half-requests-complete-fast-median-anand");
    findings.row(systems.number(claim, |ran| median_ms(&ran[ANAND]) / median_ms(&ran[STANDARD])));
    findings.row(systems.order(
        Claim::of("konanki/fmax-does-worse-anand-mean-ms"),
        of(&[FMAX, ANAND], JobOutput::mean_ms),
    ));
    plot(&application, &systems, &mut findings);
    Ok(findings)
}

fn postmark(runner: &Runner) -> Result<Findings, ExperimentError> {
    let application = Application {
        mix: "postmark-analysis",
        requests: 10_000,
        range_mib: 128,
        burst: 8.0,
        fills_flash: false,
        page_map: false,
        published: &[],
    };
    let systems = run(runner, &application, "K45")?;
    let mut findings = Findings::default();
    for ms in [5.0, 10.0, 20.0, 50.0] {
        let claim = Claim::of("konanki/hybrid-serves-more-requests-within-ms").with("ms", ms);
        findings.row(systems.order(claim, of(&[ANAND, STANDARD], within(ms))));
        let claim = Claim::of("konanki/fmax-serves-more-within-ms").with("ms", ms);
        findings.row(systems.order(claim, of(&[FMAX, ANAND], within(ms))));
    }
    // "Much": at least a quarter less.
    let much = |ran: &[JobOutput]| ran[ANAND].mean_ms() / ran[STANDARD].mean_ms();
    findings.row(systems.number(Claim::of("konanki/much-faster-all-mean-ms"), much));
    findings.row(systems.order(
        Claim::of("konanki/fmax-improves-anand-further-mean-ms"),
        of(&[ANAND, FMAX], JobOutput::mean_ms),
    ));
    plot(&application, &systems, &mut findings);
    Ok(findings)
}
