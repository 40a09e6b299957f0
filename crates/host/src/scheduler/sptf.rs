//! Shortest positioning time first: asks the device how long seek and rotation would take.
//!
//! Where the device below has no moving head it falls back to the distance in sectors. It can
//! starve within its window.

use super::least::{Least, Measure, Rule, WINDOW};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued};

/// The registered entry.
pub const SPTF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "sptf",
        summary: "the request the head reaches first, seek and rotation counted",
        origin: "Seltzer, Chen and Ousterhout 1990; Jacobson and Wilkes 1991; DiskSim's 8",
        params: &[WINDOW],
    },
    build: |settings| Ok(Box::new(Sptf::new(settings.count("window"), Measure::Positioning))),
};

/// The registered entry that knows the device's buffer.
pub const SPCTF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "spctf",
        summary: "as sptf, requests in the device's buffer before all others",
        origin: "Worthington, Ganger and Patt 1994; DiskSim's 9",
        params: &[WINDOW],
    },
    build: |settings| Ok(Box::new(Sptf::new(settings.count("window"), Measure::Buffered))),
};

/// The registered entry that counts the transfer, too.
pub const SATF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "satf",
        summary: "the request that is done first: seek, rotation and transfer counted",
        origin: "Jacobson and Wilkes 1991; DiskSim's 10",
        params: &[WINDOW],
    },
    build: |settings| Ok(Box::new(Sptf::new(settings.count("window"), Measure::Access))),
};

/// In order of arrival.
pub type Sptf = Least<Measure>;

impl Rule for Measure {
    fn cost(&self, head: &Head<'_>, item: &Queued) -> i64 {
        self.of(head, item)
    }
}
