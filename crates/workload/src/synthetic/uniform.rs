//! Uniform random requests of one size (workload recipe W1).

use super::addresses::{Popularity, Region, RegionParameters, sectors_of};
use super::arrivals::{self, Generator, Limits, build_workload};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Lba, Op, Request, Source, Stream};

hybridsim_config::params! {
    /// Requests of one size.
    pub struct Blocks {
        pub(crate) block: u64 = Kind::Bytes, default "\"4KiB\"", "Size and alignment of requests.";
        pub(crate) read: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0",
            "Share of requests that are reads; the others are writes.";
    }
}

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        region: RegionParameters,
        blocks: Blocks,
    } {
    }
}

impl Blocks {
    /// The region, the sectors of a block, and the number of blocks in the region.
    pub(crate) fn within(
        &self,
        input: &GeneratorInput<'_>,
        region: &RegionParameters,
        problems: &mut Vec<Problem>,
    ) -> (Region, u32, u64) {
        let sectors = sectors_of("block", self.block, problems);
        let region = Region::new(input, region, u64::from(sectors), problems);
        (region, sectors, (region.sectors / u64::from(sectors)).max(1))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadWriteMix {
    Always(Op),
    Reads(f64),
}

impl ReadWriteMix {
    /// Reads with probability `share`.
    pub(crate) fn new(share: f64) -> Self {
        match share {
            0.0 => Self::Always(Op::Write),
            1.0 => Self::Always(Op::Read),
            _ => Self::Reads(share),
        }
    }

    #[inline]
    pub(crate) fn draw(self, stream: &mut Stream) -> Op {
        match self {
            Self::Always(op) => op,
            Self::Reads(share) if stream.chance(share) => Op::Read,
            Self::Reads(_) => Op::Write,
        }
    }
}

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

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let (region, sectors, blocks) = params.blocks.within(input, &params.region, &mut problems);
    let (popularity, read) = (Popularity::Uniform(blocks), params.blocks.read);
    let generator = Popular::new(region, sectors, popularity, read, input.stream("requests"));
    build_workload(input, &params.arrivals, Some(generator), Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "uniform",
        summary: "Random requests of one size, uniform over the region.",
        origin: "common knowledge",
        params: Parameters::PARAMS,
    },
    build,
};
