//! Random: any closed block.

use super::ranked::Ranked;
use super::{BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::array::Array;
use crate::geometry::BlockId;
use hybridsim_engine::Stream;
use hybridsim_engine::registry::Description;
use hybridsim_engine::state::{Loader, Saver, StateError};

/// Random.
pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "random",
        summary: "Collects any block, each with the same probability, whatever it holds.",
        origin: "the lower bound of the analyses; Van Houdt, SIGMETRICS 2013",
        params: &[],
    },
    build,
};

struct Random {
    ranked: Ranked,
    stream: Stream,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    Ok(Box::new(Random { ranked: input.ranked(), stream: input.stream() }))
}

impl VictimPolicy for Random {
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
        if !self.ranked.any_gain(pool) {
            return None;
        }
        let rank = self.stream.below(u64::from(self.ranked.len(pool))) as u32;
        self.ranked.draw_like(pool, rank, &mut self.stream)
    }

    fn save(&self, to: &mut Saver) {
        self.ranked.save(to);
        to.put(&self.stream);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.ranked.restore(from)?;
        self.stream = from.take()?;
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        // A real controller draws a block number and needs no table at all.
        0
    }
}
