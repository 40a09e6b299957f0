//! Shortest time first with ageing: the estimate shrinks by a share of the time waited.

use super::least::{Least, Measure, Rule, WINDOW, small};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Built, Kind, Param, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};

/// How much waiting counts.
pub const AGE_WEIGHT: Param = Param::with(
    "age_weight",
    Kind::Number { min: 0.0, max: 1000.0 },
    "0.006",
    "Time taken off an estimate for each unit of time waited; 0 is sptf, large values come near \
     fcfs",
);
const PARAMS: &[Param] = &[WINDOW, AGE_WEIGHT];
const ORIGIN: &str = "Jacobson and Wilkes 1991 (ASATF, W = 6 ms per second)";

/// By positioning time.
pub const ASPTF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "asptf",
        summary: "as sptf, less a share of the time waited (DiskSim's 14)",
        origin: ORIGIN,
        params: PARAMS,
    },
    build: |settings| build(settings, Measure::Positioning),
};

/// By positioning time and buffer.
pub const ASPCTF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "aspctf",
        summary: "as spctf, less a share of the time waited (DiskSim's 15)",
        origin: ORIGIN,
        params: PARAMS,
    },
    build: |settings| build(settings, Measure::Buffered),
};

/// By access time.
pub const ASATF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "asatf",
        summary: "as satf, less a share of the time waited (DiskSim's 16)",
        origin: ORIGIN,
        params: PARAMS,
    },
    build: |settings| build(settings, Measure::Access),
};

/// The rule.
#[derive(Debug)]
pub struct Aged {
    measure: Measure,
    /// In millionths, so that decisions are whole numbers.
    weight_millionths: i128,
}

/// An aged scheduler with the parameters above.
pub fn build(settings: &Settings, measure: Measure) -> Built<dyn Scheduler> {
    let weight_millionths = (settings.number("age_weight") * 1e6) as i128;
    Ok(Box::new(Least::new(settings.count("window"), Aged { measure, weight_millionths })))
}

impl Rule for Aged {
    fn cost(&self, head: &Head<'_>, item: &Queued) -> i64 {
        let waited = i128::from(head.now.since(item.since).as_ns());
        let age = waited * self.weight_millionths / 1_000_000;
        let age = small(u64::try_from(age).unwrap_or(u64::MAX));
        self.measure.of(head, item).saturating_sub(age)
    }
}
