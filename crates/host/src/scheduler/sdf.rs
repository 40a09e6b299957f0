//! Shortest distance first: the arm's way alone, rotation left out.
//!
//! `approximate` compares sector numbers, `exact` the device's own seek times (equal ones in order
//! of arrival).

use super::least::{Least, Rule, WINDOW, small};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued};

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "sdf",
        summary: "the shortest way of the arm, rotation left out",
        origin: "DiskSim's SDF_APPROX (22) and SDF_EXACT (23)",
        params: &[
            WINDOW,
            Param::with(
                "distance",
                Kind::Choice(&["approximate", "exact"]),
                "\"approximate\"",
                "By sector numbers, or by the device's seek times",
            ),
        ],
    },
    build: |settings| {
        let rule = Distance { exact: settings.text("distance") == "exact" };
        Ok(Box::new(Least::new(settings.count("window"), rule)))
    },
};

/// The rule.
#[derive(Debug)]
pub struct Distance {
    exact: bool,
}

impl Rule for Distance {
    fn cost(&self, head: &Head<'_>, item: &Queued) -> i64 {
        match head.positioner.filter(|_| self.exact) {
            Some(device) => small(device.seek(head.last, &item.request).as_ns()),
            None => small(item.request.lba.0.abs_diff(head.last.0)),
        }
    }
}
