//! Processes that compute, ask for something, and sometimes wait for it, as DiskSim's synthetic
//! workload does.
//!
//! Every process draws requests as the generator `disksim` does. Before a request it computes for
//! a drawn time, for which it needs a processor. A *critical* request is waited for: the process
//! gives up its processor and queues for one again when the request is complete. A *limited*
//! request is as urgent as a critical one to whoever schedules it, but nobody waits for it; of
//! DiskSim's requests with a time limit its processes hardly ever wait for one.
//!
//! Arrivals depend on completions, so the host must take them as they come (`mode = "open"`).

use super::pace::{REDRAWS_MAX, check_draws, draw_ms};
use super::{GeneratorEntry, GeneratorInput, distribution};
use hybridsim_engine::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::registry::Description;
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{
    Arrival, Flags, Lba, Op, Request, SECTOR_BYTES, SimDuration, SimTime, Source, Stream,
};
use std::collections::VecDeque;

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
        "Probability that a request is as urgent as one that is waited for, and is not.",
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

/// What the processes of one entry have in common.
#[derive(Clone, Debug)]
struct Habit {
    /// First sectors of the volumes used.
    volumes: Vec<u64>,
    /// Blocks of each volume.
    blocks: u64,
    /// Sectors of a block.
    blocking: u64,
    sequential: f64,
    local: f64,
    read: f64,
    critical: f64,
    limited: f64,
    general_ms: Distribution,
    sequential_ms: Distribution,
    local_ms: Distribution,
    local_distance: Distribution,
    size: Distribution,
}

/// A request in units of a habit's blocks.
#[derive(Clone, Copy, Debug)]
struct Ask {
    volume: u64,
    block: u64,
    blocks: u64,
    read: bool,
}

#[derive(Clone, Debug)]
struct Process {
    habit: usize,
    before: Option<Ask>,
    stream: Stream,
    /// The request to come, flagged as synchronous if it is urgent.
    ask: Request,
    /// Whether it will be waited for.
    critical: bool,
    /// Whether it waits for `ask`.
    sleeps: bool,
}

/// A process that computes.
#[derive(Clone, Copy, Debug)]
struct Busy {
    until: SimTime,
    process: usize,
}

/// The workload.
#[derive(Clone, Debug)]
struct Processes {
    habits: Vec<Habit>,
    processes: Vec<Process>,
    processors: Vec<Option<Busy>>,
    /// Idle processors but the first are not used again.
    lost: bool,
    ready: VecDeque<usize>,
    requests: u64,
    given: u64,
    until: SimTime,
    /// The processor whose request was delivered; it has arrived when the next one is asked for.
    offered: Option<usize>,
}

impl Habit {
    fn size(&self, stream: &mut Stream) -> u64 {
        for _ in 0..REDRAWS_MAX {
            let sectors = libm::trunc(self.size.draw(stream));
            if sectors >= 1.0 && sectors < (self.blocks * self.blocking) as f64 {
                return (sectors as u64).div_ceil(self.blocking);
            }
        }
        1
    }

    fn anywhere(&self, stream: &mut Stream) -> Ask {
        let volume = self.volumes[stream.below(self.volumes.len() as u64) as usize];
        let blocks = self.size(stream).min(self.blocks);
        let block = stream.below(self.blocks - blocks + 1);
        Ask { volume, block, blocks, read: stream.chance(self.read) }
    }

    fn near(&self, before: &Ask, stream: &mut Stream) -> Option<Ask> {
        for _ in 0..REDRAWS_MAX {
            let distance = libm::trunc(self.local_distance.draw(stream)) / self.blocking as f64;
            let block = before.block as f64 + libm::trunc(distance);
            let blocks = self.size(stream);
            if block >= 0.0 && block + blocks as f64 <= self.blocks as f64 {
                let read = stream.chance(self.read);
                return Some(Ask { volume: before.volume, block: block as u64, blocks, read });
            }
        }
        None
    }

    /// The next request and the computing before it.
    fn draw(&self, before: Option<Ask>, stream: &mut Stream) -> (Ask, SimDuration) {
        let choice = stream.unit();
        if let Some(before) = before {
            let fits = before.block + 2 * before.blocks < self.blocks;
            if choice < self.sequential && fits {
                let ask = Ask { block: before.block + before.blocks, ..before };
                return (ask, draw_ms(&self.sequential_ms, stream));
            }
            if choice >= self.sequential
                && choice < self.sequential + self.local
                && let Some(ask) = self.near(&before, stream)
            {
                return (ask, draw_ms(&self.local_ms, stream));
            }
        }
        (self.anywhere(stream), draw_ms(&self.general_ms, stream))
    }

    fn request(&self, ask: &Ask) -> Request {
        let op = if ask.read { Op::Read } else { Op::Write };
        let lba = Lba(ask.volume + ask.block * self.blocking);
        Request::new(op, lba, (ask.blocks * self.blocking) as u32)
    }
}

impl Processes {
    /// Lets ready processes have idle processors from `now` on.
    fn dispatch(&mut self, now: SimTime) {
        while !self.ready.is_empty() {
            let usable = if self.lost { 1 } else { self.processors.len() };
            let idle = self.processors[..usable].iter().position(Option::is_none);
            let Some(idle) = idle else { return };
            let process = self.ready.pop_front().expect("it is not empty");
            self.processors[idle] = Some(self.compute(process, now));
        }
    }

    /// Draws what `process` asks for next, and how long it computes before.
    fn compute(&mut self, number: usize, now: SimTime) -> Busy {
        let process = &mut self.processes[number];
        let habit = &self.habits[process.habit];
        let (ask, gap) = habit.draw(process.before, &mut process.stream);
        process.before = Some(ask);
        process.ask = habit.request(&ask);
        let class = process.stream.unit();
        process.critical = class < habit.critical;
        if class < habit.critical + habit.limited {
            process.ask.flags = Flags::SYNC;
        }
        Busy { until: now + gap, process: number }
    }

    /// The processor that stops computing first.
    fn earliest(&self) -> Option<(usize, Busy)> {
        let busy = self.processors.iter().enumerate();
        let busy = busy.filter_map(|(at, busy)| busy.map(|busy| (at, busy)));
        busy.min_by_key(|(_, busy)| busy.until)
    }

    /// The request that was delivered has arrived: its process goes on or waits.
    fn arrived(&mut self, processor: usize) {
        let busy = self.processors[processor].expect("it delivered a request");
        let process = &mut self.processes[busy.process];
        if process.critical {
            process.sleeps = true;
            let next = self.ready.pop_front();
            self.processors[processor] = next.map(|next| self.compute(next, busy.until));
        } else {
            self.processors[processor] = Some(self.compute(busy.process, busy.until));
        }
    }
}

fn same(a: &Request, b: &Request) -> bool {
    (a.op, a.lba, a.sectors, a.flags) == (b.op, b.lba, b.sectors, b.flags)
}

impl Source for Processes {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        if let Some(processor) = self.offered.take() {
            self.arrived(processor);
        }
        if self.given >= self.requests {
            return Ok(None);
        }
        let Some((processor, busy)) = self.earliest() else { return Ok(None) };
        if busy.until > self.until || busy.until == SimTime::NEVER {
            self.requests = self.given;
            return Ok(None);
        }
        self.offered = Some(processor);
        self.given += 1;
        Ok(Some(Arrival { at: busy.until, request: self.processes[busy.process].ask }))
    }

    fn waits(&self) -> bool {
        self.given < self.requests
    }

    fn take_back(&mut self) {
        if self.offered.take().is_some() {
            self.given -= 1;
        }
    }

    fn progress(&self) -> Option<f64> {
        Some(self.given as f64 / self.requests.max(1) as f64)
    }

    fn completed(&mut self, request: &Request, now: SimTime) {
        let waiting = |process: &Process| process.sleeps && same(&process.ask, request);
        if let Some(number) = self.processes.iter().position(waiting) {
            self.processes[number].sleeps = false;
            self.ready.push_back(number);
            self.dispatch(now);
        }
    }
}

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
        for _ in 0..entry.count("count") {
            processes.push(Process {
                habit: habits.len() - 1,
                before: None,
                stream: input.stream(&format!("process-{}", processes.len())),
                ask: Request::new(Op::Read, Lba(0), 1),
                critical: false,
                sleeps: false,
            });
        }
    }
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let processors = settings.count_opt("processors").map_or(processes.len(), |n| n as usize);
    let duration = settings.duration_opt("duration");
    let mut workload = Processes {
        habits,
        ready: (0..processes.len()).collect(),
        processors: vec![None; processors.min(processes.len())],
        lost: false,
        processes,
        requests: settings.count("requests"),
        given: 0,
        until: duration.map_or(SimTime::NEVER, |time| SimTime::ZERO + time),
        offered: None,
    };
    workload.dispatch(SimTime::ZERO);
    workload.lost = settings.text("idle_processors") == "lost";
    Ok(Box::new(workload))
}
