//! Zones: cylinders that share a number of sectors per track, and how they are described.

use super::spares::Sparing;
use crate::rotation::{Angle, angle_of_turns};
use hybridsim_config::param::{Kind, Param, Settings};

/// Most sectors a track may have.
pub const SECTORS_PER_TRACK_MAX: u64 = 1 << 16;
/// Most cylinders a drive may have.
pub const CYLINDERS_MAX: u64 = 1 << 22;
/// Most surfaces a drive may have.
pub const HEADS_MAX: u64 = 64;

const CYLINDER: Kind = Kind::Count { min: 0, max: CYLINDERS_MAX - 1 };
const SECTORS: Kind = Kind::Count { min: 0, max: 1 << 40 };
const SKEW: Kind = Kind::Number { min: 0.0, max: SECTORS_PER_TRACK_MAX as f64 };

/// Parameters of one entry of `zones`.
pub const PARAMS: &[Param] = &[
    Param::required("first_cylinder", CYLINDER, "First cylinder of the zone."),
    Param::required("last_cylinder", CYLINDER, "Last cylinder of the zone."),
    Param::required(
        "sectors_per_track",
        Kind::Count { min: 1, max: SECTORS_PER_TRACK_MAX },
        "Sectors of 512 bytes on each of its tracks.",
    ),
    Param::optional("track_skew", SKEW, "As the drive's `track_skew`, for this zone."),
    Param::optional("cylinder_skew", SKEW, "As the drive's `cylinder_skew`, for this zone."),
    Param::optional("band_skew", SKEW, "As the drive's `band_skew`, for this zone."),
    Param::with("spare_sectors", SECTORS, "0", "Sectors at the end of the zone that hold no data."),
    Param::with(
        "reserved_sectors",
        SECTORS,
        "0",
        "Sectors at the front of the zone that hold no data of the host; where tracks or \
         cylinders have `spares`, these are not counted.",
    ),
    Param::with(
        "first_sector_offset",
        SKEW,
        "0",
        "Angle of the zone's first sector, in the unit of the skews.",
    ),
    Param::with(
        "spares",
        SECTORS,
        "0",
        "Spare sectors in each unit of the drive's `sparing`; tracks for `zone-tracks`.",
    ),
    Param::optional(
        "slips",
        Kind::Counts,
        "Bad sectors that are left out, counted from the first sector of the zone.",
    ),
    Param::optional(
        "defects",
        Kind::Counts,
        "Bad sectors that were moved, in pairs: the sector, and the spare one that holds its \
         data, both counted from the first sector of the zone.",
    ),
];

/// A zone as described.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ZoneSpec {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Sectors on each track.
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

/// How far the first sector of the next track is turned, so that it is not missed while the head
/// gets there. In turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skew {
    /// When only the surface changes.
    pub track: f64,
    /// When the cylinder changes.
    pub cylinder: f64,
    /// When a band of cylinders is left for the next (mapping `surface`).
    pub band: f64,
}

/// The unit skews are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkewUnit {
    /// Sectors of the zone.
    Sectors,
    /// Fractions of a revolution.
    Turns,
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
        let sectors_per_track = settings.count("sectors_per_track") as u32;
        let skew = |name, default| {
            unit.turns(settings.number_opt(name).unwrap_or(default), sectors_per_track)
        };
        Self {
            first_cylinder: settings.count("first_cylinder") as u32,
            last_cylinder: settings.count("last_cylinder") as u32,
            sectors_per_track,
            skew: Skew {
                track: skew("track_skew", default.track),
                cylinder: skew("cylinder_skew", default.cylinder),
                band: skew("band_skew", default.band),
            },
            offset: skew("first_sector_offset", 0.0),
            reserved_sectors: settings.count("reserved_sectors"),
            spare_sectors: settings.count("spare_sectors"),
            spares: settings.count("spares"),
            slips: settings.counts_opt("slips").unwrap_or_default().to_vec(),
            defects: settings.counts_opt("defects").unwrap_or_default().to_vec(),
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

    /// How far slips push `track` on.
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
