//! Requests whose sizes follow a histogram and of which a given share is random.
//!
//! Random means what konanki means by it: not contiguous with the write before.

use super::mixes::{MIXES, NAMES};
use super::pace::{BYTES, DURATION, Generate, INTERARRIVAL, Limits, REQUESTS, finish};
use super::place::{Region, SIZE, START, Walk, sectors_of};
use super::uniform::{Direction, READ};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Lba, Op, Request, Source, Stream};

/// Sizes drawn by their shares.
#[derive(Clone, Debug)]
pub struct Sizes(Vec<(f64, u32)>);

impl Sizes {
    /// From (sectors, weight) pairs; at least one weight must be positive.
    pub fn new(sizes: &[(u32, f64)]) -> Self {
        let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let shares = sizes.iter().filter(|(_, weight)| *weight > 0.0).map(|&(sectors, weight)| {
            sum += weight / total;
            (sum, sectors)
        });
        Self(shares.collect())
    }

    /// Draws a size in sectors.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u32 {
        let at = stream.unit();
        let found = self.0.iter().find(|(up_to, _)| at < *up_to).or(self.0.last());
        found.expect("a histogram has sizes").1
    }

    /// The largest size in sectors.
    pub fn largest(&self) -> u32 {
        self.0.iter().map(|(_, sectors)| *sectors).max().unwrap_or(1)
    }
}

/// Draws sizes by a histogram and places them by a share of jumps.
#[derive(Clone, Debug)]
pub struct Histogram {
    sizes: Sizes,
    random: f64,
    read: Direction,
    align: u64,
    places: u64,
    /// Reads and writes each walk for themselves.
    walks: [Walk; 2],
    stream: Stream,
}

impl Histogram {
    /// Requests in `region`, which must have room for the largest; jumps go to multiples of
    /// `align` sectors from its start.
    pub fn new(
        region: Region,
        sizes: Sizes,
        random: f64,
        read: f64,
        align: u32,
        stream: Stream,
    ) -> Self {
        let align = u64::from(align.max(1));
        let places = (region.sectors - u64::from(sizes.largest())) / align + 1;
        let walks = [Walk::new(region), Walk::new(region)];
        Self { sizes, random, read: Direction::new(read), align, places, walks, stream }
    }
}

impl Generate for Histogram {
    fn draw(&mut self) -> Request {
        let op = self.read.draw(&mut self.stream);
        let sectors = self.sizes.draw(&mut self.stream);
        let contiguous = !self.stream.chance(self.random);
        let walk = &mut self.walks[usize::from(op == Op::Write)];
        let (stream, places, align) = (&mut self.stream, self.places, self.align);
        let lba = walk.place(sectors, contiguous, || stream.below(places) * align);
        Request::new(op, Lba(lba), sectors)
    }
}

pub(crate) const SIZES: Param = Param::optional(
    "sizes_sectors",
    Kind::Counts,
    "Sizes in sectors of 512 bytes; goes with `weights`.",
);
pub(crate) const WEIGHTS: Param =
    Param::optional("weights", Kind::Numbers, "Weight of each of `sizes_sectors`.");

/// Reads `sizes_sectors` and `weights`; `None` when absent or wrong.
pub(crate) fn read_sizes(settings: &Settings, problems: &mut Vec<Problem>) -> Option<Sizes> {
    let (sizes, weights) = (settings.counts_opt("sizes_sectors"), settings.numbers_opt("weights"));
    let (Some(sizes), Some(weights)) = (sizes, weights) else {
        if sizes.is_some() != weights.is_some() {
            problems.push(Problem::new("weights", "`sizes_sectors` and `weights` go together"));
        }
        return None;
    };
    let before = problems.len();
    if sizes.len() != weights.len() {
        let message = format!("{} weights for {} sizes", weights.len(), sizes.len());
        problems.push(Problem::new("weights", message));
    }
    let sound = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
    let total = weights.iter().sum::<f64>();
    if !sound || total <= 0.0 || !total.is_finite() {
        problems.push(Problem::new("weights", "must not be negative, and not all 0"));
    }
    if sizes.iter().any(|&sectors| sectors == 0 || sectors > u64::from(u32::MAX)) {
        problems.push(Problem::new("sizes_sectors", "sizes must be from 1 to 2^32 - 1 sectors"));
    }
    let pairs = sizes.iter().zip(weights).map(|(&sectors, &weight)| (sectors as u32, weight));
    (problems.len() == before).then(|| Sizes::new(&pairs.collect::<Vec<_>>()))
}

pub(crate) const ALIGN: Param =
    Param::with("align", Kind::Bytes, "\"4KiB\"", "Jumps go to multiples of it.");
const MIX: Param = Param::with(
    "mix",
    Kind::Choice(NAMES),
    "\"custom\"",
    "An application of konanki, or `custom` for `sizes_sectors`, `weights` and `random`.",
);
const RANDOM: Param = Param::optional(
    "random",
    Kind::Number { min: 0.0, max: 1.0 },
    "Share of requests that do not follow the one before of the same direction.",
);

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let settings = input.settings;
    let mut problems = Vec::new();
    let own = read_sizes(settings, &mut problems);
    let named = MIXES.iter().find(|mix| mix.name == settings.text("mix"));
    let sizes = own.or_else(|| named.map(|mix| Sizes::new(mix.sizes)));
    if sizes.is_none() && problems.is_empty() {
        let message = "give `sizes_sectors` and `weights`, or the `mix` of an application";
        problems.push(Problem::new("mix", message));
    }
    let random = settings.number_opt("random").or(named.map(|mix| mix.random)).unwrap_or(1.0);
    let align = sectors_of(input, "align", &mut problems);
    let largest = sizes.as_ref().map_or(1, Sizes::largest);
    let region = Region::read(input, u64::from(largest), &mut problems);
    let read = settings.number("read");
    let generator = sizes
        .filter(|_| problems.is_empty())
        .map(|sizes| Histogram::new(region, sizes, random, read, align, input.stream("requests")));
    finish(input, generator, Limits::NONE, None, problems)
}

/// The generator.
pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "histogram",
        summary: "Sizes by a histogram, a given share of requests random.",
        origin: "konanki, Tables 5.1 to 5.4 (workload recipe W2)",
        params: &[
            REQUESTS,
            BYTES,
            DURATION,
            INTERARRIVAL,
            START,
            SIZE,
            ALIGN,
            MIX,
            SIZES,
            WEIGHTS,
            RANDOM,
            READ,
        ],
    },
    build,
};
