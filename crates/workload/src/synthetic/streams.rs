//! Sequential streams into regions, as log-structured stores and zoned file systems write.

use super::addresses::{Region, RegionParameters, sectors_of};
use super::arrivals::{self, Generator, Limits, build_workload};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Lba, Op, Request, SECTOR_BYTES, Source, Stream};

/// A region being written: its number, the sectors written so far, and whether it is to be trimmed
/// before.
#[derive(Clone, Copy, Debug)]
struct Active {
    region: u32,
    written: u64,
    trims: bool,
}

/// Writes to several regions, each in order.
#[derive(Clone, Debug)]
pub struct Streams {
    start: u64,
    region_sectors: u64,
    sectors: u32,
    active: Vec<Active>,
    /// The regions that are not being written.
    inactive: Vec<u32>,
    /// Whether a region is trimmed before it is written.
    trim: bool,
    stream: Stream,
}

impl Generator for Streams {
    fn draw(&mut self) -> Request {
        let at = self.stream.below(self.active.len() as u64) as usize;
        let Active { region, written, trims } = self.active[at];
        let lba = self.start + u64::from(region) * self.region_sectors + written;
        if trims {
            self.active[at].trims = false;
            return Request::new(Op::Trim, Lba(lba), self.region_sectors as u32);
        }
        let sectors = (self.region_sectors - written).min(u64::from(self.sectors));
        self.active[at].written += sectors;
        if self.active[at].written == self.region_sectors {
            self.replace(at);
        }
        Request::new(Op::Write, Lba(lba), sectors as u32)
    }
}

impl Streams {
    /// Goes on with a region drawn from the inactive ones; with the same where there are none.
    fn replace(&mut self, at: usize) {
        let full = self.active[at].region;
        let region = match self.inactive.len() as u64 {
            0 => full,
            count => {
                let drawn = self.stream.below(count) as usize;
                std::mem::replace(&mut self.inactive[drawn], full)
            }
        };
        self.active[at] = Active { region, written: 0, trims: self.trim };
    }
}

/// Most regions a workload may have.
const REGIONS_MAX: u64 = 1 << 24;

hybridsim_config::params! {
    struct Parameters includes {
        arrivals: arrivals::Parameters,
        span: RegionParameters,
    } {
        block: u64 = Kind::Bytes, default "\"512KiB\"", "Bytes of a write.";
        region: u64 = Kind::Bytes, required,
            "Bytes of a region, which is written from its start to its end. What remains of `span` \
             after whole regions is not used.";
        active: u64 = Kind::Count { min: 1, max: 1 << 20 }, default "1",
            "Regions written at a time, chosen at random for each write; a full one is replaced by \
             an inactive one drawn at random.";
        trim: bool = Kind::Flag, default "false",
            "Whether a region is trimmed before it is written, as a zoned host resets a zone.";
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let sectors = sectors_of("block", params.block, &mut problems);
    let bytes = params.region;
    let region_sectors = bytes / SECTOR_BYTES;
    if region_sectors == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
        let message = format!("{bytes} bytes: must be a multiple of 512, at least 512");
        problems.push(Problem::new("region", message));
        return Err(problems);
    }
    let trim = params.trim;
    if trim && region_sectors > u64::from(u32::MAX) {
        problems.push(Problem::new("region", "must be below 2 TiB where it is trimmed"));
    }
    if u64::from(sectors) > region_sectors {
        problems.push(Problem::new("block", "must be at most `region`"));
    }
    let span = Region::new(input, &params.span, region_sectors, &mut problems);
    let (regions, active) = (span.sectors / region_sectors, params.active);
    if regions > REGIONS_MAX {
        let message = format!("{regions} regions in the span; at most {REGIONS_MAX} are possible");
        problems.push(Problem::new("region", message));
    } else if active > regions {
        let message = format!("the span has {regions} regions only");
        problems.push(Problem::new("active", message));
    }
    let generator = problems.is_empty().then(|| Streams {
        start: span.start,
        region_sectors,
        sectors,
        active: (0..active as u32)
            .map(|region| Active { region, written: 0, trims: trim })
            .collect(),
        inactive: (active as u32..regions as u32).collect(),
        trim,
        stream: input.stream("requests"),
    });
    build_workload(input, &params.arrivals, generator, Limits::NONE, None, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "streams",
        summary: "Sequential writes to several regions at a time; a random one follows a full one.",
        origin: "the stream experiment of SSD-iq (G. Haas et al., PVLDB 18, 2025)",
        params: Parameters::PARAMS,
    },
    build,
};

#[cfg(test)]
mod tests {
    use super::*;

    fn two_of_four(trim: bool) -> Streams {
        Streams {
            start: 100,
            region_sectors: 20,
            sectors: 8,
            active: [0, 1].map(|region| Active { region, written: 0, trims: trim }).to_vec(),
            inactive: vec![2, 3],
            trim,
            stream: Stream::new(1, "streams"),
        }
    }

    #[test]
    fn a_region_is_trimmed_as_a_whole_before_it_is_written() {
        let mut streams = two_of_four(true);
        let mut left = [0_u64; 4];
        let mut trims = 0;
        for _ in 0..3_000 {
            let request = streams.draw();
            let (region, within) =
                (((request.lba.0 - 100) / 20) as usize, (request.lba.0 - 100) % 20);
            if request.op == Op::Trim {
                assert_eq!((within, request.sectors, left[region]), (0, 20, 0));
                left[region] = 20;
                trims += 1;
            } else {
                assert_eq!(within, 20 - left[region], "region {region} is written in order");
                left[region] -= u64::from(request.sectors);
            }
        }
        assert!((740..=752).contains(&trims), "{trims}: one of four requests");
    }

    #[test]
    fn regions_are_written_in_order_and_replaced_when_full() {
        let mut streams = two_of_four(false);
        let mut next = [0_u64; 4];
        for _ in 0..3_000 {
            let request = streams.draw();
            let offset = request.lba.0 - 100;
            let (region, within) = ((offset / 20) as usize, offset % 20);
            assert_eq!(within, next[region], "region {region}");
            assert_eq!(u64::from(request.sectors), (20 - within).min(8));
            next[region] = (within + u64::from(request.sectors)) % 20;
            let begun = next.iter().filter(|within| **within > 0).count();
            assert!(begun <= 2, "{begun} regions are written at a time");
        }
    }
}
