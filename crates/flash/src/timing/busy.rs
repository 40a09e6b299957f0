//! Busy intervals of dies and channels, recorded for observers.

use crate::event::{Cause, FlashAct, FlashBusy, FlashUnit};
use crate::ops::{FlashOp, OpKind};
use hybridsim_engine::{Event, EventRecord, SimDuration, SimTime};

/// Busy intervals that have not been reported; empty unless an observer is attached.
#[derive(Debug, Default)]
pub struct BusyIntervals {
    enabled: bool,
    /// Encoded, without the time of the report.
    events: Vec<EventRecord>,
}

impl BusyIntervals {
    pub fn enable(&mut self) {
        self.enabled = true;
    }

    /// The die of `op` executes it.
    #[inline]
    pub fn die(&mut self, op: &FlashOp, begin: SimTime, end: SimTime) {
        if self.enabled {
            self.record_op(FlashUnit::Die(op.die.0), op, begin, end);
        }
    }

    /// `channel` transfers a command or data of `op` for `length`.
    #[inline]
    pub fn channel(&mut self, channel: u32, op: &FlashOp, begin: SimTime, length: SimDuration) {
        if self.enabled {
            self.record_op(FlashUnit::Channel(channel as u16), op, begin, begin + length);
        }
    }

    #[inline(never)]
    fn record_op(&mut self, unit: FlashUnit, op: &FlashOp, begin: SimTime, end: SimTime) {
        let act = match op.kind {
            OpKind::Read => FlashAct::Read,
            OpKind::Program => FlashAct::Program,
            OpKind::Copy => FlashAct::Copy,
            OpKind::Erase => FlashAct::Erase,
        };
        self.record(unit, (act, op.cause), begin, end);
    }

    /// Records an interval unless it is empty.
    #[inline]
    pub fn record(
        &mut self,
        unit: FlashUnit,
        (act, cause): (FlashAct, Cause),
        begin: SimTime,
        end: SimTime,
    ) {
        if self.enabled && begin < end {
            self.events.push(FlashBusy { unit, act, cause, begin, end }.encode());
        }
    }

    /// Passes all recorded intervals to `report`, and removes them.
    #[inline]
    pub fn report(&mut self, report: impl FnMut(EventRecord)) {
        self.events.iter().copied().for_each(report);
        self.events.clear();
    }
}
