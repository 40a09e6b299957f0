//! Generators: workloads drawn from distributions, one file each.
//!
//! A [`Generator`] draws requests; limits and arrival times are common to all and in `arrivals`.
//! Every number is drawn from streams named by the generator's path, so a workload is a pure
//! function of its parameters, its capacity, the seed and the path.

pub mod addresses;
pub mod arrivals;
pub mod desktop;
pub mod disksim;
pub mod distribution;
mod drand48;
pub mod fio;
mod fio_text;
pub mod histogram;
pub mod hotcold;
pub mod jobs;
pub mod loops;
pub mod lsm;
pub mod mixes;
pub mod navy;
mod process_flow;
pub mod processes;
pub mod sequence;
pub mod server;
mod stack;
pub mod streams;
pub mod sweep;
pub mod uniform;
pub mod week;
pub mod zipf;
pub mod zones;

pub use arrivals::{GeneratedWorkload, Generator};
pub use distribution::DistributionEntry;

use hybridsim_config::param::{Built, EntryChoice, Problem, Settings};
use hybridsim_config::registry::{Description, Registry};
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{Source, Stream};

/// The input of a generator's builder.
pub struct GeneratorInput<'a> {
    /// The generator's checked parameters.
    pub settings: &'a Settings,
    /// The registry of distributions and generators.
    pub registry: &'a Registry,
    pub seed: u64,
    /// The generator's path in the run, such as `workload`.
    pub path: &'a str,
    /// The capacity the workload may use.
    pub capacity_sectors: u64,
    /// Whether the workload need not end: something else ends it.
    pub may_be_endless: bool,
}

impl GeneratorInput<'_> {
    /// The random stream of `part` of the generator.
    pub fn stream(&self, part: &str) -> Stream {
        Stream::new(self.seed, &format!("{}/{part}", self.path))
    }

    /// The distribution that parameter `name` chooses.
    pub(crate) fn distribution(
        &self,
        name: &'static str,
        choice: &EntryChoice,
        problems: &mut Vec<Problem>,
    ) -> Option<Distribution> {
        let (entry, settings) = self.registry.chosen::<DistributionEntry>(choice);
        let built = (entry.build)(settings);
        built.map_err(|message| problems.push(Problem::new(name, message))).ok()
    }
}

/// Builds a workload, or reports all problems of its parameters.
pub type Build = fn(&GeneratorInput<'_>) -> Built<dyn Source>;

/// A registered generator.
#[derive(Clone, Copy)]
pub struct GeneratorEntry {
    pub description: Description,
    pub build: Build,
}

hybridsim_config::entry!(GeneratorEntry, "generator");

/// The built-in generators.
pub const ENTRIES: &[GeneratorEntry] = &[
    uniform::ENTRY,
    zipf::ENTRY,
    hotcold::ENTRY,
    jobs::ENTRY,
    lsm::ENTRY,
    navy::ENTRY,
    fio::ENTRY,
    disksim::ENTRY,
    processes::ENTRY,
    histogram::ENTRY,
    sequence::ENTRY,
    sequence::ROUND_TRIP,
    sequence::FILL,
    streams::ENTRY,
    sweep::ENTRY,
    server::ENTRY,
    desktop::ENTRY,
    week::ENTRY,
    zones::ENTRY,
];

#[cfg(test)]
mod tests;
