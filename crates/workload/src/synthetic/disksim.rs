//! DiskSim's generator: requests are sequential, local or general, each class with its own
//! distribution of interarrival times.
//!
//! A sequential request starts where the previous one ended and has its size and direction. A local
//! one starts at a drawn distance from the start of the previous one. Values that do not fit are
//! drawn again. `critical` requests, for which DiskSim's process waits, are marked as synchronous;
//! a closed loop waits for every request, so a closed DiskSim workload is this generator without
//! `interarrival_ms`. Think times between a completion and the next request are not modelled here
//! but in `processes`.

use super::addresses::{Region, RegionParameters, sectors_of};
use super::arrivals::{
    self, Generator, Interarrival, Limits, REDRAWS_MAX, build_workload, check_draws, draw_ms,
};
use super::{GeneratorEntry, GeneratorInput, distribution};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{Flags, Lba, Op, Request, SimDuration, Source, Stream};

#[derive(Clone, Copy, Debug)]
enum Locality {
    Sequential,
    Local,
    General,
}

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
    /// Interarrival times of sequential and local requests, where they differ from general ones.
    sequential_gap_ms: Option<Distribution>,
    local_gap_ms: Option<Distribution>,
    before: Option<Request>,
    locality: Locality,
    stream: Stream,
    gaps: Stream,
}

impl DiskSim {
    fn sequential(&mut self) -> Option<Request> {
        let before = self.before?;
        let fits = before.end().0 + u64::from(before.sectors) <= self.region.end();
        fits.then(|| Request { lba: before.end(), flags: Flags::NONE, ..before })
    }

    /// Draws a size in whole blocks that fits the region.
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

impl Generator for DiskSim {
    fn draw(&mut self) -> Request {
        let choice = self.stream.unit();
        let mut request = None;
        self.locality = Locality::General;
        if choice < self.sequential {
            request = self.sequential();
            self.locality = request.map_or(Locality::General, |_| Locality::Sequential);
        }
        let mut request = request.unwrap_or_else(|| {
            let op = if self.stream.chance(self.read) { Op::Read } else { Op::Write };
            let sectors = self.size();
            let local = choice >= self.sequential && choice < self.sequential + self.local;
            let local_lba = self.before.filter(|_| local);
            let local_lba = local_lba.and_then(|before| self.local_lba(before.lba, sectors));
            if local_lba.is_some() {
                self.locality = Locality::Local;
            }
            let lba = local_lba.unwrap_or_else(|| {
                let blocks = (self.region.sectors - sectors) / self.blocking + 1;
                self.region.start + self.stream.below(blocks) * self.blocking
            });
            Request::new(op, Lba(lba), sectors as u32)
        });
        if self.stream.chance(self.critical) {
            request.flags = Flags::SYNC;
        }
        self.before = Some(request);
        request
    }

    fn sets_times(&self) -> bool {
        true
    }

    fn interarrival(&mut self) -> Option<SimDuration> {
        let own = match self.locality {
            Locality::Sequential => self.sequential_gap_ms.as_ref(),
            Locality::Local => self.local_gap_ms.as_ref(),
            Locality::General => None,
        };
        own.map(|distribution| draw_ms(distribution, &mut self.gaps))
    }
}

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        region: RegionParameters,
    } {
        blocking: u64 = Kind::Bytes, default "\"4KiB\"", "Sizes and addresses are multiples of it.";
        sequential: f64 = SHARE, default "0.2", "Probability of a sequential request.";
        local: f64 = SHARE, default "0.3", "Probability of a local request.";
        read: f64 = SHARE, default "0.66", "Probability of a read.";
        critical: f64 = SHARE, default "0", "Probability of a time-critical (synchronous) request.";
        size_sectors: EntryChoice = distribution::KIND,
            default "{ kind = \"exponential\", mean = 8 }",
            "Size in sectors of 512 bytes, rounded up to `blocking`.";
        local_distance_sectors: EntryChoice = distribution::KIND,
            default "{ kind = \"normal\", mean = 0, stddev = 40000 }"
            needs &[Needs::above_zero("local")],
            "Distance of a local request from the start of the previous one, in sectors.";
        sequential_interarrival_ms: Option<EntryChoice> = distribution::KIND, optional
            needs &[Needs::above_zero("sequential")],
            "As `interarrival_ms`, before a sequential request.";
        local_interarrival_ms: Option<EntryChoice> = distribution::KIND, optional
            needs &[Needs::above_zero("local")],
            "As `interarrival_ms`, before a local request.";
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let blocking = u64::from(sectors_of("blocking", params.blocking, &mut problems));
    let region = Region::new(input, &params.region, blocking, &mut problems);
    let (sequential, local) = (params.sequential, params.local);
    if sequential + local > 1.0 + 1e-9 {
        let message = format!("sequential {sequential} and local {local} add up to more than 1");
        problems.push(Problem::new("local", message));
    }
    let size = input.distribution("size_sectors", &params.size_sectors, &mut problems);
    if let Some(size) = &size {
        let fits = |sectors: f64| sectors > 0.0 && libm::ceil(sectors) <= region.sectors as f64;
        let what = "a size that fits the region";
        check_draws("size_sectors", size, fits, what, &mut problems);
    }
    let distance = &params.local_distance_sectors;
    let distance = input.distribution("local_distance_sectors", distance, &mut problems);
    let mut gap = |name, choice: &Option<EntryChoice>| {
        let gap = input.distribution(name, choice.as_ref()?, &mut problems);
        if let Some(gap) = &gap {
            check_draws(name, gap, |ms| ms >= 0.0, "a time of at least 0", &mut problems);
            if params.arrivals.interarrival_ms.is_none() {
                problems.push(Problem::new(name, "needs `interarrival_ms` as well"));
            }
        }
        gap
    };
    let sequential_gap_ms = gap("sequential_interarrival_ms", &params.sequential_interarrival_ms);
    let local_gap_ms = gap("local_interarrival_ms", &params.local_interarrival_ms);
    let generator = size.zip(distance).map(|(size_sectors, local_distance_sectors)| DiskSim {
        region,
        blocking,
        sequential,
        local,
        read: params.read,
        critical: params.critical,
        size_sectors,
        local_distance_sectors,
        sequential_gap_ms,
        local_gap_ms,
        before: None,
        locality: Locality::General,
        stream: input.stream("requests"),
        gaps: input.stream("own-gaps"),
    });
    build_workload(input, &params.arrivals, generator, Limits::NONE, None::<Interarrival>, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "disksim",
        summary: "Sequential, local and general requests as in DiskSim's synthetic generator.",
        origin: "DiskSim 4.0 (Bucy, Schindler, Schlosser, Ganger 2008), workload recipe W0",
        params: Parameters::PARAMS,
    },
    build,
};
