//! Zones with the flash that holds their data, and the statistics of a zoned SSD.

use super::NONE;
use hybridsim_engine::zone_table::{self, ZoneLimits, ZoneStatus, ZoneTable};
use hybridsim_engine::{Loader, ZoneState};
use serde::{Deserialize, Serialize};

hybridsim_engine::statistics! {
    /// A number that the device reports.
    enum Statistic after ZoneStatus::NAMES {
        /// The device closes a zone, so that it can open another.
        ImplicitClose = "implicitly_closed_zones",
        /// Pages programmed to finish a zone, or where a random write area was not written.
        Padding = "padding_pages",
        /// Pages written again in a random write area.
        Overwritten = "overwritten_pages",
        /// Zones open from now on.
        Open = "open_zones",
    }
}

/// Flash of a zone.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ZoneFlash {
    /// Group of blocks, or [`NONE`].
    group: u32,
    /// Pages programmed, padding included.
    programmed: u32,
}

const NO_FLASH: ZoneFlash = ZoneFlash { group: NONE, programmed: 0 };

/// A zone and its flash.
#[derive(Clone, Copy, Debug)]
pub struct Zone {
    pub state: ZoneState,
    /// Group of blocks, or [`NONE`].
    pub group: u32,
    /// Pages written by the host: the write pointer, until the zone is finished.
    pub written: u32,
    /// Presence of a random write area (ZRWA).
    pub is_random: bool,
    /// Pages programmed, padding included.
    pub programmed: u32,
}

/// The zones of the device: [`ZoneTable`] has their states, in pages.
#[derive(Debug)]
pub struct Zones {
    table: ZoneTable,
    flash: Vec<ZoneFlash>,
}

/// The saved state of [`Zones`].
type State<Z, F> = (Z, u64, F);

impl Zones {
    /// Memory per zone.
    pub const BYTES: u64 = (size_of::<zone_table::Zone>() + size_of::<ZoneFlash>()) as u64;

    pub fn new(zones: u32, limits: ZoneLimits) -> Self {
        Self { table: ZoneTable::new(zones, limits), flash: vec![NO_FLASH; zones as usize] }
    }

    pub const fn table(&self) -> &ZoneTable {
        &self.table
    }

    pub fn len(&self) -> u32 {
        self.table.len()
    }

    pub fn get(&self, zone: u32) -> Zone {
        let zone_table::Zone { state, written, is_random, .. } = *self.table.get(zone);
        let ZoneFlash { group, programmed } = self.flash[zone as usize];
        Zone { state, group, written, is_random, programmed }
    }

    pub fn open_count(&self) -> usize {
        self.table.open_count()
    }

    pub const fn capacity_pages(&self) -> u32 {
        self.table.limits().capacity
    }

    /// As [`ZoneTable::open`].
    pub fn open(&mut self, zone: u32, explicitly: bool) -> Result<bool, ZoneStatus> {
        self.table.open(zone, explicitly)
    }

    /// As [`ZoneTable::give_area`].
    pub fn give_area(&mut self, zone: u32) {
        self.table.give_area(zone);
    }

    /// What the random write area of a zone holds before page `end` counts as written, although it
    /// is not programmed yet.
    pub fn count_written(&mut self, zone: u32, end: u32) {
        let pages = end.saturating_sub(self.table.get(zone).written);
        self.table.advance(zone, pages);
    }

    pub fn assign(&mut self, zone: u32, group: u32) {
        self.flash[zone as usize].group = group;
    }

    /// No flash is left for the zone.
    pub fn take_offline(&mut self, zone: u32) {
        self.table.take_offline(zone);
    }

    /// The host has written `pages` more; the zone is full when no more fit.
    pub fn advance(&mut self, zone: u32, pages: u32) {
        self.table.advance(zone, pages);
        self.flash[zone as usize].programmed = self.table.get(zone).written;
    }

    pub fn pad(&mut self, zone: u32, pages: u32) {
        self.flash[zone as usize].programmed += pages;
    }

    pub fn close(&mut self, zone: u32) -> Result<(), ZoneStatus> {
        self.table.close(zone)
    }

    /// Makes a zone full. Returns whether the rest of it has to be padded: that of an empty zone
    /// has not.
    pub fn finish(&mut self, zone: u32) -> Result<bool, ZoneStatus> {
        self.table.finish(zone)
    }

    /// Empties a zone. Returns what it was; the group is no longer its.
    pub fn reset(&mut self, zone: u32) -> Result<Zone, ZoneStatus> {
        let before = self.get(zone);
        self.table.reset(zone)?;
        self.flash[zone as usize] = NO_FLASH;
        Ok(before)
    }

    /// As [`ZoneTable::power_lost`]. Returns the groups that become free.
    pub fn power_lost(&mut self) -> Vec<u32> {
        let (mut free, flash) = (Vec::new(), &mut self.flash);
        self.table.power_lost(|zone| {
            let before = std::mem::replace(&mut flash[zone as usize], NO_FLASH);
            free.extend((before.group != NONE).then_some(before.group));
        });
        free
    }

    pub fn state(&self) -> State<&[zone_table::Zone], impl Serialize + '_> {
        let (zones, clock) = self.table.state();
        (zones, clock, &self.flash)
    }

    /// Restores [`Zones::state`].
    ///
    /// # Errors
    /// A message, if it cannot be the state of these zones.
    pub fn restore(&mut self, from: &mut Loader<'_>, groups: u32) -> Result<(), String> {
        let (zones, clock, flash): State<Vec<zone_table::Zone>, Vec<ZoneFlash>> =
            from.take().map_err(|error| error.0)?;
        self.table.restore((zones, clock))?;
        if flash.len() != self.flash.len() {
            return Err("its zones have other flash".to_owned());
        }
        let wrong = |(zone, it): (u32, &ZoneFlash)| {
            let of = self.table.get(zone);
            // A random write area of a zone that is finished need not be programmed yet.
            (of.written > it.programmed && of.state != ZoneState::Full)
                || it.programmed > self.capacity_pages()
                || (it.group != NONE && it.group >= groups)
                || (it.programmed > 0 && it.group == NONE)
        };
        if let Some(at) = (0..).zip(&flash).position(wrong) {
            return Err(format!("zone {at} has pages or a group that it cannot have"));
        }
        self.flash = flash;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Saver;

    #[test]
    fn a_power_failure_frees_the_groups_of_zones_without_data() {
        let mut zones =
            Zones::new(5, ZoneLimits { random: None, capacity: 10, open_max: 3, active_max: 4 });
        for (zone, pages) in [(0, 4), (1, 0), (2, 10), (3, 0)] {
            zones.open(zone, true).expect("there is room");
            zones.assign(zone, zone + 7);
            zones.advance(zone, pages);
        }
        zones.close(3).expect("it is open");
        assert_eq!(zones.power_lost(), [8, 10]);
        assert_eq!((zones.get(0).group, zones.get(1).group), (7, NONE));
    }

    #[test]
    fn pages_without_a_group_are_not_restored() {
        let limits = ZoneLimits { random: None, capacity: 10, open_max: 3, active_max: 4 };
        let mut zones = Zones::new(2, limits);
        zones.open(0, true).expect("there is room");
        zones.assign(0, 1);
        zones.advance(0, 3);
        let restore = |zones: &Zones, groups| {
            let mut saver = Saver::default();
            saver.put(&zones.state());
            let bytes = saver.into_bytes();
            Zones::new(2, limits).restore(&mut Loader::new(&bytes), groups)
        };
        assert_eq!(restore(&zones, 5), Ok(()));
        assert!(restore(&zones, 1).is_err(), "the group does not exist");
        zones.assign(0, NONE);
        assert!(restore(&zones, 5).is_err());
    }
}
