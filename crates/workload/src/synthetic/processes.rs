//! Processes that compute, issue requests and wait for some of them, as in DiskSim's synthetic
//! workloads.
//!
//! Every process draws requests as the generator `disksim` does. Before a request it computes for
//! a drawn time, for which it needs a processor. After a time-critical request the process releases
//! its processor and queues for one when the request is complete. A time-limited request is also
//! marked as synchronous; the process waits for it if it is not complete after a further
//! computation.
//!
//! Arrivals depend on completions, so the host must not delay them (`mode = "open"`).

use super::arrivals::check_draws;
use super::drand48::Drand48;
use super::process_flow::{AccessPattern, FlowConfig, Process, ProcessFlow, RandomNumbers};
use super::{GeneratorEntry, GeneratorInput, distribution};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{SECTOR_BYTES, SimTime, Source};

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const PROCESSES_MAX: u64 = 10_000;

const PROCESS: &[Param] = &[
    Param::with(
        "count",
        Kind::Count { min: 1, max: PROCESSES_MAX },
        "1",
        "Number of such processes.",
    ),
    Param::optional(
        "volumes",
        Kind::Counts,
        "Indices of the `volume_starts` it uses, from 0; all if absent.",
    ),
    Param::optional("span", Kind::Bytes, "Bytes used of each volume; up to the next if absent.")
        .formerly(&["size"]),
    Param::with("blocking", Kind::Bytes, "\"4KiB\"", "Sizes and addresses are multiples of it."),
    Param::with("sequential", SHARE, "0", "Probability of a sequential request."),
    Param::with("local", SHARE, "0", "Probability of a local request."),
    Param::with("read", SHARE, "0.66", "Probability of a read."),
    Param::with("critical", SHARE, "1", "Probability of a time-critical request."),
    Param::with("limited", SHARE, "0", "Probability of a time-limited request."),
    Param::optional(
        "limited_ms",
        distribution::KIND,
        "Computation after a time-limited request until the process waits for it; it never does if \
         absent. As in DiskSim, the limit counts down only during the computation for one \
         request, so it expires only in long computations.",
    ),
    Param::required("general_ms", distribution::KIND, "Computation before a general request."),
    Param::optional(
        "sequential_ms",
        distribution::KIND,
        "As `general_ms`, before a sequential request.",
    ),
    Param::optional("local_ms", distribution::KIND, "As `general_ms`, before a local request."),
    Param::with(
        "local_distance_sectors",
        distribution::KIND,
        "{ kind = \"normal\", mean = 0, stddev = 40000 }",
        "Distance of a local request from the start of the previous one, in sectors.",
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
        "Ends after this number of requests.",
    ),
    Param::optional("duration", Kind::Duration, "Ends before the first arrival later than this."),
    Param::optional(
        "processors",
        Kind::Count { min: 1, max: PROCESSES_MAX },
        "Processors, on each of which one process computes; one per process if absent.",
    ),
    Param::with(
        "idle_processors",
        Kind::Choice(&["used", "lost"]),
        "\"used\"",
        "Idle processors are `used` for the next ready process, or `lost` as in DiskSim, all but \
         the first.",
    ),
    Param::optional(
        "drand48_seed",
        Kind::Count { min: 0, max: u64::MAX },
        "All processes draw from one `drand48` stream with this seed, in DiskSim's order, instead \
         of from the run's seed, which DiskSim seeds again, with 1,000,003, after the first \
         request of every process; `requests` then counts as in DiskSim, without the first of \
         every process but one.",
    ),
    Param::with("volume_starts", Kind::Counts, "[0]", "First sectors of the volumes, ascending."),
    Param::required("processes", Kind::Tables(PROCESS), "The processes."),
];

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "processes",
        summary: "Processes that compute, issue requests and wait for time-critical ones, on a \
                  number of processors.",
        origin: "DiskSim 4.0 (Bucy, Schindler, Schlosser, Ganger 2008), synthetic workloads and \
                 process flow",
        params: PARAMS,
    },
    build,
};

/// Reads the entries of `processes`.
struct Reader<'a> {
    input: &'a GeneratorInput<'a>,
    starts: Vec<u64>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, message: impl Into<String>) {
        self.problems.push(Problem::new("processes", message));
    }

    fn distribution(&mut self, entry: &Settings, name: &'static str) -> Option<Distribution> {
        let input = GeneratorInput { settings: entry, ..*self.input };
        let mut problems = Vec::new();
        let distribution = input.distribution(name, &mut problems);
        self.problems
            .extend(problems.iter().map(|problem| Problem::new("processes", problem.to_string())));
        distribution
    }

    fn gap(&mut self, entry: &Settings, name: &'static str) -> Option<Distribution> {
        let gap = self.distribution(entry, name)?;
        let what = "a time of at least 0";
        check_draws("processes", &gap, |ms| ms >= 0.0, what, &mut self.problems);
        Some(gap)
    }

    /// First sectors of the volumes used, and the size of the smallest.
    fn volumes(&mut self, entry: &Settings) -> (Vec<u64>, u64) {
        let capacity = self.input.capacity_sectors;
        let all: Vec<u64> = (0..self.starts.len() as u64).collect();
        let chosen = entry.counts_opt("volumes").map_or(all, <[u64]>::to_vec);
        let (mut starts, mut room) = (Vec::new(), u64::MAX);
        for number in chosen {
            let at = usize::try_from(number).unwrap_or(usize::MAX);
            let Some(&start) = self.starts.get(at) else {
                let count = self.starts.len();
                self.problem(format!("volume {number} of {count}; they are numbered from 0"));
                continue;
            };
            let end = self.starts.get(at + 1).copied().unwrap_or(capacity);
            starts.push(start);
            room = room.min(end.saturating_sub(start));
        }
        if starts.is_empty() {
            self.problem("no volume is used");
            room = 1;
        }
        let Some(size) = entry.bytes_opt("span").map(|bytes| bytes / SECTOR_BYTES) else {
            return (starts, room);
        };
        if size > room {
            self.problem(format!("span is {size} sectors, but a volume has {room}"));
        }
        (starts, size)
    }

    fn pattern(&mut self, entry: &Settings) -> Option<AccessPattern> {
        let (volumes, sectors) = self.volumes(entry);
        let bytes = entry.bytes("blocking");
        let blocking = (bytes / SECTOR_BYTES).max(1);
        if !bytes.is_multiple_of(SECTOR_BYTES) || bytes == 0 || blocking > 1 << 20 {
            self.problem("blocking must be a multiple of 512 bytes, and at most 512 MiB");
        }
        let blocks = sectors / blocking;
        if blocks == 0 {
            self.problem(format!("{sectors} sectors are less than one block of {blocking}"));
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
        let distance = self.distribution(entry, "local_distance_sectors");
        let size = self.distribution(entry, "size_sectors");
        if let Some(size) = &size {
            let fits = |x: f64| x >= 1.0 && x < sectors as f64;
            let what = "a size of at least a sector that fits";
            check_draws("processes", size, fits, what, &mut self.problems);
        }
        Some(AccessPattern {
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
    let (mut patterns, mut processes) = (Vec::new(), Vec::new());
    let entries = settings.tables_opt("processes").unwrap_or(&[]);
    let total: u64 = entries.iter().map(|entry| entry.count("count")).sum();
    if total == 0 || total > PROCESSES_MAX {
        reader.problem(format!("{total} processes; must be 1 to {PROCESSES_MAX}"));
        return Err(reader.problems);
    }
    for entry in entries {
        let Some(pattern) = reader.pattern(entry) else { continue };
        patterns.push(pattern);
        let pattern = patterns.len() - 1;
        processes.extend((0..entry.count("count")).map(|_| Process::new(pattern)));
    }
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let stream = |number: usize| input.stream(&format!("process-{number}"));
    let random = match settings.count_opt("drand48_seed") {
        Some(seed) => RandomNumbers::DiskSim(Drand48::new(seed)),
        None => RandomNumbers::PerProcess((0..processes.len()).map(stream).collect()),
    };
    let duration = settings.duration_opt("duration");
    Ok(Box::new(ProcessFlow::new(FlowConfig {
        patterns,
        processors: settings.count_opt("processors").map_or(processes.len(), |n| n as usize),
        lose_processors: settings.text("idle_processors") == "lost",
        processes,
        random,
        requests: settings.count("requests"),
        until: duration.map_or(SimTime::NEVER, |time| SimTime::ZERO + time),
    })))
}
