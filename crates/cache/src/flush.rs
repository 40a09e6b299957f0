//! Write-back by timers, of caches that are components.

use hybridsim_config::param::Problem;
use hybridsim_engine::SimDuration;

hybridsim_config::choices! {
    /// Occasions on which dirty data are written back, besides after an idle time.
    pub(crate) enum Flush { Demand = "demand", Periodic = "periodic" }
}

/// The period, if any. Adds problems with it and with the idle time.
pub(crate) fn period(
    (flush, period): (Flush, SimDuration),
    idle: Option<SimDuration>,
    problems: &mut Vec<Problem>,
) -> Option<SimDuration> {
    let period = (flush == Flush::Periodic).then_some(period);
    for (name, time) in [("flush_idle", idle), ("flush_period", period)] {
        if time.is_some_and(SimDuration::is_zero) {
            problems.push(Problem::new(name, "must be more than 0"));
        }
    }
    period
}
