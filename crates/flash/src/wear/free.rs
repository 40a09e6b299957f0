//! The free blocks of a pool.

use super::FreeOrder;
use super::heap::{BlockHeap, Top};
use crate::geometry::BlockId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The free blocks of one pool, in the order they should be filled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FreeBlocks {
    list: List,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum List {
    Oldest(VecDeque<BlockId>),
    /// The same blocks twice, by either end.
    Worn {
        least: BlockHeap,
        most: BlockHeap,
    },
}

impl FreeBlocks {
    /// Blocks `first..first + count`, all free and never erased.
    pub fn new(order: FreeOrder, first: u32, count: u32) -> Self {
        let mut free = Self::none(order, first, count);
        (first..first + count).for_each(|block| free.put(BlockId(block), 0));
        free
    }

    /// None of blocks `first..first + count`, which may be put.
    pub fn none(order: FreeOrder, first: u32, count: u32) -> Self {
        let list = match order {
            FreeOrder::OldestFirst => List::Oldest(VecDeque::with_capacity(count as usize)),
            FreeOrder::ByErases => List::Worn {
                least: BlockHeap::new(Top::Least, first, count),
                most: BlockHeap::new(Top::Greatest, first, count),
            },
        };
        Self { list }
    }

    /// Number of free blocks.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.list {
            List::Oldest(blocks) => blocks.len(),
            List::Worn { least, .. } => least.len(),
        }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `block`, erased `erases` times, is free.
    pub fn put(&mut self, block: BlockId, erases: u32) {
        match &mut self.list {
            List::Oldest(blocks) => blocks.push_back(block),
            List::Worn { least, most } => {
                least.set(block, erases);
                most.set(block, erases);
            }
        }
    }

    /// The next block to fill, with data that is moved (`moved`) or new.
    pub fn take(&mut self, moved: bool) -> Option<BlockId> {
        match &mut self.list {
            List::Oldest(blocks) => blocks.pop_front(),
            List::Worn { least, most } => {
                let (_, block) = if moved { most.top() } else { least.top() }?;
                least.remove(block);
                most.remove(block);
                Some(block)
            }
        }
    }

    /// Whether a list read back fits the place of this one.
    pub fn same_shape(&self, other: &Self) -> bool {
        match (&self.list, &other.list) {
            (List::Oldest(_), List::Oldest(_)) => true,
            (List::Worn { least, .. }, List::Worn { least: other, .. }) => {
                least.room() == other.room()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_in_the_order_asked_for() {
        let mut free = FreeBlocks::new(FreeOrder::OldestFirst, 10, 3);
        assert_eq!(free.take(false), Some(BlockId(10)));
        free.put(BlockId(10), 1);
        let taken = [true, false, false, true].map(|moved| free.take(moved));
        assert_eq!(taken, [Some(BlockId(11)), Some(BlockId(12)), Some(BlockId(10)), None]);

        let mut free = FreeBlocks::new(FreeOrder::ByErases, 10, 4);
        for (block, erases) in [(10, 5), (11, 2), (12, 9), (13, 2)] {
            assert!(free.take(false).is_some());
            free.put(BlockId(block), erases);
        }
        // Putting a block that is free already changes its count only.
        assert_eq!(free.len(), 4);
        let taken = [false, true, true, false].map(|moved| free.take(moved));
        assert_eq!(taken, [11, 12, 10, 13].map(|block| Some(BlockId(block))));
        assert!(free.is_empty());
    }
}
