//! A level: blocks of equal size with an eviction policy and, optionally, a time to live.

use crate::policy::{Policy, PolicyName};
use hybridsim_cache::replacement::{Access, CachedPage};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{SimDuration, SimTime};
use hybridsim_workload::trace::serving::NO_BLOCK;
use std::collections::VecDeque;

/// A block and its slot in the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub block: u32,
    pub slot: u32,
}

impl From<Held> for CachedPage {
    fn from(held: Held) -> Self {
        Self { page: held.block.into(), slot: held.slot }
    }
}

/// Blocks with an eviction policy.
pub struct Level<'a> {
    capacity: u32,
    policy: Policy,
    /// By block, the slot; [`NO_BLOCK`] where it is not held.
    slots: Vec<u32>,
    free: Vec<u32>,
    /// Slots that were ever in use.
    used: u32,
    held: u32,
    prefix: Option<Prefix<'a>>,
    expiry: Option<Expiry>,
    memory: Vec<CachedPage>,
}

/// Which blocks are in the prefix of others.
struct Prefix<'a> {
    parents: &'a [u32],
    /// By block, the number of held blocks that follow it.
    children: Vec<u32>,
}

impl Prefix<'_> {
    fn count(&mut self, block: u32, held: bool) {
        let parent = self.parents[block as usize];
        if parent != NO_BLOCK {
            let children = &mut self.children[parent as usize];
            *children = if held { *children + 1 } else { *children - 1 };
        }
    }
}

/// Times of last use.
struct Expiry {
    ttl: SimDuration,
    last: Vec<SimTime>,
    /// Uses in order of time; one that is not the last of its block is passed over.
    uses: VecDeque<(SimTime, u32)>,
}

impl<'a> Level<'a> {
    /// An empty level for `capacity` blocks; `parents` are their predecessors. A block that is not
    /// used for longer than `ttl` expires.
    ///
    /// # Errors
    /// Why the policy cannot be built.
    pub fn new(
        capacity: u32,
        policy: &PolicyName,
        ttl: Option<SimDuration>,
        parents: &'a [u32],
        registry: &Registry,
    ) -> Result<Self, String> {
        let children = || vec![0; parents.len()];
        let last = || vec![SimTime::ZERO; parents.len()];
        Ok(Self {
            capacity,
            policy: policy.build(capacity.max(1), parents, registry)?,
            slots: vec![NO_BLOCK; parents.len()],
            free: Vec::new(),
            used: 0,
            held: 0,
            prefix: policy.is_prefix_aware().then(|| Prefix { parents, children: children() }),
            expiry: ttl.map(|ttl| Expiry { ttl, last: last(), uses: VecDeque::new() }),
            memory: Vec::new(),
        })
    }

    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Number of blocks held.
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// The slot of a block that is held.
    pub fn slot(&self, block: u32) -> Option<u32> {
        Some(self.slots[block as usize]).filter(|slot| *slot != NO_BLOCK)
    }

    /// A block that is held was used.
    pub fn touch(&mut self, block: u32, at: SimTime) {
        if let Some(slot) = self.slot(block) {
            self.policy.update(Held { block, slot }.into(), Access::Read);
            self.used_at(block, at);
        }
    }

    fn used_at(&mut self, block: u32, at: SimTime) {
        if let Some(expiry) = &mut self.expiry {
            expiry.last[block as usize] = at;
            expiry.uses.push_back((at, block));
        }
    }

    /// Adds a block that is not held, to a level with a capacity. Returns it with its slot, and the
    /// block that was evicted for it.
    pub fn insert(&mut self, block: u32, at: SimTime) -> (Held, Option<Held>) {
        debug_assert!(self.capacity > 0 && self.slot(block).is_none(), "block {block}");
        let evicted = if self.held == self.capacity { self.evict(block) } else { None };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        let held = Held { block, slot };
        self.slots[block as usize] = slot;
        self.held += 1;
        if let Some(prefix) = &mut self.prefix {
            prefix.count(block, true);
        }
        self.policy.update(held.into(), Access::Add);
        self.used_at(block, at);
        (held, evicted)
    }

    fn evict(&mut self, coming: u32) -> Option<Held> {
        self.policy.expect(coming);
        let children = self.prefix.as_ref().map(|prefix| &prefix.children[..]);
        let is_last = |page: CachedPage| children.is_some_and(|it| it[page.page as usize] == 0);
        let may_go: Option<&dyn Fn(CachedPage) -> bool> =
            if children.is_some() { Some(&is_last) } else { None };
        let page = self.policy.evict(may_go, &mut self.memory)?;
        let held = Held { block: page.page as u32, slot: page.slot };
        self.forget(held);
        Some(held)
    }

    /// Removes a block that is held.
    pub fn remove(&mut self, block: u32) -> Option<Held> {
        let held = Held { block, slot: self.slot(block)? };
        self.policy.remove(held.into());
        self.forget(held);
        Some(held)
    }

    fn forget(&mut self, held: Held) {
        self.slots[held.block as usize] = NO_BLOCK;
        self.free.push(held.slot);
        self.held -= 1;
        if let Some(prefix) = &mut self.prefix {
            prefix.count(held.block, false);
        }
    }

    /// Removes the blocks that were not used for longer than the time to live.
    pub fn expire(&mut self, now: SimTime, expired: &mut Vec<Held>) {
        loop {
            let Some(expiry) = &mut self.expiry else { return };
            let Some(&(at, block)) = expiry.uses.front() else { return };
            if now.since(at) <= expiry.ttl {
                return;
            }
            expiry.uses.pop_front();
            if expiry.last[block as usize] == at {
                expired.extend(self.remove(block));
            }
        }
    }
}
