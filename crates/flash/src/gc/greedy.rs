//! Greedy: the block with the fewest valid pages.
//!
//! Per pool one list of candidates for each number of valid pages. A block moves one list down
//! when a page of it becomes invalid, so the least list is found without looking at blocks.
//!
//! Only the lists of the lowest numbers are kept, about a sixteenth of the candidates:
//! the others would change lists again and again before it is their turn. They are looked at when
//! the lists have run empty, which comes after a part of them was chosen, so choosing stays
//! cheap however many there are. When each number last changed is known, so lists are in the order
//! they would be in had they been kept all the time.

use super::{BlockLists, BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::array::Array;
use crate::geometry::BlockId;
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

/// Greedy.
pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "greedy",
        summary: "Collects the block with the fewest valid pages, the oldest of several.",
        origin: "common practice; analysed by Desnoyers, SYSTOR 2012",
        params: &[],
    },
    build,
};

/// Lists are filled until they hold this part of a pool's candidates,
const LISTED_LEAST: u32 = 32;
/// and given up from the top while they hold more than this part.
const LISTED_MOST: u32 = 16;

struct Greedy {
    /// Per pool a list for each number of valid pages, then one of the candidates left out.
    lists: BlockLists,
    /// Per list its length.
    lengths: Vec<u32>,
    pools: Vec<Pool>,
    /// Per block when it was closed or its number of valid pages changed, by `now`.
    changed: Vec<u64>,
    now: u64,
    /// Pages of a block.
    full: u32,
    /// Blocks to list, while lists are filled.
    rising: Vec<Rising>,
}

/// What is known of a pool.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pool {
    /// A number of valid pages no candidate is below.
    least: u32,
    /// Candidates with more valid pages are left out of the lists.
    highest: u32,
    /// Candidates in lists.
    listed: u32,
    /// Candidates left out.
    others: u32,
}

/// A candidate to list, in the order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rising {
    valid: u32,
    changed: u64,
    block: BlockId,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let (blocks, full) = (input.geometry.blocks(), input.geometry.pages_per_block());
    let lists = input.pools * (full as usize + 2);
    Ok(Box::new(Greedy {
        lists: BlockLists::new(lists, blocks),
        lengths: vec![0; lists],
        pools: vec![Pool { least: 0, highest: 0, listed: 0, others: 0 }; input.pools],
        changed: vec![0; blocks as usize],
        now: 0,
        full,
        rising: Vec::new(),
    }))
}

impl Greedy {
    /// The list of the candidates of `pool` with `valid` valid pages.
    #[inline]
    const fn list(&self, pool: usize, valid: u32) -> usize {
        pool * (self.full as usize + 2) + valid as usize
    }

    /// The list of the candidates of `pool` left out of the others.
    #[inline]
    const fn others(&self, pool: usize) -> usize {
        self.list(pool, self.full + 1)
    }

    /// Puts `block`, in no list, where it belongs.
    #[inline]
    fn enlist(&mut self, pool: usize, block: BlockId, valid: u32) {
        let known = &mut self.pools[pool];
        let list = if valid <= known.highest {
            known.listed += 1;
            known.least = known.least.min(valid);
            self.list(pool, valid)
        } else {
            known.others += 1;
            self.others(pool)
        };
        self.lists.push_tail(list, block);
        self.lengths[list] += 1;
    }

    /// Takes `block` out of its list; false when it is in none.
    #[inline]
    fn strike(&mut self, pool: usize, block: BlockId) -> bool {
        let Some(list) = self.lists.list_of(block) else { return false };
        self.lists.remove(block);
        self.lengths[list] -= 1;
        let left_out = list == self.others(pool);
        let Pool { listed, others, .. } = &mut self.pools[pool];
        *(if left_out { others } else { listed }) -= 1;
        true
    }

    /// The first block of the least list.
    #[inline]
    fn first(&mut self, pool: usize) -> Option<BlockId> {
        // The least level falls by one per invalidated page, so the climb is paid for already.
        let Pool { least, highest, .. } = self.pools[pool];
        let end = self.full.min(highest + 1);
        for level in least..end {
            let head = self.lists.head(self.list(pool, level));
            if head.is_some() {
                self.pools[pool].least = level;
                return head;
            }
        }
        self.pools[pool].least = end.max(least);
        None
    }

    /// Fills the empty lists of `pool` with the lowest of the candidates left out. The work is
    /// that of looking at all of them, and comes again only after a share of them has been chosen.
    #[cold]
    fn fill_lists(&mut self, pool: usize, array: &Array) {
        let mut rising = std::mem::take(&mut self.rising);
        rising.clear();
        let mut next = self.lists.head(self.others(pool));
        while let Some(block) = next {
            let (valid, changed) = (array.valid(block), self.changed[block.0 as usize]);
            rising.push(Rising { valid, changed, block });
            next = self.lists.behind(block);
        }
        if !rising.is_empty() {
            let last = rising.len() / LISTED_LEAST as usize;
            let highest = rising.select_nth_unstable(last).1.valid;
            self.pools[pool].highest = highest;
            rising.retain(|candidate| candidate.valid <= highest);
            rising.sort_unstable();
            for candidate in &rising {
                self.strike(pool, candidate.block);
                self.enlist(pool, candidate.block, candidate.valid);
            }
        }
        self.rising = rising;
    }

    /// Gives up lists from the top while they hold too many. What a list holds was put there one
    /// by one, so that work is paid for as well.
    fn give_up_lists(&mut self, pool: usize) {
        loop {
            let Pool { least, highest, listed, others } = self.pools[pool];
            let all = listed + others;
            let list = self.list(pool, highest);
            let left = listed - self.lengths[list];
            if highest <= least || listed <= all / LISTED_MOST || left <= all / LISTED_LEAST {
                return;
            }
            self.pools[pool].highest = highest - 1;
            while let Some(block) = self.lists.head(list) {
                self.strike(pool, block);
                self.enlist(pool, block, highest);
            }
        }
    }
}

impl VictimPolicy for Greedy {
    fn closed(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.now += 1;
        self.changed[block.0 as usize] = self.now;
        self.enlist(pool, block, valid);
    }

    #[inline]
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.now += 1;
        self.changed[block.0 as usize] = self.now;
        if valid <= self.pools[pool].highest && self.strike(pool, block) {
            self.enlist(pool, block, valid);
        }
    }

    fn removed(&mut self, pool: usize, block: BlockId) {
        self.strike(pool, block);
    }

    fn choose(&mut self, pool: usize, array: &Array) -> Option<BlockId> {
        let chosen = self.first(pool);
        if chosen.is_some() {
            self.give_up_lists(pool);
            return chosen;
        }
        // Full blocks are not worth collecting, and they alone may be in lists now.
        if self.pools[pool].listed == 0 {
            self.fill_lists(pool, array);
        }
        self.first(pool)
    }

    fn save(&self, to: &mut Saver) {
        self.lists.save(to);
        to.put(&(&self.lengths, &self.pools, &self.changed, self.now));
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.lists.restore(from)?;
        let (lengths, pools, changed, now): (Vec<u32>, Vec<Pool>, Vec<u64>, u64) = from.take()?;
        state::same_length("the list of lengths", lengths.len(), self.lengths.len())?;
        state::same_length("the list of pools", pools.len(), self.pools.len())?;
        state::same_length("the list of changes", changed.len(), self.changed.len())?;
        (self.lengths, self.pools, self.changed, self.now) = (lengths, pools, changed, now);
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        // Two links and a list number per block, head and tail per list, in 4 bytes each. A
        // controller that keeps all lists needs neither lengths nor times.
        let lists = self.pools.len() as u64 * (u64::from(self.full) + 1);
        self.lists.links.len() as u64 * 12 + lists * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ProgramOrder;
    use crate::geometry::{Geometry, Lpn, Ppn, Shape};
    use hybridsim_engine::Stream;

    const PAGES: u32 = 8;
    const BLOCKS: u32 = 40;

    fn geometry() -> Geometry {
        let shape = Shape {
            channels: 2,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: u64::from(BLOCKS / 2),
            pages_per_block: u64::from(PAGES),
            page_bytes: 512,
            spare_bytes: 0,
        };
        Geometry::new(&shape).expect("a sound shape")
    }

    /// A full list for every number of valid pages, kept all the time.
    #[derive(Default)]
    struct AllLists {
        lists: [[Vec<BlockId>; PAGES as usize + 1]; 2],
    }

    impl AllLists {
        fn remove(&mut self, pool: usize, block: BlockId) -> bool {
            let was = self.lists[pool].iter().any(|list| list.contains(&block));
            self.lists[pool].iter_mut().for_each(|list| list.retain(|other| *other != block));
            was
        }
        fn choose(&self, pool: usize) -> Option<BlockId> {
            self.lists[pool][..PAGES as usize].iter().find_map(|list| list.first().copied())
        }
    }

    fn fill(array: &mut Array, block: BlockId) {
        let first = array.geometry().page(block, 0).0;
        (first..first + PAGES).for_each(|page| assert!(array.program(Ppn(page), Lpn(page))));
    }

    /// Whatever happens, the choice is the one of all lists, and few blocks are in lists.
    #[test]
    fn lists_that_are_left_out_change_no_choice() {
        let geometry = geometry();
        let mut array = Array::new(geometry, ProgramOrder::Sequential, 1 << 30);
        let settings = hybridsim_config::param::Settings::default();
        let input =
            GcInput { settings: &settings, geometry: &geometry, pools: 2, seed: 1, path: "" };
        let (mut greedy, mut all) = (build(&input).expect("no parameters"), AllLists::default());
        let mut stream = Stream::new(1, "greedy");
        let mut closed = vec![false; BLOCKS as usize];
        for _ in 0..60_000 {
            let block = BlockId(stream.below(u64::from(BLOCKS)) as u32);
            let pool = geometry.plane_of(block).0 as usize;
            let valid = array.valid(block);
            if array.next_page(block) == 0 {
                fill(&mut array, block);
            } else if !closed[block.0 as usize] && stream.chance(0.5) {
                closed[block.0 as usize] = true;
                greedy.closed(pool, block, valid);
                all.lists[pool][valid as usize].push(block);
            } else if valid > 0 && stream.chance(0.9) {
                let offset = array.next_valid(block, 0).expect("it has valid pages");
                let valid = array.invalidate(geometry.page(block, offset));
                greedy.invalidated(pool, block, valid);
                if all.remove(pool, block) {
                    all.lists[pool][valid as usize].push(block);
                }
            } else if let Some(victim) = greedy.choose(pool, &array) {
                assert_eq!(all.choose(pool), Some(victim));
                greedy.removed(pool, victim);
                all.remove(pool, victim);
                closed[victim.0 as usize] = false;
                while let Some(offset) = array.next_valid(victim, 0) {
                    array.invalidate(geometry.page(victim, offset));
                }
                array.erase(victim);
            } else {
                assert_eq!(all.choose(pool), None);
            }
        }
    }
}
