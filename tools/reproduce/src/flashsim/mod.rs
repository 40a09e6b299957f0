//! flashsim: FlashSim.

mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod table1;
mod table2;
mod table3;

use super::{Experiment, ExperimentError, Job, JobOutput, Runner};
use hybridsim_observe::results::Flash;

pub const EXPERIMENTS: &[Experiment] = &[
    table1::EXPERIMENT,
    table2::EXPERIMENT,
    table3::EXPERIMENT,
    fig5::EXPERIMENT,
    fig6::FINANCIAL,
    fig6::TPC_H,
    fig7::EXPERIMENT,
    fig8::EXPERIMENT,
];

/// The translation layers of the paper.
const FTLS: [&str; 3] = ["page", "dftl", "fast"];

/// A device with `ftl`. All collect garbage when they must and only then, as FlashSim's do.
fn with_ftl(job: Job, ftl: &str) -> Job {
    let job = job.set("component.ssd.ftl", format!("\"{ftl}\""));
    match ftl {
        "page" => job.set("component.ssd.ftl.gc_pace", "\"blocking\""),
        _ => job,
    }
}

/// The chip of Table 2 with `ftl`, under the workload `preset`.
fn evaluation(ftl: &str, preset: &str) -> Job {
    let job = Job::paper("flashsim/evaluation.toml")
        .named(format!("{ftl}, {preset}"))
        .set("workload.generator.preset", format!("\"{preset}\""));
    let job = match preset {
        // One pass before statistics begin, one with.
        "financial" => job
            .set("workload.generator.requests", 2 * FINANCIAL_REQUESTS)
            .set("run.warmup_requests", FINANCIAL_REQUESTS),
        _ => job
            .set("component.ssd.precondition", "\"fill\"")
            .set("component.ssd.blocks_per_plane", TPC_H_BLOCKS),
    };
    with_ftl(job, ftl)
}

/// Requests of the Financial trace: 43,712 s of one every 133.50 ms (Table 3).
const FINANCIAL_REQUESTS: u64 = 327_430;

/// 2 GiB of blocks of 128 KiB, and 3.125 %; `papers/flashsim/evaluation.toml` says why.
const TPC_H_BLOCKS: u32 = 16_896;

/// Bytes of an entry of DFTL's cached mapping table: logical and physical page number.
const CACHED_BYTES: f64 = 8.0;

/// What the three components make of a workload.
struct Evaluated {
    page: JobOutput,
    dftl: JobOutput,
    fast: JobOutput,
}

impl Evaluated {
    fn all(&self) -> [(&'static str, &JobOutput); 3] {
        [("page", &self.page), ("DFTL", &self.dftl), ("FAST", &self.fast)]
    }
}

/// Runs the three components on `preset`. DFTL gets the memory FAST's tables need (flashsim,
/// section 4.3).
fn evaluate(runner: &Runner, preset: &str) -> Result<Evaluated, ExperimentError> {
    let [fast, page] = take(runner.run(&[evaluation("fast", preset), evaluation("page", preset)])?);
    let entries = (constant(&fast, "mapping_ram_bytes") / CACHED_BYTES) as u64;
    let [dftl] = take(runner.run(&[dftl(preset, entries)])?);
    Ok(Evaluated { page, dftl, fast })
}

/// DFTL with room for `entries` of the map.
fn dftl(preset: &str, entries: u64) -> Job {
    evaluation("dftl", preset).set("component.ssd.ftl.cache_entries", entries)
}

/// As many results as jobs were given.
fn take<const N: usize>(ran: Vec<JobOutput>) -> [JobOutput; N] {
    let Ok(all) = ran.try_into() else { panic!("a runner returns a result for every job") };
    all
}

/// What the flash device of `ran` did.
fn flash(ran: &JobOutput) -> &Flash {
    let mut devices =
        ran.results.components.values().filter_map(|component| component.flash.as_ref());
    devices.next().expect("the scenario has a flash device")
}

/// A constant of the flash device of `ran`.
fn constant(ran: &JobOutput, name: &str) -> f64 {
    let mut constants =
        ran.results.components.values().filter_map(|component| component.constants.get(name));
    constants.next().copied().unwrap_or(f64::NAN)
}
