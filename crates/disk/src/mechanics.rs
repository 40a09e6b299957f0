//! Mechanics: arm, heads and platters, without queue and buffer.

use crate::geometry::{Layout, PhysicalAddress};
use crate::rotation::{Angle, Rotation};
use crate::seek::SeekTable;
use hybridsim_engine::schedule::HeadTarget;
use hybridsim_engine::{Lba, Op, Request, SimDuration, SimTime};
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// With at most this many queued requests every target is compared: computing the reach would cost
/// more than it saves.
const FEW_TARGETS: usize = 48;

/// The mechanics of a drive. Constant; the position of the arm is kept by the drive.
pub struct Mechanics {
    /// Mapping from logical to physical addresses.
    pub layout: Layout,
    pub seeks: SeekTable,
    pub rotation: Rotation,
    /// Time to change to another surface of the same cylinder.
    pub head_switch: SimDuration,
    /// Differences of movements before a write.
    pub before_write: WriteMoves,
    /// Whether a track is read from wherever the head arrives.
    pub zero_latency: bool,
    /// The shortest movement over at least as many cylinders as the index says, in ns: it rises.
    movements: Vec<u32>,
    /// A block with its cylinder and surface: the last accessed, or the last a scheduler asked
    /// about, which compares many requests from the same one.
    asked: Cell<(u64, u32, u32)>,
}

/// Differences of movements before a write from those before a read.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteMoves {
    /// Time to settle after the arm or head moved.
    pub settle: SimDuration,
    /// By how much they are shorter, down to nothing.
    pub reduction: SimDuration,
}

impl WriteMoves {
    /// The time of a movement that takes `time` before a read.
    #[inline]
    fn change(&self, time: SimDuration, write: bool) -> SimDuration {
        if write { (time + self.settle).saturating_sub(self.reduction) } else { time }
    }
}

/// Position of the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    pub cylinder: u32,
    /// Surface whose head is in use.
    pub head: u32,
}

impl From<&PhysicalAddress> for Arm {
    fn from(address: &PhysicalAddress) -> Self {
        Self { cylinder: address.cylinder, head: address.head }
    }
}

/// Consecutive sectors to read or write.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The first one.
    pub lba: Lba,
    /// At least one.
    pub sectors: u32,
    /// Whether they are written.
    pub write: bool,
    /// First sectors whose end is reported ([`AccessTimes::marked`]), at least one.
    pub mark: u32,
    /// A sector over the link to the host; zero for sectors that do not cross it.
    pub sector_over_link: SimDuration,
}

/// Times of an access to the medium.
#[derive(Clone, Copy, Debug)]
pub struct AccessTimes {
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
    /// Time at which the sectors up to the mark have passed.
    pub marked: SimTime,
    /// Earliest time at which the sectors are over the link, which waits for those of each track.
    pub linked: SimTime,
    /// End of the last sector.
    pub end: SimTime,
    /// The address just after the last sector.
    pub last: PhysicalAddress,
}

/// Sectors of a track, from the first one of a run on.
#[derive(Clone, Copy, Debug)]
struct Sectors {
    begin: Angle,
    angle: Angle,
}

/// Arrival of the head at a sector.
#[derive(Clone, Copy, Debug)]
pub struct HeadArrival {
    /// Cylinders crossed.
    pub distance: u32,
    /// Moving the arm or switching heads.
    pub seek: SimDuration,
    /// Time at which the sector begins to pass.
    pub time: SimTime,
    pub address: PhysicalAddress,
}

impl Mechanics {
    /// The parts of a drive.
    pub fn new(
        layout: Layout,
        seeks: SeekTable,
        rotation: Rotation,
        head_switch: SimDuration,
        before_write: WriteMoves,
        zero_latency: bool,
    ) -> Self {
        let first = layout.locate(Lba(0));
        let movements = seeks.shortest(|time, write| before_write.change(time, write));
        Self {
            layout,
            movements,
            seeks,
            rotation,
            head_switch,
            before_write,
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
        self.before_write.change(time, write)
    }

    /// The fewest cylinders that no movement shorter than `time` crosses.
    #[inline]
    fn reach(&self, time: SimDuration) -> u32 {
        self.movements.partition_point(|&ns| u64::from(ns) < time.as_ns()) as u32
    }

    /// Moves the sectors of `run`, which must lie within the drive, the arm leaving `from` at
    /// `start`; the first one not before `data_ready` (a write's data must have arrived).
    pub fn access(
        &self,
        start: SimTime,
        from: Arm,
        transfer: &Transfer,
        data_ready: SimTime,
    ) -> AccessTimes {
        let write = transfer.write;
        let mut address = self.layout.locate(transfer.lba);
        let first_seek = self.move_time(from, Arm::from(&address), write);
        let mut access = AccessTimes {
            distance: from.cylinder.abs_diff(address.cylinder),
            seek: first_seek,
            first_seek,
            rotate: SimDuration::ZERO,
            transfer: SimDuration::ZERO,
            marked: SimTime::ZERO,
            linked: SimTime::ZERO,
            end: (start + first_seek).max(data_ready),
            last: address,
        };
        let mut left = transfer.sectors;
        let mut mark = transfer.mark;
        loop {
            let over_link = transfer.sector_over_link * u64::from(left);
            let first = Sectors { begin: address.angle(), angle: address.sector_angle };
            let (span, last, next) = self.on_track(&mut address, &mut left);
            self.pass(&mut access, first, span, &mut mark, over_link);
            if left == 0 {
                access.last = address.skip(last);
                // The next decision of a scheduler is from here.
                let behind = transfer.lba.0 + u64::from(transfer.sectors) - 1;
                self.asked.set((behind, address.cylinder, address.head));
                return access;
            }
            let Some(next) = next else {
                debug_assert!(false, "run beyond the end of the drive");
                return access;
            };
            let switch = self.move_time(Arm::from(&address), Arm::from(&next), write);
            access.seek += switch;
            access.end += switch;
            address = next;
        }
    }

    /// The arm leaves `from` at `start` for sector `lba`, to read from there on.
    pub fn arrive(&self, start: SimTime, from: Arm, lba: Lba) -> HeadArrival {
        let address = self.layout.locate(lba);
        let seek = self.move_time(from, Arm::from(&address), false);
        let wait = Rotation::ahead(self.rotation.angle_at(start + seek), address.angle());
        let time = start + seek + self.rotation.time_of(wait.into());
        HeadArrival { distance: from.cylinder.abs_diff(address.cylinder), seek, time, address }
    }

    /// The part of `left` sectors on the track of `address`: the sectors passed over, bad ones
    /// between them included, how many are left there from the piece `address` then names, and the
    /// track to go on with.
    #[inline]
    fn on_track(
        &self,
        address: &mut PhysicalAddress,
        left: &mut u32,
    ) -> (u32, u32, Option<PhysicalAddress>) {
        let first = address.sector;
        loop {
            let take = (*left).min(address.left_on_track);
            *left -= take;
            let span = address.sector + take - first;
            if *left == 0 {
                return (span, take, None);
            }
            match self.layout.next_track(address) {
                Some(next) if next.same_track(address) && next.sector > address.sector => {
                    *address = next
                }
                next => return (span, take, next),
            }
        }
    }

    /// The first `take` of `sectors`, the head being on the track at `access.end`; `mark` of them
    /// are still to come up to the mark. From the first of them on, what is left of the access
    /// takes `over_link`.
    #[inline]
    fn pass(
        &self,
        access: &mut AccessTimes,
        sectors: Sectors,
        take: u32,
        mark: &mut u32,
        over_link: SimDuration,
    ) {
        let rotation = &self.rotation;
        let (begin, angle) = (access.end, rotation.angle_at(access.end));
        let mut wait = u128::from(Rotation::ahead(angle, sectors.begin));
        let span = u128::from(sectors.angle) * u128::from(take);
        let first = rotation.time_of(wait + u128::from(sectors.angle));
        if !over_link.is_zero() {
            access.linked = access.linked.max(begin + first + over_link);
        }
        if *mark == 1 {
            access.marked = begin + first;
        } else if (1..=take).contains(mark) {
            let to_mark = u128::from(sectors.angle) * u128::from(*mark);
            access.marked = begin + rotation.time_of(wait + to_mark);
        }
        *mark = mark.saturating_sub(take);
        if self.zero_latency {
            wait = landing_wait(wait, angle, sectors, take);
        }
        let rotate = rotation.time_of(wait);
        access.end = begin + rotation.time_of(wait + span);
        access.rotate += rotate;
        access.transfer += access.end.since(begin) - rotate;
    }
}

/// The wait of a head that reads whatever part of the run comes first: when it lands among the
/// wanted sectors it is done one turn after the next sector boundary.
fn landing_wait(wait: u128, angle: Angle, sectors: Sectors, take: u32) -> u128 {
    let span = u128::from(sectors.angle) * u128::from(take);
    let into = angle.wrapping_sub(sectors.begin);
    if wait == 0 || u128::from(into) >= span {
        return wait;
    }
    let to_boundary = sectors.angle - into % sectors.angle;
    (u128::from(to_boundary) + (1 << 64)).saturating_sub(span)
}

impl Mechanics {
    #[inline]
    fn arm_after(&self, last: Lba) -> Arm {
        let behind = last.0.saturating_sub(1);
        let (asked, cylinder, head) = self.asked.get();
        if asked == behind {
            return Arm { cylinder, head };
        }
        let arm = Arm::from(&self.layout.locate(Lba(behind)));
        self.asked.set((behind, arm.cylinder, arm.head));
        arm
    }

    /// From a movement of the arm that starts at `now` and takes `seek` until `target` is under
    /// the head.
    #[inline]
    fn rotate_to(&self, now: SimTime, seek: SimDuration, target: Angle) -> SimDuration {
        let angle = self.rotation.angle_at(now + seek);
        seek + self.rotation.time_of(Rotation::ahead(angle, target).into())
    }
}

/// Positioning estimates, as [`Positioner`](hybridsim_engine::schedule::Positioner) describes them;
/// the arm starts to move at `now`.
impl Mechanics {
    #[inline]
    pub fn positioning(&self, now: SimTime, last: Lba, to: &Request) -> SimDuration {
        let target = self.layout.locate(to.lba);
        let seek = self.move_time(self.arm_after(last), Arm::from(&target), to.op == Op::Write);
        self.rotate_to(now, seek, target.angle())
    }

    pub fn target(&self, to: &Request) -> HeadTarget {
        let address = self.layout.locate(to.lba);
        let (Arm { cylinder, head }, angle) = (Arm::from(&address), address.angle());
        HeadTarget { cylinder, head, angle, write: to.op == Op::Write }
    }

    /// Which of `targets` is reached first, where the arm starts `lead` after `now` for a read and
    /// a write.
    pub fn nearest(
        &self,
        (now, lead): (SimTime, [SimDuration; 2]),
        last: Lba,
        targets: &[HeadTarget],
    ) -> Option<usize> {
        let from = self.arm_after(last);
        let (mut best, mut nearest) = (SimDuration::MAX, None);
        // Most of many targets are too far away for a shorter positioning: a comparison each with
        // the first cylinder within reach and the number of those.
        let (mut first, mut within) = (0, u32::MAX);
        for (at, &HeadTarget { cylinder, head, angle, write }) in targets.iter().enumerate() {
            if cylinder.wrapping_sub(first) >= within {
                continue;
            }
            let seek =
                lead[usize::from(write)] + self.move_time(from, Arm { cylinder, head }, write);
            // The rotation can only make it longer.
            if seek < best {
                let time = self.rotate_to(now, seek, angle);
                if time < best {
                    (best, nearest) = (time, Some(at));
                    if targets.len() > FEW_TARGETS {
                        let reach = self.reach(time);
                        first = from.cylinder.wrapping_add(1).wrapping_sub(reach);
                        within = (2 * reach).saturating_sub(1);
                    }
                }
            }
        }
        nearest
    }

    pub fn cylinder(&self, lba: Lba) -> u32 {
        self.layout.locate(lba).cylinder
    }

    pub fn cylinders(&self) -> u32 {
        self.layout.cylinders()
    }

    pub fn seek(&self, last: Lba, to: &Request) -> SimDuration {
        let from = self.layout.locate(Lba(last.0.saturating_sub(1)));
        let target = self.layout.locate(to.lba);
        self.move_time(Arm::from(&from), Arm::from(&target), to.op == Op::Write)
    }

    pub fn transfer(&self, to: &Request) -> SimDuration {
        let address = self.layout.locate(to.lba);
        self.rotation.time_of(u128::from(address.sector_angle) * u128::from(to.sectors))
    }

    pub fn sectors(&self) -> u64 {
        self.layout.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::zone::Skew;
    use crate::geometry::{Mapping, Sparing, ZoneSpec};
    use crate::seek::SeekModel;
    use hybridsim_engine::Stream;

    struct Root;

    impl SeekModel for Root {
        fn read_ns(&self, distance: u32) -> f64 {
            8e5 + 3e5 * f64::from(distance).sqrt()
        }
    }

    #[test]
    fn the_nearest_of_many_is_the_first_with_the_shortest_positioning() {
        let zone = |first_cylinder: u32, sectors_per_track| ZoneSpec {
            first_cylinder,
            last_cylinder: first_cylinder + 99,
            sectors_per_track,
            skew: Skew { track: 0.1, cylinder: 0.2, band: 0.0 },
            ..ZoneSpec::default()
        };
        let zones = [zone(0, 90), zone(100, 60)];
        let layout = Layout::new(3, &zones, Mapping::Serpentine, Sparing::None, None).unwrap();
        let seeks = SeekTable::new(&Root, 200).unwrap_or_else(|_| panic!("good times"));
        let rotation = Rotation::new(7200.0, 0);
        let moves = WriteMoves { settle: SimDuration::from_us(300), ..WriteMoves::default() };
        let switch = SimDuration::from_ms(1);
        let mechanics = Mechanics::new(layout, seeks, rotation, switch, moves, false);
        let mut stream = Stream::new(1, "nearest");
        for decision in 0..500 {
            let now = SimTime::from_ns(stream.below(1 << 40));
            let last = Lba(stream.below(mechanics.sectors()));
            let request = |_| {
                let op = if stream.chance(0.5) { Op::Read } else { Op::Write };
                Request::new(op, Lba(stream.below(mechanics.sectors())), 1)
            };
            let mut requests: Vec<Request> = (0..decision % 80).map(request).collect();
            // The same twice: the first is taken.
            requests.extend_from_within(..);
            let targets: Vec<HeadTarget> =
                requests.iter().map(|request| mechanics.target(request)).collect();
            let lead = [[0, 0], [300, 900]][decision % 2].map(SimDuration::from_us);
            let time = |at: &usize| {
                let lead = lead[usize::from(requests[*at].op == Op::Write)];
                lead + mechanics.positioning(now + lead, last, &requests[*at])
            };
            let expected = (0..requests.len()).min_by_key(time);
            assert_eq!(mechanics.nearest((now, lead), last, &targets), expected);
        }
    }
}
