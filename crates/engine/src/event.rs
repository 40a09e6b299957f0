//! Facts: the one stream of observations that statistics, fingerprints and pictures fold over.
//!
//! A event says what happened, never what it adds up to. Every event is stamped with the time and
//! the node it happened at.

use crate::request::{Lba, Op};
use crate::time::{SimDuration, SimTime};
use serde::{Deserialize, Serialize};

/// A node of the system tree, numbered in the order the tree was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u16);

/// Why a flash operation or a background request happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Cause {
    /// A request from above.
    Host = 0,
    /// Garbage collection.
    Gc = 1,
    /// Wear levelling.
    Wear = 2,
    /// The mapping itself: translation pages, scans, checkpoints.
    Mapping = 3,
    /// Merging log and data blocks.
    Merge = 4,
    /// Reading the rest of a page that is only partly written.
    Partial = 5,
}

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Host, Self::Gc, Self::Wear, Self::Mapping, Self::Merge, Self::Partial];

    /// The lower-case name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Gc => "gc",
            Self::Wear => "wear",
            Self::Mapping => "mapping",
            Self::Merge => "merge",
            Self::Partial => "partial",
        }
    }
}

/// Where the time of a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LatencyPhase {
    /// Waiting in a queue, or for a busy resource of another request.
    Queue = 0,
    /// Command processing in a controller or a drive.
    Overhead = 1,
    /// Moving data over a host or back-end bus.
    Bus = 2,
    /// Moving the disk arm, head switch and settle included.
    Seek = 3,
    /// Waiting for the sector to come round.
    Rotate = 4,
    /// Sectors passing under the head.
    Transfer = 5,
    /// Reading flash cells.
    FlashRead = 6,
    /// Programming flash cells.
    FlashProgram = 7,
    /// Erasing flash blocks on the request's own account.
    FlashErase = 8,
    /// Moving data over a flash channel.
    FlashBus = 9,
    /// Waiting for garbage collection, merging or wear levelling.
    Gc = 10,
    /// Waiting for a cache to be cleaned.
    Destage = 11,
    /// Waiting for a disk to spin up.
    SpinUp = 12,
}

impl LatencyPhase {
    /// Number of phases.
    pub const COUNT: usize = 13;
    /// All phases, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Queue,
        Self::Overhead,
        Self::Bus,
        Self::Seek,
        Self::Rotate,
        Self::Transfer,
        Self::FlashRead,
        Self::FlashProgram,
        Self::FlashErase,
        Self::FlashBus,
        Self::Gc,
        Self::Destage,
        Self::SpinUp,
    ];

    /// The lower-case name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Overhead => "overhead",
            Self::Bus => "bus",
            Self::Seek => "seek",
            Self::Rotate => "rotate",
            Self::Transfer => "transfer",
            Self::FlashRead => "flash_read",
            Self::FlashProgram => "flash_program",
            Self::FlashErase => "flash_erase",
            Self::FlashBus => "flash_bus",
            Self::Gc => "gc",
            Self::Destage => "destage",
            Self::SpinUp => "spin_up",
        }
    }
}

/// A request's latency, split by where it went. The phases add up to the latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyBreakdown([SimDuration; LatencyPhase::COUNT]);

impl LatencyBreakdown {
    /// No time spent.
    pub const NONE: Self = Self([SimDuration::ZERO; LatencyPhase::COUNT]);

    /// Adds `time` to one part.
    #[inline]
    pub fn add(&mut self, part: LatencyPhase, time: SimDuration) {
        self.0[part as usize] += time;
    }

    /// This breakdown with `time` more in one phase.
    #[must_use]
    pub fn plus(mut self, part: LatencyPhase, time: SimDuration) -> Self {
        self.add(part, time);
        self
    }

    /// The time of one part.
    pub const fn get(&self, part: LatencyPhase) -> SimDuration {
        self.0[part as usize]
    }

    /// The sum of all phases.
    pub fn total(&self) -> SimDuration {
        self.0.iter().copied().sum()
    }
}

/// What a disk's on-board cache did for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum DiskCacheOutcome {
    /// The medium had to be used.
    Miss = 0,
    /// Everything was in the buffer.
    Hit = 1,
    /// Served by a read-ahead still running.
    Partial = 2,
    /// A write taken into the buffer.
    Buffered = 3,
}

/// A power state of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PowerState {
    /// Ready, nothing to do.
    Idle = 0,
    /// Moving the arm.
    Seek = 1,
    /// Reading from the medium.
    Read = 2,
    /// Writing to the medium.
    Write = 3,
    /// Erasing.
    Erase = 4,
    /// Low power, not ready.
    Standby = 5,
    /// Getting ready.
    SpinUp = 6,
    /// Going to standby.
    SpinDown = 7,
    /// Working without a finer distinction (rotating to a sector, moving data).
    Active = 8,
}

impl PowerState {
    /// Number of states.
    pub const COUNT: usize = 9;
    /// All states, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Idle,
        Self::Seek,
        Self::Read,
        Self::Write,
        Self::Erase,
        Self::Standby,
        Self::SpinUp,
        Self::SpinDown,
        Self::Active,
    ];

    /// The lower-case name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Seek => "seek",
            Self::Read => "read",
            Self::Write => "write",
            Self::Erase => "erase",
            Self::Standby => "standby",
            Self::SpinUp => "spin_up",
            Self::SpinDown => "spin_down",
            Self::Active => "active",
        }
    }
}

/// What a die or a channel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FlashAct {
    /// A page is read.
    Read = 0,
    /// A page is programmed.
    Program = 1,
    /// A page is moved: read and programmed.
    Copy = 2,
    /// A block is erased.
    Erase = 3,
}

impl FlashAct {
    /// All acts, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Read, Self::Program, Self::Copy, Self::Erase];

    /// The lower-case name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Program => "program",
            Self::Copy => "copy",
            Self::Erase => "erase",
        }
    }
}

/// What in a flash device does one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlashUnit {
    /// A channel, by number.
    Channel(u16),
    /// A die, by number.
    Die(u16),
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request came from the workload (root node only).
    Arrived {
        /// Operation.
        op: Op,
        /// Length in sectors.
        sectors: u32,
        /// First sector.
        lba: Lba,
    },
    /// A request of the workload is done (root node only). `PhaseTime` events for it come before.
    Completed {
        /// Operation.
        op: Op,
        /// Length in sectors.
        sectors: u32,
        /// First sector.
        lba: Lba,
        /// Arrival to completion.
        latency: SimDuration,
    },
    /// LatencyPhase of the latency of the request whose `Completed` follows (root node only).
    PhaseTime {
        /// Operation of the request.
        op: Op,
        /// Where the time went.
        phase: LatencyPhase,
        /// How much of it.
        time: SimDuration,
    },
    /// Requests waiting in a scheduler's queue, told when it changes.
    QueueDepth {
        /// Requests waiting.
        depth: u32,
    },
    /// A disk arm moved.
    Seek {
        /// Cylinders crossed.
        distance: u32,
        /// How long it took, head switch and settle included.
        time: SimDuration,
    },
    /// A disk waited for a sector to come round.
    Rotate {
        /// How long.
        time: SimDuration,
    },
    /// A disk moved sectors between medium and buffer.
    MediaTransfer {
        /// Sectors moved.
        sectors: u32,
        /// How long it took.
        time: SimDuration,
    },
    /// What a disk's buffer did for a request.
    DiskCache {
        /// Operation of the request.
        op: Op,
        /// Outcome.
        outcome: DiskCacheOutcome,
    },
    /// A device spent `time` in `state` until now. Per device these add up to the run time.
    StateTime {
        /// The state.
        state: PowerState,
        /// Time spent in it since the last such event.
        time: SimDuration,
    },
    /// A flash page was read.
    FlashRead {
        /// Why.
        cause: Cause,
        /// Which die.
        die: u16,
    },
    /// A flash page was programmed.
    FlashProgram {
        /// Why.
        cause: Cause,
        /// Which die.
        die: u16,
    },
    /// A flash block was erased.
    FlashErase {
        /// Why.
        cause: Cause,
        /// Which die.
        die: u16,
        /// Which block of the device.
        block: u32,
        /// How often it has been erased now.
        erases: u32,
    },
    /// A die or a channel was, or will be, busy with one thing. Told only where somebody looks
    /// ([`crate::Machine::enable_flash_busy`]), when its end is certain; not part of fingerprints.
    FlashBusy {
        /// Which.
        unit: FlashUnit,
        /// What with; on a channel, the operation whose command or data it carries.
        act: FlashAct,
        /// Why.
        cause: Cause,
        /// From when.
        begin: SimTime,
        /// Until when.
        end: SimTime,
    },
    /// A flash device was asked for pages that hold nothing, which takes no flash operation. Not
    /// part of fingerprints.
    ReadUnwritten {
        /// How many.
        pages: u32,
    },
    /// A controller looked for a victim to collect, block by block.
    VictimSearch {
        /// Blocks looked at.
        blocks: u32,
    },
    /// Free blocks left on a flash device, told when it changes.
    FreeBlocks {
        /// Erased blocks ready to be used.
        free: u32,
    },
    /// At the end of the run: so many blocks have been erased so often.
    Wear {
        /// Erase count.
        erases: u32,
        /// Blocks with that count.
        blocks: u32,
    },
    /// A cache was asked for a request's pages.
    CacheLookup {
        /// Operation of the request.
        op: Op,
        /// Pages found.
        hits: u32,
        /// Pages not found.
        misses: u32,
    },
    /// A request went round the cache.
    Bypassed {
        /// Operation.
        op: Op,
        /// Its length in sectors.
        sectors: u32,
    },
    /// A cache wrote data back to the slow medium.
    Destaged {
        /// Sectors written.
        sectors: u32,
    },
    /// A cache began to be cleaned.
    CleanupStarted,
    /// The cleaning ended.
    CleanupEnded {
        /// Pages made free.
        pages: u32,
    },
    /// Dirty pages in a cache, told when it changes.
    DirtyPages {
        /// How many.
        pages: u32,
    },
    /// The power failed (root node only).
    PowerCut {
        /// Requests of the workload that had not completed.
        lost: u32,
    },
    /// A component is ready again after a power failure.
    Recovered {
        /// Since the power came back.
        took: SimDuration,
    },
    /// A number an extension wants to be seen; named in its [`crate::ComponentInfo::custom`].
    Custom {
        /// Index into the names.
        name: u8,
        /// The value.
        value: u64,
    },
}

/// A event with its time and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// When.
    pub time: SimTime,
    /// Where.
    pub node: ComponentId,
    /// What.
    pub event: Event,
}

/// Takes the stream of events, in order, in batches.
pub trait EventSink {
    /// The next events.
    fn take(&mut self, events: &[EventRecord]);
}

/// Looks at nothing.
impl EventSink for () {
    fn take(&mut self, _facts: &[EventRecord]) {}
}

/// Keeps every event; for tests.
impl EventSink for Vec<EventRecord> {
    fn take(&mut self, events: &[EventRecord]) {
        self.extend_from_slice(events);
    }
}
