//! Two queues: requests somebody waits for go before all others, each queue in its own order.
//!
//! The others starve while waited-for requests keep coming.

use super::aged::{self, AGE_WEIGHT};
use super::least::{Measure, WINDOW};
use super::position::BY;
use super::vscan::{R, VScan};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::Built;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Flags, Loader, Saver, StateError};

/// With V(R).
pub const PRI_VSCAN: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "pri-vscan",
        summary: "vscan, requests somebody waits for first",
        origin: "Ganger and Patt 1993; DiskSim's PRI_VSCAN (19)",
        params: &[R, BY],
    },
    build: |settings| {
        let one = || -> Built<dyn Scheduler> { Ok(Box::new(VScan::read(settings))) };
        both(one)
    },
};

/// With aged positioning times.
pub const PRI_ASPTF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "pri-asptf",
        summary: "asptf, requests somebody waits for first",
        origin: "Ganger and Patt 1993; DiskSim's 20",
        params: &[WINDOW, AGE_WEIGHT],
    },
    build: |settings| both(|| aged::build(settings, Measure::Positioning)),
};

/// With aged positioning times and the device's buffer.
pub const PRI_ASPCTF: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "pri-aspctf",
        summary: "aspctf, requests somebody waits for first",
        origin: "Ganger and Patt 1993; DiskSim's 21",
        params: &[WINDOW, AGE_WEIGHT],
    },
    build: |settings| both(|| aged::build(settings, Measure::Buffered)),
};

/// Two schedulers, the first of which goes first.
pub struct Priority {
    urgent: Box<dyn Scheduler>,
    others: Box<dyn Scheduler>,
}

fn both(one: impl Fn() -> Built<dyn Scheduler>) -> Built<dyn Scheduler> {
    Ok(Box::new(Priority { urgent: one()?, others: one()? }))
}

impl Scheduler for Priority {
    fn push(&mut self, item: Queued) {
        if item.request.flags.contains(Flags::SYNC) {
            self.urgent.push(item);
        } else {
            self.others.push(item);
        }
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        self.urgent.pop(head).or_else(|| self.others.pop(head))
    }

    fn len(&self) -> usize {
        self.urgent.len() + self.others.len()
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.urgent.save(to)?;
        self.others.save(to)
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.urgent.restore(from)?;
        self.others.restore(from)
    }
}
