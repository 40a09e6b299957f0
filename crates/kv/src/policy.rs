//! Eviction policies of a level: those of the registry, and one that knows positions in prompts.

use hybridsim_cache::replacement::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::check;
use hybridsim_config::registry::Registry;
use hybridsim_workload::trace::serving::NO_BLOCK;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// An eviction policy by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyName {
    /// A replacement policy of the registry, or [`LENGTH_AWARE`].
    replacement: String,
    /// Whether only blocks are evicted that are not in the prefix of another cached block.
    prefix_aware: bool,
}

/// Evicts the block with the fewest hits, among these the one latest in its prompt.
pub const LENGTH_AWARE: &str = "length-aware";
const PREFIX: &str = "prefix:";

impl PolicyName {
    /// A policy such as `lru`, `length-aware` or `prefix:s3-fifo`.
    ///
    /// # Errors
    /// Names all there are.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, String> {
        let (replacement, prefix_aware) = match text.strip_prefix(PREFIX) {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let name = Self { replacement: replacement.to_owned(), prefix_aware };
        if replacement == LENGTH_AWARE && !prefix_aware {
            return Ok(name);
        }
        match registry.find::<ReplacementEntry>(replacement) {
            Some(_) => Ok(name),
            None => {
                let names: Vec<_> =
                    registry.descriptions("replacement").map(|it| it.name).collect();
                Err(format!(
                    "there is no policy `{text}`: {LENGTH_AWARE}, {}, or one of the latter with \
                     `{PREFIX}` before it",
                    names.join(", ")
                ))
            }
        }
    }

    pub const fn is_prefix_aware(&self) -> bool {
        self.prefix_aware
    }

    /// The policy for a level of `blocks` blocks, of which `parents` names those before each.
    ///
    /// # Errors
    /// Why the policy cannot be built.
    pub(crate) fn build(
        &self,
        blocks: u32,
        parents: &[u32],
        registry: &Registry,
    ) -> Result<Policy, String> {
        if self.replacement == LENGTH_AWARE {
            return Ok(Policy::LengthAware(LengthAware::new(parents)));
        }
        let entry = registry
            .find::<ReplacementEntry>(&self.replacement)
            .ok_or_else(|| format!("there is no replacement policy `{}`", self.replacement))?;
        let settings = check::defaults(entry.description.params, registry);
        let mut policy = (entry.build)(&settings, blocks).map_err(|problems| {
            let messages: Vec<String> =
                problems.iter().map(|problem| problem.message.clone()).collect();
            format!("policy `{}`: {}", self.replacement, messages.join("; "))
        })?;
        policy.number_densely();
        Ok(Policy::Registered(policy))
    }
}

impl std::fmt::Display for PolicyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.prefix_aware { PREFIX } else { "" }, self.replacement)
    }
}

/// A policy with its state.
pub(crate) enum Policy {
    Registered(Box<dyn Replacement>),
    LengthAware(LengthAware),
}

impl Policy {
    pub fn update(&mut self, page: CachedPage, access: Access) {
        match self {
            Self::Registered(policy) => policy.update(page, access),
            Self::LengthAware(policy) => policy.update(page, access),
        }
    }

    pub fn remove(&mut self, page: CachedPage) {
        match self {
            Self::Registered(policy) => policy.remove(page),
            Self::LengthAware(policy) => policy.remove(page),
        }
    }

    pub fn expect(&mut self, block: u32) {
        if let Self::Registered(policy) = self {
            policy.expect(block.into());
        }
    }

    /// Removes and returns the next block in eviction order for which `may_go` holds; with none,
    /// the next of all.
    pub fn evict(
        &mut self,
        may_go: Option<&dyn Fn(CachedPage) -> bool>,
        memory: &mut Vec<CachedPage>,
    ) -> Option<CachedPage> {
        match self {
            Self::Registered(policy) => {
                if let Some(may_go) = may_go {
                    memory.clear();
                    policy.victims(1, may_go, memory);
                    if let Some(&page) = memory.first() {
                        policy.evict(page);
                        return Some(page);
                    }
                }
                policy.evict_next(memory)
            }
            Self::LengthAware(policy) => policy.evict(),
        }
    }
}

/// Fewest hits first, then the latest position in a prompt, then the least recent use.
pub(crate) struct LengthAware {
    order: BTreeSet<Key>,
    /// By block: its place in the order.
    keys: Vec<Option<Key>>,
    /// By block: number of blocks before it in its prompt.
    positions: Vec<u32>,
    uses: u64,
}

type Key = (u32, Reverse<u32>, u64, u32, u32);

/// Number of blocks before each one in its prompt.
pub(crate) fn positions(parents: &[u32]) -> Vec<u32> {
    let mut positions: Vec<u32> = Vec::with_capacity(parents.len());
    for &parent in parents {
        // A block is numbered after the one before it.
        let position = if parent == NO_BLOCK { 0 } else { positions[parent as usize] + 1 };
        positions.push(position);
    }
    positions
}

impl LengthAware {
    fn new(parents: &[u32]) -> Self {
        let keys = vec![None; parents.len()];
        Self { order: BTreeSet::new(), keys, positions: positions(parents), uses: 0 }
    }

    fn update(&mut self, page: CachedPage, access: Access) {
        let at = page.page as usize;
        let hits = match (self.keys[at], access) {
            (Some(key), Access::Read | Access::Write) => key.0.saturating_add(1),
            _ => 0,
        };
        self.remove(page);
        self.uses += 1;
        let key = (hits, Reverse(self.positions[at]), self.uses, at as u32, page.slot);
        self.order.insert(key);
        self.keys[at] = Some(key);
    }

    fn remove(&mut self, page: CachedPage) {
        if let Some(key) = self.keys[page.page as usize].take() {
            self.order.remove(&key);
        }
    }

    fn evict(&mut self) -> Option<CachedPage> {
        let (.., block, slot) = self.order.pop_first()?;
        self.keys[block as usize] = None;
        Some(CachedPage { page: block.into(), slot })
    }
}
