//! Without a clock: each request takes one nanosecond, so that simulated time advances.

use super::{Scheduled, Timed, TimingEntry, TimingModel};
use crate::ops::FlashOp;
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    LatencyBreakdown, LatencyPhase, Loader, Op, Saver, SimDuration, SimTime, StateError,
};

pub const ENTRY: TimingEntry = TimingEntry {
    description: Description {
        name: "none",
        summary: "No timing: each request takes 1 ns.",
        origin: "",
        params: &[],
    },
    provides: &[],
    build: |_| Ok(Box::new(Untimed { arrived: SimTime::ZERO })),
};

/// Arrival of the current request.
struct Untimed {
    arrived: SimTime,
}

impl TimingModel for Untimed {
    fn save(&self, _to: &mut Saver) {}

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }

    fn begin(&mut self, now: SimTime, _op: Op, _bytes: u64) {
        self.arrived = now;
    }

    fn begin_background(&mut self, now: SimTime) {
        self.arrived = now;
    }

    fn work(&mut self, _time: SimDuration, _phase: LatencyPhase) {}

    fn page(&mut self, _ops: &[FlashOp], _bytes: u64, _bytes_behind: u64) {}

    fn end(&mut self) -> Scheduled {
        let tick = SimDuration::from_ns(1);
        let (breakdown, end) =
            (LatencyBreakdown::of([(LatencyPhase::Overhead, tick)]), self.arrived + tick);
        Scheduled::Completes(Timed { end, breakdown, idle_from: end })
    }
}
