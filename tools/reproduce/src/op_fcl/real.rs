//! The three schemes on pieces of the traces the paper used, or of their kind.

use crate::published::parameters;
use crate::{Claim, Experiment, ExperimentError, Findings, Job, JobOutput, Runner};
use hybridsim_report::study::Curve;
use serde::Deserialize;

/// Real traces.
pub const REAL: Experiment = Experiment { id: "op-fcl/real", run: reproduce };

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    pieces: Vec<Piece>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    name: String,
    file: String,
    /// Number of replays.
    loops: u32,
    /// Requests left out at the beginning: half of all.
    warmup: u32,
    /// Blocks of 256 KiB of flash.
    blocks: u32,
}

const SIZES: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 0.9];

fn reproduce(runner: &Runner) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    for piece in &parameters::<Parameters>("op-fcl/real").pieces {
        let trace = runner.data(&piece.file)?;
        let trace = toml::Value::from(trace.to_string_lossy().into_owned());
        let job = |scheme: &str, space: f64| {
            Job::paper("op-fcl/real.toml")
                .named(format!("{}, {scheme} {space}", piece.name))
                .set("workload.trace", &trace)
                .set("workload.loops", piece.loops)
                .set("run.warmup_requests", piece.warmup)
                .set("component.flash.blocks_per_plane", piece.blocks)
                .set("component.cache.scheme", format!("\"{scheme}\""))
                .set("component.cache.caching_space", space)
        };
        let mut jobs: Vec<Job> = SIZES.iter().map(|size| job("fp", *size)).collect();
        jobs.push(job("op", 0.95));
        let mut ran = runner.run(&jobs)?;
        let full = ran.pop().expect("one for each job");
        compare(&mut findings, piece, &ran, &full);
    }
    findings.row(Claim::of("op-fcl/home-and-msn-at-scale"));
    Ok(findings)
}

/// Least hit ratio: with fewer hits at every size caching makes no difference.
const HITS_MIN: f64 = 0.01;

fn hit_ratio(ran: &JobOutput) -> f64 {
    let cache = ran.results.components.get("cache").and_then(|cache| cache.cache.as_ref());
    cache.and_then(|cache| cache.hit_ratio).unwrap_or(0.0)
}

/// The least and the greatest share of flash left to the device.
fn free_share(ran: &JobOutput) -> (f64, f64) {
    let cache = ran.results.components.get("cache");
    let reported = cache.and_then(|cache| {
        let free = cache.custom.get("over_provisioned_pages")?;
        let pages = cache.constants.get("flash_pages")?;
        Some((free.min as f64 / pages, free.max as f64 / pages))
    });
    reported.unwrap_or((f64::NAN, f64::NAN))
}

fn compare(findings: &mut Findings, piece: &Piece, fixed: &[JobOutput], full: &JobOutput) {
    let means = SIZES.iter().zip(fixed).map(|(size, ran)| (*size, ran.mean_ms()));
    let best = means.clone().min_by(|a, b| a.1.total_cmp(&b.1)).expect("five sizes");
    let free = free_share(full);
    let claim = Claim::of("op-fcl/op-fcl-best-fixed-partition")
        .with("name", &piece.name)
        .with_figures(&[("mean", full.mean_ms()), ("size", best.0), ("best", best.1)])
        .with_figures(&[("least", free.0 * 100.0), ("most", free.1 * 100.0)])
        .ours(full.mean_ms() / best.1);
    let hits = fixed.iter().map(hit_ratio).fold(0.0, f64::max);
    findings.row(match hits < HITS_MIN {
        true => claim.not_comparable(&format!(
            "hardly a page of the piece is accessed twice, so no partition matters: hit ratio \
             {hits:.5}"
        )),
        false => claim,
    });
    findings.plot(
        "op-fcl/response-time",
        &[("name", &piece.name)],
        vec![
            Curve::ours("FP-FCL", means.collect()),
            Curve::ours("OP-FCL", SIZES.iter().map(|size| (*size, full.mean_ms())).collect()),
        ],
    );
}
