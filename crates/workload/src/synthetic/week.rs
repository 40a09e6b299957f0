//! Seven days of a desktop computer, after the four traces of paper 001 (workload recipe W5).
//!
//! The traces are not to be had; the paper shows the distances between successive writes
//! (figures 3 and 4): most are short, their number falls until about 1 MB and stays level beyond,
//! and some distances come back all day. So writes here go on where the last one ended, or near
//! it (log-uniform up to 1 MiB, which falls like 1/d), or to metadata of a block group, to the
//! journal, or to a new extent in some block group; the last three are the level part, and the
//! bands, because metadata and journal lie where they lie. Requests come in bursts, more of them
//! in working hours. All numbers are assumed except those of `hp` that a public week of the same
//! kind of machine shows (44,519 requests, 29 % reads, 5.8 KiB).

use super::histogram::Sizes;
use super::pace::{BYTES, DURATION, Gaps, Generate, Limits, REQUESTS, finish};
use super::place::{Popularity, Region, SIZE, START};
use super::{GeneratorEntry, GeneratorInput};
use hybridsim_engine::param::{Kind, Param};
use hybridsim_engine::registry::Description;
use hybridsim_engine::sample::standard_exponential;
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime, Source, Stream};

/// What a machine is like.
#[derive(Clone, Copy, Debug)]
struct Machine {
    name: &'static str,
    /// Share of requests that are reads.
    read: f64,
    /// Requests in a burst, mean; milliseconds between them.
    burst: f64,
    gap_ms: f64,
    /// Seconds between bursts in working hours, and in all others.
    pause_busy_s: f64,
    pause_quiet_s: f64,
    /// Shares of writes that go on, that go near, to metadata, to the journal; the rest: new.
    follow: f64,
    near: f64,
    metadata: f64,
    journal: f64,
    /// Metadata blocks in use, and how unequally.
    blocks: u64,
    theta: f64,
    sizes: &'static [(u32, f64)],
}

const MACHINES: &[Machine] = &[
    // Linux, ReiserFS: many small synchronous writes.
    Machine {
        name: "eng",
        read: 0.35,
        burst: 30.0,
        gap_ms: 12.0,
        pause_busy_s: 20.0,
        pause_quiet_s: 120.0,
        follow: 0.25,
        near: 0.30,
        metadata: 0.20,
        journal: 0.10,
        blocks: 4000,
        theta: 0.9,
        sizes: &[(8, 0.70), (16, 0.12), (32, 0.08), (64, 0.05), (128, 0.05)],
    },
    // HP-UX: few requests, close together, long pauses.
    Machine {
        name: "hp",
        read: 0.29,
        burst: 12.0,
        gap_ms: 30.0,
        pause_busy_s: 60.0,
        pause_quiet_s: 300.0,
        follow: 0.15,
        near: 0.35,
        metadata: 0.35,
        journal: 0.05,
        blocks: 1000,
        theta: 1.0,
        sizes: &[(2, 0.20), (4, 0.20), (16, 0.58), (32, 0.02)],
    },
    // Windows XP, NTFS: long bursts, larger requests.
    Machine {
        name: "winpc",
        read: 0.45,
        burst: 80.0,
        gap_ms: 6.0,
        pause_busy_s: 25.0,
        pause_quiet_s: 600.0,
        follow: 0.35,
        near: 0.25,
        metadata: 0.15,
        journal: 0.05,
        blocks: 6000,
        theta: 0.8,
        sizes: &[(8, 0.50), (16, 0.10), (32, 0.10), (64, 0.10), (128, 0.20)],
    },
    // Mac OS X, HFS+ with a journal: long bursts.
    Machine {
        name: "mac",
        read: 0.50,
        burst: 100.0,
        gap_ms: 8.0,
        pause_busy_s: 40.0,
        pause_quiet_s: 900.0,
        follow: 0.35,
        near: 0.20,
        metadata: 0.15,
        journal: 0.15,
        blocks: 5000,
        theta: 0.8,
        sizes: &[(8, 0.60), (16, 0.10), (32, 0.08), (64, 0.07), (128, 0.10), (256, 0.05)],
    },
];

/// Sectors of a block group, of the metadata at its start, of the journal, of a metadata block.
const GROUP: u64 = 262_144;
const METADATA: u64 = 2048;
const JOURNAL: u64 = 65_536;
const BLOCK: u64 = 8;
/// Sectors that "near" reaches: 1 MiB (paper 001, figure 4).
const NEAR: f64 = 2048.0;
/// Of all reads, those that go on where the last one ended, and those near the last request.
const READ_FOLLOWS: f64 = 0.35;
const READ_NEAR: f64 = 0.25;
const DAYS: u64 = 7;

#[derive(Clone, Debug)]
struct Week {
    machine: Machine,
    region: Region,
    groups: u64,
    blocks: Popularity,
    sizes: Sizes,
    /// Where the last write, the last read and the journal ended.
    wrote: u64,
    read: u64,
    journal: u64,
    /// Requests left in the burst.
    left: u64,
    now: SimTime,
    stream: Stream,
    gaps: Stream,
}

impl Week {
    fn near(&mut self, place: u64) -> u64 {
        let distance = libm::pow(NEAR, self.stream.unit()) as u64;
        if self.stream.chance(0.5) { place + distance } else { place.saturating_sub(distance) }
    }

    /// A block of metadata, by popularity; blocks are dealt out over the groups.
    fn metadata(&mut self) -> u64 {
        let block = self.blocks.draw(&mut self.stream);
        let (group, within) = (block % self.groups, block / self.groups);
        self.journal_end() + group * GROUP + within * BLOCK % METADATA
    }

    /// A new extent: a group, and a place in it.
    fn fresh(&mut self) -> u64 {
        let group = self.stream.below(self.groups);
        let within = self.stream.below((GROUP - METADATA) / BLOCK) * BLOCK;
        self.journal_end() + group * GROUP + METADATA + within
    }

    fn journal_end(&self) -> u64 {
        JOURNAL.min(self.region.sectors / 4)
    }

    fn write(&mut self, sectors: u64) -> u64 {
        let Machine { follow, near, metadata, journal, .. } = self.machine;
        let dice = self.stream.unit();
        if dice < follow {
            self.wrote
        } else if dice < follow + near {
            self.near(self.wrote)
        } else if dice < follow + near + metadata {
            self.metadata()
        } else if dice < follow + near + metadata + journal {
            if self.journal + sectors > self.journal_end() {
                self.journal = 0;
            }
            self.journal += sectors;
            self.journal - sectors
        } else {
            self.fresh()
        }
    }

    fn pause(&mut self) -> f64 {
        let hour = self.now.as_ns() / 3_600_000_000_000;
        // The week begins on a Monday at midnight.
        let busy = (9..18).contains(&(hour % 24)) && hour / 24 % 7 < 5;
        if busy { self.machine.pause_busy_s } else { self.machine.pause_quiet_s }
    }
}

impl Generate for Week {
    fn draw(&mut self) -> Request {
        let sectors = self.sizes.draw(&mut self.stream);
        let length = u64::from(sectors);
        let last = self.region.sectors - length;
        if self.stream.chance(self.machine.read) {
            let dice = self.stream.unit();
            let offset = if dice < READ_FOLLOWS {
                self.read
            } else if dice < READ_FOLLOWS + READ_NEAR {
                self.near(self.wrote)
            } else {
                self.fresh()
            };
            let offset = offset.min(last);
            self.read = offset + length;
            return Request::new(Op::Read, Lba(self.region.start + offset), sectors);
        }
        let offset = self.write(length).min(last);
        self.wrote = offset + length;
        Request::new(Op::Write, Lba(self.region.start + offset), sectors)
    }

    fn gap(&mut self) -> Option<SimDuration> {
        let seconds = if self.left > 0 {
            self.left -= 1;
            self.machine.gap_ms / 1e3
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

const PARAMS: &[Param] = &[
    REQUESTS,
    BYTES,
    DURATION,
    START,
    SIZE,
    Param::with(
        "preset",
        Kind::Choice(&["eng", "hp", "winpc", "mac"]),
        "\"eng\"",
        "A Linux engineering workstation, an HP-UX workstation, a Windows PC, a Mac notebook.",
    ),
];

fn build(
    input: &GeneratorInput<'_>,
) -> Result<Box<dyn Source>, Vec<hybridsim_engine::param::Problem>> {
    let mut problems = Vec::new();
    let name = input.settings.text("preset");
    let machine = *MACHINES.iter().find(|machine| machine.name == name).unwrap_or(&MACHINES[0]);
    // The journal, and a block group at least.
    let region = Region::read(input, 4096, &mut problems);
    let room = region.sectors - JOURNAL.min(region.sectors / 4);
    let week = Week {
        machine,
        region,
        groups: (room / GROUP).max(1),
        blocks: Popularity::zipf(machine.blocks, machine.theta),
        sizes: Sizes::new(machine.sizes),
        wrote: 0,
        read: 0,
        journal: 0,
        left: 0,
        now: SimTime::ZERO,
        stream: input.stream("requests"),
        gaps: input.stream("gap"),
    };
    let ends = ["requests", "bytes", "duration"].iter().any(|name| input.settings.has(name));
    let until = SimTime::ZERO + SimDuration::from_s(DAYS * 86_400);
    let own = if ends { Limits::NONE } else { Limits { until, ..Limits::NONE } };
    finish(input, Some(week), own, Some(Gaps::Fixed(SimDuration::ZERO)), problems)
}

/// The generator.
pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "week",
        summary: "Seven days of a desktop computer: bursts, block groups, metadata and a journal.",
        origin: "paper 001, Table II, figures 3 and 4 (workload recipe W5)",
        params: PARAMS,
    },
    build,
};

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::param::{Settings, Value};
    use hybridsim_engine::registry::Registry;

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
            assert!((reads as f64 / all.len() as f64 - machine.read).abs() < 0.01);
            // Writes per sector of distance, octave by octave.
            let mut counts = [0.0f64; 30];
            for pair in all.windows(2) {
                let (before, request) = (pair[0].1, pair[1].1);
                let distance = request.lba.0.abs_diff(before.lba.0);
                if request.op == Op::Write && distance > 0 {
                    let octave = 63 - distance.leading_zeros() as usize;
                    counts[octave.min(29)] += 1.0 / (1u64 << octave) as f64;
                }
            }
            assert!(counts[4] > 20.0 * counts[10], "{}: {counts:?}", machine.name);
            assert!(counts[10] > 20.0 * counts[20], "{}: {counts:?}", machine.name);
            let (most, least) =
                counts[20..27].iter().fold((0.0f64, f64::MAX), |(a, b), c| (a.max(*c), b.min(*c)));
            assert!(most < 5.0 * least, "level beyond: {}: {counts:?}", machine.name);
        }
    }
}
