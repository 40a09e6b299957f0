//! How processes, processors and what they wait for go on: the machine behind `processes`.
//!
//! A completion may change everything that comes after it, and a workload is asked for its next
//! request before it knows of one. All that happens before the next request without anybody's
//! help is known all the same; where a process would have to wait for a request that may be
//! complete by then, the state before is kept, and that stretch is done anew when a completion
//! comes first.

use super::drand48::Drand48;
use super::pace::{REDRAWS_MAX, draw_ms};
use hybridsim_engine::sample::Distribution;
use hybridsim_engine::{Arrival, Flags, Lba, Op, Request, SimDuration, SimTime, Source, Stream};
use std::collections::VecDeque;

/// What the processes of one entry have in common.
#[derive(Clone, Debug)]
pub(super) struct Habit {
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
    /// Computing after a limited request until it is waited for; never, if absent.
    pub limited_ms: Option<Distribution>,
    pub local_distance: Distribution,
    pub size: Distribution,
}

/// A request in units of a habit's blocks.
#[derive(Clone, Copy, Debug)]
struct Ask {
    volume: u64,
    block: u64,
    blocks: u64,
    read: bool,
}

/// How urgent a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// It is waited for.
    Critical,
    /// It is waited for after computing so long more.
    Limited(Option<SimDuration>),
    Usual,
}

/// Where numbers come from.
#[derive(Clone, Debug)]
pub(super) enum Dice {
    /// Every process has its own stream.
    Own(Vec<Stream>),
    /// All share DiskSim's, and draw in its order.
    DiskSim(Drand48),
}

impl Habit {
    fn size(&self, draw: &mut impl FnMut() -> f64) -> u64 {
        for _ in 0..REDRAWS_MAX {
            let sectors = libm::trunc(draw());
            if sectors >= 1.0 && sectors < (self.blocks * self.blocking) as f64 {
                return (sectors as u64).div_ceil(self.blocking);
            }
        }
        1
    }

    fn anywhere(&self, stream: &mut Stream) -> Ask {
        let volume = self.volumes[stream.below(self.volumes.len() as u64) as usize];
        let blocks = self.size(&mut || self.size.draw(stream)).min(self.blocks);
        let block = stream.below(self.blocks - blocks + 1);
        Ask { volume, block, blocks, read: stream.chance(self.read) }
    }

    /// The block as far from that of `before` as was drawn.
    fn moved(&self, before: &Ask, distance_sectors: f64) -> f64 {
        let distance = libm::trunc(distance_sectors) / self.blocking as f64;
        before.block as f64 + libm::trunc(distance)
    }

    fn near(&self, before: &Ask, stream: &mut Stream) -> Option<Ask> {
        for _ in 0..REDRAWS_MAX {
            let block = self.moved(before, self.local_distance.draw(stream));
            let blocks = self.size(&mut || self.size.draw(stream));
            if block >= 0.0 && block + blocks as f64 <= self.blocks as f64 {
                let read = stream.chance(self.read);
                return Some(Ask { volume: before.volume, block: block as u64, blocks, read });
            }
        }
        None
    }

    /// The request after `before`, where it goes on there.
    fn following(&self, before: &Ask) -> Option<Ask> {
        let fits = before.block + 2 * before.blocks < self.blocks;
        fits.then(|| Ask { block: before.block + before.blocks, ..*before })
    }

    /// The next request and the computing before it.
    fn draw(&self, before: Option<Ask>, stream: &mut Stream) -> (Ask, SimDuration) {
        let choice = stream.unit();
        if let Some(before) = before {
            if choice < self.sequential
                && let Some(ask) = self.following(&before)
            {
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

    /// How urgent a request is that drew `unit`.
    fn class(&self, unit: f64, limit: impl FnOnce(&Distribution) -> SimDuration) -> Class {
        if unit < self.critical {
            Class::Critical
        } else if unit < self.critical + self.limited {
            Class::Limited(self.limited_ms.as_ref().map(limit))
        } else {
            Class::Usual
        }
    }

    /// As [`Habit::draw`], number by number as DiskSim does: the computing first, place and size
    /// again and again until both fit, and the first request of a process is one anywhere.
    fn draw_as_disksim(&self, before: Option<Ask>, dice: &mut Drand48) -> (Ask, SimDuration) {
        let choice = before.map(|_| dice.unit());
        if let (Some(choice), Some(before)) = (choice, before) {
            if choice < self.sequential
                && let Some(ask) = self.following(&before)
            {
                return (ask, ms_of(&self.sequential_ms, dice));
            }
            if choice >= self.sequential && choice < self.sequential + self.local {
                let gap = ms_of(&self.local_ms, dice);
                return (self.near_as_disksim(&before, dice), gap);
            }
        }
        let gap = ms_of(&self.general_ms, dice);
        let volume = self.volumes[dice.below(self.volumes.len() as u64) as usize];
        let (mut block, mut blocks) = (0, 1);
        for _ in 0..REDRAWS_MAX {
            block = dice.below(self.blocks);
            blocks = self.blocks_of(dice.draw(&self.size));
            if blocks > 0 && block + blocks < self.blocks {
                break;
            }
            (block, blocks) = (0, 1);
        }
        let read = dice.unit() < self.read;
        (Ask { volume, block, blocks, read }, gap)
    }

    fn near_as_disksim(&self, before: &Ask, dice: &mut Drand48) -> Ask {
        let (mut block, mut blocks) = (before.block, before.blocks);
        for _ in 0..REDRAWS_MAX {
            let to = self.moved(before, dice.draw(&self.local_distance));
            let size = self.blocks_of(dice.draw(&self.size));
            if to >= 0.0 && size > 0 && to + (size as f64) < self.blocks as f64 {
                (block, blocks) = (to as u64, size);
                break;
            }
        }
        let read = dice.unit() < self.read;
        Ask { volume: before.volume, block, blocks, read }
    }

    /// Whole blocks that hold `sectors`; none of none or fewer.
    fn blocks_of(&self, sectors: f64) -> u64 {
        (libm::trunc(sectors).clamp(0.0, u32::MAX as f64) as u64).div_ceil(self.blocking)
    }

    fn request(&self, ask: &Ask, class: Class) -> Request {
        let op = if ask.read { Op::Read } else { Op::Write };
        let lba = Lba(ask.volume + ask.block * self.blocking);
        let flags = if class == Class::Usual { Flags::NONE } else { Flags::SYNC };
        Request { flags, ..Request::new(op, lba, (ask.blocks * self.blocking) as u32) }
    }
}

/// Milliseconds that are not negative, drawn as DiskSim does.
fn ms_of(distribution: &Distribution, dice: &mut Drand48) -> SimDuration {
    for _ in 0..REDRAWS_MAX {
        let ms = dice.draw(distribution);
        if ms >= 0.0 {
            return SimDuration::from_ns_f64(ms * 1e6);
        }
    }
    SimDuration::ZERO
}

/// What a process does when it has computed for long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Asks for what it has drawn.
    Ask,
    /// Waits for the limited request of this number, unless that is complete.
    Limit(u64),
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    habit: usize,
    before: Option<Ask>,
    /// The request to come, its number, and whether it will be waited for at once.
    request: Request,
    number: u64,
    critical: bool,
    /// What it does next, each after computing for so long since the one before; then it draws.
    steps: VecDeque<(SimDuration, Step)>,
    /// Limits of its requests to come, each counted from the one before, the first from when it
    /// began to compute for a request. DiskSim does not count down what is left of the first.
    limits: VecDeque<(SimDuration, u64)>,
    /// The request it waits for.
    sleeps_on: Option<u64>,
}

impl Process {
    pub fn new(habit: usize) -> Self {
        Self {
            habit,
            before: None,
            request: Request::new(Op::Read, Lba(0), 1),
            number: 0,
            critical: false,
            steps: VecDeque::new(),
            limits: VecDeque::new(),
            sleeps_on: None,
        }
    }

    /// Notes that request `number` is waited for `after` from now.
    fn limit(&mut self, number: u64, mut after: SimDuration) {
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

    /// Computes for `gap`, with what is to be waited for on the way, and asks.
    fn plan(&mut self, gap: SimDuration) {
        let mut left = gap;
        while let Some(&(after, number)) = self.limits.front()
            && after < left
        {
            self.limits.pop_front();
            left = left.saturating_sub(after);
            self.steps.push_back((after, Step::Limit(number)));
        }
        self.steps.push_back((left, Step::Ask));
    }
}

/// A processor at work: the process, and when it comes to its next step.
#[derive(Clone, Copy, Debug)]
struct Busy {
    until: SimTime,
    process: usize,
}

/// A request somebody may wait for.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    request: Request,
}

/// Everything that changes.
#[derive(Clone, Debug)]
struct State {
    processes: Vec<Process>,
    processors: Vec<Option<Busy>>,
    ready: VecDeque<usize>,
    pending: Vec<Pending>,
    dice: Dice,
    drawn: u64,
    ended: bool,
}

/// What the machine is built from.
pub(super) struct Plan {
    pub habits: Vec<Habit>,
    pub processes: Vec<Process>,
    pub processors: usize,
    /// Idle processors but the first are not used again.
    pub lost: bool,
    pub dice: Dice,
    /// Requests: given, or drawn after the first of every process where DiskSim draws.
    pub requests: u64,
    pub until: SimTime,
}

/// The workload.
pub(super) struct Flow {
    rules: Rules,
    state: State,
    /// The state before a process waited for what may be complete by then.
    kept: Option<Box<State>>,
    given: u64,
    /// The processor whose request was delivered; it has arrived when the next one is asked for.
    offered: Option<usize>,
}

/// What does not change.
struct Rules {
    habits: Vec<Habit>,
    lost: bool,
    requests: u64,
    until: SimTime,
}

impl Flow {
    pub fn new(plan: Plan) -> Self {
        let Plan { habits, processes, processors, lost, dice, requests, until } = plan;
        let rules = Rules { habits, lost: false, requests, until };
        let mut ready: VecDeque<usize> = (0..processes.len()).collect();
        // DiskSim's list of processes begins with the last one; it draws for all at the start.
        let as_disksim = matches!(dice, Dice::DiskSim(_));
        if as_disksim {
            ready.make_contiguous().reverse();
        }
        let mut state = State {
            processors: vec![None; processors.min(processes.len())],
            processes,
            pending: Vec::new(),
            dice,
            drawn: 0,
            ended: false,
            ready: VecDeque::new(),
        };
        if as_disksim {
            ready.iter().for_each(|&process| state.draw(&rules, process));
        }
        state.ready = ready;
        state.dispatch(&rules, SimTime::ZERO);
        let rules = Rules { lost, ..rules };
        Self { rules, state, kept: None, given: 0, offered: None }
    }

    /// Whether no more requests may be given.
    fn is_full(&self) -> bool {
        matches!(self.state.dice, Dice::Own(_)) && self.given >= self.rules.requests
    }
}

impl State {
    /// Draws the next request of `process`.
    fn draw(&mut self, rules: &Rules, number: usize) {
        self.drawn += 1;
        let process = &mut self.processes[number];
        let habit = &rules.habits[process.habit];
        let (ask, gap, class) = match &mut self.dice {
            Dice::Own(streams) => {
                let stream = &mut streams[number];
                let (ask, gap) = habit.draw(process.before, stream);
                let unit = stream.unit();
                (ask, gap, habit.class(unit, |limit| draw_ms(limit, stream)))
            }
            Dice::DiskSim(dice) => {
                let (ask, gap) = habit.draw_as_disksim(process.before, dice);
                let unit = dice.unit();
                (ask, gap, habit.class(unit, |limit| ms_of(limit, dice)))
            }
        };
        process.before = Some(ask);
        process.request = habit.request(&ask, class);
        process.number = self.drawn;
        process.critical = class == Class::Critical;
        if let Class::Limited(Some(after)) = class {
            process.limit(self.drawn, gap + after);
        }
        process.plan(gap);
    }

    /// When `process` comes to its next step if it computes from `now` on. At the end of its plan
    /// it draws a new one; DiskSim counts those and ends instead of drawing one too many.
    fn compute(&mut self, rules: &Rules, process: usize, now: SimTime) -> Busy {
        if self.processes[process].steps.is_empty() {
            let extra = self.processes.len() as u64 - 1;
            let last = rules.requests.saturating_add(extra);
            let full =
                matches!(self.dice, Dice::DiskSim(_)) && (self.drawn >= last || now >= rules.until);
            self.ended |= full;
            if self.ended {
                return Busy { until: SimTime::NEVER, process };
            }
            self.draw(rules, process);
        }
        let after = self.processes[process].steps.front().map_or(SimDuration::ZERO, |step| step.0);
        Busy { until: now + after, process }
    }

    /// Lets ready processes have idle processors from `now` on.
    fn dispatch(&mut self, rules: &Rules, now: SimTime) {
        while !self.ready.is_empty() {
            let usable = if rules.lost { 1 } else { self.processors.len() };
            let idle = self.processors[..usable].iter().position(Option::is_none);
            let Some(idle) = idle else { return };
            self.switch(rules, idle, now);
        }
    }

    /// Gives a processor to the next process that is ready, if any.
    fn switch(&mut self, rules: &Rules, processor: usize, now: SimTime) {
        let next = self.ready.pop_front();
        self.processors[processor] = next.map(|next| self.compute(rules, next, now));
    }

    /// The processor that comes to a step first, and the step.
    fn earliest(&self) -> Option<(usize, Busy, Step)> {
        let busy = self.processors.iter().enumerate();
        let busy = busy.filter_map(|(at, busy)| busy.map(|busy| (at, busy)));
        let (at, busy) = busy.min_by_key(|(_, busy)| busy.until)?;
        let step = self.processes[busy.process].steps.front()?.1;
        Some((at, busy, step))
    }

    fn is_pending(&self, number: u64) -> bool {
        self.pending.iter().any(|pending| pending.number == number)
    }

    /// A process has come to a limit: it waits, or computes on.
    fn at_limit(&mut self, rules: &Rules, processor: usize, busy: Busy, number: u64) {
        self.processes[busy.process].steps.pop_front();
        if self.is_pending(number) {
            self.processes[busy.process].sleeps_on = Some(number);
            self.switch(rules, processor, busy.until);
        } else {
            self.processors[processor] = Some(self.compute(rules, busy.process, busy.until));
        }
    }

    /// The request that was delivered has arrived: its process goes on or waits.
    fn arrived(&mut self, rules: &Rules, processor: usize) {
        let busy = self.processors[processor].expect("it delivered a request");
        let process = &mut self.processes[busy.process];
        process.steps.pop_front();
        let Process { number, request, critical, .. } = *process;
        if request.flags.contains(Flags::SYNC) {
            self.pending.push(Pending { number, request });
        }
        if critical {
            process.sleeps_on = Some(number);
            self.switch(rules, processor, busy.until);
        } else {
            self.processors[processor] = Some(self.compute(rules, busy.process, busy.until));
        }
    }

    /// A request somebody may wait for is complete.
    fn completed(&mut self, rules: &Rules, request: &Request, now: SimTime) {
        let found = self.pending.iter().position(|pending| same(&pending.request, request));
        let Some(at) = found else { return };
        let number = self.pending.remove(at).number;
        let waiting = |process: &Process| process.sleeps_on == Some(number);
        if let Some(process) = self.processes.iter().position(waiting) {
            self.processes[process].sleeps_on = None;
            self.ready.push_back(process);
            self.dispatch(rules, now);
        }
    }
}

fn same(a: &Request, b: &Request) -> bool {
    (a.op, a.lba, a.sectors, a.flags) == (b.op, b.lba, b.sectors, b.flags)
}

impl Source for Flow {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        let rules = &self.rules;
        if let Some(processor) = self.offered.take() {
            self.kept = None;
            self.state.arrived(rules, processor);
        }
        if self.is_full() || self.state.ended {
            return Ok(None);
        }
        while let Some((processor, busy, step)) = self.state.earliest() {
            if busy.until > self.rules.until || busy.until == SimTime::NEVER {
                self.state.ended = true;
                return Ok(None);
            }
            let Step::Limit(number) = step else {
                self.offered = Some(processor);
                self.given += 1;
                let request = self.state.processes[busy.process].request;
                return Ok(Some(Arrival { at: busy.until, request }));
            };
            if self.kept.is_none() && self.state.is_pending(number) {
                self.kept = Some(Box::new(self.state.clone()));
            }
            self.state.at_limit(&self.rules, processor, busy, number);
            if self.state.ended {
                break;
            }
        }
        Ok(None)
    }

    fn waits(&self) -> bool {
        self.kept.is_some() || (!self.is_full() && !self.state.ended)
    }

    fn take_back(&mut self) {
        if self.offered.take().is_some() {
            self.given -= 1;
        }
    }

    fn completed(&mut self, request: &Request, now: SimTime) {
        if let Some(kept) = self.kept.take() {
            self.state = *kept;
            while let Some((processor, busy, Step::Limit(number))) = self.state.earliest()
                && busy.until < now
            {
                self.state.at_limit(&self.rules, processor, busy, number);
            }
        }
        self.state.completed(&self.rules, request, now);
    }

    fn progress(&self) -> Option<f64> {
        Some((self.given as f64 / self.rules.requests.max(1) as f64).min(1.0))
    }
}
