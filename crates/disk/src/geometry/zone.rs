//! Zones: cylinders that share a number of sectors per track, and how they are described.

use super::sparing::Sparing;
use crate::rotation::{Angle, angle_of_turns};
use hybridsim_config::param::{Kind, Settings};

/// Most sectors a track may have.
pub const SECTORS_PER_TRACK_MAX: u64 = 1 << 16;
/// Most cylinders a drive may have.
pub const CYLINDERS_MAX: u64 = 1 << 22;
/// Most surfaces a drive may have.
pub const HEADS_MAX: u64 = 64;

const CYLINDER: Kind = Kind::Count { min: 0, max: CYLINDERS_MAX - 1 };
const SECTORS: Kind = Kind::Count { min: 0, max: 1 << 40 };
const SKEW: Kind = Kind::Number { min: 0.0, max: SECTORS_PER_TRACK_MAX as f64 };

hybridsim_config::params! {
    pub(super) struct Parameters {
        first_cylinder: u32 = CYLINDER, required, "First cylinder of the zone.";
        last_cylinder: u32 = CYLINDER, required, "Last cylinder of the zone.";
        sectors_per_track: u32 = Kind::Count { min: 1, max: SECTORS_PER_TRACK_MAX }, required,
            "Sectors of 512 bytes on each of its tracks.";
        track_skew: Option<f64> = SKEW, optional, "As the drive's `track_skew`, for this zone.";
        cylinder_skew: Option<f64> = SKEW, optional,
            "As the drive's `cylinder_skew`, for this zone.";
        band_skew: Option<f64> = SKEW, optional, "As the drive's `band_skew`, for this zone.";
        spare_sectors: u64 = SECTORS, default "0",
            "Sectors at the end of the zone that hold no data.";
        reserved_sectors: u64 = SECTORS, default "0",
            "Sectors at the front of the zone that hold no data of the host; where tracks or \
             cylinders have `spares`, these are not counted.";
        first_sector_offset: f64 = SKEW, default "0",
            "Angle of the zone's first sector, in the unit of the skews.";
        spares: u64 = SECTORS, default "0",
            "Spare sectors in each unit of the drive's `sparing`; tracks for `zone-tracks`.";
        slips: Option<Vec<u64>> = Kind::Counts, optional,
            "Bad sectors that are left out, counted from the first sector of the zone.";
        defects: Option<Vec<u64>> = Kind::Counts, optional,
            "Bad sectors that were moved, in pairs: the sector, and the spare one that holds its \
             data, both counted from the first sector of the zone.";
    }
}

/// A zone as described.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ZoneSpec {
    pub first_cylinder: u32,
    pub last_cylinder: u32,
    pub sectors_per_track: u32,
    /// Skews between neighbouring tracks.
    pub skew: Skew,
    /// Angle of the first sector, in turns.
    pub offset: f64,
    /// Unused sectors at the front.
    pub reserved_sectors: u64,
    /// Unused sectors at the end.
    pub spare_sectors: u64,
    /// Spare sectors (or tracks) in each unit of the sparing scheme.
    pub spares: u64,
    /// Sectors left out, from the start of the zone.
    pub slips: Vec<u64>,
    /// Sectors moved and where to, alternating, from the start of the zone.
    pub defects: Vec<u64>,
}

/// Turn of the first sector of the next track, so that it is not missed while the head gets there.
/// In turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skew {
    /// Applies where only the surface changes.
    pub track: f64,
    /// Applies where the cylinder changes.
    pub cylinder: f64,
    /// Applies where a band of cylinders is left for the next (mapping `surface`).
    pub band: f64,
}

hybridsim_config::choices! {
    /// The unit skews are written in.
    pub enum SkewUnit {
        Sectors = "sectors",
        /// Fractions of a revolution.
        Turns = "turns",
    }
}

impl SkewUnit {
    /// `skew` in turns, on tracks of `sectors_per_track`.
    pub fn turns(self, skew: f64, sectors_per_track: u32) -> f64 {
        match self {
            Self::Sectors => skew / f64::from(sectors_per_track),
            Self::Turns => skew,
        }
    }
}

impl ZoneSpec {
    /// Reads one entry of `zones`; skews it leaves out come from `default`, in the same unit.
    pub fn read(settings: &Settings, unit: SkewUnit, default: Skew) -> Self {
        let params = Parameters::from_settings(settings);
        let sectors_per_track = params.sectors_per_track;
        let skew =
            |own: Option<f64>, default| unit.turns(own.unwrap_or(default), sectors_per_track);
        Self {
            first_cylinder: params.first_cylinder,
            last_cylinder: params.last_cylinder,
            sectors_per_track,
            skew: Skew {
                track: skew(params.track_skew, default.track),
                cylinder: skew(params.cylinder_skew, default.cylinder),
                band: skew(params.band_skew, default.band),
            },
            offset: unit.turns(params.first_sector_offset, sectors_per_track),
            reserved_sectors: params.reserved_sectors,
            spare_sectors: params.spare_sectors,
            spares: params.spares,
            slips: params.slips.unwrap_or_default(),
            defects: params.defects.unwrap_or_default(),
        }
    }
}

/// A zone made ready for look-ups.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    /// The first sector of the zone, all sectors of the drive being counted.
    pub first: u64,
    /// First sector after the zone.
    pub end: u64,
    pub first_cylinder: u32,
    pub cylinders: u32,
    pub sectors_per_track: u32,
    /// The angle a sector takes up, rounded down.
    pub sector: Angle,
    offset: Angle,
    track_skew: Angle,
    cylinder_skew: Angle,
    band_skew: Angle,
    /// The first tracks that are pushed on by one more slip.
    pushed: Vec<u32>,
}

impl Zone {
    pub fn new(spec: &ZoneSpec, heads: u32, first: u64, sparing: Sparing) -> Self {
        let cylinders = spec.last_cylinder - spec.first_cylinder + 1;
        let sectors = u64::from(cylinders) * u64::from(heads) * u64::from(spec.sectors_per_track);
        Self {
            first,
            end: first + sectors,
            first_cylinder: spec.first_cylinder,
            cylinders,
            sectors_per_track: spec.sectors_per_track,
            sector: sector_angle(spec.sectors_per_track),
            offset: angle_of_turns(spec.offset),
            track_skew: angle_of_turns(spec.skew.track),
            cylinder_skew: angle_of_turns(spec.skew.cylinder),
            band_skew: angle_of_turns(spec.skew.band),
            pushed: sparing.pushed(&spec.slips, spec.sectors_per_track, heads),
        }
    }

    /// The angle by which slips move `track`.
    #[inline]
    pub fn push(&self, track: u32) -> Angle {
        if self.pushed.is_empty() {
            return 0;
        }
        let slips = self.pushed.partition_point(|&first| first <= track);
        self.sector.wrapping_mul(slips as u64)
    }

    /// The angle of the first sector of the track reached from the zone's first track by so many
    /// switches of each kind.
    #[inline]
    pub fn angle(&self, head_switches: u32, cylinder_switches: u32, band_switches: u32) -> Angle {
        let times = |skew: Angle, n: u32| skew.wrapping_mul(u64::from(n));
        times(self.track_skew, head_switches)
            .wrapping_add(times(self.cylinder_skew, cylinder_switches))
            .wrapping_add(times(self.band_skew, band_switches))
            .wrapping_add(self.offset)
    }
}

/// The angle of one of `sectors_per_track` sectors, rounded down.
pub(crate) fn sector_angle(sectors_per_track: u32) -> Angle {
    ((1u128 << 64) / u128::from(sectors_per_track)).min(u64::MAX.into()) as u64
}
