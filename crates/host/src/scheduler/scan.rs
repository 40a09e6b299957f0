//! SCAN and C-SCAN: the sweep goes on to the edge of the device before it turns.
//!
//! Requests go in the order of LOOK and C-LOOK; what differs is the way to the edge and back. A
//! scheduler cannot send the arm where nothing is asked for, so it advises to hold the queue for
//! the time the detour takes by the device's own seek times. Requests that arrive ahead of the arm
//! during that time are still served by this sweep. Without estimates of seeks, and where the
//! owner of the queue does not hold, the detour takes no time.

use super::clook::CLook;
use super::look::Look;
use super::position::{BY, ByPosition};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Lba, Loader, Op, Request, Saver, SimDuration, SimTime, StateError};

/// The registered entry of SCAN.
pub const SCAN: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "scan",
        summary: "sweeps up and down, from edge to edge",
        origin: "Denning 1967",
        params: &[BY],
    },
    build: |settings| {
        let sweep = Look { queue: ByPosition::read(settings), ..Look::default() };
        Ok(Box::new(Scan { sweep, held: None }))
    },
};

/// The registered entry of C-SCAN.
pub const C_SCAN: SchedulerEntry = SchedulerEntry {
    description: Description {
        name: "c-scan",
        summary: "sweeps upwards to the edge, then begins again at the lowest address",
        origin: "Seaman, Lind and Wilson 1966",
        params: &[BY],
    },
    build: |settings| Ok(Box::new(CScan { sweep: CLook(ByPosition::read(settings)), held: None })),
};

/// A detour that has been told: until when.
type Held = Option<SimTime>;

/// Up and down.
#[derive(Debug, Default)]
pub struct Scan {
    sweep: Look,
    held: Held,
}

/// Upwards only.
#[derive(Debug, Default)]
pub struct CScan {
    sweep: CLook,
    held: Held,
}

fn at(lba: u64) -> Request {
    Request::new(Op::Read, Lba(lba), 1)
}

/// What it takes longer to go to `next` by way of `stops`.
fn detour(head: &Head<'_>, stops: &[u64], next: u64) -> Option<SimDuration> {
    let device = head.positioner?;
    let (mut from, mut time) = (head.last, SimDuration::ZERO);
    for &stop in stops {
        time += device.seek(from, &at(stop));
        from = Lba(stop + 1);
    }
    time += device.seek(from, &at(next));
    Some(time.saturating_sub(device.seek(head.last, &at(next))))
}

/// Tells a detour once, and the same until it is over.
fn hold(held: &mut Held, now: SimTime, time: Option<SimDuration>) -> Option<SimTime> {
    let until = *held.get_or_insert(now + time.unwrap_or(SimDuration::ZERO));
    (until > now).then_some(until)
}

impl Scheduler for Scan {
    fn push(&mut self, item: Queued) {
        self.sweep.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        self.held = None;
        self.sweep.pop(head)
    }

    fn len(&self) -> usize {
        self.sweep.len()
    }

    fn hold_until(&mut self, head: &Head<'_>) -> Option<SimTime> {
        let edge = head.positioner?.sectors().checked_sub(1)?;
        let queue = &mut self.sweep.queue;
        let place = queue.settle_sweep(head);
        let ahead = if self.sweep.down {
            queue.below(place.saturating_add(1))
        } else {
            queue.at_or_after(place)
        };
        if ahead.is_some() {
            self.held = None;
            return None;
        }
        let key = queue.at_or_after(place).or_else(|| queue.below(place))?;
        let next = queue.get(key)?.request.lba.0;
        let stop = if self.sweep.down { 0 } else { edge };
        hold(&mut self.held, head.now, detour(head, &[stop], next))
    }

    fn sees_all(&self) -> bool {
        true
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&self.held);
        self.sweep.save(to)
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.held = from.take()?;
        self.sweep.restore(from)
    }
}

impl Scheduler for CScan {
    fn push(&mut self, item: Queued) {
        self.sweep.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        self.held = None;
        self.sweep.pop(head)
    }

    fn len(&self) -> usize {
        self.sweep.len()
    }

    fn hold_until(&mut self, head: &Head<'_>) -> Option<SimTime> {
        let edge = head.positioner?.sectors().checked_sub(1)?;
        let queue = &mut self.sweep.0;
        let place = queue.settle_sweep(head);
        if queue.at_or_after(place).is_some() {
            self.held = None;
            return None;
        }
        let key = queue.at_or_after(0)?;
        let next = queue.get(key)?.request.lba.0;
        hold(&mut self.held, head.now, detour(head, &[edge, 0], next))
    }

    fn sees_all(&self) -> bool {
        true
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&self.held);
        self.sweep.save(to)
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.held = from.take()?;
        self.sweep.restore(from)
    }
}
