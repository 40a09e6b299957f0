//! Windowed greedy: greedy among the blocks closed longest ago.
//!
//! The window always holds the oldest candidates of a pool; when one leaves, the next oldest
//! comes in. Blocks in the window are kept by their valid pages, the rest in order of age, so
//! nothing is searched.

use super::{BlockLists, BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::array::Array;
use crate::geometry::BlockId;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};

/// Windowed greedy.
pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "windowed-greedy",
        summary: "Collects the block with the fewest valid pages among the oldest ones.",
        origin: "Hu, Eleftheriou, Haas, Iliadis and Pletka, SYSTOR 2009",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 1] = [Param::with(
    "window",
    Kind::Count { min: 1, max: 1 << 31 },
    "64",
    "Blocks in the window, per plane; 1 is FIFO, all of them is greedy.",
)];

struct Windowed {
    /// Per pool and number of valid pages the blocks in the window.
    inside: BlockLists,
    /// Per pool the younger blocks, the oldest first.
    waiting: BlockLists,
    /// Per pool the blocks in the window.
    count: Vec<u64>,
    /// Per pool a number of valid pages no block in the window is below.
    least: Vec<u32>,
    window: u64,
    levels: u32,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let blocks = input.geometry.blocks();
    let levels = input.geometry.pages_per_block() + 1;
    Ok(Box::new(Windowed {
        inside: BlockLists::new(input.pools * levels as usize, blocks),
        waiting: BlockLists::new(input.pools, blocks),
        count: vec![0; input.pools],
        least: vec![levels; input.pools],
        window: input.settings.count("window"),
        levels,
    }))
}

impl Windowed {
    fn put_inside(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.inside.push_tail(pool * self.levels as usize + valid as usize, block);
        self.least[pool] = self.least[pool].min(valid);
    }

    /// Lets waiting blocks into a window that is not full.
    fn fill(&mut self, pool: usize, array: &Array) {
        while self.count[pool] < self.window {
            let Some(next) = self.waiting.head(pool) else { return };
            self.waiting.remove(next);
            self.put_inside(pool, next, array.valid(next));
            self.count[pool] += 1;
        }
    }
}

impl VictimPolicy for Windowed {
    fn closed(&mut self, pool: usize, block: BlockId, _valid: u32) {
        self.waiting.push_tail(pool, block);
    }

    #[inline]
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32) {
        if self.inside.list_of(block).is_some() {
            self.inside.remove(block);
            self.put_inside(pool, block, valid);
        }
    }

    fn removed(&mut self, pool: usize, block: BlockId) {
        if self.inside.list_of(block).is_some() {
            self.inside.remove(block);
            self.count[pool] -= 1;
        } else {
            self.waiting.remove(block);
        }
    }

    fn choose(&mut self, pool: usize, array: &Array) -> Option<BlockId> {
        // Nothing is asked of the window between two choices, so it may fill as late as here.
        self.fill(pool, array);
        for level in self.least[pool]..self.levels {
            let head = self.inside.head(pool * self.levels as usize + level as usize);
            if head.is_some() {
                self.least[pool] = level;
                // With nothing but full blocks in the window, moving the oldest on is the only
                // way to ever reach the younger ones; not so when the window holds them all.
                let all_full = level + 1 == self.levels && self.waiting.head(pool).is_none();
                return head.filter(|_| !all_full);
            }
        }
        None
    }

    fn save(&self, to: &mut Saver) {
        self.inside.save(to);
        self.waiting.save(to);
        to.put(&(&self.count, &self.least));
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.inside.restore(from)?;
        self.waiting.restore(from)?;
        let (count, least): (Vec<u64>, Vec<u32>) = from.take()?;
        state::same_length("the list of pools", count.len(), self.count.len())?;
        state::same_length("the list of pools", least.len(), self.least.len())?;
        (self.count, self.least) = (count, least);
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        // Two links and a list number per block, head and tail per list, in 4 bytes each.
        (self.inside.links.len() * 12 + (self.inside.heads.len() + self.waiting.heads.len()) * 8)
            as u64
    }
}
