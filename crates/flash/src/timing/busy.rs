//! Busy intervals of dies and channels, recorded for observers.

use crate::event::Cause;
use crate::event::FlashAct;
use crate::event::FlashBusy;
use crate::event::FlashUnit;
use crate::ops::{FlashOp, OpKind};
use hybridsim_engine::{SimDuration, SimTime};

/// Busy intervals that have not been reported; empty unless an observer is attached.
#[derive(Debug, Default)]
pub struct BusyIntervals {
    enabled: bool,
    events: Vec<FlashBusy>,
}

impl BusyIntervals {
    pub fn enable(&mut self) {
        self.enabled = true;
    }

    #[inline]
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The die of `op` executes it.
    #[inline]
    pub fn die(&mut self, op: &FlashOp, begin: SimTime, end: SimTime) {
        if self.enabled {
            self.record(FlashUnit::Die(op.die.0), (act(op.kind), op.cause), begin, end);
        }
    }

    /// `channel` transfers a command or data of `op` for `length`.
    #[inline]
    pub fn channel(&mut self, channel: u32, op: &FlashOp, begin: SimTime, length: SimDuration) {
        if self.enabled {
            let unit = FlashUnit::Channel(channel as u16);
            self.record(unit, (act(op.kind), op.cause), begin, begin + length);
        }
    }

    /// Records an interval unless it is empty.
    #[inline(never)]
    pub fn record(
        &mut self,
        unit: FlashUnit,
        (act, cause): (FlashAct, Cause),
        begin: SimTime,
        end: SimTime,
    ) {
        if self.enabled && begin < end {
            self.events.push(FlashBusy { unit, act, cause, begin, end });
        }
    }

    /// Removes and returns all recorded intervals.
    pub fn drain(&mut self) -> impl Iterator<Item = FlashBusy> + '_ {
        self.events.drain(..)
    }
}

const fn act(kind: OpKind) -> FlashAct {
    match kind {
        OpKind::Read => FlashAct::Read,
        OpKind::Program => FlashAct::Program,
        OpKind::Copy => FlashAct::Copy,
        OpKind::Erase => FlashAct::Erase,
    }
}
