//! The order in which a zone's tracks are numbered.

use super::zone::Zone;
use crate::rotation::Angle;

hybridsim_config::choices! {
    /// Order of the tracks, without the parameters of [`Mapping`].
    pub(super) enum TrackOrder {
        Cylinder = "cylinder",
        Serpentine = "serpentine",
        SerpentineOdd = "serpentine-odd",
        Surface = "surface",
    }
}

/// The order of logical tracks over cylinders and surfaces within a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// All surfaces of a cylinder, then the next cylinder.
    Cylinder,
    /// As `Cylinder`, but every other cylinder of the zone takes the surfaces in reverse.
    Serpentine,
    /// As `Cylinder`, but cylinders with an odd number take the surfaces in reverse.
    SerpentineOdd,
    /// A band of so many cylinders on one surface, then back on the next surface; the next band
    /// takes the surfaces in reverse. What DIXtrac found in a Cheetah 15K.5 (bands of 65).
    Surface {
        /// Cylinders in a band.
        band: u32,
    },
}

/// The position of a logical track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub cylinder: u32,
    pub head: u32,
    pub start: Angle,
}

impl Mapping {
    /// Logical track number `track` of `zone`, with the angle of its first sector.
    #[inline]
    pub(super) fn track(self, zone: &Zone, heads: u32, track: u32) -> Track {
        match self {
            Self::Cylinder | Self::Serpentine | Self::SerpentineOdd => {
                let (cylinder, at) = (track / heads, track % heads);
                let reverse = match self {
                    Self::Serpentine => cylinder % 2 == 1,
                    Self::SerpentineOdd => (zone.first_cylinder + cylinder) % 2 == 1,
                    Self::Cylinder | Self::Surface { .. } => false,
                };
                let head = if reverse { heads - 1 - at } else { at };
                let start = zone.angle(cylinder * (heads - 1) + at, cylinder, 0);
                Track { cylinder: zone.first_cylinder + cylinder, head, start }
            }
            Self::Surface { band } => banded(zone, heads, band, track),
        }
    }
}

fn banded(zone: &Zone, heads: u32, band: u32, track: u32) -> Track {
    let (number, rest) = (track / (band * heads), track % (band * heads));
    let width = band.min(zone.cylinders - number * band);
    let (pass, position) = (rest / width, rest % width);
    let head = if number % 2 == 1 { heads - 1 - pass } else { pass };
    let at = if pass % 2 == 1 { width - 1 - position } else { position };
    let head_switches = number * (heads - 1) + pass;
    let cylinder_switches = number * heads * (band - 1) + pass * (width - 1) + position;
    let start = zone.angle(head_switches, cylinder_switches, number);
    Track { cylinder: zone.first_cylinder + number * band + at, head, start }
}
