//! Dual-pool wear levelling: cold data goes to worn blocks, which then rest in a pool of their own.
//!
//! The blocks of each plane are in two sides, HOT and COLD. Each has its erase count EC, and EEC,
//! its erases since it last changed sides through a swap. After every erase, TH being a threshold:
//! 1. Cold-data migration: if the greatest EC of HOT exceeds the least EC of COLD by more than TH,
//!    the data of that cold block moves into that hot block; they change sides, EEC = 0 for both.
//! 2. Cold-pool resize: if the greatest EEC of COLD exceeds the least EEC of HOT by more than TH,
//!    that cold block is not holding cold data, and goes to HOT.
//! 3. Hot-pool resize: if the greatest and least EC of HOT differ by more than 2 TH, the least
//!    worn goes to COLD.
//!
//! Descriptions differ in details; this one
//! - compares EC with EC in rule 1. With the cold block's EEC the gap would grow with the device's
//!   age until every erase swapped;
//! - swaps at once when the hot block is the one just erased, and so free. If it is another one,
//!   its data first moves to the block just erased, and the swap follows its own erase: in all two
//!   blocks copied and two erased;
//! - swaps only with blocks that hold data and are not written just now;
//! - begins with every other block in COLD, as the sides are arbitrary at first.

use super::heap::{BlockHeap, Top};
use super::{BuiltWear, FreeOrder, WearEntry, WearInput, WearPolicy};
use crate::geometry::BlockId;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

/// Dual-pool.
pub const ENTRY: WearEntry = WearEntry {
    description: Description {
        name: "dual-pool",
        summary: "Cold data goes to worn blocks, which rest until they are no longer ahead.",
        origin: "Chang, SAC 2007; chang-slc-mlc, section 5.1 (TH = 16)",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 1] = [Param::with(
    "threshold",
    Kind::Count { min: 1, max: 1 << 30 },
    "16",
    "Erases (TH) the sides may drift apart before data is swapped; chang-slc-mlc takes 16.",
)];

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Block {
    /// Erases, all of them.
    erases: u32,
    /// Erases since a swap put it on its side.
    since_swap: u32,
    cold: bool,
    /// Holds data and is not programmed any more.
    filled: bool,
    retired: bool,
}

/// One plane.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pool {
    first: u32,
    blocks: Vec<Block>,
    hot_most: BlockHeap,
    hot_least: BlockHeap,
    hot_least_since: BlockHeap,
    cold_most_since: BlockHeap,
    /// Cold blocks that hold data.
    cold_least: BlockHeap,
}

struct DualPool {
    pools: Vec<Pool>,
    threshold: u32,
}

fn build(input: &WearInput<'_>) -> BuiltWear {
    let count = input.blocks_per_pool();
    Ok(Box::new(DualPool {
        pools: (0..input.pools).map(|pool| Pool::new(pool as u32 * count, count)).collect(),
        threshold: input.settings.count("threshold") as u32,
    }))
}

impl Pool {
    fn new(first: u32, count: u32) -> Self {
        let heap = |top| BlockHeap::new(top, first, count);
        let mut pool = Self {
            first,
            blocks: (0..count).map(|at| Block { cold: at % 2 == 1, ..Block::default() }).collect(),
            hot_most: heap(Top::Greatest),
            hot_least: heap(Top::Least),
            hot_least_since: heap(Top::Least),
            cold_most_since: heap(Top::Greatest),
            cold_least: heap(Top::Least),
        };
        (first..first + count).for_each(|block| pool.sort_in(BlockId(block)));
        pool
    }

    fn block(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[(block.0 - self.first) as usize]
    }

    /// Takes `block` out of all orders.
    fn sort_out(&mut self, block: BlockId) {
        let Self { hot_most, hot_least, hot_least_since, cold_most_since, cold_least, .. } = self;
        for heap in [hot_most, hot_least, hot_least_since, cold_most_since, cold_least] {
            heap.remove(block);
        }
    }

    /// Puts `block` into the orders of its side.
    fn sort_in(&mut self, block: BlockId) {
        self.sort_out(block);
        let Block { erases, since_swap, cold, filled, retired } = *self.block(block);
        if retired {
            return;
        }
        if cold {
            self.cold_most_since.set(block, since_swap);
            if filled {
                self.cold_least.set(block, erases);
            }
        } else {
            self.hot_most.set(block, erases);
            self.hot_least.set(block, erases);
            self.hot_least_since.set(block, since_swap);
        }
    }

    fn set_side(&mut self, block: BlockId, cold: bool) {
        self.block(block).cold = cold;
        self.sort_in(block);
    }

    /// Rule 1, when `block` has just been erased and is free: the block whose data it should take.
    fn migrate(&mut self, block: BlockId, threshold: u32) -> Option<BlockId> {
        let (most, hottest) = self.hot_most.top()?;
        let (least, coldest) = self.cold_least.top()?;
        if most.saturating_sub(least) <= threshold {
            return None;
        }
        let Block { erases, cold, .. } = *self.block(block);
        if cold || erases < most {
            // First the hot block must be free; it is asked about again when it is erased.
            let filled = std::mem::replace(&mut self.block(hottest).filled, false);
            return filled.then_some(hottest);
        }
        for swapped in [block, coldest] {
            self.block(swapped).since_swap = 0;
        }
        self.block(coldest).filled = false;
        self.set_side(block, true);
        self.set_side(coldest, false);
        Some(coldest)
    }

    /// Rules 2 and 3.
    fn resize(&mut self, threshold: u32) {
        let since = self.cold_most_since.top().zip(self.hot_least_since.top());
        if let Some(((most, block), (least, _))) = since
            && most.saturating_sub(least) > threshold
        {
            self.set_side(block, false);
        }
        if let Some(((most, _), (least, block))) = self.hot_most.top().zip(self.hot_least.top())
            && most - least > threshold.saturating_mul(2)
        {
            self.set_side(block, true);
        }
    }
}

impl WearPolicy for DualPool {
    fn order(&self) -> FreeOrder {
        FreeOrder::OldestFirst
    }

    fn moves_data(&self) -> bool {
        true
    }

    fn filled(&mut self, pool: usize, block: BlockId, _erases: u32) {
        self.pools[pool].block(block).filled = true;
        self.pools[pool].sort_in(block);
    }

    fn taken(&mut self, pool: usize, block: BlockId) {
        self.pools[pool].block(block).filled = false;
        self.pools[pool].sort_in(block);
    }

    fn erased(
        &mut self,
        pool: usize,
        block: BlockId,
        erases: u32,
        may_move: bool,
    ) -> Option<BlockId> {
        let pool = &mut self.pools[pool];
        let state = pool.block(block);
        state.erases = erases;
        state.since_swap = state.since_swap.saturating_add(1);
        state.filled = false;
        pool.sort_in(block);
        let cold = if may_move { pool.migrate(block, self.threshold) } else { None };
        pool.resize(self.threshold);
        cold
    }

    fn retired(&mut self, pool: usize, block: BlockId) {
        self.pools[pool].block(block).retired = true;
        self.pools[pool].sort_out(block);
    }

    fn save(&self, to: &mut Saver) {
        to.put(&self.pools);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let pools: Vec<Pool> = from.take()?;
        state::same_length("the list of pools", pools.len(), self.pools.len())?;
        for (saved, own) in pools.iter().zip(&self.pools) {
            state::same_length("the table of blocks", saved.blocks.len(), own.blocks.len())?;
        }
        self.pools = pools;
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        // Both counts in 4 bytes and the side in one, per block, and five orders of 4 bytes.
        self.pools.iter().map(|pool| pool.blocks.len() as u64 * 29).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dual(threshold: u32) -> DualPool {
        DualPool { pools: vec![Pool::new(0, 4)], threshold }
    }

    /// Erases `block` `times` times, from `from` erases on; the last answer.
    fn erase(dual: &mut DualPool, block: u32, from: u32, times: u32) -> Option<BlockId> {
        (1..=times).fold(None, |_, more| dual.erased(0, BlockId(block), from + more, true))
    }

    #[test]
    fn a_hot_block_takes_cold_data_when_it_is_more_than_a_threshold_ahead() {
        let mut dual = dual(3);
        dual.filled(0, BlockId(1), 0);
        // Blocks 1 and 3 are cold, but only 1 holds data.
        assert_eq!(erase(&mut dual, 0, 0, 3), None);
        assert_eq!(erase(&mut dual, 0, 3, 1), Some(BlockId(1)));
        let sides: Vec<bool> = dual.pools[0].blocks.iter().map(|block| block.cold).collect();
        assert_eq!(sides, [true, false, false, true]);
        assert_eq!(dual.pools[0].blocks[0].since_swap, 0);
    }

    #[test]
    fn nothing_is_swapped_when_the_layer_cannot() {
        let mut dual = dual(3);
        dual.filled(0, BlockId(1), 0);
        assert_eq!(dual.erased(0, BlockId(0), 40, false), None);
        assert_eq!(dual.erased(0, BlockId(0), 41, true), Some(BlockId(1)));
    }

    #[test]
    fn a_cold_block_that_is_erased_often_becomes_hot() {
        let mut dual = dual(3);
        assert_eq!(erase(&mut dual, 3, 0, 3), None);
        assert!(dual.pools[0].blocks[3].cold);
        erase(&mut dual, 3, 3, 1);
        assert!(!dual.pools[0].blocks[3].cold);
    }

    #[test]
    fn a_hot_block_far_behind_becomes_cold() {
        let mut dual = dual(3);
        erase(&mut dual, 0, 0, 6);
        assert!(!dual.pools[0].blocks[2].cold);
        erase(&mut dual, 0, 6, 1);
        assert!(dual.pools[0].blocks[2].cold, "7 - 0 > 2 * 3");
    }
}
