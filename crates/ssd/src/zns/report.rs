//! Reports of zones.

use super::translation::ZoneTranslation;
use hybridsim_engine::zone_table::ZoneLimits;
use hybridsim_engine::{RandomWriteAreas, ZoneInfo, ZoneLayout, Zoned};

impl Zoned for ZoneTranslation {
    fn layout(&self) -> ZoneLayout {
        let page = self.sectors_per_page();
        let limit = |most: u32| (most != u32::MAX).then_some(most);
        let ZoneLimits { open_max, active_max, random, .. } = *self.zones.table().limits();
        ZoneLayout {
            first: 0,
            zones: self.zones.len().into(),
            size: self.zone_sectors,
            capacity: u64::from(self.zones.capacity_pages()) * page,
            page,
            open_max: limit(open_max),
            active_max: limit(active_max),
            in_order_only: true,
            random: random.map(|area| RandomWriteAreas {
                size: area.size * page as u32,
                granularity: area.granularity * page as u32,
                ..area
            }),
        }
    }

    fn zone(&self, zone: u64) -> ZoneInfo {
        let zone = self.zones.get(zone as u32);
        let written = u64::from(zone.written) * self.sectors_per_page();
        ZoneInfo { state: zone.state, written, is_random: zone.is_random }
    }

    fn active(&self) -> (u32, u32) {
        (self.zones.open_count() as u32, self.zones.table().active_count())
    }
}
