//! flashsim: FlashSim.

mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod table1;
mod table2;
mod table3;

use super::{Claim, Experiment, ExperimentError, Job, JobOutput, Runner};
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
            .set("workload.generator.span", "\"459MiB\"")
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

/// Runs of each experiment, at different seeds.
const SEEDS: u32 = 3;

/// What DFTL's cached mapping table has room for: as much as FAST's tables take, of the drives of
/// Table 2 or of the active region alone, or the whole map.
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

    fn entries(&self, memory: MapMemory) -> u64 {
        match memory {
            MapMemory::Drive => (self.fast_on_drive() / CACHED_BYTES) as u64,
            MapMemory::Region => (self.fast / CACHED_BYTES) as u64,
            MapMemory::Whole => 1 << 22,
        }
    }
}

/// A setting of what the paper leaves open: its name, keys and values, and DFTL's memory.
struct Setting {
    name: &'static str,
    sets: &'static [(&'static str, &'static str)],
    memory: MapMemory,
}

/// What the three layers make of a workload.
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

/// The three layers at several seeds, and at other settings.
struct Evaluation {
    tables: Tables,
    seeds: Vec<Evaluated>,
    others: Vec<(&'static str, Evaluated)>,
}

impl Evaluation {
    fn run(
        runner: &Runner,
        preset: &str,
        seeds: u32,
        settings: &[Setting],
    ) -> Result<Self, ExperimentError> {
        let tables = Tables::of(runner, preset)?;
        let layers = |memory: MapMemory| {
            let entries = tables.entries(memory);
            [
                evaluation("page", preset),
                evaluation("dftl", preset).set("component.ssd.ftl.cache_entries", entries),
                evaluation("fast", preset),
            ]
        };
        let mut jobs: Vec<Job> = Vec::new();
        for seed in 1..=seeds {
            jobs.extend(layers(MapMemory::Drive).map(|job| job.at_seed(seed)));
        }
        for setting in settings {
            let set = |job: Job| {
                let name = format!("{}, {}", job.name, setting.name);
                let job = job.at_seed(1).named(name);
                let apart = job.sets.iter().any(|set| set.contains("gc_separate"));
                let applies = |key: &&(&str, &str)| apart || !key.0.contains("gc_separate");
                let sets = setting.sets.iter().filter(applies);
                sets.fold(job, |job, (key, value)| job.set(key, value))
            };
            jobs.extend(layers(setting.memory).map(set));
        }
        let mut ran = runner.run(&jobs)?.into_iter();
        let mut next = || {
            let [page, dftl, fast] = take(ran.by_ref().take(3).collect());
            Evaluated { page, dftl, fast }
        };
        let seeds = (0..seeds).map(|_| next()).collect();
        let others = settings.iter().map(|setting| (setting.name, next())).collect();
        Ok(Self { tables, seeds, others })
    }

    fn first(&self) -> &Evaluated {
        &self.seeds[0]
    }

    /// `claim` about the number that `value` takes from the three.
    fn number(&self, claim: Claim, value: impl Fn(&Evaluated) -> f64) -> Claim {
        let values: Vec<f64> = self.seeds.iter().map(&value).collect();
        let claim = claim.ours_at_seeds(&values);
        self.others.iter().fold(claim, |claim, (name, ran)| claim.sensitive(*name, value(ran)))
    }

    /// `claim` about the order of `names`, whose numbers `values` takes from the three.
    fn order<const N: usize>(
        &self,
        claim: Claim,
        names: [&'static str; N],
        values: impl Fn(&Evaluated) -> [f64; N],
    ) -> Claim {
        let by_seed: Vec<[f64; N]> = self.seeds.iter().map(&values).collect();
        let of = |at: usize| by_seed.iter().map(|values| values[at]).collect::<Vec<f64>>();
        let named: Vec<(&str, Vec<f64>)> =
            names.iter().enumerate().map(|(at, name)| (*name, of(at))).collect();
        let claim = claim.ranked_at_seeds(&named);
        self.others.iter().fold(claim, |claim, (name, ran)| {
            let values = values(ran);
            let named: Vec<(&str, f64)> = names.into_iter().zip(values).collect();
            claim.sensitive_ranked(*name, &named)
        })
    }
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
