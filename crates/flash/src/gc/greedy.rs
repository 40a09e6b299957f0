//! Greedy: the block with the fewest valid pages.
//!
//! Per pool one list of candidates for each number of valid pages. A block moves one list down
//! when a page of it becomes invalid, so the least list is found without looking at blocks.

use super::{BlockLists, BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::array::Array;
use crate::geometry::BlockId;
use hybridsim_engine::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};

/// Greedy.
pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "greedy",
        summary: "Collects the block with the fewest valid pages, the oldest of several.",
        origin: "common practice; analysed by Desnoyers, SYSTOR 2012",
        params: &[],
    },
    build,
};

struct Greedy {
    lists: BlockLists,
    /// Per pool a number of valid pages no candidate is below.
    least: Vec<u32>,
    /// Lists per pool: one for 0 to `pages_per_block` valid pages.
    levels: u32,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let levels = input.geometry.pages_per_block() + 1;
    let lists = BlockLists::new(input.pools * levels as usize, input.geometry.blocks());
    Ok(Box::new(Greedy { lists, least: vec![levels; input.pools], levels }))
}

impl VictimPolicy for Greedy {
    fn closed(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.lists.push_tail(pool * self.levels as usize + valid as usize, block);
        self.least[pool] = self.least[pool].min(valid);
    }

    #[inline]
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32) {
        if self.lists.list_of(block).is_some() {
            self.lists.remove(block);
            self.closed(pool, block, valid);
        }
    }

    fn expect(&self, blocks: &[BlockId]) {
        self.lists.touch(blocks);
    }

    fn removed(&mut self, _pool: usize, block: BlockId) {
        self.lists.remove(block);
    }

    fn choose(&mut self, pool: usize, _array: &Array) -> Option<BlockId> {
        // The least level falls by one per invalidated page, so the climb is paid for already.
        let full = self.levels - 1;
        for level in self.least[pool]..full {
            let head = self.lists.head(pool * self.levels as usize + level as usize);
            if head.is_some() {
                self.least[pool] = level;
                return head;
            }
        }
        self.least[pool] = full;
        None
    }

    fn save(&self, to: &mut Saver) {
        self.lists.save(to);
        to.put(&self.least);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.lists.restore(from)?;
        let least: Vec<u32> = from.take()?;
        state::same_length("the list of pools", least.len(), self.least.len())?;
        self.least = least;
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        // Two links and a list number per block, head and tail per list, in 4 bytes each.
        (self.lists.links.len() * 12 + self.lists.heads.len() * 8) as u64
    }
}
