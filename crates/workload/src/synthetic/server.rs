//! Server workloads given by a few totals: mean size, share of reads, share of sequential requests,
//! mean interarrival time. There can be several volumes. Blocks are chosen independently, by a
//! power law, or by stack distance, which gives the hit ratio of LRU caches of all sizes.
//!
//! Depths of the presets `financial` and `financial-24`, in slots of 4 KiB at which requests begin:
//! up to 512 as in the public first 10,000 requests of Financial1, without the sequential scans of
//! its units 0, 18, 19 and 20. Scans are 41 % of these requests and 68 % of the slots used for the
//! first time, but Table 3 of flashsim has 2 % of sequential requests.
//!
//! The rest is from the whole trace: its 5,334,987 requests begin at 710,908 addresses (public
//! statistics), so 13.3 % of requests are to an address not used before. That many are deeper than
//! all addresses used, and what is left from 512 to there is spread log-uniformly.

use super::addresses::{Popularity, Region, RegionParameters, SequentialRuns, sectors_of};
use super::arrivals::{self, Generator, Interarrival, Limits, build_workload};
use super::histogram::{SizeParameters, Sizes, read_sizes};
use super::stack::{Depths, LruStack};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::{Distribution, standard_exponential};
use hybridsim_engine::{Lba, Op, Request, SECTOR_BYTES, Source, Stream};

/// Sectors of a slot, the unit of popularity: 4 KiB.
const SLOT_SECTORS: u64 = 8;
/// Most slots of an LRU stack, 1 GiB of memory.
const STACK_SLOTS_MAX: u64 = 1 << 26;
const VOLUMES_MAX: u64 = 1 << 16;

#[derive(Clone, Debug)]
enum SizeMix {
    /// Geometric with this mean: the discrete counterpart of the exponential, at least 1.
    Geometric {
        mean_sectors: f64,
        largest: u32,
    },
    Histogram(Sizes),
}

impl SizeMix {
    fn draw(&self, stream: &mut Stream) -> u32 {
        match self {
            Self::Histogram(sizes) => sizes.draw(stream),
            Self::Geometric { mean_sectors, largest } => {
                // ceil of an exponential with rate -ln(1 - 1/mean) is geometric with that mean.
                let rate = -libm::log1p(-1.0 / mean_sectors);
                let sectors = libm::ceil(standard_exponential(stream) / rate);
                (sectors.max(1.0) as u32).min(*largest)
            }
        }
    }

    fn largest(&self) -> u32 {
        match self {
            Self::Histogram(sizes) => sizes.largest(),
            Self::Geometric { largest, .. } => *largest,
        }
    }
}

#[derive(Clone, Debug)]
struct Server {
    sizes: SizeMix,
    /// Sizes are rounded up to a multiple of so many sectors.
    multiple: u32,
    read: f64,
    sequential: f64,
    locality: Locality,
    volumes: Volumes,
    stream: Stream,
}

/// Choice of the slot of a request that is not sequential.
#[derive(Clone, Debug)]
enum Locality {
    /// Independently of earlier requests, in a volume drawn before.
    Independent(Vec<Popularity>),
    /// Over the slots of all volumes.
    Stack(LruStack),
}

#[derive(Clone, Debug)]
struct Volumes {
    regions: Vec<Region>,
    runs: Vec<SequentialRuns>,
    /// Slots of each volume and those before it.
    slots_up_to: Vec<u64>,
    /// All volumes have equally many slots.
    equal: bool,
}

impl Volumes {
    /// Splits `region` in proportion to `weights`.
    fn new(region: &Region, weights: &[f64]) -> Self {
        let equal = weights.windows(2).all(|pair| pair[0] == pair[1]);
        let (total, count) = (weights.iter().sum::<f64>(), weights.len() as u64);
        let slots = |weight: f64| match equal {
            true => region.sectors / count / SLOT_SECTORS,
            false => (region.sectors as f64 * weight / total) as u64 / SLOT_SECTORS,
        };
        let (mut slots_up_to, mut regions, mut sum) = (Vec::new(), Vec::new(), 0);
        for slots in weights.iter().map(|weight| slots(*weight)) {
            let (start, sectors) = (region.start + sum * SLOT_SECTORS, slots * SLOT_SECTORS);
            regions.push(Region { start, sectors });
            sum += slots;
            slots_up_to.push(sum);
        }
        let runs = regions.iter().copied().map(SequentialRuns::new).collect();
        Self { regions, runs, slots_up_to, equal }
    }

    fn slots(&self) -> u64 {
        self.slots_up_to.last().copied().unwrap_or(0)
    }

    /// The volume of slot `slot` of all, and the slot within it.
    fn locate(&self, slot: u64) -> (usize, u64) {
        let volume = self.slots_up_to.partition_point(|up_to| *up_to <= slot);
        let before = if volume == 0 { 0 } else { self.slots_up_to[volume - 1] };
        (volume, slot - before)
    }

    /// A volume, in proportion to its slots.
    fn draw(&self, stream: &mut Stream) -> usize {
        match self.equal {
            true => stream.below(self.runs.len() as u64) as usize,
            false => self.locate(stream.below(self.slots())).0,
        }
    }
}

impl Generator for Server {
    fn draw(&mut self) -> Request {
        let op = if self.stream.chance(self.read) { Op::Read } else { Op::Write };
        let sectors = self.sizes.draw(&mut self.stream).next_multiple_of(self.multiple);
        let contiguous = self.stream.chance(self.sequential);
        let stream = &mut self.stream;
        let (volume, lba) = match &mut self.locality {
            Locality::Independent(popularity) => {
                let volume = self.volumes.draw(stream);
                let slot = || popularity[volume % popularity.len()].draw(stream) * SLOT_SECTORS;
                (volume, self.volumes.runs[volume].next_lba(sectors, contiguous, slot))
            }
            Locality::Stack(_) if contiguous => {
                let volume = self.volumes.draw(stream);
                let slots = self.volumes.regions[volume].sectors / SLOT_SECTORS;
                let slot = || stream.below(slots) * SLOT_SECTORS;
                (volume, self.volumes.runs[volume].next_lba(sectors, true, slot))
            }
            Locality::Stack(stack) => {
                let (volume, slot) = self.volumes.locate(stack.draw(stream));
                let runs = &mut self.volumes.runs[volume];
                (volume, runs.next_lba(sectors, false, || slot * SLOT_SECTORS))
            }
        };
        Request { volume: volume as u16, ..Request::new(op, Lba(lba), sectors) }
    }
}

/// A server described in a paper. Sources: F is flashsim, Table 3; W is the public 60-second
/// sample of WebSearch1 (sizes, rate, sequential share).
struct Preset {
    name: &'static str,
    mean_size_bytes: f64,
    sizes: &'static [(u32, f64)],
    read: f64,
    sequential: f64,
    interarrival_ms: f64,
    volumes: u64,
    /// Shares of requests by volume; empty if they are equal.
    volume_weights: &'static [f64],
    /// (depth, share of requests below it); empty if not known.
    stack: &'static [(f64, f64)],
    requests: u64,
}

/// Units 1 to 4, 8, 9, 13, 14 and 16 of the public piece of Financial1: 4,478 requests, 9 % of them
/// reads and 5 % sequential, as in Table 3 of flashsim (9 and 2 %), which does not name its subset.
/// 327,430 requests begin at 43,600 addresses.
const FINANCIAL_SUBSET_STACK: &[(f64, f64)] = &[
    (1.0, 0.109),
    (2.0, 0.171),
    (4.0, 0.264),
    (8.0, 0.394),
    (16.0, 0.517),
    (32.0, 0.674),
    (64.0, 0.774),
    (128.0, 0.812),
    (256.0, 0.831),
    (512.0, 0.835),
    (43_600.0, 0.867),
];
/// All units of the piece but those with scans: 5,897 requests, 20 % of them reads. The whole
/// trace, with 23 % of reads, begins at 710,908 addresses.
const FINANCIAL_STACK: &[(f64, f64)] = &[
    (1.0, 0.086),
    (2.0, 0.149),
    (4.0, 0.233),
    (8.0, 0.348),
    (16.0, 0.444),
    (32.0, 0.569),
    (64.0, 0.662),
    (128.0, 0.733),
    (256.0, 0.765),
    (512.0, 0.788),
    (710_908.0, 0.867),
];
/// Requests of the piece by unit, scans included; two of the 24 units have none.
const FINANCIAL_VOLUMES: &[f64] = &[
    1013.0, 828.0, 684.0, 638.0, 355.0, 126.0, 130.0, 168.0, 272.0, 307.0, 680.0, 73.0, 168.0,
    410.0, 326.0, 61.0, 658.0, 8.0, 220.0, 1435.0, 1435.0, 5.0,
];

const PRESETS: &[Preset] = &[
    // F; 43,712 s / 133.50 ms = 327,430 requests.
    Preset {
        name: "financial",
        mean_size_bytes: 4.38 * 1024.0,
        sizes: &[],
        read: 0.09,
        sequential: 0.02,
        interarrival_ms: 133.50,
        volumes: 1,
        volume_weights: &[],
        stack: FINANCIAL_SUBSET_STACK,
        requests: 327_430,
    },
    // F; 37,058 s / 155.56 ms = 238,223 requests.
    Preset {
        name: "tpc-h",
        mean_size_bytes: 12.82 * 1024.0,
        sizes: &[],
        read: 0.95,
        sequential: 0.18,
        interarrival_ms: 155.56,
        volumes: 1,
        volume_weights: &[],
        stack: &[],
        requests: 238_223,
    },
    // op-fcl: 77 % writes over 24 units. 5,334,987 requests (public statistics) in 43,712 s (F).
    // Size and sequential share assumed as in F.
    Preset {
        name: "financial-24",
        mean_size_bytes: 4.38 * 1024.0,
        sizes: &[],
        read: 0.23,
        sequential: 0.02,
        interarrival_ms: 8.2,
        volumes: 24,
        volume_weights: FINANCIAL_VOLUMES,
        stack: FINANCIAL_STACK,
        requests: 5_334_987,
    },
    // W; 99.98 % reads, mean 30 sectors, about 413 requests/s over 6 units.
    Preset {
        name: "websearch",
        mean_size_bytes: 0.0,
        sizes: &[(16, 0.60), (32, 0.12), (48, 0.08), (64, 0.20)],
        read: 0.9998,
        sequential: 0.096,
        interarrival_ms: 1000.0 / 413.0,
        volumes: 6,
        volume_weights: &[],
        stack: &[],
        requests: 413 * 600,
    },
];

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const PRESET_NAMES: &[&str] = &["custom", "financial", "tpc-h", "financial-24", "websearch"];

hybridsim_config::choices! {
    enum LocalityModel { Independent = "independent", Stack = "stack" }
}

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        region: RegionParameters,
        sizes: SizeParameters,
    } {
        preset: String = Kind::Choice(PRESET_NAMES), default "\"financial\"",
            "The server whose figures are the defaults of the other parameters. `custom` has \
             requests of 8 KiB, half of them reads, none sequential, all arriving at time 0. \
             `financial` is the subset that flashsim used of a trace of a bank, `financial-24` the \
             whole; their hit ratios need `locality = \"stack\"`.";
        mean_size: Option<f64> = Kind::MeanBytes, optional,
            "Mean request size; sizes are geometric.";
        read: Option<f64> = SHARE, optional, "Share of reads.";
        sequential: Option<f64> = SHARE, optional,
            "Share of requests contiguous with the previous one on the same volume.";
        volumes: Option<u64> = Kind::Count { min: 1, max: VOLUMES_MAX }, optional,
            "Volumes, each with an equal part of the region and of the requests.";
        volume_weights: Option<Vec<f64>> = Kind::Numbers, optional,
            "Share of the region and of the requests of each volume, instead of `volumes`.";
        locality: LocalityModel = Kind::Choice(LocalityModel::NAMES), default "\"independent\"",
            "`independent`: blocks are popular by a power law (`theta`). `stack`: blocks are \
             chosen by stack distance (`stack_depths`), and the volumes of `financial-24` have the \
             measured shares.";
        stack_depths: Option<Vec<f64>> = Kind::Numbers, optional
            needs &[Needs::Is("locality", &["stack"])],
            "Stack distances in blocks of 4 KiB, ascending; `financial` and `financial-24` have \
             those of a public piece of the trace, up to 43,600 and 710,908 blocks. Needs \
             `stack_shares`.";
        stack_shares: Option<Vec<f64>> = Kind::Numbers, optional
            needs &[Needs::Is("locality", &["stack"])],
            "Share of requests with a smaller distance than each of `stack_depths`. The rest is \
             spread log-uniformly up to the size of the region.";
        stack_scale: f64 = Kind::Number { min: 1e-6, max: 1e6 }, default "1.0"
            needs &[Needs::Is("locality", &["stack"])],
            "Factor of all stack distances: 0.0625 for a workload a sixteenth of the size, whose \
             hit ratios are then those of caches sixteen times as large. No distance may exceed \
             the region.";
        size_multiple: u64 = Kind::Bytes, default "\"512B\"",
            "Sizes are rounded up to a multiple of this, as in simulators that only have whole \
             pages or blocks.";
        theta: f64 = Kind::Number { min: 0.0, max: 10.0 }, default "0.9"
            needs &[Needs::Is("locality", &["independent"])],
            "Exponent of the popularity of 4 KiB blocks within a volume (assumed; the papers give \
             none).";
    }
}

fn read_mix(params: &Parameters, preset: Option<&Preset>, problems: &mut Vec<Problem>) -> SizeMix {
    let own = read_sizes(&params.sizes, problems);
    let mean = params.mean_size;
    if own.is_some() && mean.is_some() {
        problems.push(Problem::new("mean_size", "give either a mean size or a histogram"));
    }
    let named = preset.filter(|preset| mean.is_none() && !preset.sizes.is_empty());
    if let Some(sizes) = own.or_else(|| named.map(|preset| Sizes::new(preset.sizes))) {
        return SizeMix::Histogram(sizes);
    }
    let mean = mean.or(preset.map(|preset| preset.mean_size_bytes)).unwrap_or(8192.0);
    let mean_sectors = mean / SECTOR_BYTES as f64;
    if !(1.0..=1e6).contains(&mean_sectors) {
        problems.push(Problem::new("mean_size", "must be from 512 bytes to 512 MB"));
    }
    // Limited to 30 times the mean: one in 10^13 is larger.
    let largest = libm::ceil(mean_sectors.clamp(1.0, 1e6) * 30.0) as u32;
    SizeMix::Geometric { mean_sectors: mean_sectors.clamp(1.0, 1e6), largest }
}

fn volume_weights(
    params: &Parameters,
    preset: Option<&Preset>,
    problems: &mut Vec<Problem>,
) -> Vec<f64> {
    let measured = preset.filter(|preset| {
        let asked = params.locality == LocalityModel::Stack && params.volumes.is_none();
        asked && !preset.volume_weights.is_empty()
    });
    let weights = params.volume_weights.clone();
    let weights = weights.or_else(|| measured.map(|preset| preset.volume_weights.to_vec()));
    let Some(weights) = weights else {
        let volumes = params.volumes.or(preset.map(|p| p.volumes)).unwrap_or(1);
        return vec![1.0; volumes as usize];
    };
    if weights.is_empty() || weights.iter().any(|weight| !weight.is_finite() || *weight <= 0.0) {
        problems.push(Problem::new("volume_weights", "must be positive numbers"));
        return vec![1.0];
    }
    if weights.len() as u64 > VOLUMES_MAX {
        let message = format!("has {} volumes; at most {VOLUMES_MAX} are possible", weights.len());
        problems.push(Problem::new("volume_weights", message));
        return vec![1.0];
    }
    if params.volumes.is_some() {
        problems.push(Problem::new("volume_weights", "give either `volumes` or their weights"));
    }
    weights
}

fn locality(
    params: &Parameters,
    preset: Option<&Preset>,
    volumes: &Volumes,
    stream: &mut Stream,
    problems: &mut Vec<Problem>,
) -> Locality {
    if params.locality == LocalityModel::Independent {
        let theta = params.theta;
        let of = |volume: &Region| Popularity::zipf(volume.sectors / SLOT_SECTORS, theta);
        let all = if volumes.equal { &volumes.regions[..1] } else { &volumes.regions };
        return Locality::Independent(all.iter().map(of).collect());
    }
    let measured = preset.map_or(&[][..], |preset| preset.stack);
    let lists = (params.stack_depths.clone(), params.stack_shares.clone());
    let (depths, shares): (Vec<f64>, Vec<f64>) = match lists {
        (None, None) => measured.iter().copied().unzip(),
        (depths, shares) => (depths.unwrap_or_default(), shares.unwrap_or_default()),
    };
    if depths.is_empty() && shares.is_empty() {
        let message = "give the distribution of stack distances; only `financial` and \
                       `financial-24` have one";
        problems.push(Problem::new("stack_depths", message));
    }
    let slots = volumes.slots();
    if slots > STACK_SLOTS_MAX {
        let message = "must be at most 256 GiB with `locality = \"stack\"`, which takes 16 bytes \
                       for each 4 KiB";
        problems.push(Problem::new("span", message));
    }
    let depths = Depths::new(&depths, &shares, params.stack_scale, slots);
    let depths = depths.unwrap_or_else(|message| {
        problems.push(Problem::new("stack_depths", message));
        Depths::new(&[], &[], 1.0, slots).expect("empty lists are fine")
    });
    let slots = if problems.is_empty() { slots as u32 } else { 1 };
    Locality::Stack(LruStack::new(slots, depths, stream))
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let preset = PRESETS.iter().find(|preset| preset.name == params.preset);
    let sizes = read_mix(&params, preset, &mut problems);
    let weights = volume_weights(&params, preset, &mut problems);
    let multiple = sectors_of("size_multiple", params.size_multiple, &mut problems);
    let largest = u64::from(sizes.largest()).next_multiple_of(u64::from(multiple));
    if largest > u64::from(u32::MAX) {
        let message = "the largest size, rounded up, has more than 2^32 - 1 sectors";
        problems.push(Problem::new("size_multiple", message));
    }
    let least = largest.saturating_mul(weights.len() as u64);
    let region = Region::new(input, &params.region, least, &mut problems);
    let volumes = Volumes::new(&region, &weights);
    if volumes.regions.iter().any(|volume| volume.sectors < largest) {
        problems.push(Problem::new("volumes", "a volume is smaller than the largest request"));
    }
    let mut stream = input.stream("requests");
    let locality = locality(&params, preset, &volumes, &mut stream, &mut problems);
    let gaps = preset.map(|preset| {
        let mean = preset.interarrival_ms;
        Interarrival::Drawn(Distribution::Exponential { base: 0.0, mean }, input.stream("gap"))
    });
    let number =
        |own: Option<f64>, of: fn(&Preset) -> f64, custom| own.or(preset.map(of)).unwrap_or(custom);
    let generator = problems.is_empty().then(|| Server {
        sizes,
        multiple,
        read: number(params.read, |preset| preset.read, 0.5),
        sequential: number(params.sequential, |preset| preset.sequential, 0.0),
        locality,
        volumes,
        stream,
    });
    let limits = &params.arrivals.limits;
    let ends = limits.bytes.is_some() || limits.duration.is_some();
    let own = preset.filter(|_| !ends).map_or(Limits::NONE, |p| Limits::requests(p.requests));
    build_workload(input, &params.arrivals, generator, own, gaps, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "server",
        summary: "A server given by totals: mean size, reads, sequential share, rate, volumes.",
        origin: "flashsim, Table 3; op-fcl (workload recipes W6 and W8)",
        params: Parameters::PARAMS,
    },
    build,
};
