//! A set of blocks whose extreme is known: a binary heap that can drop any member.

use crate::geometry::BlockId;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// Which end of the keys is on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Top {
    Least,
    Greatest,
}

/// Blocks `first..first + count` by a key; of equal keys the lowest block number is on top.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BlockHeap {
    top: Top,
    first: u32,
    /// Key and block, the parent of entry `i` at `(i - 1) / 2`.
    entries: Vec<(u32, u32)>,
    /// Per block, from `first` on, its entry.
    places: Vec<u32>,
}

impl BlockHeap {
    /// An empty set of blocks from `first..first + count`.
    pub(super) fn new(top: Top, first: u32, count: u32) -> Self {
        let entries = Vec::with_capacity(count as usize);
        Self { top, first, entries, places: vec![NONE; count as usize] }
    }

    /// Number of blocks it could hold.
    pub(super) fn room(&self) -> usize {
        self.places.len()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The extreme key and its block.
    pub(super) fn top(&self) -> Option<(u32, BlockId)> {
        self.entries.first().map(|(key, block)| (*key, BlockId(*block)))
    }

    /// Adds `block`, or changes its key.
    pub(super) fn set(&mut self, block: BlockId, key: u32) {
        self.remove(block);
        let at = self.entries.len();
        self.entries.push((key, block.0));
        self.places[(block.0 - self.first) as usize] = at as u32;
        self.rise(at);
    }

    /// Drops `block`; false when it was not in the set.
    pub(super) fn remove(&mut self, block: BlockId) -> bool {
        let place = std::mem::replace(&mut self.places[(block.0 - self.first) as usize], NONE);
        if place == NONE {
            return false;
        }
        let at = place as usize;
        self.entries.swap_remove(at);
        if at < self.entries.len() {
            self.places[(self.entries[at].1 - self.first) as usize] = place;
            let at = self.rise(at);
            self.sink(at);
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
            self.places[(self.entries[at].1 - self.first) as usize] = at as u32;
        }
    }

    fn rise(&mut self, mut at: usize) -> usize {
        while at > 0 && self.above(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        at
    }

    fn sink(&mut self, mut at: usize) {
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
    fn the_extreme_is_always_on_top() {
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
