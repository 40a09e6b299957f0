//! Reports of zones.

use super::translation::ZoneTranslation;
use hybridsim_engine::{ZoneInfo, ZoneLayout, Zoned};

impl Zoned for ZoneTranslation {
    fn layout(&self) -> ZoneLayout {
        let page = self.sectors_per_page();
        let limit = |most: u32| (most != u32::MAX).then_some(most);
        let [open_max, active_max] = self.zones.limits().map(limit);
        ZoneLayout {
            zones: self.zones.len().into(),
            size: self.zone_sectors,
            capacity: u64::from(self.zones.capacity_pages()) * page,
            page,
            open_max,
            active_max,
        }
    }

    fn zone(&self, zone: u64) -> ZoneInfo {
        let zone = self.zones.get(zone as u32);
        let written = u64::from(zone.written) * self.sectors_per_page();
        ZoneInfo { state: zone.state, written }
    }

    fn active(&self) -> (u32, u32) {
        (self.zones.open_count() as u32, self.zones.active_count())
    }
}
