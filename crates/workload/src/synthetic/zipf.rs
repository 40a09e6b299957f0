//! Zipf: the k-th most popular block is asked for in proportion to `k^-theta`.

use super::pace::{BYTES, DURATION, Generate, INTERARRIVAL, Limits, REQUESTS, finish};
use super::place::{Popularity, Region, SIZE, START, sectors_of};
use super::uniform::{BLOCK, Direction, READ};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::Zipf;
use hybridsim_engine::{Lba, Request, Source, Stream};

/// Draws blocks of one size by popularity.
#[derive(Clone, Debug)]
pub struct Popular {
    start: u64,
    sectors: u32,
    popularity: Popularity,
    read: Direction,
    stream: Stream,
}

impl Popular {
    /// Requests of `sectors` sectors in `region`, the slots of `popularity` being blocks of that
    /// size; a share `read` of reads.
    pub fn new(
        region: Region,
        sectors: u32,
        popularity: Popularity,
        read: f64,
        stream: Stream,
    ) -> Self {
        Self { start: region.start, sectors, popularity, read: Direction::new(read), stream }
    }
}

impl Generate for Popular {
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
    "Exponent: 0 is uniform, larger is more skewed.",
);
const SCATTER: Param = Param::with(
    "scatter",
    Kind::Flag,
    "true",
    "Popular blocks are spread over the region; otherwise the first block is the most popular.",
);

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let mut problems = Vec::new();
    let sectors = sectors_of(input, "block", &mut problems);
    let region = Region::read(input, u64::from(sectors), &mut problems);
    let blocks = (region.sectors / u64::from(sectors)).max(1);
    let zipf = Zipf::new(blocks, input.settings.number("theta"));
    let scatter = if input.settings.flag("scatter") {
        super::place::Scatter::new(blocks)
    } else {
        super::place::Scatter::identity(blocks)
    };
    let popularity = Popularity::Zipf(zipf, scatter);
    let read = input.settings.number("read");
    let generator = Popular::new(region, sectors, popularity, read, input.stream("requests"));
    finish(input, Some(generator), Limits::NONE, None, problems)
}

/// The generator.
pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "zipf",
        summary: "Random requests of one size, block popularity by a power law.",
        origin: "common knowledge; drawn by rejection-inversion, Hormann and Derflinger 1996",
        params: &[
            REQUESTS,
            BYTES,
            DURATION,
            INTERARRIVAL,
            START,
            SIZE,
            BLOCK,
            READ,
            THETA,
            SCATTER,
        ],
    },
    build,
};
