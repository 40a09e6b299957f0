//! Members of a redundant array: which have failed, what replaces them, how far that has come.
//!
//! A *column* is a place in the array's layout; a *child* is the device in it, or a spare. A
//! column whose child failed gets the next spare, which is filled step by step (a step is a
//! stripe or a region of a mirror) while the array serves requests. One column is rebuilt at a
//! time, the others wait in the order they failed.
//!
//! Invariant: nothing is ever read from a child that failed, nor from a part of a spare that is
//! not filled yet.

use hybridsim_config::build::{BuildInput, ChildView};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_engine::{CommonEvent, Ctx, SECTOR_BYTES, SimDuration, SimTime};
use std::collections::VecDeque;

/// The devices of an array.
pub const MEMBERS: Param = Param::required(
    "members",
    Kind::Components,
    "The devices, in order; the smallest of them and of the spares counts for all",
);

/// The devices that replace failed ones.
pub const SPARES: Param = Param::with(
    "spares",
    Kind::Components,
    "[]",
    "Devices that replace members that fail, in order",
);

const FAILURE: &[Param] = &[
    Param::required(
        "member",
        Kind::Count { min: 0, max: 65_535 },
        "Which device: counted from 0 in `members`, and on in `spares`",
    ),
    Param::with("at", Kind::Duration, "\"0ns\"", "When; 0ns: it has failed before the start"),
];

/// When devices fail.
pub const FAILURES: Param = Param::with(
    "failures",
    Kind::Tables(FAILURE),
    "[]",
    "Devices that fail, as `{ member = 2, at = \"10s\" }`; they answer nothing from then on",
);

/// How fast a spare is filled.
pub const REBUILD_RATE: Param = Param::optional(
    "rebuild_rate",
    Kind::Rate,
    "Bytes per second a spare is filled, or members made to agree, at most; without it as fast as \
     the members allow",
);

/// How much of it at a time.
pub const REBUILD_PARALLEL: Param = Param::with(
    "rebuild_parallel",
    Kind::Count { min: 1, max: WINDOW },
    "4",
    "Stripes (of a mirror: regions) rebuilt, or made to agree, at a time",
);

/// Whether requests go first.
pub const REBUILD_AFTER_IDLE: Param = Param::with(
    "rebuild_after_idle",
    Kind::Duration,
    "\"0ns\"",
    "A step of a rebuild (or resync) starts only when the array has served no request for so \
     long; 0ns: beside the requests",
);

/// Names of the numbers an array tells.
pub const CUSTOM: &[&str] = &[
    "member_failed",
    "beyond_redundancy",
    "rebuild_started",
    "rebuild_percent",
    "rebuild_ended_ns",
    "rebuild_aborted",
    "unserved_sectors",
    "resync_started",
    "resync_ended_ns",
    "write_hole_sectors",
    "journal_replayed_ns",
];

/// A child failed; its number.
const MEMBER_FAILED: u8 = 0;
/// More is missing than the array can bear: data are lost. How many columns lack something.
const BEYOND_REDUNDANCY: u8 = 1;
/// The child being filled.
const REBUILD_STARTED: u8 = 2;
/// Progress of the rebuild, told at every percent.
const REBUILD_PERCENT: u8 = 3;
/// A rebuild ended; the time it took.
const REBUILD_ENDED: u8 = 4;
/// A rebuild cannot go on; the child that was being filled.
const REBUILD_ABORTED: u8 = 5;
/// A request could not be served; its length.
const UNSERVED_SECTORS: u8 = 6;

/// After a power failure: steps (regions of copies, stripes) that may be inconsistent.
pub(super) const RESYNC_STARTED: u8 = 7;
/// All of them that can be mended are; the time since the power came back.
pub(super) const RESYNC_ENDED: u8 = 8;
/// A request could not be served because parity may not match the data; its length.
const WRITE_HOLE_SECTORS: u8 = 9;

/// Steps that may be done out of order: bits of a word.
const WINDOW: u64 = 64;
/// Timer of the rebuild; smaller tokens are numbers of failures.
const REBUILD_TOKEN: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    Failed,
    Rebuilding,
}

#[derive(Clone, Copy, Debug)]
struct Column {
    child: usize,
    state: State,
}

/// A spare being filled.
#[derive(Clone, Copy, Debug)]
struct Rebuild {
    number: u32,
    column: usize,
    began: SimTime,
    /// All steps before this one are done.
    frontier: u64,
    /// Bit n: step frontier + n is done.
    done: u64,
    /// The next step to start.
    next: u64,
    running: u64,
    percent: u64,
}

/// A step of a rebuild that may start now.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Names the rebuild; another one may have begun when the step ends.
    pub rebuild: u32,
    /// Which step.
    pub step: u64,
    /// The column being filled.
    pub column: usize,
}

/// The members of an array.
#[derive(Debug)]
pub struct Members {
    columns: Vec<Column>,
    /// Columns that are not good.
    lacking: usize,
    failed: Vec<bool>,
    spares: VecDeque<usize>,
    failures: Vec<(usize, SimTime)>,
    /// Failed columns not being rebuilt, in the order they failed.
    waiting: VecDeque<usize>,
    rebuild: Option<Rebuild>,
    rebuilds: u32,
    beyond: bool,
    timer_set: bool,
    parallel: u64,
    /// A step waits until no request has been served for so long.
    idle_wait: SimDuration,
    /// Since when none is served.
    idle_since: Option<SimTime>,
    /// Time a step takes at least, and when the next may start.
    step_time: SimDuration,
    next_at: SimTime,
    steps: u64,
}

/// Number of columns and the sectors each offers: the smallest child counts.
pub fn columns_of(input: &BuildInput<'_>) -> (usize, u64) {
    // A spare may be a bus with several devices: every one of them is a spare.
    let spares = input.settings.texts_opt("spares").unwrap_or(&[]);
    let is_spare = |child: &&ChildView| spares.contains(&child.name);
    let count = input.children.iter().filter(is_spare).count().max(spares.len());
    let journal = input.settings.text_opt("journal").map_or(0, |_| 1);
    let columns = input.children.len().saturating_sub(count + journal);
    let devices = &input.children[..input.children.len().saturating_sub(journal)];
    (columns, devices.iter().map(|child| child.capacity).min().unwrap_or(0))
}

/// The child that is the array's journal, if it has one: the last.
pub fn journal_of(input: &BuildInput<'_>) -> Option<usize> {
    input.settings.text_opt("journal")?;
    input.children.len().checked_sub(1)
}

impl Members {
    /// Writes that were under way when the power failed have been done again from the journal; the
    /// time that took.
    pub(super) const REPLAYED: u8 = 10;

    /// The members of `input`, to be rebuilt in `steps` steps of `step_sectors` sectors.
    pub fn read(
        input: &BuildInput<'_>,
        steps: u64,
        step_sectors: u64,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let (settings, children) = (input.settings, input.children.len());
        let (columns, _) = columns_of(input);
        let mut failures = Vec::new();
        for failure in settings.tables("failures") {
            let member = failure.count("member");
            if member >= children as u64 {
                let message = format!("member {member} does not exist; there are {children}");
                problems.push(Problem::new("failures", message));
            }
            failures.push((member as usize, SimTime::ZERO + failure.duration("at")));
        }
        let rate = settings.rate_opt("rebuild_rate").unwrap_or(0);
        Self {
            columns: (0..columns).map(|child| Column { child, state: State::Good }).collect(),
            lacking: 0,
            failed: vec![false; children],
            spares: (columns..children - usize::from(settings.text_opt("journal").is_some()))
                .collect(),
            failures,
            waiting: VecDeque::new(),
            rebuild: None,
            rebuilds: 0,
            beyond: false,
            timer_set: false,
            parallel: settings.count("rebuild_parallel"),
            idle_wait: settings.duration("rebuild_after_idle"),
            idle_since: Some(SimTime::ZERO),
            step_time: SimDuration::transfer(step_sectors.saturating_mul(SECTOR_BYTES), rate),
            next_at: SimTime::ZERO,
            steps,
        }
    }

    /// What fails before the start has failed; timers are set for the rest.
    pub fn start(&mut self, ctx: &mut Ctx<'_>) {
        for at in 0..self.failures.len() {
            let (child, time) = self.failures[at];
            match time {
                SimTime::ZERO => self.fail(ctx, child),
                SimTime::NEVER => {}
                time => ctx.wake_at(time, at as u64),
            }
        }
    }

    /// The power fails. Who has failed, and how far a spare is filled, is written down on the
    /// members, as they do not change often; steps under way begin anew.
    pub fn power_cut(&mut self, now: SimTime) {
        (self.idle_since, self.timer_set, self.next_at) = (Some(now), false, now);
        if let Some(rebuild) = &mut self.rebuild {
            (rebuild.next, rebuild.running) = (rebuild.frontier, 0);
        }
    }

    /// The power is back: what has not failed yet still will.
    pub fn power_on(&self, ctx: &mut Ctx<'_>) {
        for (at, (child, time)) in self.failures.iter().enumerate() {
            if !self.failed[*child] && *time != SimTime::NEVER {
                ctx.wake_at((*time).max(ctx.now()), at as u64);
            }
        }
    }

    /// A timer went off: a child fails, or the rebuild may go on.
    pub fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        if token == REBUILD_TOKEN {
            self.timer_set = false;
        } else {
            self.fail(ctx, self.failures[token as usize].0);
        }
    }

    /// `child` is lost, from now on.
    pub fn fail(&mut self, ctx: &mut Ctx<'_>, child: usize) {
        if std::mem::replace(&mut self.failed[child], true) {
            return;
        }
        ctx.emit(CommonEvent::Custom { name: MEMBER_FAILED, value: child as u64 });
        self.spares.retain(|spare| *spare != child);
        if let Some(column) = self.columns.iter().position(|column| column.child == child) {
            match self.columns[column].state {
                State::Good => self.lacking += 1,
                State::Rebuilding => self.abort_rebuild(ctx),
                State::Failed => {}
            }
            self.columns[column].state = State::Failed;
            self.waiting.push_back(column);
        }
        self.replace(ctx);
    }

    /// Tells, once, that more is missing than the array can bear.
    pub fn tell_beyond_redundancy(&mut self, ctx: &mut Ctx<'_>) {
        if !std::mem::replace(&mut self.beyond, true) {
            ctx.emit(CommonEvent::Custom { name: BEYOND_REDUNDANCY, value: self.lacking as u64 });
        }
    }

    /// Tells that a request of `sectors` sectors could not be served.
    pub fn tell_unserved(ctx: &mut Ctx<'_>, sectors: u32) {
        ctx.emit(CommonEvent::Custom { name: UNSERVED_SECTORS, value: u64::from(sectors) });
    }

    /// Tells that a request of `sectors` sectors would need parity that may be wrong.
    pub fn tell_write_hole(ctx: &mut Ctx<'_>, sectors: u32) {
        ctx.emit(CommonEvent::Custom { name: WRITE_HOLE_SECTORS, value: u64::from(sectors) });
    }

    /// Gives the next spare to the column that failed first.
    fn replace(&mut self, ctx: &mut Ctx<'_>) {
        if self.rebuild.is_some() || self.waiting.is_empty() {
            return;
        }
        let Some(child) = self.spares.pop_front() else { return };
        let column = self.waiting.pop_front().expect("checked above");
        self.columns[column] = Column { child, state: State::Rebuilding };
        self.rebuilds += 1;
        self.rebuild = Some(Rebuild {
            number: self.rebuilds,
            column,
            began: ctx.now(),
            frontier: 0,
            done: 0,
            next: 0,
            running: 0,
            percent: 0,
        });
        self.next_at = ctx.now();
        ctx.emit(CommonEvent::Custom { name: REBUILD_STARTED, value: child as u64 });
    }

    fn abort_rebuild(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(rebuild) = self.rebuild.take() {
            let column = &mut self.columns[rebuild.column];
            column.state = State::Failed;
            ctx.emit(CommonEvent::Custom { name: REBUILD_ABORTED, value: column.child as u64 });
        }
    }

    /// What the rebuild needs is lost: it ends, and the next column has its turn.
    pub fn give_up_rebuild(&mut self, ctx: &mut Ctx<'_>) {
        self.abort_rebuild(ctx);
        self.replace(ctx);
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Whether `child` has failed.
    pub fn has_failed(&self, child: usize) -> bool {
        self.failed[child]
    }

    /// Columns that lack something: failed, or not filled yet.
    pub fn lacking(&self) -> usize {
        self.lacking
    }

    /// Whether no column lacks anything.
    pub fn all_good(&self) -> bool {
        self.lacking == 0
    }

    /// Whether the column holds all of its data.
    pub fn is_good(&self, column: usize) -> bool {
        self.columns[column].state == State::Good
    }

    /// The child that holds what belongs to `column` in steps `from..to`.
    #[inline]
    pub fn holder(&self, column: usize, from: u64, to: u64) -> Option<usize> {
        let Column { child, state } = self.columns[column];
        match (state, &self.rebuild) {
            (State::Good, _) => Some(child),
            (State::Rebuilding, Some(rebuild)) if rebuild.column == column => {
                let filled = to <= rebuild.frontier
                    || (to == from + 1
                        && from - rebuild.frontier < WINDOW
                        && rebuild.done >> (from - rebuild.frontier) & 1 == 1);
                filled.then_some(child)
            }
            _ => None,
        }
    }

    /// The child in `column`, filled or not, unless it has failed.
    pub fn present(&self, column: usize) -> Option<usize> {
        let Column { child, state } = self.columns[column];
        (state != State::Failed).then_some(child)
    }

    /// Steps of a rebuild, or a resync, at a time.
    pub const fn parallel(&self) -> u64 {
        self.parallel
    }

    /// Whether a step of work in the background may start now, which it then must; otherwise a
    /// timer is set or a later call will answer. `idle` tells whether no request is served now.
    pub fn may_step(&mut self, ctx: &mut Ctx<'_>, idle: bool) -> bool {
        self.idle_since = idle.then(|| self.idle_since.unwrap_or(ctx.now()));
        let quiet = match (self.idle_wait, self.idle_since) {
            (SimDuration::ZERO, _) => SimTime::ZERO,
            (wait, Some(since)) => since + wait,
            (_, None) => return false,
        };
        let start = self.next_at.max(quiet);
        if start > ctx.now() {
            if !std::mem::replace(&mut self.timer_set, true) {
                ctx.wake_at(start, REBUILD_TOKEN);
            }
            return false;
        }
        self.next_at = ctx.now().max(self.next_at) + self.step_time;
        true
    }

    /// The next step of the rebuild, when one may start now; see [`Members::may_step`]. This must
    /// be called whenever `idle` changes. Steps that `concerns` denies are done at once.
    pub fn next_step(
        &mut self,
        ctx: &mut Ctx<'_>,
        idle: bool,
        concerns: impl Fn(u64, usize) -> bool,
    ) -> Option<Step> {
        self.idle_since = idle.then(|| self.idle_since.unwrap_or(ctx.now()));
        loop {
            let steps = self.steps;
            let rebuild = self.rebuild.as_mut()?;
            // Behind what was done before the power failed, too.
            let step = rebuild.next.max(rebuild.frontier);
            rebuild.next = step;
            let (column, number) = (rebuild.column, rebuild.number);
            let ahead = step - rebuild.frontier;
            if step >= steps || ahead >= WINDOW {
                return None;
            }
            if rebuild.done >> ahead & 1 == 1 {
                rebuild.next += 1;
                continue;
            }
            if !concerns(step, column) {
                rebuild.next += 1;
                rebuild.running += 1;
                self.step_done(ctx, number, step);
                continue;
            }
            if rebuild.running >= self.parallel || !self.may_step(ctx, idle) {
                return None;
            }
            let rebuild = self.rebuild.as_mut().expect("it goes on");
            rebuild.next += 1;
            rebuild.running += 1;
            return Some(Step { rebuild: number, step, column });
        }
    }

    /// Whether this rebuild still goes on.
    pub fn is_rebuilding(&self, number: u32) -> bool {
        self.rebuild.is_some_and(|rebuild| rebuild.number == number)
    }

    /// A step is done; nothing happens when its rebuild is no more.
    pub fn step_done(&mut self, ctx: &mut Ctx<'_>, number: u32, step: u64) {
        let steps = self.steps;
        let Some(rebuild) = self.rebuild.as_mut().filter(|rebuild| rebuild.number == number) else {
            return;
        };
        rebuild.running -= 1;
        rebuild.done |= 1 << (step - rebuild.frontier);
        let run = rebuild.done.trailing_ones();
        rebuild.done = rebuild.done.checked_shr(run).unwrap_or(0);
        rebuild.frontier += u64::from(run);
        let percent = (u128::from(rebuild.frontier) * 100 / u128::from(steps)) as u64;
        if percent > rebuild.percent {
            rebuild.percent = percent;
            ctx.emit(CommonEvent::Custom { name: REBUILD_PERCENT, value: percent });
        }
        if rebuild.frontier == steps {
            let took = ctx.now().since(rebuild.began);
            self.columns[rebuild.column].state = State::Good;
            self.lacking -= 1;
            self.rebuild = None;
            ctx.emit(CommonEvent::Custom { name: REBUILD_ENDED, value: took.as_ns() });
            self.replace(ctx);
        }
    }
}
