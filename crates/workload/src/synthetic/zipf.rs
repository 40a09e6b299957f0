//! Zipf: the access frequency of the k-th most popular block is proportional to `k^-theta`.

use super::addresses::{Popularity, RegionParameters, Scatter};
use super::arrivals::{self, Limits, build_workload};
use super::uniform::{Blocks, Popular};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::Source;
use hybridsim_engine::sample::Zipf;

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        region: RegionParameters,
        blocks: Blocks,
    } {
        theta: f64 = Kind::Number { min: 0.0, max: 10.0 }, default "0.9",
            "Exponent: 0 is uniform, larger values are more skewed.";
        ranks_per_block: u64 = Kind::Count { min: 1, max: 1 << 30 }, default "1",
            "Neighbouring ranks of the power law that share a block. On a device scaled down by \
             this factor each share of the blocks gets the requests it gets at full size; a law \
             over fewer blocks is less skewed, most with an exponent near 1.";
        scatter: bool = Kind::Flag, default "true",
            "Scatter popular blocks over the region; otherwise the first block is the most \
             popular.";
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let (region, sectors, blocks) = params.blocks.within(input, &params.region, &mut problems);
    let ranks_per_block = params.ranks_per_block;
    let ranks = blocks.checked_mul(ranks_per_block).unwrap_or_else(|| {
        problems.push(Problem::new("ranks_per_block", "there are more ranks than 2^64"));
        blocks
    });
    let popularity = Popularity::Zipf {
        zipf: Zipf::new(ranks, params.theta),
        ranks_per_block,
        scatter: Scatter::of(blocks, params.scatter),
    };
    let read = params.blocks.read;
    let generator = Popular::new(region, sectors, popularity, read, input.stream("requests"));
    build_workload(input, &params.arrivals, Some(generator), Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "zipf",
        summary: "Random requests of one size, block popularity by a power law.",
        origin: "common knowledge; drawn by rejection-inversion, Hormann and Derflinger 1996",
        params: Parameters::PARAMS,
    },
    build,
};
