//! Physical addresses: cylinder, head, sector and angle.

use crate::rotation::Angle;
use serde::{Deserialize, Serialize};

/// The position of a sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalAddress {
    /// Cylinder, from the outer edge.
    pub cylinder: u32,
    /// Surface.
    pub head: u32,
    /// Sector on the track; equal to the sectors per track just behind the last one.
    pub sector: u32,
    /// Sectors of data from this one on that follow each other on the track.
    pub left_on_track: u32,
    /// The angle of the track's first sector.
    pub track_start: Angle,
    /// The angle a sector takes up.
    pub sector_angle: Angle,
    pub sectors_per_track: u32,
    /// The block after those on the track.
    pub(super) next: u64,
}

impl PhysicalAddress {
    /// The angle at which this sector begins.
    #[inline]
    pub fn angle(&self) -> Angle {
        self.track_start.wrapping_add(u64::from(self.sector).wrapping_mul(self.sector_angle))
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
    #[inline]
    pub fn same_track(&self, other: &Self) -> bool {
        self.cylinder == other.cylinder && self.head == other.head
    }
}
