//! The elevators. LOOK and SCAN sweep up and down, C-LOOK and C-SCAN upwards only.
//!
//! LOOK and C-LOOK turn at the last waiting request, SCAN and C-SCAN at the edge of the device.
//! Requests are dispatched in the same order; what differs is the travel to the edge and back. A
//! scheduler cannot seek where no request is, so it advises to hold the queue for the time the
//! detour takes by the device's own seek times. Requests that arrive ahead of the arm during that
//! time are still served by this sweep. Without seek estimates, and where the owner of the queue
//! ignores the advice, the detour takes no time.
//!
//! A request waits for at most two sweeps (LOOK, SCAN) or one (C-LOOK, C-SCAN, which therefore
//! treat all addresses alike). Only requests that keep arriving at exactly the head's position can
//! starve others.

use super::entry;
use super::position::{ByPosition, Parameters};
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Built, Settings};
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::sorted::Key;
use hybridsim_engine::{Checkpoint, Lba, Op, Request, SimDuration, SimTime};

pub const LOOK: SchedulerEntry = entry(
    "look",
    "the elevator: sweeps up and down, turning at the last waiting request",
    "Merten 1970; SCAN that turns at the last request; DiskSim's ELEVATOR (2, 5)",
    Parameters::PARAMS,
    |settings| build(settings, Elevator::default()),
);
pub const C_LOOK: SchedulerEntry = entry(
    "c-look",
    "sweeps upwards, then jumps to the lowest waiting request",
    "Seaman, Lind and Wilson 1966; C-SCAN that turns at the last request; DiskSim's CYCLE (3, 6)",
    Parameters::PARAMS,
    |settings| build(settings, Elevator::c_look()),
);
pub const SCAN: SchedulerEntry = entry(
    "scan",
    "sweeps up and down, from edge to edge",
    "Denning 1967",
    Parameters::PARAMS,
    |settings| build(settings, Elevator { to_edge: true, ..Elevator::default() }),
);
pub const C_SCAN: SchedulerEntry = entry(
    "c-scan",
    "sweeps upwards to the edge, then starts again at the lowest address",
    "Seaman, Lind and Wilson 1966",
    Parameters::PARAMS,
    |settings| build(settings, Elevator { to_edge: true, ..Elevator::c_look() }),
);

/// Requests sorted by position, and a direction. The default is LOOK by sector.
#[derive(Debug, Default)]
pub struct Elevator {
    queue: ByPosition,
    one_way: bool,
    to_edge: bool,
    down: bool,
    /// End of the detour to the edge, while one is under way.
    detour_end: Option<SimTime>,
}

fn build(settings: &Settings, elevator: Elevator) -> Built<dyn Scheduler> {
    let queue = ByPosition::new(&Parameters::from_settings(settings));
    Ok(Box::new(Elevator { queue, ..elevator }))
}

impl Elevator {
    /// C-LOOK by sector.
    pub fn c_look() -> Self {
        Self { one_way: true, ..Self::default() }
    }

    /// The next request in the direction of the sweep. A request right at the head is ahead in
    /// both directions.
    fn ahead(&self, at: u64) -> Option<Key> {
        if self.down { self.queue.below(at.saturating_add(1)) } else { self.queue.at_or_after(at) }
    }

    /// The first request of the next sweep, where none is ahead in this one.
    fn after_turn(&self, at: u64) -> Option<Key> {
        match self.one_way {
            true => self.queue.at_or_after(0),
            false if self.down => self.queue.at_or_after(at),
            false => self.queue.below(at.saturating_add(1)),
        }
    }
}

/// Additional time that the arm takes to `next` by way of `stops`.
fn detour(head: &Head<'_>, stops: &[u64], next: u64) -> Option<SimDuration> {
    let device = head.positioner?;
    let seek = |from, lba| device.seek(from, &Request::new(Op::Read, Lba(lba), 1));
    let (mut from, mut time) = (head.last, SimDuration::ZERO);
    for &stop in stops {
        time += seek(from, stop);
        from = Lba(stop + 1);
    }
    time += seek(from, next);
    Some(time.saturating_sub(seek(head.last, next)))
}

impl Scheduler for Elevator {
    fn push(&mut self, item: Queued) {
        self.queue.push(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        self.detour_end = None;
        let at = self.queue.elevator_position(head);
        let ahead = self.ahead(at);
        let key = match ahead {
            Some(_) => ahead,
            None => {
                let key = self.after_turn(at);
                self.down ^= !self.one_way;
                key
            }
        };
        self.queue.take(key?)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn hold_until(&mut self, head: &Head<'_>) -> Option<SimTime> {
        if !self.to_edge {
            return None;
        }
        let edge = head.positioner?.sectors().checked_sub(1)?;
        let at = self.queue.elevator_position(head);
        if self.ahead(at).is_some() {
            self.detour_end = None;
            return None;
        }
        let next = self.queue.get(self.after_turn(at)?)?.request.lba.0;
        let stops: &[u64] = match self.one_way {
            true => &[edge, 0],
            false if self.down => &[0],
            false => &[edge],
        };
        let time = detour(head, stops, next).unwrap_or(SimDuration::ZERO);
        let until = *self.detour_end.get_or_insert(head.now + time);
        (until > head.now).then_some(until)
    }

    fn sees_all(&self) -> bool {
        self.to_edge
    }

    hybridsim_engine::saves!(down, detour_end; queue);
}
