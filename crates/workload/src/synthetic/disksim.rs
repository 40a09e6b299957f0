//! DiskSim's generator: a request is sequential, local or anywhere, with its own distribution of
//! arrival gaps each.
//!
//! A sequential request starts where the one before ended and inherits its size and direction. A
//! local one starts a drawn distance from where the one before started. Values that do not fit
//! are drawn again. `critical` requests, which DiskSim's process waits for, are marked as
//! synchronous; in a closed loop every request is waited for anyway, so a closed DiskSim workload
//! is this generator without `interarrival_ms`. DiskSim's thinking between a completion and the
//! next request is not part of it: a workload cannot see completions before it is asked again.

use super::pace::{
    BYTES, DURATION, Gaps, Generate, INTERARRIVAL, Limits, REDRAWS_MAX, REQUESTS, check_draws,
    draw_ms, finish,
};
use super::place::{Region, SIZE, START, sectors_of};
use super::{GeneratorEntry, GeneratorInput, distribution};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{Flags, Lba, Op, Request, SimDuration, Source, Stream};

#[derive(Clone, Copy, Debug)]
enum Kinship {
    Sequential,
    Local,
    General,
}

/// Draws as DiskSim does.
#[derive(Clone, Debug)]
struct DiskSim {
    region: Region,
    blocking: u64,
    sequential: f64,
    local: f64,
    read: f64,
    critical: f64,
    size_sectors: Distribution,
    local_distance_sectors: Distribution,
    /// Gaps before sequential and local requests, where they differ from the general ones.
    sequential_gap_ms: Option<Distribution>,
    local_gap_ms: Option<Distribution>,
    before: Option<Request>,
    kinship: Kinship,
    stream: Stream,
    gaps: Stream,
}

impl DiskSim {
    fn sequential(&mut self) -> Option<Request> {
        let before = self.before?;
        let fits = before.end().0 + u64::from(before.sectors) <= self.region.end();
        fits.then(|| Request { lba: before.end(), flags: Flags::NONE, ..before })
    }

    /// Draws a size, in whole blocks of the blocking factor, that fits the region.
    fn size(&mut self) -> u64 {
        let max = (self.region.sectors / self.blocking * self.blocking).min(u64::from(u32::MAX));
        for _ in 0..REDRAWS_MAX {
            let sectors = libm::ceil(self.size_sectors.draw(&mut self.stream));
            if sectors >= 1.0 && sectors <= max as f64 {
                return (sectors as u64).next_multiple_of(self.blocking).min(max);
            }
        }
        self.blocking
    }

    fn local_lba(&mut self, before: Lba, sectors: u64) -> Option<u64> {
        let last = (self.region.end() - sectors) as f64;
        for _ in 0..REDRAWS_MAX {
            let distance = self.local_distance_sectors.draw(&mut self.stream);
            let lba = libm::round(before.0 as f64 + distance);
            if lba >= self.region.start as f64 && lba <= last {
                let offset = lba as u64 - self.region.start;
                let offset = offset / self.blocking * self.blocking;
                return Some(self.region.start + offset);
            }
        }
        None
    }
}

impl Generate for DiskSim {
    fn draw(&mut self) -> Request {
        let choice = self.stream.unit();
        let mut request = None;
        self.kinship = Kinship::General;
        if choice < self.sequential {
            request = self.sequential();
            self.kinship = request.map_or(Kinship::General, |_| Kinship::Sequential);
        }
        let mut request = request.unwrap_or_else(|| {
            let op = if self.stream.chance(self.read) { Op::Read } else { Op::Write };
            let sectors = self.size();
            let local = choice >= self.sequential && choice < self.sequential + self.local;
            let near = self.before.filter(|_| local);
            let near = near.and_then(|before| self.local_lba(before.lba, sectors));
            if near.is_some() {
                self.kinship = Kinship::Local;
            }
            let lba = near.unwrap_or_else(|| {
                let places = (self.region.sectors - sectors) / self.blocking + 1;
                self.region.start + self.stream.below(places) * self.blocking
            });
            Request::new(op, Lba(lba), sectors as u32)
        });
        if self.stream.chance(self.critical) {
            request.flags = Flags::SYNC;
        }
        self.before = Some(request);
        request
    }

    fn gap(&mut self) -> Option<SimDuration> {
        let own = match self.kinship {
            Kinship::Sequential => self.sequential_gap_ms.as_ref(),
            Kinship::Local => self.local_gap_ms.as_ref(),
            Kinship::General => None,
        };
        own.map(|distribution| draw_ms(distribution, &mut self.gaps))
    }
}

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const PARAMS: &[Param] = &[
    REQUESTS,
    BYTES,
    DURATION,
    INTERARRIVAL,
    START,
    SIZE,
    Param::with("blocking", Kind::Bytes, "\"4KiB\"", "Sizes and addresses are multiples of it."),
    Param::with("sequential", SHARE, "0.2", "Probability that a request follows the one before."),
    Param::with("local", SHARE, "0.3", "Probability that a request is near the one before."),
    Param::with("read", SHARE, "0.66", "Probability that a request is a read."),
    Param::with("critical", SHARE, "0", "Probability that a request is waited for (synchronous)."),
    Param::with(
        "size_sectors",
        distribution::KIND,
        "{ kind = \"exponential\", mean = 8 }",
        "Size in sectors of 512 bytes, rounded up to `blocking`.",
    ),
    Param::with(
        "local_distance_sectors",
        distribution::KIND,
        "{ kind = \"normal\", mean = 0, stddev = 40000 }",
        "Distance of a local request from the start of the one before, in sectors.",
    ),
    Param::optional(
        "sequential_interarrival_ms",
        distribution::KIND,
        "Gap before a sequential request, if not `interarrival_ms`.",
    ),
    Param::optional(
        "local_interarrival_ms",
        distribution::KIND,
        "Gap before a local request, if not `interarrival_ms`.",
    ),
];

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let settings = input.settings;
    let mut problems = Vec::new();
    let blocking = u64::from(sectors_of(input, "blocking", &mut problems));
    let region = Region::read(input, blocking, &mut problems);
    let (sequential, local) = (settings.number("sequential"), settings.number("local"));
    if sequential + local > 1.0 + 1e-9 {
        let message = format!("sequential {sequential} and local {local} add up to more than 1");
        problems.push(Problem::new("local", message));
    }
    let size = input.distribution("size_sectors", &mut problems);
    if let Some(size) = &size {
        let fits = |sectors: f64| sectors > 0.0 && libm::ceil(sectors) <= region.sectors as f64;
        let what = "a size that fits the region";
        check_draws("size_sectors", size, fits, what, &mut problems);
    }
    let distance = input.distribution("local_distance_sectors", &mut problems);
    let mut gap = |name| {
        let gap = input.distribution(name, &mut problems);
        if let Some(gap) = &gap {
            check_draws(name, gap, |ms| ms >= 0.0, "a time of at least 0", &mut problems);
            if !settings.has("interarrival_ms") {
                problems.push(Problem::new(name, "needs `interarrival_ms` as well"));
            }
        }
        gap
    };
    let sequential_gap_ms = gap("sequential_interarrival_ms");
    let local_gap_ms = gap("local_interarrival_ms");
    let generator = size.zip(distance).map(|(size_sectors, local_distance_sectors)| DiskSim {
        region,
        blocking,
        sequential,
        local,
        read: settings.number("read"),
        critical: settings.number("critical"),
        size_sectors,
        local_distance_sectors,
        sequential_gap_ms,
        local_gap_ms,
        before: None,
        kinship: Kinship::General,
        stream: input.stream("requests"),
        gaps: input.stream("own-gaps"),
    });
    finish(input, generator, Limits::NONE, None::<Gaps>, problems)
}

/// The generator.
pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "disksim",
        summary: "Sequential, local and general requests as DiskSim's synthetic generator draws \
                  them.",
        origin: "DiskSim 4.0 (Bucy, Schindler, Schlosser, Ganger 2008), workload recipe W0",
        params: PARAMS,
    },
    build,
};
