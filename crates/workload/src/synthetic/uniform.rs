//! Uniform random requests of one size (workload recipe W1).

use super::addresses::{Region, RegionParameters, sectors_of};
use super::arrivals::{self, Generator, Limits, build_workload};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Built, Kind};
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

#[derive(Clone, Debug)]
pub struct Uniform {
    start: u64,
    blocks: u64,
    sectors: u32,
    read: ReadWriteMix,
    stream: Stream,
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

impl Uniform {
    /// Requests of `sectors` sectors, aligned to their size from the start of `region`, with a
    /// share `read` of reads. `region` must be at least that large.
    pub fn new(region: Region, sectors: u32, read: f64, stream: Stream) -> Self {
        let blocks = region.sectors / u64::from(sectors.max(1));
        Self { start: region.start, blocks, sectors, read: ReadWriteMix::new(read), stream }
    }
}

impl Generator for Uniform {
    #[inline]
    fn draw(&mut self) -> Request {
        let block = self.stream.below(self.blocks);
        let op = self.read.draw(&mut self.stream);
        Request::new(op, Lba(self.start + block * u64::from(self.sectors)), self.sectors)
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let sectors = sectors_of("block", params.blocks.block, &mut problems);
    let region = Region::new(input, &params.region, u64::from(sectors), &mut problems);
    let generator = Uniform::new(region, sectors, params.blocks.read, input.stream("requests"));
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
