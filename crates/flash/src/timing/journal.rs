//! What dies and channels do when, for those who want to see it.

use crate::event::{Cause, FlashAct, FlashBusy, FlashUnit};
use crate::ops::{FlashOp, OpKind};
use hybridsim_engine::{SimDuration, SimTime};

/// Facts that wait to be told; empty unless somebody looks.
#[derive(Debug, Default)]
pub struct Journal {
    on: bool,
    events: Vec<FlashBusy>,
}

impl Journal {
    /// From now on somebody looks.
    pub fn begin(&mut self) {
        self.on = true;
    }

    /// Whether somebody looks.
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// The die of `op` works on it.
    #[inline]
    pub fn die(&mut self, op: &FlashOp, begin: SimTime, end: SimTime) {
        if self.on {
            self.note(FlashUnit::Die(op.die.0), act(op.kind), op.cause, begin, end);
        }
    }

    /// `channel` carries a command or data of `op` for `length`.
    #[inline]
    pub fn channel(&mut self, channel: u32, op: &FlashOp, begin: SimTime, length: SimDuration) {
        if self.on {
            let unit = FlashUnit::Channel(channel as u16);
            self.note(unit, act(op.kind), op.cause, begin, begin + length);
        }
    }

    /// Something that takes no time is not worth noting.
    #[inline(never)]
    pub fn note(
        &mut self,
        unit: FlashUnit,
        act: FlashAct,
        cause: Cause,
        begin: SimTime,
        end: SimTime,
    ) {
        if self.on && begin < end {
            self.events.push(FlashBusy { unit, act, cause, begin, end });
        }
    }

    /// What was noted since the last call.
    pub fn take(&mut self) -> impl Iterator<Item = FlashBusy> + '_ {
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
