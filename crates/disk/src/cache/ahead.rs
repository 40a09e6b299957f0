//! Read-ahead: the head stays on the track and goes on reading while nothing else is to do.
//!
//! Nothing happens per sector: how far a read-ahead got is computed from the time when somebody
//! asks.

use crate::geometry::Place;
use crate::mechanics::{Arm, Mechanics};
use crate::rotation::Rotation;
use hybridsim_engine::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

/// How far a drive reads on after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AheadLimit {
    /// Not at all.
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track if the segment has room for that; to the end of the next one when
    /// a recent read was on the track before.
    NextTrack,
}

/// The drive's rule for reading ahead.
#[derive(Clone, Copy, Debug)]
pub struct AheadPolicy {
    /// Where it ends.
    pub limit: AheadLimit,
    /// Sectors that are read before another request gets the arm.
    pub min: u64,
    /// Most sectors read ahead.
    pub max: u64,
    /// Whether sectors read ahead may replace those just returned.
    pub over_requested: bool,
    /// Whether an idle drive reads ahead behind a hit.
    pub on_hit: bool,
    /// Sectors in a segment.
    pub segment: u64,
}

impl AheadPolicy {
    /// The first sector not read ahead, for a read that ended just before sector `end` at `last`
    /// (the place behind its last sector) in a segment that begins at `start`.
    pub fn end(
        &self,
        mechanics: &Mechanics,
        start: u64,
        end: u64,
        last: &Place,
        sequential: bool,
    ) -> u64 {
        // DiskSim's most sectors ahead are counted behind the read, whatever is kept of it; reading
        // to the end of a track knows no such bound.
        let bounded = self.max < u64::MAX && self.limit != AheadLimit::NextTrack;
        let room = if self.over_requested || bounded {
            end
        } else {
            start.max(end.saturating_sub(self.segment))
        };
        let to = match self.limit {
            AheadLimit::None => end,
            AheadLimit::Track => end_of_track(mechanics, end, last).0,
            AheadLimit::Cylinder => end_of_cylinder(mechanics, end, last),
            AheadLimit::Segment => u64::MAX,
            AheadLimit::NextTrack => {
                let (to, next) = end_of_track(mechanics, end, last);
                match next.filter(|_| sequential) {
                    Some(next) => end_of_track(mechanics, to, &next).0,
                    // Not worth it for a part of the track when nobody reads in sequence.
                    None if !sequential && to > room.saturating_add(self.segment) => end,
                    None => to,
                }
            }
        };
        let to = to.min(room.saturating_add(self.segment)).min(end.saturating_add(self.max));
        let to = if self.limit == AheadLimit::None { to } else { to.max(end + self.min) };
        to.min(mechanics.layout.capacity()).max(end)
    }
}

/// The block after the last one on the track of `place`, which is block `at`; and the next track.
fn end_of_track(mechanics: &Mechanics, at: u64, place: &Place) -> (u64, Option<Place>) {
    let (mut to, mut place) = (at + u64::from(place.left_on_track), *place);
    loop {
        match mechanics.layout.next_track(&place) {
            Some(next) if next.same_track(&place) => {
                to += u64::from(next.left_on_track);
                place = next;
            }
            next => return (to, next),
        }
    }
}

fn end_of_cylinder(mechanics: &Mechanics, end: u64, last: &Place) -> u64 {
    let (mut to, mut place) = (end + u64::from(last.left_on_track), *last);
    while let Some(next) = mechanics.layout.next_track(&place) {
        if next.cylinder != last.cylinder {
            break;
        }
        to += u64::from(next.left_on_track);
        place = next;
    }
    to
}

/// A read-ahead in progress, known track by track.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sweep {
    /// The segment it fills.
    pub segment: usize,
    /// The first sector it will not read.
    pub limit: u64,
    /// The next sector to come on the track the head is on, at `at`.
    next: u64,
    at: SimTime,
    place: Place,
    /// When the arm is where `place` is.
    there: SimTime,
    /// What has been told of it: sectors before `told`, until `told_at`.
    pub told: u64,
    /// See `told`.
    pub told_at: SimTime,
}

/// How far a sweep has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The first sector not yet read.
    pub until: u64,
    /// When the limit was reached, if it was.
    pub ended: Option<SimTime>,
}

impl Sweep {
    /// The head was at `last` at `at`, just behind sector `next - 1`, and reads on up to `limit`.
    pub fn new(segment: usize, next: u64, at: SimTime, last: Place, limit: u64) -> Self {
        Self { segment, limit, next, at, place: last, there: at, told: next, told_at: at }
    }

    /// The same, the arm moving to the first track until `there`.
    pub fn moving_until(self, there: SimTime) -> Self {
        Self { there, ..self }
    }

    /// Where the arm was when last asked.
    pub fn arm(&self) -> Arm {
        Arm::from(&self.place)
    }

    /// How long after `now`, the time last asked for, the arm goes on moving to the next track.
    pub fn moves_on(&self, now: SimTime) -> SimDuration {
        self.there.since(now)
    }

    /// When the sweep began the part it is at.
    pub fn began(&self) -> SimTime {
        self.told_at
    }

    /// Whether the limit has passed when the current track is done; the end of that.
    fn track_end(&self, mechanics: &Mechanics) -> (u64, SimTime) {
        let take = u64::from(self.place.left_on_track).min(self.limit.saturating_sub(self.next));
        (self.next + take, self.at + mechanics.rotation.time_of(self.span(take)))
    }

    fn span(&self, sectors: u64) -> u128 {
        u128::from(self.place.sector_angle) * u128::from(sectors)
    }

    /// Goes on to the next track; `false` at the end of the drive.
    fn cross(&mut self, mechanics: &Mechanics) -> bool {
        let Some(next) = mechanics.layout.next_track(&self.place) else { return false };
        let (until, end) = self.track_end(mechanics);
        let there = end + mechanics.move_time(self.arm(), Arm::from(&next), false);
        let wait = Rotation::ahead(mechanics.rotation.angle_at(there), next.angle());
        self.there = there;
        self.at = there + mechanics.rotation.time_of(wait.into());
        self.next = until;
        self.place = next;
        true
    }

    /// How far it has come at `now`, which never goes back.
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
        Progress { until: self.next + angle / self.place.sector_angle, ended: None }
    }

    /// When the sector under the head at `now`, the time last asked for, has passed.
    pub fn sector_end(&self, mechanics: &Mechanics, now: SimTime) -> SimTime {
        if now <= self.at {
            return now;
        }
        let passed = mechanics.rotation.span_of(now.since(self.at)) / self.place.sector_angle;
        let take = (passed + 1).min(u64::from(self.place.left_on_track));
        (self.at + mechanics.rotation.time_of(self.span(take))).max(now)
    }

    /// When sector `lba`, at or after the one asked for last, begins to pass; the limit moves
    /// behind it. The sweep must not have ended.
    pub fn reach(&mut self, mechanics: &Mechanics, lba: u64) -> SimTime {
        self.limit = self.limit.max(lba);
        while lba > self.next + u64::from(self.place.left_on_track) && self.cross(mechanics) {}
        self.at + mechanics.rotation.time_of(self.span(lba.saturating_sub(self.next)))
    }

    /// The place of sector `lba`, which the sweep has just reached.
    pub fn place_at(&self, lba: u64) -> Place {
        self.place.skip((lba.saturating_sub(self.next) as u32).min(self.place.left_on_track))
    }
}
