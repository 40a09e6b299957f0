//! The SSD as a component. [`SsdDevice`] is the front end that all SSD models share: admission,
//! completion, idle time, power failures, checkpoints. A [`FlashBackend`] translates requests into
//! flash operations and times them. The kind `ssd` has any translation layer of [`crate::ftl`]
//! behind it ([`FtlBackend`]); the kind `slc-mlc-ssd` has two media ([`crate::slc_mlc`]), the kind
//! `zns-ssd` has zones ([`crate::zns`]).

mod energy_meter;
mod faults;
mod ftl_backend;
mod in_flight;
mod params;
mod split;
mod thermal;
pub mod throttle;
mod untimed;
mod versions;
mod waiting;

pub(crate) use energy_meter::EnergyMeter;
pub use ftl_backend::{FtlBackend, Ssd};
pub(crate) use params::check_memory;
pub use params::{DriveParams, ENTRIES, SSD_KIND, SsdParams, build_ssd};
pub(crate) use split::split;
pub use untimed::{Served, Untimed};

use crate::array::Array;
use crate::event::FlashEvent;
use crate::ftl::FtlError;
use crate::geometry::BlockId;
use crate::ops::{FlashOp, FlashOps, OpKind};
use crate::timing::{Scheduled, Timed, TimingModel};
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, Durable, Fault, Inject, Injected,
    LatencyBreakdown, LatencyPhase, Loader, Lookahead, Op, PowerFailure, PowerState, Prepare,
    Request, RequestId, Saver, SimDuration, SimTime, StateError, Stream,
};
use in_flight::InFlight;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use throttle::{End, Throttled};
use waiting::{WaitingRequest, complete, durable_from};

/// Tokens of the device's timers.
const IDLE: u64 = 0;
const RECOVERED: u64 = 1;
const BACKGROUND_CONTINUES: u64 = 2;
const BUFFER_FREED: u64 = 3;
const PACED: u64 = 4;
const BACKGROUND_DUE: u64 = 5;
/// Plus the number of a request in [`SsdDevice::unfinished`].
const CONTINUES: u64 = 1 << 32;
/// Plus the timing model's number of a request in [`SsdDevice::programming`].
const PROGRAMMED: u64 = 1 << 33;

/// What becomes of a request that a backend has served.
pub enum Fate {
    /// When it completes; a request that failed does not wait.
    Scheduled(Scheduled),
    /// The device does not accept it: it fails then, and nothing is written.
    Refused(Timed),
    /// It continues at this time ([`FlashBackend::resume`]).
    Continues(SimTime),
}

/// How a backend served a request.
pub struct Service {
    pub result: Result<(), FtlError>,
    pub fate: Fate,
}

/// A period whose power states have not been reported.
#[derive(Clone, Copy)]
pub struct Unreported {
    pub from: SimTime,
    pub busy_until: SimTime,
    pub now: SimTime,
    /// Report up to `now` even if the device is busy.
    pub everything: bool,
}

/// The part of an SSD behind its front end: translation, flash, and their timing.
pub trait FlashBackend {
    /// Whether the number of free blocks is reported at the start of a run.
    const REPORTS_INITIAL_FREE_BLOCKS: bool;

    /// Whether the device must be idle for `idle_after` again between two background steps.
    fn pauses_between_steps(&self) -> bool;

    /// The logical page: a trim discards whole pages only.
    fn sectors_per_page(&self) -> u32;

    /// Whether it has zones ([`Component::accepts_zone_commands`]).
    fn has_zones(&self) -> bool {
        false
    }

    fn start(&mut self, ctx: &mut Ctx<'_>);

    /// Executes `request` on a device busy until `busy_until`, and reports its flash operations.
    fn serve(&mut self, ctx: &mut Ctx<'_>, request: &Request, busy_until: SimTime) -> Service;

    /// Continues a request that [continues](Fate::Continues).
    fn resume(&mut self, _ctx: &mut Ctx<'_>, _request: &Request) -> Service {
        unreachable!("no request continues")
    }

    /// Whether data of the request that was served last could not be read, so that it fails when
    /// it completes; asking clears it.
    fn take_unreadable(&mut self) -> bool {
        false
    }

    /// Admits the first of the writes that wait for the write buffer, as far as it has entries;
    /// `None` if no write waits.
    fn admit_waiting(&mut self, _now: SimTime) -> Option<Scheduled> {
        None
    }

    /// Completes the write that is number `number` of the timing model, unless its programs have
    /// been delayed; `None` if there is no such write.
    fn programmed(&mut self, _now: SimTime, _number: u64) -> Option<Scheduled> {
        None
    }

    /// Executes one step of background work. Returns when the flash is idle again, and whether
    /// there is more to do.
    fn background_step(&mut self, ctx: &mut Ctx<'_>) -> (SimTime, Result<bool, FtlError>);

    /// When there will be background work again, if it is only a matter of time.
    fn next_background(&self) -> Option<SimTime> {
        None
    }

    /// Reports power states of a period. Returns false to defer the report.
    fn report_states(&mut self, ctx: &mut Ctx<'_>, period: Unreported) -> bool;

    /// Energy of the operations reported since the last call, where the temperature is simulated.
    fn take_energy(&mut self) -> f64 {
        0.0
    }

    /// Reports busy intervals of dies and channels where they are not reported with operations.
    fn report_busy(&mut self, _ctx: &mut Ctx<'_>, _everything: bool) {}

    /// Reports the wear of each block at the end of a run.
    fn report_wear(&self, ctx: &mut Ctx<'_>);

    fn free_blocks(&self) -> u32;

    /// The first violation of a rule of NAND flash.
    fn violation(&self) -> Option<String>;

    /// The power failed at `now`; writes that wait are scheduled no more. Returns until when
    /// operations under way still occupy the flash.
    ///
    /// # Errors
    /// When the mapping cannot be rebuilt.
    fn power_lost(&mut self, now: SimTime, busy_until: SimTime) -> Result<SimTime, String>;

    /// Reads what the mapping is rebuilt from. Returns how long that takes.
    fn recover(&mut self, ctx: &mut Ctx<'_>) -> SimDuration;

    /// Puts `version` where the mapping says that logical `sector` is.
    fn restore_sector(&mut self, sector: u64, version: u64);

    /// The faults that can be injected into it.
    fn faults(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks a fault, as [`Inject::check`] does.
    ///
    /// # Errors
    /// Why it cannot occur.
    fn check_fault(&self, _fault: &Injected) -> Result<(), String> {
        Ok(())
    }

    /// A fault occurs to the device of `sectors` sectors.
    ///
    /// # Errors
    /// When the flash takes no more data.
    fn inject(
        &mut self,
        _ctx: &mut Ctx<'_>,
        _fault: &Injected,
        _sectors: u64,
    ) -> Result<(), FtlError> {
        Ok(())
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError>;

    /// # Errors
    /// When the state is of another device.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;

    fn preparation(&mut self) -> Option<&mut dyn Prepare> {
        None
    }

    fn lookahead(&self) -> Option<&dyn Lookahead> {
        None
    }
}

/// Configuration of the front end.
pub struct FrontEnd {
    /// Sectors offered to the host.
    pub capacity: u64,
    /// Background work starts after this much idle time.
    pub idle_after: Option<SimDuration>,
    /// Draws how much of each write in flight survives a power failure.
    pub power_failures: Stream,
    /// The throttle, if there is one.
    pub throttled: Option<Throttled>,
    pub info: ComponentInfo,
}

#[derive(Serialize, Deserialize)]
struct State {
    busy_until: SimTime,
    states_reported_until: SimTime,
    free_blocks_reported: u32,
    timer_set: bool,
    due_timer_set: bool,
    /// How long the recovery under way takes.
    recovering: Option<SimDuration>,
    end_of_life: EndOfLife,
}

/// What happens when so much flash is worn out that a write finds no place.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum EndOfLife {
    /// The run ends.
    EndsRun,
    /// Writes fail from then on: the wear was asked for, to see its end.
    FailsWrites,
    /// It has happened: writes fail, and trims, which are advice, have no effect.
    Reached,
}

/// An SSD.
pub struct SsdDevice<B> {
    backend: B,
    front: FrontEnd,
    state: State,
    in_flight: InFlight,
    /// Writes that wait for the write buffer, in order of arrival. A timer is set for the first.
    waiting: VecDeque<WaitingRequest>,
    /// Writes that wait for their programs, by their number in the timing model. A timer is set for
    /// each.
    programming: BTreeMap<u64, WaitingRequest>,
    /// Requests that continue, and how long each waited for a recovery before.
    unfinished: Vec<(RequestId, Request, SimDuration)>,
}

impl<B: FlashBackend> SsdDevice<B> {
    pub fn new(front: FrontEnd, backend: B) -> Self {
        let state = State {
            busy_until: SimTime::ZERO,
            states_reported_until: SimTime::ZERO,
            free_blocks_reported: u32::MAX,
            timer_set: false,
            due_timer_set: false,
            recovering: None,
            end_of_life: EndOfLife::EndsRun,
        };
        let (in_flight, waiting) = (InFlight::default(), VecDeque::new());
        let (programming, unfinished) = (BTreeMap::new(), Vec::new());
        Self { backend, front, state, in_flight, waiting, programming, unfinished }
    }

    pub const fn backend_mut(&mut self) -> &mut B {
        &mut self.backend
    }

    /// Serves a request at its arrival, or when recovery has ended.
    fn serve(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.state.end_of_life == EndOfLife::Reached && self.refuses(ctx, id, request) {
            return;
        }
        self.report_states(ctx, false);
        let service = self.backend.serve(ctx, request, self.state.busy_until);
        let failed = self.ended(ctx, service.result);
        let scheduled = match service.fate {
            Fate::Scheduled(scheduled) => scheduled,
            Fate::Refused(timed) => return self.refused(ctx, id, timed),
            Fate::Continues(at) => return self.keep_unfinished(ctx, (id, request), at),
        };
        self.state.busy_until = self.state.busy_until.max(scheduled.busy_until());
        if ctx.power_may_fail() && !failed {
            let durable = durable_from(id, &scheduled);
            self.in_flight.record(ctx, request, self.backend.sectors_per_page(), durable);
        }
        let queued = ctx.now().since(ctx.issued(id));
        match scheduled {
            // The flash has just worn out.
            _ if failed && self.refuses(ctx, id, request) => {}
            _ if failed => {
                ctx.fail_request(id, LatencyBreakdown::NONE.plus(LatencyPhase::Queue, queued));
            }
            Scheduled::Completes(timed) if self.backend.take_unreadable() => {
                ctx.fail_at(id, timed.end, timed.breakdown.plus(LatencyPhase::Queue, queued));
            }
            Scheduled::Completes(timed) => complete(ctx, (id, queued), timed),
            Scheduled::Waits(until) => self.wait(ctx, WaitingRequest { id, queued }, until),
            Scheduled::Programs { number, until, .. } => {
                self.await_programs(ctx, (number, WaitingRequest { id, queued }), until);
            }
        }
        self.report_after(ctx);
    }

    /// Fails a request that the backend refused.
    #[cold]
    fn refused(&mut self, ctx: &mut Ctx<'_>, id: RequestId, timed: Timed) {
        self.state.busy_until = self.state.busy_until.max(timed.idle_from);
        let queued = ctx.now().since(ctx.issued(id));
        ctx.refuse_at(id, timed.end, timed.breakdown.plus(LatencyPhase::Queue, queued));
        self.report_after(ctx);
    }

    /// Notes a request that continues at `at`. A reset is in effect from now on: no power failure
    /// brings back what the zone held.
    #[cold]
    fn keep_unfinished(&mut self, ctx: &mut Ctx<'_>, (id, of): (RequestId, &Request), at: SimTime) {
        if ctx.power_may_fail() {
            let durable = Durable::At(ctx.now());
            self.in_flight.record(ctx, of, self.backend.sectors_per_page(), durable);
        }
        let queued = ctx.now().since(ctx.issued(id));
        self.unfinished.push((id, *of, queued));
        self.continues(ctx, id, at);
        self.report_after(ctx);
    }

    /// What is reported after each request, and the timer of background work.
    #[inline]
    fn report_after(&mut self, ctx: &mut Ctx<'_>) {
        self.backend.report_busy(ctx, false);
        self.report_free_blocks(ctx);
        self.set_idle_timer(ctx);
    }

    fn continues(&mut self, ctx: &mut Ctx<'_>, id: RequestId, at: SimTime) {
        self.state.busy_until = self.state.busy_until.max(at);
        ctx.wake_at(at.max(ctx.now()), CONTINUES + u64::from(id.0));
    }

    /// Continues request `id`.
    fn resume(&mut self, ctx: &mut Ctx<'_>, id: RequestId) {
        let Some(at) = self.unfinished.iter().position(|it| it.0 == id) else { return };
        let (_, request, queued) = self.unfinished[at];
        self.report_states(ctx, false);
        let service = self.backend.resume(ctx, &request);
        self.ended(ctx, service.result);
        match service.fate {
            Fate::Continues(at) => self.continues(ctx, id, at),
            Fate::Scheduled(Scheduled::Completes(timed)) => {
                self.unfinished.swap_remove(at);
                self.state.busy_until = self.state.busy_until.max(timed.idle_from);
                complete(ctx, (id, queued), timed);
            }
            Fate::Scheduled(Scheduled::Waits(_) | Scheduled::Programs { .. })
            | Fate::Refused(_) => {
                unreachable!("only a request that arrives waits or is refused")
            }
        }
        self.report_after(ctx);
    }

    /// One step of background work, if the device was idle for long enough, or if the step
    /// `continues` the previous one and no request arrived in between.
    fn background(&mut self, ctx: &mut Ctx<'_>, continues: bool) {
        self.state.timer_set = false;
        let Some(delay) = self.front.idle_after else { return };
        let delay = if continues { SimDuration::ZERO } else { delay };
        if self.state.end_of_life == EndOfLife::Reached {
            return;
        }
        if ctx.now() < self.state.busy_until + delay || !self.waiting.is_empty() {
            self.set_idle_timer(ctx);
            return;
        }
        self.report_states(ctx, false);
        let (busy_until, more) = self.backend.background_step(ctx);
        self.state.busy_until = self.state.busy_until.max(busy_until);
        self.backend.report_busy(ctx, false);
        self.report_free_blocks(ctx);
        if more == Ok(true) {
            // A request that arrives meanwhile waits for one step at most.
            self.state.timer_set = true;
            let next = self.state.busy_until.max(ctx.now() + SimDuration::from_ns(1));
            let token =
                if self.backend.pauses_between_steps() { IDLE } else { BACKGROUND_CONTINUES };
            ctx.wake_at(next, token);
        } else if let Some(due) = self.backend.next_background()
            && !self.state.due_timer_set
        {
            self.state.due_timer_set = true;
            ctx.wake_at(due.max(ctx.now()), BACKGROUND_DUE);
        }
        self.ended(ctx, more.map(drop));
    }

    /// A request arrives at a device that recovers, or whose temperature is simulated.
    #[cold]
    fn arrive(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.state.recovering.is_some() {
            self.in_flight.waiting.push((id, *request));
        } else if self.front.throttled.is_some() {
            self.arrive_throttled(ctx, id, request);
        } else {
            self.serve(ctx, id, request);
        }
    }

    fn recovered(&mut self, ctx: &mut Ctx<'_>) {
        let took = self.state.recovering.take().unwrap_or(SimDuration::ZERO);
        ctx.emit(CommonEvent::Recovered { took });
        for (id, request) in std::mem::take(&mut self.in_flight.waiting) {
            self.arrive(ctx, id, &request);
        }
        self.set_idle_timer(ctx);
    }

    /// Ends a request that would write, on a device that has reached its end of life. Returns
    /// whether it is one.
    fn refuses(&self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) -> bool {
        let waited = ctx.now().since(ctx.issued(id));
        let breakdown = LatencyBreakdown::NONE.plus(LatencyPhase::Queue, waited);
        match request.op {
            Op::Write => ctx.fail_request(id, breakdown),
            Op::Trim => ctx.complete(id, breakdown),
            Op::Read | Op::Flush | Op::Zone(_) => return false,
        }
        true
    }

    /// The backend has done something: whether it failed for good, and the run goes on.
    #[inline]
    fn ended(&mut self, ctx: &mut Ctx<'_>, result: Result<(), FtlError>) -> bool {
        let wears_out = self.state.end_of_life == EndOfLife::FailsWrites;
        if wears_out && matches!(result, Err(FtlError::WornOut(_))) {
            self.state.end_of_life = EndOfLife::Reached;
            self.check(ctx, Ok(()));
            return true;
        }
        self.check(ctx, result);
        false
    }

    /// Ends the run when the backend failed or violated a rule of NAND flash.
    #[inline]
    fn check(&self, ctx: &mut Ctx<'_>, result: Result<(), FtlError>) {
        if let Err(error) = result {
            ctx.device_fault(error.to_string());
        }
        if let Some(violation) = self.backend.violation() {
            let message = format!("{}: {violation}", ctx.path());
            ctx.fault(Fault::Invariant(message));
        }
    }

    #[inline]
    fn report_states(&mut self, ctx: &mut Ctx<'_>, everything: bool) {
        if self.front.throttled.is_some() && !everything {
            self.advance_throttle(ctx);
        }
        let now = ctx.now();
        let State { states_reported_until: from, busy_until, .. } = self.state;
        if self.backend.report_states(ctx, Unreported { from, busy_until, now, everything }) {
            self.state.states_reported_until = now;
        }
    }

    #[inline]
    fn report_free_blocks(&mut self, ctx: &mut Ctx<'_>) {
        let free = self.backend.free_blocks();
        if free != self.state.free_blocks_reported {
            self.state.free_blocks_reported = free;
            ctx.emit(FlashEvent::FreeBlocks { free });
        }
    }

    fn set_idle_timer(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(delay) = self.front.idle_after.filter(|_| !self.state.timer_set) {
            self.state.timer_set = true;
            ctx.wake_at(self.state.busy_until.max(ctx.now()) + delay, IDLE);
        }
    }
}

impl<B: FlashBackend> Component for SsdDevice<B> {
    fn capacity(&self) -> u64 {
        self.front.capacity
    }

    fn info(&self) -> ComponentInfo {
        self.front.info.clone()
    }

    fn accepts_zone_commands(&self) -> bool {
        self.backend.has_zones()
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.backend.start(ctx);
        self.check(ctx, Ok(()));
        if B::REPORTS_INITIAL_FREE_BLOCKS {
            self.report_free_blocks(ctx);
        }
        self.report_throttle(ctx, End::Start);
        self.set_idle_timer(ctx);
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.state.recovering.is_some() || self.front.throttled.is_some() {
            return self.arrive(ctx, id, request);
        }
        self.serve(ctx, id, request);
    }

    fn completion(&mut self, _ctx: &mut Ctx<'_>, _done: &Completion) {
        unreachable!("a device has no children");
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        match token {
            RECOVERED => self.recovered(ctx),
            BUFFER_FREED => self.buffer_freed(ctx),
            // Delayed requests are served below.
            PACED => {}
            BACKGROUND_DUE => {
                self.state.due_timer_set = false;
                self.set_idle_timer(ctx);
            }
            token if token >= PROGRAMMED => self.programmed(ctx, token - PROGRAMMED),
            token if token >= CONTINUES => self.resume(ctx, RequestId((token - CONTINUES) as u32)),
            token => self.background(ctx, token == BACKGROUND_CONTINUES),
        }
        // Any work changes when throttling ends.
        if self.front.throttled.as_ref().is_some_and(|it| it.holds_requests()) {
            self.serve_delayed(ctx);
        }
    }

    fn finish(&mut self, ctx: &mut Ctx<'_>) {
        self.report_states(ctx, true);
        self.report_throttle(ctx, End::Finish);
        self.backend.report_busy(ctx, true);
        self.backend.report_wear(ctx);
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }

    fn faults(&mut self) -> Option<&mut dyn Inject> {
        (!self.backend.faults().is_empty()).then_some(self)
    }

    fn preparation(&mut self) -> Option<&mut dyn Prepare> {
        self.backend.preparation()
    }

    fn lookahead(&self) -> Option<&dyn Lookahead> {
        self.backend.lookahead()
    }
}

impl<B: FlashBackend> Checkpoint for SsdDevice<B> {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.backend.save(to)?;
        to.put(&self.state);
        if let Some(throttled) = &self.front.throttled {
            throttled.save(to);
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.backend.restore(from)?;
        self.state = from.take()?;
        match &mut self.front.throttled {
            Some(throttled) => throttled.restore(from),
            None => Ok(()),
        }
    }
}

impl<B: FlashBackend> PowerFailure for SsdDevice<B> {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        self.state.busy_until = self.backend.power_lost(now, self.state.busy_until)?;
        self.state.recovering = None;
        (self.state.timer_set, self.state.due_timer_set) = (false, false);
        self.waiting.clear();
        self.programming.clear();
        self.unfinished.clear();
        if let Some(throttled) = &mut self.front.throttled {
            throttled.power_lost();
        }
        for (sector, version) in self.in_flight.undo(now, &mut self.front.power_failures) {
            self.backend.restore_sector(sector, version);
        }
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.advance_throttle(ctx);
        self.report_states(ctx, true);
        let took = self.backend.recover(ctx);
        let ready = ctx.now() + took;
        self.state.recovering = Some(took);
        self.state.busy_until = self.state.busy_until.max(ready);
        ctx.wake_at(ready, RECOVERED);
    }
}

/// Reports how many blocks of `arrays` were erased how often.
pub(crate) fn report_wear<'a>(ctx: &mut Ctx<'_>, arrays: impl IntoIterator<Item = &'a Array>) {
    let mut wear = BTreeMap::new();
    for array in arrays {
        array.count_wear(&mut wear);
    }
    for (erases, blocks) in wear {
        ctx.emit(FlashEvent::Wear { erases, blocks: blocks as u32 });
    }
}

/// Enables recording of busy intervals where an observer is attached.
pub(crate) fn record_busy(ctx: &Ctx<'_>, timing: &mut dyn TimingModel) {
    if ctx.detailed_events()
        && let Some(busy) = timing.busy(ctx.now(), false)
    {
        busy.enable();
    }
}

/// Reports busy intervals of dies and channels that are final, or `everything`.
#[inline]
pub(crate) fn report_busy(ctx: &mut Ctx<'_>, timing: &mut dyn TimingModel, everything: bool) {
    if ctx.detailed_events()
        && let Some(busy) = timing.busy(ctx.now(), everything)
    {
        busy.report(|busy| ctx.emit_record(busy));
    }
}

/// Reports the operations of the last list of `flash`, and meters their energy.
#[inline]
pub(crate) fn report_operations(
    ctx: &mut Ctx<'_>,
    flash: &FlashOps,
    meter: &mut Option<Box<EnergyMeter>>,
) {
    if let Some(meter) = meter {
        meter.add(flash);
    }
    for op in flash.list() {
        let FlashOp { kind, cause, die, page, .. } = *op;
        let die = die.0;
        match kind {
            OpKind::Read => ctx.emit(FlashEvent::Read { cause, die }),
            OpKind::Program => ctx.emit(FlashEvent::Program { cause, die }),
            OpKind::Copy => {
                ctx.emit(FlashEvent::Read { cause, die });
                ctx.emit(FlashEvent::Program { cause, die });
            }
            OpKind::Erase => {
                let erases = flash.array().erases(BlockId(page));
                ctx.emit(FlashEvent::Erase { cause, die, block: page, erases });
            }
        }
    }
}

/// A device that is busy without a pause reports its active time at this interval.
const REPORT_ACTIVE_EVERY: SimDuration = SimDuration::from_ms(100);

/// Reports the states of a device that is active while any of its flash works. Returns false where
/// the report is deferred.
#[inline]
pub(crate) fn report_activity(ctx: &mut Ctx<'_>, period: Unreported) -> bool {
    let Unreported { from, now, .. } = period;
    let busy_until = period.busy_until.min(now);
    let active = busy_until.since(from);
    let is_busy = busy_until == now;
    if is_busy && active < REPORT_ACTIVE_EVERY && !period.everything {
        return false;
    }
    let idle = now.since(busy_until.max(from));
    for (state, time) in [(PowerState::Active, active), (PowerState::Idle, idle)] {
        if !time.is_zero() {
            ctx.emit(CommonEvent::StateTime { state, duration: time });
        }
    }
    true
}
