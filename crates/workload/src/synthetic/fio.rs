//! Workloads in fio's terms: `rw`, `bs`, `bssplit`, `rwmixread`, `percentage_random`,
//! `random_distribution`, `norandommap`.
//!
//! Queue depth (`iodepth`) belongs to the host. As in fio, sequential reads, writes and trims
//! each continue at the end of the previous one, and random ones access every block once per pass
//! unless `norandommap` is set or the distribution is not `random`.

use super::addresses::{Popularity, Region, RegionParameters, Zone, sectors_of};
use super::arrivals::{self, Generator, Interarrival, Limits, build_workload};
use super::fio_text::{RandomDistribution, parse_bssplit, parse_distribution, parse_percentages};
use super::histogram::Sizes;
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{Lba, Op, Permutation, Request, SimDuration, Source, Stream};

/// Generation of offsets.
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
        let share = self.random[op.index()];
        let is_random = share >= 1.0 || share > 0.0 && self.stream.chance(share);
        let next = self.next[op.index()];
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
        self.next[op.index()] = offset + sectors;
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
        let sectors = self.sizes[op.index()].draw(&mut self.stream);
        let offset = self.offset(op, u64::from(sectors));
        let request = Request::new(op, Lba(self.region.start + offset), sectors);
        self.trimmed = matches!(self.direction, DataDirection::TrimWrite).then_some(request);
        request
    }
}

hybridsim_config::choices! {
    /// Operations, and their order.
    enum Mode {
        Read = "read",
        Write = "write",
        RandRead = "randread",
        RandWrite = "randwrite",
        Mixed = "rw",
        RandMixed = "randrw",
        Trim = "trim",
        RandTrim = "randtrim",
        TrimWrite = "trimwrite",
        RandTrimWrite = "randtrimwrite",
    }
}

impl Mode {
    const fn is_random(self) -> bool {
        matches!(
            self,
            Self::RandRead
                | Self::RandWrite
                | Self::RandMixed
                | Self::RandTrim
                | Self::RandTrimWrite
        )
    }
}

hybridsim_config::choices! {
    /// Distribution of interarrival times.
    enum RateProcess { Linear = "linear", Poisson = "poisson" }
}

const RANDOM_MODES: &[&str] = &["randread", "randwrite", "randrw", "randtrim", "randtrimwrite"];

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        region: RegionParameters,
    } {
        rw: Mode = Kind::Choice(Mode::NAMES), default "\"read\"",
            "Operations, sequential or random.";
        bs: u64 = Kind::Bytes, default "\"4KiB\"" needs &[Needs::absent("bssplit")],
            "Bytes of a request.";
        bssplit: Option<String> = Kind::Text, optional,
            "Sizes with percentages instead of `bs`, as in `4k/60:64k/40`; a comma separates \
             reads, writes and trims.";
        rwmixread: f64 = Kind::Number { min: 0.0, max: 100.0 }, default "50"
            needs &[Needs::Is("rw", &["rw", "randrw"])],
            "Percentage of reads in a mix.";
        percentage_random: String = Kind::Text, default "\"100\""
            needs &[Needs::Is("rw", RANDOM_MODES)],
            "Percentage of random requests where `rw` is random; the others continue at the end of \
             the previous one of their kind. Commas separate reads, writes and trims: `100,0` \
             reads at random and writes in order.";
        random_distribution: String = Kind::Text, default "\"random\""
            needs &[Needs::Is("rw", RANDOM_MODES)],
            "random, zipf:THETA, pareto:H, normal:PERCENT or zoned:ACCESS/SIZE:...";
        norandommap: bool = Kind::Flag, default "false"
            needs &[Needs::Is("rw", RANDOM_MODES), Needs::Is("random_distribution", &["random"])],
            "Random requests may access a block again before all blocks have been accessed.";
        rate_iops: Option<f64> = Kind::Number { min: 1e-6, max: 1e9 }, optional,
            "Arrivals per second, instead of `interarrival_ms`.";
        rate_process: RateProcess = Kind::Choice(RateProcess::NAMES), default "\"linear\""
            needs &[Needs::given("rate_iops")],
            "Constant or exponential interarrival times of `rate_iops`.";
    }
}

fn read_sizes(params: &Parameters, problems: &mut Vec<Problem>) -> (Vec<Sizes>, u64, u64) {
    let bs = sectors_of("bs", params.bs, problems);
    let mut splits = vec![vec![(bs, 100.0)]];
    if let Some(text) = &params.bssplit {
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

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let (sizes, unit, largest) = read_sizes(&params, &mut problems);
    let region = Region::new(input, &params.region, largest, &mut problems);
    let blocks = (region.sectors / unit).max(1);
    let mut stream = input.stream("requests");
    let distribution = parse_distribution(&params.random_distribution)
        .map_err(|message| problems.push(Problem::new("random_distribution", message)))
        .unwrap_or(RandomDistribution::Uniform);
    let mapped = !params.norandommap && distribution == RandomDistribution::Uniform;
    let random = parse_percentages(&params.percentage_random).unwrap_or_else(|message| {
        problems.push(Problem::new("percentage_random", message));
        [1.0; 3]
    });
    let offsets = if !params.rw.is_random() {
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
    let direction = match params.rw {
        Mode::Read | Mode::RandRead => DataDirection::Always(Op::Read),
        Mode::Write | Mode::RandWrite => DataDirection::Always(Op::Write),
        Mode::Trim | Mode::RandTrim => DataDirection::Always(Op::Trim),
        Mode::TrimWrite | Mode::RandTrimWrite => DataDirection::TrimWrite,
        Mode::Mixed | Mode::RandMixed => DataDirection::Mixed { read: params.rwmixread / 100.0 },
    };
    let gaps = rate(input, &params, &mut problems);
    let sizes = std::array::from_fn(|op| sizes.get(op).unwrap_or(&sizes[0]).clone());
    let next = [0; 4];
    let fio = Fio { region, direction, offsets, random, next, sizes, unit, trimmed: None, stream };
    // As in fio, a job ends after as many bytes as its region has; beside others it goes on.
    let own = match params.arrivals.limits.is_given() || input.may_be_endless {
        true => Limits::NONE,
        false => Limits { sectors: region.sectors, ..Limits::NONE },
    };
    build_workload(input, &params.arrivals, Some(fio), own, gaps, problems)
}

fn rate(
    input: &GeneratorInput<'_>,
    params: &Parameters,
    problems: &mut Vec<Problem>,
) -> Option<Interarrival> {
    let rate = params.rate_iops?;
    if params.arrivals.interarrival_ms.is_some() {
        problems.push(Problem::new("rate_iops", "give either `rate_iops` or `interarrival_ms`"));
    }
    let mean = 1000.0 / rate;
    Some(if params.rate_process == RateProcess::Poisson {
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
        params: Parameters::PARAMS,
    },
    build,
};
