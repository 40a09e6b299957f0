//! A slot for each block: a new block overwrites the one that was evicted for it.

use super::{Layout, block_request};
use crate::level::Held;
use hybridsim_engine::{Op, Request};

/// Blocks in the slots of their level.
pub struct Slots {
    sectors: u32,
    /// Whether slots are trimmed when their block is dropped.
    trim: bool,
}

impl Slots {
    /// Slots of `sectors` sectors.
    pub const fn new(sectors: u32, trim: bool) -> Self {
        Self { sectors, trim }
    }
}

impl Layout for Slots {
    fn write(&mut self, held: Held, handle: u8, out: &mut Vec<Request>) -> Result<(), String> {
        out.push(block_request(Op::Write, held.slot.into(), self.sectors, handle));
        Ok(())
    }

    fn load(&self, held: Held, out: &mut Vec<Request>) {
        out.push(block_request(Op::Read, held.slot.into(), self.sectors, 0));
    }

    fn discard(&mut self, held: Held, out: &mut Vec<Request>) -> Result<(), String> {
        if self.trim {
            out.push(block_request(Op::Trim, held.slot.into(), self.sectors, 0));
        }
        Ok(())
    }
}
