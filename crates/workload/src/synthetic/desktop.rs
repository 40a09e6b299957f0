//! Desktop loads of paper 004: small writes to a small hot set, large writes to fresh extents.
//!
//! The paper gives shapes (Figure 7), not tables. What is fixed by it: two peaks of write sizes
//! (8 sectors, and 128 under NTFS or 256 under ext3), 68 % of writes of at most 8 sectors, high
//! update ratios of small and low ones of large writes, 1,534,627 writes in a month, 20 GB.
//! Means of reads and arrivals are those of a month-long trace of the same author. All else is
//! assumed and said so. Two Windows logs of other authors tell how large runs of large writes are
//! (153 and 247 sectors on average) and how many of the 4 KB blocks small writes touch lie in the
//! same 512 KB (7.0 and 4.0); `extent` and `hot_cluster` can be set after them.

use super::histogram::Sizes;
use super::pace::{BYTES, DURATION, Gaps, Generate, Limits, REQUESTS, finish};
use super::place::{Popularity, Region, SIZE, START, Scatter, Shuffle};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_engine::param::{Kind, Param, Problem};
use hybridsim_engine::registry::Description;
use hybridsim_engine::sample::{Zipf, standard_exponential};
use hybridsim_engine::{Lba, Op, Request, SimDuration, Source, Stream};

/// Sectors of a hot block, and of most small writes.
const BLOCK: u64 = 8;
/// Gaps with the mean and the standard deviation of the measured trace: a mix of two exponentials
/// with balanced means, the usual fit to two moments when the deviation exceeds the mean.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    short_share: f64,
    mean_ms: f64,
}

impl Bursts {
    fn new(mean_ms: f64, stddev_ms: f64) -> Self {
        let square = (stddev_ms / mean_ms) * (stddev_ms / mean_ms);
        let root = libm::sqrt(((square - 1.0) / (square + 1.0)).max(0.0));
        Self { short_share: f64::midpoint(1.0, root), mean_ms }
    }

    fn draw(&self, stream: &mut Stream) -> SimDuration {
        let short = stream.chance(self.short_share);
        let share = if short { self.short_share } else { 1.0 - self.short_share };
        let ms = standard_exponential(stream) * self.mean_ms / (2.0 * share);
        SimDuration::from_ns_f64(ms * 1e6)
    }
}

/// Hands out extents in shuffled order and fills each in sequence.
#[derive(Clone, Debug)]
struct Extents {
    order: Shuffle,
    /// Sectors of one.
    size: u64,
    count: u64,
    opened: u64,
    filled: u64,
}

impl Extents {
    fn allocate(&mut self, sectors: u64) -> u64 {
        if self.opened == 0 || self.filled + sectors > self.size {
            self.opened += 1;
            self.filled = 0;
        }
        let extent = self.order.place((self.opened - 1) % self.count);
        self.filled += sectors;
        extent * self.size + self.filled - sectors
    }

    /// Somewhere in the extents used so far.
    fn somewhere(&self, stream: &mut Stream) -> u64 {
        let used = self.opened.clamp(1, self.count);
        let extent = self.order.place(stream.below(used));
        extent * self.size + stream.below(self.size / BLOCK) * BLOCK
    }
}

#[derive(Clone, Debug)]
struct Desktop {
    region: Region,
    read: f64,
    small: Sizes,
    large: Sizes,
    small_share: f64,
    read_sizes: Sizes,
    hot: Popularity,
    scatter: Scatter,
    /// Hot blocks that lie together, and where the clusters of several lie. (A scatter by
    /// multiplication would put clusters at regular distances, which a hash table by remainders
    /// takes badly.)
    cluster: u64,
    clusters: Option<Shuffle>,
    extents: Extents,
    bursts: Bursts,
    stream: Stream,
    gaps: Stream,
}

impl Desktop {
    fn hot_block(&mut self) -> u64 {
        let rank = self.hot.draw(&mut self.stream);
        match &self.clusters {
            Some(clusters) => {
                let (number, within) = (rank / self.cluster, rank % self.cluster);
                (clusters.place(number) * self.cluster + within) * BLOCK
            }
            None => self.scatter.place(rank) * BLOCK,
        }
    }
}

impl Generate for Desktop {
    fn draw(&mut self) -> Request {
        let (op, sectors, offset);
        if self.stream.chance(self.read) {
            op = Op::Read;
            sectors = self.read_sizes.draw(&mut self.stream);
            let hot = self.stream.chance(HOT_READS);
            offset = if hot { self.hot_block() } else { self.extents.somewhere(&mut self.stream) };
        } else {
            op = Op::Write;
            if self.stream.chance(self.small_share) {
                sectors = self.small.draw(&mut self.stream);
                offset = self.hot_block();
            } else {
                sectors = self.large.draw(&mut self.stream);
                offset = self.extents.allocate(u64::from(sectors));
            }
        }
        let offset = offset.min(self.region.sectors - u64::from(sectors));
        Request::new(op, Lba(self.region.start + offset), sectors)
    }

    fn gap(&mut self) -> Option<SimDuration> {
        Some(self.bursts.draw(&mut self.gaps))
    }
}

/// Share of reads that go to the hot set (assumed: the paper calls their locality weak).
const HOT_READS: f64 = 0.3;
/// Sizes of small writes; 8 is the peak, the rest assumed.
const SMALL: &[(u32, f64)] = &[(8, 0.92), (4, 0.03), (2, 0.02), (1, 0.03)];
/// Sizes of large writes under NTFS: the peak at 128, the rest assumed.
const LARGE_NTFS: &[(u32, f64)] = &[(16, 0.12), (32, 0.10), (64, 0.08), (128, 0.70)];
/// Sizes of large writes under ext3: the peak at 256, the rest assumed.
const LARGE_EXT3: &[(u32, f64)] = &[(16, 0.12), (32, 0.10), (64, 0.05), (128, 0.05), (256, 0.68)];
/// Sizes of reads: mean 8.2 sectors.
const READS: &[(u32, f64)] = &[(8, 0.925), (4, 0.045), (16, 0.022), (32, 0.008)];
/// Writes of the month.
const WRITES: u64 = 1_534_627;
/// Sectors of the region ext3 used: 2.2 GB.
const EXT3_SECTORS: u64 = 2_200_000_000 / 512 / BLOCK * BLOCK;

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const PARAMS: &[Param] = &[
    REQUESTS,
    BYTES,
    DURATION,
    START,
    SIZE,
    Param::with(
        "file_system",
        Kind::Choice(&["ntfs", "ext3"]),
        "\"ntfs\"",
        "NTFS spreads extents over the whole region; ext3 uses 2.2 GB and writes larger pieces.",
    ),
    Param::with("read", SHARE, "0.48", "Share of requests that are reads."),
    Param::with("small", SHARE, "0.68", "Share of writes of at most 8 sectors."),
    Param::with("hot", Kind::Bytes, "\"8MiB\"", "Bytes small writes go to (5 to 16 MB)."),
    Param::with(
        "hot_cluster",
        Kind::Count { min: 1, max: 1 << 20 },
        "1",
        "Hot blocks of 4 KB that lie side by side (assumed).",
    ),
    Param::with(
        "extent",
        Kind::Bytes,
        "\"1MiB\"",
        "Bytes large writes fill before they go on elsewhere (assumed).",
    ),
    Param::with(
        "theta",
        Kind::Number { min: 0.0, max: 10.0 },
        "1",
        "Exponent of the popularity of hot blocks (assumed).",
    ),
    Param::with(
        "interarrival_mean_ms",
        Kind::Number { min: 1e-3, max: 1e9 },
        "32",
        "Mean time between arrivals.",
    ),
    Param::with(
        "interarrival_stddev_ms",
        Kind::Number { min: 1e-3, max: 1e9 },
        "229",
        "Standard deviation of the time between arrivals; at least the mean.",
    ),
];

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let settings = input.settings;
    let mut problems = Vec::new();
    let ext3 = settings.text("file_system") == "ext3";
    let extent = settings.bytes("extent") / 512;
    let longest = if ext3 { 256 } else { 128 };
    if extent < longest || !extent.is_multiple_of(BLOCK) {
        let message = format!("must be a multiple of 4 KiB and at least {longest} sectors");
        problems.push(Problem::new("extent", message));
    }
    let extent = extent.max(longest);
    let cluster = settings.count("hot_cluster");
    let mut region = Region::read(input, extent, &mut problems);
    if ext3 && !settings.has("size") {
        region.sectors = region.sectors.min(EXT3_SECTORS);
    }
    let hot_blocks = (settings.bytes("hot") / 4096).max(1);
    if hot_blocks.div_ceil(cluster) > region.sectors / BLOCK / cluster {
        problems.push(Problem::new("hot", "is larger than the region"));
    }
    let (mean, stddev) =
        (settings.number("interarrival_mean_ms"), settings.number("interarrival_stddev_ms"));
    if stddev < mean {
        let message = "must be at least the mean: arrivals of a desktop come in bursts";
        problems.push(Problem::new("interarrival_stddev_ms", message));
    }
    let read = settings.number("read");
    let count = (region.sectors / extent).max(1);
    let mut stream = input.stream("requests");
    let desktop = Desktop {
        region,
        read,
        small: Sizes::new(SMALL),
        large: Sizes::new(if ext3 { LARGE_EXT3 } else { LARGE_NTFS }),
        small_share: settings.number("small"),
        read_sizes: Sizes::new(READS),
        hot: Popularity::Zipf(
            Zipf::new(hot_blocks, settings.number("theta")),
            Scatter::identity(hot_blocks),
        ),
        scatter: Scatter::new((region.sectors / BLOCK).max(1)),
        cluster,
        clusters: (cluster > 1).then(|| {
            let count = (region.sectors / BLOCK / cluster).max(1);
            Shuffle::new(count, &mut input.stream("clusters"))
        }),
        extents: Extents {
            order: Shuffle::new(count, &mut stream),
            size: extent,
            count,
            opened: 0,
            filled: 0,
        },
        bursts: Bursts::new(mean, stddev),
        stream,
        gaps: input.stream("gap"),
    };
    let requests = libm::round(WRITES as f64 / (1.0 - read).max(1e-6)) as u64;
    let ends = ["bytes", "duration"].iter().any(|name| settings.has(name));
    let own = if ends { Limits::NONE } else { Limits::requests(requests) };
    let gaps = Gaps::Fixed(SimDuration::ZERO);
    finish(input, Some(desktop), own, Some(gaps), problems)
}

/// The generator.
pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "desktop",
        summary: "A desktop PC: small writes to a hot set, large writes to fresh extents, bursts.",
        origin: "paper 004, Figure 7 (workload recipe W9)",
        params: PARAMS,
    },
    build,
};
