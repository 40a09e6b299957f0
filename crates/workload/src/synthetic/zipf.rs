//! Zipf: the access frequency of the k-th most popular block is proportional to `k^-theta`.

use super::addresses::{Popularity, REGION, Region, sectors_of};
use super::arrivals::{Generator, LIMITS_AND_ARRIVALS, Limits, build_workload};
use super::uniform::{BLOCK, READ, ReadWriteMix};
use super::{GeneratorEntry, GeneratorInput, params};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::Zipf;
use hybridsim_engine::{Lba, Request, Source, Stream};

/// Random requests of one size with a given popularity of blocks.
#[derive(Clone, Debug)]
pub struct Popular {
    start: u64,
    sectors: u32,
    popularity: Popularity,
    read: ReadWriteMix,
    stream: Stream,
}

impl Popular {
    /// Requests of `sectors` sectors in `region`, with a share `read` of reads. The slots of
    /// `popularity` are blocks of that size.
    pub fn new(
        region: Region,
        sectors: u32,
        popularity: Popularity,
        read: f64,
        stream: Stream,
    ) -> Self {
        Self { start: region.start, sectors, popularity, read: ReadWriteMix::new(read), stream }
    }
}

impl Generator for Popular {
    #[inline]
    fn draw(&mut self) -> Request {
        let slot = self.popularity.draw(&mut self.stream);
        let op = self.read.draw(&mut self.stream);
        Request::new(op, Lba(self.start + slot * u64::from(self.sectors)), self.sectors)
    }
}

const THETA: Param = Param::with(
    "theta",
    Kind::Number { min: 0.0, max: 10.0 },
    "0.9",
    "Exponent: 0 is uniform, larger values are more skewed.",
);
const RANKS: Param = Param::with(
    "ranks_per_block",
    Kind::Count { min: 1, max: 1 << 30 },
    "1",
    "Neighbouring ranks of the power law that share a block. On a device scaled down by this \
     factor each share of the blocks gets the requests it gets at full size; a law over fewer \
     blocks is less skewed, most with an exponent near 1.",
);
const SCATTER: Param = Param::with(
    "scatter",
    Kind::Flag,
    "true",
    "Scatter popular blocks over the region; otherwise the first block is the most popular.",
);

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let mut problems = Vec::new();
    let sectors = sectors_of(input, "block", &mut problems);
    let region = Region::from_settings(input, u64::from(sectors), &mut problems);
    let blocks = (region.sectors / u64::from(sectors)).max(1);
    let ranks_per_block = input.settings.count("ranks_per_block");
    let ranks = blocks.checked_mul(ranks_per_block).unwrap_or_else(|| {
        problems.push(Problem::new("ranks_per_block", "there are more ranks than 2^64"));
        blocks
    });
    let zipf = Zipf::new(ranks, input.settings.number("theta"));
    let scatter = if input.settings.flag("scatter") {
        super::addresses::Scatter::new(blocks)
    } else {
        super::addresses::Scatter::identity(blocks)
    };
    let popularity = Popularity::Zipf { zipf, ranks_per_block, scatter };
    let read = input.settings.number("read");
    let generator = Popular::new(region, sectors, popularity, read, input.stream("requests"));
    build_workload(input, Some(generator), Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "zipf",
        summary: "Random requests of one size, block popularity by a power law.",
        origin: "common knowledge; drawn by rejection-inversion, Hormann and Derflinger 1996",
        params: params![LIMITS_AND_ARRIVALS, REGION, &[BLOCK, READ, THETA, RANKS, SCATTER]],
    },
    build,
};
