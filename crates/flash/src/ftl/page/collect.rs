//! Garbage collection of the page-mapped layer: which pages move when, and what is looked up ahead.

use super::{Frontier, Log, PageMap, Pool, Victim};
use crate::array::{Array, WORD_PAGES};
use crate::event::Cause;
use crate::ftl::EXPECTED_MAX;
use crate::geometry::{BlockId, Ppn};
use crate::ops::{After, FlashOps};

/// Pages to move that are looked up together, at most. More would not stay in the processor's
/// nearest caches until their turn comes.
const TOGETHER_MAX: usize = 256;
const _: () = assert!(TOGETHER_MAX >= 2 * EXPECTED_MAX, "a few for each expected write");

/// Fewer pages are not looked up before the first of them moves: the processor does that while it
/// moves them, and behind an expected write they have been looked up with it.
const TOGETHER_MIN: u32 = 16;

/// Logical pages to look up, that will move.
struct Moving {
    lpns: [u32; TOGETHER_MAX],
    count: usize,
}

impl Moving {
    const fn new() -> Self {
        Self { lpns: [0; TOGETHER_MAX], count: 0 }
    }

    /// Adds what the valid pages of `block` from offset `from` on hold, `most` at most. Says from
    /// which offset on pages are left out.
    #[inline]
    fn add(&mut self, array: &Array, block: BlockId, from: u32, most: usize) -> u32 {
        let mut slots = self.lpns[self.count..].iter_mut().take(most);
        let mut next = Some(from);
        while let Some(from) = next {
            let (mut rest, first) = array.valid_word(block, from);
            while rest != 0 {
                let bit = rest.trailing_zeros();
                let Some(slot) = slots.next() else { return from - from % WORD_PAGES + bit };
                *slot = array.owner(Ppn(first.0 + bit)).0;
                self.count += 1;
                rest &= rest - 1;
            }
            next = array.next_valid(block, from - from % WORD_PAGES + WORD_PAGES);
        }
        u32::MAX
    }
}

/// What one turn of garbage collection led to.
pub(super) enum Collected {
    /// The budget is used up, the victim is not finished.
    Partly,
    /// A block was erased.
    Block,
    /// No block is worth collecting, or there is no room to move its pages to.
    Nothing,
}

impl PageMap {
    /// Where moved pages go.
    #[inline]
    const fn log_of(&self, wear: bool) -> Log {
        match (wear, self.separate) {
            (true, _) => Log::Wear,
            (false, true) => Log::Gc,
            (false, false) => Log::Host,
        }
    }

    /// Moves up to `budget` pages of the victim of `pool`, and erases it when it is empty.
    pub(super) fn collect(&mut self, pool: usize, budget: u32, flash: &mut FlashOps) -> Collected {
        if self.pools[pool].victim.is_none() {
            self.pools[pool].victim = self.choose(pool, false, flash);
        }
        let Some(Victim { block, next, wear, .. }) = self.pools[pool].victim else {
            return Collected::Nothing;
        };
        let (mut next, mut left) = (next, budget);
        let mut looked_up = if left < TOGETHER_MIN { u32::MAX } else { 0 };
        while let Some(offset) = flash.array().next_valid(block, next) {
            if left == 0 {
                // The field alone: to put the whole back would wait for the copy of it.
                if let Some(victim) = &mut self.pools[pool].victim {
                    victim.next = next;
                }
                return Collected::Partly;
            }
            let log = self.log_of(wear);
            if offset >= looked_up {
                looked_up = self.look_ahead(pool, log, (block, offset), left, flash);
            }
            let moved;
            (moved, next) = self.move_pages(pool, log, (block, offset), left, flash);
            left -= moved;
        }
        self.pools[pool].victim = None;
        self.reclaim(pool, block, wear, flash);
        Collected::Block
    }

    /// Moves some of the next valid pages of `block`, from offset `from` on, no more than `budget`
    /// and what fits the open block. Says how many, and up to which offset it looked.
    #[inline]
    fn move_pages(
        &mut self,
        pool: usize,
        log: Log,
        (block, from): (BlockId, u32),
        budget: u32,
        flash: &mut FlashOps,
    ) -> (u32, u32) {
        let pages_per_block = self.geometry.pages_per_block();
        if self.pools[pool].open[log as usize].next == pages_per_block {
            self.pools[pool].begin_block(log);
        }
        let Frontier { block: to, next: first } = self.pools[pool].open[log as usize];
        let (page, most) = (self.geometry.page(to, first), budget.min(pages_per_block - first));
        let Self { run, map, .. } = self;
        let end = flash.array().take_run(block, from, most, run);
        flash.copy_run(run, (to, first), if log == Log::Wear { Cause::Wear } else { Cause::Gc });
        map.set_run(run.owners(), page);
        let count = run.pages().len() as u32;
        self.pools[pool].open[log as usize].next = first + count;
        if first + count == pages_per_block {
            self.close_if_full(pool, Some(to), flash);
        }
        (count, end)
    }

    /// Erases a victim whose pages have all been moved, and decides what becomes of it.
    fn reclaim(&mut self, pool: usize, block: BlockId, wear: bool, flash: &mut FlashOps) {
        let cause = if wear { Cause::Wear } else { Cause::Gc };
        // Room that was kept for this victim's pages, and not needed.
        let spare = if wear { self.pools[pool].worn.take() } else { None };
        if let Some(spare) = spare {
            self.pools[pool].free.put(spare, flash.array().erases(spare));
        }
        let usable = flash.erase(block, cause, After::NOTHING);
        let erases = flash.array().erases(block);
        if !usable {
            self.wear.retired(pool, block);
            let limit = &mut self.pools[pool].limit;
            *limit = limit.saturating_sub(self.geometry.pages_per_block());
            return;
        }
        let Some(cold) = self.wear.erased(pool, block, erases, true) else {
            self.pools[pool].free.put(block, erases);
            return;
        };
        self.policy.removed(pool, cold);
        let valid = flash.array().valid(cold);
        let frontier = self.pools[pool].open[Log::Host as usize];
        let host_pages = self.geometry.pages_per_block() - frontier.next;
        let pace = valid.div_ceil(host_pages.max(1)).max(1);
        self.pools[pool].worn = Some(block);
        self.pools[pool].victim = Some(Victim { block: cold, next: 0, pace, wear: true });
    }

    /// Begins a victim, if there is one whose pages have room elsewhere and, with `must_gain`,
    /// one that holds an invalid page.
    pub(super) fn choose(
        &mut self,
        pool: usize,
        must_gain: bool,
        flash: &mut FlashOps,
    ) -> Option<Victim> {
        let chosen = self.policy.choose(pool, flash.array());
        flash.note_search(self.policy.searched());
        let block = chosen?;
        let valid = flash.array().valid(block);
        let pages_per_block = self.geometry.pages_per_block();
        let Pool { open, free, .. } = &self.pools[pool];
        let frontier = open[if self.separate { Log::Gc } else { Log::Host } as usize];
        let room = u64::from(pages_per_block - frontier.next)
            + free.len() as u64 * u64::from(pages_per_block);
        if u64::from(valid) > room || (must_gain && valid == pages_per_block) {
            return None;
        }
        self.policy.removed(pool, block);
        self.wear.taken(pool, block);
        let gained = (pages_per_block - valid).max(1);
        Some(Victim { block, next: 0, pace: valid.div_ceil(gained), wear: false })
    }

    /// Keeps garbage collection in step with host writes.
    #[inline]
    pub(super) fn keep_pace(&mut self, pool: usize, flash: &mut FlashOps) {
        if !self.incremental {
            return;
        }
        let budget = match &self.pools[pool].victim {
            Some(victim) => victim.pace,
            None if self.pools[pool].free.len() <= self.free_low => {
                match self.choose(pool, false, flash) {
                    Some(victim) => self.pools[pool].victim.insert(victim).pace,
                    None => return,
                }
            }
            None => return,
        };
        self.collect(pool, budget, flash);
    }

    /// Looks up what moving up to `budget` pages of `block` from offset `from` on will need: where
    /// they are mapped is all over a table larger than the processor's caches. Says before which
    /// offset it looked.
    #[cold]
    fn look_ahead(
        &self,
        pool: usize,
        log: Log,
        (block, from): (BlockId, u32),
        budget: u32,
        flash: &FlashOps,
    ) -> u32 {
        let (array, mut moving) = (flash.array(), Moving::new());
        self.touch_target(pool, log, budget, flash);
        let left = self.geometry.pages_per_block() - from;
        array.touch_owners(self.geometry.page(block, from), left.min(TOGETHER_MAX as u32));
        let end = moving.add(array, block, from, budget as usize);
        self.map.touch(&moving.lpns[..moving.count]);
        end
    }

    /// Touches the spare areas of the next pages of a frontier, no more than `count`.
    #[inline]
    fn touch_target(&self, pool: usize, log: Log, count: u32, flash: &FlashOps) {
        let Frontier { block, next } = self.pools[pool].open[log as usize];
        let left = self.geometry.pages_per_block() - next;
        if left > 0 {
            flash.array().touch_owners(self.geometry.page(block, next), count.min(left));
        }
    }

    /// Looks up what the next `writes` writes of the host will need of the pools whose turn comes.
    pub(super) fn expect_turns(&self, writes: usize, flash: &FlashOps) {
        let rounds = writes.div_ceil(self.pools.len()) as u32;
        let turns = || (self.turn..self.pools.len()).chain(0..self.turn).take(writes);
        for pool in turns() {
            self.touch_target(pool, Log::Host, rounds, flash);
            if let (true, Some(victim)) = (self.incremental, self.pools[pool].victim) {
                let count = victim.pace.saturating_mul(rounds);
                self.touch_target(pool, self.log_of(victim.wear), count, flash);
                let left = self.geometry.pages_per_block().saturating_sub(victim.next);
                let first = self.geometry.page(victim.block, victim.next);
                flash.array().touch_owners(first, count.saturating_mul(2).min(left));
            }
        }
        if self.incremental {
            let mut moving = Moving::new();
            for victim in turns().filter_map(|pool| self.pools[pool].victim) {
                let count = victim.pace.saturating_mul(rounds);
                moving.add(flash.array(), victim.block, victim.next, count as usize);
            }
            self.map.touch(&moving.lpns[..moving.count]);
        }
    }
}
