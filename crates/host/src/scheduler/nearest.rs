//! V(R), between SSTF and the elevator: the nearest request, measured in sectors or cylinders.
//!
//! A request behind the head counts as farther away by R times the width of the device. R = 0 is
//! shortest seek time first, R = 1 the elevator. With a small R a distant request starves as long
//! as nearer ones keep arriving.

use super::entry;
use super::position::{self, ByPosition};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Kind, Settings};
use hybridsim_engine::Checkpoint;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};

hybridsim_config::params! {
    pub(super) struct VscanParameters includes { position: position::Parameters } {
        r: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.2",
            "Cost of reversing direction as a share of the device's width: 0 is sstf, 1 the \
             elevator";
    }
}

pub const SSTF: SchedulerEntry = entry(
    "sstf",
    "the request nearest to the last one",
    "Denning 1967, Effects of scheduling on file memory operations; DiskSim's SSTF (4, 7)",
    position::Parameters::PARAMS,
    |settings| {
        let queue = ByPosition::new(&position::Parameters::from_settings(settings));
        Ok(Box::new(Nearest { queue, ..Nearest::default() }))
    },
);
pub const VSCAN: SchedulerEntry = entry(
    "vscan",
    "the nearest request; those behind the head count as farther away",
    "Geist and Daniel 1987, A continuum of disk scheduling algorithms (R = 0.2); DiskSim's VSCAN \
     (17, 18)",
    VscanParameters::PARAMS,
    |settings| Ok(Box::new(Nearest::vscan(settings))),
);

/// Requests sorted by position; compares the two neighbours of the head. The default is SSTF by
/// sector.
#[derive(Debug, Default)]
pub struct Nearest {
    queue: ByPosition,
    r: f64,
    down: bool,
}

impl Nearest {
    /// V(R).
    pub(super) fn vscan(settings: &Settings) -> Self {
        let VscanParameters { position, r } = VscanParameters::from_settings(settings);
        Self { queue: ByPosition::new(&position), r, down: false }
    }

    /// Cost of reversing direction, in positions.
    fn reversal(&self, head: &Head<'_>) -> u64 {
        if self.r == 0.0 { 0 } else { (self.r * self.queue.span(head) as f64) as u64 }
    }
}

impl Scheduler for Nearest {
    fn push(&mut self, item: Queued) {
        self.queue.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let at = self.queue.head_position(head);
        let key = match (self.queue.below(at), self.queue.at_or_after(at)) {
            (Some(low), Some(high)) => {
                let (mut down, mut up) = (at - low.0, high.0 - at);
                let behind = if self.down { &mut up } else { &mut down };
                *behind = behind.saturating_add(self.reversal(head));
                // Equally far: the one that arrived first.
                if (down, low.1) < (up, high.1) { low } else { high }
            }
            (below, above) => below.or(above)?,
        };
        if key.0 != at {
            self.down = key.0 < at;
        }
        self.queue.take(key)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    hybridsim_engine::saves!(down; queue);
}
