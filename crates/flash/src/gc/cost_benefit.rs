//! Cost-benefit: space gained times age, over the cost of gaining it.
//!
//! A block with a share `u` of valid pages costs `u` to read and `u` to write again, and gains
//! `1 - u`; what is gained stays gained longer the longer the block has not changed. So the victim
//! has the greatest `age * (1 - u) / 2u`, the age counted from the last page that became invalid.
//! Time is counted in pages invalidated on the whole device, as a policy has no clock.
//!
//! Among blocks with equally many valid pages the one that changed longest ago wins, and a block
//! joins the end of its level's list exactly when it changes. So only the first of each level is
//! compared: at most one per page of a block, however large the device.

use super::{BlockLists, BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::array::Array;
use crate::geometry::BlockId;
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};

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

struct CostBenefit {
    lists: BlockLists,
    /// Per block when it changed last.
    changed: Vec<u64>,
    now: u64,
    levels: u32,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let levels = input.geometry.pages_per_block() + 1;
    let blocks = input.geometry.blocks();
    let lists = BlockLists::new(input.pools * levels as usize, blocks);
    Ok(Box::new(CostBenefit { lists, changed: vec![0; blocks as usize], now: 0, levels }))
}

/// Twice benefit over cost of a block with `valid` of `pages` valid pages, as a fraction.
fn benefit_over_cost(age: u64, valid: u32, pages: u32) -> (u128, u128) {
    // One more than the age: a block that has just changed still differs from a full one.
    (u128::from(age + 1) * u128::from(pages - valid), u128::from(valid))
}

/// Whether `one` is greater than `other`; a division by zero is greatest.
fn greater(one: (u128, u128), other: (u128, u128)) -> bool {
    one.0 * other.1 > other.0 * one.1
}

impl VictimPolicy for CostBenefit {
    fn closed(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.lists.push_tail(pool * self.levels as usize + valid as usize, block);
        self.changed[block.0 as usize] = self.now;
    }

    #[inline]
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.now += 1;
        if self.lists.list_of(block).is_some() {
            self.lists.remove(block);
            self.closed(pool, block, valid);
        }
    }

    fn removed(&mut self, _pool: usize, block: BlockId) {
        self.lists.remove(block);
    }

    fn choose(&mut self, pool: usize, _array: &Array) -> Option<BlockId> {
        let pages = self.levels - 1;
        let mut best: Option<(BlockId, (u128, u128))> = None;
        for valid in 0..pages {
            let list = pool * self.levels as usize + valid as usize;
            let Some(block) = self.lists.head(list) else { continue };
            let value = benefit_over_cost(self.now - self.changed[block.0 as usize], valid, pages);
            if best.is_none_or(|(_, so_far)| greater(value, so_far)) {
                best = Some((block, value));
            }
            if valid == 0 {
                break; // It costs nothing.
            }
        }
        best.map(|(block, _)| block)
    }

    fn save(&self, to: &mut Saver) {
        self.lists.save(to);
        to.put(&(&self.changed, self.now));
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.lists.restore(from)?;
        let (changed, now): (Vec<u64>, u64) = from.take()?;
        state::same_length("the table of ages", changed.len(), self.changed.len())?;
        (self.changed, self.now) = (changed, now);
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        // As greedy, and the time of the last change in 8 bytes per block.
        (self.lists.links.len() * 20 + self.lists.heads.len() * 8) as u64
    }
}
