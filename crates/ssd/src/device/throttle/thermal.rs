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

use super::{End, Throttle, ThrottleEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    ComponentInfo, Loader, Op, PowerState, Request, Saver, SimDuration, SimTime, StateError,
};
use hybridsim_flash::event::{FlashEvent, Throttling};
use serde::{Deserialize, Serialize};

const CELSIUS: Kind = Kind::Number { min: -100.0, max: 300.0 };

pub const ENTRY: ThrottleEntry = ThrottleEntry {
    description: Description {
        name: "thermal",
        summary: "Temperature of the drive, and host controlled thermal management: requests are \
                  spaced above two temperatures.",
        origin: "NVM Express Base Specification 2.0, section 8.15.5",
        params: Parameters::PARAMS,
    },
    build: |settings, info| {
        let model = Thermal::new(&Parameters::from_settings(settings), info)?;
        Ok(Some(model as Box<dyn Throttle>))
    },
};

const LIGHT: &[Needs] = &[Needs::given("tmt1_celsius")];
const HEAVY: &[Needs] = &[Needs::given("tmt1_celsius"), Needs::given("tmt2_celsius")];

hybridsim_config::params! {
    struct Parameters {
        thermal_resistance: f64 = Kind::Number { min: 0.001, max: 10_000.0 }, required,
            "Thermal resistance between drive and ambient air in K/W. The drive begins at the \
             temperature it has when idle.";
        heat_capacity: f64 = Kind::Number { min: 0.001, max: 1_000_000.0 }, required,
            "Heat capacity of the drive in J/K.";
        ambient_celsius: f64 = CELSIUS, default "25.0", "Temperature of the ambient air in °C.";
        tmt1_celsius: Option<f64> = CELSIUS, optional,
            "Temperature in °C at which light throttling begins (NVMe: TMT1). Without it the drive \
             is not throttled.";
        tmt1_end_celsius: Option<f64> = CELSIUS, optional needs LIGHT,
            "Temperature in °C at which light throttling ends.";
        tmt1_rate: Option<u64> = Kind::Rate, optional needs LIGHT,
            "Rate of the data read and written during light throttling: requests are spaced.";
        tmt2_celsius: Option<f64> = CELSIUS, optional needs LIGHT,
            "Temperature in °C at which heavy throttling begins (NVMe: TMT2).";
        tmt2_end_celsius: Option<f64> = CELSIUS, optional needs HEAVY,
            "Temperature in °C at which heavy throttling ends and light throttling is back.";
        tmt2_rate: Option<u64> = Kind::Rate, optional needs HEAVY,
            "Rate of the data read and written during heavy throttling.";
    }
}

/// A change of the temperature is reported from this one on.
const REPORTED_CHANGE_MK: u32 = 100;
/// While the temperature changes by more, it is reported at this share of the time constant at
/// least: a line through the reports is then within 1 % of the change.
const REPORTED_SHARE: f64 = 0.25;

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
    /// Thresholds of light and heavy throttling.
    thresholds: [Option<Threshold>; 2],
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct State {
    celsius: f64,
    at: SimTime,
    /// Energy of operations that has not become heat.
    joules: f64,
    throttling: Throttling,
    /// Begin and bytes of the last request of this period of throttling.
    last: Option<(SimTime, u64)>,
    /// The last report: throttling, and temperature in thousandths of a kelvin.
    reported: (Throttling, u32),
    reported_at: SimTime,
}

/// The temperature of a drive.
#[derive(Clone, Copy)]
struct Thermal {
    constants: Constants,
    state: State,
}

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

    /// Temperatures at which throttling becomes heavier, and lighter.
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
    fn report_begin(&mut self, before: &Self, now: SimTime, emit: &mut dyn FnMut(FlashEvent)) {
        let [from, to] = [before.celsius, self.celsius].map(Self::millikelvin);
        if from.abs_diff(to) >= REPORTED_CHANGE_MK && self.reported_at < before.at {
            (self.reported, self.reported_at) = ((before.throttling, from), before.at);
            emit(before.event(now));
        }
    }

    /// Reports this state at `now` if it differs enough from the last report.
    fn report(&mut self, now: SimTime, emit: &mut dyn FnMut(FlashEvent)) {
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
    /// The temperature of a device with this power.
    ///
    /// # Errors
    /// All problems with the parameters.
    fn new(params: &Parameters, info: &ComponentInfo) -> Result<Box<Self>, Vec<Problem>> {
        let mut problems = Vec::new();
        let always: f64 = info.always_watts.iter().map(|it| it.1).sum();
        let watts = info.watts.unwrap_or_default();
        let [idle, active] = [PowerState::Idle, PowerState::Active].map(|it| watts[it as usize]);
        let constants = Constants {
            ambient: params.ambient_celsius,
            resistance: params.thermal_resistance,
            capacity: params.heat_capacity,
            idle: idle + always,
            active: active + always,
            thresholds: params.thresholds(&mut problems),
        };
        let joules: f64 = info.operation_joules.iter().map(|it| it.1).sum();
        if constants.idle + constants.active + joules == 0.0 {
            let message = "the drive has no power and cannot become warm: set active_power, \
                           program_energy or other powers and energies";
            problems.push(Problem::new("throttle.thermal_resistance", message));
        }
        let celsius = constants.target(constants.idle);
        if let Some(end) = params.tmt1_end_celsius
            && params.tmt1_celsius.is_some()
            && celsius >= end
        {
            let message = format!(
                "the idle drive has {celsius:.1} °C, so throttling would never end: set \
                 tmt1_end_celsius above it, or lower ambient_celsius, idle_power or \
                 thermal_resistance"
            );
            problems.push(Problem::new("throttle.tmt1_end_celsius", message));
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
            reported: (Throttling::None, State::millikelvin(celsius)),
            reported_at: SimTime::ZERO,
        };
        Ok(Box::new(Self { constants, state }))
    }

    /// The temperature `time` from now, with constant power. Reports what is on the way, at `now`.
    fn pass(
        &mut self,
        (time, power): (SimDuration, f64),
        (now, emit): (SimTime, &mut dyn FnMut(FlashEvent)),
    ) {
        let Self { constants, state } = self;
        let (target, tau) = (constants.target(power), constants.time_constant());
        let end = state.at + time;
        loop {
            let before = *state;
            let left = end.since(state.at).as_s_f64();
            let is_far = (state.celsius - target).abs() * 1e3 > f64::from(REPORTED_CHANGE_MK);
            let step = if is_far { left.min(tau * REPORTED_SHARE) } else { left };
            let change = constants.next_change(state.celsius, state.throttling, target);
            match change.filter(|it| it.after <= step) {
                Some(change) => {
                    state.at = end.min(state.at + SimDuration::from_ns_f64(change.after * 1e9));
                    (state.celsius, state.throttling) = (change.celsius, change.to);
                    if state.throttling == Throttling::None {
                        state.last = None;
                    }
                }
                None => {
                    state.celsius = target + (state.celsius - target) * libm::exp(-step / tau);
                    state.at = match step < left {
                        true => end.min(state.at + SimDuration::from_ns_f64(step * 1e9)),
                        false => end,
                    };
                }
            }
            state.report_begin(&before, now, emit);
            if state.at == end {
                return;
            }
            state.report(now, emit);
        }
    }
}

impl Throttle for Thermal {
    fn celsius(&self) -> Option<f64> {
        Some(self.state.celsius)
    }

    fn advance(
        &mut self,
        (now, busy_until): (SimTime, SimTime),
        joules: f64,
        emit: &mut dyn FnMut(FlashEvent),
    ) {
        let Self { constants, state } = self;
        state.joules += joules;
        if now <= state.at {
            return;
        }
        let (idle, active_until) = (constants.idle, busy_until.clamp(state.at, now));
        let active = active_until.since(state.at);
        if active.is_zero() {
            state.celsius += std::mem::take(&mut state.joules) / constants.capacity;
        } else {
            // The same power for every `now`, so that throttling changes when it was foreseen.
            let whole = busy_until.since(state.at).as_s_f64();
            let power = constants.active + state.joules / whole;
            let is_whole = active_until == busy_until;
            state.joules *= if is_whole { 0.0 } else { 1.0 - active.as_s_f64() / whole };
            self.pass((active, power), (now, emit));
        }
        if active_until < now {
            // Here it begins to cool: the highest temperature for a while.
            self.state.report(now, emit);
            self.pass((now.since(active_until), idle), (now, emit));
        }
        self.state.report(now, emit);
    }

    /// The report is no change of the temperature: a run that continues from a saved state goes on
    /// as without the break.
    fn report(
        &mut self,
        end: End,
        (now, busy_until): (SimTime, SimTime),
        joules: f64,
        emit: &mut dyn FnMut(FlashEvent),
    ) {
        self.state.joules += joules;
        let mut ahead = *self;
        ahead.advance((now, busy_until), 0.0, &mut |event| {
            // At the start, they are of the run before.
            if end == End::Finish {
                emit(event);
            }
        });
        emit(ahead.state.event(now));
    }

    fn held_until(&self, now: SimTime, busy_until: SimTime) -> Option<SimTime> {
        let throttling = self.state.throttling;
        let rate = self.constants.threshold(throttling)?.rate;
        let (began, bytes) = self.state.last?;
        let next = began + SimDuration::transfer(bytes, rate);
        if next <= now {
            return None;
        }
        let (mut until, mut ahead) = (next, *self);
        ahead.advance((next, busy_until), 0.0, &mut |event| {
            if let FlashEvent::Temperature { throttling: to, ago, .. } = event
                && to < throttling
            {
                // Instants are rounded, so throttling changes at the latest here.
                until = until.min(next - ago + SimDuration::from_ns(1));
            }
        });
        Some(until)
    }

    fn begin(&mut self, now: SimTime, request: &Request) {
        let is_throttled = self.state.throttling != Throttling::None;
        if is_throttled && matches!(request.op, Op::Read | Op::Write) {
            self.state.last = Some((now, request.bytes()));
        }
    }

    fn save(&self, to: &mut Saver) {
        to.put(&self.state);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.state = from.take()?;
        Ok(())
    }
}

/// Parameters of a threshold, as far as they are given.
#[derive(Clone, Copy, Default)]
struct ThresholdParams {
    begin: Option<f64>,
    end: Option<f64>,
    rate: Option<u64>,
}

impl ThresholdParams {
    fn complete(&self) -> Option<Threshold> {
        Some(Threshold { begin: self.begin?, end: self.end?, rate: self.rate? })
    }
}

const KEYS: [[&str; 3]; 2] = [
    ["throttle.tmt1_celsius", "throttle.tmt1_end_celsius", "throttle.tmt1_rate"],
    ["throttle.tmt2_celsius", "throttle.tmt2_end_celsius", "throttle.tmt2_rate"],
];

impl Parameters {
    /// The thresholds that are given, each with its end and rate. Only values that are given, and
    /// are right by themselves, are compared.
    fn thresholds(&self, problems: &mut Vec<Problem>) -> [Option<Threshold>; 2] {
        let values = [
            (self.tmt1_celsius, self.tmt1_end_celsius, self.tmt1_rate),
            // TMT2 has no effect without TMT1.
            (
                self.tmt2_celsius.filter(|_| self.tmt1_celsius.is_some()),
                self.tmt2_end_celsius,
                self.tmt2_rate,
            ),
        ];
        let mut all = [ThresholdParams::default(); 2];
        for ((given, [begin, end, rate]), value) in all.iter_mut().zip(KEYS).zip(values) {
            let (Some(from), to, limit) = value else { break };
            for (key, is_given) in [(end, to.is_some()), (rate, limit.is_some())] {
                if !is_given {
                    let key = key.trim_start_matches("throttle.");
                    problems.push(Problem::new(begin, format!("needs {key} beside it")));
                }
            }
            if to.is_some_and(|to| to >= from) {
                let begin = begin.trim_start_matches("throttle.");
                let message = format!("must be below {begin}, where this throttling begins");
                problems.push(Problem::new(end, message));
            }
            if limit == Some(0) {
                let message = "must be above 0, as requests would never be served";
                problems.push(Problem::new(rate, message));
            }
            *given = ThresholdParams {
                begin: Some(from),
                end: to,
                rate: limit.filter(|rate| *rate > 0),
            };
        }
        let [light, heavy] = all;
        let [celsius, end, rate] = KEYS[1];
        if heavy.begin.zip(light.begin).is_some_and(|(heavy, light)| heavy <= light) {
            problems.push(Problem::new(celsius, "must be above tmt1_celsius"));
        }
        if heavy.end.zip(light.end).is_some_and(|(heavy, light)| heavy <= light) {
            problems.push(Problem::new(end, "must be above tmt1_end_celsius"));
        }
        if heavy.rate.zip(light.rate).is_some_and(|(heavy, light)| heavy > light) {
            problems.push(Problem::new(rate, "must be at most tmt1_rate"));
        }
        all.map(|given| given.complete())
    }
}
