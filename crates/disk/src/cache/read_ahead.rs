//! Read-ahead: the drive continues reading after a read while it has no other work.
//!
//! There is no event per sector: the progress of a read-ahead is computed from the time when it is
//! needed.

use crate::geometry::PhysicalAddress;
use crate::mechanics::{Arm, Mechanics};
use crate::rotation::Rotation;
use hybridsim_engine::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

hybridsim_config::choices! {
    /// The extent of read-ahead after a read.
    pub enum ReadAheadLimit {
        /// Not at all.
        None = "none",
        Track = "track",
        Cylinder = "cylinder",
        /// Until the segment is full.
        Segment = "segment",
        /// To the end of the track if the segment has space for that; to the end of the next one
        /// when a recent read was on the previous track.
        NextTrack = "next-track",
    }
}

/// Read-ahead policy of a drive.
#[derive(Clone, Copy, Debug)]
pub struct ReadAheadPolicy {
    /// End of the read-ahead.
    pub limit: ReadAheadLimit,
    /// Sectors read ahead before another command is served.
    pub min: u64,
    /// Most sectors read ahead.
    pub max: u64,
    /// Whether sectors read ahead may replace those just returned.
    pub over_requested: bool,
    /// Whether an idle drive reads ahead after a hit.
    pub on_hit: bool,
    /// Sectors in a segment.
    pub segment: u64,
}

impl ReadAheadPolicy {
    /// The first sector not read ahead, for a read that ended just before sector `end` at `last`
    /// (the place behind its last sector) in a segment that begins at `start`.
    pub fn end(
        &self,
        mechanics: &Mechanics,
        start: u64,
        end: u64,
        last: &PhysicalAddress,
        sequential: bool,
    ) -> u64 {
        // DiskSim counts the limit from the end of the read, whatever part of it is buffered;
        // read-ahead to the end of a track has no such limit.
        let bounded = self.max < u64::MAX && self.limit != ReadAheadLimit::NextTrack;
        let room = if self.over_requested || bounded {
            end
        } else {
            start.max(end.saturating_sub(self.segment))
        };
        let to = match self.limit {
            ReadAheadLimit::None => end,
            ReadAheadLimit::Track => end_of_track(mechanics, end, last).0,
            ReadAheadLimit::Cylinder => end_of_cylinder(mechanics, end, last),
            ReadAheadLimit::Segment => u64::MAX,
            ReadAheadLimit::NextTrack => {
                let (to, last) = end_of_track(mechanics, end, last);
                let next = if sequential { mechanics.layout.next_track(&last) } else { None };
                match next {
                    Some(next) => end_of_track(mechanics, to, &next).0,
                    // No read-ahead of a part of the track unless the stream is sequential.
                    None if !sequential && to > room.saturating_add(self.segment) => end,
                    None => to,
                }
            }
        };
        let to = to.min(room.saturating_add(self.segment)).min(end.saturating_add(self.max));
        let to = if self.limit == ReadAheadLimit::None { to } else { to.max(end + self.min) };
        to.min(mechanics.layout.capacity()).max(end)
    }
}

/// The block after the last one on the track of `address`, which is block `at`; and the address
/// of the last blocks there that follow each other.
#[inline]
fn end_of_track(
    mechanics: &Mechanics,
    at: u64,
    address: &PhysicalAddress,
) -> (u64, PhysicalAddress) {
    let (mut to, mut address) = (at + u64::from(address.left_on_track), *address);
    while let Some(next) = mechanics.layout.next_on_track(&address) {
        to += u64::from(next.left_on_track);
        address = next;
    }
    (to, address)
}

fn end_of_cylinder(mechanics: &Mechanics, end: u64, last: &PhysicalAddress) -> u64 {
    let (mut to, mut address) = (end + u64::from(last.left_on_track), *last);
    while let Some(next) = mechanics.layout.next_track(&address) {
        if next.cylinder != last.cylinder {
            break;
        }
        to += u64::from(next.left_on_track);
        address = next;
    }
    to
}

/// A read-ahead in progress, known track by track.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReadAhead {
    /// The segment it fills.
    pub segment: usize,
    /// The first sector it will not read.
    pub limit: u64,
    /// The next sector to come on the track the head is on, at `at`.
    next: u64,
    at: SimTime,
    address: PhysicalAddress,
    /// Time at which the arm reaches the track.
    there: SimTime,
    /// Sectors before this one have been reported, at `reported_at`.
    pub reported: u64,
    /// See `reported`.
    pub reported_at: SimTime,
}

/// The progress of a read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The first sector not yet read.
    pub until: u64,
    /// Time at which the limit was reached, if it was.
    pub ended: Option<SimTime>,
}

impl ReadAhead {
    /// The head was at `last` at `at`, just behind sector `next - 1`, and reads on up to `limit`.
    pub fn new(segment: usize, next: u64, at: SimTime, last: PhysicalAddress, limit: u64) -> Self {
        Self { segment, limit, next, at, address: last, there: at, reported: next, reported_at: at }
    }

    /// This read-ahead, with the arm moving to the first track until `there`.
    pub fn moving_until(self, there: SimTime) -> Self {
        Self { there, ..self }
    }

    /// Position of the arm at the last time queried.
    pub fn arm(&self) -> Arm {
        Arm::from(&self.address)
    }

    /// Remaining time from `now`, the last time queried, until the arm is on the next track.
    pub fn moves_on(&self, now: SimTime) -> SimDuration {
        self.there.since(now)
    }

    /// Start of the part that has not been reported.
    pub fn began(&self) -> SimTime {
        self.reported_at
    }

    /// Whether the limit has passed when the current track is done; the end of that.
    fn track_end(&self, mechanics: &Mechanics) -> (u64, SimTime) {
        let take = u64::from(self.address.left_on_track).min(self.limit.saturating_sub(self.next));
        (self.next + take, self.at + mechanics.rotation.time_of(self.span(take)))
    }

    fn span(&self, sectors: u64) -> u128 {
        u128::from(self.address.sector_angle) * u128::from(sectors)
    }

    /// Goes on to the next track; `false` at the end of the drive.
    fn cross(&mut self, mechanics: &Mechanics) -> bool {
        let Some(next) = mechanics.layout.next_track(&self.address) else { return false };
        let (until, end) = self.track_end(mechanics);
        let there = end + mechanics.move_time(self.arm(), Arm::from(&next), false);
        let wait = Rotation::ahead(mechanics.rotation.angle_at(there), next.angle());
        self.there = there;
        self.at = there + mechanics.rotation.time_of(wait.into());
        self.next = until;
        self.address = next;
        true
    }

    /// Progress at `now`, which never goes back.
    pub fn advance(&mut self, mechanics: &Mechanics, now: SimTime) -> Progress {
        loop {
            let (until, end) = self.track_end(mechanics);
            if end > now {
                break;
            }
            if until >= self.limit || !self.cross(mechanics) {
                return Progress { until, ended: Some(end) };
            }
        }
        let angle = mechanics.rotation.span_of(now.since(self.at));
        Progress { until: self.next + angle / self.address.sector_angle, ended: None }
    }

    /// Time at which the sector under the head at `now`, the last time queried, has passed.
    pub fn sector_end(&self, mechanics: &Mechanics, now: SimTime) -> SimTime {
        if now <= self.at {
            return now;
        }
        let passed = mechanics.rotation.span_of(now.since(self.at)) / self.address.sector_angle;
        let take = (passed + 1).min(u64::from(self.address.left_on_track));
        (self.at + mechanics.rotation.time_of(self.span(take))).max(now)
    }

    /// Time at which sector `lba`, at or after the last one queried, starts to pass; the limit
    /// moves behind it. The read-ahead must not have ended.
    pub fn reach(&mut self, mechanics: &Mechanics, lba: u64) -> SimTime {
        self.limit = self.limit.max(lba);
        while lba > self.next + u64::from(self.address.left_on_track) && self.cross(mechanics) {}
        self.at + mechanics.rotation.time_of(self.span(lba.saturating_sub(self.next)))
    }

    /// As [`ReadAhead::reach`] of `end`, for the sectors from `lba` on, a sector taking
    /// `over_link` on the link: also when they can be over it, which waits for those of each track.
    pub fn reach_over_link(
        &mut self,
        mechanics: &Mechanics,
        (lba, end): (u64, u64),
        over_link: SimDuration,
    ) -> (SimTime, SimTime) {
        let mut linked = SimTime::ZERO;
        while end > self.next + u64::from(self.address.left_on_track) {
            let track_end = self.next + u64::from(self.address.left_on_track);
            self.reach(mechanics, track_end + 1);
            if self.next != track_end {
                break;
            }
            if self.next > lba {
                let first_passed = self.at + mechanics.rotation.time_of(self.span(1));
                linked = linked.max(first_passed + over_link * (end - self.next));
            }
        }
        (self.reach(mechanics, end), linked)
    }

    /// The place of sector `lba`, which the read-ahead has just reached.
    pub fn place_at(&self, lba: u64) -> PhysicalAddress {
        self.address.skip((lba.saturating_sub(self.next) as u32).min(self.address.left_on_track))
    }
}
