//! The layout: logical block address to cylinder, head and sector, and back.

use super::interpolate;
use super::mapping::Mapping;
use super::zone::{Skew, SkewUnit, Zone, ZoneSpec};
use crate::rotation::Angle;
use hybridsim_engine::Lba;
use hybridsim_engine::param::{Problem, Settings};

/// Where a sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cylinder, from the outer edge.
    pub cylinder: u32,
    /// Surface.
    pub head: u32,
    /// Sector on the track; equal to the sectors per track just behind the last one.
    pub sector: u32,
    /// Sectors of data from this one to the end of the track.
    pub left_on_track: u32,
    /// The angle of the track's first sector.
    pub track_start: Angle,
    /// The angle a sector takes up.
    pub sector_angle: Angle,
    zone: u32,
    track: u32,
}

impl Place {
    /// The angle at which this sector begins.
    #[inline]
    pub fn angle(&self) -> Angle {
        self.track_start.wrapping_add(u64::from(self.sector) * self.sector_angle)
    }

    /// The place `sectors` further on the same track.
    #[inline]
    #[must_use]
    pub fn skip(mut self, sectors: u32) -> Self {
        self.sector += sectors;
        self.left_on_track -= sectors;
        self
    }

    /// Whether `other` is on the same track.
    pub fn same_track(&self, other: &Self) -> bool {
        self.cylinder == other.cylinder && self.head == other.head
    }
}

/// All zones of a drive.
#[derive(Clone, Debug)]
pub struct Layout {
    zones: Vec<Zone>,
    heads: u32,
    cylinders: u32,
    mapping: Mapping,
}

impl Layout {
    /// A drive of `heads` surfaces with `zones` in order of their cylinders; `sectors` cuts it to
    /// a smaller capacity.
    ///
    /// # Errors
    /// Everything that is wrong with the zones.
    pub fn new(
        heads: u32,
        specs: &[ZoneSpec],
        mapping: Mapping,
        sectors: Option<u64>,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut zones = Vec::with_capacity(specs.len());
        let (mut lba, mut free_cylinder) = (0, 0);
        for (number, spec) in specs.iter().enumerate() {
            if spec.last_cylinder < spec.first_cylinder || spec.first_cylinder < free_cylinder {
                problems.push(Problem::new("zones", order_message(number, spec, free_cylinder)));
                continue;
            }
            free_cylinder = spec.last_cylinder + 1;
            let cylinders = u64::from(free_cylinder - spec.first_cylinder);
            let all = cylinders * u64::from(heads) * u64::from(spec.sectors_per_track);
            if spec.spare_sectors >= all {
                let message = format!(
                    "zone {number} has {all} sectors, of which {} are spare; none is left",
                    spec.spare_sectors
                );
                problems.push(Problem::new("zones", message));
                continue;
            }
            zones.push(Zone::new(spec, lba, all - spec.spare_sectors));
            lba += all - spec.spare_sectors;
        }
        if specs.is_empty() {
            problems.push(Problem::new("zones", "the list is empty; give at least one zone"));
        }
        if let Some(wanted) = sectors.filter(|wanted| problems.is_empty() && *wanted > lba) {
            let message = format!("{wanted} sectors asked for, but the zones hold only {lba}");
            problems.push(Problem::new("sectors", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        cut(&mut zones, sectors.unwrap_or(lba));
        Ok(Self { zones, heads, cylinders: free_cylinder, mapping })
    }

    /// Reads the layout parameters of a drive.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn read(settings: &Settings) -> Result<Self, Vec<Problem>> {
        let unit = match settings.text("skew_unit") {
            "turns" => SkewUnit::Turns,
            _ => SkewUnit::Sectors,
        };
        let skew = Skew {
            track: settings.number("track_skew"),
            cylinder: settings.number("cylinder_skew"),
            band: settings.number_opt("band_skew").unwrap_or(settings.number("cylinder_skew")),
        };
        let mapping = match settings.text("mapping") {
            "surface" => Mapping::Surface { band: settings.count("band_cylinders") as u32 },
            "serpentine" => Mapping::Serpentine,
            _ => Mapping::Cylinder,
        };
        let specs = match settings.tables_opt("zones") {
            Some(tables) => tables.iter().map(|zone| ZoneSpec::read(zone, unit, skew)).collect(),
            None => interpolated(settings, unit, skew)?,
        };
        let heads = settings.count("heads") as u32;
        Self::new(heads, &specs, mapping, settings.count_opt("sectors"))
    }

    /// Sectors of data.
    pub fn capacity(&self) -> u64 {
        self.zones.last().map_or(0, |zone| zone.end_lba)
    }

    /// Cylinders, unused ones between zones included.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Surfaces.
    pub fn heads(&self) -> u32 {
        self.heads
    }

    /// Number of zones.
    pub fn zones(&self) -> usize {
        self.zones.len()
    }

    /// Where `lba` is; an address beyond the end is taken for the last sector.
    #[inline]
    pub fn locate(&self, lba: Lba) -> Place {
        let lba = lba.0.min(self.capacity() - 1);
        let number = self.zones.partition_point(|zone| zone.end_lba <= lba);
        let zone = &self.zones[number];
        let at = lba - zone.first_lba;
        let per_track = u64::from(zone.sectors_per_track);
        // 32-bit division is several times faster on older processors.
        let (track, sector) = match u32::try_from(at) {
            Ok(at) => (at / zone.sectors_per_track, at % zone.sectors_per_track),
            Err(_) => ((at / per_track) as u32, (at % per_track) as u32),
        };
        self.place(number, track, sector, zone.end_lba - lba)
    }

    /// The first sector of the track after that of `place`; `None` at the end of the drive.
    #[inline]
    pub fn next_track(&self, place: &Place) -> Option<Place> {
        let zone = &self.zones[place.zone as usize];
        let used = u64::from(place.track + 1) * u64::from(zone.sectors_per_track);
        let sectors = zone.end_lba - zone.first_lba;
        if used < sectors {
            return Some(self.place(place.zone as usize, place.track + 1, 0, sectors - used));
        }
        let next = self.zones.get(place.zone as usize + 1)?;
        Some(self.place(place.zone as usize + 1, 0, 0, next.end_lba - next.first_lba))
    }

    /// The sector at `cylinder`, `head`, `sector`; `None` where there is no data.
    pub fn lba_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<Lba> {
        let after = self.zones.partition_point(|zone| zone.first_cylinder <= cylinder);
        let zone = &self.zones[after.checked_sub(1)?];
        let at = cylinder - zone.first_cylinder;
        if at >= zone.cylinders || head >= self.heads || sector >= zone.sectors_per_track {
            return None;
        }
        let track = self.mapping.logical(zone, self.heads, at, head);
        let offset = u64::from(track) * u64::from(zone.sectors_per_track) + u64::from(sector);
        let lba = zone.first_lba + offset;
        (lba < zone.end_lba).then_some(Lba(lba))
    }

    #[inline]
    fn place(&self, number: usize, track: u32, sector: u32, left_in_zone: u64) -> Place {
        let zone = &self.zones[number];
        let at = self.mapping.track(zone, self.heads, track);
        let left = u64::from(zone.sectors_per_track - sector).min(left_in_zone);
        Place {
            cylinder: at.cylinder,
            head: at.head,
            sector,
            left_on_track: left as u32,
            track_start: at.start,
            sector_angle: zone.sector,
            zone: number as u32,
            track,
        }
    }
}

fn order_message(number: usize, spec: &ZoneSpec, free_cylinder: u32) -> String {
    format!(
        "zone {number} covers cylinders {} to {}; it must not end before it begins, and must \
         begin at cylinder {free_cylinder} or later",
        spec.first_cylinder, spec.last_cylinder
    )
}

/// Cuts the zones to `capacity` sectors.
fn cut(zones: &mut Vec<Zone>, capacity: u64) {
    zones.retain(|zone| zone.first_lba < capacity);
    if let Some(last) = zones.last_mut() {
        last.end_lba = last.end_lba.min(capacity);
    }
}

fn interpolated(
    settings: &Settings,
    unit: SkewUnit,
    skew: Skew,
) -> Result<Vec<ZoneSpec>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut need = |name: &'static str| {
        let value = settings.count_opt(name);
        if value.is_none() {
            problems.push(Problem::new(name, "needed when no `zones` are given"));
        }
        value.unwrap_or(1) as u32
    };
    let cylinders = need("cylinders");
    let density = (need("outer_sectors_per_track"), need("inner_sectors_per_track"));
    if problems.is_empty() {
        let count = settings.count("zone_count") as u32;
        Ok(interpolate::zones(cylinders, count, density, unit, skew))
    } else {
        Err(problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapping() -> impl Strategy<Value = Mapping> {
        prop_oneof![
            Just(Mapping::Cylinder),
            Just(Mapping::Serpentine),
            (1u32..9).prop_map(|band| Mapping::Surface { band }),
        ]
    }

    /// Zones of (unused cylinders before, cylinders, sectors per track, spare sectors).
    fn specs() -> impl Strategy<Value = Vec<ZoneSpec>> {
        prop::collection::vec((0u32..3, 1u32..20, 1u32..30, 0u64..20), 1..6).prop_map(|zones| {
            let mut free = 0;
            let spec = |(gap, cylinders, sectors_per_track, spare): (u32, u32, u32, u64)| {
                let first_cylinder = free + gap;
                free = first_cylinder + cylinders;
                let all = u64::from(cylinders) * u64::from(sectors_per_track);
                ZoneSpec {
                    first_cylinder,
                    last_cylinder: free - 1,
                    sectors_per_track,
                    skew: Skew { track: 0.1, cylinder: 0.3, band: 0.2 },
                    spare_sectors: spare.min(all - 1),
                }
            };
            zones.into_iter().map(spec).collect()
        })
    }

    proptest! {
        /// Every sector has one place, every place one sector, and tracks follow each other.
        #[test]
        fn the_layout_is_a_bijection(heads in 1u32..6, specs in specs(), mapping in mapping()) {
            let layout = Layout::new(heads, &specs, mapping, None).unwrap();
            let mut places = std::collections::BTreeSet::new();
            for lba in 0..layout.capacity() {
                let place = layout.locate(Lba(lba));
                prop_assert!(places.insert((place.cylinder, place.head, place.sector)));
                prop_assert!(place.cylinder < layout.cylinders() && place.head < heads);
                let back = layout.lba_at(place.cylinder, place.head, place.sector);
                prop_assert_eq!(back, Some(Lba(lba)));
                let next = lba + u64::from(place.left_on_track);
                let expected = (next < layout.capacity()).then(|| layout.locate(Lba(next)));
                prop_assert_eq!(layout.next_track(&place), expected);
            }
            let all: u64 = specs.iter().map(|zone| {
                u64::from(zone.last_cylinder + 1 - zone.first_cylinder)
                    * u64::from(heads * zone.sectors_per_track) - zone.spare_sectors
            }).sum();
            prop_assert_eq!(layout.capacity(), all);
        }
    }

    fn zone(first: u32, last: u32, skew: Skew) -> ZoneSpec {
        ZoneSpec {
            first_cylinder: first,
            last_cylinder: last,
            sectors_per_track: 8,
            skew,
            spare_sectors: 0,
        }
    }

    #[test]
    fn skews_add_up_along_the_tracks() {
        let skew = Skew { track: 0.125, cylinder: 0.25, band: 0.5 };
        let turns = |mapping, lba| {
            let layout = Layout::new(2, &[zone(0, 3, skew)], mapping, None).unwrap();
            layout.locate(Lba(lba)).angle() as f64 / 2f64.powi(64)
        };
        let check = |mapping, expect: [f64; 8]| {
            let got: Vec<f64> = (0..8).map(|track| turns(mapping, track * 8)).collect();
            assert_eq!(got, expect, "{mapping:?}");
        };
        check(Mapping::Cylinder, [0.0, 0.125, 0.375, 0.5, 0.75, 0.875, 0.125, 0.25]);
        check(Mapping::Serpentine, [0.0, 0.125, 0.375, 0.5, 0.75, 0.875, 0.125, 0.25]);
        let surface = Mapping::Surface { band: 2 };
        check(surface, [0.0, 0.25, 0.375, 0.625, 0.125, 0.375, 0.5, 0.75]);
        assert_eq!(turns(Mapping::Cylinder, 3), 0.375);
    }

    #[test]
    fn bad_zones_are_all_reported() {
        let skew = Skew::default();
        let specs = [zone(0, 9, skew), zone(5, 12, skew), zone(14, 13, skew)];
        let problems = Layout::new(2, &specs, Mapping::Cylinder, None).unwrap_err();
        assert_eq!(problems.len(), 2);
        assert!(problems[0].message.contains("must begin at cylinder 10"), "{}", problems[0]);
        let problems = Layout::new(2, &[], Mapping::Cylinder, None).unwrap_err();
        assert!(problems[0].message.contains("empty"));
        let spec = [zone(0, 9, skew)];
        let problems = Layout::new(2, &spec, Mapping::Cylinder, Some(161)).unwrap_err();
        assert!(problems[0].message.contains("hold only 160"), "{}", problems[0]);
        assert_eq!(Layout::new(2, &spec, Mapping::Cylinder, Some(159)).unwrap().capacity(), 159);
    }
}
