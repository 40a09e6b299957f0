//! Simulates the processes, processors and waits of generator `processes`.
//!
//! A completion can change all later arrivals, but the host asks for the next request before it
//! knows of completions. The flow therefore runs ahead to the next request. Where a process would
//! wait for a request that may be complete by then, it takes a checkpoint, and repeats the steps
//! from there when a completion comes first.

use super::arrivals::{REDRAWS_MAX, draw_ms, too_late};
use super::drand48::Drand48;
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{Arrival, Flags, Lba, Op, Request, SimDuration, SimTime, Source, Stream};
use std::collections::VecDeque;

/// The seed DiskSim 4.0 sets before its event loop, whatever the parameter file says.
const DISKSIM_LOOP_SEED: u64 = 1_000_003;

/// The parameters of the processes of one entry.
#[derive(Clone, Debug)]
pub(super) struct AccessPattern {
    /// First sectors of the volumes used.
    pub volumes: Vec<u64>,
    /// Blocks of each volume.
    pub blocks: u64,
    /// Sectors of a block.
    pub blocking: u64,
    pub sequential: f64,
    pub local: f64,
    pub read: f64,
    pub critical: f64,
    pub limited: f64,
    pub general_ms: Distribution,
    pub sequential_ms: Distribution,
    pub local_ms: Distribution,
    /// Computation after a time-limited request until the process waits for it; never, if absent.
    pub limited_ms: Option<Distribution>,
    pub local_distance: Distribution,
    pub size: Distribution,
}

/// A request in blocks of its pattern.
#[derive(Clone, Copy, Debug)]
struct BlockRequest {
    volume: u64,
    block: u64,
    blocks: u64,
    read: bool,
}

/// DiskSim's time classes of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeClass {
    /// The process waits for it at once.
    Critical,
    /// The process waits for it after computing for this time.
    Limited(Option<SimDuration>),
    NonCritical,
}

/// The source of random numbers.
#[derive(Clone, Debug)]
pub(super) enum RandomNumbers {
    PerProcess(Vec<Stream>),
    /// One stream for all processes, drawn in DiskSim's order.
    DiskSim(Drand48),
}

impl AccessPattern {
    fn size(&self, draw: &mut impl FnMut() -> f64) -> u64 {
        for _ in 0..REDRAWS_MAX {
            let sectors = libm::trunc(draw());
            if sectors >= 1.0 && sectors < (self.blocks * self.blocking) as f64 {
                return (sectors as u64).div_ceil(self.blocking);
            }
        }
        1
    }

    fn general_request(&self, stream: &mut Stream) -> BlockRequest {
        let volume = self.volumes[stream.below(self.volumes.len() as u64) as usize];
        let blocks = self.size(&mut || self.size.draw(stream)).min(self.blocks);
        let block = stream.below(self.blocks - blocks + 1);
        BlockRequest { volume, block, blocks, read: stream.chance(self.read) }
    }

    /// The block at the drawn distance from that of `before`.
    fn at_distance(&self, before: &BlockRequest, distance_sectors: f64) -> f64 {
        let distance = libm::trunc(distance_sectors) / self.blocking as f64;
        before.block as f64 + libm::trunc(distance)
    }

    fn local_request(&self, before: &BlockRequest, stream: &mut Stream) -> Option<BlockRequest> {
        for _ in 0..REDRAWS_MAX {
            let block = self.at_distance(before, self.local_distance.draw(stream));
            let blocks = self.size(&mut || self.size.draw(stream));
            if block >= 0.0 && block + blocks as f64 <= self.blocks as f64 {
                let read = stream.chance(self.read);
                return Some(BlockRequest {
                    volume: before.volume,
                    block: block as u64,
                    blocks,
                    read,
                });
            }
        }
        None
    }

    /// The request that continues `before`, if it fits.
    fn sequential_request(&self, before: &BlockRequest) -> Option<BlockRequest> {
        let fits = before.block + 2 * before.blocks < self.blocks;
        fits.then(|| BlockRequest { block: before.block + before.blocks, ..*before })
    }

    /// The next request and the computation before it.
    fn draw(
        &self,
        before: Option<BlockRequest>,
        stream: &mut Stream,
    ) -> (BlockRequest, SimDuration) {
        let choice = stream.unit();
        if let Some(before) = before {
            if choice < self.sequential
                && let Some(next) = self.sequential_request(&before)
            {
                return (next, draw_ms(&self.sequential_ms, stream));
            }
            if choice >= self.sequential
                && choice < self.sequential + self.local
                && let Some(next) = self.local_request(&before, stream)
            {
                return (next, draw_ms(&self.local_ms, stream));
            }
        }
        (self.general_request(stream), draw_ms(&self.general_ms, stream))
    }

    /// The class of a request that drew `unit`.
    fn class(&self, unit: f64, limit: impl FnOnce(&Distribution) -> SimDuration) -> TimeClass {
        if unit < self.critical {
            TimeClass::Critical
        } else if unit < self.critical + self.limited {
            TimeClass::Limited(self.limited_ms.as_ref().map(limit))
        } else {
            TimeClass::NonCritical
        }
    }

    /// As [`AccessPattern::draw`], number by number as DiskSim does: the computation first, address
    /// and size together until both fit, and the first request of a process is a general one.
    fn draw_as_disksim(
        &self,
        before: Option<BlockRequest>,
        random: &mut Drand48,
    ) -> (BlockRequest, SimDuration) {
        let choice = before.map(|_| random.unit());
        if let (Some(choice), Some(before)) = (choice, before) {
            if choice < self.sequential
                && let Some(next) = self.sequential_request(&before)
            {
                return (next, draw_ms_as_disksim(&self.sequential_ms, random));
            }
            if choice >= self.sequential && choice < self.sequential + self.local {
                let gap = draw_ms_as_disksim(&self.local_ms, random);
                return (self.local_as_disksim(&before, random), gap);
            }
        }
        let gap = draw_ms_as_disksim(&self.general_ms, random);
        let volume = self.volumes[random.below(self.volumes.len() as u64) as usize];
        let (mut block, mut blocks) = (0, 1);
        for _ in 0..REDRAWS_MAX {
            block = random.below(self.blocks);
            blocks = self.blocks_of(random.draw(&self.size));
            if blocks > 0 && block + blocks < self.blocks {
                break;
            }
            (block, blocks) = (0, 1);
        }
        let read = random.unit() < self.read;
        (BlockRequest { volume, block, blocks, read }, gap)
    }

    fn local_as_disksim(&self, before: &BlockRequest, random: &mut Drand48) -> BlockRequest {
        let (mut block, mut blocks) = (before.block, before.blocks);
        for _ in 0..REDRAWS_MAX {
            let to = self.at_distance(before, random.draw(&self.local_distance));
            let size = self.blocks_of(random.draw(&self.size));
            if to >= 0.0 && size > 0 && to + (size as f64) < self.blocks as f64 {
                (block, blocks) = (to as u64, size);
                break;
            }
        }
        let read = random.unit() < self.read;
        BlockRequest { volume: before.volume, block, blocks, read }
    }

    /// Whole blocks of `sectors`; 0 for values up to 0.
    fn blocks_of(&self, sectors: f64) -> u64 {
        (libm::trunc(sectors).clamp(0.0, u32::MAX as f64) as u64).div_ceil(self.blocking)
    }

    fn request(&self, next: &BlockRequest, class: TimeClass) -> Request {
        let op = if next.read { Op::Read } else { Op::Write };
        let lba = Lba(next.volume + next.block * self.blocking);
        let flags = if class == TimeClass::NonCritical { Flags::NONE } else { Flags::SYNC };
        Request { flags, ..Request::new(op, lba, (next.blocks * self.blocking) as u32) }
    }
}

/// A time in milliseconds of at least 0, drawn as DiskSim does.
fn draw_ms_as_disksim(distribution: &Distribution, random: &mut Drand48) -> SimDuration {
    for _ in 0..REDRAWS_MAX {
        let ms = random.draw(distribution);
        if ms >= 0.0 {
            return SimDuration::from_ns_f64(ms * 1e6);
        }
    }
    SimDuration::ZERO
}

/// The action of a process after a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessStep {
    /// Issues the drawn request.
    Issue,
    /// Waits for the time-limited request of this number, unless it is complete.
    WaitFor(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    pattern: usize,
    before: Option<BlockRequest>,
    /// The next request, its number, and whether it is time-critical.
    request: Request,
    number: u64,
    critical: bool,
    /// The next steps, each with the computation before it; then the process draws a request.
    steps: VecDeque<(SimDuration, ProcessStep)>,
    /// Limits of its time-limited requests, each relative to the previous one, the first to the
    /// start of the computation for a request. DiskSim does not decrement the rest of the first.
    limits: VecDeque<(SimDuration, u64)>,
    /// The number of the request it waits for.
    waits_for: Option<u64>,
}

impl Process {
    pub fn new(pattern: usize) -> Self {
        Self {
            pattern,
            before: None,
            request: Request::new(Op::Read, Lba(0), 1),
            number: 0,
            critical: false,
            steps: VecDeque::new(),
            limits: VecDeque::new(),
            waits_for: None,
        }
    }

    /// The process will wait for request `number` after computing for `after`.
    fn add_limit(&mut self, number: u64, mut after: SimDuration) {
        let mut at = 0;
        for &(delta, _) in &self.limits {
            if after < delta {
                break;
            }
            after = after.saturating_sub(delta);
            at += 1;
        }
        if let Some((delta, _)) = self.limits.get_mut(at) {
            *delta = delta.saturating_sub(after);
        }
        self.limits.insert(at, (after, number));
    }

    /// Schedules a computation of `gap`, with the limits that expire during it, and then a request.
    fn schedule(&mut self, gap: SimDuration) {
        let mut left = gap;
        while let Some(&(after, number)) = self.limits.front()
            && after < left
        {
            self.limits.pop_front();
            left = left.saturating_sub(after);
            self.steps.push_back((after, ProcessStep::WaitFor(number)));
        }
        self.steps.push_back((left, ProcessStep::Issue));
    }
}

/// The process on a processor, and the time of its next step.
#[derive(Clone, Copy, Debug)]
struct Running {
    until: SimTime,
    process: usize,
}

/// A request that a process may wait for.
#[derive(Clone, Copy, Debug)]
struct OutstandingRequest {
    number: u64,
    request: Request,
}

/// The variable part of a flow.
#[derive(Clone, Debug)]
struct FlowState {
    processes: Vec<Process>,
    processors: Vec<Option<Running>>,
    ready: VecDeque<usize>,
    outstanding: Vec<OutstandingRequest>,
    random: RandomNumbers,
    drawn: u64,
    ended: bool,
}

/// The configuration of a flow.
pub(super) struct FlowConfig {
    pub patterns: Vec<AccessPattern>,
    pub processes: Vec<Process>,
    pub processors: usize,
    /// Idle processors other than the first are not used again.
    pub lose_processors: bool,
    pub random: RandomNumbers,
    /// Maximum requests issued or, in DiskSim's order, drawn after the first of every process.
    pub requests: u64,
    pub until: SimTime,
}

/// A workload of processes.
pub(super) struct ProcessFlow {
    rules: FlowRules,
    state: FlowState,
    /// The state before a process waited for a request that may be complete by then.
    checkpoint: Option<Box<FlowState>>,
    issued: u64,
    /// The processor of the last request returned, which arrives when the next one is asked for.
    unconfirmed: Option<usize>,
}

/// The constant part of a flow.
struct FlowRules {
    patterns: Vec<AccessPattern>,
    lose_processors: bool,
    requests: u64,
    until: SimTime,
}

impl ProcessFlow {
    pub fn new(config: FlowConfig) -> Self {
        let FlowConfig {
            patterns,
            processes,
            processors,
            lose_processors,
            random,
            requests,
            until,
        } = config;
        let rules = FlowRules { patterns, lose_processors: false, requests, until };
        let mut ready: VecDeque<usize> = (0..processes.len()).collect();
        // DiskSim's list of processes starts with the last one, and all draw at the start.
        let as_disksim = matches!(random, RandomNumbers::DiskSim(_));
        if as_disksim {
            ready.make_contiguous().reverse();
        }
        let mut state = FlowState {
            processors: vec![None; processors.min(processes.len())],
            processes,
            outstanding: Vec::new(),
            random,
            drawn: 0,
            ended: false,
            ready: VecDeque::new(),
        };
        if as_disksim {
            ready.iter().for_each(|&process| state.draw(&rules, process));
            // The seed of the file governs only these: DiskSim seeds again before its event loop.
            state.random = RandomNumbers::DiskSim(Drand48::new(DISKSIM_LOOP_SEED));
        }
        state.ready = ready;
        state.dispatch(&rules, SimTime::ZERO);
        let rules = FlowRules { lose_processors, ..rules };
        Self { rules, state, checkpoint: None, issued: 0, unconfirmed: None }
    }

    fn is_full(&self) -> bool {
        matches!(self.state.random, RandomNumbers::PerProcess(_))
            && self.issued >= self.rules.requests
    }
}

impl FlowState {
    /// Draws the next request of `process`.
    fn draw(&mut self, rules: &FlowRules, number: usize) {
        self.drawn += 1;
        let process = &mut self.processes[number];
        let pattern = &rules.patterns[process.pattern];
        let (next, gap, class) = match &mut self.random {
            RandomNumbers::PerProcess(streams) => {
                let stream = &mut streams[number];
                let (next, gap) = pattern.draw(process.before, stream);
                let unit = stream.unit();
                (next, gap, pattern.class(unit, |limit| draw_ms(limit, stream)))
            }
            RandomNumbers::DiskSim(random) => {
                let (next, gap) = pattern.draw_as_disksim(process.before, random);
                let unit = random.unit();
                (next, gap, pattern.class(unit, |limit| draw_ms_as_disksim(limit, random)))
            }
        };
        process.before = Some(next);
        process.request = pattern.request(&next, class);
        process.number = self.drawn;
        process.critical = class == TimeClass::Critical;
        if let TimeClass::Limited(Some(after)) = class {
            process.add_limit(self.drawn, gap + after);
        }
        process.schedule(gap);
    }

    /// Lets `process` compute from `now` until its next step. After its last step it draws a
    /// request; DiskSim counts these and ends instead of drawing more than the maximum.
    fn compute(&mut self, rules: &FlowRules, process: usize, now: SimTime) -> Running {
        if self.processes[process].steps.is_empty() {
            let extra = self.processes.len() as u64 - 1;
            let last = rules.requests.saturating_add(extra);
            let full = matches!(self.random, RandomNumbers::DiskSim(_))
                && (self.drawn >= last || now >= rules.until);
            self.ended |= full;
            if self.ended {
                return Running { until: SimTime::NEVER, process };
            }
            self.draw(rules, process);
        }
        let after = self.processes[process].steps.front().map_or(SimDuration::ZERO, |step| step.0);
        Running { until: now + after, process }
    }

    /// Assigns idle processors to ready processes.
    fn dispatch(&mut self, rules: &FlowRules, now: SimTime) {
        while !self.ready.is_empty() {
            let usable = if rules.lose_processors { 1 } else { self.processors.len() };
            let idle = self.processors[..usable].iter().position(Option::is_none);
            let Some(idle) = idle else { return };
            self.switch(rules, idle, now);
        }
    }

    /// Assigns the processor to the next ready process, if any.
    fn switch(&mut self, rules: &FlowRules, processor: usize, now: SimTime) {
        let next = self.ready.pop_front();
        self.processors[processor] = next.map(|next| self.compute(rules, next, now));
    }

    /// The earliest step and its processor.
    fn earliest(&self) -> Option<(usize, Running, ProcessStep)> {
        let running = self.processors.iter().enumerate();
        let running = running.filter_map(|(at, running)| running.map(|running| (at, running)));
        let (at, running) = running.min_by_key(|(_, running)| running.until)?;
        let step = self.processes[running.process].steps.front()?.1;
        Some((at, running, step))
    }

    fn is_outstanding(&self, number: u64) -> bool {
        self.outstanding.iter().any(|outstanding| outstanding.number == number)
    }

    /// A limit expires: the process waits, or continues its computation.
    fn at_limit(&mut self, rules: &FlowRules, processor: usize, running: Running, number: u64) {
        self.processes[running.process].steps.pop_front();
        if self.is_outstanding(number) {
            self.processes[running.process].waits_for = Some(number);
            self.switch(rules, processor, running.until);
        } else {
            self.processors[processor] = Some(self.compute(rules, running.process, running.until));
        }
    }

    /// The last request returned arrives: its process continues or waits.
    fn arrived(&mut self, rules: &FlowRules, processor: usize) {
        let running = self.processors[processor].expect("it issued a request");
        let process = &mut self.processes[running.process];
        process.steps.pop_front();
        let Process { number, request, critical, .. } = *process;
        if request.flags.contains(Flags::SYNC) {
            self.outstanding.push(OutstandingRequest { number, request });
        }
        if critical {
            process.waits_for = Some(number);
            self.switch(rules, processor, running.until);
        } else {
            self.processors[processor] = Some(self.compute(rules, running.process, running.until));
        }
    }

    /// A request that a process may wait for is complete.
    fn completed(&mut self, rules: &FlowRules, request: &Request, now: SimTime) {
        let found =
            self.outstanding.iter().position(|outstanding| same(&outstanding.request, request));
        let Some(at) = found else { return };
        let number = self.outstanding.remove(at).number;
        let waiting = |process: &Process| process.waits_for == Some(number);
        if let Some(process) = self.processes.iter().position(waiting) {
            self.processes[process].waits_for = None;
            self.ready.push_back(process);
            self.dispatch(rules, now);
        }
    }
}

fn same(a: &Request, b: &Request) -> bool {
    (a.op, a.lba, a.sectors, a.flags) == (b.op, b.lba, b.sectors, b.flags)
}

impl Source for ProcessFlow {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let rules = &self.rules;
        if let Some(processor) = self.unconfirmed.take() {
            self.checkpoint = None;
            self.state.arrived(rules, processor);
        }
        if self.is_full() || self.state.ended {
            return Ok(None);
        }
        while let Some((processor, running, step)) = self.state.earliest() {
            if running.until > self.rules.until {
                self.state.ended = true;
                return Ok(None);
            }
            if running.until == SimTime::NEVER {
                return Err(too_late(self.issued + 1));
            }
            let ProcessStep::WaitFor(number) = step else {
                self.unconfirmed = Some(processor);
                self.issued += 1;
                let request = self.state.processes[running.process].request;
                return Ok(Some(Arrival { at: running.until, request }));
            };
            if self.checkpoint.is_none() && self.state.is_outstanding(number) {
                self.checkpoint = Some(Box::new(self.state.clone()));
            }
            self.state.at_limit(&self.rules, processor, running, number);
            if self.state.ended {
                break;
            }
        }
        Ok(None)
    }

    fn waits(&self) -> bool {
        self.checkpoint.is_some() || (!self.is_full() && !self.state.ended)
    }

    fn take_back(&mut self) {
        if self.unconfirmed.take().is_some() {
            self.issued -= 1;
        }
    }

    fn completed(&mut self, request: &Request, now: SimTime) {
        if let Some(checkpoint) = self.checkpoint.take() {
            self.state = *checkpoint;
            while let Some((processor, running, ProcessStep::WaitFor(number))) =
                self.state.earliest()
                && running.until < now
            {
                self.state.at_limit(&self.rules, processor, running, number);
            }
        }
        self.state.completed(&self.rules, request, now);
    }

    fn progress(&self) -> Option<f64> {
        Some((self.issued as f64 / self.rules.requests.max(1) as f64).min(1.0))
    }
}
