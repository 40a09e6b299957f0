//! Processes that compute, ask for something, and sometimes wait for it, as DiskSim's synthetic
//! workload does.
//!
//! Every process draws requests as the generator `disksim` does. Before a request it computes for
//! a drawn time, for which it needs a processor. A *critical* request is waited for: the process
//! gives up its processor and queues for one again when the request is complete. A *limited*
//! request is as urgent as a critical one to whoever schedules it, and is waited for if it is not
//! complete after more computing.
//!
//! Arrivals depend on completions, so the host must take them as they come (`mode = "open"`).

use super::drand48::Drand48;
use super::pace::check_draws;
use super::process_flow::{Dice, Flow, Habit, Plan, Process};
use super::{GeneratorEntry, GeneratorInput, distribution};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{SECTOR_BYTES, SimTime, Source};

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
/// Processes of one workload.
const PROCESSES_MAX: u64 = 10_000;

const PROCESS: &[Param] = &[
    Param::with("count", Kind::Count { min: 1, max: PROCESSES_MAX }, "1", "Processes like this."),
    Param::optional(
        "volumes",
        Kind::Counts,
        "Which `volume_starts` it uses, from 0; all if absent.",
    ),
    Param::optional(
        "size",
        Kind::Bytes,
        "Of each volume so much is used; up to the next if absent.",
    ),
    Param::with("blocking", Kind::Bytes, "\"4KiB\"", "Sizes and addresses are multiples of it."),
    Param::with("sequential", SHARE, "0", "Probability that a request follows the one before."),
    Param::with("local", SHARE, "0", "Probability that a request is near the one before."),
    Param::with("read", SHARE, "0.66", "Probability that a request is a read."),
    Param::with("critical", SHARE, "1", "Probability that a request is waited for."),
    Param::with(
        "limited",
        SHARE,
        "0",
        "Probability that a request is as urgent as one that is waited for, and is not yet.",
    ),
    Param::optional(
        "limited_ms",
        distribution::KIND,
        "Computing after such a request is drawn, beyond that before it, until it is waited for; \
         it never is if absent. As DiskSim does it, the time counts while a process computes for \
         one request, so that such a wait comes up when one computes for long.",
    ),
    Param::required("general_ms", distribution::KIND, "Computing before a request anywhere."),
    Param::optional("sequential_ms", distribution::KIND, "Before a sequential one, if it differs."),
    Param::optional("local_ms", distribution::KIND, "Before a local one, if it differs."),
    Param::with(
        "local_distance_sectors",
        distribution::KIND,
        "{ kind = \"normal\", mean = 0, stddev = 40000 }",
        "Distance of a local request from the start of the one before, in sectors.",
    ),
    Param::with(
        "size_sectors",
        distribution::KIND,
        "{ kind = \"exponential\", mean = 8 }",
        "Size in sectors of 512 bytes, rounded up to `blocking`.",
    ),
];

const PARAMS: &[Param] = &[
    Param::required(
        "requests",
        Kind::Count { min: 1, max: u64::MAX },
        "Ends after so many requests.",
    ),
    Param::optional("duration", Kind::Duration, "Ends when requests would arrive later than this."),
    Param::optional(
        "processors",
        Kind::Count { min: 1, max: PROCESSES_MAX },
        "Processes that compute at a time; all if absent.",
    ),
    Param::with(
        "idle_processors",
        Kind::Choice(&["used", "lost"]),
        "\"used\"",
        "What becomes of processors that fall idle: `used` for the next process that is ready, or \
         `lost` as DiskSim loses them, all but the first.",
    ),
    Param::optional(
        "drand48_seed",
        Kind::Count { min: 0, max: u64::MAX },
        "All processes draw from one `drand48` stream with this seed, number by number in the \
         order in which DiskSim's do, instead of from the run's seed; `requests` then counts as \
         DiskSim does, without the first of every process but one.",
    ),
    Param::with(
        "volume_starts",
        Kind::Counts,
        "[0]",
        "First sectors of the volumes that processes choose from, ascending.",
    ),
    Param::required("processes", Kind::Tables(PROCESS), "The processes."),
];

/// The generator.
pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "processes",
        summary: "Processes that compute, ask, and wait for what is critical, on a number of \
                  processors.",
        origin: "DiskSim 4.0 (Bucy, Schindler, Schlosser, Ganger 2008), synthetic workloads and \
                 process flow",
        params: PARAMS,
    },
    build,
};

/// Reads one entry of `processes`.
struct Reader<'a> {
    input: &'a GeneratorInput<'a>,
    starts: Vec<u64>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, message: impl Into<String>) {
        self.problems.push(Problem::new("processes", message));
    }

    fn drawn(&mut self, entry: &Settings, name: &'static str) -> Option<Distribution> {
        let input = GeneratorInput { settings: entry, ..*self.input };
        let mut problems = Vec::new();
        let drawn = input.distribution(name, &mut problems);
        self.problems
            .extend(problems.iter().map(|problem| Problem::new("processes", problem.to_string())));
        drawn
    }

    fn gap(&mut self, entry: &Settings, name: &'static str) -> Option<Distribution> {
        let gap = self.drawn(entry, name)?;
        let what = "a time of at least 0";
        check_draws("processes", &gap, |ms| ms >= 0.0, what, &mut self.problems);
        Some(gap)
    }

    /// First sectors of the volumes used, and the sectors of the smallest.
    fn volumes(&mut self, entry: &Settings) -> (Vec<u64>, u64) {
        let capacity = self.input.capacity_sectors;
        let all: Vec<u64> = (0..self.starts.len() as u64).collect();
        let chosen = entry.counts_opt("volumes").map_or(all, <[u64]>::to_vec);
        let (mut starts, mut room) = (Vec::new(), u64::MAX);
        for number in chosen {
            let at = usize::try_from(number).unwrap_or(usize::MAX);
            let Some(&start) = self.starts.get(at) else {
                let count = self.starts.len();
                self.problem(format!("volume {number} of {count}; they are counted from 0"));
                continue;
            };
            let end = self.starts.get(at + 1).copied().unwrap_or(capacity);
            starts.push(start);
            room = room.min(end.saturating_sub(start));
        }
        if starts.is_empty() {
            self.problem("a process uses no volume");
            room = 1;
        }
        let Some(size) = entry.bytes_opt("size").map(|bytes| bytes / SECTOR_BYTES) else {
            return (starts, room);
        };
        if size > room {
            self.problem(format!("size is {size} sectors, but a volume has {room}"));
        }
        (starts, size)
    }

    fn habit(&mut self, entry: &Settings) -> Option<Habit> {
        let (volumes, sectors) = self.volumes(entry);
        let bytes = entry.bytes("blocking");
        let blocking = (bytes / SECTOR_BYTES).max(1);
        if !bytes.is_multiple_of(SECTOR_BYTES) || bytes == 0 || blocking > 1 << 20 {
            self.problem("blocking must be a multiple of 512 bytes, and at most 512 MiB");
        }
        let blocks = sectors / blocking;
        if blocks == 0 {
            self.problem(format!("{sectors} sectors hold not one block of {blocking}"));
        }
        if entry.number("critical") + entry.number("limited") > 1.0 + 1e-9 {
            self.problem("critical and limited add up to more than 1");
        }
        if entry.number("sequential") + entry.number("local") > 1.0 + 1e-9 {
            self.problem("sequential and local add up to more than 1");
        }
        let general = self.gap(entry, "general_ms");
        let sequential = self.gap(entry, "sequential_ms").or_else(|| general.clone());
        let local = self.gap(entry, "local_ms").or_else(|| general.clone());
        let limited = self.gap(entry, "limited_ms");
        let distance = self.drawn(entry, "local_distance_sectors");
        let size = self.drawn(entry, "size_sectors");
        if let Some(size) = &size {
            let fits = |x: f64| x >= 1.0 && x < sectors as f64;
            let what = "a size of at least a sector that fits";
            check_draws("processes", size, fits, what, &mut self.problems);
        }
        Some(Habit {
            volumes,
            blocks,
            blocking,
            sequential: entry.number("sequential"),
            local: entry.number("local"),
            read: entry.number("read"),
            critical: entry.number("critical"),
            limited: entry.number("limited"),
            general_ms: general?,
            sequential_ms: sequential?,
            local_ms: local?,
            limited_ms: limited,
            local_distance: distance?,
            size: size?,
        })
    }
}

fn build(input: &GeneratorInput<'_>) -> Result<Box<dyn Source>, Vec<Problem>> {
    let settings = input.settings;
    let starts = settings.counts_opt("volume_starts").map_or_else(|| vec![0], <[u64]>::to_vec);
    let mut reader = Reader { input, starts, problems: Vec::new() };
    if reader.starts.windows(2).any(|pair| pair[0] >= pair[1]) {
        reader.problems.push(Problem::new("volume_starts", "must ascend"));
    }
    let (mut habits, mut processes) = (Vec::new(), Vec::new());
    let entries = settings.tables_opt("processes").unwrap_or(&[]);
    let total: u64 = entries.iter().map(|entry| entry.count("count")).sum();
    if total == 0 || total > PROCESSES_MAX {
        reader.problem(format!("{total} processes; there can be 1 to {PROCESSES_MAX}"));
        return Err(reader.problems);
    }
    for entry in entries {
        let Some(habit) = reader.habit(entry) else { continue };
        habits.push(habit);
        let habit = habits.len() - 1;
        processes.extend((0..entry.count("count")).map(|_| Process::new(habit)));
    }
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let stream = |number: usize| input.stream(&format!("process-{number}"));
    let dice = match settings.count_opt("drand48_seed") {
        Some(seed) => Dice::DiskSim(Drand48::new(seed)),
        None => Dice::Own((0..processes.len()).map(stream).collect()),
    };
    let duration = settings.duration_opt("duration");
    Ok(Box::new(Flow::new(Plan {
        habits,
        processors: settings.count_opt("processors").map_or(processes.len(), |n| n as usize),
        lost: settings.text("idle_processors") == "lost",
        processes,
        dice,
        requests: settings.count("requests"),
        until: duration.map_or(SimTime::NEVER, |time| SimTime::ZERO + time),
    })))
}
