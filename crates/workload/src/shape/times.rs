//! Arrival times: as recorded, scaled, or all at once for a closed loop.

use hybridsim_config::effect::Needs;
use hybridsim_config::param::Kind;
use hybridsim_engine::{SimDuration, SimTime};

hybridsim_config::choices! {
    /// Arrival times of a replay.
    pub enum Times {
        Recorded = "recorded",
        AfterCompletions = "after-completions",
        AtOnce = "at-once",
    }
}

hybridsim_config::params! {
    /// Parameters of arrival times.
    pub struct Parameters {
        pub(super) times: Times = Kind::Choice(Times::NAMES), default "\"recorded\"",
            "`recorded`: requests arrive as in the trace; `after-completions`: one at a time, each \
             after the completion of the previous one by the same think time as in the trace, \
             which must have response times; `at-once`: all at time 0, for a closed loop, which \
             keeps `queue_depth` requests outstanding.";
        time_scale: f64 = Kind::Number { min: 1e-9, max: 1e9 }, default "1"
            needs &[Needs::Not("times", &["at-once"])],
            "Factor on recorded times: 0.5 is twice as fast.";
    }
}

/// The state of a replay with `times = "after-completions"`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompletionPacing {
    /// Requests issued and not complete.
    in_flight: u64,
    /// Time of the last completion.
    completed: SimTime,
    /// Recorded completion of the previous record.
    recorded_end: SimDuration,
}

impl CompletionPacing {
    /// Whether the next record must wait for a completion.
    pub const fn must_wait(&self) -> bool {
        self.in_flight > 0
    }

    /// The arrival of a record with recorded arrival `since_start` and response time `response`.
    pub fn arrival(
        &mut self,
        times: ArrivalTimes,
        since_start: SimDuration,
        response: SimDuration,
    ) -> SimTime {
        let think_time = since_start.saturating_sub(self.recorded_end);
        self.recorded_end = since_start + response;
        self.completed + times.arrival(think_time).since(SimTime::ZERO)
    }

    pub fn issued(&mut self) {
        self.in_flight += 1;
    }

    pub fn completed(&mut self, now: SimTime) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.completed = now;
    }
}

#[derive(Clone, Copy, Debug)]
pub enum ArrivalTimes {
    Recorded,
    /// Multiplied.
    Scaled(f64),
    /// All at time 0.
    AtOnce,
}

impl ArrivalTimes {
    pub fn new(params: &Parameters) -> Self {
        match (params.times, params.time_scale) {
            (Times::AtOnce, _) => Self::AtOnce,
            (_, 1.0) => Self::Recorded,
            (_, scale) => Self::Scaled(scale),
        }
    }

    /// The arrival of a record at `since_start`; order is kept, different times may become equal.
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
