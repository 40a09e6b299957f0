//! Greedy: the block with the fewest valid pages.
//!
//! Each pool has a list of candidates for each number of valid pages. A block moves to a lower list
//! when a page of it is invalidated, so the victim is found without a search.
//!
//! Only the lists of the lowest numbers are kept, with about a sixteenth of the candidates: blocks
//! in the others would change lists many times before they become victims. When the kept lists run
//! empty they are filled from the unlisted candidates, after a share of all candidates has been
//! collected, so the amortised cost of a choice is small on a device of any size. The time at which
//! each block's number of valid pages last changed is known, so the lists are in the order they
//! would have had if all of them had been kept.

use super::{BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use crate::geometry::BlockId;
use crate::lists::Lists;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "greedy",
        summary: "Collects the block with the fewest valid pages, the oldest of several.",
        origin: "common practice; analysed by Desnoyers, SYSTOR 2012",
        params: &[],
    },
    provides: &[],
    build,
};

/// The lists are filled with one of this many candidates of a pool,
const LISTED_LEAST: u32 = 32;
/// and dropped from the top while they hold more than one of this many.
const LISTED_MOST: u32 = 16;

#[derive(Serialize, Deserialize)]
struct Greedy {
    /// For each pool, a list for each number of valid pages and a list of unlisted candidates.
    lists: Lists,
    lengths: Vec<u32>,
    pools: Vec<Pool>,
    /// By block, when it was closed or lost a page, as counted by `now`.
    changed: Vec<u64>,
    now: u64,
    pages_per_block: u32,
    /// Candidates to list; kept for its memory.
    #[serde(skip)]
    candidates: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Pool {
    /// A lower bound of the valid pages of all candidates.
    least: u32,
    /// Candidates with more valid pages are unlisted.
    highest: u32,
    listed: u32,
    unlisted: u32,
}

/// A candidate to list, in list order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    valid: u32,
    changed: u64,
    block: BlockId,
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let (blocks, pages_per_block) = (input.blocks, input.pages_per_block);
    let lists = input.pools * (pages_per_block as usize + 2);
    Ok(Box::new(Greedy {
        lists: Lists::new(lists, blocks as usize),
        lengths: vec![0; lists],
        pools: vec![Pool::default(); input.pools],
        changed: vec![0; blocks as usize],
        now: 0,
        pages_per_block,
        candidates: Vec::new(),
    }))
}

impl Greedy {
    /// The list of the candidates of `pool` with `valid` valid pages.
    #[inline]
    const fn list(&self, pool: usize, valid: u32) -> usize {
        pool * (self.pages_per_block as usize + 2) + valid as usize
    }

    #[inline]
    const fn unlisted(&self, pool: usize) -> usize {
        self.list(pool, self.pages_per_block + 1)
    }

    #[inline]
    fn enlist(&mut self, pool: usize, block: BlockId, valid: u32) {
        let counts = &mut self.pools[pool];
        let list = if valid <= counts.highest {
            counts.listed += 1;
            counts.least = counts.least.min(valid);
            self.list(pool, valid)
        } else {
            counts.unlisted += 1;
            self.unlisted(pool)
        };
        self.lists.push(list, block.0);
        self.lengths[list] += 1;
    }

    /// Removes `block` from its list; returns whether it was in one.
    #[inline]
    fn delist(&mut self, pool: usize, block: BlockId) -> bool {
        let Some(list) = self.lists.list_of(block.0) else { return false };
        self.lists.remove(block.0);
        self.lengths[list] -= 1;
        let was_unlisted = list == self.unlisted(pool);
        let Pool { listed, unlisted, .. } = &mut self.pools[pool];
        *(if was_unlisted { unlisted } else { listed }) -= 1;
        true
    }

    /// The head of the lowest list that is not empty.
    #[inline]
    fn first(&mut self, pool: usize) -> Option<BlockId> {
        // `least` falls by one for each invalidated page at most, which bounds this loop.
        let Pool { least, highest, .. } = self.pools[pool];
        let end = self.pages_per_block.min(highest + 1);
        for valid in least..end {
            let head = self.lists.first(self.list(pool, valid)).map(BlockId);
            if head.is_some() {
                self.pools[pool].least = valid;
                return head;
            }
        }
        self.pools[pool].least = end.max(least);
        None
    }

    /// Fills the empty lists of `pool` with the lowest of the unlisted candidates. Scans all of
    /// them, but only once for each share of the candidates that is collected.
    #[cold]
    fn fill_lists(&mut self, pool: usize, valid: &dyn Fn(BlockId) -> u32) {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        candidates.extend(self.lists.iter(self.unlisted(pool)).map(|block| Candidate {
            valid: valid(BlockId(block)),
            changed: self.changed[block as usize],
            block: BlockId(block),
        }));
        if !candidates.is_empty() {
            let last = candidates.len() / LISTED_LEAST as usize;
            let highest = candidates.select_nth_unstable(last).1.valid;
            self.pools[pool].highest = highest;
            candidates.retain(|candidate| candidate.valid <= highest);
            candidates.sort_unstable();
            for candidate in &candidates {
                self.delist(pool, candidate.block);
                self.enlist(pool, candidate.block, candidate.valid);
            }
        }
        self.candidates = candidates;
    }

    /// Drops the highest lists while the lists hold too many candidates.
    fn drop_lists(&mut self, pool: usize) {
        loop {
            let Pool { least, highest, listed, unlisted } = self.pools[pool];
            let all = listed + unlisted;
            let list = self.list(pool, highest);
            let left = listed - self.lengths[list];
            if highest <= least || listed <= all / LISTED_MOST || left <= all / LISTED_LEAST {
                return;
            }
            self.pools[pool].highest = highest - 1;
            while let Some(block) = self.lists.first(list).map(BlockId) {
                self.delist(pool, block);
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
        if valid <= self.pools[pool].highest && self.delist(pool, block) {
            self.enlist(pool, block, valid);
        }
    }

    fn removed(&mut self, pool: usize, block: BlockId) {
        self.delist(pool, block);
    }

    fn choose(&mut self, pool: usize, valid: &dyn Fn(BlockId) -> u32) -> Option<BlockId> {
        let chosen = self.first(pool);
        if chosen.is_some() {
            self.drop_lists(pool);
            return chosen;
        }
        // Collecting full blocks gains nothing, and the lists may hold only these.
        if self.pools[pool].listed == 0 {
            self.fill_lists(pool, valid);
        }
        self.first(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::{Array, ProgramOrder};
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
        Geometry::new(&shape).expect("a valid shape")
    }

    /// The reference: a list for every number of valid pages.
    #[derive(Default)]
    struct ReferenceLists {
        lists: [[Vec<BlockId>; PAGES as usize + 1]; 2],
    }

    impl ReferenceLists {
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

    #[test]
    fn unlisted_candidates_change_no_choice() {
        let geometry = geometry();
        let mut array = Array::new(geometry, ProgramOrder::Sequential, 1 << 30);
        let settings = hybridsim_config::param::Settings::default();
        let (settings, path) = (&settings, "");
        let input =
            GcInput { settings, blocks: BLOCKS, pages_per_block: PAGES, pools: 2, seed: 1, path };
        let (mut greedy, mut all) =
            (build(&input).expect("no parameters"), ReferenceLists::default());
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
            } else if let Some(victim) = greedy.choose(pool, &|block| array.valid(block)) {
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
