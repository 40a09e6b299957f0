//! Uniform random requests of one size: the plainest load there is (workload recipe W1).

use super::pace::{BYTES, DURATION, Generate, INTERARRIVAL, Limits, REQUESTS, finish};
use super::place::{Region, SIZE, START, sectors_of};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Lba, Op, Request, Source, Stream};

/// The share of reads.
pub const READ: Param = Param::with(
    "read",
    Kind::Number { min: 0.0, max: 1.0 },
    "0",
    "Share of requests that are reads; the others are writes.",
);
/// The size of requests.
pub const BLOCK: Param =
    Param::with("block", Kind::Bytes, "\"4KiB\"", "Bytes of a request, and what it is aligned to.");

/// Draws uniform random requests.
#[derive(Clone, Debug)]
pub struct Uniform {
    start: u64,
    blocks: u64,
    sectors: u32,
    read: Direction,
    stream: Stream,
}

/// Reads, writes, or a mix.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Always(Op),
    Reads(f64),
}

impl Direction {
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
    /// Requests of `sectors` sectors, aligned to their size from the start of `region` on, with a
    /// share `read` of reads. `region` must have room for one.
    pub fn new(region: Region, sectors: u32, read: f64, stream: Stream) -> Self {
        let blocks = region.sectors / u64::from(sectors.max(1));
        Self { start: region.start, blocks, sectors, read: Direction::new(read), stream }
    }
}

impl Generate for Uniform {
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
    let region = Region::read(input, u64::from(sectors), &mut problems);
    let read = input.settings.number("read");
    let generator = Uniform::new(region, sectors, read, input.stream("requests"));
    finish(input, Some(generator), Limits::NONE, None, problems)
}

/// The generator.
pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "uniform",
        summary: "Random requests of one size, every place equally likely.",
        origin: "common knowledge",
        params: &[REQUESTS, BYTES, DURATION, INTERARRIVAL, START, SIZE, BLOCK, READ],
    },
    build,
};
