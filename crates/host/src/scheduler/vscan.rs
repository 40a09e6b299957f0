//! V(R): between shortest seek first and the elevator.
//!
//! A request behind the head counts as farther away by R times the width of the device. R = 0 is
//! shortest seek first, R = 1 the elevator.

use super::position::{BY, ByPosition};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Kind, Param, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Loader, Saver, StateError};

/// The share of the width that turning costs.
pub const R: Param = Param::with(
    "r",
    Kind::Number { min: 0.0, max: 1.0 },
    "0.2",
    "Share of the device's width that turning round counts for: 0 is sstf, 1 the elevator",
);

/// The registered entry.
pub const ENTRY: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "vscan",
        summary: "the nearest request, those behind the head counted as farther away",
        origin: "Geist and Daniel 1987, A continuum of disk scheduling algorithms (R = 0.2); \
                 DiskSim's VSCAN (17, 18)",
        params: &[R, BY],
    },
    build: |settings| Ok(Box::new(VScan::read(settings))),
};

/// Sorted by position, with a direction.
#[derive(Debug, Default)]
pub struct VScan {
    queue: ByPosition,
    r: f64,
    down: bool,
}

impl VScan {
    /// As parameters [`R`] and [`BY`] say.
    pub fn read(settings: &Settings) -> Self {
        Self { queue: ByPosition::read(settings), r: settings.number("r"), down: false }
    }
}

impl Scheduler for VScan {
    fn push(&mut self, item: Queued) {
        self.queue.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let at = self.queue.settle(head);
        let below = self.queue.below(at);
        let above = self.queue.at_or_after(at);
        let turn = (self.r * self.queue.span(head) as f64) as u64;
        let key = match (below, above) {
            (Some(low), Some(high)) => {
                let (mut down, mut up) = (at - low.0, high.0 - at);
                if self.down {
                    up = up.saturating_add(turn);
                } else {
                    down = down.saturating_add(turn);
                }
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

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&self.down);
        self.queue.save(to);
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.down = from.take()?;
        self.queue.restore(from)
    }
}
