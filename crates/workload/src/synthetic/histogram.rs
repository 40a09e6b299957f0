//! Request sizes by a histogram, with a given share of random requests.
//!
//! As in konanki, random means not contiguous with the previous write. By default random requests
//! are uniform over the region. With `hot`, that share of the short ones goes to a few places and
//! rewrites them, as file system metadata and small files are rewritten.

use super::addresses::{Region, RegionParameters, SequentialRuns, sectors_of};
use super::arrivals::{self, Generator, Limits, build_workload};
use super::mixes::{MIXES, NAMES};
use super::uniform::ReadWriteMix;
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Lba, Op, Request, Source, Stream};

/// A histogram of sizes.
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

    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> u32 {
        let at = stream.unit();
        let found = self.0.iter().find(|(up_to, _)| at < *up_to).or(self.0.last());
        found.expect("a histogram has sizes").1
    }

    pub fn largest(&self) -> u32 {
        self.0.iter().map(|(_, sectors)| *sectors).max().unwrap_or(1)
    }
}

#[derive(Clone, Debug)]
pub struct Histogram {
    sizes: Sizes,
    random: f64,
    read: ReadWriteMix,
    align: u64,
    blocks: u64,
    /// Reads and writes are sequential independently.
    runs_by_op: [SequentialRuns; 2],
    hot: Option<Hot>,
    stream: Stream,
}

/// Temporal locality: places that short random requests return to.
#[derive(Clone, Debug)]
struct Hot {
    /// Share of the short random requests that go to one of the places.
    share: f64,
    /// The places, as blocks of the region.
    places: Vec<u64>,
    /// Longest request that goes there, in sectors.
    sectors_max: u32,
}

impl Hot {
    /// The place of a request of `sectors`; `None` if it goes elsewhere.
    fn place(&self, sectors: u32, stream: &mut Stream) -> Option<u64> {
        if sectors > self.sectors_max || !stream.chance(self.share) {
            return None;
        }
        Some(self.places[stream.below(self.places.len() as u64) as usize])
    }
}

impl Histogram {
    /// Requests in `region`, which must be at least as large as the largest; random ones are at
    /// multiples of `align` sectors from its start.
    pub fn new(
        region: Region,
        sizes: Sizes,
        random: f64,
        read: f64,
        align: u32,
        stream: Stream,
    ) -> Self {
        let align = u64::from(align.max(1));
        let blocks = (region.sectors - u64::from(sizes.largest())) / align + 1;
        let runs_by_op = [SequentialRuns::new(region), SequentialRuns::new(region)];
        let read = ReadWriteMix::new(read);
        Self { sizes, random, read, align, blocks, runs_by_op, hot: None, stream }
    }

    /// With short random requests returning to a few places.
    #[must_use]
    fn with_hot(self, input: &GeneratorInput<'_>, params: &Parameters) -> Self {
        let (share, count) = (params.hot, params.hot_places);
        if share == 0.0 {
            return self;
        }
        let mut stream = input.stream("hot places");
        let places = (0..count).map(|_| stream.below(self.blocks)).collect();
        let sectors_max = params.hot_sectors_max;
        Self { hot: Some(Hot { share, places, sectors_max }), ..self }
    }
}

impl Generator for Histogram {
    fn draw(&mut self) -> Request {
        let op = self.read.draw(&mut self.stream);
        let sectors = self.sizes.draw(&mut self.stream);
        let contiguous = !self.stream.chance(self.random);
        let runs = &mut self.runs_by_op[usize::from(op == Op::Write)];
        let (stream, blocks, align) = (&mut self.stream, self.blocks, self.align);
        let hot = self.hot.as_ref();
        let lba = runs.next_lba(sectors, contiguous, || {
            let hot = hot.and_then(|hot| hot.place(sectors, stream));
            hot.unwrap_or_else(|| stream.below(blocks)) * align
        });
        Request::new(op, Lba(lba), sectors)
    }
}

/// Reads `sizes_sectors` and `weights`; `None` when absent or wrong.
pub(crate) fn read_sizes(params: &SizeParameters, problems: &mut Vec<Problem>) -> Option<Sizes> {
    let SizeParameters { sizes_sectors, weights } = params;
    let (Some(sizes), Some(weights)) = (sizes_sectors, weights) else {
        if sizes_sectors.is_some() != weights.is_some() {
            problems.push(Problem::new("weights", "give both `sizes_sectors` and `weights`"));
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

hybridsim_config::params! {
    /// Sizes of requests by weights.
    pub struct SizeParameters {
        sizes_sectors: Option<Vec<u64>> = Kind::Counts, optional,
            "Sizes in sectors of 512 bytes; needs `weights`.";
        weights: Option<Vec<f64>> = Kind::Numbers, optional, "Weight of each of `sizes_sectors`.";
    }
}

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        region: RegionParameters,
        sizes: SizeParameters,
    } {
        align: u64 = Kind::Bytes, default "\"4KiB\"", "Alignment of random requests.";
        mix: String = Kind::Choice(NAMES), default "\"custom\""
            needs &[Needs::Any(&[Needs::absent("sizes_sectors"), Needs::absent("random")])],
            "An application of konanki, or `custom` for `sizes_sectors`, `weights` and `random`.";
        random: Option<f64> = Kind::Number { min: 0.0, max: 1.0 }, optional,
            "Share of requests that are not contiguous with the previous one of the same \
             direction.";
        read: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0",
            "Share of requests that are reads; the others are writes.";
        hot: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.0",
            "Share of the short random requests that go to one of `hot_places`: temporal locality, \
             without which every random request is uniform.";
        hot_places: u64 = Kind::Count { min: 1, max: 65_536 }, default "64"
            needs &[Needs::above_zero("hot")],
            "Places that `hot` requests return to, drawn once over the region.";
        hot_sectors_max: u32 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "16"
            needs &[Needs::above_zero("hot")],
            "Longest request, in sectors of 512 bytes, that counts as short.";
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let own = read_sizes(&params.sizes, &mut problems);
    let named = MIXES.iter().find(|mix| mix.name == params.mix);
    let sizes = own.or_else(|| named.map(|mix| Sizes::new(mix.sizes)));
    if sizes.is_none() && problems.is_empty() {
        let message = "give `sizes_sectors` and `weights`, or the `mix` of an application";
        problems.push(Problem::new("mix", message));
    }
    let random = params.random.or(named.map(|mix| mix.random)).unwrap_or(1.0);
    let align = sectors_of("align", params.align, &mut problems);
    let largest = sizes.as_ref().map_or(1, Sizes::largest);
    let region = Region::new(input, &params.region, u64::from(largest), &mut problems);
    let read = params.read;
    let generator = sizes
        .filter(|_| problems.is_empty())
        .map(|sizes| Histogram::new(region, sizes, random, read, align, input.stream("requests")))
        .map(|generator| generator.with_hot(input, &params));
    build_workload(input, &params.arrivals, generator, Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "histogram",
        summary: "Sizes by a histogram, with a given share of random requests.",
        origin: "konanki, Tables 5.1 to 5.4 (workload recipe W2)",
        params: Parameters::PARAMS,
    },
    build,
};
