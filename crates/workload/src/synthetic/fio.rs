//! Workloads in fio's terms: `rw`, `bs`, `bssplit`, `rwmixread`, `percentage_random`,
//! `random_distribution`, `norandommap`.
//!
//! Queue depth (`iodepth`) belongs to the host. As in fio, sequential reads, writes and trims
//! each continue at the end of the previous one, and random ones access every block once per pass
//! unless `norandommap` is set or the distribution is not `random`.

use super::addresses::{Popularity, REGION, Region, Zone, sectors_of};
use super::arrivals::{Generator, Interarrival, LIMITS_AND_ARRIVALS, Limits, build_workload};
use super::fio_text::{RandomDistribution, parse_bssplit, parse_distribution, parse_percentages};
use super::histogram::Sizes;
use super::{GeneratorEntry, GeneratorInput, params};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{Lba, Op, Permutation, Request, SimDuration, Source, Stream};

/// How offsets are generated.
#[derive(Clone, Debug)]
enum Offsets {
    Sequential,
    /// The random map: every block once per pass.
    RandomMap {
        shuffle: Permutation,
        blocks: u64,
        next: u64,
    },
    Random(Popularity),
}

/// The data direction, fio's `rw`.
#[derive(Clone, Copy, Debug)]
enum DataDirection {
    Always(Op),
    Mixed { read: f64 },
    TrimWrite,
}

#[derive(Clone, Debug)]
struct Fio {
    region: Region,
    direction: DataDirection,
    offsets: Offsets,
    /// Share of reads, writes and trims that are random where `rw` is.
    random: [f64; 3],
    /// Per operation, the end of the previous request.
    next: [u64; 4],
    /// Sizes of reads, writes and trims.
    sizes: [Sizes; 3],
    /// Sectors of the smallest block, the unit of offsets.
    unit: u64,
    /// The block just trimmed, to be written next.
    trimmed: Option<Request>,
    stream: Stream,
}

impl Fio {
    fn offset(&mut self, op: Op, sectors: u64) -> u64 {
        let last = self.region.sectors - sectors;
        let share = self.random[op as usize];
        let is_random = share >= 1.0 || share > 0.0 && self.stream.chance(share);
        let next = self.next[op as usize];
        let offset = match &mut self.offsets {
            Offsets::Random(popularity) if is_random => {
                (popularity.draw(&mut self.stream) * self.unit).min(last / self.unit * self.unit)
            }
            Offsets::RandomMap { shuffle, blocks, next } if is_random => {
                if *next == *blocks {
                    *shuffle = Permutation::new(*blocks, &mut self.stream);
                    *next = 0;
                }
                *next += 1;
                shuffle.map(*next - 1) * self.unit
            }
            _ if next > last => 0,
            _ => next,
        };
        self.next[op as usize] = offset + sectors;
        offset
    }
}

impl Generator for Fio {
    fn draw(&mut self) -> Request {
        if let Some(trimmed) = self.trimmed.take() {
            return Request { op: Op::Write, ..trimmed };
        }
        let op = match self.direction {
            DataDirection::Always(op) => op,
            DataDirection::TrimWrite => Op::Trim,
            DataDirection::Mixed { read } if self.stream.chance(read) => Op::Read,
            DataDirection::Mixed { .. } => Op::Write,
        };
        let sectors = self.sizes[op as usize].draw(&mut self.stream);
        let offset = self.offset(op, u64::from(sectors));
        let request = Request::new(op, Lba(self.region.start + offset), sectors);
        self.trimmed = matches!(self.direction, DataDirection::TrimWrite).then_some(request);
        request
    }
}

const MODES: &[&str] = &[
    "read",
    "write",
    "randread",
    "randwrite",
    "rw",
    "randrw",
    "trim",
    "randtrim",
    "trimwrite",
    "randtrimwrite",
];
const RANDOM_MODES: &[&str] = &["randread", "randwrite", "randrw", "randtrim", "randtrimwrite"];
const PARAMS: &[Param] = &[
    Param::with("rw", Kind::Choice(MODES), "\"read\"", "Operations, sequential or random."),
    Param::with("bs", Kind::Bytes, "\"4KiB\"", "Bytes of a request."),
    Param::optional(
        "bssplit",
        Kind::Text,
        "Sizes with percentages instead of `bs`, as in `4k/60:64k/40`; a comma separates reads, \
         writes and trims.",
    ),
    Param::with(
        "rwmixread",
        Kind::Number { min: 0.0, max: 100.0 },
        "50",
        "Percentage of reads in a mix.",
    )
    .needs(&[Needs::Is("rw", &["rw", "randrw"])]),
    Param::with(
        "percentage_random",
        Kind::Text,
        "\"100\"",
        "Percentage of random requests where `rw` is random; the others continue at the end of the \
         previous one of their kind. Commas separate reads, writes and trims: `100,0` reads at \
         random and writes in order.",
    )
    .needs(&[Needs::Is("rw", RANDOM_MODES)]),
    Param::with(
        "random_distribution",
        Kind::Text,
        "\"random\"",
        "random, zipf:THETA, pareto:H, normal:PERCENT or zoned:ACCESS/SIZE:...",
    ),
    Param::with(
        "norandommap",
        Kind::Flag,
        "false",
        "Random requests may access a block again before all blocks have been accessed.",
    ),
    Param::optional(
        "rate_iops",
        Kind::Number { min: 1e-6, max: 1e9 },
        "Arrivals per second, instead of `interarrival_ms`.",
    ),
    Param::with(
        "rate_process",
        Kind::Choice(&["linear", "poisson"]),
        "\"linear\"",
        "Constant or exponential interarrival times of `rate_iops`.",
    )
    .needs(&[Needs::given("rate_iops")]),
];

fn read_sizes(input: &GeneratorInput<'_>, problems: &mut Vec<Problem>) -> (Vec<Sizes>, u64, u64) {
    let bs = sectors_of(input, "bs", problems);
    let mut splits = vec![vec![(bs, 100.0)]];
    if let Some(text) = input.settings.text_opt("bssplit") {
        match parse_bssplit(text) {
            Ok(parsed) => splits = parsed,
            Err(message) => problems.push(Problem::new("bssplit", message)),
        }
    }
    let used = splits.iter().flatten().filter(|(_, percent)| *percent > 0.0);
    let used: Vec<u64> = used.map(|(sectors, _)| u64::from(*sectors)).collect();
    let smallest = used.iter().copied().min().unwrap_or(1);
    let largest = used.iter().copied().max().unwrap_or(1);
    (splits.iter().map(|split| Sizes::new(split)).collect(), smallest, largest)
}

fn popularity(distribution: RandomDistribution, blocks: u64) -> Result<Popularity, String> {
    let share = |percent: f64| percent / 100.0;
    Ok(match distribution {
        RandomDistribution::Uniform => Popularity::Uniform(blocks),
        RandomDistribution::Zipf(theta) => Popularity::zipf(blocks, theta),
        RandomDistribution::Pareto(h) => Popularity::pareto(blocks, h),
        RandomDistribution::Normal(percent) => {
            Popularity::Normal { n: blocks, stddev: share(percent) * blocks as f64 }
        }
        RandomDistribution::Zoned(list) => {
            let (mut accesses_up_to, mut at) = (0.0, 0.0);
            let mut zones = Vec::new();
            for (accesses, size) in list {
                let start = (share(at) * blocks as f64) as u64;
                at += size;
                let end = ((share(at) * blocks as f64) as u64).min(blocks);
                accesses_up_to += share(accesses);
                if accesses > 0.0 {
                    let slots = end.saturating_sub(start);
                    zones.push(Zone { accesses_up_to, start, slots });
                }
            }
            if zones.iter().any(|zone| zone.slots == 0) {
                return Err("a zone is smaller than a block: use a larger region".to_owned());
            }
            Popularity::Zoned(zones)
        }
    })
}

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let settings = input.settings;
    let mut problems = Vec::new();
    let (sizes, unit, largest) = read_sizes(input, &mut problems);
    let region = Region::from_settings(input, largest, &mut problems);
    let blocks = (region.sectors / unit).max(1);
    let mut stream = input.stream("requests");
    let mode = settings.text("rw");
    let distribution = parse_distribution(settings.text("random_distribution"))
        .map_err(|message| problems.push(Problem::new("random_distribution", message)))
        .unwrap_or(RandomDistribution::Uniform);
    let mapped = !settings.flag("norandommap") && distribution == RandomDistribution::Uniform;
    let random = parse_percentages(settings.text("percentage_random")).unwrap_or_else(|message| {
        problems.push(Problem::new("percentage_random", message));
        [1.0; 3]
    });
    let offsets = if !mode.starts_with("rand") {
        Offsets::Sequential
    } else if mapped {
        if unit != largest {
            let message = "block sizes differ, but the random map needs one size; set \
                           `norandommap = true`";
            problems.push(Problem::new("norandommap", message));
        }
        Offsets::RandomMap { shuffle: Permutation::new(blocks, &mut stream), blocks, next: 0 }
    } else {
        let popularity = popularity(distribution, blocks);
        Offsets::Random(popularity.unwrap_or_else(|message| {
            problems.push(Problem::new("random_distribution", message));
            Popularity::Uniform(blocks)
        }))
    };
    let direction = match mode.trim_start_matches("rand") {
        "read" => DataDirection::Always(Op::Read),
        "write" => DataDirection::Always(Op::Write),
        "trim" => DataDirection::Always(Op::Trim),
        "trimwrite" => DataDirection::TrimWrite,
        _ => DataDirection::Mixed { read: settings.number("rwmixread") / 100.0 },
    };
    let gaps = rate(input, &mut problems);
    let sizes = std::array::from_fn(|op| sizes.get(op).unwrap_or(&sizes[0]).clone());
    let next = [0; 4];
    let fio = Fio { region, direction, offsets, random, next, sizes, unit, trimmed: None, stream };
    // As in fio, a job ends after as many bytes as its region has.
    let given = ["requests", "bytes", "duration"].iter().any(|name| settings.has(name));
    let own = Limits { sectors: region.sectors, ..Limits::NONE };
    build_workload(input, Some(fio), if given { Limits::NONE } else { own }, gaps, problems)
}

fn rate(input: &GeneratorInput<'_>, problems: &mut Vec<Problem>) -> Option<Interarrival> {
    let rate = input.settings.number_opt("rate_iops")?;
    if input.settings.has("interarrival_ms") {
        problems.push(Problem::new("rate_iops", "give either `rate_iops` or `interarrival_ms`"));
    }
    let mean = 1000.0 / rate;
    Some(if input.settings.text("rate_process") == "poisson" {
        Interarrival::Drawn(Distribution::Exponential { base: 0.0, mean }, input.stream("gap"))
    } else {
        Interarrival::Fixed(SimDuration::from_ns_f64(mean * 1e6))
    })
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "fio",
        summary: "Workloads with the parameters of fio job files.",
        origin: "the documented behaviour of fio 3",
        params: params![LIMITS_AND_ARRIVALS, REGION, PARAMS],
    },
    build,
};
