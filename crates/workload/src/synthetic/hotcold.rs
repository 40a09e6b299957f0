//! Hot and cold: a small share of the blocks gets a large share of the requests.

use super::addresses::{Popularity, RegionParameters, Scatter};
use super::arrivals::{self, Limits, build_workload};
use super::uniform::{Blocks, Popular};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Built, Kind};
use hybridsim_config::registry::Description;
use hybridsim_engine::Source;

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        region: RegionParameters,
        blocks: Blocks,
    } {
        hot_fraction: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.2",
            "Share of hot blocks; at least one block is hot.";
        hot_probability: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.8",
            "Share of requests to hot blocks.";
        scatter: bool = Kind::Flag, default "false",
            "Scatter hot blocks over the region; otherwise they are its first blocks.";
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let (region, sectors, blocks) = params.blocks.within(input, &params.region, &mut problems);
    let hot = libm::round(blocks as f64 * params.hot_fraction) as u64;
    let popularity = Popularity::Hot {
        n: blocks,
        hot: hot.clamp(1, blocks),
        probability: params.hot_probability,
        scatter: Scatter::of(blocks, params.scatter),
    };
    let read = params.blocks.read;
    let generator = Popular::new(region, sectors, popularity, read, input.stream("requests"));
    build_workload(input, &params.arrivals, Some(generator), Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "hotcold",
        summary: "Random requests of one size to a hot and a cold set of blocks.",
        origin: "common knowledge (Rosenblum and Ousterhout 1992 use 10 % and 90 %)",
        params: Parameters::PARAMS,
    },
    build,
};
