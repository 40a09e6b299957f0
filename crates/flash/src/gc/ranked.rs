//! Candidates sorted by valid pages, for the policies that draw blocks at random.

use crate::geometry::BlockId;
use hybridsim_engine::Stream;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Candidate {
    /// Rank in the pool, or [`NONE`].
    position: u32,
    valid: u32,
}

/// The candidates of one pool.
#[derive(Debug, Serialize, Deserialize)]
struct PoolRanking {
    /// Sorted by ascending number of valid pages.
    blocks: Vec<u32>,
    /// For each number of valid pages, up to one more than a block has, the number of candidates
    /// with fewer.
    fewer: Vec<u32>,
}

/// The candidates of every pool, sorted by valid pages at all times.
///
/// A block that loses a page is swapped with the first block that has as many valid pages, and the
/// border between the two levels moves by one. Adding or removing a block crosses the levels above
/// its own, one for each page it has lost, so the cost is constant per page invalidated. The best
/// of several blocks drawn at random is the one of lowest rank, so ranks are drawn instead of
/// blocks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ranked {
    pools: Vec<PoolRanking>,
    candidates: Vec<Candidate>,
    pages_per_block: u32,
}

impl Ranked {
    pub(super) fn new(pools: usize, blocks: u32, pages_per_block: u32) -> Self {
        let levels = pages_per_block as usize + 2;
        let ranking = |_| PoolRanking {
            blocks: Vec::with_capacity(blocks as usize / pools.max(1)),
            fewer: vec![0; levels],
        };
        Self {
            pools: (0..pools).map(ranking).collect(),
            candidates: vec![Candidate { position: NONE, valid: 0 }; blocks as usize],
            pages_per_block,
        }
    }

    pub(super) fn len(&self, pool: usize) -> u32 {
        self.pools[pool].blocks.len() as u32
    }

    /// Whether any candidate of `pool` holds an invalid page.
    pub(super) fn any_gain(&self, pool: usize) -> bool {
        self.pools[pool].fewer[self.pages_per_block as usize] > 0
    }

    /// `block` becomes a candidate with `valid` valid pages.
    pub(super) fn insert(&mut self, pool: usize, block: BlockId, valid: u32) {
        debug_assert_eq!(self.candidates[block.0 as usize].position, NONE, "already a candidate");
        let full = self.pages_per_block;
        let ranking = &mut self.pools[pool];
        let position = ranking.blocks.len() as u32;
        ranking.blocks.push(block.0);
        ranking.fewer[full as usize + 1] += 1;
        self.candidates[block.0 as usize] = Candidate { position, valid: full };
        self.lower(pool, block, valid);
    }

    /// Lowers the number of valid pages of `block` to `valid`, if it is a candidate.
    #[inline]
    pub(super) fn lower(&mut self, pool: usize, block: BlockId, valid: u32) {
        let Candidate { position, valid: before } = self.candidates[block.0 as usize];
        if position == NONE {
            return;
        }
        for level in (valid + 1..=before).rev() {
            let border = self.pools[pool].fewer[level as usize];
            self.swap(pool, block, border);
            self.pools[pool].fewer[level as usize] += 1;
        }
        self.candidates[block.0 as usize].valid = valid;
    }

    pub(super) fn remove(&mut self, pool: usize, block: BlockId) {
        let Candidate { position, valid } = self.candidates[block.0 as usize];
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
        self.candidates[block.0 as usize].position = NONE;
    }

    #[inline]
    fn swap(&mut self, pool: usize, block: BlockId, position: u32) {
        let ranking = &mut self.pools[pool];
        let from = self.candidates[block.0 as usize].position;
        let other = ranking.blocks[position as usize];
        ranking.blocks[position as usize] = block.0;
        ranking.blocks[from as usize] = other;
        self.candidates[other as usize].position = from;
        self.candidates[block.0 as usize].position = position;
    }

    /// A candidate with as many valid pages as the one of rank `rank`, each with the same
    /// probability.
    pub(super) fn draw_like(&self, pool: usize, rank: u32, stream: &mut Stream) -> Option<BlockId> {
        let ranking = &self.pools[pool];
        let block = *ranking.blocks.get(rank as usize)?;
        let valid = self.candidates[block as usize].valid as usize;
        let (first, end) = (ranking.fewer[valid], ranking.fewer[valid + 1]);
        // The order of blocks with equally many valid pages depends on their history.
        let drawn = first + stream.below(u64::from(end - first)) as u32;
        Some(BlockId(ranking.blocks[drawn as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u32 = 24;
    const PAGES: u32 = 5;

    fn check_ranking(ranked: &Ranked, valid: &[Option<u32>]) {
        for (pool, ranking) in ranked.pools.iter().enumerate() {
            let expected = valid
                .iter()
                .enumerate()
                .filter(|(block, valid)| valid.is_some() && block / (BLOCKS as usize / 2) == pool);
            assert_eq!(ranking.blocks.len(), expected.count());
            let levels: Vec<u32> = (ranking.blocks.iter())
                .map(|block| valid[*block as usize].expect("a candidate"))
                .collect();
            assert!(levels.is_sorted(), "{levels:?}");
            for level in 0..=PAGES + 1 {
                let fewer = levels.iter().filter(|valid| **valid < level).count() as u32;
                assert_eq!(ranking.fewer[level as usize], fewer, "below {level} of {levels:?}");
            }
        }
    }

    #[test]
    fn candidates_stay_sorted() {
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
            check_ranking(&ranked, &valid);
        }
    }

    #[test]
    fn ties_are_broken_evenly() {
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
