//! First in, first out: the block closed longest ago, whatever it holds.

use super::{BlockLists, BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::array::Array;
use crate::geometry::BlockId;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, StateError};

/// First in, first out.
pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "fifo",
        summary: "Collects the block that was written longest ago (also called LRU cleaning).",
        origin: "log-structured file systems; analysed by Desnoyers, SYSTOR 2012",
        params: &[],
    },
    build,
};

struct Fifo(BlockLists);

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    Ok(Box::new(Fifo(BlockLists::new(input.pools, input.geometry.blocks()))))
}

impl VictimPolicy for Fifo {
    fn closed(&mut self, pool: usize, block: BlockId, _valid: u32) {
        self.0.push_tail(pool, block);
    }

    fn invalidated(&mut self, _pool: usize, _block: BlockId, _valid: u32) {}

    fn removed(&mut self, _pool: usize, block: BlockId) {
        self.0.remove(block);
    }

    fn choose(&mut self, pool: usize, _array: &Array) -> Option<BlockId> {
        self.0.head(pool)
    }

    fn save(&self, to: &mut Saver) {
        self.0.save(to);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.0.restore(from)
    }

    fn ram_bytes(&self) -> u64 {
        (self.0.links.len() * 12 + self.0.heads.len() * 8) as u64
    }
}
