//! Desktop workloads of chang-slc-mlc: small writes to a small hot set, large writes to new
//! extents.
//!
//! The paper has plots (Figure 7), not tables. It determines: two peaks of write sizes
//! (8 sectors, and 128 under NTFS or 256 under ext3), 68 % of writes of at most 8 sectors, high
//! update ratios of small and low ones of large writes, no sector read more than 256 times,
//! 1,534,627 writes in a month, 20 GB. Means of reads and arrivals are those of a month-long trace
//! of the same author. All other values are from two Windows logs of other authors, or marked as
//! assumed.
//!
//! Measurements of the two logs, independent of any device:
//! - Sizes of large writes, to the nearest power of two: 16 (10, 16 %), 32 (16, 29 %), 64 (12,
//!   8 %), 128 (62, 48 %).
//! - Files start at any 4 KB: 6.1 % of runs of large writes start at a multiple of 64 KB, 2.5 at
//!   one of 128 and 1.3 at one of 256 KB, as expected by chance (6.3, 3.1, 1.6).
//! - Requests come in bursts of one kind. A read follows a read in 93 and 92 % of cases; among
//!   writes, a small one follows a small one in 75 and 79 %, a large one a large one in 84 and
//!   71 %. That is a Markov chain which repeats the last kind with probability 0.867 and 0.865
//!   (reads and writes), 0.59 and 0.50 (small and large), and draws independently otherwise.
//! - 36 and 31 % of small writes are in the same 512 KB as the previous small write, 45 and 46 % of
//!   reads in that of the previous read, 74 and 76 % in one of the 64 used last. Few reads access
//!   data of small writes: 4.0 and 0.1 %.
//! - Runs of large writes are 228 and 139 sectors long, 142 and 117 without interruption by another
//!   large write. They access 534 and 455 sectors of each 512 KB they access; the generator's
//!   access 501 with extents of 480 KiB. Blocks of small writes are in runs of 1.7 and 1.5; after
//!   as many small writes as each log has, each 128 KB written has 2.7 and 3.9 of them, each
//!   512 KB 4.0 and 6.9: two levels of clusters. With `hot_cluster` 30, `hot_run` 2, `hot_area`
//!   128 KiB and two areas per `hot_zone` of 512 KiB it is 2.9 and 3.9, 4.2 and 6.6.

use super::addresses::{Region, RegionParameters};
use super::arrivals::{Generator, Interarrival, LimitParameters, Limits, build_workload};
use super::histogram::Sizes;
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::{Zipf, standard_exponential};
use hybridsim_engine::{Lba, Op, Permutation, Request, SimDuration, Source, Stream};

/// Sectors of a hot block, and of most small writes.
const BLOCK: u64 = 8;

/// Interarrival times with the mean and standard deviation of the measured trace:
/// hyperexponential with balanced means, the usual two-moment fit when the deviation exceeds the
/// mean.
#[derive(Clone, Copy, Debug)]
struct HyperExponential {
    short_share: f64,
    mean_ms: f64,
}

impl HyperExponential {
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

/// Allocates extents in shuffled order and fills each with runs of writes, the runs in random
/// order. Extents start at any block, as files do: each boundary of a grid is moved independently.
#[derive(Clone, Debug)]
struct Extents {
    order: Permutation,
    /// Determines how far boundaries are moved.
    jitter: Permutation,
    /// First sector of the region, and mean sectors of an extent.
    start: u64,
    size: u64,
    /// Maximum move in blocks, plus one; limited so that every extent can hold the longest write.
    slack: u64,
    count: u64,
    /// Extents that are ever written; the others are immutable.
    mutable: u64,
    opened: u64,
    /// The remaining writes of the current extent, the next one last: order of their run, first
    /// sector, sectors.
    plan: Vec<(u64, u64, u32)>,
}

impl Extents {
    fn new(region: Region, size: u64, longest: u64, immutable: f64, stream: &mut Stream) -> Self {
        let count = (region.sectors / size).max(1);
        let mutable = libm::ceil(count as f64 * (1.0 - immutable)) as u64;
        Self {
            order: Permutation::new(count, stream),
            jitter: Permutation::new(count, stream),
            size,
            start: region.start,
            slack: (size - longest) / BLOCK + 1,
            count,
            mutable: mutable.clamp(1, count),
            opened: 0,
            plan: Vec::new(),
        }
    }

    fn boundary(&self, index: u64) -> u64 {
        if index == 0 || index == self.count {
            return self.start + index * self.size;
        }
        let moved = u128::from(self.jitter.map(index)) * u128::from(self.slack);
        self.start + index * self.size + (moved / u128::from(self.count)) as u64 * BLOCK
    }

    fn extent(&self, number: u64) -> std::ops::Range<u64> {
        let index = self.order.map(number % self.mutable);
        self.boundary(index)..self.boundary(index + 1)
    }

    /// The next write: its sectors and offset.
    fn allocate(&mut self, sizes: &Sizes, stream: &mut Stream) -> (u32, u64) {
        if self.plan.is_empty() {
            let open = self.extent(self.opened);
            self.opened += 1;
            let (mut at, mut run) = (open.start, stream.bits());
            loop {
                let sectors = sizes.draw(stream);
                let end = at + u64::from(sectors);
                if end > open.end {
                    break;
                }
                self.plan.push((run, u64::MAX - at, sectors));
                at = end;
                if stream.chance(RUN_ENDS) {
                    run = stream.bits();
                }
            }
            self.plan.sort_unstable();
        }
        let (_, at, sectors) = self.plan.pop().expect("an extent can hold the longest write");
        (sectors, u64::MAX - at)
    }

    /// A random block of the extents used so far.
    fn random_offset(&self, stream: &mut Stream) -> u64 {
        let extent = self.extent(stream.below(self.opened.clamp(1, self.mutable)));
        extent.start + stream.below((extent.end - extent.start) / BLOCK) * BLOCK
    }
}

/// The blocks of small writes, by rank of popularity. Adjacent ranks are a cluster, spread over an
/// area; the areas of adjacent clusters are in a zone, which is at a random position in the region.
#[derive(Clone, Debug)]
struct HotBlocks {
    zipf: Zipf,
    theta: f64,
    blocks: u64,
    /// Blocks of a cluster, and of a contiguous run in it.
    cluster: u64,
    run: u64,
    /// Blocks of the area of a cluster, areas of a zone, and those of them that are used.
    area: u64,
    zone: u64,
    zone_clusters: u64,
    /// The positions of zones in the region, of areas in a zone, and of runs in an area. (A scatter
    /// by multiplication would put clusters at regular distances, which collide in hash tables by
    /// remainder.)
    zones: Permutation,
    areas: Permutation,
    runs: Permutation,
    runs_of_area: u64,
    /// Cluster of the last small write.
    last: Option<u64>,
}

impl HotBlocks {
    fn draw(&mut self, stream: &mut Stream) -> u64 {
        let rank = match self.last.filter(|_| stream.chance(SAME_CLUSTER)) {
            Some(cluster) => self.rank_within(cluster, stream),
            None => self.zipf.draw(stream),
        };
        self.last = Some(rank / self.cluster);
        self.offset(rank)
    }

    /// A rank of `cluster` by popularity, so that staying in the cluster keeps the distribution.
    fn rank_within(&self, cluster: u64, stream: &mut Stream) -> u64 {
        let first = cluster * self.cluster;
        let count = self.cluster.min(self.blocks - first);
        // Rejection relative to the first, most popular rank. After 64 rejections the law is so
        // steep that the first is nearly always right.
        for _ in 0..64 {
            let rank = first + stream.below(count);
            let weight = libm::pow((first + 1) as f64 / (rank + 1) as f64, self.theta);
            if stream.chance(weight) {
                return rank;
            }
        }
        first
    }

    /// First sector of the block of `rank`.
    fn offset(&self, rank: u64) -> u64 {
        let (number, within) = (rank / self.cluster, rank % self.cluster);
        let runs = self.cluster.div_ceil(self.run);
        let run = (number % self.runs_of_area * runs + within / self.run) % self.runs_of_area;
        let block = self.runs.map(run) * self.run + within % self.run;
        let zone = self.zones.map(number / self.zone_clusters);
        let area = self.areas.map(number % self.zone);
        ((zone * self.zone + area) * self.area + block) * BLOCK
    }
}

/// The ends of the last reads, some of which are continued.
#[derive(Clone, Debug, Default)]
struct ReadStreams {
    ends: [u64; 16],
    count: usize,
    last: usize,
}

impl ReadStreams {
    /// The end of the read to continue, most likely the last one; `None` for a new stream.
    fn continued(&mut self, stream: &mut Stream) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        if !stream.chance(CONTINUES_LAST) {
            if !stream.chance(CONTINUES_EARLIER) {
                return None;
            }
            self.last = stream.below(self.count as u64) as usize;
        }
        Some(self.ends[self.last])
    }

    /// Starts a new stream, replacing another one.
    fn start(&mut self) {
        if self.count < self.ends.len() {
            self.count += 1;
            self.last = self.count - 1;
        } else {
            self.last = (self.last + 1) % self.ends.len();
        }
    }

    fn set_end(&mut self, end: u64) {
        self.ends[self.last] = end;
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
    hot: HotBlocks,
    extents: Extents,
    interarrival: HyperExponential,
    /// The kinds of the last request and the last write.
    last: Option<Op>,
    last_was_small: Option<bool>,
    reads: ReadStreams,
    stream: Stream,
    gaps: Stream,
}

impl Desktop {
    /// The last kind with `probability`.
    fn repeated<T: Copy>(&mut self, last: Option<T>, probability: f64) -> Option<T> {
        last.filter(|_| self.stream.chance(probability))
    }

    fn draw_read(&mut self) -> (u32, u64) {
        let sectors = self.read_sizes.draw(&mut self.stream);
        let offset = match self.reads.continued(&mut self.stream) {
            Some(end) if end + u64::from(sectors) <= self.region.sectors => end,
            _ => {
                self.reads.start();
                self.extents.random_offset(&mut self.stream)
            }
        };
        self.reads.set_end(offset + u64::from(sectors));
        (sectors, offset)
    }

    fn draw_write(&mut self) -> (u32, u64) {
        let is_small = match self.repeated(self.last_was_small, SAME_SIZE) {
            Some(last) => last,
            None => self.stream.chance(self.small_share),
        };
        self.last_was_small = Some(is_small);
        if is_small {
            let sectors = self.small.draw(&mut self.stream);
            return (sectors, self.hot.draw(&mut self.stream));
        }
        self.extents.allocate(&self.large, &mut self.stream)
    }
}

impl Generator for Desktop {
    fn draw(&mut self) -> Request {
        let op = match self.repeated(self.last, SAME_OP) {
            Some(last) => last,
            None if self.stream.chance(self.read) => Op::Read,
            None => Op::Write,
        };
        self.last = Some(op);
        let (sectors, offset) = if op == Op::Read { self.draw_read() } else { self.draw_write() };
        let offset = offset.min(self.region.sectors - u64::from(sectors));
        Request::new(op, Lba(self.region.start + offset), sectors)
    }

    fn interarrival(&mut self) -> Option<SimDuration> {
        Some(self.interarrival.draw(&mut self.gaps))
    }
}

/// Probabilities that the last kind is repeated: reads and writes, small and large writes.
const SAME_OP: f64 = 0.866;
const SAME_SIZE: f64 = 0.54;
/// Probability that a run of large writes ends. With runs that are adjacent by chance the mean is
/// 193 sectors, 119 without interruption by another large write.
const RUN_ENDS: f64 = 0.75;
/// Probability that a small write stays in its cluster. In the logs 33 % are in the same 512 KB,
/// some of them by chance.
const SAME_CLUSTER: f64 = 0.24;
/// Probabilities that a read continues the last one, and otherwise one of the last sixteen.
const CONTINUES_LAST: f64 = 0.45;
const CONTINUES_EARLIER: f64 = 0.51;
/// Sizes of small writes; 8 is the peak, the rest assumed.
const SMALL: &[(u32, f64)] = &[(8, 0.92), (4, 0.03), (2, 0.02), (1, 0.03)];
/// Sizes of large writes under NTFS: means of the two logs.
const LARGE_NTFS: &[(u32, f64)] = &[(16, 0.13), (32, 0.22), (64, 0.10), (128, 0.55)];
/// Sizes of large writes under ext3. "The histogram of the ext3 workload looks very similar"; its
/// peak is at 256.
const LARGE_EXT3: &[(u32, f64)] = &[(16, 0.13), (32, 0.22), (64, 0.10), (256, 0.55)];
/// Sizes of reads: mean 8.2 sectors.
const READS: &[(u32, f64)] = &[(8, 0.925), (4, 0.045), (16, 0.022), (32, 0.008)];
/// Writes in the month.
const WRITES: u64 = 1_534_627;
/// Sectors of the region ext3 used: 2.2 GB.
const EXT3_SECTORS: u64 = 2_200_000_000 / 512 / BLOCK * BLOCK;

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
hybridsim_config::choices! {
    /// File system of the computer.
    enum FileSystem { Ntfs = "ntfs", Ext3 = "ext3" }
}

hybridsim_config::params! {
    struct Parameters includes {
        limits: LimitParameters,
        region: RegionParameters,
    } {
        file_system: FileSystem = Kind::Choice(FileSystem::NAMES), default "\"ntfs\"",
            "NTFS uses extents in the whole region; ext3 uses 2.2 GB and has larger writes.";
        read: f64 = SHARE, default "0.48", "Share of requests that are reads.";
        small: f64 = SHARE, default "0.68", "Share of writes of at most 8 sectors.";
        hot: u64 = Kind::Bytes, default "\"8MiB\"",
            "Size of all blocks that small writes go to, of which a steep `theta` uses a part. The \
             evaluation of chang-slc-mlc takes 320 MiB with `theta` 1.05, from the valid pages of \
             table 3.";
        hot_cluster: u64 = Kind::Count { min: 1, max: 1 << 20 }, default "1",
            "Hot blocks of 4 KB in a cluster (assumed).";
        hot_run: Option<u64> = Kind::Count { min: 1, max: 1 << 20 }, optional
            needs &[Needs::Not("hot_cluster", &["1"])],
            "Contiguous blocks in a cluster; all if absent.";
        hot_area: Option<u64> = Kind::Bytes, optional,
            "Bytes over which a cluster is spread; its size if absent.";
        hot_zone: Option<u64> = Kind::Bytes, optional,
            "Bytes over which the areas of adjacent clusters are spread; one area if absent.";
        hot_zone_clusters: u64 = Kind::Count { min: 1, max: 1 << 20 }, default "1",
            "Clusters in a zone.";
        hot_apart: bool = Kind::Flag, default "false",
            "Zones are at the beginning of the region and no large write goes there, as for the \
             inode tables, bitmaps and journal of a file system. Otherwise they are spread over \
             the region.";
        immutable: f64 = Kind::Number { min: 0.0, max: 0.99 }, default "0",
            "Share of the extents that are never written.";
        extent: u64 = Kind::Bytes, default "\"1MiB\"",
            "Mean size of the extents of large writes (assumed).";
        theta: f64 = Kind::Number { min: 0.0, max: 10.0 }, default "1",
            "Exponent of the popularity of hot blocks (assumed).";
        interarrival_mean_ms: f64 = Kind::Number { min: 1e-3, max: 1e9 }, default "32",
            "Mean interarrival time.";
        interarrival_stddev_ms: f64 = Kind::Number { min: 1e-3, max: 1e9 }, default "229",
            "Standard deviation of interarrival times; at least the mean.";
    }
}

/// The hot set by its parameters.
fn hot(
    input: &GeneratorInput<'_>,
    params: &Parameters,
    region: &Region,
    problems: &mut Vec<Problem>,
) -> HotBlocks {
    let (theta, cluster) = (params.theta, params.hot_cluster);
    let run = params.hot_run.unwrap_or(cluster).min(cluster);
    let runs = cluster.div_ceil(run);
    let least = runs * run;
    let area = params.hot_area.map_or(least, |bytes| bytes / (BLOCK * 512));
    if area < least {
        let message = format!("must hold {runs} runs of {run} blocks of 4 KiB");
        problems.push(Problem::new("hot_area", message));
    }
    let area = area.max(least);
    let zone = params.hot_zone.map_or(1, |bytes| bytes / (area * BLOCK * 512));
    let zone_clusters = params.hot_zone_clusters;
    if zone < zone_clusters {
        let message = format!("must hold {zone_clusters} areas of {area} blocks of 4 KiB");
        problems.push(Problem::new("hot_zone", message));
    }
    let zone = zone.max(zone_clusters);
    let blocks = (params.hot / (BLOCK * 512)).max(1);
    let needed = blocks.div_ceil(cluster).div_ceil(zone_clusters);
    let available = region.sectors / BLOCK / area / zone;
    if needed > available {
        problems.push(Problem::new("hot", "does not fit the region"));
    }
    let zones = if params.hot_apart { needed } else { available };
    let mut stream = input.stream("clusters");
    let runs_of_area = area / run;
    let (zones, runs) =
        (Permutation::new(zones.max(1), &mut stream), Permutation::new(runs_of_area, &mut stream));
    HotBlocks {
        zipf: Zipf::new(blocks, theta),
        theta,
        blocks,
        cluster,
        run,
        area,
        zone,
        zone_clusters,
        zones,
        areas: Permutation::new(zone, &mut stream),
        runs,
        runs_of_area,
        last: None,
    }
}

/// The part of the region, relative to its start, that extents are allocated in.
fn extents_region(region: &Region, hot: &HotBlocks, apart: bool) -> Region {
    let clusters = hot.blocks.div_ceil(hot.cluster);
    let zones = clusters.div_ceil(hot.zone_clusters);
    let start = if apart { zones * hot.zone * hot.area * BLOCK } else { 0 };
    Region { start, sectors: region.sectors.saturating_sub(start) }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let ext3 = params.file_system == FileSystem::Ext3;
    let extent = params.extent / 512;
    let longest = if ext3 { 256 } else { 128 };
    if extent < longest || !extent.is_multiple_of(BLOCK) {
        let message = format!("must be a multiple of 4 KiB and at least {longest} sectors");
        problems.push(Problem::new("extent", message));
    }
    let extent = extent.max(longest);
    let mut region = Region::new(input, &params.region, extent, &mut problems);
    if ext3 && params.region.span.is_none() {
        region.sectors = region.sectors.min(EXT3_SECTORS);
    }
    let (mean, stddev) = (params.interarrival_mean_ms, params.interarrival_stddev_ms);
    if stddev < mean {
        let message = "must be at least the mean: arrivals are bursty";
        problems.push(Problem::new("interarrival_stddev_ms", message));
    }
    let read = params.read;
    let hot = hot(input, &params, &region, &mut problems);
    let large = extents_region(&region, &hot, params.hot_apart);
    if large.sectors < extent {
        problems.push(Problem::new("hot", "leaves no extent for large writes"));
    }
    let immutable = params.immutable;
    let mut stream = input.stream("requests");
    let desktop = Desktop {
        region,
        read,
        small: Sizes::new(SMALL),
        large: Sizes::new(if ext3 { LARGE_EXT3 } else { LARGE_NTFS }),
        small_share: params.small,
        read_sizes: Sizes::new(READS),
        hot,
        extents: Extents::new(large, extent, longest, immutable, &mut stream),
        interarrival: HyperExponential::new(mean, stddev),
        last: None,
        last_was_small: None,
        reads: ReadStreams::default(),
        stream,
        gaps: input.stream("gap"),
    };
    let requests = libm::round(WRITES as f64 / (1.0 - read).max(1e-6)) as u64;
    let ends = params.limits.bytes.is_some() || params.limits.duration.is_some();
    let own = if ends { Limits::NONE } else { Limits::requests(requests) };
    let gaps = Interarrival::Fixed(SimDuration::ZERO);
    build_workload(input, &params.limits.into(), Some(desktop), own, Some(gaps), problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "desktop",
        summary: "A desktop PC: small writes to a hot set, large writes to fresh extents, bursts.",
        origin: "chang-slc-mlc, Figure 7 (workload recipe W9)",
        params: Parameters::PARAMS,
    },
    build,
};
