//! When flash operations happen. The translation layer only said which.
//!
//! A clock books time on dies, channels and the host link when a request arrives, so a request
//! costs one event however many flash operations it causes.

mod buffer;
mod bus;
mod interleaved;
mod journal;
mod queued;
mod serial;
mod wires;

pub use buffer::WriteBuffer;
pub use bus::Bus;
pub use interleaved::Interleaved;
pub use journal::Journal;
pub use queued::{Queued, Queueing};
pub use serial::Serial;
pub use wires::Wires;

use crate::event::{Cause, FlashBusy};
use crate::geometry::{Geometry, Ppn};
use crate::ops::FlashOp;
use hybridsim_engine::{
    LatencyBreakdown, LatencyPhase, Loader, Op, Saver, SimDuration, SimTime, StateError,
};

/// How far a copy has to go, if nothing but the chips decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyReach {
    /// Every copy leaves the die: over the channel to the controller and back.
    Nowhere,
    /// Within a plane, through its register (copy-back).
    Plane,
    /// Within a die, between its planes too.
    Die,
}

/// The delays of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Cells to page register, and through the register.
    pub read: SimDuration,
    /// Through the page register, and to the cells.
    pub program: SimDuration,
    /// A copy that stays inside its plane (flashsim, algorithm 2).
    pub copy_plane: SimDuration,
    /// A copy that stays inside its die, between planes (flashsim, algorithm 2).
    pub copy_die: SimDuration,
    /// Erasing a block.
    pub erase: SimDuration,
    /// Command and address cycles on the channel, once per operation.
    pub command: SimDuration,
    /// Control before the data of a read on the channel: its second slot.
    pub data_command: SimDuration,
    /// A page, spare bytes included, over the channel.
    pub page_transfer: SimDuration,
    /// A page into the controller's memory and out again.
    pub ram: SimDuration,
    /// Copies that stay inside the chip.
    pub copy_reach: CopyReach,
    /// Controller time per read request.
    pub read_overhead: SimDuration,
    /// Controller time per request of another kind.
    pub write_overhead: SimDuration,
    /// Bytes per second of the host link; 0 for one that takes no time.
    pub host_rate: u64,
    /// Whether the host link moves data both ways at once.
    pub host_full_duplex: bool,
    /// Entries of each schedule table.
    pub schedule_slots: usize,
}

impl Delays {
    /// How long the copy `op` takes inside the chip; `None` when it has to leave it.
    #[inline]
    fn copy_inside(&self, op: &FlashOp, geometry: &Geometry) -> Option<SimDuration> {
        if self.copy_reach == CopyReach::Nowhere {
            return None;
        }
        let source = geometry.block_of(Ppn(op.from));
        if geometry.die_of(source) != op.die {
            return None;
        }
        if self.copy_reach == CopyReach::Die && self.copy_plane == self.copy_die {
            return Some(self.copy_die);
        }
        let target = geometry.block_of(Ppn(op.page));
        match geometry.plane_of(source) == geometry.plane_of(target) {
            true => Some(self.copy_plane),
            false if self.copy_reach == CopyReach::Die => Some(self.copy_die),
            false => None,
        }
    }

    const fn overhead(&self, op: Op) -> SimDuration {
        match op {
            Op::Read => self.read_overhead,
            Op::Write | Op::Trim | Op::Flush => self.write_overhead,
        }
    }
}

/// Whether an operation with this cause serves the request itself, as against making room.
#[inline]
const fn serves_request(cause: Cause) -> bool {
    matches!(cause, Cause::Host | Cause::Partial | Cause::Mapping)
}

/// How a moment was reached: where the time since the request's arrival went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    queue: SimDuration,
    overhead: SimDuration,
    bus: SimDuration,
    read: SimDuration,
    program: SimDuration,
    erase: SimDuration,
    flash_bus: SimDuration,
    gc: SimDuration,
}

impl Path {
    fn breakdown(&self) -> LatencyBreakdown {
        LatencyBreakdown::NONE
            .plus(LatencyPhase::Queue, self.queue)
            .plus(LatencyPhase::Overhead, self.overhead)
            .plus(LatencyPhase::Bus, self.bus)
            .plus(LatencyPhase::FlashRead, self.read)
            .plus(LatencyPhase::FlashProgram, self.program)
            .plus(LatencyPhase::FlashErase, self.erase)
            .plus(LatencyPhase::FlashBus, self.flash_bus)
            .plus(LatencyPhase::Gc, self.gc)
    }
}

/// A moment, and how it was reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    at: SimTime,
    path: Path,
}

impl Reached {
    /// Later, by a way through the controller's memory.
    #[inline]
    fn through_ram(mut self, ram: SimDuration) -> Self {
        self.at += ram;
        self.path.overhead += ram;
        self
    }
}

/// When a request is done, and where its time went.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// When the host has its answer.
    pub end: SimTime,
    /// Where the time since the arrival went; adds up to it.
    pub breakdown: LatencyBreakdown,
    /// When the last operation it caused ends, which may be later.
    pub settled: SimTime,
}

/// The device's clock.
pub enum Clock {
    /// Channels and dies in parallel.
    Interleaved(Box<Interleaved>),
    /// Dies with queues, where reads go first.
    Queued(Box<Queued>),
    /// One operation at a time.
    Serial(Box<Serial>),
    /// No clock: each request takes one nanosecond, so that time passes at all.
    Untimed(SimTime),
}

impl Clock {
    /// Puts down what is booked.
    pub fn save(&self, to: &mut Saver) {
        match self {
            Self::Interleaved(clock) => clock.save(to),
            Self::Queued(clock) => clock.save(to),
            Self::Serial(clock) => clock.save(to),
            Self::Untimed(_) => {}
        }
    }

    /// Takes back what [`Clock::save`] put down.
    ///
    /// # Errors
    /// When it is of another device.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        match self {
            Self::Interleaved(clock) => clock.restore(from),
            Self::Queued(clock) => clock.restore(from),
            Self::Serial(clock) => clock.restore(from),
            Self::Untimed(_) => Ok(()),
        }
    }

    /// From now on somebody wants to know what dies and channels do; see [`Clock::told`].
    pub fn watch(&mut self) {
        match self {
            Self::Interleaved(clock) => clock.journal().begin(),
            Self::Queued(clock) => clock.journal().begin(),
            Self::Serial(clock) => clock.journal().begin(),
            Self::Untimed(_) => {}
        }
    }

    /// Hands `tell` what dies and channels do, as far as it is certain at `now` and was not
    /// handed on before; at the end of a run `everything` else as well.
    pub fn told(&mut self, now: SimTime, everything: bool, tell: impl FnMut(FlashBusy)) {
        let journal = match self {
            Self::Interleaved(clock) => clock.journal(),
            Self::Queued(clock) => clock.journal_until(now, everything),
            Self::Serial(clock) => clock.journal(),
            Self::Untimed(_) => return,
        };
        journal.take().for_each(tell);
    }

    /// A request of `bytes` arrives.
    #[inline]
    pub fn begin(&mut self, now: SimTime, op: Op, bytes: u64) {
        match self {
            Self::Interleaved(clock) => clock.begin(now, op, bytes),
            Self::Queued(clock) => clock.begin(now, op, bytes),
            Self::Serial(clock) => clock.begin(now, op, bytes),
            Self::Untimed(arrived) => *arrived = now,
        }
    }

    /// Work of the device's own begins: no request waits for it.
    pub fn begin_background(&mut self, now: SimTime) {
        match self {
            Self::Interleaved(clock) => clock.begin_background(now),
            Self::Queued(clock) => clock.begin_background(now),
            Self::Serial(clock) => clock.begin_background(now),
            Self::Untimed(arrived) => *arrived = now,
        }
    }

    /// The controller is busy for `time` before anything told from now on can begin.
    pub fn delay(&mut self, time: SimDuration) {
        match self {
            Self::Interleaved(clock) => clock.delay(time),
            Self::Queued(clock) => clock.delay(time),
            Self::Serial(clock) => clock.delay(time),
            Self::Untimed(_) => {}
        }
    }

    /// The operations for one page of it, which covers `bytes` and is followed by `bytes_behind`
    /// more of the request.
    #[inline]
    pub fn page(&mut self, ops: &[FlashOp], bytes: u64, bytes_behind: u64) {
        match self {
            Self::Interleaved(clock) => clock.page(ops, bytes, bytes_behind),
            Self::Queued(clock) => clock.page(ops, bytes),
            Self::Serial(clock) => clock.page(ops),
            Self::Untimed(_) => {}
        }
    }

    /// All pages have been told.
    #[inline]
    pub fn end(&mut self) -> Timed {
        match self {
            Self::Interleaved(clock) => clock.end(),
            Self::Queued(clock) => clock.end(),
            Self::Serial(clock) => clock.end(),
            Self::Untimed(arrived) => {
                let tick = SimDuration::from_ns(1);
                let end = *arrived + tick;
                Timed {
                    end,
                    breakdown: LatencyBreakdown::NONE.plus(LatencyPhase::Overhead, tick),
                    settled: end,
                }
            }
        }
    }
}
