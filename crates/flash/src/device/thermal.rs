//! Temperature of a drive, and thermal throttling.
//!
//! The drive has one temperature `T`. With power `P`, thermal resistance `R` and heat capacity `C`,
//!
//! ```text
//! C dT/dt = P - (T - ambient) / R
//! ```
//!
//! so while `P` is constant, `T` approaches `ambient + R P` exponentially with time constant `R C`.
//! The power is constant between requests: that of the power state, and the energy of the
//! operations, spread evenly until the device is idle. No timer is needed: the temperature is
//! brought up to date when something happens, and the instants at which it passed a threshold
//! follow from the closed form.
//!
//! Throttling is host controlled thermal management as NVMe has it (NVM Express Base Specification
//! 2.0, section 8.15.5): light above TMT1, heavy above TMT2. Each ends at a lower temperature of
//! its own. What a controller does to cool down is left to vendors; here requests are spaced so
//! that their data have a limited rate, which is what measurements of drives show.

use super::{FlashBackend, PACED, SsdDevice};
use crate::event::{FlashEvent, Throttling};
use crate::ops::{FlashOps, OpKind};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::{
    ComponentInfo, Ctx, Loader, Op, PowerState, Request, RequestId, Saver, SimDuration, SimTime,
    StateError,
};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const CELSIUS: Kind = Kind::Number { min: -100.0, max: 300.0 };

/// The parameters of temperature and throttling.
pub(crate) const THERMAL: &[Param] = &[
    Param::optional(
        "thermal_resistance",
        Kind::Number { min: 0.001, max: 10_000.0 },
        "Thermal resistance between drive and ambient air in K/W; with it the temperature of the \
         drive is simulated. The drive begins at the temperature it has when idle.",
    )
    .needs(&[Needs::Not("timing", &["none"])]),
    Param::optional(
        "heat_capacity",
        Kind::Number { min: 0.001, max: 1_000_000.0 },
        "Heat capacity of the drive in J/K.",
    )
    .needs(&[Needs::given("thermal_resistance")]),
    Param::with("ambient_celsius", CELSIUS, "25.0", "Temperature of the ambient air in °C.")
        .needs(&[Needs::given("thermal_resistance")]),
    Param::optional(
        "tmt1_celsius",
        CELSIUS,
        "Temperature in °C at which light throttling begins (NVMe: TMT1). Without it the drive is \
         not throttled.",
    )
    .needs(&[Needs::given("thermal_resistance")]),
    Param::optional(
        "tmt1_end_celsius",
        CELSIUS,
        "Temperature in °C at which light throttling ends.",
    )
    .needs(&[Needs::given("tmt1_celsius")]),
    Param::optional(
        "tmt1_rate",
        Kind::Rate,
        "Rate of the data read and written during light throttling: requests are spaced.",
    )
    .needs(&[Needs::given("tmt1_celsius")]),
    Param::optional(
        "tmt2_celsius",
        CELSIUS,
        "Temperature in °C at which heavy throttling begins (NVMe: TMT2).",
    )
    .needs(&[Needs::given("tmt1_celsius")]),
    Param::optional(
        "tmt2_end_celsius",
        CELSIUS,
        "Temperature in °C at which heavy throttling ends and light throttling is back.",
    )
    .needs(&[Needs::given("tmt2_celsius")]),
    Param::optional(
        "tmt2_rate",
        Kind::Rate,
        "Rate of the data read and written during heavy throttling.",
    )
    .needs(&[Needs::given("tmt2_celsius")]),
];

/// A change of the temperature is reported from this one on.
const REPORTED_CHANGE_MK: u32 = 100;
/// While the temperature changes by more, it is reported at this share of the time constant at
/// least: a line through the reports is then within 1 % of the change.
const REPORTED_SHARE: f64 = 0.25;

/// The energy of flash operations, summed up for the temperature.
pub struct EnergyMeter {
    read: f64,
    program: f64,
    erase: f64,
    search: f64,
    joules: f64,
}

impl EnergyMeter {
    /// Of a device whose temperature is simulated.
    pub(crate) fn of(settings: &Settings, search: f64) -> Option<Box<Self>> {
        resistance(settings)?;
        let [read, program, erase] =
            ["read_energy", "program_energy", "erase_energy"].map(|key| settings.number(key));
        Some(Box::new(Self { read, program, erase, search, joules: 0.0 }))
    }

    /// Adds the recorded operations.
    #[inline(never)]
    pub(crate) fn add(&mut self, flash: &FlashOps) {
        for op in flash.list() {
            self.joules += match op.kind {
                OpKind::Read => self.read,
                OpKind::Program => self.program,
                OpKind::Copy => self.read + self.program,
                OpKind::Erase => self.erase,
            };
            // Each retry reads the cells again.
            self.joules += self.read * f64::from(op.retries);
        }
        self.joules += self.search * f64::from(flash.searched_blocks());
    }

    /// The energy since the last call.
    pub(crate) fn take(&mut self) -> f64 {
        std::mem::take(&mut self.joules)
    }
}

/// One of the two thresholds.
#[derive(Clone, Copy, Debug)]
struct Threshold {
    begin: f64,
    end: f64,
    /// Bytes per second.
    rate: u64,
}

/// Constants of a drive: temperatures in °C, powers in watts.
#[derive(Clone, Copy, Debug)]
struct Constants {
    ambient: f64,
    resistance: f64,
    capacity: f64,
    idle: f64,
    active: f64,
    /// Of light and heavy throttling.
    thresholds: [Option<Threshold>; 2],
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct State {
    celsius: f64,
    at: SimTime,
    /// Energy of operations that has not become heat.
    joules: f64,
    throttling: Throttling,
    /// When the last request of this period of throttling began, and its bytes of data.
    last: Option<(SimTime, u64)>,
    /// When the timer for the first delayed request expires.
    timer: Option<SimTime>,
    /// The last report: throttling, and temperature in thousandths of a kelvin.
    reported: (Throttling, u32),
    /// The instant of that report.
    reported_at: SimTime,
}

/// The temperature of a drive, and the requests that throttling delays.
pub struct Thermal {
    constants: Constants,
    state: State,
    /// In order of arrival; a timer is set for the first.
    paced: VecDeque<(RequestId, Request)>,
}

/// A change of throttling.
struct Change {
    /// Seconds until then.
    after: f64,
    celsius: f64,
    to: Throttling,
}

impl Constants {
    /// The temperature that the drive approaches with `power`.
    fn target(&self, power: f64) -> f64 {
        self.ambient + self.resistance * power
    }

    fn threshold(&self, of: Throttling) -> Option<&Threshold> {
        self.thresholds[(of as usize).checked_sub(1)?].as_ref()
    }

    /// Where throttling becomes heavier, and lighter.
    fn bounds(&self, throttling: Throttling) -> (f64, f64) {
        let above = match throttling {
            Throttling::None => Throttling::Light,
            Throttling::Light => Throttling::Heavy,
            Throttling::Heavy => return (f64::INFINITY, self.end(throttling)),
        };
        let begin = self.threshold(above).map_or(f64::INFINITY, |it| it.begin);
        (begin, self.end(throttling))
    }

    fn end(&self, throttling: Throttling) -> f64 {
        self.threshold(throttling).map_or(f64::NEG_INFINITY, |it| it.end)
    }

    /// The time constant in seconds.
    fn time_constant(&self) -> f64 {
        self.resistance * self.capacity
    }

    /// The next change of throttling while the temperature goes from `celsius` to `target`. A
    /// threshold equal to the target is never reached.
    fn next_change(&self, celsius: f64, throttling: Throttling, target: f64) -> Option<Change> {
        let (begin, end) = self.bounds(throttling);
        let until = |bound| {
            self.time_constant() * libm::log((celsius - target) / (bound - target)).max(0.0)
        };
        // It may be beyond a bound already, where an operation's heat came at one instant.
        let (after, celsius, to) = if celsius > begin {
            (0.0, celsius, throttling.heavier())
        } else if celsius < end {
            (0.0, celsius, throttling.lighter())
        } else if target > begin {
            (until(begin), begin, throttling.heavier())
        } else if target < end {
            (until(end), end, throttling.lighter())
        } else {
            return None;
        };
        Some(Change { after, celsius, to })
    }
}

impl State {
    /// The temperature `time` from now, with constant power. Reports what is on the way, at `now`.
    fn pass(
        &mut self,
        constants: &Constants,
        (time, power): (SimDuration, f64),
        (now, emit): (SimTime, &mut impl FnMut(FlashEvent)),
    ) {
        let (target, tau) = (constants.target(power), constants.time_constant());
        let end = self.at + time;
        loop {
            let before = *self;
            let left = end.since(self.at).as_s_f64();
            let is_far = (self.celsius - target).abs() * 1e3 > f64::from(REPORTED_CHANGE_MK);
            let step = if is_far { left.min(tau * REPORTED_SHARE) } else { left };
            let change = constants.next_change(self.celsius, self.throttling, target);
            match change.filter(|it| it.after <= step) {
                Some(change) => {
                    self.at = end.min(self.at + SimDuration::from_ns_f64(change.after * 1e9));
                    (self.celsius, self.throttling) = (change.celsius, change.to);
                    if self.throttling == Throttling::None {
                        self.last = None;
                    }
                }
                None => {
                    self.celsius = target + (self.celsius - target) * libm::exp(-step / tau);
                    self.at = match step < left {
                        true => end.min(self.at + SimDuration::from_ns_f64(step * 1e9)),
                        false => end,
                    };
                }
            }
            self.report_begin(&before, now, emit);
            if self.at == end {
                return;
            }
            self.report(now, emit);
        }
    }

    /// Brings the temperature up to `now`, of a device that is active until `busy_until`, and whose
    /// operations of the last instant take `joules`.
    fn advance(
        &mut self,
        constants: &Constants,
        (now, busy_until): (SimTime, SimTime),
        joules: f64,
        emit: &mut impl FnMut(FlashEvent),
    ) {
        self.joules += joules;
        if now <= self.at {
            return;
        }
        let active_until = busy_until.clamp(self.at, now);
        let active = active_until.since(self.at);
        if active.is_zero() {
            self.celsius += std::mem::take(&mut self.joules) / constants.capacity;
        } else {
            // The same power for every `now`, so that throttling changes when it was foreseen.
            let whole = busy_until.since(self.at).as_s_f64();
            let power = constants.active + self.joules / whole;
            let is_whole = active_until == busy_until;
            self.joules *= if is_whole { 0.0 } else { 1.0 - active.as_s_f64() / whole };
            self.pass(constants, (active, power), (now, emit));
        }
        if active_until < now {
            // Here it begins to cool: the highest temperature for a while.
            self.report(now, emit);
            self.pass(constants, (now.since(active_until), constants.idle), (now, emit));
        }
        self.report(now, emit);
    }

    fn millikelvin(celsius: f64) -> u32 {
        libm::round((celsius + 273.15) * 1e3) as u32
    }

    /// The report of this state at `now`.
    fn event(&self, now: SimTime) -> FlashEvent {
        FlashEvent::Temperature {
            throttling: self.throttling,
            millikelvin: Self::millikelvin(self.celsius),
            ago: now.since(self.at),
        }
    }

    /// Reports the state `before` a change that is large enough to be reported, unless that was
    /// the last report: a line through the reports is then close to the temperature.
    fn report_begin(&mut self, before: &Self, now: SimTime, emit: &mut impl FnMut(FlashEvent)) {
        let [from, to] = [before.celsius, self.celsius].map(Self::millikelvin);
        if from.abs_diff(to) >= REPORTED_CHANGE_MK && self.reported_at < before.at {
            (self.reported, self.reported_at) = ((before.throttling, from), before.at);
            emit(before.event(now));
        }
    }

    /// Reports this state at `now` if it differs enough from the last report.
    fn report(&mut self, now: SimTime, emit: &mut impl FnMut(FlashEvent)) {
        let millikelvin = Self::millikelvin(self.celsius);
        let (throttling, reported_mk) = self.reported;
        let has_changed = millikelvin.abs_diff(reported_mk) >= REPORTED_CHANGE_MK;
        if has_changed || throttling != self.throttling {
            (self.reported, self.reported_at) = ((self.throttling, millikelvin), self.at);
            emit(self.event(now));
        }
    }
}

impl Thermal {
    /// The temperature of a device with this power; `None` where it is not simulated.
    ///
    /// # Errors
    /// All problems with the parameters.
    pub(crate) fn new(
        settings: &Settings,
        info: &ComponentInfo,
    ) -> Result<Option<Box<Self>>, Vec<Problem>> {
        let Some(resistance) = resistance(settings) else { return Ok(None) };
        let mut problems = Vec::new();
        let capacity = settings.number_opt("heat_capacity").unwrap_or_else(|| {
            let message = "the heat capacity in J/K is missing: set heat_capacity";
            problems.push(Problem::new("thermal_resistance", message));
            1.0
        });
        let always: f64 = info.always_watts.iter().map(|it| it.1).sum();
        let watts = info.watts.unwrap_or_default();
        let [idle, active] = [PowerState::Idle, PowerState::Active].map(|it| watts[it as usize]);
        let constants = Constants {
            ambient: settings.number("ambient_celsius"),
            resistance,
            capacity,
            idle: idle + always,
            active: active + always,
            thresholds: thresholds(settings, &mut problems),
        };
        let joules: f64 = info.operation_joules.iter().map(|it| it.1).sum();
        if constants.idle + constants.active + joules == 0.0 {
            let message = "the drive has no power and cannot become warm: set active_power, \
                           program_energy or other powers and energies";
            problems.push(Problem::new("thermal_resistance", message));
        }
        let celsius = constants.target(constants.idle);
        if let Some(end) = settings.number_opt("tmt1_end_celsius")
            && settings.number_opt("tmt1_celsius").is_some()
            && celsius >= end
        {
            let message = format!(
                "the idle drive has {celsius:.1} °C, so throttling would never end: set \
                 tmt1_end_celsius above it, or lower ambient_celsius, idle_power or \
                 thermal_resistance"
            );
            problems.push(Problem::new("tmt1_end_celsius", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let state = State {
            celsius,
            at: SimTime::ZERO,
            joules: 0.0,
            throttling: Throttling::None,
            last: None,
            timer: None,
            reported: (Throttling::None, State::millikelvin(celsius)),
            reported_at: SimTime::ZERO,
        };
        Ok(Some(Box::new(Self { constants, state, paced: VecDeque::new() })))
    }

    /// Brings the temperature up to now, and reports changes.
    fn advance(&mut self, ctx: &mut Ctx<'_>, busy_until: SimTime, joules: f64) {
        let now = ctx.now();
        let emit = &mut |event| ctx.emit(event);
        self.state.advance(&self.constants, (now, busy_until), joules, emit);
    }

    /// Reports the temperature at the start or the end of a run, which is no change of it: a run
    /// that continues from a saved state goes on as without the break.
    fn report(&mut self, ctx: &mut Ctx<'_>, end: End, (busy_until, joules): (SimTime, f64)) {
        self.state.joules += joules;
        let (now, mut state) = (ctx.now(), self.state);
        state.advance(&self.constants, (now, busy_until), 0.0, &mut |event| {
            // At the start, they are of the run before.
            if end == End::Finish {
                ctx.emit(event);
            }
        });
        ctx.emit(state.event(now));
    }

    /// When the next request may begin, or throttling becomes lighter; `None` for now.
    fn held_until(&self, now: SimTime, busy_until: SimTime) -> Option<SimTime> {
        let throttling = self.state.throttling;
        let rate = self.constants.threshold(throttling)?.rate;
        let (began, bytes) = self.state.last?;
        let next = began + SimDuration::transfer(bytes, rate);
        if next <= now {
            return None;
        }
        let (mut until, mut ahead) = (next, self.state);
        ahead.advance(&self.constants, (next, busy_until), 0.0, &mut |event| {
            if let FlashEvent::Temperature { throttling: to, ago, .. } = event
                && to < throttling
            {
                // Instants are rounded, so throttling changes at the latest here.
                until = until.min(next - ago + SimDuration::from_ns(1));
            }
        });
        Some(until)
    }

    /// Sets the timer to `until`, unless it expires before.
    fn set_timer(&mut self, ctx: &mut Ctx<'_>, until: SimTime) {
        let pending = self.state.timer.filter(|timer| *timer > ctx.now());
        if pending.is_none_or(|timer| until < timer) {
            self.state.timer = Some(until);
            ctx.wake_at(until, PACED);
        }
    }

    /// `request` begins now: the next one has to wait while its data have the limited rate.
    fn begin(&mut self, now: SimTime, request: &Request) {
        let is_throttled = self.state.throttling != Throttling::None;
        if is_throttled && matches!(request.op, Op::Read | Op::Write) {
            self.state.last = Some((now, request.bytes()));
        }
    }

    pub(super) fn holds_requests(&self) -> bool {
        !self.paced.is_empty()
    }

    /// The power failed: delayed requests never complete, and timers are lost.
    pub(super) fn power_lost(&mut self) {
        self.paced.clear();
        self.state.timer = None;
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&self.state);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.state = from.take()?;
        Ok(())
    }
}

/// The two ends of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Start,
    Finish,
}

/// The thermal resistance in K/W of a device with times whose temperature is simulated.
fn resistance(settings: &Settings) -> Option<f64> {
    let resistance = settings.number_opt("thermal_resistance")?;
    (settings.text("timing") != "none").then_some(resistance)
}

/// The parameters of a threshold, as far as they are given.
#[derive(Clone, Copy, Default)]
struct Given {
    begin: Option<f64>,
    end: Option<f64>,
    rate: Option<u64>,
}

impl Given {
    fn complete(&self) -> Option<Threshold> {
        Some(Threshold { begin: self.begin?, end: self.end?, rate: self.rate? })
    }
}

/// The thresholds that are given, each with its end and rate. Only values that are given, and are
/// right by themselves, are compared.
fn thresholds(settings: &Settings, problems: &mut Vec<Problem>) -> [Option<Threshold>; 2] {
    const KEYS: [[&str; 3]; 2] = [
        ["tmt1_celsius", "tmt1_end_celsius", "tmt1_rate"],
        ["tmt2_celsius", "tmt2_end_celsius", "tmt2_rate"],
    ];
    let mut all = [Given::default(); 2];
    for (given, [begin, end, rate]) in all.iter_mut().zip(KEYS) {
        // TMT2 has no effect without TMT1.
        let Some(from) = settings.number_opt(begin) else { break };
        let (to, limit) = (settings.number_opt(end), settings.rate_opt(rate));
        for (key, is_given) in [(end, to.is_some()), (rate, limit.is_some())] {
            if !is_given {
                problems.push(Problem::new(begin, format!("needs {key} beside it")));
            }
        }
        if to.is_some_and(|to| to >= from) {
            let message = format!("must be below {begin}, where this throttling begins");
            problems.push(Problem::new(end, message));
        }
        if limit == Some(0) {
            let message = "must be above 0, as requests would never be served";
            problems.push(Problem::new(rate, message));
        }
        *given = Given { begin: Some(from), end: to, rate: limit.filter(|rate| *rate > 0) };
    }
    let [light, heavy] = all;
    if heavy.begin.zip(light.begin).is_some_and(|(heavy, light)| heavy <= light) {
        problems.push(Problem::new("tmt2_celsius", "must be above tmt1_celsius"));
    }
    if heavy.end.zip(light.end).is_some_and(|(heavy, light)| heavy <= light) {
        problems.push(Problem::new("tmt2_end_celsius", "must be above tmt1_end_celsius"));
    }
    if heavy.rate.zip(light.rate).is_some_and(|(heavy, light)| heavy > light) {
        problems.push(Problem::new("tmt2_rate", "must be at most tmt1_rate"));
    }
    all.map(|given| given.complete())
}

impl<B: FlashBackend> SsdDevice<B> {
    /// Brings the temperature up to now.
    #[cold]
    pub(super) fn advance_temperature(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(thermal) = &mut self.front.thermal {
            thermal.advance(ctx, self.state.busy_until, self.backend.take_energy());
        }
    }

    /// Reports the temperature at the start or the end of a run.
    pub(super) fn report_temperature(&mut self, ctx: &mut Ctx<'_>, end: End) {
        if let Some(thermal) = &mut self.front.thermal {
            thermal.report(ctx, end, (self.state.busy_until, self.backend.take_energy()));
        }
    }

    /// A request arrives at a device whose temperature is simulated; throttling may delay it.
    #[cold]
    pub(super) fn arrive_throttled(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if let Some(thermal) = &mut self.front.thermal {
            thermal.paced.push_back((id, *request));
        }
        self.serve_delayed(ctx);
    }

    /// Serves the requests that throttling delays no longer.
    #[cold]
    pub(super) fn serve_delayed(&mut self, ctx: &mut Ctx<'_>) {
        loop {
            self.advance_temperature(ctx);
            let Some(thermal) = &mut self.front.thermal else { return };
            if thermal.paced.is_empty() {
                return;
            }
            if let Some(until) = thermal.held_until(ctx.now(), self.state.busy_until) {
                return thermal.set_timer(ctx, until);
            }
            if let Some((id, request)) = thermal.paced.pop_front() {
                thermal.begin(ctx.now(), &request);
                self.serve(ctx, id, &request);
            }
        }
    }
}
