//! The states of zones, their write pointers, and the limits on open and active zones.

use super::NONE;
use hybridsim_engine::ZoneState;
use serde::{Deserialize, Serialize};

crate::statistics! {
    /// A status with which the device fails a request, or another number that it reports.
    enum Statistic {
        /// A write crosses the end of a zone or its capacity.
        BoundaryError = "zone_boundary_error",
        /// A write to a full zone.
        ZoneIsFull = "zone_is_full",
        ZoneIsOffline = "zone_is_offline",
        /// A write that does not begin at the write pointer.
        InvalidWrite = "zone_invalid_write",
        TooManyActive = "too_many_active_zones",
        TooManyOpen = "too_many_open_zones",
        InvalidTransition = "invalid_zone_state_transition",
        /// Not a whole number of pages, or not one whole zone.
        InvalidField = "invalid_field",
        /// The device closes a zone, so that it can open another.
        ImplicitClose = "implicitly_closed_zones",
        /// Pages programmed to finish a zone.
        Padding = "padding_pages",
        /// Zones open from now on.
        Open = "open_zones",
    }
}

/// Whether the statistic with this name counts requests that fail with a status.
pub fn is_status(name: &str) -> bool {
    STATISTIC_NAMES[..Statistic::ImplicitClose as usize].contains(&name)
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Zone {
    pub state: ZoneState,
    /// Group of blocks, or [`NONE`].
    pub group: u32,
    /// Pages written by the host: the write pointer, until the zone is finished.
    pub written: u32,
    /// Pages programmed, padding included.
    pub programmed: u32,
    /// Number of the request that last opened or wrote it.
    used: u64,
}

const EMPTY: Zone =
    Zone { state: ZoneState::Empty, group: NONE, written: 0, programmed: 0, used: 0 };

/// Pages of a zone and most zones in a state.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub capacity_pages: u32,
    pub open_max: u32,
    pub active_max: u32,
}

#[derive(Debug)]
pub struct Zones {
    all: Vec<Zone>,
    limits: Limits,
    /// Numbers of the open ones.
    open: Vec<u32>,
    active: u32,
    /// Requests so far that open or write a zone.
    clock: u64,
}

impl Zones {
    pub fn new(zones: u32, limits: Limits) -> Self {
        let all = vec![EMPTY; zones as usize];
        Self { all, limits, open: Vec::new(), active: 0, clock: 0 }
    }

    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    pub fn get(&self, zone: u32) -> &Zone {
        &self.all[zone as usize]
    }

    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    pub const fn active_count(&self) -> u32 {
        self.active
    }

    /// Most open zones, and most active ones.
    pub const fn limits(&self) -> [u32; 2] {
        [self.limits.open_max, self.limits.active_max]
    }

    pub const fn capacity_pages(&self) -> u32 {
        self.limits.capacity_pages
    }

    /// Checks a write of `pages` pages at `first`, without a change of state.
    pub fn check_write(&self, zone: u32, first: u32, pages: u32) -> Result<(), Statistic> {
        let Zone { state, written, .. } = *self.get(zone);
        match state {
            ZoneState::Full => return Err(Statistic::ZoneIsFull),
            ZoneState::Offline => return Err(Statistic::ZoneIsOffline),
            _ => {}
        }
        if u64::from(first) + u64::from(pages) > u64::from(self.limits.capacity_pages) {
            return Err(Statistic::BoundaryError);
        }
        if first == written { Ok(()) } else { Err(Statistic::InvalidWrite) }
    }

    /// Checks that a zone can be opened, without a change of state. Returns the implicitly open
    /// zone to close for it, if one has to be: the least recently used.
    pub fn check_open(&self, zone: u32) -> Result<Option<u32>, Statistic> {
        let state = self.get(zone).state;
        match state {
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen => return Ok(None),
            ZoneState::Offline => return Err(Statistic::ZoneIsOffline),
            ZoneState::Full => return Err(Statistic::InvalidTransition),
            ZoneState::Empty | ZoneState::Closed => {}
        }
        if state == ZoneState::Empty && self.active >= self.limits.active_max {
            return Err(Statistic::TooManyActive);
        }
        if (self.open.len() as u32) < self.limits.open_max {
            return Ok(None);
        }
        self.least_recently_used().map(Some).ok_or(Statistic::TooManyOpen)
    }

    /// Opens a zone: explicitly, or for a write. Returns whether another was closed for it.
    pub fn open(&mut self, zone: u32, explicitly: bool) -> Result<bool, Statistic> {
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
    }

    pub fn assign(&mut self, zone: u32, group: u32) {
        self.all[zone as usize].group = group;
    }

    /// No flash is left for the zone.
    pub fn take_offline(&mut self, zone: u32) {
        self.leave_active(zone, ZoneState::Offline);
    }

    /// The host has written `pages` more; the zone is full when no more fit.
    pub fn advance(&mut self, zone: u32, pages: u32) {
        let it = &mut self.all[zone as usize];
        it.written += pages;
        it.programmed = it.written;
        if it.written == self.limits.capacity_pages {
            self.leave_active(zone, ZoneState::Full);
        }
    }

    pub fn pad(&mut self, zone: u32, pages: u32) {
        self.all[zone as usize].programmed += pages;
    }

    pub fn close(&mut self, zone: u32) -> Result<(), Statistic> {
        match self.get(zone).state {
            ZoneState::Closed => {}
            ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen => {
                self.leave_open(zone, ZoneState::Closed);
            }
            _ => return Err(Statistic::InvalidTransition),
        }
        Ok(())
    }

    /// Makes a zone full. Returns whether the rest of it has to be padded: that of an empty zone
    /// has not.
    pub fn finish(&mut self, zone: u32) -> Result<bool, Statistic> {
        match self.get(zone).state {
            ZoneState::Offline => Err(Statistic::InvalidTransition),
            ZoneState::Full => Ok(false),
            _ => {
                self.leave_active(zone, ZoneState::Full);
                Ok(self.get(zone).written > 0)
            }
        }
    }

    /// Empties a zone. Returns what it was; the group is no longer its.
    pub fn reset(&mut self, zone: u32) -> Result<Zone, Statistic> {
        let before = *self.get(zone);
        if before.state == ZoneState::Offline {
            return Err(Statistic::InvalidTransition);
        }
        self.leave_active(zone, ZoneState::Empty);
        self.all[zone as usize] = EMPTY;
        Ok(before)
    }

    /// The power failed: open zones are closed, and active ones empty if nothing is written to
    /// them. Returns the groups that become free.
    pub fn power_lost(&mut self) -> Vec<u32> {
        let mut free = Vec::new();
        for zone in std::mem::take(&mut self.open) {
            self.all[zone as usize].state = ZoneState::Closed;
        }
        for it in &mut self.all {
            if it.state == ZoneState::Closed && it.written == 0 {
                free.extend((it.group != NONE).then_some(it.group));
                *it = EMPTY;
                self.active -= 1;
            }
        }
        free
    }

    pub fn state(&self) -> (&[Zone], u64) {
        (&self.all, self.clock)
    }

    /// Restores [`Zones::state`].
    ///
    /// # Errors
    /// A message, if it cannot be the state of these zones.
    pub fn restore(&mut self, (all, clock): (Vec<Zone>, u64), groups: u32) -> Result<(), String> {
        if all.len() != self.all.len() {
            return Err(format!("it has {} zones, not {}", all.len(), self.all.len()));
        }
        let is_open = |zone: &Zone| {
            matches!(zone.state, ZoneState::ImplicitlyOpen | ZoneState::ExplicitlyOpen)
        };
        let wrong = |zone: &Zone| {
            zone.written > zone.programmed
                || zone.programmed > self.limits.capacity_pages
                || (zone.group != NONE && zone.group >= groups)
                || (zone.programmed > 0 && zone.group == NONE)
        };
        if let Some(at) = all.iter().position(wrong) {
            return Err(format!("zone {at} has a write pointer or a group that it cannot have"));
        }
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

    fn zones() -> Zones {
        Zones::new(5, Limits { capacity_pages: 10, open_max: 3, active_max: 4 })
    }

    #[test]
    fn a_power_failure_closes_open_zones_and_empties_those_without_data() {
        let mut zones = zones();
        for (zone, pages) in [(0, 4), (1, 0), (2, 10), (3, 0)] {
            zones.open(zone, true).expect("there is room");
            zones.assign(zone, zone + 7);
            zones.advance(zone, pages);
        }
        zones.close(3).expect("it is open");
        assert_eq!(zones.power_lost(), [8, 10]);
        let state = |zone| zones.get(zone).state;
        let expected = [ZoneState::Closed, ZoneState::Empty, ZoneState::Full, ZoneState::Empty];
        assert_eq!([0, 1, 2, 3].map(state), expected);
        assert_eq!((zones.active, zones.open_count()), (1, 0));
        assert_eq!(zones.check_write(0, 4, 6), Ok(()), "the write pointer is where it was");
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
        after.restore((all.to_vec(), clock), 5).expect("just saved");
        assert_eq!((after.active, after.open_count()), (3, 2));
        assert_eq!(after.open(3, true), Ok(false));
        assert_eq!(after.open(4, true), Err(Statistic::TooManyActive));
        assert_eq!(after.open(1, true), Err(Statistic::TooManyOpen));
        let wrong = Zone { programmed: 3, ..EMPTY };
        assert!(zones().restore((vec![wrong; 5], 0), 5).is_err(), "pages without a group");
    }
}
