//! Timing models: when flash operations execute. The translation layer only decides which.
//!
//! A model reserves time on dies, channels and the host link when a request arrives, so a request
//! costs one event however many flash operations it causes. Writes of [`Queued`] are the exception:
//! those that wait for a full write buffer are scheduled when they get their entries, and without a
//! buffer the completion of a write is decided when its programs have ended.

mod bus;
mod busy;
mod chip;
mod die;
mod interconnect;
mod interleaved;
mod none;
mod params;
mod queued;
mod queued_params;
mod request;
mod serial;
mod slowdown;
mod unbuffered;
mod waiting;
mod write_buffer;

pub use bus::Bus;
pub use busy::BusyIntervals;
pub use chip::ChipPages;
pub use die::{DieScheduling, SuspendPoints};
pub use interconnect::Interconnect;
pub use interleaved::Interleaved;
pub use params::{CopyBack, SlcMode as SlcModeParams, TimingParams};
pub use queued::Queued;
pub use serial::Serial;
use slowdown::CellTimes;
pub use slowdown::DieSlowdowns;
pub use write_buffer::{BufferPauses, WriteBuffer};

use crate::event::Cause;
use crate::geometry::{Geometry, Ppn};
use crate::ops::{FlashOp, OpKind};
use hybridsim_config::param::{Built, Kind, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    LatencyBreakdown, LatencyPhase, Loader, Op, Saver, SimDuration, SimTime, StateError,
};

/// Entries of a schedule table.
const SLOTS: Kind = Kind::Count { min: 1, max: 1 << 20 };

/// The input of a timing model's builder.
pub struct TimingInput<'a> {
    pub settings: &'a Settings,
    pub geometry: &'a Geometry,
    pub times: OperationTimes,
}

/// Capability of timing models: operations take time.
pub const TIMES: &str = "operation times";
/// Capability of timing models: requests are served side by side.
pub const PARALLEL: &str = "parallel requests";
/// Capability of timing models: several pages are programmed at once (`program_pages`).
pub const ONE_SHOT: &str = "one-shot programs of several pages";

/// A registered timing model.
#[derive(Clone, Copy)]
pub struct TimingEntry {
    pub description: Description,
    /// [`TIMES`] and others.
    pub provides: &'static [&'static str],
    /// Problems name keys of the device.
    pub build: fn(&TimingInput<'_>) -> Built<dyn TimingModel>,
}

hybridsim_config::entry!(TimingEntry, "timing", provides);

/// All timing models.
pub const ENTRIES: &[TimingEntry] =
    &[interleaved::ENTRY, queued_params::ENTRY, serial::ENTRY, none::ENTRY];

/// Durations of operations on blocks in SLC mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcTimes {
    /// As [`OperationTimes::read`], whatever the page.
    pub read: SimDuration,
    /// As [`OperationTimes::program`].
    pub program: SimDuration,
    pub erase: SimDuration,
    /// Bits that a cell holds in native mode; 1 if no block can be in SLC mode.
    pub bits: u32,
}

impl SlcTimes {
    /// Times of a device whose blocks cannot be in SLC mode.
    pub const NONE: Self = Self {
        read: SimDuration::ZERO,
        program: SimDuration::ZERO,
        erase: SimDuration::ZERO,
        bits: 1,
    };
}

/// Durations of flash operations and transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationTimes {
    /// Cells to page register, and through the register.
    pub read: SimDuration,
    /// Through the page register, and to the cells.
    pub program: SimDuration,
    /// Copy-back within a plane (flashsim, algorithm 2).
    pub copy_plane: SimDuration,
    /// Copy-back between planes of a die (flashsim, algorithm 2).
    pub copy_die: SimDuration,
    pub erase: SimDuration,
    /// Another read of a page that could not be corrected.
    pub retry: SimDuration,
    /// Times of blocks in SLC mode.
    pub slc: SlcTimes,
    /// Command and address cycles on the channel, once per operation.
    pub command: SimDuration,
    /// Control cycles before the data transfer of a read.
    pub data_command: SimDuration,
    /// Transfer of a page, spare bytes included, over the channel.
    pub page_transfer: SimDuration,
    /// Transfer of a page of the chip, of several where the page lies in several planes.
    pub plane_transfer: SimDuration,
    /// Transfer of a page into the controller's RAM and out again.
    pub ram: SimDuration,
    pub copy_back: CopyBack,
    /// Controller overhead per read request.
    pub read_overhead: SimDuration,
    /// Controller overhead per request other than a read.
    pub write_overhead: SimDuration,
    /// Processor cores that the overhead of requests occupies; 0 if their number does not matter.
    pub firmware_cores: usize,
    /// Between the starts of two requests, at least.
    pub request_interval: SimDuration,
    /// Bytes per second of the host link, of reads; 0 for no transfer time.
    pub host_rate: u64,
    /// Bytes per second of the host link, of writes; 0 where `host_rate` is 0.
    pub host_write_rate: u64,
    pub host_full_duplex: bool,
    /// Entries of each schedule table; as many as needed without.
    pub schedule_slots: Option<usize>,
}

impl OperationTimes {
    /// Duration of the copy `op` inside the chip; `None` if it passes through the controller.
    #[inline]
    fn copy_back_time(&self, op: &FlashOp, geometry: &Geometry) -> Option<SimDuration> {
        if self.copy_back == CopyBack::None || op.from_die != op.die {
            return None;
        }
        self.copy_back_time_in_die(op, geometry)
    }

    /// [`OperationTimes::copy_back_time`] of a copy whose source is in its die.
    #[inline]
    fn copy_back_time_in_die(&self, op: &FlashOp, geometry: &Geometry) -> Option<SimDuration> {
        let time = self.native_copy_back_time(op, geometry)?;
        Some(if op.slc.any() { self.in_slc_mode(op, time) } else { time })
    }

    /// [`OperationTimes::copy_back_time`] between blocks in native mode.
    #[inline]
    fn native_copy_back_time(&self, op: &FlashOp, geometry: &Geometry) -> Option<SimDuration> {
        if self.copy_back == CopyBack::None {
            return None;
        }
        if self.copy_back == CopyBack::Die && self.copy_plane == self.copy_die {
            return Some(self.copy_die);
        }
        let source = geometry.block_of(Ppn(op.from));
        let target = geometry.block_of(Ppn(op.page));
        match geometry.plane_of(source) == geometry.plane_of(target) {
            true => Some(self.copy_plane),
            false if self.copy_back == CopyBack::Die => Some(self.copy_die),
            false => None,
        }
    }

    /// `time` of the copy-back `op`, which is that between blocks in native mode.
    #[cold]
    fn in_slc_mode(&self, op: &FlashOp, mut time: SimDuration) -> SimDuration {
        if op.slc.source() {
            time = (time + self.slc.read).saturating_sub(self.read);
        }
        if op.slc.target() {
            time = (time + self.slc.program).saturating_sub(self.program);
        }
        time
    }

    /// Transfer of the data that `op` reads over the channel.
    #[inline]
    fn read_transfer(&self, op: &FlashOp) -> SimDuration {
        match op.transfers {
            0 => self.page_transfer,
            pages => self.plane_transfer * u64::from(pages),
        }
    }

    /// The shortest use of a channel, which any is at least as long as.
    fn shortest_transfer(&self) -> SimDuration {
        let of_a_page = self.plane_transfer + self.command.min(self.data_command);
        let all = [self.command, of_a_page].into_iter().filter(|time| !time.is_zero());
        all.min().unwrap_or(SimDuration::ZERO)
    }

    /// Bytes per second at which the host link moves the data of `op`; 0 where it takes no time.
    const fn host_rate_of(&self, op: Op) -> u64 {
        match op {
            Op::Read => self.host_rate,
            Op::Write => self.host_write_rate,
            Op::Trim | Op::Flush | Op::Zone(_) => 0,
        }
    }

    const fn overhead(&self, op: Op) -> SimDuration {
        match op {
            Op::Read => self.read_overhead,
            Op::Write | Op::Trim | Op::Flush | Op::Zone(_) => self.write_overhead,
        }
    }
}

/// Whether an operation with this cause serves the request itself, rather than garbage collection
/// or wear levelling.
#[inline]
const fn serves_request(cause: Cause) -> bool {
    matches!(cause, Cause::Host | Cause::Partial | Cause::Mapping)
}

/// A copy between dies as a read of one die and a program of the other.
fn split_copy(copy: &FlashOp) -> Option<(FlashOp, FlashOp)> {
    if copy.from_die == copy.die {
        return None;
    }
    let read = FlashOp { kind: OpKind::Read, die: copy.from_die, page: copy.from, ..*copy };
    let (die, kind) = (copy.die, OpKind::Program);
    Some((read, FlashOp { kind, from_die: die, retries: 0, ..*copy }))
}

/// Latency accumulated since the request's arrival, by phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    queue: SimDuration,
    overhead: SimDuration,
    bus: SimDuration,
    read: SimDuration,
    program: SimDuration,
    erase: SimDuration,
    flash_bus: SimDuration,
    gc: SimDuration,
}

impl Latency {
    fn breakdown(&self) -> LatencyBreakdown {
        LatencyBreakdown::of([
            (LatencyPhase::Queue, self.queue),
            (LatencyPhase::Overhead, self.overhead),
            (LatencyPhase::Bus, self.bus),
            (LatencyPhase::FlashRead, self.read),
            (LatencyPhase::FlashProgram, self.program),
            (LatencyPhase::FlashErase, self.erase),
            (LatencyPhase::FlashBus, self.flash_bus),
            (LatencyPhase::Gc, self.gc),
        ])
    }
}

/// A point in time on a request's way, and the latency accumulated up to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Milestone {
    at: SimTime,
    latency: Latency,
}

impl Milestone {
    #[inline]
    fn start(at: SimTime) -> Self {
        Self { at, latency: Latency::default() }
    }

    /// With data that reach the chip at `sent`, programmed at `end` together with earlier pages.
    #[inline]
    fn programmed(self, sent: SimTime, end: SimTime) -> Self {
        let mut latency = self.latency;
        latency.flash_bus += sent.since(self.at);
        latency.program += end.since(sent);
        Self { at: end.max(sent), latency }
    }

    /// Adds a transfer through the controller's RAM.
    #[inline]
    fn pass_ram(&mut self, ram: SimDuration) {
        self.at += ram;
        self.latency.overhead += ram;
    }
}

/// Completion and latency breakdown of a request.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    pub end: SimTime,
    /// Sums to the time from arrival to `end`.
    pub breakdown: LatencyBreakdown,
    /// End of the last operation the request caused; may be later than `end`.
    pub idle_from: SimTime,
}

/// The schedule of a request all of whose pages have been passed to the model.
#[derive(Clone, Copy, Debug)]
pub enum Scheduled {
    Completes(Timed),
    /// A write that waits for entries of the write buffer: [`TimingModel::admit_waiting`] has to
    /// be called at this time, and schedules it.
    Waits(SimTime),
    /// A write whose programs host reads may still delay, which would end at `until`:
    /// [`TimingModel::programmed`] has to be called then with its number.
    Programs {
        number: u64,
        until: SimTime,
        idle_from: SimTime,
    },
}

impl Scheduled {
    /// Until when the device is busy with it, as far as it is known.
    #[inline]
    pub const fn busy_until(&self) -> SimTime {
        match self {
            Self::Completes(timed) => timed.idle_from,
            Self::Waits(until) => *until,
            Self::Programs { idle_from, .. } => *idle_from,
        }
    }
}

/// Schedules flash operations: when they execute, and when requests complete.
pub trait TimingModel {
    fn save(&self, to: &mut Saver);

    /// # Errors
    /// When the state is of another device.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;

    /// Slowdowns of dies, which act from the next operation on.
    fn slowdowns(&mut self) -> Option<(&Geometry, &mut DieSlowdowns)> {
        None
    }

    /// Busy intervals of dies and channels that are final at `now`; at the end of a run, with
    /// `everything`, all others as well.
    fn busy(&mut self, _now: SimTime, _everything: bool) -> Option<&mut BusyIntervals> {
        None
    }

    /// A request of `bytes` arrives.
    fn begin(&mut self, now: SimTime, op: Op, bytes: u64);

    /// Background work begins.
    fn begin_background(&mut self, now: SimTime);

    /// The controller spends `time` more before any further operation can begin: as `phase` of the
    /// current request, [`LatencyPhase::Overhead`] or [`LatencyPhase::Gc`].
    fn work(&mut self, time: SimDuration, phase: LatencyPhase);

    /// Schedules the operations for one page of the request, of which it covers `bytes`;
    /// `bytes_behind` more follow.
    fn page(&mut self, ops: &[FlashOp], bytes: u64, bytes_behind: u64);

    /// All pages of the request have been passed to the model.
    fn end(&mut self) -> Scheduled;

    /// Schedules the first of the writes that wait for the write buffer, in order of arrival, as
    /// far as there are entries for it; `None` if no write waits.
    fn admit_waiting(&mut self, _now: SimTime) -> Option<Scheduled> {
        None
    }

    /// Completes the write `number`, unless host reads have delayed its programs; `None` if there
    /// is no such write.
    fn programmed(&mut self, _now: SimTime, _number: u64) -> Option<Scheduled> {
        None
    }

    /// Has the current request, which failed, wait for nothing.
    fn drop_current(&mut self) {}

    /// Drops all writes that wait for the write buffer or for their programs.
    fn drop_waiting(&mut self) {}
}
