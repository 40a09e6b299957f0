//! When records arrive: as recorded, scaled, or all at once for a closed loop.

use hybridsim_config::param::{Kind, Param, Settings};
use hybridsim_engine::{SimDuration, SimTime};

/// Recorded times or none.
pub const TIMES: Param = Param::with(
    "times",
    Kind::Choice(&["recorded", "after-completions", "at-once"]),
    "\"recorded\"",
    "`recorded`: requests arrive as in the trace; `after-completions`: one at a time, each so long \
     after the completion of the one before as in the trace, which has to hold response times; \
     `at-once`: all at time 0, for a closed loop that keeps as many in flight as its queue depth \
     says.",
);
/// Factor on times.
pub const TIME_SCALE: Param = Param::with(
    "time_scale",
    Kind::Number { min: 1e-9, max: 1e9 },
    "1",
    "Recorded times are multiplied by it: 0.5 is twice as fast.",
);

/// What a replay that waits for completions remembers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting {
    /// Requests delivered and not complete.
    in_flight: u64,
    /// When the last one completed.
    completed: SimTime,
    /// When the record before completed, as recorded.
    recorded_end: SimDuration,
}

impl Waiting {
    /// Whether the next record has to wait.
    pub const fn must_wait(&self) -> bool {
        self.in_flight > 0
    }

    /// When a record arrives that was recorded at `since_start` and took `response` then.
    pub fn arrival(
        &mut self,
        times: Times,
        since_start: SimDuration,
        response: SimDuration,
    ) -> SimTime {
        let pause = since_start.saturating_sub(self.recorded_end);
        self.recorded_end = since_start + response;
        self.completed + times.arrival(pause).since(SimTime::ZERO)
    }

    /// A request was delivered.
    pub fn delivered(&mut self) {
        self.in_flight += 1;
    }

    /// A request is complete.
    pub fn completed(&mut self, now: SimTime) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.completed = now;
    }
}

/// Turns recorded times into arrivals.
#[derive(Clone, Copy, Debug)]
pub enum Times {
    /// As recorded.
    Recorded,
    /// Multiplied.
    Scaled(f64),
    /// All at time 0.
    AtOnce,
}

impl Times {
    /// Reads the parameters.
    pub fn new(settings: &Settings) -> Self {
        let scale = settings.number("time_scale");
        match settings.text("times") {
            "at-once" => Self::AtOnce,
            _ if scale == 1.0 => Self::Recorded,
            _ => Self::Scaled(scale),
        }
    }

    /// The arrival of what was recorded `since_start`. Later stays later or becomes equal.
    #[inline]
    pub fn arrival(self, since_start: SimDuration) -> SimTime {
        SimTime::ZERO
            + match self {
                Self::Recorded => since_start,
                Self::Scaled(factor) => {
                    SimDuration::from_ns_f64(since_start.as_ns() as f64 * factor)
                }
                Self::AtOnce => SimDuration::ZERO,
            }
    }
}
