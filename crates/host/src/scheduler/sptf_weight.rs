//! Shortest positioning time with seek and rotation weighted apart.
//!
//! DiskSim's manual names these policies and says no more. Read here as: `sptf-rot-weight` counts
//! the rotation with a weight, `sptf-seek-weight` the seek, and `sptf-rot-opt` takes, of the
//! requests that need no longer than a share more than the best one, that with least rotation.

use super::least::{Least, Rule, WINDOW, small};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Loader, Saver, StateError};
use std::collections::VecDeque;

const WEIGHT: Param = Param::with(
    "weight",
    Kind::Number { min: 0.0, max: 1000.0 },
    "1",
    "What the weighted part counts for; 1 is sptf",
);
const SLACK: Param = Param::with(
    "slack",
    Kind::Number { min: 0.0, max: 10.0 },
    "0",
    "How much longer than the best one a request may take and still be chosen for its rotation, as \
     a share; 0 is sptf",
);

/// Rotation weighted.
pub const ROT_WEIGHT: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "sptf-rot-weight",
        summary: "as sptf, rotation counted with a weight",
        origin: "DiskSim's SPTF_ROT_WEIGHT (25)",
        params: &[WINDOW, WEIGHT],
    },
    build: |settings| {
        let rule = Weights { seek: 1.0, rotation: settings.number("weight") };
        Ok(Box::new(Least::new(settings.count("window"), rule)))
    },
};

/// Seek weighted.
pub const SEEK_WEIGHT: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "sptf-seek-weight",
        summary: "as sptf, the seek counted with a weight",
        origin: "DiskSim's SPTF_SEEK_WEIGHT (26)",
        params: &[WINDOW, WEIGHT],
    },
    build: |settings| {
        let rule = Weights { seek: settings.number("weight"), rotation: 1.0 };
        Ok(Box::new(Least::new(settings.count("window"), rule)))
    },
};

/// Least rotation among the good ones.
pub const ROT_OPT: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "sptf-rot-opt",
        summary: "of the requests about as quick as the best, the one with least rotation",
        origin: "DiskSim's SPTF_ROT_OPT (24)",
        params: &[WINDOW, SLACK],
    },
    build: |settings| {
        Ok(Box::new(RotOpt {
            queue: VecDeque::new(),
            window: settings.count("window") as usize,
            slack: settings.number("slack"),
        }))
    },
};

/// The rule.
#[derive(Debug)]
pub struct Weights {
    seek: f64,
    rotation: f64,
}

/// Seek and rotation in nanoseconds; the distance where the device tells nothing.
fn split(head: &Head<'_>, item: &Queued) -> (u64, u64) {
    let Some(device) = head.positioner else {
        return (item.request.lba.0.abs_diff(head.last.0), 0);
    };
    let whole = device.positioning(head.now, head.last, &item.request);
    let seek = device.seek(head.last, &item.request).min(whole);
    (seek.as_ns(), (whole - seek).as_ns())
}

impl Rule for Weights {
    fn cost(&self, head: &Head<'_>, item: &Queued) -> i64 {
        let (seek, rotation) = split(head, item);
        // Products and one sum, rounded alike on every platform.
        small((seek as f64 * self.seek + rotation as f64 * self.rotation) as u64)
    }
}

/// In order of arrival.
#[derive(Debug)]
pub struct RotOpt {
    queue: VecDeque<Queued>,
    window: usize,
    slack: f64,
}

impl Scheduler for RotOpt {
    fn push(&mut self, item: Queued) {
        self.queue.push_back(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let costs = || self.queue.iter().take(self.window).map(|item| split(head, item));
        let best = costs().map(|(seek, rotation)| seek.saturating_add(rotation)).min()?;
        let limit = (best as f64 * (1.0 + self.slack)) as u64;
        let limit = limit.max(best);
        let good =
            costs().enumerate().filter(|(_, (seek, turn))| seek.saturating_add(*turn) <= limit);
        let (at, _) = good.min_by_key(|(at, (_, rotation))| (*rotation, *at))?;
        self.queue.remove(at)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Ok(())
    }

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}
