//! Dual-pool wear levelling: cold data go to worn blocks, which then rest in a pool of their own.
//!
//! The blocks of each plane form a hot and a cold pool. Each block has its erase count EC, and its
//! effective erase count EEC: the erases since it last changed pools through a swap. After every
//! erase, with threshold TH:
//! 1. Cold-data migration: if the greatest EC of the hot pool exceeds the least EC of the cold pool
//!    by more than TH, the data of that cold block move to that hot block; both change pools and
//!    their EEC is reset.
//! 2. Cold-pool resize: if the greatest EEC of the cold pool exceeds the least EEC of the hot pool
//!    by more than TH, that cold block holds no cold data and moves to the hot pool.
//! 3. Hot-pool resize: if the greatest and least EC of the hot pool differ by more than 2 TH, the
//!    least worn block moves to the cold pool.
//!
//! Descriptions differ in details; this one
//! - compares EC with EC in rule 1. With the cold block's EEC the gap would grow with the device's
//!   age until every erase caused a swap;
//! - swaps at once when the hot block is the one just erased, and so free. If it is another one,
//!   its data first move to the block just erased, and the swap follows its own erase: in total
//!   two blocks are copied and two erased;
//! - swaps only with full blocks;
//! - begins with every other block in the cold pool, as the pools are arbitrary at first.

use super::{BuiltWear, WearEntry, WearInput, WearPolicy};
use crate::geometry::BlockId;
use crate::heap::{BlockHeap, Top};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: WearEntry = WearEntry {
    description: Description {
        name: "dual-pool",
        summary: "Cold data go to worn blocks, which rest until the others have caught up.",
        origin: "Chang, SAC 2007; chang-slc-mlc, section 5.1 (TH = 16)",
        params: Parameters::PARAMS,
    },
    build,
};

hybridsim_config::params! {
    struct Parameters {
        threshold: u32 = Kind::Count { min: 1, max: 1 << 30 }, default "16",
            "Difference in erases (TH) at which the pools swap data; chang-slc-mlc uses 16.";
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Block {
    /// EC.
    erases: u32,
    /// EEC.
    since_swap: u32,
    cold: bool,
    filled: bool,
    retired: bool,
}

/// The two pools of one plane.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Plane {
    first: u32,
    blocks: Vec<Block>,
    hot_most: BlockHeap,
    hot_least: BlockHeap,
    hot_least_since: BlockHeap,
    cold_most_since: BlockHeap,
    /// The full cold blocks.
    cold_least: BlockHeap,
}

#[derive(Serialize, Deserialize)]
struct DualPool {
    planes: Vec<Plane>,
    threshold: u32,
}

fn build(input: &WearInput<'_>) -> BuiltWear {
    let count = input.blocks_per_pool();
    Ok(Box::new(DualPool {
        planes: (0..input.pools).map(|plane| Plane::new(plane as u32 * count, count)).collect(),
        threshold: Parameters::from_settings(input.settings).threshold,
    }))
}

impl Plane {
    fn new(first: u32, count: u32) -> Self {
        let heap = |top| BlockHeap::new(top, first, count);
        let mut plane = Self {
            first,
            blocks: (0..count).map(|at| Block { cold: at % 2 == 1, ..Block::default() }).collect(),
            hot_most: heap(Top::Greatest),
            hot_least: heap(Top::Least),
            hot_least_since: heap(Top::Least),
            cold_most_since: heap(Top::Greatest),
            cold_least: heap(Top::Least),
        };
        (first..first + count).for_each(|block| plane.insert(BlockId(block)));
        plane
    }

    fn block(&mut self, block: BlockId) -> &mut Block {
        &mut self.blocks[(block.0 - self.first) as usize]
    }

    /// Removes `block` from all heaps.
    fn remove(&mut self, block: BlockId) {
        let Self { hot_most, hot_least, hot_least_since, cold_most_since, cold_least, .. } = self;
        for heap in [hot_most, hot_least, hot_least_since, cold_most_since, cold_least] {
            heap.remove(block);
        }
    }

    /// Puts `block` into the heaps of its pool.
    fn insert(&mut self, block: BlockId) {
        self.remove(block);
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

    fn move_to_pool(&mut self, block: BlockId, cold: bool) {
        self.block(block).cold = cold;
        self.insert(block);
    }

    /// Rule 1 for `block`, which was just erased: returns the block whose data it should take.
    fn migrate(&mut self, block: BlockId, threshold: u32) -> Option<BlockId> {
        let (most, hottest) = self.hot_most.top()?;
        let (least, coldest) = self.cold_least.top()?;
        if most.saturating_sub(least) <= threshold {
            return None;
        }
        let Block { erases, cold, .. } = *self.block(block);
        if cold || erases < most {
            // The hot block must be free first; rule 1 applies again when it is erased.
            let filled = std::mem::replace(&mut self.block(hottest).filled, false);
            return filled.then_some(hottest);
        }
        for swapped in [block, coldest] {
            self.block(swapped).since_swap = 0;
        }
        self.block(coldest).filled = false;
        self.move_to_pool(block, true);
        self.move_to_pool(coldest, false);
        Some(coldest)
    }

    /// Rules 2 and 3.
    fn resize(&mut self, threshold: u32) {
        let since = self.cold_most_since.top().zip(self.hot_least_since.top());
        if let Some(((most, block), (least, _))) = since
            && most.saturating_sub(least) > threshold
        {
            self.move_to_pool(block, false);
        }
        if let Some(((most, _), (least, block))) = self.hot_most.top().zip(self.hot_least.top())
            && most - least > threshold.saturating_mul(2)
        {
            self.move_to_pool(block, true);
        }
    }
}

impl WearPolicy for DualPool {
    fn moves_data(&self) -> bool {
        true
    }

    fn filled(&mut self, pool: usize, block: BlockId, _erases: u32) {
        self.planes[pool].block(block).filled = true;
        self.planes[pool].insert(block);
    }

    fn taken(&mut self, pool: usize, block: BlockId) {
        self.planes[pool].block(block).filled = false;
        self.planes[pool].insert(block);
    }

    fn erased(&mut self, pool: usize, block: BlockId, erases: u32) -> Option<BlockId> {
        let plane = &mut self.planes[pool];
        let state = plane.block(block);
        state.erases = erases;
        state.since_swap = state.since_swap.saturating_add(1);
        state.filled = false;
        plane.insert(block);
        let cold = plane.migrate(block, self.threshold);
        plane.resize(self.threshold);
        cold
    }

    fn retired(&mut self, pool: usize, block: BlockId) {
        self.planes[pool].block(block).retired = true;
        self.planes[pool].remove(block);
    }

    fn ram_bytes(&self) -> u64 {
        // For each block two 4-byte counts, a byte for its pool, and 4 bytes in each of five heaps.
        self.planes.iter().map(|plane| plane.blocks.len() as u64 * 29).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dual(threshold: u32) -> DualPool {
        DualPool { planes: vec![Plane::new(0, 4)], threshold }
    }

    /// Erases `block` `times` times beyond its `from` erases; returns the last answer.
    fn erase(dual: &mut DualPool, block: u32, from: u32, times: u32) -> Option<BlockId> {
        (1..=times).fold(None, |_, more| dual.erased(0, BlockId(block), from + more))
    }

    #[test]
    fn a_hot_block_takes_cold_data_when_it_is_more_than_a_threshold_ahead() {
        let mut dual = dual(3);
        dual.filled(0, BlockId(1), 0);
        // Blocks 1 and 3 are cold, but only 1 holds data.
        assert_eq!(erase(&mut dual, 0, 0, 3), None);
        assert_eq!(erase(&mut dual, 0, 3, 1), Some(BlockId(1)));
        let cold: Vec<bool> = dual.planes[0].blocks.iter().map(|block| block.cold).collect();
        assert_eq!(cold, [true, false, false, true]);
        assert_eq!(dual.planes[0].blocks[0].since_swap, 0);
    }

    #[test]
    fn a_cold_block_that_is_erased_often_becomes_hot() {
        let mut dual = dual(3);
        assert_eq!(erase(&mut dual, 3, 0, 3), None);
        assert!(dual.planes[0].blocks[3].cold);
        erase(&mut dual, 3, 3, 1);
        assert!(!dual.planes[0].blocks[3].cold);
    }

    #[test]
    fn a_hot_block_far_behind_becomes_cold() {
        let mut dual = dual(3);
        erase(&mut dual, 0, 0, 6);
        assert!(!dual.planes[0].blocks[2].cold);
        erase(&mut dual, 0, 6, 1);
        assert!(dual.planes[0].blocks[2].cold, "7 - 0 > 2 * 3");
    }
}
