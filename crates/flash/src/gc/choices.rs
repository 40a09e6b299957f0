//! d choices: the best of a few blocks drawn at random.
//!
//! Blocks are drawn with replacement, as in the analysis; of several equally good ones each is as
//! likely. Drawing `d` ranks among the candidates sorted by valid pages and taking the least is
//! the same in distribution, and touches one block only.

use super::ranked::Ranked;
use super::{BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::array::Array;
use crate::geometry::BlockId;
use hybridsim_engine::Stream;
use hybridsim_engine::param::{Kind, Param};
use hybridsim_engine::registry::Description;
use hybridsim_engine::state::{Loader, Saver, StateError};

/// d choices.
pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "d-choices",
        summary: "Collects the one with the fewest valid pages of d blocks drawn at random.",
        origin: "Van Houdt, SIGMETRICS 2013; Li, Lee and Lui, SIGMETRICS 2013",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 1] = [Param::with(
    "choices",
    Kind::Count { min: 1, max: 4096 },
    "10",
    "How many blocks are drawn (d); 1 is a random victim, many come close to greedy.",
)];

struct Choices {
    ranked: Ranked,
    stream: Stream,
    choices: u32,
    searched: u32,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let choices = input.settings.count("choices") as u32;
    Ok(Box::new(Choices { ranked: input.ranked(), stream: input.stream(), choices, searched: 0 }))
}

impl VictimPolicy for Choices {
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
        self.searched = self.choices;
        let candidates = u64::from(self.ranked.len(pool));
        let ranks = (0..self.choices).map(|_| self.stream.below(candidates) as u32);
        let rank = ranks.min().expect("at least one is drawn");
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
        // A real controller keeps a count of valid pages per block, in 4 bytes, and looks it up.
        self.ranked.blocks() * 4
    }
}
