//! Figures 5.7 and 5.8: how often blocks are erased when a file is written.

use crate::{Claim, Experiment, ExperimentError, Findings, Job, Runner};
use hybridsim_report::study::{Axis, Curve, Plot};

/// One pass over a partition.
pub const ONE_PASS: Experiment = Experiment { id: "konanki/fig5.7", run: one_pass };

/// Fifteen passes over a small part of a medium.
pub const FIFTEEN_PASSES: Experiment = Experiment { id: "konanki/fig5.8", run: fifteen_passes };

/// The FTLs compared, as the figures name them.
const LAYERS: [(&str, &str); 4] =
    [("anand", "ANAND"), ("fmax", "FMAX"), ("in-place", "page level"), ("log-block", "log block")];

/// Blocks of the partition of figure 5.7.
const PARTITION_BLOCKS: u64 = 800;

/// By number of erases: how many blocks.
type Wear = Vec<(u32, u64)>;

fn wear(
    runner: &Runner,
    components: &[(&str, &str)],
    sets: &[(&str, &str)],
) -> Result<Vec<Wear>, ExperimentError> {
    let job = |(kind, name): &(&str, &str)| {
        let job = Job::paper("konanki/wear.toml").named(*name);
        let job = job.set("component.stick.ftl", format!("\"{kind}\""));
        sets.iter().fold(job, |job, (key, value)| job.set(key, value))
    };
    let jobs: Vec<Job> = components.iter().map(job).collect();
    let ran = runner.run(&jobs)?;
    Ok(ran.iter().map(|ran| ran.pictures.wear.values().flatten().copied().collect()).collect())
}

/// Blocks erased at least `from` and at most `to` times.
fn blocks(wear: &Wear, from: u32, to: u32) -> f64 {
    let within = wear.iter().filter(|(erases, _)| (from..=to).contains(erases));
    within.map(|(_, blocks)| *blocks as f64).sum()
}

/// The fraction of all blocks erased at least `from` and at most `to` times.
fn fraction(wear: &Wear, from: u32, to: u32) -> f64 {
    blocks(wear, from, to) / blocks(wear, 0, u32::MAX)
}

fn plot(title: &str, curves: Vec<Curve>) -> Plot {
    Plot {
        title: title.to_owned(),
        caption: "The fraction of all blocks erased so often.".to_owned(),
        x: Axis::linear("erases", ""),
        y: Axis::linear("blocks", ""),
        curves,
    }
}

/// A curve with a point for each number of erases up to the largest.
fn curve(name: &str, wear: &Wear) -> Curve {
    let most = wear.last().map_or(0, |(erases, _)| *erases);
    let point = |erases| (f64::from(erases), fraction(wear, erases, erases));
    Curve::ours(name, (0..=most).map(point).collect())
}

fn one_pass(runner: &Runner) -> Result<Findings, ExperimentError> {
    let sets = [
        ("workload.generator.start", "\"32256B\""),
        ("workload.generator.bs", "\"120KiB\""),
        // Whole requests.
        ("workload.generator.span", "\"87000KiB\""),
        ("workload.generator.bytes", "\"87000KiB\""),
    ];
    let found = wear(runner, &LAYERS[..3], &sets)?;
    let mut findings = Findings::default();
    for ((_, name), wear) in LAYERS.iter().zip(&found[..2]) {
        let claim = Claim::of("konanki/fraction-blocks-never-erased").with("name", name);
        findings.row(claim.exactly(1.0).ours(fraction(wear, 0, 0)));
    }
    let page = &found[2];
    let most = page.last().map_or(f64::NAN, |(erases, _)| f64::from(*erases));
    findings.row(Claim::of("konanki/page-level-most-erases-block").ours(most));
    let outside = blocks(page, 0, u32::MAX) - PARTITION_BLOCKS as f64;
    for (erases, share) in [(0, 0.15), (1, 0.79), (2, 0.06)] {
        let unused = if erases == 0 { outside } else { 0.0 };
        let ours = (blocks(page, erases, erases) - unused) / PARTITION_BLOCKS as f64;
        let text = format!("page level: fraction of the partition's blocks erased {erases} times");
        let claim = Claim::new("K39", text).within(share, 0.01).ours(ours).given();
        findings.row(claim.remark(
            "the text gives no fractions; these follow from its rule, an erase for each request \
             that begins in a used page of the block",
        ));
    }
    let curves = LAYERS.iter().zip(&found).map(|((_, name), wear)| curve(name, wear)).collect();
    findings.plot(plot("One pass over a partition", curves));
    Ok(findings)
}

fn fifteen_passes(runner: &Runner) -> Result<Findings, ExperimentError> {
    let found = wear(runner, &LAYERS, &[])?;
    let [anand, fmax, page, log] = &found[..] else {
        return Err(ExperimentError::Failed("a run is missing".to_owned()));
    };
    let mut findings = Findings::default();
    let mut row = |text: &str, words: &str, low, high, ours| {
        findings.row(Claim::new("K40", text).between(words, low, high).ours(ours));
    };
    let most = "most blocks";
    row("ANAND: blocks erased once", most, 0.95, 1.0, fraction(anand, 1, 1));
    row("FMAX: blocks erased twice", most, 0.7, 0.9, fraction(fmax, 2, 2));
    row("FMAX: blocks erased two or three times", most, 0.999, 1.0, fraction(fmax, 2, 3));
    let few = "few blocks, several times";
    row("page level: blocks erased 14 times", few, 0.07, 0.09, fraction(page, 14, 14));
    row("log block: blocks erased 13 or 14 times", few, 0.08, 0.10, fraction(log, 13, 14));
    let not = "most blocks are not erased";
    row("page level: blocks never erased", not, 0.9, 1.0, fraction(page, 0, 0));
    row("log block: blocks never erased", not, 0.9, 1.0, fraction(log, 0, 0));
    let curves = LAYERS.iter().zip(&found).map(|((_, name), wear)| curve(name, wear)).collect();
    findings.plot(plot("Fifteen passes over part of the medium", curves));
    Ok(findings)
}
