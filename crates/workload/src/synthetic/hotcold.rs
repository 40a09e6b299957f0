//! Hot and cold: a small share of the blocks gets a large share of the requests.

use super::addresses::{REGION, Region, Scatter, sectors_of};
use super::arrivals::{Generator, LIMITS_AND_ARRIVALS, Limits, build_workload};
use super::uniform::{BLOCK, READ, ReadWriteMix};
use super::{GeneratorEntry, GeneratorInput, params};
use hybridsim_config::param::{Kind, Param, Problem};
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

const HOT_FRACTION: Param = Param::with(
    "hot_fraction",
    Kind::Number { min: 0.0, max: 1.0 },
    "0.2",
    "Share of hot blocks; at least one block is hot.",
);
const HOT_PROBABILITY: Param = Param::with(
    "hot_probability",
    Kind::Number { min: 0.0, max: 1.0 },
    "0.8",
    "Share of requests to hot blocks.",
);
const SCATTER: Param = Param::with(
    "scatter",
    Kind::Flag,
    "false",
    "Scatter hot blocks over the region; otherwise they are its first blocks.",
);

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let mut problems = Vec::new();
    let sectors = sectors_of(input, "block", &mut problems);
    let region = Region::from_settings(input, u64::from(sectors), &mut problems);
    let blocks = (region.sectors / u64::from(sectors)).max(1);
    let hot = libm::round(blocks as f64 * input.settings.number("hot_fraction")) as u64;
    let scatter = input.settings.flag("scatter");
    let generator = HotCold {
        start: region.start,
        sectors,
        blocks,
        hot_blocks: hot.clamp(1, blocks),
        hot_probability: input.settings.number("hot_probability"),
        scatter: if scatter { Scatter::new(blocks) } else { Scatter::identity(blocks) },
        read: ReadWriteMix::new(input.settings.number("read")),
        stream: input.stream("requests"),
    };
    build_workload(input, Some(generator), Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "hotcold",
        summary: "Random requests of one size to a hot and a cold set of blocks.",
        origin: "common knowledge (Rosenblum and Ousterhout 1992 use 10 % and 90 %)",
        params: params![
            LIMITS_AND_ARRIVALS,
            REGION,
            &[BLOCK, READ, HOT_FRACTION, HOT_PROBABILITY, SCATTER]
        ],
    },
    build,
};
