//! The directory of a cache: the slots of the pages it holds, and of no others.

use hybridsim_workload::profile::sample_hash;

/// Entries by linear probing, three quarters of them empty at least: shorter searches save more
/// than a smaller table. An entry is the high half of the page's hash, which begins with the place
/// where the search starts, and the slot plus one; 0 is empty. Pages are kept by slot, so that
/// eight entries fill a cache line of the processor.
pub struct Directory {
    table: Vec<u64>,
    bits: u32,
    /// Page by slot.
    pages: Vec<u64>,
}

/// Hash of a page, from which [`Directory`] takes the high half.
pub fn hash_of(page: u64) -> u64 {
    sample_hash((0, page))
}

impl Directory {
    /// Of a cache of `capacity` pages.
    pub fn new(capacity: u32) -> Self {
        let bits = (4 * u64::from(capacity).max(8)).next_power_of_two().ilog2();
        Self { table: vec![0; 1 << bits], bits, pages: Vec::new() }
    }

    /// Pages that were ever held at once.
    pub const fn len(&self) -> usize {
        self.pages.len()
    }

    const fn home(&self, hash: u64) -> usize {
        (hash >> (64 - self.bits)) as usize
    }

    const fn next(&self, at: usize) -> usize {
        (at + 1) & (self.table.len() - 1)
    }

    /// Reads the entry where the search for a hash begins, so that the processor's cache has it
    /// when [`Self::slot`] is called: reads of several pages overlap, searches do not.
    pub fn prefetch(&self, hash: u64) -> u64 {
        self.table[self.home(hash)]
    }

    /// The slot of a page that is held.
    pub fn slot(&self, page: u64, hash: u64) -> Option<u32> {
        let mut at = self.home(hash);
        loop {
            let entry = self.table[at];
            if entry == 0 {
                return None;
            }
            let slot = entry as u32 - 1;
            if entry >> 32 == hash >> 32 && self.pages[slot as usize] == page {
                return Some(slot);
            }
            at = self.next(at);
        }
    }

    /// Adds a page that is not held, in the next slot that was never used.
    pub fn add(&mut self, page: u64, hash: u64) -> u32 {
        let slot = self.pages.len() as u32;
        self.pages.push(page);
        self.enter(hash, slot);
        slot
    }

    /// Replaces the page in a slot by one that is not held.
    pub fn replace(&mut self, slot: u32, page: u64, hash: u64) {
        let before = std::mem::replace(&mut self.pages[slot as usize], page);
        self.remove(slot, hash_of(before));
        self.enter(hash, slot);
    }

    fn enter(&mut self, hash: u64, slot: u32) {
        let mut at = self.home(hash);
        while self.table[at] != 0 {
            at = self.next(at);
        }
        self.table[at] = hash >> 32 << 32 | (u64::from(slot) + 1);
    }

    /// Removes the entry of a slot and closes the gap: later entries move there unless their own
    /// search begins behind it.
    fn remove(&mut self, slot: u32, hash: u64) {
        let mut gap = self.home(hash);
        while self.table[gap] as u32 != slot + 1 {
            gap = self.next(gap);
        }
        let mask = self.table.len() - 1;
        let mut at = self.next(gap);
        loop {
            let entry = self.table[at];
            if entry == 0 {
                break;
            }
            let from_home = at.wrapping_sub(self.home(entry)) & mask;
            if from_home >= at.wrapping_sub(gap) & mask {
                self.table[gap] = entry;
                gap = at;
            }
            at = self.next(at);
        }
        self.table[gap] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;
    use std::collections::BTreeMap;

    #[test]
    fn a_directory_is_a_map() {
        let mut stream = Stream::new(1, "directory");
        for capacity in [1, 2, 7, 100, 3_000] {
            let mut directory = Directory::new(capacity);
            let (mut map, mut held) = (BTreeMap::new(), Vec::new());
            for _ in 0..30_000 {
                // Some pages are far apart, as on several volumes.
                let page =
                    stream.below(u64::from(capacity) * 3) << [0, 40][stream.below(2) as usize];
                let hash = hash_of(page);
                assert_eq!(directory.slot(page, hash), map.get(&page).copied());
                if map.contains_key(&page) {
                    continue;
                }
                let slot = if held.len() < capacity as usize {
                    held.push(page);
                    directory.add(page, hash)
                } else {
                    let slot = stream.below(u64::from(capacity)) as u32;
                    map.remove(&std::mem::replace(&mut held[slot as usize], page));
                    directory.replace(slot, page, hash);
                    slot
                };
                assert_eq!(held[slot as usize], page);
                map.insert(page, slot);
            }
            assert_eq!(directory.len(), capacity as usize);
            let used = directory.table.iter().filter(|entry| **entry != 0).count();
            assert_eq!(used, capacity as usize, "no entry is left over");
        }
    }
}
