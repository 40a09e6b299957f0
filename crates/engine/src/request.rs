//! Requests between components: their operation, and a range of sectors of 512 bytes.

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

/// The action of a zone management command (NVMe Zoned Namespace Command Set, Zone Management
/// Send).
///
/// The numbers are the codes of [`Op`], so that the compiler stores an `Op` as its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ZoneAction {
    /// Discard the zone's data; the write pointer returns to its start.
    Reset = 4,
    /// Make the zone full.
    Finish = 5,
    /// Open the zone explicitly.
    Open = 6,
    /// Close the zone; its resources for open zones become free.
    Close = 7,
    /// Move the write pointer of a zone with a random write area to the end of the range (Flush
    /// Explicit ZRWA Range).
    Commit = 8,
}

impl ZoneAction {
    /// All actions.
    pub const ALL: [Self; 5] = [Self::Reset, Self::Finish, Self::Open, Self::Close, Self::Commit];

    /// The lower-case name used in traces and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reset => "zone_reset",
            Self::Finish => "zone_finish",
            Self::Open => "zone_open",
            Self::Close => "zone_close",
            Self::Commit => "zone_commit",
        }
    }
}

/// The operation of a request. Event records and traces hold its [code](Op::code).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Return the newest data of the range.
    Read,
    /// Store new data in the range.
    Write,
    /// The data of the range are no longer needed (TRIM, UNMAP, discard).
    Trim,
    /// Make every acknowledged write durable. Its range is ignored.
    Flush,
    /// Zone management: the action on the zone that the range covers. The machine refuses it for
    /// devices without zones ([`crate::Component::accepts_zone_commands`]).
    Zone(ZoneAction),
}

impl Op {
    /// All operations, in the order of their codes.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Write,
        Self::Trim,
        Self::Flush,
        Self::Zone(ZoneAction::Reset),
        Self::Zone(ZoneAction::Finish),
        Self::Zone(ZoneAction::Open),
        Self::Zone(ZoneAction::Close),
        Self::Zone(ZoneAction::Commit),
    ];
    /// Number of operations.
    pub const COUNT: usize = Self::ALL.len();

    /// Names of the operations, by code.
    pub(crate) const NAMES: [&'static str; Self::COUNT] = {
        let (mut names, mut at) = ([""; Self::COUNT], 0);
        while at < Self::COUNT {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// The number of the operation, which never changes.
    #[inline(always)]
    pub const fn code(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Trim => 2,
            Self::Flush => 3,
            Self::Zone(action) => action as u8,
        }
    }

    /// [`Op::code`] as an index into tables of [`Op::COUNT`] entries.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.code() as usize
    }

    /// The operation with this code.
    #[inline(always)]
    pub const fn from_code(code: u64) -> Option<Self> {
        // A `match` would be a jump table in every fold of the events.
        if code < Self::COUNT as u64 { Some(Self::ALL[code as usize]) } else { None }
    }

    /// The lower-case name used in traces and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "flush",
            Self::Zone(action) => action.name(),
        }
    }

    /// The operation called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }
}

/// Properties a trace or a policy may attach to a request: a bit each, and from bit 8 on the
/// placement handle.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Flags(pub u16);

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
    /// A zone append: the write goes to the write pointer of the zone it names.
    pub const APPEND: Self = Self(128);
    /// A random write area (ZRWA) for the zone, in an explicit open.
    pub const RANDOM_WRITE_AREA: Self = Self(128);

    /// Whether every flag of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The placement handle of a write (NVMe FDP; the stream of multi-stream drives); 0 is the
    /// default. On devices with several reclaim groups it is a placement identifier
    /// ([`Placements`]).
    #[inline]
    pub const fn handle(self) -> u8 {
        self.0.to_be_bytes()[0]
    }

    /// These flags with another placement handle.
    pub const fn with_handle(self, handle: u8) -> Self {
        Self(self.0 & 0xFF | (handle as u16) << 8)
    }

    /// These flags and those of `other`, whose placement handle counts where these have none.
    pub const fn with(self, other: Self) -> Self {
        let handle = if self.0 > 0xFF { self.0 } else { other.0 } & 0xFF00;
        Self((self.0 | other.0) & 0xFF | handle)
    }
}

/// The placement identifiers of a device (NVMe FDP): pairs of a reclaim group and a handle. The
/// upper bits of an identifier are the group, as many as the number of groups needs (RGIF); the
/// lower bits are the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placements {
    /// Reclaim groups, 1 to 128.
    pub groups: u8,
    /// Reclaim unit handles of each group.
    pub handles: u8,
}

impl Placements {
    /// Bits of an identifier that are the group (RGIF).
    pub const fn group_bits(self) -> u32 {
        self.groups.next_power_of_two().trailing_zeros()
    }

    /// Whether identifiers of 8 bits name all pairs.
    pub const fn fit(self) -> bool {
        self.handles as u32 <= 1 << (u8::BITS - self.group_bits())
    }

    /// The identifier of a pair, in `bits` bits: 8 in a request, 16 in a command of NVMe.
    pub const fn identifier(self, (group, handle): (u8, u8), bits: u32) -> u16 {
        ((group as u32) << (bits - self.group_bits()) | handle as u32) as u16
    }

    /// The reclaim group and handle that an identifier of `bits` bits names, if they exist.
    #[inline]
    pub const fn find(self, identifier: u16, bits: u32) -> Option<(u8, u8)> {
        let of_handle = bits - self.group_bits();
        let group = identifier as u32 >> of_handle;
        let handle = identifier as u32 & ((1 << of_handle) - 1);
        if group < self.groups as u32 && handle < self.handles as u32 {
            Some((group as u8, handle as u8))
        } else {
            None
        }
    }
}

/// A request from a component to its child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Operation.
    pub op: Op,
    /// Properties.
    pub flags: Flags,
    /// The volume (device number, ASU, LUN) of the workload; 0 with only one.
    pub volume: u16,
    /// Length in sectors; at least 1 except for a flush.
    pub sectors: u32,
    /// First sector.
    pub lba: Lba,
    /// Data versions, in verified runs.
    pub data: DataSlice,
}

impl Request {
    /// A plain request without flags, volume or data.
    #[inline]
    pub const fn new(op: Op, lba: Lba, sectors: u32) -> Self {
        Self { op, flags: Flags::NONE, volume: 0, sectors, lba, data: DataSlice::NONE }
    }

    /// Whether only a zoned device can serve it: zone management or a zone append.
    #[inline(always)]
    pub const fn is_zone_command(&self) -> bool {
        match self.op {
            Op::Zone(_) => true,
            Op::Write => self.flags.contains(Flags::APPEND),
            Op::Read | Op::Trim | Op::Flush => false,
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
    Unpin {
        /// Evict its data as well: the host has written them to the medium, or overwrites them
        /// there next. Otherwise they join the drive's own set.
        discard: bool,
    },
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
            Self::Unpin { .. } => "unpin",
            Self::QueryPinned => "query pinned",
            Self::QuerySize => "query size",
            Self::FlushUnpinned => "flush unpinned",
            Self::EnterPowerMode { .. } => "enter power mode",
            Self::LeavePowerMode => "leave power mode",
            Self::Standby => "standby",
            Self::Idle => "idle",
        }
    }

    /// Whether the command concerns the spindle: every device accepts it; it has no effect without
    /// a spindle.
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
    fn operations_have_codes_and_names_of_their_own() {
        for (code, op) in (0..).zip(Op::ALL) {
            assert_eq!((u64::from(op.code()), Op::from_code(code)), (code, Some(op)));
            assert_eq!(Op::from_name(op.name()), Some(op));
        }
        let beyond = Op::ALL.len() as u64;
        assert_eq!((Op::from_code(beyond), Op::from_name("zone")), (None, None));
    }

    #[test]
    fn identifiers_name_every_pair_and_no_other() {
        for (groups, handles) in [(1, 2), (1, 128), (2, 128), (3, 5), (4, 64), (128, 2)] {
            let placements = Placements { groups, handles };
            assert!(placements.fit());
            for bits in [u8::BITS, u16::BITS] {
                let found: Vec<_> =
                    (0..1u32 << bits).filter_map(|it| placements.find(it as u16, bits)).collect();
                let pairs = (0..groups).flat_map(|group| (0..handles).map(move |it| (group, it)));
                let pairs: Vec<_> = pairs.collect();
                assert_eq!(found, pairs);
                for pair in pairs {
                    let identifier = placements.identifier(pair, bits);
                    assert_eq!(placements.find(identifier, bits), Some(pair));
                }
            }
        }
        assert_eq!(Placements { groups: 2, handles: 4 }.identifier((1, 3), 16), 0x8003);
        assert!(!Placements { groups: 3, handles: 65 }.fit());
    }
}
