//! Members of a redundant array: failures, spares, and the progress of the rebuild.
//!
//! A *column* is a position in the array's layout; a *child* is the device in it, or a spare. A
//! column whose child failed gets the next spare, which is rebuilt step by step (a step is a stripe
//! or a region of a mirror) while the array serves requests. One column is rebuilt at a time; the
//! others wait in the order they failed.
//!
//! Invariant: no read goes to a failed child or to a part of a spare that is not rebuilt yet.

use super::params::{Failure, Redundancy, WINDOW};
use hybridsim_config::build::{BuildInput, ChildView};
use hybridsim_config::param::Problem;
use hybridsim_engine::{CommonEvent, RedundancyChange};
use hybridsim_engine::{Ctx, Injected, SECTOR_BYTES, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The faults that can be injected into redundant arrays.
pub const FAULTS: &[&str] = &["fail"];

/// Names of the custom events of an array.
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
/// More columns are degraded than the redundancy covers: data are lost. Number of them.
const BEYOND_REDUNDANCY: u8 = 1;
/// The spare being rebuilt.
const REBUILD_STARTED: u8 = 2;
/// Progress of the rebuild, in percent.
const REBUILD_PERCENT: u8 = 3;
/// A rebuild ended; the time it took.
const REBUILD_ENDED: u8 = 4;
/// A rebuild was aborted; the spare.
const REBUILD_ABORTED: u8 = 5;
/// A request could not be served; its length.
const UNSERVED_SECTORS: u8 = 6;

/// A resync started after a power failure; steps (regions of copies, stripes) that may be
/// inconsistent.
pub(super) const RESYNC_STARTED: u8 = 7;
/// The resync ended; the time since the power came back.
pub(super) const RESYNC_ENDED: u8 = 8;
/// A request could not be served because parity may not match the data; its length.
const WRITE_HOLE_SECTORS: u8 = 9;

/// Timer of the rebuild; smaller tokens are indices of failures.
const REBUILD_TOKEN: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Good,
    Failed,
    Rebuilding,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Column {
    child: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Rebuild {
    number: u32,
    column: usize,
    began: SimTime,
    /// All earlier steps are done.
    frontier: u64,
    /// Bit n: whether step frontier + n is done.
    done: u64,
    next: u64,
    running: u64,
    percent: u64,
}

/// A step of a rebuild that may start now.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Number of the rebuild; another one may have started when the step ends.
    pub rebuild: u32,
    pub step: u64,
    /// The column being rebuilt.
    pub column: usize,
}

/// The members of an array.
#[derive(Debug, Serialize, Deserialize)]
pub struct Members {
    columns: Vec<Column>,
    /// Columns that are failed or not rebuilt yet.
    degraded: usize,
    failed: Vec<bool>,
    /// Members and spares; a journal comes after them.
    devices: usize,
    spares: VecDeque<usize>,
    failures: Vec<(usize, SimTime)>,
    /// Failed columns not being rebuilt, in the order they failed.
    waiting: VecDeque<usize>,
    rebuild: Option<Rebuild>,
    rebuilds: u32,
    beyond: bool,
    timer_set: bool,
    parallel: u64,
    /// Idle time before a step may start.
    idle_wait: SimDuration,
    /// Start of the idle period, if the array is idle.
    idle_since: Option<SimTime>,
    /// Shortest time between the starts of two steps, and the earliest start of the next.
    step_time: SimDuration,
    next_at: SimTime,
    steps: u64,
    /// Whether the failures' timers are set, in this run or before its saved state.
    started: bool,
}

/// Number of columns and the sectors used on each: those of the smallest child. A journal is the
/// last child.
pub fn columns_of(input: &BuildInput<'_>, params: &Redundancy, journal: bool) -> (usize, u64) {
    // A spare may be a bus with several devices: each of them is a spare.
    let spares = &params.devices.spares;
    let devices = input.children.len().saturating_sub(journal.into());
    let is_spare = |child: &&ChildView| spares.contains(&child.name);
    let count = input.children.iter().filter(is_spare).count().max(spares.len());
    let capacities = input.children[..devices].iter().map(|child| child.capacity);
    (devices.saturating_sub(count), capacities.min().unwrap_or(0))
}

impl Members {
    /// Writes interrupted by a power failure have been replayed from the journal; the time it
    /// took.
    pub(super) const REPLAYED: u8 = 10;

    /// The `columns` members in `input` and their spares, with rebuilds in `steps` steps of
    /// `step_sectors` sectors; the last child is a `journal` or not.
    pub fn read(
        input: &BuildInput<'_>,
        params: &Redundancy,
        (columns, journal): (usize, bool),
        (steps, step_sectors): (u64, u64),
        problems: &mut Vec<Problem>,
    ) -> Self {
        let children = input.children.len();
        let devices = children - usize::from(journal);
        let mut failures = Vec::new();
        for failure in params.failures.iter().map(Failure::from_settings) {
            let member = failure.member;
            if member >= children {
                let message = format!("member {member} does not exist; there are {children}");
                problems.push(Problem::new("failures", message));
            }
            failures.push((member, SimTime::ZERO + failure.at));
        }
        let pace = &params.pace;
        let rate = pace.rebuild_rate.unwrap_or(0);
        Self {
            columns: (0..columns).map(|child| Column { child, state: State::Good }).collect(),
            degraded: 0,
            failed: vec![false; children],
            devices,
            spares: (columns..devices).collect(),
            failures,
            waiting: VecDeque::new(),
            rebuild: None,
            rebuilds: 0,
            beyond: false,
            timer_set: false,
            parallel: pace.rebuild_parallel,
            idle_wait: pace.rebuild_after_idle,
            idle_since: Some(SimTime::ZERO),
            step_time: SimDuration::transfer(step_sectors.saturating_mul(SECTOR_BYTES), rate),
            next_at: SimTime::ZERO,
            steps,
            started: false,
        }
    }

    /// Fails the members that fail before the start and sets timers for later failures.
    pub fn start(&mut self, ctx: &mut Ctx<'_>) {
        if std::mem::replace(&mut self.started, true) {
            if self.degraded > 0 {
                self.report(ctx, RedundancyChange::Resumed, SimDuration::ZERO);
            }
            return;
        }
        for at in 0..self.failures.len() {
            let (child, time) = self.failures[at];
            match time {
                SimTime::ZERO => self.fail(ctx, child),
                SimTime::NEVER => {}
                time => ctx.wake_at(time, at as u64),
            }
        }
    }

    /// The power fails. Failures and the progress of the rebuild are in the members' metadata,
    /// which are durable; steps in progress start again.
    pub fn power_cut(&mut self, now: SimTime) {
        (self.idle_since, self.timer_set, self.next_at) = (Some(now), false, now);
        if let Some(rebuild) = &mut self.rebuild {
            (rebuild.next, rebuild.running) = (rebuild.frontier, 0);
        }
    }

    /// The power is back: sets timers for later failures again.
    pub fn power_on(&self, ctx: &mut Ctx<'_>) {
        for (at, (child, time)) in self.failures.iter().enumerate() {
            if !self.failed[*child] && *time != SimTime::NEVER {
                ctx.wake_at((*time).max(ctx.now()), at as u64);
            }
        }
    }

    /// A timer expired: a child fails, or the rebuild may continue.
    pub fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        if token == REBUILD_TOKEN {
            self.timer_set = false;
        } else {
            self.fail(ctx, self.failures[token as usize].0);
        }
    }

    /// Checks that `fault` can occur.
    pub fn check_fault(&self, fault: &Injected) -> Result<(), String> {
        let Injected::Fail { member } = *fault else { return Ok(()) };
        let failed = usize::try_from(member).ok().and_then(|member| self.failed.get(member));
        match failed {
            Some(true) => Err(format!("member {member} has failed already")),
            Some(false) if member < self.devices as u64 => Ok(()),
            _ => Err(format!(
                "member {member} does not exist: members and spares are 0 to {}",
                self.devices.saturating_sub(1)
            )),
        }
    }

    /// `fault` occurs.
    pub fn inject(&mut self, ctx: &mut Ctx<'_>, fault: &Injected) {
        if let Injected::Fail { member } = *fault {
            self.fail(ctx, member as usize);
        }
    }

    /// `child` has failed.
    pub fn fail(&mut self, ctx: &mut Ctx<'_>, child: usize) {
        if std::mem::replace(&mut self.failed[child], true) {
            return;
        }
        ctx.emit(CommonEvent::Custom { name: MEMBER_FAILED, value: child as u64 });
        self.spares.retain(|spare| *spare != child);
        if let Some(column) = self.columns.iter().position(|column| column.child == child) {
            match self.columns[column].state {
                State::Good => self.degraded += 1,
                State::Rebuilding => self.abort_rebuild(ctx),
                State::Failed => {}
            }
            self.columns[column].state = State::Failed;
            self.waiting.push_back(column);
        }
        self.report(ctx, RedundancyChange::MemberFailed, SimDuration::ZERO);
        self.replace(ctx);
    }

    fn report(&self, ctx: &mut Ctx<'_>, change: RedundancyChange, took: SimDuration) {
        let degraded = u32::try_from(self.degraded).unwrap_or(u32::MAX);
        ctx.emit(CommonEvent::Redundancy { change, degraded, took });
    }

    /// Reports, once, that more columns are degraded than the redundancy covers.
    pub fn report_beyond_redundancy(&mut self, ctx: &mut Ctx<'_>) {
        if !std::mem::replace(&mut self.beyond, true) {
            ctx.emit(CommonEvent::Custom { name: BEYOND_REDUNDANCY, value: self.degraded as u64 });
            self.report(ctx, RedundancyChange::DataLost, SimDuration::ZERO);
        }
    }

    /// Reports a request of `sectors` sectors that failed.
    pub fn report_unserved(ctx: &mut Ctx<'_>, sectors: u32) {
        ctx.emit(CommonEvent::Custom { name: UNSERVED_SECTORS, value: u64::from(sectors) });
    }

    /// Reports a request of `sectors` sectors that depends on parity that may not match.
    pub fn report_write_hole(ctx: &mut Ctx<'_>, sectors: u32) {
        ctx.emit(CommonEvent::Custom { name: WRITE_HOLE_SECTORS, value: u64::from(sectors) });
    }

    /// Starts the rebuild of the column that failed first on the next spare.
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
        self.report(ctx, RedundancyChange::RebuildStarted, SimDuration::ZERO);
    }

    fn abort_rebuild(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(rebuild) = self.rebuild.take() {
            let column = &mut self.columns[rebuild.column];
            column.state = State::Failed;
            ctx.emit(CommonEvent::Custom { name: REBUILD_ABORTED, value: column.child as u64 });
            self.report(ctx, RedundancyChange::RebuildAborted, SimDuration::ZERO);
        }
    }

    /// Aborts a rebuild whose source data are lost, and starts that of the next column.
    pub fn abandon_rebuild(&mut self, ctx: &mut Ctx<'_>) {
        self.abort_rebuild(ctx);
        self.replace(ctx);
    }

    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Whether `child` has failed.
    pub fn has_failed(&self, child: usize) -> bool {
        self.failed[child]
    }

    /// Columns that are failed or not rebuilt yet.
    pub fn degraded(&self) -> usize {
        self.degraded
    }

    /// Whether no column is degraded.
    pub fn all_good(&self) -> bool {
        self.degraded == 0
    }

    /// Whether the column is complete.
    pub fn is_good(&self, column: usize) -> bool {
        self.columns[column].state == State::Good
    }

    /// The child that holds the data of `column` in steps `from..to`, if they are readable.
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

    /// The child in `column`, rebuilt or not, unless it has failed.
    pub fn present(&self, column: usize) -> Option<usize> {
        let Column { child, state } = self.columns[column];
        (state != State::Failed).then_some(child)
    }

    /// Rebuild or resync steps at a time.
    pub const fn parallel(&self) -> u64 {
        self.parallel
    }

    /// Whether a background step may start now, and then counts it as started; otherwise a timer is
    /// set or a later call allows it. `idle`: no request is in service.
    pub fn may_start_step(&mut self, ctx: &mut Ctx<'_>, idle: bool) -> bool {
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

    /// The next step of the rebuild, if one may start now; see [`Members::may_start_step`]. Must be
    /// called whenever `idle` changes. Steps for which `concerns` is false need no work.
    #[inline]
    pub fn next_step(
        &mut self,
        ctx: &mut Ctx<'_>,
        idle: bool,
        concerns: impl Fn(u64, usize) -> bool,
    ) -> Option<Step> {
        self.idle_since = idle.then(|| self.idle_since.unwrap_or(ctx.now()));
        if self.rebuild.is_none() { None } else { self.next_rebuild_step(ctx, idle, concerns) }
    }

    fn next_rebuild_step(
        &mut self,
        ctx: &mut Ctx<'_>,
        idle: bool,
        concerns: impl Fn(u64, usize) -> bool,
    ) -> Option<Step> {
        loop {
            let steps = self.steps;
            let rebuild = self.rebuild.as_mut()?;
            // Skips steps that were done before a power failure.
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
            if rebuild.running >= self.parallel || !self.may_start_step(ctx, idle) {
                return None;
            }
            let rebuild = self.rebuild.as_mut().expect("it is in progress");
            rebuild.next += 1;
            rebuild.running += 1;
            return Some(Step { rebuild: number, step, column });
        }
    }

    /// Whether rebuild `number` is in progress.
    pub fn is_rebuilding(&self, number: u32) -> bool {
        self.rebuild.is_some_and(|rebuild| rebuild.number == number)
    }

    /// A step is done; ignored when its rebuild has been aborted.
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
            self.degraded -= 1;
            self.rebuild = None;
            ctx.emit(CommonEvent::Custom { name: REBUILD_ENDED, value: took.as_ns() });
            self.report(ctx, RedundancyChange::RebuildEnded, took);
            self.replace(ctx);
        }
    }
}
