//! Busy intervals of dies and channels, recorded for observers.

use crate::event::Cause;
use crate::event::FlashAct;
use crate::event::FlashBusy;
use crate::event::FlashUnit;
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

    #[inline]
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The die of `op` executes it.
    #[inline]
    pub fn die(&mut self, op: &FlashOp, begin: SimTime, end: SimTime) {
        if self.enabled {
            self.record_die(op, begin, end);
        }
    }

    /// `channel` transfers a command or data of `op` for `length`.
    #[inline]
    pub fn channel(&mut self, channel: u32, op: &FlashOp, begin: SimTime, length: SimDuration) {
        if self.enabled {
            self.record_channel(channel, op, begin, begin + length);
        }
    }

    #[inline(never)]
    fn record_die(&mut self, op: &FlashOp, begin: SimTime, end: SimTime) {
        self.record(FlashUnit::Die(op.die.0), (act(op.kind), op.cause), begin, end);
    }

    #[inline(never)]
    fn record_channel(&mut self, channel: u32, op: &FlashOp, begin: SimTime, end: SimTime) {
        self.record(FlashUnit::Channel(channel as u16), (act(op.kind), op.cause), begin, end);
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

const fn act(kind: OpKind) -> FlashAct {
    match kind {
        OpKind::Read => FlashAct::Read,
        OpKind::Program => FlashAct::Program,
        OpKind::Copy => FlashAct::Copy,
        OpKind::Erase => FlashAct::Erase,
    }
}
