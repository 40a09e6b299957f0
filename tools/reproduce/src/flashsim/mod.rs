//! flashsim: FlashSim.

mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod table1;
mod table2;
mod table3;

use super::{Experiment, ExperimentError, Job, JobOutput, Runner, Setting, Variants};
use crate::published::settings;
use hybridsim_observe::results::Flash;
use std::collections::BTreeMap;

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

/// A device with `ftl`. All collect garbage when they must and only then, and write host and
/// collected pages to one block, as FlashSim's do.
fn with_ftl(job: Job, ftl: &str) -> Job {
    let job = job.set("component.ssd.ftl", format!("\"{ftl}\""));
    match ftl {
        "page" => job
            .set("component.ssd.ftl.gc_pace", "\"blocking\"")
            .set("component.ssd.ftl.gc_separate", false),
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
            .set("workload.generator.locality", "\"stack\"")
            .set("workload.generator.span", "\"260MiB\"")
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

/// Blocks of 128 KiB of the drives of Table 2, 32 GB, and bytes of a block map's entry.
const DRIVE_BLOCKS: f64 = 262_144.0;
const BLOCK_ENTRY_BYTES: f64 = 4.0;

/// Seeds at which the claims of `rows` are run.
fn seeds(rows: &[&str]) -> u32 {
    crate::seeds("flashsim", rows)
}

/// Room of DFTL's cached mapping table: as much as FAST's tables take, of the drives of Table 2 or
/// of the active region alone, or the whole map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapMemory {
    Drive,
    Region,
    Whole,
}

/// Bytes of the tables of FAST and of a block map, over the active region.
#[derive(Clone, Copy, Debug)]
struct Tables {
    fast: f64,
    block: f64,
}

impl Tables {
    fn of(runner: &Runner, preset: &str) -> Result<Self, ExperimentError> {
        let few = |ftl: &str| {
            let job = evaluation(ftl, preset).named(format!("{ftl}, {preset}, its memory"));
            job.set("workload.generator.requests", 1000).set("run.warmup_requests", 0)
        };
        let [fast, block] = take(runner.run(&[few("fast"), few("block")])?);
        let bytes = |ran: &JobOutput| constant(ran, "mapping_ram_bytes");
        Ok(Self { fast: bytes(&fast), block: bytes(&block) })
    }

    /// FAST's tables on a drive of 32 GB: the block map of all of it, and the log blocks of the
    /// active region, which the 3 % of section 4.3 refer to.
    fn fast_on_drive(&self) -> f64 {
        self.fast - self.block + DRIVE_BLOCKS * BLOCK_ENTRY_BYTES
    }

    /// The settings `id` with the entries of DFTL's table.
    fn settings(&self, id: &str) -> Vec<Setting> {
        let [region, whole] = [MapMemory::Region, MapMemory::Whole].map(|it| self.entries(it));
        settings(id, &[("region", &region), ("whole", &whole)])
    }

    fn entries(&self, memory: MapMemory) -> u64 {
        match memory {
            MapMemory::Drive => (self.fast_on_drive() / CACHED_BYTES) as u64,
            MapMemory::Region => (self.fast / CACHED_BYTES) as u64,
            MapMemory::Whole => 1 << 22,
        }
    }
}

/// The jobs of an [`Evaluation`], and what plots call them.
const PAGE: usize = 0;
const DFTL: usize = 1;
const FAST: usize = 2;
const LAYERS: [&str; 3] = ["page", "DFTL", "FAST"];

const CACHE_ENTRIES: &str = "component.ssd.ftl.cache_entries";

/// The three layers under a workload at several seeds, and at other settings.
struct Evaluation {
    tables: Tables,
    ran: Variants,
}

impl Evaluation {
    /// At the settings `open` besides the one that all figures have.
    fn run(
        runner: &Runner,
        preset: &str,
        rows: &[&str],
        open: &[&str],
    ) -> Result<Self, ExperimentError> {
        let tables = Tables::of(runner, preset)?;
        let jobs = [
            evaluation("page", preset),
            dftl(preset, tables.entries(MapMemory::Drive)),
            evaluation("fast", preset),
        ];
        let open = ["flashsim/common"].iter().chain(open);
        let settings: Vec<Setting> = open.flat_map(|id| tables.settings(id)).collect();
        let ran = Variants::run(runner, &jobs, seeds(rows), &settings)?;
        Ok(Self { tables, ran })
    }
}

/// DFTL with room for `entries` of the map.
fn dftl(preset: &str, entries: u64) -> Job {
    evaluation("dftl", preset).set(CACHE_ENTRIES, entries)
}

/// The results of a fixed number of jobs.
fn take<const N: usize>(ran: Vec<JobOutput>) -> [JobOutput; N] {
    let Ok(all) = ran.try_into() else { panic!("a runner returns a result for every job") };
    all
}

/// The results of the flash device of `ran`.
fn flash(ran: &JobOutput) -> &Flash {
    let mut devices =
        ran.results.components.values().filter_map(|component| component.flash.as_ref());
    devices.next().expect("the scenario has a flash device")
}

/// Pages read and programmed for anything but the host.
fn extra_pages(ran: &JobOutput) -> f64 {
    let flash = flash(ran);
    let reads = flash.reads - for_host(&flash.reads_by_cause);
    reads as f64 + extra_programs(ran)
}

/// Pages programmed for anything but the host.
fn extra_programs(ran: &JobOutput) -> f64 {
    let flash = flash(ran);
    (flash.programs - for_host(&flash.programs_by_cause)) as f64
}

fn for_host(by_cause: &BTreeMap<String, u64>) -> u64 {
    by_cause.get("host").copied().unwrap_or(0)
}

/// Numbers of translation layers, with their names.
type Named = Vec<(&'static str, f64)>;

/// A function that takes `value` from the outputs of `layers`, with their names.
fn named<const N: usize>(
    layers: [usize; N],
    value: impl Fn(&JobOutput) -> f64,
) -> impl Fn(&[JobOutput]) -> Named {
    move |ran| layers.map(|at| (LAYERS[at], value(&ran[at]))).to_vec()
}

/// A constant of the flash device of `ran`.
fn constant(ran: &JobOutput, name: &str) -> f64 {
    let mut constants =
        ran.results.components.values().filter_map(|component| component.constants.get(name));
    constants.next().copied().unwrap_or(f64::NAN)
}
