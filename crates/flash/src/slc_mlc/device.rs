//! The device as a layer: gives the work of each request its time, one operation after the other
//! (chang-slc-mlc, section 5.1: no parallelism among chips), and tells it.

use super::buffer::Buffer;
use super::store::Store;
use super::work::{Act, Medium, NAMES, Number, Run, Times};
use crate::event::{Cause, FlashAct, FlashBusy, FlashEvent, FlashUnit};
use crate::ftl::FtlError;
use crate::geometry::BlockId;
use hybridsim_engine::state::{Loader, Saver, StateError};
use hybridsim_engine::{
    Checkpoint, CommonEvent, Completion, Component, ComponentInfo, Contents, Ctx, Durable, Fault,
    InFlightWrites, LatencyBreakdown, LatencyPhase, Op, PowerFailure, PowerState, Request,
    RequestId, SimDuration, SimTime, Stream,
};

/// The timer for background work.
const IDLE: u64 = 0;
/// The timer for the end of a recovery.
const RECOVERED: u64 = 1;
/// The timer for background work that goes on.
const GO_ON: u64 = 2;

/// What an [`SlcMlcSsd`] is put together from.
pub struct Parameters {
    /// The flash and its tables.
    pub store: Store,
    /// Memory in front that survives a loss of power, if there is any.
    pub buffer: Option<Buffer>,
    /// Times of the SLC and the MLC flash, and of MLC flash with one bit to the cell.
    pub times: [Times; 3],
    /// Controller time per request.
    pub overhead: SimDuration,
    /// Sectors offered.
    pub capacity: u64,
    /// SLC blocks; MLC blocks are numbered behind them in what is told.
    pub slc_blocks: u32,
    /// Background work begins after so much idle time.
    pub idle_after: Option<SimDuration>,
    /// How far writes got when the power fails; each device has its own.
    pub power: Stream,
    /// Constants for the report.
    pub info: ComponentInfo,
}

/// A hybrid SSD.
pub struct SlcMlcSsd {
    breakdown: Parameters,
    /// Busy until then.
    free: SimTime,
    /// State time is told up to here.
    told_until: SimTime,
    /// Time spent reading, writing and erasing that is not told yet.
    untold: [SimDuration; 3],
    wake_set: bool,
    free_blocks_told: u32,
    stamps: Vec<u64>,
    undo: InFlightWrites,
    /// By logical sector what was last asked to be written, in runs with power failures.
    asked: Contents,
    /// After a power failure, until the tables are rebuilt.
    recovering: Option<SimDuration>,
    waiting: Vec<(RequestId, Request)>,
}

const STATES: [PowerState; 3] = [PowerState::Read, PowerState::Write, PowerState::Erase];

impl SlcMlcSsd {
    /// A device of these parts.
    pub fn new(breakdown: Parameters) -> Self {
        Self {
            breakdown,
            free: SimTime::ZERO,
            told_until: SimTime::ZERO,
            untold: [SimDuration::ZERO; 3],
            wake_set: false,
            free_blocks_told: u32::MAX,
            stamps: Vec::new(),
            undo: InFlightWrites::default(),
            asked: Contents::default(),
            recovering: None,
            waiting: Vec::new(),
        }
    }

    /// What it remembers from run to run.
    pub(super) const fn remembered(&self) -> (&Store, Option<&Buffer>) {
        (&self.breakdown.store, self.breakdown.buffer.as_ref())
    }

    /// The same, to be changed.
    pub(super) const fn remembered_mut(&mut self) -> (&mut Store, Option<&mut Buffer>) {
        (&mut self.breakdown.store, self.breakdown.buffer.as_mut())
    }

    /// The flash and its tables; for tests.
    pub fn store(&mut self) -> &mut Store {
        &mut self.breakdown.store
    }

    fn serve(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let now = ctx.now();
        self.tell_states(ctx, now);
        let Parameters { store, buffer, .. } = &mut self.breakdown;
        let (first, sectors) = (request.lba.0 as u32, request.sectors);
        let done = match request.op {
            Op::Read => {
                let into = ctx.data().stamps_mut(request.data, sectors);
                match buffer {
                    Some(buffer) => buffer.read(store, first, sectors, into),
                    None => store.read(first, sectors, into),
                }
            }
            Op::Write => {
                self.stamps.clear();
                self.stamps.extend_from_slice(ctx.data().stamps(request.data, sectors));
                match buffer {
                    Some(buffer) => buffer.write(store, first, sectors, &self.stamps),
                    None => store.write(first, sectors, &self.stamps),
                }
            }
            Op::Trim => {
                if let Some(buffer) = buffer {
                    buffer.trim(first, sectors);
                }
                store.trim(first, sectors);
                Ok(())
            }
            // Nothing is acknowledged before it is where no loss of power reaches it.
            Op::Flush => Ok(()),
        };
        let start = now.max(self.free);
        let mut breakdown = LatencyBreakdown::NONE;
        breakdown.add(LatencyPhase::Queue, start.since(ctx.issued(id)));
        breakdown.add(LatencyPhase::Overhead, self.breakdown.overhead);
        let overhead = self.breakdown.overhead;
        let took = overhead + self.tell_work(ctx, start + overhead, &mut breakdown);
        self.free = start + took;
        self.check(ctx, done);
        if ctx.power_may_fail() && request.op == Op::Write {
            let durable = Durable::At(self.free);
            let (at, stamps) = (request.lba.0, &self.stamps);
            self.undo.note(&self.asked, at, stamps, durable, now, |_| false);
            self.asked.write(at, stamps);
        }
        ctx.complete_at(id, self.free, breakdown);
        self.set_wake(ctx);
    }

    /// Times the noted work, which begins at `begin`, and tells it; how long it takes.
    fn tell_work(
        &mut self,
        ctx: &mut Ctx<'_>,
        begin: SimTime,
        breakdown: &mut LatencyBreakdown,
    ) -> SimDuration {
        let Parameters { store, times, slc_blocks, .. } = &mut self.breakdown;
        let mut took = SimDuration::ZERO;
        for run in store.work.runs() {
            let medium = if run.dense { 2 } else { run.medium as usize };
            let time = times[medium].of(run.act, run.count);
            let (part, state) = match run.act {
                Act::Read => (LatencyPhase::FlashRead, 0),
                Act::Program => (LatencyPhase::FlashProgram, 1),
                Act::Erase => (LatencyPhase::FlashErase, 2),
            };
            let own = matches!(run.cause, Cause::Host | Cause::Partial | Cause::Mapping);
            breakdown.add(if own { part } else { LatencyPhase::Gc }, time);
            self.untold[state] += time;
            if ctx.detailed_events() {
                tell_busy(ctx, run, begin + took, time);
            }
            took += time;
            tell_run(ctx, run, *slc_blocks);
        }
        for &(number, value) in store.work.numbers() {
            ctx.emit(CommonEvent::Custom { name: number as u8, value });
        }
        if store.work.unwritten > 0 {
            ctx.emit(FlashEvent::ReadUnwritten { pages: store.work.unwritten });
        }
        store.work.clear();
        let free = store.mlc.spares.len() as u32;
        if free != self.free_blocks_told {
            self.free_blocks_told = free;
            ctx.emit(FlashEvent::FreeBlocks { free });
        }
        took
    }

    /// Ends the run when the flash is worn out or a rule of flash was broken.
    fn check(&self, ctx: &mut Ctx<'_>, done: Result<(), FtlError>) {
        if let Err(error) = done {
            ctx.device_fault(error.to_string());
        }
        if let Some(violation) = self.breakdown.store.violation() {
            let message = format!("{}: {violation}", ctx.path());
            ctx.fault(Fault::Invariant(message));
        }
    }

    /// Tells how the time up to `until` was spent, as far as it is over.
    fn tell_states(&mut self, ctx: &mut Ctx<'_>, until: SimTime) {
        if until < self.free {
            return;
        }
        let mut left = until.since(self.told_until);
        for (state, time) in STATES.into_iter().zip(&mut self.untold) {
            let told = left.min(std::mem::take(time));
            if !told.is_zero() {
                ctx.emit(CommonEvent::StateTime { state, duration: told });
            }
            left = left.saturating_sub(told);
        }
        if !left.is_zero() {
            ctx.emit(CommonEvent::StateTime { state: PowerState::Idle, duration: left });
        }
        self.told_until = until;
    }

    fn set_wake(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(delay) = self.breakdown.idle_after.filter(|_| !self.wake_set) {
            self.wake_set = true;
            ctx.wake_at(self.free.max(ctx.now()) + delay, IDLE);
        }
    }

    /// One block, when the device was idle for long enough or `goes_on` with what it does and no
    /// request came meanwhile.
    fn work_in_the_background(&mut self, ctx: &mut Ctx<'_>, goes_on: bool) {
        self.wake_set = false;
        let Some(delay) = self.breakdown.idle_after else { return };
        let delay = if goes_on { SimDuration::ZERO } else { delay };
        if ctx.now() < self.free + delay {
            self.set_wake(ctx);
            return;
        }
        let now = ctx.now();
        self.tell_states(ctx, now);
        let worked = self.breakdown.store.idle();
        let mut breakdown = LatencyBreakdown::NONE;
        self.free = now + self.tell_work(ctx, now, &mut breakdown);
        if worked == Ok(true) {
            // Go on at once: a request that comes meanwhile waits for one block at most.
            self.wake_set = true;
            ctx.wake_at(self.free.max(now + SimDuration::from_ns(1)), GO_ON);
        }
        self.check(ctx, worked.map(drop));
    }

    /// Makes the device hold what the sector held before the write that was lost.
    fn put_back(&mut self, sector: u64) {
        let stamp = self.asked.get(sector);
        let Parameters { store, buffer, .. } = &mut self.breakdown;
        let number = sector as u32;
        if buffer.as_mut().is_some_and(|buffer| buffer.put_back(number, stamp)) {
            return;
        }
        let cache = store.cache.as_mut();
        if let Some((cache, place)) =
            cache.and_then(|cache| cache.log.hash.place(number).map(|place| (cache, place)))
        {
            cache.log.cells.write(u64::from(place), &[stamp]);
            return;
        }
        let page = store.mlc.map[(number / store.mlc.sectors) as usize];
        if page != super::mlc::NONE {
            let at = store.mlc.cell(page) + u64::from(number % store.mlc.sectors);
            store.mlc.cells.write(at, &[stamp]);
        }
    }
}

/// A run works on one medium; all dies of a medium are one here (chang-slc-mlc, section 5.1).
fn tell_busy(ctx: &mut Ctx<'_>, run: &Run, begin: SimTime, time: SimDuration) {
    let act = match run.act {
        Act::Read => FlashAct::Read,
        Act::Program => FlashAct::Program,
        Act::Erase => FlashAct::Erase,
    };
    if !time.is_zero() {
        let (unit, cause, end) = (FlashUnit::Die(run.medium as u16), run.cause, begin + time);
        ctx.emit(FlashBusy { unit, act, cause, begin, end });
    }
}

fn tell_run(ctx: &mut Ctx<'_>, run: &Run, slc_blocks: u32) {
    let Run { cause, erases, .. } = *run;
    let die = run.medium as u16;
    let block = run.block + if run.medium == Medium::Mlc { slc_blocks } else { 0 };
    for _ in 0..run.count {
        ctx.emit(match run.act {
            Act::Read => FlashEvent::Read { cause, die },
            Act::Program => FlashEvent::Program { cause, die },
            Act::Erase => FlashEvent::Erase { cause, die, block, erases },
        });
    }
}

impl Component for SlcMlcSsd {
    fn capacity(&self) -> u64 {
        self.breakdown.capacity
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { custom: NAMES, ..self.breakdown.info.clone() }
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.verifying() {
            self.breakdown.store.verify();
        }
        self.check(ctx, Ok(()));
        self.set_wake(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.recovering.is_some() {
            self.waiting.push((id, *request));
            return;
        }
        self.serve(ctx, id, request);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {
        unreachable!("a device has no children");
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        match (token, self.recovering.take()) {
            (RECOVERED, Some(took)) => {
                ctx.emit(CommonEvent::Recovered { took });
                for (id, request) in std::mem::take(&mut self.waiting) {
                    self.serve(ctx, id, &request);
                }
                self.set_wake(ctx);
            }
            (token, recovering) => {
                self.recovering = recovering;
                self.work_in_the_background(ctx, token == GO_ON);
            }
        }
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        self.free = self.free.min(now);
        self.tell_states(ctx, now);
        let Store { mlc, cache, .. } = &self.breakdown.store;
        let slc = cache.as_ref().map(|cache| &cache.log.array);
        let media = [(Number::MlcWear, Some(&mlc.array)), (Number::SlcWear, slc)];
        let mut wear = std::collections::BTreeMap::new();
        for (number, array) in media {
            let Some(array) = array else { continue };
            for block in 0..array.geometry().blocks() {
                let erases = array.erases(BlockId(block));
                *wear.entry(erases).or_insert(0) += 1;
                ctx.emit(CommonEvent::Custom { name: number as u8, value: u64::from(erases) });
            }
        }
        for (erases, blocks) in wear {
            ctx.emit(FlashEvent::Wear { erases, blocks });
        }
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }
}

impl Checkpoint for SlcMlcSsd {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.put_down(to);
        to.put(&(self.free, self.told_until, self.untold, self.wake_set));
        to.put(&(self.free_blocks_told, self.recovering));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.take_back(from)?;
        (self.free, self.told_until, self.untold, self.wake_set) = from.take()?;
        (self.free_blocks_told, self.recovering) = from.take()?;
        Ok(())
    }
}

impl PowerFailure for SlcMlcSsd {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.waiting.clear();
        self.recovering = None;
        self.wake_set = false;
        self.breakdown.store.work.clear();
        self.breakdown.store.rebuild()?;
        let power = &mut self.breakdown.power;
        let mut undone = self.undo.cut(&mut self.asked, now, power, |_| false);
        undone.sort_unstable();
        undone.dedup();
        undone.into_iter().for_each(|sector| self.put_back(sector));
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        let now = ctx.now();
        // What was under way is cut short.
        self.free = now;
        self.tell_states(ctx, now);
        let took = self.tell_work(ctx, now, &mut LatencyBreakdown::default());
        self.free = now + took;
        self.recovering = Some(took);
        ctx.wake_at(self.free, RECOVERED);
    }
}
