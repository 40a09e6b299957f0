//! Shortest time first, weighted by waiting: the estimate shrinks in proportion to the time left
//! until the longest wait allowed. What has waited so long goes first, oldest first.

use super::least::{Least, Measure, Rule, WINDOW};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Built, Kind, Param, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::SimDuration;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};

const WAIT_MAX: Param = Param::with(
    "wait_max",
    Kind::Duration,
    "\"3s\"",
    "The longest wait: an estimate counts for the share of it that is left",
);
const PARAMS: &[Param] = &[WINDOW, WAIT_MAX];
const ORIGIN: &str = "Seltzer, Chen and Ousterhout 1990 (WSTF, 3 s at most)";

/// By positioning time.
pub const WPTF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "wptf",
        summary: "as sptf, weighted by the time left until the longest wait (DiskSim's 11)",
        origin: ORIGIN,
        params: PARAMS,
    },
    build: |settings| build(settings, Measure::Positioning),
};

/// By positioning time and buffer.
pub const WPCTF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "wpctf",
        summary: "as spctf, weighted by the time left until the longest wait (DiskSim's 12)",
        origin: ORIGIN,
        params: PARAMS,
    },
    build: |settings| build(settings, Measure::Buffered),
};

/// By access time.
pub const WATF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "watf",
        summary: "as satf, weighted by the time left until the longest wait (DiskSim's 13)",
        origin: ORIGIN,
        params: PARAMS,
    },
    build: |settings| build(settings, Measure::Access),
};

/// The rule.
#[derive(Debug)]
pub struct Weighted {
    measure: Measure,
    wait_max: SimDuration,
}

fn build(settings: &Settings, measure: Measure) -> Built<dyn Scheduler> {
    let rule = Weighted { measure, wait_max: settings.duration("wait_max") };
    Ok(Box::new(Least::new(settings.count("window"), rule)))
}

impl Rule for Weighted {
    fn cost(&self, head: &Head<'_>, item: &Queued) -> i64 {
        let (max, waited) = (self.wait_max.as_ns(), head.now.since(item.since).as_ns());
        if waited >= max {
            // Below all others, and the longest wait lowest.
            return -super::least::small(waited - max) - 1;
        }
        let share = i128::from(self.measure.of(head, item)) * i128::from(max - waited);
        (share / i128::from(max)) as i64
    }
}
