//! When records arrive: as recorded, scaled, or all at once for a closed loop.

use hybridsim_engine::param::{Kind, Param, Settings};
use hybridsim_engine::{SimDuration, SimTime};

/// Recorded times or none.
pub const TIMES: Param = Param::with(
    "times",
    Kind::Choice(&["recorded", "at-once"]),
    "\"recorded\"",
    "`recorded`: requests arrive as in the trace; `at-once`: all at time 0, for a closed loop \
     that keeps as many in flight as its queue depth says.",
);
/// Factor on times.
pub const TIME_SCALE: Param = Param::with(
    "time_scale",
    Kind::Number { min: 1e-9, max: 1e9 },
    "1",
    "Recorded times are multiplied by it: 0.5 is twice as fast.",
);

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
