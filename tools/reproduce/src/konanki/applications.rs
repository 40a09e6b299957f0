//! Figures 5.9 to 5.13: five applications on a standard disk and on hybrids with two translation
//! layers.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

pub const FIREFOX: Experiment = Experiment { id: "konanki/fig5.9", run: firefox };
pub const DIA: Experiment = Experiment { id: "konanki/fig5.10", run: dia };
pub const MP3: Experiment = Experiment { id: "konanki/fig5.11", run: mp3 };
pub const UNTAR: Experiment = Experiment { id: "konanki/fig5.12", run: untar };
pub const POSTMARK: Experiment = Experiment { id: "konanki/fig5.13", run: postmark };

/// What is not in the tables; all assumed but where `burst` says otherwise.
struct Application {
    mix: &'static str,
    requests: u32,
    /// The range that random writes go to.
    range: &'static str,
    /// Requests in a burst on average.
    burst: f64,
}

struct Systems {
    standard: JobOutput,
    anand: JobOutput,
    fmax: JobOutput,
}

impl Systems {
    fn within(&self, ms: f64) -> [(&'static str, f64); 3] {
        self.all().map(|(name, ran)| (name, ran.share_within_ms("all", ms)))
    }

    fn means(&self) -> [(&'static str, f64); 3] {
        self.all().map(|(name, ran)| (name, ran.mean_ms()))
    }

    fn all(&self) -> [(&'static str, &JobOutput); 3] {
        [("standard", &self.standard), ("ANAND", &self.anand), ("FMAX", &self.fmax)]
    }

    fn longest_ms(ran: &JobOutput) -> f64 {
        ran.results.latency_ns.all.max.map_or(f64::NAN, |ns| ns as f64 / 1e6)
    }

    fn plot(&self, findings: &mut Findings) {
        findings.plot(Plot {
            title: "Response times".to_owned(),
            caption: "Share of requests that took at most so long.".to_owned(),
            x: Axis::logarithmic("Response time", "ns"),
            y: Axis::linear("Requests", "share"),
            curves: self
                .all()
                .map(|(name, ran)| Curve::ours(name, ran.distribution("all")).stepped())
                .to_vec(),
        });
    }
}

fn run(runner: &Runner, application: &Application) -> Result<Systems, ExperimentError> {
    let job = |file: &str, name: &str| {
        let generator = "workload.generator";
        Job::paper(file)
            .named(format!("{}, {name}", application.mix))
            .set(&format!("{generator}.mix"), format!("\"{}\"", application.mix))
            .set(&format!("{generator}.requests"), application.requests)
            .set(&format!("{generator}.span"), format!("\"{}\"", application.range))
            .set(&format!("{generator}.interarrival_ms.probability"), 1.0 / application.burst)
    };
    let hybrid = |ftl: &str| {
        let ftl_value = format!("\"{ftl}\"");
        job("konanki/analysis-hybrid.toml", ftl).set("component.flash.ftl", ftl_value)
    };
    let jobs = [job("konanki/analysis-disk.toml", "disk"), hybrid("anand"), hybrid("fmax")];
    let mut ran = runner.run(&jobs)?.into_iter();
    let mut next = || ran.next().expect("one for each job");
    Ok(Systems { standard: next(), anand: next(), fmax: next() })
}

fn firefox(runner: &Runner) -> Result<Findings, ExperimentError> {
    let application =
        Application { mix: "firefox-analysis", requests: 5000, range: "64MiB", burst: 8.0 };
    let systems = run(runner, &application)?;
    let [standard, anand, fmax] = systems.within(10.0);
    let mut findings = Findings::default();
    findings.row(Claim::of("konanki/standard-disk-completes-30-within-10").ours(standard.1));
    findings.row(Claim::of("konanki/hybrid-anand-completes-50-within-10").ours(anand.1));
    findings.row(Claim::of("konanki/more-standard-disk").ranked(&[anand, standard]));
    findings.row(Claim::of("konanki/folds-after-other-make-few-very").ranked(&[
        ("ANAND", Systems::longest_ms(&systems.anand)),
        ("standard", Systems::longest_ms(&systems.standard)),
    ]));
    findings
        .row(Claim::of("konanki/hybrid-fmax-does-better-standard-disk").ranked(&[fmax, standard]));
    systems.plot(&mut findings);
    Ok(findings)
}

fn dia(runner: &Runner) -> Result<Findings, ExperimentError> {
    let application =
        Application { mix: "dia-analysis", requests: 1000, range: "16MiB", burst: 1.6 };
    let systems = run(runner, &application)?;
    let [standard, anand, fmax] = systems.within(10.0);
    let mut findings = Findings::default();
    findings.row(Claim::of("konanki/standard-disk-completes-91-within-10").ours(standard.1));
    findings.row(Claim::of("konanki/hybrid-anand-completes-75-within-10").ours(anand.1));
    findings.row(Claim::of("konanki/less-standard-disk").ranked(&[anand, standard]));
    findings.row(
        Claim::of("konanki/hybrid-fmax-does-slightly-better-standard").ranked(&[fmax, standard]),
    );
    systems.plot(&mut findings);
    Ok(findings)
}

fn mp3(runner: &Runner) -> Result<Findings, ExperimentError> {
    // 209 MB of files (section 5.3) make 600 requests of this mix.
    let application = Application { mix: "mp3-analysis", requests: 600, range: "1GiB", burst: 8.0 };
    let systems = run(runner, &application)?;
    let mut findings = Findings::default();
    let flash = systems.anand.results.components.get("hybrid");
    let bypassed = flash.and_then(|component| component.cache.as_ref());
    let bypassed = bypassed.map_or(f64::NAN, |cache| cache.bypasses as f64 / 600.0);
    findings.row(Claim::of("konanki/share-writes-exceed-threshold-go-disk").ours(bypassed));
    let [standard, anand, _] = systems.within(5.0);
    findings
        .row(Claim::of("konanki/hybrid-anand-completes-more-within-5").ranked(&[anand, standard]));
    findings.row(
        Claim::of("konanki/but-slower-all-standard-disk-mean").ranked(&[
            ("ANAND", systems.anand.mean_ms()),
            ("standard", systems.standard.mean_ms()),
        ]),
    );
    findings.row(
        Claim::of("konanki/fmax-does-slightly-better-anand-mean")
            .ranked(&[systems.means()[1], systems.means()[2]]),
    );
    systems.plot(&mut findings);
    Ok(findings)
}

/// Times the standard disk's mean that an axis both fit on can still show (assumed).
const TIMES_MAX: f64 = 100.0;

fn untar(runner: &Runner) -> Result<Findings, ExperimentError> {
    let application =
        Application { mix: "untar-analysis", requests: 5000, range: "2GiB", burst: 8.0 };
    let systems = run(runner, &application)?;
    let mut findings = Findings::default();
    let cleanings = systems.anand.results.components.get("hybrid");
    let cleanings = cleanings.and_then(|hybrid| hybrid.cache.as_ref());
    findings.row(
        Claim::of("konanki/writes-flood-flash-flush-holds-up")
            .ours(cleanings.map_or(f64::NAN, |cache| cache.cleanups as f64)),
    );
    findings.row(
        Claim::of("konanki/so-part-takes-longer-standard-disk")
            .between("a significant fraction, on an axis of ms", 1.0, TIMES_MAX)
            .ours(systems.anand.mean_ms() / systems.standard.mean_ms()),
    );
    let at =
        |ran: &JobOutput| ran.results.latency_ns.all.p50.map_or(f64::NAN, |ns| ns as f64 / 1e6);
    findings.row(
        Claim::of("konanki/half-requests-complete-fast-median-anand")
            .ours(at(&systems.anand) / at(&systems.standard)),
    );
    findings.row(
        Claim::of("konanki/fmax-does-worse-anand-mean-ms")
            .ranked(&[systems.means()[2], systems.means()[1]]),
    );
    systems.plot(&mut findings);
    Ok(findings)
}

fn postmark(runner: &Runner) -> Result<Findings, ExperimentError> {
    let application =
        Application { mix: "postmark-analysis", requests: 10_000, range: "128MiB", burst: 8.0 };
    let systems = run(runner, &application)?;
    let mut findings = Findings::default();
    for ms in [5.0, 10.0, 20.0, 50.0] {
        let [standard, anand, _] = systems.within(ms);
        findings.row(
            Claim::of("konanki/hybrid-serves-more-requests-within-ms")
                .with("ms", ms)
                .ranked(&[anand, standard]),
        );
    }
    let [standard, anand, fmax] = systems.means();
    findings.row(Claim::of("konanki/much-faster-all-mean-ms").ranked(&[standard, anand]));
    findings.row(Claim::of("konanki/fmax-improves-anand-further-mean-ms").ranked(&[anand, fmax]));
    systems.plot(&mut findings);
    Ok(findings)
}
