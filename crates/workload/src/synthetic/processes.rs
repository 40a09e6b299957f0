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
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{SECTOR_BYTES, SimDuration, SimTime, Source};

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const PROCESSES_MAX: u64 = 10_000;

hybridsim_config::params! {
    /// A kind of processes.
    struct ProcessParameters {
        count: u64 = Kind::Count { min: 1, max: PROCESSES_MAX }, default "1",
            "Number of such processes.";
        volumes: Option<Vec<u64>> = Kind::Counts, optional,
            "Indices of the `volume_starts` it uses, from 0; all if absent.";
        span: Option<u64> = Kind::Bytes, optional,
            "Bytes used of each volume; up to the next if absent.";
        blocking: u64 = Kind::Bytes, default "\"4KiB\"", "Sizes and addresses are multiples of it.";
        sequential: f64 = SHARE, default "0", "Probability of a sequential request.";
        local: f64 = SHARE, default "0", "Probability of a local request.";
        read: f64 = SHARE, default "0.66", "Probability of a read.";
        critical: f64 = SHARE, default "1", "Probability of a time-critical request.";
        limited: f64 = SHARE, default "0", "Probability of a time-limited request.";
        limited_ms: Option<EntryChoice> = distribution::KIND, optional
            needs &[Needs::above_zero("limited")],
            "Computation after a time-limited request until the process waits for it; it never \
             does if absent. As in DiskSim, the limit counts down only during the computation for \
             one request, so it expires only in long computations.";
        general_ms: EntryChoice = distribution::KIND, required,
            "Computation before a general request.";
        sequential_ms: Option<EntryChoice> = distribution::KIND, optional
            needs &[Needs::above_zero("sequential")],
            "As `general_ms`, before a sequential request.";
        local_ms: Option<EntryChoice> = distribution::KIND, optional
            needs &[Needs::above_zero("local")],
            "As `general_ms`, before a local request.";
        local_distance_sectors: EntryChoice = distribution::KIND,
            default "{ kind = \"normal\", mean = 0, stddev = 40000 }"
            needs &[Needs::above_zero("local")],
            "Distance of a local request from the start of the previous one, in sectors.";
        size_sectors: EntryChoice = distribution::KIND,
            default "{ kind = \"exponential\", mean = 8 }",
            "Size in sectors of 512 bytes, rounded up to `blocking`.";
    }
}

hybridsim_config::choices! {
    /// Use of idle processors.
    enum IdleProcessors { Used = "used", Lost = "lost" }
}

hybridsim_config::params! {
    struct Parameters {
        requests: u64 = Kind::Count { min: 1, max: u64::MAX }, required,
            "Ends after this number of requests.";
        duration: Option<SimDuration> = Kind::Duration, optional,
            "Ends before the first arrival later than this.";
        processors: Option<usize> = Kind::Count { min: 1, max: PROCESSES_MAX }, optional,
            "Processors, on each of which one process computes; one per process if absent.";
        idle_processors: IdleProcessors = Kind::Choice(IdleProcessors::NAMES), default "\"used\"",
            "Idle processors are `used` for the next ready process, or `lost` as in DiskSim, all \
             but the first.";
        drand48_seed: Option<u64> = Kind::Count { min: 0, max: u64::MAX }, optional,
            "All processes draw from one `drand48` stream with this seed, in DiskSim's order, \
             instead of from the run's seed, which DiskSim seeds again, with 1,000,003, after the \
             first request of every process; `requests` then counts as in DiskSim, without the \
             first of every process but one.";
        volume_starts: Vec<u64> = Kind::Counts, default "[0]",
            "First sectors of the volumes, ascending.";
        processes: Vec<Settings> = Kind::Tables(ProcessParameters::PARAMS), required,
            "The processes.";
    }
}

pub const ENTRY: GeneratorEntry = GeneratorEntry {
    description: Description {
        name: "processes",
        summary: "Processes that compute, issue requests and wait for time-critical ones, on a \
                  number of processors.",
        origin: "DiskSim 4.0 (Bucy, Schindler, Schlosser, Ganger 2008), synthetic workloads and \
                 process flow",
        params: Parameters::PARAMS,
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

    fn distribution(&mut self, name: &'static str, choice: &EntryChoice) -> Option<Distribution> {
        let mut problems = Vec::new();
        let distribution = self.input.distribution(name, choice, &mut problems);
        self.problems
            .extend(problems.iter().map(|problem| Problem::new("processes", problem.to_string())));
        distribution
    }

    fn gap(&mut self, name: &'static str, choice: Option<&EntryChoice>) -> Option<Distribution> {
        let gap = self.distribution(name, choice?)?;
        let what = "a time of at least 0";
        check_draws("processes", &gap, |ms| ms >= 0.0, what, &mut self.problems);
        Some(gap)
    }

    /// First sectors of the volumes used, and the size of the smallest.
    fn volumes(&mut self, params: &ProcessParameters) -> (Vec<u64>, u64) {
        let capacity = self.input.capacity_sectors;
        let all: Vec<u64> = (0..self.starts.len() as u64).collect();
        let chosen = params.volumes.clone().unwrap_or(all);
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
        let Some(size) = params.span.map(|bytes| bytes / SECTOR_BYTES) else {
            return (starts, room);
        };
        if size > room {
            self.problem(format!("span is {size} sectors, but a volume has {room}"));
        }
        (starts, size)
    }

    fn pattern(&mut self, params: &ProcessParameters) -> Option<AccessPattern> {
        let (volumes, sectors) = self.volumes(params);
        let bytes = params.blocking;
        let blocking = (bytes / SECTOR_BYTES).max(1);
        if !bytes.is_multiple_of(SECTOR_BYTES) || bytes == 0 || blocking > 1 << 20 {
            self.problem("blocking must be a multiple of 512 bytes, and at most 512 MiB");
        }
        let blocks = sectors / blocking;
        if blocks == 0 {
            self.problem(format!("{sectors} sectors are less than one block of {blocking}"));
        }
        if params.critical + params.limited > 1.0 + 1e-9 {
            self.problem("critical and limited add up to more than 1");
        }
        if params.sequential + params.local > 1.0 + 1e-9 {
            self.problem("sequential and local add up to more than 1");
        }
        let general = self.gap("general_ms", Some(&params.general_ms));
        let sequential = self.gap("sequential_ms", params.sequential_ms.as_ref());
        let sequential = sequential.or_else(|| general.clone());
        let local = self.gap("local_ms", params.local_ms.as_ref()).or_else(|| general.clone());
        let limited = self.gap("limited_ms", params.limited_ms.as_ref());
        let distance = &params.local_distance_sectors;
        let distance = self.distribution("local_distance_sectors", distance);
        let size = self.distribution("size_sectors", &params.size_sectors);
        if let Some(size) = &size {
            let fits = |x: f64| x >= 1.0 && x < sectors as f64;
            let what = "a size of at least a sector that fits";
            check_draws("processes", size, fits, what, &mut self.problems);
        }
        Some(AccessPattern {
            volumes,
            blocks,
            blocking,
            sequential: params.sequential,
            local: params.local,
            read: params.read,
            critical: params.critical,
            limited: params.limited,
            general_ms: general?,
            sequential_ms: sequential?,
            local_ms: local?,
            limited_ms: limited,
            local_distance: distance?,
            size: size?,
        })
    }
}

fn build(input: &GeneratorInput<'_>) -> Built<dyn Source> {
    let params = Parameters::from_settings(input.settings);
    let mut reader = Reader { input, starts: params.volume_starts, problems: Vec::new() };
    if reader.starts.windows(2).any(|pair| pair[0] >= pair[1]) {
        reader.problems.push(Problem::new("volume_starts", "must ascend"));
    }
    let (mut patterns, mut processes) = (Vec::new(), Vec::new());
    let entries = params.processes.iter().map(ProcessParameters::from_settings);
    let entries: Vec<_> = entries.collect();
    let total: u64 = entries.iter().map(|entry| entry.count).sum();
    if total == 0 || total > PROCESSES_MAX {
        reader.problem(format!("{total} processes; must be 1 to {PROCESSES_MAX}"));
        return Err(reader.problems);
    }
    for entry in &entries {
        let Some(pattern) = reader.pattern(entry) else { continue };
        patterns.push(pattern);
        let pattern = patterns.len() - 1;
        processes.extend((0..entry.count).map(|_| Process::new(pattern)));
    }
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let stream = |number: usize| input.stream(&format!("process-{number}"));
    let random = match params.drand48_seed {
        Some(seed) => RandomNumbers::DiskSim(Drand48::new(seed)),
        None => RandomNumbers::PerProcess((0..processes.len()).map(stream).collect()),
    };
    Ok(Box::new(ProcessFlow::new(FlowConfig {
        patterns,
        processors: params.processors.unwrap_or(processes.len()),
        lose_processors: params.idle_processors == IdleProcessors::Lost,
        processes,
        random,
        requests: params.requests,
        until: params.duration.map_or(SimTime::NEVER, |time| SimTime::ZERO + time),
    })))
}
