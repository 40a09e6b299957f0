//! Seven days of a desktop computer, after the four traces of bisson-fqueue (workload recipe W5).
//!
//! The traces are not available. The paper plots the distances of writes from the previous request
//! (figures 3 and 4): the count per distance falls up to about 1 MB and is constant beyond, and
//! some large distances recur all day. Writes here therefore overwrite or continue the last write,
//! or are near the previous request (log-uniform up to 1 MiB, which falls like 1/d), or go to
//! metadata of one of a few block groups, to the journal, or to a new extent in any block group.
//! The last three give the constant part; metadata and journal, at fixed addresses, the recurring
//! distances. Requests come in bursts, more of them in working hours.
//!
//! Shares, bursts and the disk of `hp` are those of public traces of such machines: HP Labs' week
//! of 1992 (`hp`), and two DiskMon logs of Windows PCs for the others. In these, 0.55 to 0.58 of
//! writes are farther than 1 MB, 0.16 to 0.25 of the Windows logs' writes continue the last one
//! (0.02 of HP's), the twelve most written block groups have 0.72 to 0.90 of writes, reads and
//! writes come in runs, and requests in clumps without gaps. All other numbers are assumed.

use super::addresses::{Popularity, Region, RegionParameters};
use super::arrivals::{Generator, Interarrival, LimitParameters, Limits, build_workload};
use super::histogram::Sizes;
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_config::param::{Built, Kind};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::standard_exponential;
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime, Source, Stream};

/// The parameters of a machine.
#[derive(Clone, Copy, Debug)]
struct Machine {
    name: &'static str,
    /// Share of reads, and the probability that a request repeats the previous kind.
    read: f64,
    stays: f64,
    /// Mean requests of a burst; the share of them without a gap, and milliseconds between the
    /// others.
    burst: f64,
    clump: f64,
    gap_ms: f64,
    /// Seconds between bursts in working hours, and in all others.
    pause_busy_s: f64,
    pause_quiet_s: f64,
    /// Shares of writes that overwrite or continue the last write, are near the last request, go to
    /// metadata or to the journal; the others go to new extents.
    overwrite: f64,
    sequential: f64,
    near: f64,
    metadata: f64,
    journal: f64,
    /// Metadata blocks in use, and the Zipf exponent of their popularity.
    blocks: u64,
    theta: f64,
    /// Sectors of a block group, and the unit of distances of near writes.
    group: u64,
    step: u64,
    /// Sectors of the machine's disk, where known.
    disk: Option<u64>,
    sizes: &'static [(u32, f64)],
}

const MACHINES: &[Machine] = &[
    // Linux, ReiserFS: many small synchronous writes.
    Machine {
        name: "eng",
        read: 0.35,
        stays: 0.865,
        burst: 30.0,
        clump: 0.6,
        gap_ms: 129.0,
        pause_busy_s: 20.0,
        pause_quiet_s: 120.0,
        overwrite: 0.0,
        sequential: 0.20,
        near: 0.24,
        metadata: 0.20,
        journal: 0.10,
        blocks: 4000,
        theta: 0.9,
        group: 262_144,
        step: 8,
        disk: None,
        sizes: &[(8, 0.70), (16, 0.12), (32, 0.08), (64, 0.05), (128, 0.05)],
    },
    // HP-UX: few requests, long pauses, a disk of 335 MB, no journal.
    Machine {
        name: "hp",
        read: 0.29,
        stays: 0.70,
        burst: 13.5,
        clump: 0.3,
        gap_ms: 52.0,
        pause_busy_s: 80.0,
        pause_quiet_s: 400.0,
        overwrite: 0.12,
        sequential: 0.02,
        near: 0.28,
        metadata: 0.40,
        journal: 0.0,
        blocks: 1000,
        theta: 1.0,
        group: 16_384,
        step: 16,
        disk: Some(654_048),
        sizes: &[(2, 0.20), (4, 0.20), (16, 0.58), (32, 0.02)],
    },
    // Windows XP, NTFS: long bursts, larger requests.
    Machine {
        name: "winpc",
        read: 0.45,
        stays: 0.865,
        burst: 68.0,
        clump: 0.6,
        gap_ms: 129.0,
        pause_busy_s: 25.0,
        pause_quiet_s: 600.0,
        overwrite: 0.0,
        sequential: 0.20,
        near: 0.24,
        metadata: 0.15,
        journal: 0.05,
        blocks: 6000,
        theta: 0.8,
        group: 262_144,
        step: 8,
        disk: None,
        sizes: &[(8, 0.50), (16, 0.10), (32, 0.10), (64, 0.10), (128, 0.20)],
    },
    // Mac OS X, HFS+ with a journal: long bursts.
    Machine {
        name: "mac",
        read: 0.50,
        stays: 0.865,
        burst: 100.0,
        clump: 0.6,
        gap_ms: 129.0,
        pause_busy_s: 40.0,
        pause_quiet_s: 900.0,
        overwrite: 0.0,
        sequential: 0.20,
        near: 0.24,
        metadata: 0.15,
        journal: 0.15,
        blocks: 5000,
        theta: 0.8,
        group: 262_144,
        step: 8,
        disk: None,
        sizes: &[(8, 0.60), (16, 0.10), (32, 0.08), (64, 0.07), (128, 0.10), (256, 0.05)],
    },
];

/// Metadata are 1/128 of a block group, at its start; sectors of the journal and of a block.
const METADATA: u64 = 128;
const JOURNAL: u64 = 65_536;
const BLOCK: u64 = 8;
/// Hot block groups, and their share of new extents and of distant reads. In the traces the twelve
/// most written groups have 0.72 to 0.90 of all writes.
const HOT: u64 = 12;
const IN_USE: f64 = 0.7;
/// Maximum distance of near requests in sectors: 1 MiB (bisson-fqueue, figure 4).
const NEAR: f64 = 2048.0;
/// Interarrival time within a clump (assumed; the logs' clocks are too coarse).
const CLUMP_S: f64 = 0.000_2;
/// Shares of reads that continue the last read, and that are near the last request.
const READ_FOLLOWS: f64 = 0.35;
const READ_NEAR: f64 = 0.25;
const DAYS: u64 = 7;

#[derive(Clone, Debug)]
struct Week {
    machine: Machine,
    region: Region,
    groups: u64,
    /// Groups with metadata in use.
    hot: Vec<u64>,
    blocks: Popularity,
    sizes: Sizes,
    /// Whether the last request was a read.
    reads: bool,
    /// Starts of the last request and write; ends of the last write and read and of the journal.
    last: u64,
    last_write: u64,
    write_end: u64,
    read_end: u64,
    journal: u64,
    /// Requests left in the burst.
    left: u64,
    now: SimTime,
    stream: Stream,
    gaps: Stream,
}

impl Week {
    /// An address near the start of the last request.
    fn near(&mut self) -> u64 {
        let step = self.machine.step;
        let distance = step * libm::pow(NEAR / step as f64, self.stream.unit()) as u64;
        let back = self.stream.chance(0.5);
        if back { self.last.saturating_sub(distance) } else { self.last + distance }
    }

    /// A metadata block by popularity; the most popular are in one group, the next in another of
    /// those in use.
    fn metadata(&mut self) -> u64 {
        let block = self.blocks.draw(&mut self.stream);
        let Machine { blocks, group, .. } = self.machine;
        let each = blocks.div_ceil(self.hot.len() as u64);
        let within = block % each * BLOCK % (group / METADATA);
        self.journal_end() + self.hot[(block / each) as usize] * group + within
    }

    /// A new extent: a random block of a group.
    fn new_extent(&mut self) -> u64 {
        let (group, metadata) = (self.machine.group, self.machine.group / METADATA);
        let at = if self.stream.chance(IN_USE) {
            self.hot[self.stream.below(self.hot.len() as u64) as usize] * group
        } else {
            self.stream.below(self.groups) * group
        };
        let within = self.stream.below((group - metadata) / BLOCK) * BLOCK;
        self.journal_end() + at + metadata + within
    }

    fn journal_end(&self) -> u64 {
        JOURNAL.min(self.region.sectors / 4)
    }

    fn write(&mut self, sectors: u64) -> u64 {
        let Machine { overwrite, sequential, near, metadata, journal, .. } = self.machine;
        let choice = self.stream.unit() - overwrite;
        if choice < 0.0 {
            self.last_write
        } else if choice < sequential {
            self.write_end
        } else if choice < sequential + near {
            self.near()
        } else if choice < sequential + near + metadata {
            self.metadata()
        } else if choice < sequential + near + metadata + journal {
            if self.journal + sectors > self.journal_end() {
                self.journal = 0;
            }
            self.journal += sectors;
            self.journal - sectors
        } else {
            self.new_extent()
        }
    }

    fn pause(&mut self) -> f64 {
        let hour = self.now.as_ns() / 3_600_000_000_000;
        // The week starts on a Monday at midnight.
        let busy = (9..18).contains(&(hour % 24)) && hour / 24 % 7 < 5;
        if busy { self.machine.pause_busy_s } else { self.machine.pause_quiet_s }
    }
}

impl Generator for Week {
    fn draw(&mut self) -> Request {
        let sectors = self.sizes.draw(&mut self.stream);
        let length = u64::from(sectors);
        let last = self.region.sectors - length;
        if !self.stream.chance(self.machine.stays) {
            self.reads = self.stream.chance(self.machine.read);
        }
        if self.reads {
            let choice = self.stream.unit();
            let offset = if choice < READ_FOLLOWS {
                self.read_end
            } else if choice < READ_FOLLOWS + READ_NEAR {
                self.near()
            } else {
                self.new_extent()
            };
            let offset = offset.min(last);
            (self.read_end, self.last) = (offset + length, offset);
            return Request::new(Op::Read, Lba(self.region.start + offset), sectors);
        }
        let offset = self.write(length).min(last);
        (self.write_end, self.last_write, self.last) = (offset + length, offset, offset);
        Request::new(Op::Write, Lba(self.region.start + offset), sectors)
    }

    fn interarrival(&mut self) -> Option<SimDuration> {
        let seconds = if self.left > 0 {
            self.left -= 1;
            if self.gaps.chance(self.machine.clump) { CLUMP_S } else { self.machine.gap_ms / 1e3 }
        } else {
            let mean = self.machine.burst - 1.0;
            self.left = (standard_exponential(&mut self.gaps) * mean) as u64;
            self.pause()
        };
        let drawn = standard_exponential(&mut self.gaps) * seconds;
        let gap = SimDuration::from_ns_f64(drawn * 1e9);
        self.now += gap;
        Some(gap)
    }
}

hybridsim_config::params! {
    struct Parameters includes {
        limits: LimitParameters,
        region: RegionParameters,
    } {
        preset: String = Kind::Choice(&["eng", "hp", "winpc", "mac"]), default "\"eng\"",
            "A Linux engineering workstation, an HP-UX workstation, a Windows PC, a Mac notebook.";
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut problems = Vec::new();
    let machine = MACHINES.iter().find(|machine| machine.name == params.preset);
    let machine = *machine.unwrap_or(&MACHINES[0]);
    // At least the journal and a block group.
    let mut region = Region::new(input, &params.region, 4096, &mut problems);
    if let Some(disk) = machine.disk.filter(|_| params.region.span.is_none()) {
        region.sectors = region.sectors.min(disk);
    }
    let room = region.sectors - JOURNAL.min(region.sectors / 4);
    let groups = (room / machine.group).max(1);
    let mut places = input.stream("places");
    let hot = (0..HOT.min(groups)).map(|_| places.below(groups)).collect();
    let week = Week {
        machine,
        region,
        groups,
        hot,
        blocks: Popularity::zipf(machine.blocks, machine.theta),
        sizes: Sizes::new(machine.sizes),
        reads: false,
        last: 0,
        last_write: 0,
        write_end: 0,
        read_end: 0,
        journal: 0,
        left: 0,
        now: SimTime::ZERO,
        stream: input.stream("requests"),
        gaps: input.stream("gap"),
    };
    let until = SimTime::ZERO + SimDuration::from_s(DAYS * 86_400);
    let own =
        if params.limits.is_given() { Limits::NONE } else { Limits { until, ..Limits::NONE } };
    let gaps = Some(Interarrival::Fixed(SimDuration::ZERO));
    build_workload(input, &params.limits.into(), Some(week), own, gaps, problems)
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "week",
        summary: "Seven days of a desktop computer: bursts, block groups, metadata and a journal.",
        origin: "bisson-fqueue, Table II, figures 3 and 4 (workload recipe W5)",
        params: Parameters::PARAMS,
    },
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_config::param::{Settings, Value};
    use hybridsim_config::registry::Registry;

    fn requests(preset: &str) -> Vec<(SimTime, Request)> {
        let settings = Settings::default()
            .and("preset", Value::Text(preset.to_owned()))
            .and("start", Value::Bytes(0));
        let registry = Registry::default();
        let capacity_sectors = 312_581_808;
        let input = GeneratorInput {
            settings: &settings,
            registry: &registry,
            seed: 1,
            path: "w",
            capacity_sectors,
            may_be_endless: false,
        };
        let mut source = build(&input).unwrap_or_else(|problems| panic!("{problems:?}"));
        let next = || source.next().expect("no error").map(|arrival| (arrival.at, arrival.request));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn distances_fall_until_a_megabyte_and_stay_level() {
        for machine in MACHINES {
            let all = requests(machine.name);
            let days = all.last().expect("some").0.as_ns() as f64 / 86.4e12;
            assert!((6.9..=7.0).contains(&days), "{}: {days} days", machine.name);
            assert!(all.len() > 20_000 && all.len() < 2_000_000, "{}: {}", machine.name, all.len());
            let reads = all.iter().filter(|(_, request)| request.op == Op::Read).count();
            assert!((reads as f64 / all.len() as f64 - machine.read).abs() < 0.02);
            // Writes at a particular distance that occurs, mean of each octave of distances.
            let mut counts = std::collections::BTreeMap::new();
            for pair in all.windows(2) {
                let distance = pair[1].1.lba.0.abs_diff(pair[0].1.lba.0);
                if pair[1].1.op == Op::Write && distance > 0 {
                    *counts.entry(distance).or_insert(0u64) += 1;
                }
            }
            let mean = |octave: u32| {
                let of: Vec<_> = counts.range(1 << octave..2 << octave).map(|it| *it.1).collect();
                of.iter().sum::<u64>() as f64 / of.len() as f64
            };
            assert!(mean(4) > 10.0 * mean(11), "{}: {} {}", machine.name, mean(4), mean(11));
            let beyond: Vec<f64> = (11..19).map(mean).collect();
            let most = beyond.iter().copied().fold(0.0, f64::max);
            let least = beyond.iter().copied().fold(f64::MAX, f64::min);
            assert!(most < 10.0 * least, "level beyond: {}: {beyond:?}", machine.name);
            let writes = counts.values().sum::<u64>() as f64;
            let far = counts.range(2048..).map(|it| it.1).sum::<u64>() as f64 / writes;
            assert!((0.5..0.75).contains(&far), "{}: {far} are far", machine.name);
        }
    }

    #[test]
    fn a_machine_with_a_small_disk_stays_on_it() {
        let end = |preset| requests(preset).iter().map(|it| it.1.end().0).max();
        assert!(end("hp") <= Some(654_048));
        assert!(end("mac") > Some(200_000_000));
    }
}
