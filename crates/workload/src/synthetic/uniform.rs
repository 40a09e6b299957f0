//! Uniform random requests of one size (workload recipe W1).

use super::addresses::{REGION, Region, sectors_of};
use super::arrivals::{Generator, LIMITS_AND_ARRIVALS, Limits, build_workload};
use super::{GeneratorEntry, GeneratorInput, params};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Lba, Op, Request, Source, Stream};

pub const READ: Param = Param::with(
    "read",
    Kind::Number { min: 0.0, max: 1.0 },
    "0",
    "Share of requests that are reads; the others are writes.",
);
pub const BLOCK: Param =
    Param::with("block", Kind::Bytes, "\"4KiB\"", "Size and alignment of requests.");

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

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let mut problems = Vec::new();
    let sectors = sectors_of(input, "block", &mut problems);
    let region = Region::from_settings(input, u64::from(sectors), &mut problems);
    let read = input.settings.number("read");
    let generator = Uniform::new(region, sectors, read, input.stream("requests"));
    build_workload(input, Some(generator), Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "uniform",
        summary: "Random requests of one size, uniform over the region.",
        origin: "common knowledge",
        params: params![LIMITS_AND_ARRIVALS, REGION, &[BLOCK, READ]],
    },
    build,
};
