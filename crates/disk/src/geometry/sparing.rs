//! Schemes of sparing: where a drive keeps spare sectors, and how it skews tracks with slips.

hybridsim_config::choices! {
    /// Schemes of sparing, by the names of DiskSim 4.0.
    pub(super) enum Scheme {
        None = "none",
        ZoneTracks = "zone-tracks",
        CylinderEnd = "cylinder-end",
        TrackEnd = "track-end",
        CylinderEndSlip = "cylinder-end-slip",
        CylinderFront = "cylinder-front",
        CylinderFrontSlip = "cylinder-front-slip",
        DiskEnd = "disk-end",
        CylinderRange = "cylinder-range",
        ZoneEnd = "zone-end",
        ZoneEndSlip = "zone-end-slip",
    }
}

/// The places of the spare sectors that a drive keeps for bad ones: the schemes of DiskSim 4.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sparing {
    /// Nowhere.
    #[default]
    None,
    /// Whole tracks at the end of each zone.
    ZoneTracks,
    /// Sectors at the end of each cylinder.
    CylinderEnd,
    /// Sectors at the end of each track.
    TrackEnd,
    /// Sectors at the front of each cylinder.
    CylinderFront,
    /// Sectors at the end of the drive.
    DiskEnd,
    /// Sectors at the end of each range of so many cylinders.
    CylinderRange(u32),
    /// Sectors at the end of each zone.
    ZoneEnd,
}

impl Sparing {
    /// The layout of `scheme`. Those that slip on demand lay sectors out as those that do not:
    /// they differ in what a drive does with the next bad sector, and drives here get none.
    pub(super) fn of(scheme: Scheme, range_cylinders: u32) -> Self {
        match scheme {
            Scheme::None => Self::None,
            Scheme::ZoneTracks => Self::ZoneTracks,
            Scheme::CylinderEnd | Scheme::CylinderEndSlip => Self::CylinderEnd,
            Scheme::TrackEnd => Self::TrackEnd,
            Scheme::CylinderFront | Scheme::CylinderFrontSlip => Self::CylinderFront,
            Scheme::DiskEnd => Self::DiskEnd,
            Scheme::CylinderRange => Self::CylinderRange(range_cylinders),
            Scheme::ZoneEnd | Scheme::ZoneEndSlip => Self::ZoneEnd,
        }
    }

    /// The first tracks of a zone, ascending, whose angles the slips before them push on, a sector
    /// each: where cylinders or tracks have spares of their own a drive skews from where the data
    /// of the one before end, as DiskSim has it.
    pub(super) fn pushed(self, slips: &[u64], track: u32, heads: u32) -> Vec<u32> {
        let (unit, tracks) = match self {
            Self::TrackEnd => (u64::from(track), 1),
            Self::CylinderEnd | Self::CylinderFront => {
                (u64::from(track) * u64::from(heads), u64::from(heads))
            }
            _ => return Vec::new(),
        };
        let first = |slip: &u64| u32::try_from((slip / unit + 1).saturating_mul(tracks));
        let mut pushed: Vec<u32> = slips.iter().filter_map(|slip| first(slip).ok()).collect();
        pushed.sort_unstable();
        pushed
    }

    /// Whether the empty space at the front of a zone is counted in sectors for data, spares left
    /// out: DiskSim's rule where tracks or cylinders have spares of their own.
    pub(super) fn reserves_data(self) -> bool {
        matches!(self, Self::TrackEnd | Self::CylinderEnd | Self::CylinderFront)
    }

    /// Sectors in a unit that has its own spares, in a zone of `all` sectors.
    pub(super) fn unit(self, track: u64, heads: u64, all: u64) -> u64 {
        match self {
            Self::TrackEnd => track,
            Self::CylinderEnd | Self::CylinderFront => track * heads,
            Self::CylinderRange(cylinders) => track * heads * u64::from(cylinders),
            Self::None | Self::ZoneTracks | Self::DiskEnd | Self::ZoneEnd => all,
        }
    }
}
