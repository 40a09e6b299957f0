//! The SSD as a component. [`SsdDevice`] is the front end that all SSD models share: admission,
//! completion, idle time, power failures, checkpoints. A [`Translation`] maps requests to flash
//! operations, which its [`BackEnd`] executes and times. The kind `ssd` has any translation layer
//! of [`hybridsim_flash::ftl`] ([`FtlTranslation`]), the kind `zns-ssd` has zones
//! ([`crate::zns`]); both have a [`FlashBackEnd`]. The kind `slc-mlc-ssd` has two media and a back
//! end of its own ([`crate::slc_mlc`]).

mod back_end;
mod drive;
mod energy;
mod faults;
mod ftl_translation;
mod health;
mod in_flight;
mod merge;
mod params;
mod split;
pub mod stage;
pub mod throttle;
mod translation;
mod untimed;
mod versions;
mod waiting;

pub use back_end::FlashBackEnd;
pub(crate) use drive::check_memory;
pub use drive::{DriveParams, TranslationTraits};
pub use ftl_translation::{FtlTranslation, Ssd};
pub use params::{EFFECTIVE_OVER_PROVISIONING, ENTRIES, SSD_KIND, SsdParams, build_ssd};
pub(crate) use split::{PagePart, split};
pub use translation::{BackEnd, Fill, Outcome, Recovery, StatePeriod, Translation};
pub use untimed::{Served, Untimed};

use hybridsim_config::build::BuildInput;
use hybridsim_engine::CommonEvent;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, Durable, Fault, Health, Inject,
    LatencyBreakdown, LatencyPhase, Loader, Lookahead, Op, PowerFailure, Prepare, Request,
    RequestId, Saver, SimDuration, SimTime, StateError, Stream, Zoned,
};
use hybridsim_flash::array::Array;
use hybridsim_flash::event::FlashEvent;
use hybridsim_flash::ftl::FtlError;
use hybridsim_flash::timing::{Scheduled, Timed};
use in_flight::InFlight;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use throttle::{End, Throttled};
use waiting::{WaitingWrite, complete, durable_from};

/// Tokens of the device's timers.
const IDLE: u64 = 0;
const RECOVERED: u64 = 1;
const BACKGROUND_CONTINUES: u64 = 2;
const BUFFER_FREED: u64 = 3;
const DELAYED: u64 = 4;
const BACKGROUND_DUE: u64 = 5;
/// Plus the number of a request in [`SsdDevice::in_progress`].
const CONTINUES: u64 = 1 << 32;
/// Plus the timing model's number of a request in [`SsdDevice::programming`].
const PROGRAMMED: u64 = 1 << 33;

/// Configuration of the front end.
pub struct FrontEnd {
    /// Sectors offered to the host.
    pub capacity: u64,
    /// Sectors of a logical page: a trim discards whole pages only.
    pub sectors_per_page: u32,
    /// The name of the translation in errors.
    pub translation: &'static str,
    /// Accepts zone commands ([`Component::accepts_zone_commands`]).
    pub has_zones: bool,
    /// Whether the device must be idle for `idle_after` again between two steps of background work.
    pub pauses_between_steps: bool,
    /// Whether the number of free blocks is reported at the start of a run.
    pub reports_initial_free_blocks: bool,
    /// Whether [`Translation::prepare`] preconditions it.
    pub preconditions: bool,
    /// Whether [`Translation::expect`] pays.
    pub looks_ahead: bool,
    /// Faults that can be injected.
    pub faults: &'static [&'static str],
    /// Why its state cannot be saved, if so.
    pub unsaveable: Option<StateError>,
    /// Background work starts after this much idle time.
    pub idle_after: Option<SimDuration>,
    /// Draws how much of each write in flight survives a power failure.
    pub power_failures: Stream,
    /// The throttle, if there is one.
    pub throttled: Option<Throttled>,
    pub info: ComponentInfo,
}

impl FrontEnd {
    /// The front end of a device of `pages` logical pages without optional features.
    pub fn new(
        input: &BuildInput<'_>,
        translation: &'static str,
        (pages, sectors_per_page): (u64, u32),
        info: ComponentInfo,
    ) -> Self {
        Self {
            capacity: pages * u64::from(sectors_per_page),
            sectors_per_page,
            translation,
            has_zones: false,
            pauses_between_steps: false,
            reports_initial_free_blocks: false,
            preconditions: false,
            looks_ahead: false,
            faults: &[],
            unsaveable: None,
            idle_after: None,
            power_failures: Stream::new(input.seed, &format!("{}/power", input.path)),
            throttled: None,
            info,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct State {
    busy_until: SimTime,
    states_reported_until: SimTime,
    free_blocks_reported: u32,
    timer_set: bool,
    due_timer_set: bool,
    /// Duration of the recovery under way.
    recovering: Option<SimDuration>,
    end_of_life: EndOfLife,
}

/// Consequence of so much worn-out flash that a write finds no place.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum EndOfLife {
    EndsRun,
    /// Writes fail from then on: the wear was asked for, to see its end.
    FailsWrites,
    /// It has happened: writes fail, and trims, which are advice, have no effect.
    Reached,
}

/// An SSD.
pub struct SsdDevice<T> {
    pub(crate) translation: T,
    front: FrontEnd,
    state: State,
    in_flight: InFlight,
    /// Writes that wait for the write buffer, in order of arrival. A timer is set for the first.
    waiting: VecDeque<WaitingWrite>,
    /// Writes that wait for their programs, by their number in the timing model. A timer is set for
    /// each.
    programming: BTreeMap<u64, WaitingWrite>,
    /// Requests in progress, and how long each waited for a recovery before.
    in_progress: Vec<(RequestId, Request, SimDuration)>,
}

impl<T: Translation> SsdDevice<T> {
    pub fn new(front: FrontEnd, translation: T) -> Self {
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
        let (programming, in_progress) = (BTreeMap::new(), Vec::new());
        Self { translation, front, state, in_flight, waiting, programming, in_progress }
    }

    /// Serves a request at its arrival, or when recovery has ended.
    fn serve(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.state.end_of_life == EndOfLife::Reached && self.refuses(ctx, id, request) {
            return;
        }
        self.report_states(ctx, false);
        let (outcome, result) = self.translation.serve(ctx, request, self.state.busy_until);
        let failed = self.ended(ctx, result);
        let scheduled = match outcome {
            Outcome::Scheduled(scheduled) => scheduled,
            Outcome::Unreadable(timed) => return self.failed(ctx, id, timed, Ctx::fail_at),
            Outcome::Refused(timed) => return self.failed(ctx, id, timed, Ctx::refuse_at),
            Outcome::InProgress(at) => return self.begin_progress(ctx, (id, request), at),
        };
        self.state.busy_until = self.state.busy_until.max(scheduled.busy_until());
        if ctx.power_may_fail() && !failed {
            let durable = durable_from(id, &scheduled);
            self.in_flight.record(ctx, request, self.front.sectors_per_page, durable);
        }
        let queued = ctx.now().since(ctx.issued(id));
        match scheduled {
            // The flash has just worn out.
            _ if failed && self.refuses(ctx, id, request) => {}
            _ if failed => {
                ctx.fail_request(id, LatencyBreakdown::NONE.plus(LatencyPhase::Queue, queued));
            }
            Scheduled::Completes(timed) => complete(ctx, (id, queued), timed),
            Scheduled::Waits(until) => self.wait(ctx, (id, queued), until),
            Scheduled::Programs { number, until, .. } => {
                self.await_programs(ctx, (number, (id, queued)), until);
            }
        }
        self.report_after(ctx);
    }

    /// Ends a request whose data cannot be read, or that the device does not accept.
    #[cold]
    fn failed<'c>(
        &mut self,
        ctx: &mut Ctx<'c>,
        id: RequestId,
        timed: Timed,
        end: fn(&mut Ctx<'c>, RequestId, SimTime, LatencyBreakdown),
    ) {
        self.state.busy_until = self.state.busy_until.max(timed.idle_from);
        let queued = ctx.now().since(ctx.issued(id));
        end(ctx, id, timed.end, timed.breakdown.plus(LatencyPhase::Queue, queued));
        self.report_after(ctx);
    }

    /// Notes a request that continues at `at`. A reset is in effect from now on: no power failure
    /// brings back what the zone held.
    #[cold]
    fn begin_progress(&mut self, ctx: &mut Ctx<'_>, (id, of): (RequestId, &Request), at: SimTime) {
        if ctx.power_may_fail() {
            let durable = Durable::At(ctx.now());
            self.in_flight.record(ctx, of, self.front.sectors_per_page, durable);
        }
        let queued = ctx.now().since(ctx.issued(id));
        self.in_progress.push((id, *of, queued));
        self.continues(ctx, id, at);
        self.report_after(ctx);
    }

    /// Reports busy intervals and free blocks after a request, and sets the idle timer.
    #[inline(always)]
    fn report_after(&mut self, ctx: &mut Ctx<'_>) {
        self.translation.back_end().report_busy(ctx, false);
        self.report_free_blocks(ctx);
        self.set_idle_timer(ctx);
    }

    fn continues(&mut self, ctx: &mut Ctx<'_>, id: RequestId, at: SimTime) {
        self.state.busy_until = self.state.busy_until.max(at);
        ctx.wake_at(at.max(ctx.now()), CONTINUES + u64::from(id.0));
    }

    fn resume(&mut self, ctx: &mut Ctx<'_>, id: RequestId) {
        let Some(at) = self.in_progress.iter().position(|it| it.0 == id) else { return };
        let (_, request, queued) = self.in_progress[at];
        self.report_states(ctx, false);
        match self.translation.resume(ctx, &request) {
            Outcome::InProgress(at) => self.continues(ctx, id, at),
            Outcome::Scheduled(Scheduled::Completes(timed)) => {
                self.in_progress.swap_remove(at);
                self.state.busy_until = self.state.busy_until.max(timed.idle_from);
                complete(ctx, (id, queued), timed);
            }
            _ => unreachable!("only a request that arrives waits or fails"),
        }
        self.check(ctx, Ok(()));
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
        let (busy_until, more) = self.translation.idle_step(ctx);
        self.state.busy_until = self.state.busy_until.max(busy_until);
        self.translation.back_end().report_busy(ctx, false);
        self.report_free_blocks(ctx);
        if more == Ok(true) {
            // A request that arrives meanwhile waits for one step at most.
            self.state.timer_set = true;
            let next = self.state.busy_until.max(ctx.now() + SimDuration::from_ns(1));
            let token = if self.front.pauses_between_steps { IDLE } else { BACKGROUND_CONTINUES };
            ctx.wake_at(next, token);
        } else if let Some(due) = self.translation.back_end().next_background()
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
    #[inline(always)]
    fn check(&self, ctx: &mut Ctx<'_>, result: Result<(), FtlError>) {
        let mut arrays = self.translation.arrays().into_iter().flatten();
        if result.is_err() || arrays.any(|array| array.violation().is_some()) {
            self.end_run(ctx, result);
        }
    }

    #[cold]
    fn end_run(&self, ctx: &mut Ctx<'_>, result: Result<(), FtlError>) {
        if let Err(error) = result {
            ctx.device_fault(error.to_string());
        }
        let violation = self.translation.arrays().into_iter().flatten().find_map(Array::violation);
        if let Some(violation) = violation {
            let (path, name) = (ctx.path(), self.front.translation);
            let message = format!("{path}: translation layer `{name}`: {violation}");
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
        let period = StatePeriod { from, busy_until, now, everything };
        if self.translation.back_end().report_states(ctx, period) {
            self.state.states_reported_until = now;
        }
    }

    #[inline]
    fn report_free_blocks(&mut self, ctx: &mut Ctx<'_>) {
        let [array, _] = self.translation.arrays();
        let free = array.map_or(0, Array::free_blocks);
        if free != self.state.free_blocks_reported {
            self.state.free_blocks_reported = free;
            ctx.emit(FlashEvent::FreeBlocks { free });
        }
    }

    /// Reports how many blocks were erased how often.
    fn report_wear(&self, ctx: &mut Ctx<'_>) {
        let mut wear = BTreeMap::new();
        for array in self.translation.arrays().into_iter().flatten() {
            array.count_wear(&mut wear);
        }
        for (erases, blocks) in wear {
            ctx.emit(FlashEvent::Wear { erases, blocks: blocks as u32 });
        }
    }

    fn set_idle_timer(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(delay) = self.front.idle_after.filter(|_| !self.state.timer_set) {
            self.state.timer_set = true;
            ctx.wake_at(self.state.busy_until.max(ctx.now()) + delay, IDLE);
        }
    }
}

impl<T: Translation> Component for SsdDevice<T> {
    fn capacity(&self) -> u64 {
        self.front.capacity
    }

    fn info(&self) -> ComponentInfo {
        self.front.info.clone()
    }

    fn accepts_zone_commands(&self) -> bool {
        self.front.has_zones
    }

    fn zones(&self) -> Option<&dyn Zoned> {
        self.translation.zones()
    }

    fn health(&self) -> Option<Health> {
        Some(self.figures())
    }

    fn unit_left(&self, handle: u8) -> Option<u64> {
        let pages = self.translation.unit_left(handle)?;
        Some(pages * u64::from(self.front.sectors_per_page))
    }

    fn start(&mut self, ctx: &mut Ctx<'_>) {
        self.translation.back_end().start(ctx);
        self.check(ctx, Ok(()));
        if self.front.reports_initial_free_blocks {
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
            DELAYED => {}
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
        self.translation.back_end().report_busy(ctx, true);
        self.translation.finish(ctx);
        self.report_wear(ctx);
    }

    fn checkpoint(&mut self) -> Option<&mut dyn Checkpoint> {
        Some(self)
    }

    fn power_failure(&mut self) -> Option<&mut dyn PowerFailure> {
        Some(self)
    }

    fn faults(&mut self) -> Option<&mut dyn Inject> {
        (!self.front.faults.is_empty()).then_some(self)
    }

    fn preparation(&mut self) -> Option<&mut dyn Prepare> {
        self.front.preconditions.then_some(self as &mut dyn Prepare)
    }

    fn lookahead(&self) -> Option<&dyn Lookahead> {
        self.front.looks_ahead.then_some(self as &dyn Lookahead)
    }
}

impl<T: Translation> Checkpoint for SsdDevice<T> {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if let Some(error) = &self.front.unsaveable {
            return Err(error.clone());
        }
        self.translation.save(to);
        to.put(&self.state);
        if let Some(throttled) = &self.front.throttled {
            throttled.save(to);
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.translation.restore(from)?;
        self.state = from.take()?;
        match &mut self.front.throttled {
            Some(throttled) => throttled.restore(from),
            None => Ok(()),
        }
    }
}

impl<T: Translation> PowerFailure for SsdDevice<T> {
    fn power_cut(&mut self, now: SimTime) -> Result<(), String> {
        let busy_until = self.state.busy_until;
        self.state.busy_until = self.translation.back_end().power_lost(now, busy_until);
        self.translation.power_lost()?;
        self.state.recovering = None;
        (self.state.timer_set, self.state.due_timer_set) = (false, false);
        self.waiting.clear();
        self.programming.clear();
        self.in_progress.clear();
        if let Some(throttled) = &mut self.front.throttled {
            throttled.power_lost();
        }
        for (sector, version) in self.in_flight.undo(now, &mut self.front.power_failures) {
            self.translation.restore_sector(sector, version);
        }
        Ok(())
    }

    fn power_on(&mut self, ctx: &mut Ctx<'_>) {
        self.advance_throttle(ctx);
        self.report_states(ctx, true);
        let took = self.translation.recover(ctx);
        let ready = ctx.now() + took;
        self.state.recovering = Some(took);
        self.state.busy_until = self.state.busy_until.max(ready);
        ctx.wake_at(ready, RECOVERED);
    }
}

impl<T: Translation> Prepare for SsdDevice<T> {
    fn prepare(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> Result<(), String> {
        self.translation.filling().map_or(Ok(()), |it| it.prepare(progress))
    }
}

impl<T: Translation> Lookahead for SsdDevice<T> {
    fn expect(&self, requests: &[Request]) {
        self.translation.expect(requests);
    }
}
