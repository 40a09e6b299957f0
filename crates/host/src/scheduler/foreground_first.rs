//! Two queues: synchronous requests are dispatched before all others, each queue in its own order.
//!
//! The other requests starve while synchronous ones keep arriving.

use super::entry;
use super::nearest::{Nearest, VscanParameters};
use super::shortest_first::{Aged, Estimate, aged};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::Built;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Flags, Loader, Saver, StateError};

pub const PRI_VSCAN: SchedulerEntry = entry(
    "pri-vscan",
    "vscan, synchronous requests first",
    "Ganger and Patt 1993; DiskSim's PRI_VSCAN (19)",
    VscanParameters::PARAMS,
    |settings| two_queues(|| Ok(Box::new(Nearest::vscan(settings)))),
);
pub const PRI_ASPTF: SchedulerEntry = entry(
    "pri-asptf",
    "asptf, synchronous requests first",
    "Ganger and Patt 1993; DiskSim's 20",
    Aged::PARAMS,
    |settings| two_queues(|| aged(settings, Estimate::Positioning)),
);
pub const PRI_ASPCTF: SchedulerEntry = entry(
    "pri-aspctf",
    "aspctf, synchronous requests first",
    "Ganger and Patt 1993; DiskSim's 21",
    Aged::PARAMS,
    |settings| two_queues(|| aged(settings, Estimate::Buffered)),
);

/// Dispatches from `others` only while `synchronous` is empty.
struct ForegroundFirst {
    synchronous: Box<dyn Scheduler>,
    others: Box<dyn Scheduler>,
}

fn two_queues(queue: impl Fn() -> Built<dyn Scheduler>) -> Built<dyn Scheduler> {
    Ok(Box::new(ForegroundFirst { synchronous: queue()?, others: queue()? }))
}

impl Scheduler for ForegroundFirst {
    fn push(&mut self, item: Queued) {
        if item.request.flags.contains(Flags::SYNC) {
            self.synchronous.push(item);
        } else {
            self.others.push(item);
        }
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        self.synchronous.pop(head).or_else(|| self.others.pop(head))
    }

    fn len(&self) -> usize {
        self.synchronous.len() + self.others.len()
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        self.synchronous.save(to)?;
        self.others.save(to)
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.synchronous.restore(from)?;
        self.others.restore(from)
    }
}
