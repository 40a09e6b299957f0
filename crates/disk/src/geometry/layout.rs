//! The layout: logical block address to cylinder, head and sector.

use super::address::PhysicalAddress;
use super::index::Index;
use super::interpolate;
use super::mapping::{Mapping, TrackOrder};
use super::pieces::{Piece, Pieces};
use super::ranges::Ranges;
use super::sparing::Sparing;
use super::zone::{Skew, SkewUnit, Zone, ZoneSpec};
use super::{Indexed, Interpolated, Parameters};
use hybridsim_config::param::Problem;
use hybridsim_engine::Lba;
use std::cell::Cell;

/// The order of all sectors of a drive.
#[derive(Clone, Debug)]
enum Tracks {
    Zones(Vec<Zone>, Mapping),
    Index(Index),
}

/// From block `from` on, block `from + n` is in sector `sector + n`, all of them in one zone.
#[derive(Clone, Copy, Debug)]
struct Run {
    from: u64,
    sector: u64,
    zone: u32,
}

/// Look-ups remembered: a drive looks up a command's address when the scheduler compares it, when
/// it starts, and when it reads ahead.
const RECENT: usize = 64;

/// Multiplying by it spreads neighbouring blocks over the look-ups remembered (Fibonacci hashing).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// All zones of a drive.
#[derive(Clone, Debug)]
pub struct Layout {
    tracks: Tracks,
    /// Which of the sectors hold data.
    runs: Vec<Run>,
    blocks: Ranges,
    /// Whether blocks ascend with the sectors of zones: then a track that has been left does not
    /// come again.
    ascends: bool,
    capacity: u64,
    heads: u32,
    cylinders: u32,
    /// The last blocks looked up, and where they are.
    recent: Vec<Cell<(u64, PhysicalAddress)>>,
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
        sparing: Sparing,
        sectors: Option<u64>,
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut zones: Vec<Zone> = Vec::with_capacity(specs.len());
        let (mut pieces, mut free_cylinder) = (Pieces::default(), 0);
        for (number, spec) in specs.iter().enumerate() {
            if spec.last_cylinder < spec.first_cylinder || spec.first_cylinder < free_cylinder {
                problems.push(Problem::new("zones", order_message(number, spec, free_cylinder)));
                continue;
            }
            free_cylinder = spec.last_cylinder + 1;
            let first = zones.last().map_or(0, |zone| zone.end);
            let zone = Zone::new(spec, heads, first, sparing);
            if let Err(what) = pieces.add_zone(spec, heads, zone.first, sparing) {
                problems.push(Problem::new("zones", format!("zone {number} has {what}")));
            }
            zones.push(zone);
        }
        if specs.is_empty() {
            problems.push(Problem::new("zones", "the list is empty; give at least one zone"));
        }
        let tracks = Tracks::Zones(zones, mapping);
        Self::finish(tracks, pieces, (heads, free_cylinder), sectors, problems)
    }

    fn finish(
        tracks: Tracks,
        pieces: Pieces,
        (heads, cylinders): (u32, u32),
        sectors: Option<u64>,
        mut problems: Vec<Problem>,
    ) -> Result<Self, Vec<Problem>> {
        let (mut pieces, blocks) = pieces.finish(&mut problems);
        if let Some(wanted) = sectors.filter(|wanted| problems.is_empty() && *wanted > blocks) {
            let message = format!("{wanted} sectors requested, but the zones hold only {blocks}");
            problems.push(Problem::new("sectors", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let capacity = sectors.unwrap_or(blocks);
        pieces.retain(|piece| piece.from < capacity);
        let (runs, ascends) = match &tracks {
            Tracks::Zones(zones, _) => {
                let follows = |it: &[Piece]| it[1].sector - it[0].sector >= it[1].from - it[0].from;
                let ascends =
                    pieces.is_sorted_by_key(|piece| piece.sector) && pieces.windows(2).all(follows);
                (by_zone(&pieces, zones, capacity), ascends)
            }
            Tracks::Index(_) => {
                let run = |&Piece { from, sector }: &Piece| Run { from, sector, zone: 0 };
                (pieces.iter().map(run).collect(), false)
            }
        };
        let blocks = Ranges::new(runs.iter().map(|run| run.from).collect(), capacity);
        let recent = vec![Cell::new((u64::MAX, PhysicalAddress::default())); RECENT];
        Ok(Self { tracks, runs, blocks, ascends, capacity, heads, cylinders, recent })
    }

    /// Reads the layout parameters of a drive.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read(params: &Parameters) -> Result<Self, Vec<Problem>> {
        let heads = params.heads;
        let sectors = params.sectors;
        let mut problems = Vec::new();
        if let Some(index) = Index::read(params, &mut problems) {
            let pieces = index_pieces(&params.indexed, &index, &mut problems);
            let size = (heads, index.cylinders);
            return Self::finish(Tracks::Index(index), pieces, size, sectors, problems);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let zoned = &params.zoned;
        let unit = zoned.skew_unit;
        let skew = Skew {
            track: zoned.track_skew,
            cylinder: zoned.cylinder_skew,
            band: zoned.band_skew.unwrap_or(zoned.cylinder_skew),
        };
        let mapping = match zoned.mapping {
            TrackOrder::Cylinder => Mapping::Cylinder,
            TrackOrder::Serpentine => Mapping::Serpentine,
            TrackOrder::SerpentineOdd => Mapping::SerpentineOdd,
            TrackOrder::Surface => Mapping::Surface { band: zoned.band_cylinders },
        };
        let specs = match &zoned.zones {
            Some(tables) => tables.iter().map(|zone| ZoneSpec::read(zone, unit, skew)).collect(),
            None => interpolated(&zoned.interpolated, unit, skew)?,
        };
        let sparing = Sparing::of(zoned.sparing, zoned.sparing_range_cylinders);
        Self::new(heads, &specs, mapping, sparing, sectors)
    }

    /// Sectors of data.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Cylinders, unused ones between zones included.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Surfaces.
    pub fn heads(&self) -> u32 {
        self.heads
    }

    /// Number of zones; 1 for a layout that is not described by zones.
    pub fn zones(&self) -> usize {
        match &self.tracks {
            Tracks::Zones(zones, ..) => zones.len(),
            Tracks::Index(_) => 1,
        }
    }

    /// Address of `lba`; an address beyond the end is taken for the last sector.
    #[inline]
    pub fn locate(&self, lba: Lba) -> PhysicalAddress {
        let block = lba.0.min(self.capacity - 1);
        let recent = &self.recent[(block.wrapping_mul(SPREAD) >> 32) as usize % RECENT];
        let (known, address) = recent.get();
        if known == block {
            return address;
        }
        let address = self.look_up(block);
        recent.set((block, address));
        address
    }

    fn look_up(&self, block: u64) -> PhysicalAddress {
        let (at, end) = self.blocks.find(block);
        let run = &self.runs[at];
        let (sector, left) = (run.sector + (block - run.from), end - block);
        match &self.tracks {
            Tracks::Zones(zones, mapping) => {
                self.in_zone(&zones[run.zone as usize], *mapping, sector, left, block)
            }
            Tracks::Index(index) => index.address(sector, left, block),
        }
    }

    #[inline]
    fn in_zone(
        &self,
        zone: &Zone,
        mapping: Mapping,
        sector: u64,
        left: u64,
        lba: u64,
    ) -> PhysicalAddress {
        let at = sector - zone.first;
        let per_track = u64::from(zone.sectors_per_track);
        // 32-bit division is several times faster on older processors.
        let (track, sector) = match u32::try_from(at) {
            Ok(at) => (at / zone.sectors_per_track, at % zone.sectors_per_track),
            Err(_) => ((at / per_track) as u32, (at % per_track) as u32),
        };
        let at = mapping.track(zone, self.heads, track);
        let left = u64::from(zone.sectors_per_track - sector).min(left);
        PhysicalAddress {
            cylinder: at.cylinder,
            head: at.head,
            sector,
            left_on_track: left as u32,
            track_start: at.start.wrapping_add(zone.push(track)),
            sector_angle: zone.sector,
            sectors_per_track: zone.sectors_per_track,
            next: lba + left,
        }
    }

    /// The place of the next block that does not just follow on the track of `address`: behind a
    /// bad sector of the same track, or on the next one; `None` at the end of the drive.
    #[inline]
    pub fn next_track(&self, address: &PhysicalAddress) -> Option<PhysicalAddress> {
        (address.next < self.capacity).then(|| self.locate(Lba(address.next)))
    }

    /// As [`Layout::next_track`], if it is on the same track.
    #[inline]
    pub fn next_on_track(&self, address: &PhysicalAddress) -> Option<PhysicalAddress> {
        let end = address.sector + address.left_on_track;
        if self.ascends && end == address.sectors_per_track {
            return None;
        }
        self.next_track(address).filter(|next| next.same_track(address))
    }
}

/// `pieces`, cut where zones begin, which is between tracks.
fn by_zone(pieces: &[Piece], zones: &[Zone], capacity: u64) -> Vec<Run> {
    let mut runs = Vec::with_capacity(pieces.len() + zones.len());
    for (number, &Piece { mut from, mut sector }) in pieces.iter().enumerate() {
        let end = pieces.get(number + 1).map_or(capacity, |next| next.from);
        while from < end {
            let zone = zones.partition_point(|zone| zone.end <= sector);
            runs.push(Run { from, sector, zone: zone as u32 });
            let sectors = zones[zone].end - sector;
            (from, sector) = (from + sectors, sector + sectors);
        }
    }
    runs
}

/// The data of a layout by index: all sectors but the slips, moved ones moved.
fn index_pieces(params: &Indexed, index: &Index, problems: &mut Vec<Problem>) -> Pieces {
    let mut pieces = Pieces::default();
    let slips = params.slips.as_deref().unwrap_or_default();
    let remaps = params.remaps.as_deref().unwrap_or_default();
    if !slips.len().is_multiple_of(2) {
        problems.push(Problem::new("slips", "is not a list of pairs"));
    }
    if !remaps.len().is_multiple_of(3) {
        problems.push(Problem::new("remaps", "is not a list of triples"));
    }
    let mut at = 0;
    for slip in slips.chunks_exact(2) {
        let end = slip[0].saturating_add(slip[1]);
        if slip[0] < at || end > index.sectors {
            let message = format!(
                "{} sectors at {}; slips ascend and lie within {} sectors",
                slip[1], slip[0], index.sectors
            );
            problems.push(Problem::new("slips", message));
            return pieces;
        }
        pieces.add(at, slip[0]);
        at = end;
    }
    pieces.add(at, index.sectors);
    for moved in remaps.chunks_exact(3) {
        let (block, count, sector) = (moved[0], moved[1], moved[2]);
        let to = sector.saturating_add(count);
        if to > index.sectors || block.saturating_add(count) > pieces.blocks || count > 1 << 20 {
            let message = format!("{count} blocks from {block} on, moved to {sector}: too far");
            problems.push(Problem::new("remaps", message));
            return pieces;
        }
        pieces.move_blocks(block, count, sector);
    }
    pieces
}

fn order_message(number: usize, spec: &ZoneSpec, free_cylinder: u32) -> String {
    format!(
        "zone {number} covers cylinders {} to {}; it must not end before it begins, and must \
         begin at cylinder {free_cylinder} or later",
        spec.first_cylinder, spec.last_cylinder
    )
}

fn interpolated(
    params: &Interpolated,
    unit: SkewUnit,
    skew: Skew,
) -> Result<Vec<ZoneSpec>, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut need = |name, value: Option<u32>| {
        if value.is_none() {
            problems.push(Problem::new(name, "needed when no `zones` are given"));
        }
        value.unwrap_or(1)
    };
    let cylinders = need("cylinders", params.cylinders);
    let outer = need("outer_sectors_per_track", params.outer_sectors_per_track);
    let inner = need("inner_sectors_per_track", params.inner_sectors_per_track);
    if problems.is_empty() {
        Ok(interpolate::zones(cylinders, params.zone_count, (outer, inner), unit, skew))
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
            Just(Mapping::SerpentineOdd),
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
                    ..ZoneSpec::default()
                }
            };
            zones.into_iter().map(spec).collect()
        })
    }

    proptest! {
        /// Every sector has one place, every place one sector, and tracks follow each other.
        #[test]
        fn the_layout_is_a_bijection(heads in 1u32..6, specs in specs(), mapping in mapping()) {
            let layout = Layout::new(heads, &specs, mapping, Sparing::None, None).unwrap();
            let mut addresses = std::collections::BTreeSet::new();
            for lba in 0..layout.capacity() {
                let address = layout.locate(Lba(lba));
                prop_assert!(addresses.insert((address.cylinder, address.head, address.sector)));
                prop_assert!(address.cylinder < layout.cylinders() && address.head < heads);
                prop_assert!(address.sector < address.sectors_per_track);
                let next = lba + u64::from(address.left_on_track);
                let expected = (next < layout.capacity()).then(|| layout.locate(Lba(next)));
                prop_assert_eq!(layout.next_track(&address), expected);
            }
            let all: u64 = specs.iter().map(|zone| {
                u64::from(zone.last_cylinder + 1 - zone.first_cylinder)
                    * u64::from(heads * zone.sectors_per_track) - zone.spare_sectors
            }).sum();
            prop_assert_eq!(layout.capacity(), all);
        }
    }

    #[test]
    fn the_next_blocks_of_a_track_are_found_with_slips_and_moved_sectors() {
        let sparings = [Sparing::None, Sparing::CylinderFront, Sparing::TrackEnd, Sparing::ZoneEnd];
        for (sparing, moved) in sparings.into_iter().flat_map(|it| [(it, false), (it, true)]) {
            let spares = if sparing == Sparing::None { 0 } else { 2 };
            let skew = Skew::default();
            let slips = if moved { vec![] } else { vec![3, 17, 30] };
            // The sector after the first track moves to the front of that track.
            let defects = if moved { vec![8, 0] } else { vec![] };
            let first = ZoneSpec { spares, slips, defects, ..zone(0, 3, skew) };
            let specs = [first, ZoneSpec { spares, ..zone(4, 6, skew) }];
            let layout = Layout::new(2, &specs, Mapping::Cylinder, sparing, None).unwrap();
            for lba in 0..layout.capacity() {
                let address = layout.locate(Lba(lba));
                let next = layout.next_track(&address).filter(|next| next.same_track(&address));
                assert_eq!(layout.next_on_track(&address), next, "{sparing:?} {moved} {lba}");
            }
        }
    }

    fn zone(first: u32, last: u32, skew: Skew) -> ZoneSpec {
        ZoneSpec {
            first_cylinder: first,
            last_cylinder: last,
            sectors_per_track: 8,
            skew,
            ..ZoneSpec::default()
        }
    }

    #[test]
    fn skews_add_up_along_the_tracks() {
        let skew = Skew { track: 0.125, cylinder: 0.25, band: 0.5 };
        let turns = |mapping, lba| {
            let layout = Layout::new(2, &[zone(0, 3, skew)], mapping, Sparing::None, None).unwrap();
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
    fn slips_push_on_the_tracks_behind_them() {
        let spec = ZoneSpec {
            last_cylinder: 2,
            sectors_per_track: 10,
            spares: 2,
            slips: vec![3, 7, 45],
            ..ZoneSpec::default()
        };
        let sectors = |sparing, lba| {
            let layout =
                Layout::new(2, std::slice::from_ref(&spec), Mapping::Cylinder, sparing, None);
            let address = layout.expect("a good layout").locate(Lba(lba));
            (address.cylinder, address.track_start / address.sector_angle)
        };
        // Eighteen blocks a cylinder: two slips in the first, the third in the last.
        assert_eq!(sectors(Sparing::CylinderEnd, 0), (0, 0));
        assert_eq!(sectors(Sparing::CylinderEnd, 18), (1, 2));
        assert_eq!(sectors(Sparing::CylinderEnd, 36), (2, 2));
        // Eight a track: the slip at 45 is on the fifth of six.
        assert_eq!(sectors(Sparing::TrackEnd, 8), (0, 2));
        assert_eq!(sectors(Sparing::TrackEnd, 40), (2, 3));
        assert_eq!(sectors(Sparing::ZoneEnd, 36), (1, 0));
    }

    #[test]
    fn bad_zones_are_all_reported() {
        let skew = Skew::default();
        let specs = [zone(0, 9, skew), zone(5, 12, skew), zone(14, 13, skew)];
        let problems = Layout::new(2, &specs, Mapping::Cylinder, Sparing::None, None).unwrap_err();
        assert_eq!(problems.len(), 2);
        assert!(problems[0].message.contains("must begin at cylinder 10"), "{}", problems[0]);
        let problems = Layout::new(2, &[], Mapping::Cylinder, Sparing::None, None).unwrap_err();
        assert!(problems[0].message.contains("empty"));
        let spec = [zone(0, 9, skew)];
        let problems =
            Layout::new(2, &spec, Mapping::Cylinder, Sparing::None, Some(161)).unwrap_err();
        assert!(problems[0].message.contains("hold only 160"), "{}", problems[0]);
        assert_eq!(
            Layout::new(2, &spec, Mapping::Cylinder, Sparing::None, Some(159)).unwrap().capacity(),
            159
        );
    }
}
