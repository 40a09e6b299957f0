//! Figures 5.7 and 5.8: how often blocks are erased when a file is written.

use crate::published::settings;
use crate::{
    Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting, Variants,
};
use hybridsim_report::study::Curve;

/// One pass over a partition.
pub const ONE_PASS: Experiment = Experiment { id: "konanki/fig5.7", run: one_pass };

/// Fifteen passes over a small part of a medium.
pub const FIFTEEN_PASSES: Experiment = Experiment { id: "konanki/fig5.8", run: fifteen_passes };

/// Blocks of the partition of figure 5.7.
const PARTITION_BLOCKS: u64 = 800;

/// Numbers of blocks by number of erases.
type Wear = Vec<(u32, u64)>;

/// The FTLs compared, in the order of the jobs.
fn layers() -> Vec<Setting> {
    settings("konanki/wear-layers", &[])
}

fn jobs(layers: &[Setting]) -> Vec<Job> {
    let job =
        |layer: &Setting| Job::paper("konanki/wear.toml").named(&layer.name).in_full().at(layer);
    layers.iter().map(job).collect()
}

fn wear(ran: &JobOutput) -> Wear {
    ran.pictures.wear.values().flatten().copied().collect()
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

/// A curve with a point for each number of erases up to the largest.
fn curve(name: &str, wear: &Wear) -> Curve {
    let most = wear.last().map_or(0, |(erases, _)| *erases);
    let point = |erases| (f64::from(erases), fraction(wear, erases, erases));
    Curve::ours(name, (0..=most).map(point).collect())
}

fn one_pass(runner: &Runner) -> Result<Findings, ExperimentError> {
    let layers = layers();
    // Whole requests of a file of 85 MB.
    let job = |job: Job| {
        job.set("workload.generator.start", "\"32256B\"")
            .set("workload.generator.bs", "\"120KiB\"")
            .set("workload.generator.span", "\"87000KiB\"")
            .set("workload.generator.bytes", "\"87000KiB\"")
    };
    let jobs: Vec<Job> = jobs(&layers[..3]).into_iter().map(job).collect();
    let ran = Variants::run(runner, &jobs, 1, &settings("konanki/one-pass", &[]))?;
    let mut findings = Findings::default();
    for (at, layer) in layers.iter().enumerate().take(2) {
        let claim = Claim::of("konanki/fraction-blocks-never-erased").with("name", &layer.name);
        findings.row(ran.number(claim, |ran| fraction(&wear(&ran[at]), 0, 0)));
    }
    let most =
        |ran: &[JobOutput]| wear(&ran[2]).last().map_or(f64::NAN, |(erases, _)| f64::from(*erases));
    findings.row(ran.number(Claim::of("konanki/page-level-most-erases-block"), most));
    for (erases, share) in [(0, 0.15), (1, 0.79), (2, 0.06)] {
        let claim = Claim::of("konanki/page-level-fractions").with("erases", erases);
        findings.row(ran.number(claim.published(share), |ran| {
            let page = wear(&ran[2]);
            let outside = blocks(&page, 0, u32::MAX) - PARTITION_BLOCKS as f64;
            let unused = if erases == 0 { outside } else { 0.0 };
            (blocks(&page, erases, erases) - unused) / PARTITION_BLOCKS as f64
        }));
    }
    findings.plot("konanki/erases-of-one-pass", &[], curves(&layers, &ran));
    Ok(findings)
}

fn curves(layers: &[Setting], ran: &Variants) -> Vec<Curve> {
    layers.iter().zip(ran.first()).map(|(layer, ran)| curve(&layer.name, &wear(ran))).collect()
}

/// Erases from which a block counts as erased "several times".
const SEVERAL: u32 = 4;

fn mean_erases(wear: &Wear) -> f64 {
    let erases = wear.iter().map(|(erases, blocks)| f64::from(*erases) * *blocks as f64);
    erases.sum::<f64>() / blocks(wear, 0, u32::MAX)
}

fn fifteen_passes(runner: &Runner) -> Result<Findings, ExperimentError> {
    let layers = layers();
    let ran = Variants::run(runner, &jobs(&layers), 1, &settings("konanki/fifteen-passes", &[]))?;
    let mut findings = Findings::default();
    let mut row = |id: &str, layer: usize, from: u32, to: u32| {
        let claim = Claim::of(id).with("name", &layers[layer].name);
        findings.row(ran.number(claim, |ran| fraction(&wear(&ran[layer]), from, to)));
    };
    row("konanki/anand-most-blocks-once", 0, 1, 1);
    row("konanki/fmax-most-blocks-twice", 1, 2, 2);
    row("konanki/most-blocks-not-erased", 2, 0, 0);
    row("konanki/most-blocks-not-erased", 3, 0, 0);
    row("konanki/few-blocks-several-times", 2, SEVERAL, u32::MAX);
    row("konanki/few-blocks-several-times", 3, SEVERAL, u32::MAX);
    findings.row(ran.order(Claim::of("konanki/fmax-erases-more"), |ran| {
        vec![("FMAX", mean_erases(&wear(&ran[1]))), ("ANAND", mean_erases(&wear(&ran[0])))]
    }));
    findings.row(ran.number(Claim::of("konanki/log-block-like-page-level"), |ran| {
        mean_erases(&wear(&ran[3])) / mean_erases(&wear(&ran[2]))
    }));
    findings.plot("konanki/erases-of-fifteen-passes", &[], curves(&layers, &ran));
    Ok(findings)
}
