//! A cache without data that counts its misses: a policy and the directory of its pages. It takes
//! memory for the pages it holds and those in ghost lists, not for all pages of a trace.

use super::directory::{Directory, hash_of};
use super::{Access, CachedPage, Replacement};
use std::hint::black_box;

/// Accesses whose look-ups overlap.
const GROUP: usize = 32;
/// The place of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Cache,
    /// In a ghost list, or in none and about to leave the directory.
    Ghost,
    /// The number is not in use.
    Nowhere,
}

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

    /// A read or a write of a page with a number; pages are numbered densely from zero.
    #[inline]
    pub const fn of_number(number: u32, page: u64, kind: Access) -> Self {
        Self { page, hash: number as u64, kind }
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
    pub fn new(policy: Box<dyn Replacement>, capacity: u32) -> Self {
        Self::with_directory(policy, capacity, Directory::new(capacity))
    }

    /// As [`CountingCache::new`], for accesses of [`PageAccess::of_number`].
    pub fn dense(policy: Box<dyn Replacement>, capacity: u32) -> Self {
        Self::with_directory(policy, capacity, Directory::dense())
    }

    fn with_directory(
        mut policy: Box<dyn Replacement>,
        capacity: u32,
        directory: Directory,
    ) -> Self {
        let dense = policy.number_densely();
        let contents = Contents {
            directory,
            capacity,
            dense,
            has_ghosts: dense && policy.number_slots(),
            places: Vec::new(),
            cached: 0,
            leaving: Vec::new(),
            victims: Vec::new(),
            missed: Vec::new(),
        };
        Self { policy, contents, misses: 0 }
    }

    /// Returns whether the policy uses page numbers of the device; otherwise it is given others.
    pub const fn needs_pages(&self) -> bool {
        !self.contents.dense
    }

    /// Makes space for pages with numbers below `end`.
    pub fn reserve(&mut self, end: usize) {
        self.contents.directory.reserve(end);
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
    /// Numbers the pages in the cache and in ghost lists.
    directory: Directory,
    capacity: u32,
    /// The policy is given the numbers of pages in the directory, as pages and as slots, so one
    /// look-up finds a page in the cache and in ghost lists. Otherwise numbers are slots alone.
    dense: bool,
    has_ghosts: bool,
    /// Place by number, where the policy is given numbers.
    places: Vec<Place>,
    /// Number of cached pages, where the policy is given numbers.
    cached: u32,
    /// Numbers of pages that left the cache and the ghost lists.
    leaving: Vec<u32>,
    victims: Vec<CachedPage>,
    missed: Vec<u64>,
}

impl Contents {
    /// Processes the accesses under a policy.
    pub fn process<P: Replacement + ?Sized>(&mut self, policy: &mut P, batch: &[PageAccess]) {
        for group in batch.chunks(GROUP) {
            self.touch(policy, group);
            if self.dense {
                group.iter().for_each(|access| self.access_numbered(policy, access));
                self.drop_leaving(policy);
            } else {
                group.iter().for_each(|access| self.access(policy, access));
            }
        }
    }

    /// Reads what the accesses will probably read, so that the processor's cache has it.
    #[inline(always)]
    fn touch<P: Replacement + ?Sized>(&self, policy: &P, group: &[PageAccess]) {
        let (mut entries, mut read) = ([0; GROUP], 0);
        for (entry, access) in entries.iter_mut().zip(group) {
            *entry = self.directory.probable(access.hash);
        }
        for number in entries.into_iter().filter_map(|entry| entry.checked_sub(1)) {
            read ^= self.directory.page(number) ^ policy.touch(number);
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

    #[inline(always)]
    fn access_numbered<P: Replacement + ?Sized>(&mut self, policy: &mut P, access: &PageAccess) {
        let PageAccess { page, hash, kind } = *access;
        let known = self.directory.number(page, hash);
        if let Some(slot) = known
            && self.places[slot as usize] == Place::Cache
        {
            return policy.update(CachedPage { page: u64::from(slot), slot }, kind);
        }
        self.missed.push(page);
        let slot = known.unwrap_or_else(|| self.add(page, hash));
        if self.cached < self.capacity {
            self.cached += 1;
        } else {
            policy.expect(u64::from(slot));
            let Some(victim) = policy.evict_next(&mut self.victims) else {
                return self.leaving.extend(known.is_none().then_some(slot));
            };
            self.places[victim.slot as usize] = Place::Ghost;
            if !self.has_ghosts {
                self.leaving.push(victim.slot);
            }
        }
        self.places[slot as usize] = Place::Cache;
        policy.update(CachedPage { page: u64::from(slot), slot }, Access::Add);
    }

    #[inline(always)]
    fn add(&mut self, page: u64, hash: u64) -> u32 {
        let number = self.directory.add(page, hash);
        let at = number as usize;
        if at >= self.places.len() {
            self.places.resize(at + 1, Place::Nowhere);
        }
        self.places[at] = Place::Ghost;
        number
    }

    /// Removes pages from the directory, unless they were added again meanwhile: several at once,
    /// because each is a read that misses the processor's cache, and these overlap.
    #[inline(always)]
    fn drop_leaving<P: Replacement + ?Sized>(&mut self, policy: &mut P) {
        policy.forgotten(&mut self.leaving);
        let mut read = 0;
        for number in &self.leaving {
            read ^= self.directory.probable(self.directory.hash(*number));
        }
        black_box(read);
        for number in self.leaving.drain(..) {
            let place = &mut self.places[number as usize];
            if *place == Place::Ghost {
                *place = Place::Nowhere;
                self.directory.remove(number);
            }
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
    use std::collections::{BTreeMap, BTreeSet};

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
        let distinct = Vec::from_iter(BTreeSet::from_iter(pages.iter().copied()));
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
                let mut cache = CountingCache::dense(built(entry, capacity), capacity);
                cache.reserve(pages.len());
                let number = |page: &u64| distinct.binary_search(page).expect("it is there") as u32;
                let access = |page| PageAccess::of_number(number(page), *page, Access::Read);
                let batch: Vec<PageAccess> = pages.iter().map(access).collect();
                let same: Vec<u64> =
                    batch.chunks(77).flat_map(|part| cache.process(part).to_vec()).collect();
                assert!(same == found, "{name} {capacity} by number");
            }
        }
    }
}
