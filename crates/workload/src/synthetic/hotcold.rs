//! Hot and cold: a small share of the blocks gets a large share of the requests.

use super::addresses::{Region, RegionParameters, Scatter, sectors_of};
use super::arrivals::{self, Generator, Limits, build_workload};
use super::uniform::{Blocks, ReadWriteMix};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Built, Kind};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Lba, Request, Source, Stream};

#[derive(Clone, Debug)]
pub struct HotCold {
    start: u64,
    sectors: u32,
    blocks: u64,
    hot_blocks: u64,
    hot_probability: f64,
    scatter: Scatter,
    read: ReadWriteMix,
    stream: Stream,
}

impl Generator for HotCold {
    #[inline]
    fn draw(&mut self) -> Request {
        let cold_blocks = self.blocks - self.hot_blocks;
        let hot = cold_blocks == 0 || self.stream.chance(self.hot_probability);
        let rank = if hot {
            self.stream.below(self.hot_blocks)
        } else {
            self.hot_blocks + self.stream.below(cold_blocks)
        };
        let block = self.scatter.map(rank);
        let op = self.read.draw(&mut self.stream);
        Request::new(op, Lba(self.start + block * u64::from(self.sectors)), self.sectors)
    }
}

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
    let sectors = sectors_of("block", params.blocks.block, &mut problems);
    let region = Region::new(input, &params.region, u64::from(sectors), &mut problems);
    let blocks = (region.sectors / u64::from(sectors)).max(1);
    let hot = libm::round(blocks as f64 * params.hot_fraction) as u64;
    let scatter = params.scatter;
    let generator = HotCold {
        start: region.start,
        sectors,
        blocks,
        hot_blocks: hot.clamp(1, blocks),
        hot_probability: params.hot_probability,
        scatter: if scatter { Scatter::new(blocks) } else { Scatter::identity(blocks) },
        read: ReadWriteMix::new(params.blocks.read),
        stream: input.stream("requests"),
    };
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
