//! Generators: workloads drawn from distributions, one file each.
//!
//! A generator draws requests ([`Generate`]); limits and arrival times are the same for all and
//! live in `pace`. Every number is drawn from streams named by the generator's path, so a workload
//! is a pure function of its parameters, its capacity, the seed and the path.

pub mod desktop;
pub mod disksim;
pub mod distribution;
mod drand48;
pub mod fio;
mod fio_text;
pub mod histogram;
pub mod hotcold;
pub mod mixes;
pub mod pace;
pub mod place;
mod process_flow;
pub mod processes;
pub mod sequence;
pub mod server;
pub mod sweep;
pub mod uniform;
pub mod week;
pub mod zipf;

pub use distribution::DistributionEntry;
pub use pace::{Generate, Paced};

use hybridsim_config::param::{EntryChoice, Problem, Settings};
use hybridsim_config::registry::{Description, Entry, Registry};
use hybridsim_engine::{Source, Stream};

/// Everything a generator's builder gets.
pub struct GeneratorInput<'a> {
    /// The generator's own checked parameters.
    pub settings: &'a Settings,
    /// Where distributions are found.
    pub registry: &'a Registry,
    /// The run's seed.
    pub seed: u64,
    /// The generator's path in the run, such as `workload`.
    pub path: &'a str,
    /// Sectors the host offers.
    pub capacity_sectors: u64,
}

impl GeneratorInput<'_> {
    /// The stream for what `part` of the generator draws.
    pub fn stream(&self, part: &str) -> Stream {
        Stream::new(self.seed, &format!("{}/{part}", self.path))
    }

    /// The distribution chosen by plug parameter `name`, if it was given.
    pub(crate) fn distribution(
        &self,
        name: &'static str,
        problems: &mut Vec<Problem>,
    ) -> Option<hybridsim_engine::sample::Distribution> {
        let EntryChoice { name: kind, settings } = self.settings.entry_opt(name)?;
        let Some(entry) = self.registry.find::<DistributionEntry>(kind) else {
            problems.push(Problem::new(name, format!("there is no distribution `{kind}`")));
            return None;
        };
        match (entry.build)(settings) {
            Ok(distribution) => Some(distribution),
            Err(message) => {
                problems.push(Problem::new(name, message));
                None
            }
        }
    }
}

/// Builds a workload, or says everything that is wrong.
pub type Build = fn(&GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>>;

/// A registered generator.
#[derive(Clone, Copy)]
pub struct GeneratorEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Builds the workload, or says everything that is wrong.
    pub build: Build,
}

impl Entry for GeneratorEntry {
    const CATEGORY: &'static str = "generator";
    fn description(&self) -> Description {
        self.description
    }
}

/// All built-in generators.
pub const ENTRIES: &[GeneratorEntry] = &[
    uniform::ENTRY,
    zipf::ENTRY,
    hotcold::ENTRY,
    fio::ENTRY,
    disksim::ENTRY,
    processes::ENTRY,
    histogram::ENTRY,
    sequence::ENTRY,
    sequence::ROUND_TRIP,
    sequence::FILL,
    sweep::ENTRY,
    server::ENTRY,
    desktop::ENTRY,
    week::ENTRY,
];

#[cfg(test)]
mod tests;
