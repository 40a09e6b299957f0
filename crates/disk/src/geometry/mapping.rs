//! The order in which a zone's tracks are numbered.

use super::zone::Zone;
use crate::rotation::Angle;

/// How logical tracks run over cylinders and surfaces within a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// All surfaces of a cylinder, then the next cylinder.
    Cylinder,
    /// As `Cylinder`, but every other cylinder takes the surfaces in reverse.
    Serpentine,
    /// A band of so many cylinders on one surface, then back on the next surface; the next band
    /// takes the surfaces in reverse. What DIXtrac found in a Cheetah 15K.5 (bands of 65).
    Surface {
        /// Cylinders in a band.
        band: u32,
    },
}

/// Where a logical track is.
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
            Self::Cylinder | Self::Serpentine => {
                let (cylinder, at) = (track / heads, track % heads);
                let reverse = self == Self::Serpentine && cylinder % 2 == 1;
                let head = if reverse { heads - 1 - at } else { at };
                let start = zone.angle(cylinder * (heads - 1) + at, cylinder, 0);
                Track { cylinder: zone.first_cylinder + cylinder, head, start }
            }
            Self::Surface { band } => banded(zone, heads, band, track),
        }
    }

    /// The logical track of `zone` at this cylinder (counted from the zone's first) and head.
    pub(super) fn logical(self, zone: &Zone, heads: u32, cylinder: u32, head: u32) -> u32 {
        match self {
            Self::Cylinder => cylinder * heads + head,
            Self::Serpentine if cylinder % 2 == 1 => cylinder * heads + heads - 1 - head,
            Self::Serpentine => cylinder * heads + head,
            Self::Surface { band } => {
                let (number, at) = (cylinder / band, cylinder % band);
                let width = band.min(zone.cylinders - number * band);
                let pass = if number % 2 == 1 { heads - 1 - head } else { head };
                let position = if pass % 2 == 1 { width - 1 - at } else { at };
                number * band * heads + pass * width + position
            }
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
