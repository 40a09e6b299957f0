//! Requests between components: sectors of 512 bytes, four operations.

use crate::coded;
use crate::contents::DataSlice;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes in a sector, the unit of every address and length between components.
pub const SECTOR_BYTES: u64 = 512;

/// A logical block address: a sector of 512 bytes, counted from the start of the device addressed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Lba(pub u64);

impl Lba {
    /// The address `sectors` further on (saturating).
    #[inline]
    pub const fn offset(self, sectors: u64) -> Self {
        Self(self.0.saturating_add(sectors))
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

coded! {
    /// The operation of a request.
    pub enum Op {
        /// Return the newest data of the range.
        Read = 0 "read",
        /// Store new data in the range.
        Write = 1 "write",
        /// The data of the range are no longer needed (TRIM, UNMAP, discard).
        Trim = 2 "trim",
        /// Make every acknowledged write durable. Its range is ignored.
        Flush = 3 "flush",
    }
}

/// Properties a trace or a policy may attach to a request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Flags(pub u8);

impl Flags {
    /// Nothing special.
    pub const NONE: Self = Self(0);
    /// Synchronous: an application waits for it.
    pub const SYNC: Self = Self(1);
    /// File-system metadata.
    pub const META: Self = Self(2);
    /// Read-ahead.
    pub const AHEAD: Self = Self(4);
    /// Must reach the medium before completion (force unit access).
    pub const FUA: Self = Self(8);
    /// Keep the range in the fast medium (konanki, section 3.5).
    pub const PIN: Self = Self(16);
    /// Background work of a component: destage, rebuild, prefetch.
    pub const BACKGROUND: Self = Self(32);
    /// Bypass a non-volatile cache, even where it holds the range.
    pub const PAST_CACHE: Self = Self(64);
    /// For a zoned device: a write is a zone append, a trim a zone reset; a flush finishes a zone,
    /// or opens it with [`Flags::SYNC`], or closes it with [`Flags::META`]. See [`Request::zone`].
    pub const ZONE: Self = Self(128);

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

coded! {
    /// What a request does to a zone (NVMe Zoned Namespace Command Set, Zone Management Send).
    pub enum ZoneAction {
        /// Discards its data; the write pointer returns to its start.
        Reset = 0 "reset",
        /// Makes it full.
        Finish = 1 "finish",
        /// Opens it explicitly.
        Open = 2 "open",
        /// Closes it; its resources for open zones become free.
        Close = 3 "close",
    }
}

/// A request from a component to its child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// Properties.
    pub flags: Flags,
    /// The volume (device number, ASU, LUN) of the workload; 0 with only one.
    pub volume: u16,
    /// Length in sectors; at least 1 except for a flush.
    pub sectors: u32,
    /// First sector.
    pub lba: Lba,
    /// Its data versions, in verified runs.
    pub data: DataSlice,
}

impl Request {
    /// A plain request without flags, volume or data.
    #[inline]
    pub const fn new(op: Op, lba: Lba, sectors: u32) -> Self {
        Self { op, flags: Flags::NONE, volume: 0, sectors, lba, data: DataSlice::NONE }
    }

    /// `action` on the zone of `sectors` sectors from `lba` on. Zone management is coded as a trim
    /// or a flush with [`Flags::ZONE`], so that it passes the queues, schedulers and statistics of
    /// the host as other requests do: resets appear as trims, the other actions as flushes.
    pub const fn zone(action: ZoneAction, lba: Lba, sectors: u32) -> Self {
        let (op, flags) = match action {
            ZoneAction::Reset => (Op::Trim, Flags::ZONE),
            ZoneAction::Finish => (Op::Flush, Flags::ZONE),
            ZoneAction::Open => (Op::Flush, Flags::ZONE.with(Flags::SYNC)),
            ZoneAction::Close => (Op::Flush, Flags::ZONE.with(Flags::META)),
        };
        Self { flags, ..Self::new(op, lba, sectors) }
    }

    /// What the request does to a zone, where it is one of zone management.
    pub const fn zone_action(&self) -> Option<ZoneAction> {
        match self.op {
            _ if !self.flags.contains(Flags::ZONE) => None,
            Op::Trim => Some(ZoneAction::Reset),
            Op::Flush if self.flags.contains(Flags::SYNC) => Some(ZoneAction::Open),
            Op::Flush if self.flags.contains(Flags::META) => Some(ZoneAction::Close),
            Op::Flush => Some(ZoneAction::Finish),
            Op::Read | Op::Write => None,
        }
    }

    /// The first sector after the range (saturating).
    #[inline]
    pub const fn end(&self) -> Lba {
        self.lba.offset(self.sectors as u64)
    }

    /// Length in bytes.
    pub const fn bytes(&self) -> u64 {
        self.sectors as u64 * SECTOR_BYTES
    }

    /// The part of this request that starts `skip` sectors in and is `sectors` long, addressed at
    /// `lba` of a child. Its data is the matching part of this request's data.
    pub const fn part(&self, skip: u32, sectors: u32, lba: Lba) -> Self {
        Self { lba, sectors, data: self.data.skip(skip), ..*self }
    }
}

/// Commands besides requests: the NV cache feature set and the immediate power commands of ATA-8
/// (ATA8-ACS). A command applies to a range of sectors, or to the whole drive, and completes like a
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Pin the range in the cache. With `populate` the drive reads it from the medium
    /// at once; without, the next write of the host brings the data.
    Pin {
        /// The populate-immediate bit.
        populate: bool,
    },
    /// Unpin the range.
    Unpin,
    /// Return the pinned ranges within the range whose data are in the cache.
    QueryPinned,
    /// Return one range from sector 0 on: the size of the cache.
    QuerySize,
    /// Write back data that are not pinned, until at least the length of the range is free.
    FlushUnpinned,
    /// Enter the NV cache power mode: the medium stays spun down where possible.
    EnterPowerMode {
        /// Once spun up, the medium stays so for at least this many seconds.
        spinning_s_min: u32,
    },
    /// Leave the NV cache power mode.
    LeavePowerMode,
    /// STANDBY IMMEDIATE: stop the spindle. Completes when it has stopped; the next access starts
    /// it.
    Standby,
    /// IDLE IMMEDIATE: become ready. Completes when the spindle turns.
    Idle,
}

impl Command {
    /// The lower-case name used in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pin { .. } => "pin",
            Self::Unpin => "unpin",
            Self::QueryPinned => "query pinned",
            Self::QuerySize => "query size",
            Self::FlushUnpinned => "flush unpinned",
            Self::EnterPowerMode { .. } => "enter power mode",
            Self::LeavePowerMode => "leave power mode",
            Self::Standby => "standby",
            Self::Idle => "idle",
        }
    }

    /// Whether it concerns the spindle: every device accepts it; it has no effect without a
    /// spindle.
    pub const fn is_about_spindle(self) -> bool {
        matches!(self, Self::Standby | Self::Idle)
    }
}

/// The number of a request in flight. Reused after completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zone_management_is_coded_and_recognised() {
        for action in ZoneAction::ALL {
            assert_eq!(Request::zone(action, Lba(64), 32).zone_action(), Some(action));
        }
        for op in Op::ALL {
            let plain = Request { flags: Flags::SYNC, ..Request::new(op, Lba(0), 8) };
            assert_eq!(plain.zone_action(), None);
        }
    }
}
