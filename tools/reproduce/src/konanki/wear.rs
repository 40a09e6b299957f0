//! Figures 5.7 and 5.8: how often blocks are erased when a file is written.

use crate::{
    Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner, Setting, Variants,
};
use hybridsim_report::study::Curve;

/// One pass over a partition.
pub const ONE_PASS: Experiment = Experiment { id: "konanki/fig5.7", run: one_pass };

/// Fifteen passes over a small part of a medium.
pub const FIFTEEN_PASSES: Experiment = Experiment { id: "konanki/fig5.8", run: fifteen_passes };

/// The FTLs compared, as the figures name them.
const LAYERS: [(&str, &str); 4] =
    [("anand", "ANAND"), ("fmax", "FMAX"), ("in-place", "page level"), ("log-block", "log block")];

/// Blocks of the partition of figure 5.7.
const PARTITION_BLOCKS: u64 = 800;

/// Numbers of blocks by number of erases.
type Wear = Vec<(u32, u64)>;

fn jobs(layers: &[(&str, &str)], sets: &[(&str, &str)]) -> Vec<Job> {
    let job = |(kind, name): &(&str, &str)| {
        let job = Job::paper("konanki/wear.toml").named(*name).in_full();
        let job = job.set("component.stick.ftl", format!("\"{kind}\""));
        sets.iter().fold(job, |job, (key, value)| job.set(key, value))
    };
    layers.iter().map(job).collect()
}

fn wear(ran: &JobOutput) -> Wear {
    ran.pictures.wear.values().flatten().copied().collect()
}

/// Requests of `sectors` from sector `start` on.
fn aligned(name: &str, start: u64, sectors: u64, file_kib: u64, passes: u64) -> Setting {
    let kib = sectors / 2;
    // Whole requests.
    let file = file_kib / kib * kib;
    Setting::new(name, move |_, job| {
        job.set("workload.generator.start", format!("\"{}B\"", start * 512))
            .set("workload.generator.bs", format!("\"{kib}KiB\""))
            .set("workload.generator.span", format!("\"{file}KiB\""))
            .set("workload.generator.bytes", format!("\"{}KiB\"", file * passes))
    })
}

/// Chains of at most `units`, under ANAND.
fn chains(units: u32) -> Setting {
    Setting::new(format!("chains of {units}"), move |at, job| match at {
        0 => job.set("component.stick.ftl", format!("{{ kind = \"anand\", chain_max = {units} }}")),
        _ => job,
    })
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

/// 85 MB.
const FILE_KIB: u64 = 87_040;

fn one_pass(runner: &Runner) -> Result<Findings, ExperimentError> {
    let sets = [
        ("workload.generator.start", "\"32256B\""),
        ("workload.generator.bs", "\"120KiB\""),
        // Whole requests.
        ("workload.generator.span", "\"87000KiB\""),
        ("workload.generator.bytes", "\"87000KiB\""),
    ];
    let settings = [
        aligned("requests on page boundaries", 64, 240, FILE_KIB, 1),
        aligned("requests of 256 sectors from sector 63", 63, 256, FILE_KIB, 1),
        aligned("requests of 256 sectors from sector 0", 0, 256, FILE_KIB, 1),
        aligned("requests of 64 sectors from sector 63", 63, 64, FILE_KIB, 1),
        Setting::new("figure 4.1 literally", |at, job| match at {
            2 => job.set("component.stick.ftl", "{ kind = \"in-place\", rewrite = \"block\" }"),
            _ => job,
        }),
    ];
    let ran = Variants::run(runner, &jobs(&LAYERS[..3], &sets), 1, &settings)?;
    let mut findings = Findings::default();
    for (at, (_, name)) in LAYERS.iter().enumerate().take(2) {
        let claim = Claim::of("konanki/fraction-blocks-never-erased").with("name", name);
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
    findings.plot("konanki/erases-of-one-pass", &[], curves(&ran));
    Ok(findings)
}

fn curves(ran: &Variants) -> Vec<Curve> {
    LAYERS.iter().zip(ran.first()).map(|((_, name), ran)| curve(name, &wear(ran))).collect()
}

/// Erases from which a block counts as erased "several times".
const SEVERAL: u32 = 4;

fn mean_erases(wear: &Wear) -> f64 {
    let erases = wear.iter().map(|(erases, blocks)| f64::from(*erases) * *blocks as f64);
    erases.sum::<f64>() / blocks(wear, 0, u32::MAX)
}

fn fifteen_passes(runner: &Runner) -> Result<Findings, ExperimentError> {
    let settings = [
        chains(2),
        chains(3),
        chains(5),
        chains(8),
        aligned("from sector 63 on", 63, 256, FILE_KIB, 15),
        aligned("requests of 240 sectors", 0, 240, FILE_KIB, 15),
        Setting::new("log blocks merged as in figure 4.2", |at, job| match at {
            3 => job.set("component.stick.ftl", "{ kind = \"log-block\", merge_when = \"short\" }"),
            _ => job,
        }),
    ];
    let ran = Variants::run(runner, &jobs(&LAYERS, &[]), 1, &settings)?;
    let mut findings = Findings::default();
    let mut row = |id: &str, layer: usize, from: u32, to: u32| {
        let claim = Claim::of(id).with("name", LAYERS[layer].1);
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
    findings.plot("konanki/erases-of-fifteen-passes", &[], curves(&ran));
    Ok(findings)
}
