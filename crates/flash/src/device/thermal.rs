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
    /// Highest since the last report.
    celsius_max: f64,
    at: SimTime,
    /// Energy of operations that has not become heat.
    joules: f64,
    throttling: Throttling,
    throttling_since: SimTime,
    /// When the next request may begin while requests are spaced.
    next: SimTime,
    reported_mk: u32,
}

/// The temperature of a drive, and the requests that throttling delays.
pub struct Thermal {
    constants: Constants,
    state: State,
    /// In order of arrival; a timer is set for the first.
    paced: VecDeque<(RequestId, Request)>,
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
}

impl State {
    /// The temperature `time` from now, with constant power; each change of throttling on the way
    /// is reported with the state just after it.
    fn pass(
        &mut self,
        constants: &Constants,
        (time, power): (SimDuration, f64),
        changed: &mut impl FnMut(&Self),
    ) {
        let target = constants.target(power);
        let tau = constants.resistance * constants.capacity;
        let end = self.at + time;
        loop {
            let left = end.since(self.at).as_s_f64();
            let reached = target + (self.celsius - target) * libm::exp(-left / tau);
            let (begin, ends) = constants.bounds(self.throttling);
            let (bound, next) = if reached >= begin {
                (begin, self.throttling.heavier())
            } else if reached <= ends {
                (ends, self.throttling.lighter())
            } else {
                self.celsius = reached;
                self.celsius_max = self.celsius_max.max(reached);
                self.at = end;
                return;
            };
            // It may be beyond the bound already, where an operation's heat came at one instant.
            let beyond = (self.celsius >= begin) || (self.celsius <= ends);
            if !beyond {
                let seconds = tau * libm::log((self.celsius - target) / (bound - target));
                let passed = SimDuration::from_ns_f64(seconds.max(0.0).min(left) * 1e9);
                self.at = (self.at + passed).min(end);
                self.celsius = bound;
            }
            self.celsius_max = self.celsius_max.max(self.celsius);
            (self.throttling, self.throttling_since) = (next, self.at);
            changed(self);
            self.celsius_max = self.celsius;
        }
    }

    /// Brings the temperature up to `now`, of a device that is active until `busy_until`, and whose
    /// operations of the last instant take `joules`.
    fn advance(
        &mut self,
        constants: &Constants,
        (now, busy_until): (SimTime, SimTime),
        joules: f64,
        changed: &mut impl FnMut(&Self),
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
            let share = active.as_s_f64() / busy_until.since(self.at).as_s_f64();
            let heat = if active_until == busy_until { self.joules } else { self.joules * share };
            self.joules -= heat;
            let power = constants.active + heat / active.as_s_f64();
            self.pass(constants, (active, power), changed);
        }
        self.pass(constants, (now.since(active_until), constants.idle), changed);
    }

    fn millikelvin(celsius: f64) -> u32 {
        libm::round((celsius + 273.15) * 1e3) as u32
    }

    /// The report of this state at `now`.
    fn event(&self, now: SimTime) -> FlashEvent {
        FlashEvent::Temperature {
            throttling: self.throttling,
            millikelvin: Self::millikelvin(self.celsius),
            elapsed: now.since(self.throttling_since),
            millikelvin_max: Self::millikelvin(self.celsius_max),
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
        if let Some(Threshold { end, .. }) = constants.thresholds[0]
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
            celsius_max: celsius,
            at: SimTime::ZERO,
            joules: 0.0,
            throttling: Throttling::None,
            throttling_since: SimTime::ZERO,
            next: SimTime::ZERO,
            reported_mk: State::millikelvin(celsius),
        };
        Ok(Some(Box::new(Self { constants, state, paced: VecDeque::new() })))
    }

    /// Brings the temperature up to now, and reports changes.
    fn advance(&mut self, ctx: &mut Ctx<'_>, busy_until: SimTime, joules: f64) {
        let now = ctx.now();
        let state = &mut self.state;
        state.advance(&self.constants, (now, busy_until), joules, &mut |state| {
            ctx.emit(state.event(now));
        });
        let millikelvin = State::millikelvin(state.celsius);
        if millikelvin.abs_diff(state.reported_mk) >= REPORTED_CHANGE_MK {
            ctx.emit(state.event(now));
            state.reported_mk = millikelvin;
            state.celsius_max = state.celsius;
        }
    }

    /// Reports the temperature at the start or the end of a run, which is no change of it: a run
    /// that continues from a saved state goes on as without the break.
    fn report(&mut self, ctx: &mut Ctx<'_>, busy_until: SimTime, joules: f64) {
        self.state.joules += joules;
        let (now, mut state) = (ctx.now(), self.state);
        state.advance(&self.constants, (now, busy_until), 0.0, &mut |state| {
            ctx.emit(state.event(now));
        });
        ctx.emit(state.event(now));
    }

    /// When a request that arrives now may begin; `None` for now.
    fn held_until(&self, now: SimTime) -> Option<SimTime> {
        let is_throttled = self.state.throttling != Throttling::None;
        (is_throttled && self.state.next > now).then_some(self.state.next)
    }

    /// `request` begins now: the next one has to wait while its data have the limited rate.
    fn begin(&mut self, now: SimTime, request: &Request) {
        if let Some(threshold) = self.constants.threshold(self.state.throttling)
            && matches!(request.op, Op::Read | Op::Write)
        {
            self.state.next = now + SimDuration::transfer(request.bytes(), threshold.rate);
        }
    }

    pub(super) fn holds_requests(&self) -> bool {
        !self.paced.is_empty()
    }

    /// The power failed: delayed requests never complete.
    pub(super) fn power_lost(&mut self) {
        self.paced.clear();
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&self.state);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.state = from.take()?;
        Ok(())
    }
}

/// The thermal resistance in K/W of a device with times whose temperature is simulated.
fn resistance(settings: &Settings) -> Option<f64> {
    let resistance = settings.number_opt("thermal_resistance")?;
    (settings.text("timing") != "none").then_some(resistance)
}

/// The thresholds that are given, each with its end and rate.
fn thresholds(settings: &Settings, problems: &mut Vec<Problem>) -> [Option<Threshold>; 2] {
    const KEYS: [[&str; 3]; 2] = [
        ["tmt1_celsius", "tmt1_end_celsius", "tmt1_rate"],
        ["tmt2_celsius", "tmt2_end_celsius", "tmt2_rate"],
    ];
    let mut found = [None; 2];
    for (threshold, [begin, end, rate]) in found.iter_mut().zip(KEYS) {
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
        *threshold = Some(Threshold {
            begin: from,
            end: to.unwrap_or(f64::NEG_INFINITY),
            rate: limit.unwrap_or(1),
        });
    }
    if let [Some(light), Some(heavy)] = found {
        if heavy.begin <= light.begin {
            problems.push(Problem::new("tmt2_celsius", "must be above tmt1_celsius"));
        }
        if heavy.end <= light.end {
            problems.push(Problem::new("tmt2_end_celsius", "must be above tmt1_end_celsius"));
        }
        if heavy.rate > light.rate {
            problems.push(Problem::new("tmt2_rate", "must be at most tmt1_rate"));
        }
    }
    found
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
    pub(super) fn report_temperature(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(thermal) = &mut self.front.thermal {
            thermal.report(ctx, self.state.busy_until, self.backend.take_energy());
        }
    }

    /// Whether throttling delays `request`, which arrives now. If not, it is to be served.
    #[cold]
    pub(super) fn delays_request(
        &mut self,
        ctx: &mut Ctx<'_>,
        id: RequestId,
        request: &Request,
    ) -> bool {
        self.advance_temperature(ctx);
        let Some(thermal) = &mut self.front.thermal else { return false };
        let until = thermal.held_until(ctx.now());
        if thermal.paced.is_empty() {
            let Some(until) = until else {
                thermal.begin(ctx.now(), request);
                return false;
            };
            ctx.wake_at(until, PACED);
        }
        thermal.paced.push_back((id, *request));
        true
    }

    /// Serves requests that were delayed until now.
    #[cold]
    pub(super) fn serve_paced(&mut self, ctx: &mut Ctx<'_>) {
        loop {
            self.advance_temperature(ctx);
            let Some(thermal) = &mut self.front.thermal else { return };
            if thermal.paced.is_empty() {
                return;
            }
            if let Some(until) = thermal.held_until(ctx.now()) {
                return ctx.wake_at(until, PACED);
            }
            if let Some((id, request)) = thermal.paced.pop_front() {
                thermal.begin(ctx.now(), &request);
                self.serve(ctx, id, &request);
            }
        }
    }
}
