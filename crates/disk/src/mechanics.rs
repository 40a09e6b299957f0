//! Mechanics: arm, heads and platters together. Nothing here knows of requests or buffers.

use crate::geometry::{Layout, Place};
use crate::rotation::{Angle, Rotation};
use crate::seek::SeekTable;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// The moving parts of a drive. Constant; where the arm is, its owner knows.
pub struct Mechanics {
    /// Where sectors are.
    pub layout: Layout,
    /// How long the arm takes.
    pub seeks: SeekTable,
    /// How the platters turn.
    pub rotation: Rotation,
    /// Time to change to another surface of the same cylinder.
    pub head_switch: SimDuration,
    /// Time to settle after the arm or head moved, before a write.
    pub write_settle: SimDuration,
    /// Whether a track is read from wherever the head arrives.
    pub zero_latency: bool,
    /// The last place asked for by a scheduler, which asks for many from the same one.
    asked: Cell<(u64, u32, u32)>,
}

/// Where the arm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface whose head is in use.
    pub head: u32,
}

impl From<&Place> for Arm {
    fn from(place: &Place) -> Self {
        Self { cylinder: place.cylinder, head: place.head }
    }
}

/// Sectors to read or write, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The first one.
    pub lba: Lba,
    /// How many, at least one.
    pub sectors: u32,
    /// Whether they are written.
    pub write: bool,
    /// Of how many it is told when they have passed, at least one.
    pub mark: u32,
}

/// What reaching and moving a run of sectors takes.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Cylinders between where the arm was and the first sector.
    pub distance: u32,
    /// Moving the arm, switching heads and settling, all tracks together.
    pub seek: SimDuration,
    /// Moving to the first track only.
    pub first_seek: SimDuration,
    /// Waiting for sectors, all tracks together.
    pub rotate: SimDuration,
    /// Sectors passing under the head.
    pub transfer: SimDuration,
    /// When the sectors up to the run's mark have passed.
    pub marked: SimTime,
    /// When the last one has.
    pub end: SimTime,
    /// The place just behind the last sector.
    pub last: Place,
}

/// The head at a sector about to pass.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Cylinders crossed.
    pub distance: u32,
    /// Moving the arm or switching heads.
    pub seek: SimDuration,
    /// When the sector begins to pass.
    pub time: SimTime,
    /// Where that is.
    pub place: Place,
}

impl Mechanics {
    /// The parts of a drive.
    pub fn new(
        layout: Layout,
        seeks: SeekTable,
        rotation: Rotation,
        head_switch: SimDuration,
        write_settle: SimDuration,
        zero_latency: bool,
    ) -> Self {
        let first = layout.locate(Lba(0));
        Self {
            layout,
            seeks,
            rotation,
            head_switch,
            write_settle,
            zero_latency,
            asked: Cell::new((0, first.cylinder, first.head)),
        }
    }

    /// Time to move the arm to `to`, ready to read or write there.
    #[inline]
    pub fn move_time(&self, from: Arm, to: Arm, write: bool) -> SimDuration {
        if from == to {
            return SimDuration::ZERO;
        }
        let mut time = self.seeks.time(from.cylinder.abs_diff(to.cylinder), write);
        if from.head != to.head {
            time = time.max(self.head_switch);
        }
        if write { time + self.write_settle } else { time }
    }

    /// Moves the sectors of `run`, which must lie within the drive, the arm leaving `from` at
    /// `start`; the first one not before `data_ready` (a write's data must have arrived).
    pub fn access(&self, start: SimTime, from: Arm, run: &Run, data_ready: SimTime) -> Access {
        let write = run.write;
        let mut place = self.layout.locate(run.lba);
        let first_seek = self.move_time(from, Arm::from(&place), write);
        let mut access = Access {
            distance: from.cylinder.abs_diff(place.cylinder),
            seek: first_seek,
            first_seek,
            rotate: SimDuration::ZERO,
            transfer: SimDuration::ZERO,
            marked: SimTime::ZERO,
            end: (start + first_seek).max(data_ready),
            last: place,
        };
        let mut left = run.sectors;
        let mut mark = run.mark;
        loop {
            let first = place;
            let (span, last, next) = self.on_track(&mut place, &mut left);
            self.pass(&mut access, &first, span, &mut mark);
            if left == 0 {
                access.last = place.skip(last);
                return access;
            }
            let Some(next) = next else {
                debug_assert!(false, "run beyond the end of the drive");
                return access;
            };
            let switch = self.move_time(Arm::from(&place), Arm::from(&next), write);
            access.seek += switch;
            access.end += switch;
            place = next;
        }
    }

    /// The arm leaves `from` at `start` for sector `lba`, to read from there on.
    pub fn arrive(&self, start: SimTime, from: Arm, lba: Lba) -> Arrival {
        let place = self.layout.locate(lba);
        let seek = self.move_time(from, Arm::from(&place), false);
        let wait = Rotation::ahead(self.rotation.angle_at(start + seek), place.angle());
        let time = start + seek + self.rotation.time_of(wait.into());
        Arrival { distance: from.cylinder.abs_diff(place.cylinder), seek, time, place }
    }

    /// How much of `left` sectors is on the track of `place`: the sectors passed over, bad ones
    /// between them included, how many are left there from the piece `place` then names, and the
    /// track to go on with.
    #[inline]
    fn on_track(&self, place: &mut Place, left: &mut u32) -> (u32, u32, Option<Place>) {
        let first = place.sector;
        loop {
            let take = (*left).min(place.left_on_track);
            *left -= take;
            let span = place.sector + take - first;
            if *left == 0 {
                return (span, take, None);
            }
            match self.layout.next_track(place) {
                Some(next) if next.same_track(place) && next.sector > place.sector => *place = next,
                next => return (span, take, next),
            }
        }
    }

    /// `take` sectors of one track, from `place` on, the head being on the track at `access.end`;
    /// `mark` of them are still to come up to the mark.
    #[inline]
    fn pass(&self, access: &mut Access, place: &Place, take: u32, mark: &mut u32) {
        let rotation = &self.rotation;
        let (begin, angle) = (access.end, rotation.angle_at(access.end));
        let mut wait = u128::from(Rotation::ahead(angle, place.angle()));
        let span = u128::from(place.sector_angle) * u128::from(take);
        if (1..=take).contains(mark) {
            let to_mark = u128::from(place.sector_angle) * u128::from(*mark);
            access.marked = begin + rotation.time_of(wait + to_mark);
        }
        *mark = mark.saturating_sub(take);
        if self.zero_latency {
            wait = landing_wait(wait, angle, place, take);
        }
        let rotate = rotation.time_of(wait);
        access.end = begin + rotation.time_of(wait + span);
        access.rotate += rotate;
        access.transfer += access.end.since(begin) - rotate;
    }
}

/// The wait of a head that reads whatever part of the run comes first: when it lands among the
/// wanted sectors it is done one turn after the next sector boundary.
fn landing_wait(wait: u128, angle: Angle, place: &Place, take: u32) -> u128 {
    let span = u128::from(place.sector_angle) * u128::from(take);
    let into = angle.wrapping_sub(place.angle());
    if wait == 0 || u128::from(into) >= span {
        return wait;
    }
    let to_boundary = place.sector_angle - into % place.sector_angle;
    (u128::from(to_boundary) + (1 << 64)).saturating_sub(span)
}

impl Positioner for Mechanics {
    #[inline]
    fn positioning(&self, now: SimTime, last: Lba, to: &Request) -> SimDuration {
        let behind = last.0.saturating_sub(1);
        let (mut asked, mut cylinder, mut head) = self.asked.get();
        if asked != behind {
            let place = self.layout.locate(Lba(behind));
            (asked, cylinder, head) = (behind, place.cylinder, place.head);
            self.asked.set((asked, cylinder, head));
        }
        let target = self.layout.locate(to.lba);
        let seek = self.move_time(Arm { cylinder, head }, Arm::from(&target), to.op == Op::Write);
        let angle = self.rotation.angle_at(now + seek);
        seek + self.rotation.time_of(Rotation::ahead(angle, target.angle()).into())
    }

    fn cylinder(&self, lba: Lba) -> u32 {
        self.layout.locate(lba).cylinder
    }

    fn seek(&self, last: Lba, to: &Request) -> SimDuration {
        let from = self.layout.locate(Lba(last.0.saturating_sub(1)));
        let target = self.layout.locate(to.lba);
        self.move_time(Arm::from(&from), Arm::from(&target), to.op == Op::Write)
    }

    fn transfer(&self, to: &Request) -> SimDuration {
        let place = self.layout.locate(to.lba);
        self.rotation.time_of(u128::from(place.sector_angle) * u128::from(to.sectors))
    }

    fn sectors(&self) -> u64 {
        self.layout.capacity()
    }
}
