//! Server workloads given by a few totals: mean size, share of reads, share of sequential requests,
//! mean interarrival time. Block popularity follows a power law; there can be several volumes.

use super::addresses::{Popularity, REGION, Region, SequentialRuns};
use super::arrivals::{Generator, Interarrival, LIMITS_AND_ARRIVALS, Limits, build_workload};
use super::histogram::{SIZES, Sizes, WEIGHTS, read_sizes};
use super::{GeneratorEntry, GeneratorInput, params};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::{Distribution, standard_exponential};
use hybridsim_engine::{Lba, Op, Request, SECTOR_BYTES, Source, Stream};

/// Sectors of a slot, the unit of popularity: 4 KiB.
const SLOT_SECTORS: u64 = 8;

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
    read: f64,
    sequential: f64,
    popularity: Popularity,
    volumes: Vec<SequentialRuns>,
    stream: Stream,
}

impl Generator for Server {
    fn draw(&mut self) -> Request {
        let op = if self.stream.chance(self.read) { Op::Read } else { Op::Write };
        let sectors = self.sizes.draw(&mut self.stream);
        let contiguous = self.stream.chance(self.sequential);
        let volume = self.stream.below(self.volumes.len() as u64);
        let (stream, popularity) = (&mut self.stream, &self.popularity);
        let runs = &mut self.volumes[volume as usize];
        let lba = runs.next_lba(sectors, contiguous, || popularity.draw(stream) * SLOT_SECTORS);
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
    requests: u64,
}

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
        requests: 238_223,
    },
    // op-fcl: 77 % writes over 24 units; size, sequential share and rate assumed as in F.
    Preset {
        name: "financial-24",
        mean_size_bytes: 4.38 * 1024.0,
        sizes: &[],
        read: 0.23,
        sequential: 0.02,
        interarrival_ms: 133.50,
        volumes: 24,
        requests: 327_430,
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
        requests: 413 * 600,
    },
];

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const PARAMS: &[Param] = &[
    Param::with(
        "preset",
        Kind::Choice(&["custom", "financial", "tpc-h", "financial-24", "websearch"]),
        "\"financial\"",
        "The server whose figures are the defaults of the other parameters. `custom` has requests \
         of 8 KiB, half of them reads, none sequential, all arriving at time 0.",
    ),
    Param::optional("mean_size", Kind::Bytes, "Mean request size; sizes are geometric."),
    SIZES,
    WEIGHTS,
    Param::optional("read", SHARE, "Share of reads."),
    Param::optional(
        "sequential",
        SHARE,
        "Share of requests contiguous with the previous one on the same volume.",
    ),
    Param::optional(
        "volumes",
        Kind::Count { min: 1, max: 65_536 },
        "Volumes, each with an equal part of the region and of the requests.",
    ),
    Param::with(
        "theta",
        Kind::Number { min: 0.0, max: 10.0 },
        "0.9",
        "Exponent of the popularity of 4 KiB blocks within a volume (assumed; the papers give \
         none).",
    ),
];

fn read_mix(
    input: &GeneratorInput<'_>,
    preset: Option<&Preset>,
    problems: &mut Vec<Problem>,
) -> SizeMix {
    let own = read_sizes(input.settings, problems);
    let mean = input.settings.bytes_opt("mean_size").map(|bytes| bytes as f64);
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

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let settings = input.settings;
    let mut problems = Vec::new();
    let preset = PRESETS.iter().find(|preset| preset.name == settings.text("preset"));
    let sizes = read_mix(input, preset, &mut problems);
    let volumes = settings.count_opt("volumes").or(preset.map(|p| p.volumes)).unwrap_or(1);
    let largest = u64::from(sizes.largest());
    let region = Region::from_settings(input, largest.saturating_mul(volumes), &mut problems);
    let part = region.sectors / volumes / SLOT_SECTORS * SLOT_SECTORS;
    if part < largest {
        problems.push(Problem::new("volumes", "a volume is smaller than the largest request"));
    }
    let gaps = preset.map(|preset| {
        let mean = preset.interarrival_ms;
        Interarrival::Drawn(Distribution::Exponential { base: 0.0, mean }, input.stream("gap"))
    });
    let number = |name, of: fn(&Preset) -> f64, custom| {
        settings.number_opt(name).or(preset.map(of)).unwrap_or(custom)
    };
    let generator = problems.is_empty().then(|| Server {
        sizes,
        read: number("read", |preset| preset.read, 0.5),
        sequential: number("sequential", |preset| preset.sequential, 0.0),
        popularity: Popularity::zipf(part / SLOT_SECTORS, settings.number("theta")),
        volumes: (0..volumes)
            .map(|index| Region { start: region.start + index * part, sectors: part })
            .map(SequentialRuns::new)
            .collect(),
        stream: input.stream("requests"),
    });
    let ends = ["bytes", "duration"].iter().any(|name| settings.has(name));
    let own = preset.filter(|_| !ends).map_or(Limits::NONE, |p| Limits::requests(p.requests));
    build_workload(input, generator, own, gaps, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "server",
        summary: "A server given by totals: mean size, reads, sequential share, rate, volumes.",
        origin: "flashsim, Table 3; op-fcl (workload recipes W6 and W8)",
        params: params![LIMITS_AND_ARRIVALS, REGION, PARAMS],
    },
    build,
};
