//! An indexed heap of blocks: the block with the extreme key is known, and any block can leave.

use crate::geometry::BlockId;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// Which end of the keys is on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Top {
    Least,
    Greatest,
}

/// A binary heap of blocks `first..first + count` by a key; ties go to the lowest block number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BlockHeap {
    top: Top,
    first: u32,
    /// Key and block; the parent of entry `i` is entry `(i - 1) / 2`.
    entries: Vec<(u32, u32)>,
    /// The entry of each block, from block `first` on.
    positions: Vec<u32>,
}

impl BlockHeap {
    pub(crate) fn new(top: Top, first: u32, count: u32) -> Self {
        let entries = Vec::with_capacity(count as usize);
        Self { top, first, entries, positions: vec![NONE; count as usize] }
    }

    /// Number of blocks it can hold.
    pub(crate) const fn capacity(&self) -> usize {
        self.positions.len()
    }

    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// The extreme key and its block.
    pub(crate) fn top(&self) -> Option<(u32, BlockId)> {
        self.entries.first().map(|(key, block)| (*key, BlockId(*block)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.entries.iter().map(|(_, block)| BlockId(*block))
    }

    /// Adds `block`, or changes its key.
    pub(crate) fn set(&mut self, block: BlockId, key: u32) {
        self.remove(block);
        let at = self.entries.len();
        self.entries.push((key, block.0));
        self.positions[(block.0 - self.first) as usize] = at as u32;
        self.sift_up(at);
    }

    /// Removes `block`; returns whether the heap held it.
    pub(crate) fn remove(&mut self, block: BlockId) -> bool {
        let position =
            std::mem::replace(&mut self.positions[(block.0 - self.first) as usize], NONE);
        if position == NONE {
            return false;
        }
        let at = position as usize;
        self.entries.swap_remove(at);
        if at < self.entries.len() {
            self.positions[(self.entries[at].1 - self.first) as usize] = position;
            let at = self.sift_up(at);
            self.sift_down(at);
        }
        true
    }

    fn above(&self, one: usize, other: usize) -> bool {
        let ((key, block), (other_key, other_block)) = (self.entries[one], self.entries[other]);
        let before = match self.top {
            Top::Least => key < other_key,
            Top::Greatest => key > other_key,
        };
        before || (key == other_key && block < other_block)
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.entries.swap(one, other);
        for at in [one, other] {
            self.positions[(self.entries[at].1 - self.first) as usize] = at as u32;
        }
    }

    fn sift_up(&mut self, mut at: usize) -> usize {
        while at > 0 && self.above(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        at
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let children = (2 * at + 1)..(2 * at + 3).min(self.entries.len());
            let best =
                children.reduce(|one, other| if self.above(other, one) { other } else { one });
            match best {
                Some(child) if self.above(child, at) => {
                    self.swap(child, at);
                    at = child;
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn the_block_with_the_extreme_key_is_on_top() {
        for top in [Top::Least, Top::Greatest] {
            let mut heap = BlockHeap::new(top, 100, 20);
            let mut model: BTreeMap<u32, u32> = BTreeMap::new();
            let mut stream = Stream::new(1, "heap");
            for _ in 0..20_000 {
                let block = 100 + stream.below(20) as u32;
                if stream.chance(0.4) {
                    assert_eq!(heap.remove(BlockId(block)), model.remove(&block).is_some());
                } else {
                    let key = stream.below(12) as u32;
                    heap.set(BlockId(block), key);
                    model.insert(block, key);
                }
                let by = |(block, key): &(&u32, &u32)| match top {
                    Top::Least => (**key, **block),
                    Top::Greatest => (u32::MAX - **key, **block),
                };
                let expected = model.iter().min_by_key(by);
                assert_eq!(heap.top(), expected.map(|(block, key)| (*key, BlockId(*block))));
                assert_eq!(heap.len(), model.len());
            }
        }
    }
}
