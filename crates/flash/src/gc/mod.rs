//! Which block to collect next. One file per policy, listed in [`ENTRIES`].

mod choices;
mod cost_benefit;
mod drawn;
mod fifo;
mod greedy;
mod partial;
mod random;
mod ranked;
mod windowed;

use crate::array::Array;
use crate::geometry::{BlockId, Geometry};
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::Stream;
use hybridsim_engine::state::{self, Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

/// Chooses victims among the closed blocks of each pool. Passive: told what happens, asked for one.
///
/// A pool is whatever the translation layer collects by itself, usually a plane. A block is a
/// candidate from [`VictimPolicy::closed`] until [`VictimPolicy::removed`].
pub trait VictimPolicy {
    /// `block` of `pool` is fully written and holds `valid` valid pages: a candidate from now on.
    fn closed(&mut self, pool: usize, block: BlockId, valid: u32);

    /// `block` has only `valid` valid pages left. Also told of blocks that are no candidates.
    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32);

    /// `block` is no candidate any more.
    fn removed(&mut self, pool: usize, block: BlockId);

    /// The candidate of `pool` to collect; it stays a candidate. `None` when there is none, or
    /// none worth collecting.
    fn choose(&mut self, pool: usize, array: &Array) -> Option<BlockId>;

    /// How many blocks a real controller looks at for the last choice, if it has to search.
    fn searched(&self) -> u32 {
        0
    }

    /// Puts down everything the policy remembers.
    fn save(&self, to: &mut Saver);

    /// Takes back what [`VictimPolicy::save`] put down, in the same order.
    ///
    /// # Errors
    /// When its tables are not as long as this device needs them.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;

    /// Bytes of controller memory the policy needs.
    fn ram_bytes(&self) -> u64;
}

/// What a policy is built from.
pub struct GcInput<'a> {
    /// The policy's own settings.
    pub settings: &'a Settings,
    /// The device's shape.
    pub geometry: &'a Geometry,
    /// Number of pools.
    pub pools: usize,
    /// The run's seed.
    pub seed: u64,
    /// The device's path, to name a random stream by.
    pub path: &'a str,
}

impl GcInput<'_> {
    /// The policy's own random numbers.
    fn stream(&self) -> Stream {
        Stream::new(self.seed, &format!("{}/gc", self.path))
    }

    fn ranked(&self) -> ranked::Ranked {
        let (blocks, pages) = (self.geometry.blocks(), self.geometry.pages_per_block());
        ranked::Ranked::new(self.pools, blocks, pages)
    }
}

/// A victim policy, or everything that is wrong with its parameters.
pub type BuiltPolicy = Result<Box<dyn VictimPolicy>, Vec<Problem>>;

/// A registered victim policy.
#[derive(Clone, Copy)]
pub struct GcEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Builds one.
    pub build: fn(&GcInput<'_>) -> BuiltPolicy,
}

impl Entry for GcEntry {
    const CATEGORY: &'static str = "gc-policy";
    fn description(&self) -> Description {
        self.description
    }
}

/// All victim policies.
pub const ENTRIES: &[GcEntry] = &[
    greedy::ENTRY,
    fifo::ENTRY,
    random::ENTRY,
    choices::ENTRY,
    windowed::ENTRY,
    cost_benefit::ENTRY,
    partial::ENTRY,
];

const NONE: u32 = u32::MAX;

/// A block's neighbours, and the list it is in, or [`NONE`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Link {
    previous: u32,
    next: u32,
    list: u32,
}

/// Blocks in doubly linked lists: a block is in at most one; everything takes constant time.
#[derive(Debug, Serialize, Deserialize)]
struct BlockLists {
    /// Per list the block at its head.
    heads: Vec<u32>,
    /// Per list the block at its tail.
    tails: Vec<u32>,
    /// Per block.
    links: Vec<Link>,
}

impl BlockLists {
    fn new(lists: usize, blocks: u32) -> Self {
        Self {
            heads: vec![NONE; lists],
            tails: vec![NONE; lists],
            links: vec![Link { previous: NONE, next: NONE, list: NONE }; blocks as usize],
        }
    }

    /// Puts the lists down.
    fn save(&self, to: &mut Saver) {
        to.put(self);
    }

    /// Takes them back.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let lists: Self = from.take()?;
        state::same_length("the list of candidates", lists.links.len(), self.links.len())?;
        state::same_length("the list of heads", lists.heads.len(), self.heads.len())?;
        state::same_length("the list of tails", lists.tails.len(), self.tails.len())?;
        *self = lists;
        Ok(())
    }

    #[inline]
    fn list_of(&self, block: BlockId) -> Option<usize> {
        let list = self.links[block.0 as usize].list;
        if list == NONE { None } else { Some(list as usize) }
    }

    #[inline]
    fn head(&self, list: usize) -> Option<BlockId> {
        let head = self.heads[list];
        if head == NONE { None } else { Some(BlockId(head)) }
    }

    /// The next block of the list `block` is in.
    #[inline]
    fn behind(&self, block: BlockId) -> Option<BlockId> {
        let next = self.links[block.0 as usize].next;
        if next == NONE { None } else { Some(BlockId(next)) }
    }

    #[inline]
    fn push_tail(&mut self, list: usize, block: BlockId) {
        debug_assert_eq!(self.links[block.0 as usize].list, NONE, "already in a list");
        let tail = self.tails[list];
        self.links[block.0 as usize] = Link { previous: tail, next: NONE, list: list as u32 };
        self.tails[list] = block.0;
        if tail == NONE {
            self.heads[list] = block.0;
        } else {
            self.links[tail as usize].next = block.0;
        }
    }

    #[inline]
    fn remove(&mut self, block: BlockId) {
        let Link { previous, next, list } = self.links[block.0 as usize];
        if list == NONE {
            return;
        }
        let list = list as usize;
        if previous == NONE {
            self.heads[list] = next;
        } else {
            self.links[previous as usize].next = next;
        }
        if next == NONE {
            self.tails[list] = previous;
        } else {
            self.links[next as usize].previous = previous;
        }
        self.links[block.0 as usize].list = NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_behave_like_queues() {
        let mut lists = BlockLists::new(2, 6);
        for block in [3, 1, 5] {
            lists.push_tail(0, BlockId(block));
        }
        lists.push_tail(1, BlockId(0));
        lists.remove(BlockId(1));
        lists.remove(BlockId(1));
        assert_eq!(lists.head(0), Some(BlockId(3)));
        lists.remove(BlockId(3));
        assert_eq!((lists.head(0), lists.tails[0]), (Some(BlockId(5)), 5));
        lists.remove(BlockId(5));
        assert_eq!((lists.head(0), lists.tails[0]), (None, NONE));
        assert_eq!(lists.list_of(BlockId(0)), Some(1));
    }
}
