//! Cost-benefit: free space gained times block age, over the cost of cleaning.
//!
//! Cleaning a block with utilisation `u` (its share of valid pages) costs `u` to read and `u` to
//! write, and gains `1 - u`. Space gained from an older block stays free longer, so the victim has
//! the greatest `age * (1 - u) / 2u`, with the age counted from the last invalidation in the block.
//! Time is counted in pages invalidated on the whole device, as a policy has no clock.
//!
//! Of blocks with equally many valid pages the oldest wins, and a block is appended to the list of
//! its utilisation when it changes. Only the heads of these lists are compared: at most one for
//! each page of a block, however large the device.

use super::{BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::array::Array;
use crate::geometry::BlockId;
use crate::lists::Lists;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

/// Cost-benefit.
pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "cost-benefit",
        summary: "Collects the block with the greatest age times space gained over copying cost.",
        origin: "Kawaguchi, Nishioka and Motoda, USENIX 1995, after Rosenblum and Ousterhout",
        params: &[],
    },
    build,
};

#[derive(Serialize, Deserialize)]
struct CostBenefit {
    /// A list for each pool and number of valid pages.
    lists: Lists,
    /// By block, when it was closed or lost a page.
    changed: Vec<u64>,
    /// Pages invalidated so far.
    now: u64,
    levels: u32,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let levels = input.geometry.pages_per_block() + 1;
    let blocks = input.geometry.blocks();
    let lists = Lists::new(input.pools * levels as usize, blocks as usize);
    Ok(Box::new(CostBenefit { lists, changed: vec![0; blocks as usize], now: 0, levels }))
}

/// Twice the benefit over the cost of a block with `valid` of `pages` pages valid, as a fraction.
fn benefit_over_cost(age: u64, valid: u32, pages: u32) -> (u128, u128) {
    // One more than the age, so that a block that has just changed is still preferred to a full
    // one.
    (u128::from(age + 1) * u128::from(pages - valid), u128::from(valid))
}

/// Whether fraction `one` is greater than `other`; a zero denominator is greatest.
fn greater(one: (u128, u128), other: (u128, u128)) -> bool {
    one.0 * other.1 > other.0 * one.1
}

impl VictimPolicy for CostBenefit {
    fn closed(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.lists.push(pool * self.levels as usize + valid as usize, block.0);
        self.changed[block.0 as usize] = self.now;
    }

    #[inline]
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.now += 1;
        if self.lists.list_of(block.0).is_some() {
            self.lists.remove(block.0);
            self.closed(pool, block, valid);
        }
    }

    fn removed(&mut self, _pool: usize, block: BlockId) {
        self.lists.remove(block.0);
    }

    fn choose(&mut self, pool: usize, _array: &Array) -> Option<BlockId> {
        let pages = self.levels - 1;
        let mut best: Option<(BlockId, (u128, u128))> = None;
        for valid in 0..pages {
            let list = pool * self.levels as usize + valid as usize;
            let Some(block) = self.lists.first(list).map(BlockId) else { continue };
            let value = benefit_over_cost(self.now - self.changed[block.0 as usize], valid, pages);
            if best.is_none_or(|(_, so_far)| greater(value, so_far)) {
                best = Some((block, value));
            }
            if valid == 0 {
                break; // Nothing to copy.
            }
        }
        best.map(|(block, _)| block)
    }

    fn ram_bytes(&self) -> u64 {
        // As greedy, plus the 8-byte time of the last change of each block.
        (self.lists.items() * 20 + self.lists.count() * 8) as u64
    }
}
