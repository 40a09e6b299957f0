//! The policies that draw blocks at random; they differ in how they draw a rank.

use super::ranked::Ranked;
use super::{GcInput, VictimPolicy};
use crate::geometry::BlockId;
use hybridsim_engine::Stream;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Draws a rank among candidates sorted by ascending number of valid pages.
pub(super) trait DrawRank: Serialize + DeserializeOwned {
    /// A rank below `candidates`, of which there is at least one, and how many blocks a controller
    /// searches for it.
    fn draw(&self, candidates: u32, stream: &mut Stream) -> (u32, u32);
}

/// Collects a block with as many valid pages as the block of the drawn rank.
#[derive(Serialize, Deserialize)]
#[serde(bound = "D: DrawRank")]
pub(super) struct Drawn<D> {
    ranked: Ranked,
    stream: Stream,
    searched: u32,
    draw: D,
}

impl<D: DrawRank> Drawn<D> {
    pub(super) fn new(input: &GcInput<'_>, draw: D) -> Self {
        Self { ranked: input.ranked(), stream: input.stream(), searched: 0, draw }
    }
}

impl<D: DrawRank> VictimPolicy for Drawn<D> {
    fn closed(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.ranked.insert(pool, block, valid);
    }

    #[inline]
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.ranked.lower(pool, block, valid);
    }

    fn removed(&mut self, pool: usize, block: BlockId) {
        self.ranked.remove(pool, block);
    }

    fn choose(&mut self, pool: usize, _valid: &dyn Fn(BlockId) -> u32) -> Option<BlockId> {
        self.searched = 0;
        if !self.ranked.any_gain(pool) {
            return None;
        }
        let rank;
        (rank, self.searched) = self.draw.draw(self.ranked.len(pool), &mut self.stream);
        self.ranked.draw_like(pool, rank, &mut self.stream)
    }

    fn searched(&self) -> u32 {
        self.searched
    }
}
