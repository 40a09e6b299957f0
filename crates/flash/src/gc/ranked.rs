//! Candidates in the order of their valid pages, for policies that draw blocks at random.

use crate::geometry::BlockId;
use hybridsim_engine::Stream;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// Where a block is in its pool's order, and with how many valid pages.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Place {
    position: u32,
    valid: u32,
}

/// The candidates of one pool.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    /// The candidates, those with the fewest valid pages first.
    blocks: Vec<u32>,
    /// Per number of valid pages, up to one more than a block has pages, the number of candidates
    /// with fewer.
    fewer: Vec<u32>,
}

/// The candidates of every pool, sorted by valid pages at all times.
///
/// A block that loses a page changes places with the first one of its level, and the border moves
/// by one. A block that comes or goes hops over the levels above its own, one step for each page
/// it has lost, so everything takes constant time per page invalidated. What random policies gain
/// from the order: the best of several blocks drawn at random is the one of least rank, so ranks
/// are drawn instead of blocks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ranked {
    pools: Vec<Order>,
    places: Vec<Place>,
    pages_per_block: u32,
}

impl Ranked {
    /// No candidates yet, of `blocks` blocks in `pools` pools.
    pub(super) fn new(pools: usize, blocks: u32, pages_per_block: u32) -> Self {
        let levels = pages_per_block as usize + 2;
        let order = |_| Order {
            blocks: Vec::with_capacity(blocks as usize / pools.max(1)),
            fewer: vec![0; levels],
        };
        Self {
            pools: (0..pools).map(order).collect(),
            places: vec![Place { position: NONE, valid: 0 }; blocks as usize],
            pages_per_block,
        }
    }

    /// Number of candidates of `pool`.
    pub(super) fn len(&self, pool: usize) -> u32 {
        self.pools[pool].blocks.len() as u32
    }

    /// Number of blocks of the device.
    pub(super) fn blocks(&self) -> u64 {
        self.places.len() as u64
    }

    /// Whether some candidate of `pool` holds an invalid page.
    pub(super) fn any_gain(&self, pool: usize) -> bool {
        self.pools[pool].fewer[self.pages_per_block as usize] > 0
    }

    /// `block` becomes a candidate with `valid` valid pages.
    pub(super) fn insert(&mut self, pool: usize, block: BlockId, valid: u32) {
        debug_assert_eq!(self.places[block.0 as usize].position, NONE, "already a candidate");
        let full = self.pages_per_block;
        let order = &mut self.pools[pool];
        let position = order.blocks.len() as u32;
        order.blocks.push(block.0);
        order.fewer[full as usize + 1] += 1;
        self.places[block.0 as usize] = Place { position, valid: full };
        self.lower(pool, block, valid);
    }

    /// `block` has only `valid` valid pages left; nothing happens if it is no candidate.
    #[inline]
    pub(super) fn lower(&mut self, pool: usize, block: BlockId, valid: u32) {
        let Place { position, valid: before } = self.places[block.0 as usize];
        if position == NONE {
            return;
        }
        for level in (valid + 1..=before).rev() {
            let border = self.pools[pool].fewer[level as usize];
            self.swap(pool, block, border);
            self.pools[pool].fewer[level as usize] += 1;
        }
        self.places[block.0 as usize].valid = valid;
    }

    /// `block` is no candidate any more; nothing happens if it was none.
    pub(super) fn remove(&mut self, pool: usize, block: BlockId) {
        let Place { position, valid } = self.places[block.0 as usize];
        if position == NONE {
            return;
        }
        for level in valid + 1..=self.pages_per_block + 1 {
            let fewer = &mut self.pools[pool].fewer[level as usize];
            *fewer -= 1;
            let last = *fewer;
            self.swap(pool, block, last);
        }
        self.pools[pool].blocks.pop();
        self.places[block.0 as usize].position = NONE;
    }

    /// Puts `block` where the block at `position` is, and that one where `block` was.
    #[inline]
    fn swap(&mut self, pool: usize, block: BlockId, position: u32) {
        let order = &mut self.pools[pool];
        let from = self.places[block.0 as usize].position;
        let other = order.blocks[position as usize];
        order.blocks[position as usize] = block.0;
        order.blocks[from as usize] = other;
        self.places[other as usize].position = from;
        self.places[block.0 as usize].position = position;
    }

    /// The candidate with the fewest valid pages but `rank`; of all that have as many, any one
    /// with equal probability.
    pub(super) fn draw_like(&self, pool: usize, rank: u32, stream: &mut Stream) -> Option<BlockId> {
        let order = &self.pools[pool];
        let block = *order.blocks.get(rank as usize)?;
        let valid = self.places[block as usize].valid as usize;
        let (first, end) = (order.fewer[valid], order.fewer[valid + 1]);
        // Blocks within a level are in an order that depends on their history.
        let drawn = first + stream.below(u64::from(end - first)) as u32;
        Some(BlockId(order.blocks[drawn as usize]))
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(self);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let saved: Self = from.take()?;
        state::same_length("the table of candidates", saved.places.len(), self.places.len())?;
        state::same_length("the list of pools", saved.pools.len(), self.pools.len())?;
        for (saved, own) in saved.pools.iter().zip(&self.pools) {
            state::same_length("the table of levels", saved.fewer.len(), own.fewer.len())?;
        }
        *self = saved;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u32 = 24;
    const PAGES: u32 = 5;

    fn check_order(ranked: &Ranked, valid: &[Option<u32>]) {
        for (pool, order) in ranked.pools.iter().enumerate() {
            let expected = valid
                .iter()
                .enumerate()
                .filter(|(block, valid)| valid.is_some() && block / (BLOCKS as usize / 2) == pool);
            assert_eq!(order.blocks.len(), expected.count());
            let levels: Vec<u32> = (order.blocks.iter())
                .map(|block| valid[*block as usize].expect("a candidate"))
                .collect();
            assert!(levels.is_sorted(), "{levels:?}");
            for level in 0..=PAGES + 1 {
                let fewer = levels.iter().filter(|valid| **valid < level).count() as u32;
                assert_eq!(order.fewer[level as usize], fewer, "below {level} of {levels:?}");
            }
        }
    }

    #[test]
    fn the_order_holds_whatever_happens() {
        let mut ranked = Ranked::new(2, BLOCKS, PAGES);
        let mut valid: Vec<Option<u32>> = vec![None; BLOCKS as usize];
        let mut stream = Stream::new(1, "ranked");
        for _ in 0..20_000 {
            let block = stream.below(u64::from(BLOCKS)) as u32;
            let pool = (block / (BLOCKS / 2)) as usize;
            let slot = &mut valid[block as usize];
            match *slot {
                None => {
                    let level = stream.below(u64::from(PAGES) + 1) as u32;
                    ranked.lower(pool, BlockId(block), level);
                    ranked.insert(pool, BlockId(block), level);
                    *slot = Some(level);
                }
                Some(level) if level > 0 && stream.chance(0.7) => {
                    ranked.lower(pool, BlockId(block), level - 1);
                    *slot = Some(level - 1);
                }
                Some(_) => {
                    ranked.remove(pool, BlockId(block));
                    *slot = None;
                }
            }
            check_order(&ranked, &valid);
        }
    }

    #[test]
    fn ties_are_drawn_evenly() {
        let mut ranked = Ranked::new(1, BLOCKS, PAGES);
        for block in 0..8 {
            ranked.insert(0, BlockId(block), if block < 4 { 3 } else { PAGES });
        }
        let mut stream = Stream::new(2, "ranked");
        let mut drawn = [0u32; 8];
        for _ in 0..8_000 {
            let block = ranked.draw_like(0, 0, &mut stream).expect("there are candidates");
            drawn[block.0 as usize] += 1;
        }
        assert_eq!(drawn[4..], [0; 4]);
        assert!(drawn[..4].iter().all(|count| (1_850..2_150).contains(count)), "{drawn:?}");
    }
}
