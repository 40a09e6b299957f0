//! First in, first out: the block closed longest ago, whatever its utilisation.

use super::{GcEntry, VictimPolicy};
use crate::geometry::BlockId;
use crate::lists::Lists;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "fifo",
        summary: "Collects the block that was written longest ago (also called LRU cleaning).",
        origin: "log-structured file systems; analysed by Desnoyers, SYSTOR 2012",
        params: &[],
    },
    provides: &[],
    build: |input| Ok(Box::new(Fifo(Lists::new(input.pools, input.blocks as usize)))),
};

/// A list of candidates for each pool.
#[derive(Serialize, Deserialize)]
struct Fifo(Lists);

impl VictimPolicy for Fifo {
    fn closed(&mut self, pool: usize, block: BlockId, _valid: u32) {
        self.0.push(pool, block.0);
    }

    fn invalidated(&mut self, _pool: usize, _block: BlockId, _valid: u32) {}

    fn removed(&mut self, _pool: usize, block: BlockId) {
        self.0.remove(block.0);
    }

    fn choose(&mut self, pool: usize, _valid: &dyn Fn(BlockId) -> u32) -> Option<BlockId> {
        self.0.first(pool).map(BlockId)
    }
}
