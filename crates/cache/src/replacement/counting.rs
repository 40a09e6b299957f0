//! A cache without data that counts its misses: a policy and the directory of its pages. It takes
//! memory for the pages it holds and those in ghost lists, not for all pages of a trace.

use super::directory::{Directory, hash_of};
use super::{Access, CachedPage, Replacement};
use std::hint::black_box;

/// Accesses whose look-ups overlap.
const GROUP: usize = 32;
/// As a slot: the page is in a ghost list, or its number is not in use.
const GHOST: u32 = u32::MAX;
const UNUSED: u32 = u32::MAX - 1;

/// An access to a page.
#[derive(Clone, Copy, Debug)]
pub struct PageAccess {
    page: u64,
    hash: u64,
    kind: Access,
}

impl PageAccess {
    /// A read or a write; pages of different volumes have different numbers.
    #[inline]
    pub fn new(page: u64, kind: Access) -> Self {
        Self { page, hash: hash_of(page), kind }
    }
}

/// A cache without data.
pub struct CountingCache {
    policy: Box<dyn Replacement>,
    contents: Contents,
    misses: u64,
}

impl CountingCache {
    /// An empty cache of `capacity` pages, for which `policy` was built.
    pub fn new(mut policy: Box<dyn Replacement>, capacity: u32) -> Self {
        let has_ghosts = policy.track_ghosts();
        if has_ghosts {
            policy.number_densely();
        }
        let contents = Contents {
            directory: Directory::new(capacity),
            capacity,
            has_ghosts,
            slots: Vec::new(),
            used: 0,
            victims: Vec::new(),
            missed: Vec::new(),
        };
        Self { policy, contents, misses: 0 }
    }

    /// Processes the accesses; returns the pages that missed, in order.
    pub fn process(&mut self, batch: &[PageAccess]) -> &[u64] {
        self.contents.missed.clear();
        self.policy.process(&mut self.contents, batch);
        self.misses += self.contents.missed.len() as u64;
        &self.contents.missed
    }

    /// Accesses that missed, the first to each page included.
    pub const fn misses(&self) -> u64 {
        self.misses
    }
}

/// The contents of a [`CountingCache`], apart from its policy.
pub struct Contents {
    /// Numbers the pages: by slot, or, with ghost lists, the pages in the cache and in these.
    directory: Directory,
    capacity: u32,
    has_ghosts: bool,
    /// With ghost lists, slot by number.
    slots: Vec<u32>,
    /// Slots that were ever in use.
    used: u32,
    victims: Vec<CachedPage>,
    missed: Vec<u64>,
}

impl Contents {
    /// Processes the accesses under a policy.
    pub fn process<P: Replacement + ?Sized>(&mut self, policy: &mut P, batch: &[PageAccess]) {
        for group in batch.chunks(GROUP) {
            if self.has_ghosts {
                self.touch(group, |contents, number| {
                    let slot = contents.slots[number as usize];
                    contents.directory.page(number) ^ policy.touch(slot)
                });
                group.iter().for_each(|access| self.access_with_ghosts(policy, access));
            } else {
                self.touch(group, |contents, slot| {
                    contents.directory.page(slot) ^ policy.touch(slot)
                });
                group.iter().for_each(|access| self.access(policy, access));
            }
        }
    }

    /// Reads what the accesses will probably read, so that the processor's cache has it.
    #[inline(always)]
    fn touch(&self, group: &[PageAccess], more: impl Fn(&Self, u32) -> u64) {
        let (mut numbers, mut read) = ([None; GROUP], 0);
        for (number, access) in numbers.iter_mut().zip(group) {
            *number = self.directory.probable(access.hash);
        }
        for number in numbers.into_iter().flatten() {
            read ^= more(self, number);
        }
        black_box(read);
    }

    #[inline(always)]
    fn access<P: Replacement + ?Sized>(&mut self, policy: &mut P, access: &PageAccess) {
        let PageAccess { page, hash, kind } = *access;
        if let Some(slot) = self.directory.number(page, hash) {
            return policy.update(CachedPage { page, slot }, kind);
        }
        self.missed.push(page);
        let slot = if self.directory.len() < self.capacity as usize {
            self.directory.add(page, hash)
        } else {
            policy.expect(page);
            // Without a victim, the page bypasses the cache.
            let Some(victim) = policy.evict_next(&mut self.victims) else { return };
            self.directory.replace(victim.slot, page, hash);
            victim.slot
        };
        policy.update(CachedPage { page, slot }, Access::Add);
    }

    /// The policy is given the numbers of pages in the directory, so one look-up finds a page in
    /// the cache and in ghost lists.
    #[inline(always)]
    fn access_with_ghosts<P: Replacement + ?Sized>(&mut self, policy: &mut P, access: &PageAccess) {
        let PageAccess { page, hash, kind } = *access;
        let known = self.directory.number(page, hash);
        if let Some(number) = known
            && self.slots[number as usize] != GHOST
        {
            let slot = self.slots[number as usize];
            return policy.update(CachedPage { page: u64::from(number), slot }, kind);
        }
        self.missed.push(page);
        let number = known.unwrap_or_else(|| self.add(page, hash));
        if let Some(slot) = self.free_slot(policy, number) {
            self.slots[number as usize] = slot;
            policy.update(CachedPage { page: u64::from(number), slot }, Access::Add);
        } else if known.is_none() {
            self.forget(number);
        }
        while let Some(number) = policy.forgotten() {
            self.forget(number as u32);
        }
    }

    fn add(&mut self, page: u64, hash: u64) -> u32 {
        let number = self.directory.add(page, hash);
        let at = number as usize;
        if at >= self.slots.len() {
            self.slots.resize(at + 1, UNUSED);
        }
        self.slots[at] = GHOST;
        number
    }

    /// A slot for the page; `None` when the policy returns no victim.
    #[inline]
    fn free_slot<P: Replacement + ?Sized>(&mut self, policy: &mut P, number: u32) -> Option<u32> {
        if self.used < self.capacity {
            self.used += 1;
            return Some(self.used - 1);
        }
        policy.expect(u64::from(number));
        let victim = policy.evict_next(&mut self.victims)?;
        self.slots[victim.page as usize] = GHOST;
        Some(victim.slot)
    }

    /// A page has left the ghost lists: unless it was just added again, its number is free.
    #[inline]
    fn forget(&mut self, number: u32) {
        if self.slots[number as usize] == GHOST {
            self.slots[number as usize] = UNUSED;
            self.directory.remove(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ENTRIES, ReplacementEntry};
    use super::*;
    use hybridsim_config::param::Settings;
    use hybridsim_engine::Stream;
    use hybridsim_engine::sample::Zipf;
    use std::collections::BTreeMap;

    fn built(entry: &ReplacementEntry, capacity: u32) -> Box<dyn Replacement> {
        (entry.build)(&Settings::default(), capacity).expect("no parameters")
    }

    /// Zipf-distributed accesses.
    fn skewed() -> Vec<u64> {
        let (zipf, mut stream) = (Zipf::new(3_000, 0.8), Stream::new(1, "counting"));
        (0..40_000).map(|_| zipf.draw(&mut stream)).collect()
    }

    /// The pages that miss in a cache with a directory and victims as devices use them.
    fn missed(mut policy: Box<dyn Replacement>, capacity: u32, pages: &[u64]) -> Vec<u64> {
        let (mut slots, mut out) = (BTreeMap::new(), Vec::new());
        let mut missed = Vec::new();
        for &page in pages {
            if let Some(&slot) = slots.get(&page) {
                policy.update(CachedPage { page, slot }, Access::Read);
                continue;
            }
            missed.push(page);
            let mut slot = slots.len() as u32;
            if slot == capacity {
                out.clear();
                policy.expect(page);
                policy.victims(1, &|_| true, &mut out);
                policy.evict(out[0]);
                slot = slots.remove(&out[0].page).expect("a cached page");
            }
            slots.insert(page, slot);
            policy.update(CachedPage { page, slot }, Access::Add);
        }
        missed
    }

    #[test]
    fn dense_numbers_change_no_decision() {
        let mut numbers = BTreeMap::new();
        let pages: Vec<u64> = skewed()
            .into_iter()
            .map(|page| {
                let next = numbers.len() as u64;
                *numbers.entry(page).or_insert(next)
            })
            .collect();
        let apart: Vec<u64> = pages.iter().map(|page| page << 40).collect();
        for entry in ENTRIES {
            for capacity in [1, 3, 50, 400, 2_900] {
                let mut dense = built(entry, capacity);
                if !dense.number_densely() {
                    continue;
                }
                let dense = missed(dense, capacity, &pages).into_iter().map(|page| page << 40);
                let sparse = missed(built(entry, capacity), capacity, &apart);
                assert!(dense.eq(sparse), "{} {capacity}", entry.description.name);
            }
        }
    }

    #[test]
    fn it_decides_as_other_caches() {
        let mut pages: Vec<u64> = skewed().into_iter().map(|page| page << 33).collect();
        // Pages that never return fill ghost lists, a loop finds pages in them.
        pages.extend((1_000_000..1_002_000).chain((0..6_000).map(|at| at % 700)));
        pages.extend_from_within(..10_000);
        for entry in ENTRIES {
            for capacity in [1, 2, 3, 50, 400, 2_900] {
                let mut cache = CountingCache::new(built(entry, capacity), capacity);
                let batch: Vec<PageAccess> =
                    pages.iter().map(|page| PageAccess::new(*page, Access::Read)).collect();
                let found: Vec<u64> =
                    batch.chunks(77).flat_map(|part| cache.process(part).to_vec()).collect();
                let name = entry.description.name;
                assert!(
                    found == missed(built(entry, capacity), capacity, &pages),
                    "{name} {capacity}"
                );
                assert_eq!(cache.misses(), found.len() as u64);
                let held = cache.contents.directory.len();
                assert!(held <= 2 * capacity as usize + 1, "{name} {capacity}: {held} pages");
            }
        }
    }
}
