//! Device data that a host can read besides its sectors: reports of zones, and health.

use serde::{Deserialize, Serialize};

/// The state of a zone (NVMe Zoned Namespace Command Set, Zone State Machine).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ZoneState {
    /// Nothing is written since the last reset.
    Empty,
    /// Opened by a write.
    ImplicitlyOpen,
    /// Opened by the host.
    ExplicitlyOpen,
    /// Active, but not open.
    Closed,
    /// Written to its capacity, or finished.
    Full,
    /// No flash that is not worn out is left for it.
    Offline,
}

/// A zone in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// State of the zone.
    pub state: ZoneState,
    /// Sectors between the start of the zone and its write pointer.
    pub written: u64,
    /// Presence of a random write area (ZRWA).
    pub is_random: bool,
}

/// The zones of a device, in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneLayout {
    /// Sectors before the first zone that can be written anywhere: conventional zones.
    pub first: u64,
    /// Number of zones.
    pub zones: u64,
    /// Distance between the starts of two zones.
    pub size: u64,
    /// Sectors of a zone that can be written.
    pub capacity: u64,
    /// Writes begin and end at multiples of this.
    pub page: u64,
    /// Most zones that are open at a time, if there is a limit.
    pub open_max: Option<u32>,
    /// Most zones that are open or closed at a time, if there is a limit.
    pub active_max: Option<u32>,
    /// Whether writes that do not begin at the write pointer are refused, but for those within a
    /// random write area.
    pub in_order_only: bool,
    /// The random write areas that zones may have, if the device has any.
    pub random: Option<RandomWriteAreas>,
}

/// Random write areas (ZRWA; NVMe TP 4076): from the write pointer on, an open zone with one takes
/// writes in any order, and writes of what is written, in the memory of the device.
///
/// Sizes are in sectors, or in the units of a [`crate::zone_table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomWriteAreas {
    /// Size of an area (ZRWASZ).
    pub size: u32,
    /// The write pointer moves by multiples of this (ZRWAFG), or to the end of the zone.
    pub granularity: u32,
    /// Most zones with an area at a time (NUMZRWA).
    pub zones_max: u32,
}

impl RandomWriteAreas {
    /// Whether a write of the range from `first` to `end` fits a zone whose write pointer is at
    /// `written`: what is beyond the area moves it.
    pub const fn fits(&self, written: u64, first: u64, end: u64) -> bool {
        first >= written && end <= written + 2 * self.size as u64
    }

    /// The write pointer of a zone of `capacity` after a write that ends at `end`: as far from
    /// `written` that the area contains the write.
    pub fn moved_by(&self, written: u64, end: u64, capacity: u64) -> u64 {
        let (size, step) = (u64::from(self.size), u64::from(self.granularity));
        let beyond = end.saturating_sub(written + size);
        (written + beyond.div_ceil(step) * step).min(capacity)
    }

    /// Whether the write pointer may be moved from `written` to `to` in a zone of `capacity`.
    pub fn may_commit(&self, written: u64, to: u64, capacity: u64) -> bool {
        let moves = written < to && to - written <= self.size.into() && to <= capacity;
        moves && (to == capacity || (to - written).is_multiple_of(self.granularity.into()))
    }
}

impl ZoneLayout {
    /// The zones of devices that follow one another, if they are all of one kind and nothing lies
    /// between them. The smallest limits on open and active zones hold, as all of these zones may
    /// be in one device.
    pub fn joined(devices: &[Option<Self>]) -> Option<Self> {
        let alike = |one: Self, other: Self| {
            let kind = |it: &Self| (it.size, it.capacity, it.page, it.in_order_only, it.random);
            let least = |a: Option<u32>, b: Option<u32>| a.into_iter().chain(b).min();
            (kind(&one) == kind(&other) && other.first == 0).then(|| Self {
                zones: one.zones + other.zones,
                open_max: least(one.open_max, other.open_max),
                active_max: least(one.active_max, other.active_max),
                ..one
            })
        };
        let mut all = devices.iter().copied();
        let first = all.next()??;
        all.try_fold(first, |joined, device| alike(joined, device?))
    }
}

/// A device with zones, whose states a host can read without simulated time.
pub trait Zoned {
    /// Size and number of the zones.
    fn layout(&self) -> ZoneLayout;

    /// Zone number `zone`, below the number of zones.
    fn zone(&self, zone: u64) -> ZoneInfo;

    /// Open zones, and open or closed ones.
    fn active(&self) -> (u32, u32);
}

/// Figures of the flash of a device, as its log pages report them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Bytes programmed since the device was new, without those of preconditioning.
    pub programmed_bytes: u64,
    /// Bytes of blocks erased.
    pub erased_bytes: u64,
    /// Mean share of the nominal endurance that blocks have used up.
    pub used: f64,
    /// Share of the spare blocks that are left.
    pub spare: f64,
    /// Blocks that are worn out.
    pub retired_blocks: u64,
    /// Share of the blocks that are erased.
    pub free: f64,
    /// Fewest and most erases of a block.
    pub erases: [u32; 2],
    /// Bytes of a block in every plane, the unit of placement.
    pub unit_bytes: u64,
    /// Temperature in °C, where it is simulated.
    pub celsius: Option<f64>,
}
