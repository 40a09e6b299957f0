//! The zones of a device that is written in order: their states, write pointers, and the limits on
//! open and active zones (NVMe Zoned Namespace Command Set, Zone State Machine; ZBC and ZAC have
//! the same states).
//!
//! Positions within a zone are counted in units of the device: pages of an SSD, sectors of a disk.

use crate::CommonEvent;
use crate::device::{RandomWriteAreas, ZoneState};
use serde::{Deserialize, Serialize};

/// The constant of a component with the sectors of a zone, which only devices with zones have.
pub const ZONE_SECTORS: &str = "zone_sectors";

macro_rules! statuses {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// The status with which a zoned device refuses a request. Their names are the first of the
        /// device's statistics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum ZoneStatus { $($(#[$doc])* $variant),* }

        impl ZoneStatus {
            /// Names in results, in the order of the variants.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The event of a request that is refused.
            pub const fn event(self) -> CommonEvent {
                CommonEvent::Custom { name: self as u8, value: 1 }
            }
        }
    };
}

statuses! {
    /// A write crosses the end of a zone or its capacity.
    BoundaryError = "zone_boundary_error",
    /// A write to a full zone.
    ZoneIsFull = "zone_is_full",
    /// The zone is offline.
    ZoneIsOffline = "zone_is_offline",
    /// A write that does not begin at the write pointer.
    InvalidWrite = "zone_invalid_write",
    /// As many zones are open or closed as may be.
    TooManyActive = "too_many_active_zones",
    /// As many zones are open explicitly as may be.
    TooManyOpen = "too_many_open_zones",
    /// The state of the zone does not allow the action.
    InvalidTransition = "invalid_zone_state_transition",
    /// Not a whole number of units, not one whole zone, or a command that the device lacks.
    InvalidField = "invalid_field",
    /// An append to a zone with a random write area, or a commit of a zone without one.
    InvalidOperation = "invalid_zone_operation_request",
    /// As many zones have a random write area as may.
    NoRandomWriteArea = "zrwa_resources_unavailable",
}

/// A zone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Zone {
    /// Its state.
    pub state: ZoneState,
    /// Units written: the write pointer, until the zone is finished.
    pub written: u32,
    /// Presence of a random write area (ZRWA).
    pub is_random: bool,
    /// Number of the request that last opened or wrote it.
    used: u64,
}

const EMPTY: Zone = Zone { state: ZoneState::Empty, written: 0, is_random: false, used: 0 };

/// Units of a zone and most zones in a state.
#[derive(Clone, Copy, Debug)]
pub struct ZoneLimits {
    /// Units of a zone that can be written.
    pub capacity: u32,
    /// Most open zones.
    pub open_max: u32,
    /// Most zones that are open or closed.
    pub active_max: u32,
    /// The random write areas, if the device has any.
    pub random: Option<RandomWriteAreas>,
}

/// The zones of a device.
#[derive(Debug)]
pub struct ZoneTable {
    all: Vec<Zone>,
    limits: ZoneLimits,
    /// Numbers of the open ones.
    open: Vec<u32>,
    active: u32,
    /// Zones with a random write area.
    random: u32,
    /// Requests so far that open or write a zone.
    clock: u64,
}

impl ZoneTable {
    /// Empty zones.
    pub fn new(zones: u32, limits: ZoneLimits) -> Self {
        let all = vec![EMPTY; zones as usize];
        Self { all, limits, open: Vec::new(), active: 0, random: 0, clock: 0 }
    }

    /// Number of zones.
    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    /// Whether there is no zone.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Zone number `zone`, which exists.
    pub fn get(&self, zone: u32) -> &Zone {
        &self.all[zone as usize]
    }

    /// Number of open zones.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Number of open and closed zones.
    pub const fn active_count(&self) -> u32 {
        self.active
    }

    /// The limits.
    pub const fn limits(&self) -> &ZoneLimits {
        &self.limits
    }

    /// Checks a write of `units` units at `first`, without a change of state.
    ///
    /// # Errors
    /// The status of a refused write.
    pub fn check_write(&self, zone: u32, first: u32, units: u32) -> Result<(), ZoneStatus> {
        let Zone { state, written, is_random, .. } = *self.get(zone);
        match state {
            ZoneState::Full => return Err(ZoneStatus::ZoneIsFull),
            ZoneState::Offline => return Err(ZoneStatus::ZoneIsOffline),
            _ => {}
        }
        if u64::from(first) + u64::from(units) > u64::from(self.limits.capacity) {
            return Err(ZoneStatus::BoundaryError);
        }
        let area = self.limits.random.filter(|_| is_random);
        let end = u64::from(first) + u64::from(units);
        let fits =
            area.map_or(first == written, |area| area.fits(written.into(), first.into(), end));
        if fits { Ok(()) } else { Err(ZoneStatus::InvalidWrite) }
    }

    /// The write pointer after a write that ends at unit `end` of a zone with a random write area:
    /// so far that the area contains the write.
    pub fn flushed_to(&self, zone: u32, end: u32) -> u32 {
        let written = self.get(zone).written;
        let capacity = self.limits.capacity.into();
        let moved = |area: RandomWriteAreas| area.moved_by(written.into(), end.into(), capacity);
        self.limits.random.map_or(written, |area| moved(area) as u32)
    }

    /// Checks that the write pointer of a zone can be moved to unit `to` explicitly.
    ///
    /// # Errors
    /// The status of a refused commit.
    pub fn check_commit(&self, zone: u32, to: u32) -> Result<(), ZoneStatus> {
        let Zone { written, is_random, .. } = *self.get(zone);
        let Some(area) = self.limits.random.filter(|_| is_random) else {
            return Err(ZoneStatus::InvalidOperation);
        };
        match area.may_commit(written.into(), to.into(), self.limits.capacity.into()) {
            true => Ok(()),
            false => Err(ZoneStatus::InvalidField),
        }
    }

    /// Gives an open zone a random write area, until it is full, empty or offline.
    pub fn give_area(&mut self, zone: u32) {
        self.all[zone as usize].is_random = true;
        self.random += 1;
    }

    /// Checks that a zone can be opened with a random write area, without a change of state.
    ///
    /// # Errors
    /// The status if it cannot.
    pub fn check_open_random(&self, zone: u32) -> Result<(), ZoneStatus> {
        let area = self.limits.random.ok_or(ZoneStatus::InvalidField)?;
        match self.get(zone).state {
            ZoneState::Empty => {}
            ZoneState::Offline => return Err(ZoneStatus::ZoneIsOffline),
            _ => return Err(ZoneStatus::InvalidOperation),
        }
        self.check_open(zone)?;
        if self.random < area.zones_max { Ok(()) } else { Err(ZoneStatus::NoRandomWriteArea) }
    }

    /// Checks that a zone can be opened, without a change of state. Returns the implicitly open
    /// zone to close for it, if one has to be: the least recently used.
    ///
    /// # Errors
    /// The status if it cannot.
    pub fn check_open(&self, zone: u32) -> Result<Option<u32>, ZoneStatus> {
        let state = self.get(zone).state;
        match state {
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen => return Ok(None),
            ZoneState::Offline => return Err(ZoneStatus::ZoneIsOffline),
            ZoneState::Full => return Err(ZoneStatus::InvalidTransition),
            ZoneState::Empty | ZoneState::Closed => {}
        }
        if state == ZoneState::Empty && self.active >= self.limits.active_max {
            return Err(ZoneStatus::TooManyActive);
        }
        if (self.open.len() as u32) < self.limits.open_max {
            return Ok(None);
        }
        self.least_recently_used().map(Some).ok_or(ZoneStatus::TooManyOpen)
    }

    /// Opens a zone: explicitly, or for a write. Returns whether another was closed for it.
    ///
    /// # Errors
    /// The status if it cannot be opened.
    pub fn open(&mut self, zone: u32, explicitly: bool) -> Result<bool, ZoneStatus> {
        let closes = self.check_open(zone)?;
        if let Some(closed) = closes {
            self.leave_open(closed, ZoneState::Closed);
        }
        let state = self.get(zone).state;
        if matches!(state, ZoneState::Empty | ZoneState::Closed) {
            self.open.push(zone);
            self.active += u32::from(state == ZoneState::Empty);
            self.all[zone as usize].state = ZoneState::ImplicitlyOpen;
        }
        self.clock += 1;
        let it = &mut self.all[zone as usize];
        it.used = self.clock;
        if explicitly {
            it.state = ZoneState::ExplicitlyOpen;
        }
        Ok(closes.is_some())
    }

    /// The least recently used of the implicitly open zones.
    fn least_recently_used(&self) -> Option<u32> {
        let implicit = |zone: &&u32| self.get(**zone).state == ZoneState::ImplicitlyOpen;
        self.open.iter().filter(implicit).min_by_key(|zone| self.get(**zone).used).copied()
    }

    fn leave_open(&mut self, zone: u32, state: ZoneState) {
        if let Some(at) = self.open.iter().position(|open| *open == zone) {
            self.open.swap_remove(at);
        }
        self.all[zone as usize].state = state;
    }

    /// Leaves the active states, in which the zone is.
    fn leave_active(&mut self, zone: u32, state: ZoneState) {
        let is_active = !matches!(
            self.get(zone).state,
            ZoneState::Empty | ZoneState::Full | ZoneState::Offline
        );
        self.leave_open(zone, state);
        self.active -= u32::from(is_active);
        self.random -= u32::from(std::mem::take(&mut self.all[zone as usize].is_random));
    }

    /// The medium of the zone cannot be used any more.
    pub fn take_offline(&mut self, zone: u32) {
        self.leave_active(zone, ZoneState::Offline);
    }

    /// The host has written `units` more to an open zone; it is full when no more fit.
    pub fn advance(&mut self, zone: u32, units: u32) {
        let it = &mut self.all[zone as usize];
        it.written += units;
        if it.written == self.limits.capacity {
            self.leave_active(zone, ZoneState::Full);
        }
    }

    /// The device itself has written the first `written` units, whatever the state of the zone; it
    /// is full when no more fit.
    pub fn fill(&mut self, zone: u32, written: u32) {
        let it = &mut self.all[zone as usize];
        if written <= it.written {
            return;
        }
        it.written = written;
        if written == self.limits.capacity {
            self.leave_active(zone, ZoneState::Full);
        } else if it.state == ZoneState::Empty {
            it.state = ZoneState::Closed;
            self.active += 1;
        }
    }

    /// Closes a zone.
    ///
    /// # Errors
    /// The status if it is neither open nor closed.
    pub fn close(&mut self, zone: u32) -> Result<(), ZoneStatus> {
        match self.get(zone).state {
            ZoneState::Closed => {}
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen => {
                self.leave_open(zone, ZoneState::Closed);
            }
            _ => return Err(ZoneStatus::InvalidTransition),
        }
        Ok(())
    }

    /// Makes a zone full. Returns whether a part of it was written before and the rest was not.
    ///
    /// # Errors
    /// The status if it is offline.
    pub fn finish(&mut self, zone: u32) -> Result<bool, ZoneStatus> {
        match self.get(zone).state {
            ZoneState::Offline => Err(ZoneStatus::InvalidTransition),
            ZoneState::Full => Ok(false),
            _ => {
                self.leave_active(zone, ZoneState::Full);
                Ok(self.get(zone).written > 0)
            }
        }
    }

    /// Empties a zone. Returns what it was.
    ///
    /// # Errors
    /// The status if it is offline.
    pub fn reset(&mut self, zone: u32) -> Result<Zone, ZoneStatus> {
        let before = *self.get(zone);
        if before.state == ZoneState::Offline {
            return Err(ZoneStatus::InvalidTransition);
        }
        self.leave_active(zone, ZoneState::Empty);
        self.all[zone as usize] = EMPTY;
        Ok(before)
    }

    /// The last writes did not reach the medium before the power failed: only `written` units are
    /// written.
    pub fn retract(&mut self, zone: u32, written: u32) {
        let it = &mut self.all[zone as usize];
        it.written = written;
        if it.state == ZoneState::Full {
            it.state = ZoneState::Closed;
            self.active += 1;
        }
    }

    /// The power failed: open zones are closed, and active ones empty if nothing is written to
    /// them and they have no random write area, which survives. Calls `emptied` for each of those.
    pub fn power_lost(&mut self, mut emptied: impl FnMut(u32)) {
        for zone in std::mem::take(&mut self.open) {
            self.all[zone as usize].state = ZoneState::Closed;
        }
        for (zone, it) in (0..).zip(&mut self.all) {
            if it.state == ZoneState::Closed && it.written == 0 && !it.is_random {
                *it = EMPTY;
                self.active -= 1;
                emptied(zone);
            }
        }
    }

    /// The zones, and the number of requests so far.
    pub fn state(&self) -> (&[Zone], u64) {
        (&self.all, self.clock)
    }

    /// Restores [`ZoneTable::state`].
    ///
    /// # Errors
    /// A message, if it cannot be the state of these zones.
    pub fn restore(&mut self, (all, clock): (Vec<Zone>, u64)) -> Result<(), String> {
        if all.len() != self.all.len() {
            return Err(format!("it has {} zones, not {}", all.len(), self.all.len()));
        }
        let is_open = |zone: &Zone| {
            matches!(zone.state, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
        };
        if let Some(at) = all.iter().position(|zone| zone.written > self.limits.capacity) {
            return Err(format!("zone {at} has a write pointer that it cannot have"));
        }
        let is_active = |zone: &Zone| is_open(zone) || zone.state == ZoneState::Closed;
        let random = all.iter().filter(|zone| zone.is_random).count() as u32;
        let most = self.limits.random.map_or(0, |area| area.zones_max);
        if random > most || all.iter().any(|zone| zone.is_random && !is_active(zone)) {
            return Err("zones have random write areas that they cannot have".to_owned());
        }
        self.random = random;
        self.open = (0..).zip(&all).filter(|(_, it)| is_open(it)).map(|(at, _)| at).collect();
        let closed = all.iter().filter(|zone| zone.state == ZoneState::Closed).count();
        self.active = (self.open.len() + closed) as u32;
        (self.all, self.clock) = (all, clock);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zones() -> ZoneTable {
        ZoneTable::new(5, ZoneLimits { capacity: 10, open_max: 3, active_max: 4, random: None })
    }

    #[test]
    fn a_random_write_area_moves_with_the_writes_beyond_it() {
        let area = RandomWriteAreas { size: 4, granularity: 2, zones_max: 1 };
        let limits = ZoneLimits { capacity: 11, open_max: 3, active_max: 4, random: Some(area) };
        let mut zones = ZoneTable::new(3, limits);
        let open = |zones: &mut ZoneTable, zone| {
            zones.check_open_random(zone)?;
            zones.open(zone, true)?;
            zones.give_area(zone);
            Ok(())
        };
        assert_eq!(open(&mut zones, 0), Ok(()));
        assert_eq!(open(&mut zones, 1), Err(ZoneStatus::NoRandomWriteArea));
        assert_eq!(open(&mut zones, 0), Err(ZoneStatus::InvalidOperation));
        let check = |zones: &ZoneTable, first, units| zones.check_write(0, first, units);
        assert_eq!(check(&zones, 3, 1), Ok(()));
        assert_eq!(check(&zones, 7, 1), Ok(()), "it moves the area");
        assert_eq!(check(&zones, 8, 1), Err(ZoneStatus::InvalidWrite));
        assert_eq!([4, 5, 6, 7, 8].map(|end| zones.flushed_to(0, end)), [0, 2, 2, 4, 4]);
        zones.advance(0, 4);
        assert_eq!(check(&zones, 3, 1), Err(ZoneStatus::InvalidWrite), "before the pointer");
        assert_eq!(check(&zones, 10, 1), Ok(()));
        assert_eq!(check(&zones, 11, 1), Err(ZoneStatus::BoundaryError));
        assert_eq!(zones.check_commit(0, 5), Err(ZoneStatus::InvalidField));
        assert_eq!(zones.check_commit(0, 10), Err(ZoneStatus::InvalidField), "beyond the area");
        assert_eq!(zones.check_commit(0, 8), Ok(()));
        assert_eq!(zones.check_commit(1, 2), Err(ZoneStatus::InvalidOperation));
        let (all, clock) = zones.state();
        let mut after = ZoneTable::new(3, limits);
        after.restore((all.to_vec(), clock)).expect("just saved");
        assert_eq!(open(&mut after, 1), Err(ZoneStatus::NoRandomWriteArea));
        zones.advance(0, 4);
        assert_eq!(zones.check_commit(0, 11), Ok(()), "the end of the zone");
        zones.advance(0, 3);
        assert_eq!(zones.get(0).state, ZoneState::Full);
        assert_eq!(open(&mut zones, 1), Ok(()), "the area is free again");
        let mut emptied = Vec::new();
        zones.power_lost(|zone| emptied.push(zone));
        assert!(emptied.is_empty(), "the area survives");
        assert!(zones.get(1).is_random && zones.get(1).state == ZoneState::Closed);
    }

    #[test]
    fn a_power_failure_closes_open_zones_and_empties_those_without_data() {
        let mut zones = zones();
        for (zone, units) in [(4, 10), (0, 4), (1, 0), (2, 10), (3, 0)] {
            zones.open(zone, true).expect("there is room");
            zones.advance(zone, units);
        }
        zones.close(3).expect("it is open");
        zones.retract(4, 8);
        let mut emptied = Vec::new();
        zones.power_lost(|zone| emptied.push(zone));
        assert_eq!(emptied, [1, 3]);
        let state = |zone| zones.get(zone).state;
        let expected = [ZoneState::Closed, ZoneState::Empty, ZoneState::Full, ZoneState::Empty];
        assert_eq!([0, 1, 2, 3].map(state), expected);
        assert_eq!((zones.get(4).state, zones.get(4).written), (ZoneState::Closed, 8));
        assert_eq!((zones.active, zones.open_count()), (2, 0));
        assert_eq!(zones.check_write(0, 4, 6), Ok(()), "the write pointer is where it was");
    }

    #[test]
    fn zones_filled_by_the_device_are_closed_or_full() {
        let mut zones = zones();
        zones.fill(0, 4);
        zones.fill(0, 3);
        zones.open(1, true).expect("there is room");
        zones.fill(1, 10);
        let states = [0, 1].map(|zone| (zones.get(zone).state, zones.get(zone).written));
        assert_eq!(states, [(ZoneState::Closed, 4), (ZoneState::Full, 10)]);
        assert_eq!((zones.active, zones.open_count()), (1, 0));
    }

    #[test]
    fn limits_count_zones_again_after_a_restore() {
        let mut before = zones();
        for zone in 0..3 {
            before.open(zone, true).expect("there is room");
        }
        before.close(1).expect("it is open");
        let (all, clock) = before.state();
        let mut after = zones();
        after.restore((all.to_vec(), clock)).expect("just saved");
        assert_eq!((after.active, after.open_count()), (3, 2));
        assert_eq!(after.open(3, true), Ok(false));
        assert_eq!(after.open(4, true), Err(ZoneStatus::TooManyActive));
        assert_eq!(after.open(1, true), Err(ZoneStatus::TooManyOpen));
        let wrong = Zone { written: 11, ..EMPTY };
        assert!(zones().restore((vec![wrong; 5], 0)).is_err(), "beyond the end");
    }
}
