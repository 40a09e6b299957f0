//! The events of flash devices.

use hybridsim_engine::{Event, EventKind, EventRecord, SimDuration, SimTime, coded, events};
use serde::{Deserialize, Serialize};

coded! {
    /// Why a flash operation was performed.
    #[derive(Serialize, Deserialize)]
    pub enum Cause {
        /// A host request.
        Host = 0 "host",
        /// Garbage collection.
        Gc = 1 "gc",
        /// Wear levelling.
        Wear = 2 "wear",
        /// The mapping table: translation pages, scans, checkpoints.
        Mapping = 3 "mapping",
        /// Merging log and data blocks.
        Merge = 4 "merge",
        /// Reading the rest of a page of which a write covers only a part (read-modify-write).
        Partial = 5 "partial",
        /// Filling the rest of a zone that is finished.
        Padding = 6 "padding",
        /// Moving data whose bit errors would become too many.
        Refresh = 7 "refresh",
        /// Moving data from blocks in SLC mode to blocks in native mode.
        Fold = 8 "fold",
    }
}

coded! {
    /// The operation of a die or a channel.
    pub enum FlashAct {
        /// A page is read.
        Read = 0 "read",
        /// A page is programmed.
        Program = 1 "program",
        /// A page is copied: read and programmed.
        Copy = 2 "copy",
        /// A block is erased.
        Erase = 3 "erase",
    }
}

coded! {
    /// Thermal throttling: how far a device limits its rate to cool down.
    #[derive(Serialize, Deserialize)]
    pub enum Throttling {
        /// Not throttled.
        None = 0 "none",
        /// Light, since the temperature reached TMT1.
        Light = 1 "light",
        /// Heavy, since the temperature reached TMT2.
        Heavy = 2 "heavy",
    }
}

impl Throttling {
    /// The state above the next threshold.
    pub const fn heavier(self) -> Self {
        match self {
            Self::None => Self::Light,
            Self::Light | Self::Heavy => Self::Heavy,
        }
    }

    /// The state below the end of this one.
    pub const fn lighter(self) -> Self {
        match self {
            Self::Heavy => Self::Light,
            Self::Light | Self::None => Self::None,
        }
    }
}

/// A resource of a flash device that serves one operation at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlashUnit {
    /// A channel, by number.
    Channel(u16),
    /// A die, by number.
    Die(u16),
}

events! {
    /// Events of flash devices.
    pub enum FlashEvent {
        /// A flash page was read.
        Read = 9 "flash_read" {
            /// Why.
            cause: Cause => A,
            /// The die.
            die: u16 => B,
        },
        /// A flash page was programmed.
        Program = 10 "flash_program" {
            /// Why.
            cause: Cause => A,
            /// The die.
            die: u16 => B,
        },
        /// A flash block was erased.
        Erase = 11 "flash_erase" {
            /// Why.
            cause: Cause => A,
            /// The die.
            die: u16 => B,
            /// The block, counted over the device.
            block: u32 => C,
            /// Erase count of the block, this erase included.
            erases: u32 => D,
        },
        /// The number of erased blocks changed.
        FreeBlocks = 12 "free_blocks" {
            /// Erased blocks ready for use.
            free: u32 => B,
        },
        /// At the end of the run: how many blocks have an erase count.
        Wear = 13 "wear" {
            /// The erase count.
            erases: u32 => B,
            /// Blocks with that count.
            blocks: u32 => C,
        },
        /// Garbage collection searched for a victim.
        VictimSearch = 21 "victim_search" {
            /// Blocks examined.
            blocks: u32 => B,
        },
        /// A page had too many bit errors to be corrected and was read again.
        ReadRetried = 24 "read_retried" {
            /// Why it was read.
            cause: Cause => A,
            /// The die.
            die: u16 => B,
            /// Number of retries.
            retries: u32 => C,
        },
        /// A page could not be corrected by any retry: its data are lost.
        Uncorrectable = 25 "uncorrectable" {
            /// Why it was read.
            cause: Cause => A,
            /// The die.
            die: u16 => B,
            /// The page, counted over the device.
            page: u32 => C,
        },
        /// The temperature of a device: at the start and the end of a run, when thermal throttling
        /// changes, and when the temperature has changed by 0.1 K. `ago` is the time since the
        /// instant described; reports are ordered by that instant.
        Temperature = 26 "temperature" {
            /// The state of throttling from then on.
            throttling: Throttling => A,
            /// Thousandths of a kelvin.
            millikelvin: u32 => B,
            /// Time since then.
            ago: SimDuration => C,
        },
        /// A die is busy from `begin` to `end`; emitted once the end is certain.
        DieBusy = 128 "die_busy" {
            /// Why.
            cause: Cause => A,
            /// The die.
            die: u16 => BLow,
            /// The operation.
            act: FlashAct => BHigh,
            /// Begin of the interval.
            begin: SimTime => C,
            /// End of the interval.
            end: SimTime => D,
        },
        /// A channel is busy from `begin` to `end`; emitted once the end is certain.
        ChannelBusy = 129 "channel_busy" {
            /// Why.
            cause: Cause => A,
            /// The channel.
            channel: u16 => BLow,
            /// The operation whose command or data it carries.
            act: FlashAct => BHigh,
            /// Begin of the interval.
            begin: SimTime => C,
            /// End of the interval.
            end: SimTime => D,
        },
        /// Pages that hold no data were read, which takes no flash operation.
        ReadUnwritten = 130 "read_unwritten" {
            /// The number of pages.
            pages: u32 => B,
        },
        /// The length of a write that is not that of the pages programmed for it: it covered some
        /// of them only in part, or pages differ in size.
        HostWrite = 134 "host_write" {
            /// Sectors written.
            sectors: u32 => B,
            /// Pages programmed for it whose size is the device's.
            pages: u32 => C,
        },
        /// Pages were programmed on a device whose pages differ in size.
        SectorsProgrammed = 135 "sectors_programmed" {
            /// Their sectors.
            sectors: u32 => B,
        },
    }
}

/// The constant of a device with bit errors: bits that are corrected in a codeword.
pub const ECC_BITS: &str = "ecc_bits";

/// The constant of a device whose blocks were worn before the run: erases of each block by then, of
/// those of its `endurance`.
pub const INITIAL_ERASES: &str = "initial_erases";

/// The constant of a device whose static SLC cache has another endurance than its other blocks.
pub const SLC_ENDURANCE: &str = "slc_endurance";

/// Names of the operations that take energy, for `ComponentInfo::operation_joules`.
pub mod joules {
    /// Pages read.
    pub const READS: &str = "flash_reads";
    /// Pages programmed.
    pub const PROGRAMS: &str = "flash_programs";
    /// Blocks erased.
    pub const ERASES: &str = "flash_erases";
    /// Blocks examined in search of a victim.
    pub const VICTIM_SEARCH: &str = "victim_search";
}

/// A [`FlashEvent::DieBusy`] or a [`FlashEvent::ChannelBusy`]. Only emitted while detailed events
/// are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashBusy {
    /// The die or channel.
    pub unit: FlashUnit,
    /// The operation.
    pub act: FlashAct,
    /// Why.
    pub cause: Cause,
    /// Begin of the interval.
    pub begin: SimTime,
    /// End of the interval.
    pub end: SimTime,
}

impl Event for FlashBusy {
    /// Those of [`FlashEvent`].
    const KINDS: &'static [EventKind] = &[];

    #[inline]
    fn encode(self) -> EventRecord {
        FlashEvent::from(self).encode()
    }

    #[inline(always)]
    fn decode(record: &EventRecord) -> Option<Self> {
        FlashEvent::decode(record)?.busy()
    }
}

impl From<FlashBusy> for FlashEvent {
    #[inline]
    fn from(FlashBusy { unit, act, cause, begin, end }: FlashBusy) -> Self {
        match unit {
            FlashUnit::Die(die) => Self::DieBusy { cause, die, act, begin, end },
            FlashUnit::Channel(channel) => Self::ChannelBusy { cause, channel, act, begin, end },
        }
    }
}

impl FlashEvent {
    /// The busy interval, where it is one of a die or a channel.
    #[inline(always)]
    pub const fn busy(self) -> Option<FlashBusy> {
        let (unit, cause, act, begin, end) = match self {
            Self::DieBusy { cause, die, act, begin, end } => {
                (FlashUnit::Die(die), cause, act, begin, end)
            }
            Self::ChannelBusy { cause, channel, act, begin, end } => {
                (FlashUnit::Channel(channel), cause, act, begin, end)
            }
            _ => return None,
        };
        Some(FlashBusy { unit, act, cause, begin, end })
    }
}
