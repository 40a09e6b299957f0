//! Free blocks: one list for every FTL.

use super::FreeOrder;
use crate::event::Cause;
use crate::geometry::{BlockId, Geometry};
use crate::heap::{BlockHeap, Top};
use crate::ops::{After, FlashOps};

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The free blocks of one pool, in the order they should be filled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FreeBlocks {
    order: FreeOrder,
    /// The free blocks where the oldest is filled first; empty otherwise.
    oldest: VecDeque<BlockId>,
    /// The free blocks by erase count, from either end; empty otherwise.
    least_worn: BlockHeap,
    most_worn: BlockHeap,
}

impl FreeBlocks {
    /// Blocks `first..first + count`, all free and never erased.
    pub fn new(order: FreeOrder, first: u32, count: u32) -> Self {
        let mut free = Self::none(order, first, count);
        (first..first + count).for_each(|block| free.put(BlockId(block), 0));
        free
    }

    /// An empty list for blocks `first..first + count`.
    pub fn none(order: FreeOrder, first: u32, count: u32) -> Self {
        let (queued, sorted) = match order {
            FreeOrder::OldestFirst => (count, 0),
            FreeOrder::ByErases => (0, count),
        };
        Self {
            order,
            oldest: VecDeque::with_capacity(queued as usize),
            least_worn: BlockHeap::new(Top::Least, first, sorted),
            most_worn: BlockHeap::new(Top::Greatest, first, sorted),
        }
    }

    /// All blocks of a new device, the oldest first. Consecutive blocks lie in different planes,
    /// so that large requests use several dies.
    pub fn striped(geometry: &Geometry) -> Self {
        let (planes, per_plane) = (geometry.planes(), geometry.blocks_per_plane());
        let row = |at: u32| (0..planes).map(move |plane| BlockId(plane * per_plane + at));
        let mut free = Self::none(FreeOrder::OldestFirst, 0, geometry.blocks());
        free.oldest.extend((0..per_plane).flat_map(row));
        free
    }

    #[inline]
    pub fn len(&self) -> usize {
        // One of the two is empty.
        self.oldest.len() + self.least_worn.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds `block`, which has been erased `erases` times.
    pub fn put(&mut self, block: BlockId, erases: u32) {
        match self.order {
            FreeOrder::OldestFirst => self.oldest.push_back(block),
            FreeOrder::ByErases => {
                self.least_worn.set(block, erases);
                self.most_worn.set(block, erases);
            }
        }
    }

    /// Takes the next block to fill, with relocated data (`moved`) or data of the host.
    pub fn take(&mut self, moved: bool) -> Option<BlockId> {
        match self.order {
            FreeOrder::OldestFirst => self.oldest.pop_front(),
            FreeOrder::ByErases => {
                let sorted = if moved { &self.most_worn } else { &self.least_worn };
                let (_, block) = sorted.top()?;
                self.least_worn.remove(block);
                self.most_worn.remove(block);
                Some(block)
            }
        }
    }

    /// Erases `block` behind `after` and adds it, unless that wears it out. Returns whether it
    /// is still usable.
    pub fn recycle(
        &mut self,
        block: BlockId,
        cause: Cause,
        after: After,
        flash: &mut FlashOps,
    ) -> bool {
        let usable = flash.erase(block, cause, after);
        if usable {
            self.put(block, flash.array().erases(block));
        }
        usable
    }

    pub fn iter(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.oldest.iter().copied().chain(self.least_worn.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_leave_by_age_or_by_erase_count() {
        let mut free = FreeBlocks::new(FreeOrder::OldestFirst, 10, 3);
        assert_eq!(free.take(false), Some(BlockId(10)));
        free.put(BlockId(10), 1);
        let taken = [true, false, false, true].map(|moved| free.take(moved));
        assert_eq!(taken, [Some(BlockId(11)), Some(BlockId(12)), Some(BlockId(10)), None]);

        let mut free = FreeBlocks::new(FreeOrder::ByErases, 10, 4);
        for (block, erases) in [(10, 5), (11, 2), (12, 9), (13, 2)] {
            free.put(BlockId(block), erases);
        }
        assert_eq!((free.len(), free.iter().count()), (4, 4));
        let taken = [false, true, true, false].map(|moved| free.take(moved));
        assert_eq!(taken, [11, 12, 10, 13].map(|block| Some(BlockId(block))));
        assert!(free.is_empty());
    }
}
