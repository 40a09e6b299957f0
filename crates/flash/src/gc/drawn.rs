//! What policies that draw blocks at random have in common: they differ in the rank they draw.

use super::ranked::Ranked;
use super::{GcInput, VictimPolicy};
use crate::array::Array;
use crate::geometry::BlockId;
use hybridsim_engine::Stream;
use hybridsim_engine::state::{Loader, Saver, StateError};

/// Draws a rank among candidates sorted by valid pages, those with the fewest first.
pub(super) trait DrawRank {
    /// A rank below `candidates`, which are one at least, and how many blocks a controller looks
    /// at for it.
    fn draw(&self, candidates: u32, stream: &mut Stream) -> (u32, u32);

    /// Bytes of memory a controller needs for each of its blocks.
    fn bytes_per_block(&self) -> u64;
}

/// Collects the block of the rank drawn, or any other with as many valid pages.
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

    fn choose(&mut self, pool: usize, _array: &Array) -> Option<BlockId> {
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

    fn save(&self, to: &mut Saver) {
        self.ranked.save(to);
        to.put(&(&self.stream, self.searched));
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.ranked.restore(from)?;
        (self.stream, self.searched) = from.take()?;
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        self.ranked.blocks() * self.draw.bytes_per_block()
    }
}
