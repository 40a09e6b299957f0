//! The hash table that locates sectors on the SLC flash (chang-slc-mlc, sections 3.3 and 5.4).
//!
//! Sector `s` is in one of a few buckets from `s mod H_d` on, where `H_d` is the greatest prime
//! below the number of buckets. Buckets are freed in any order, so a lookup probes all of them and
//! there are no deletion marks. An entry is *regular* and has the slot of a sector on flash, or
//! *virtual* (section 3.4) and has the block with which it is removed.

use super::NONE;
use hybridsim_engine::state::{Loader, Saver, StateError};
use hybridsim_flash::restore;

hybridsim_config::choices! {
    pub enum Probing {
        /// Adjacent buckets.
        Linear = "linear",
        /// Buckets at distances 1, 4, 9, ...
        Quadratic = "quadratic",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashEntry {
    /// The sector is in this slot of the SLC flash.
    Regular(u32),
    /// The sector was rejected or moved away recently; removed when this block is erased.
    Virtual(u32),
}

/// The flag of virtual entries in a bucket's value.
const VIRTUAL: u32 = 1 << 31;
/// The bucket is reserved for data that are being written.
const RESERVED: u32 = u32::MAX;

/// The previous content of a bucket: its index, key and value.
pub type Bucket = (usize, u32, u32);

#[derive(Clone, Debug)]
pub struct HashTable {
    keys: Vec<u32>,
    values: Vec<u32>,
    prime: u32,
    probes: u32,
    probing: Probing,
    /// Buckets per entry: with entries for pages, one for each sector.
    unit: u32,
    /// The key is the number of the page instead of the sector: sectors of a page have the same
    /// home entry, and each uses its own bucket of the entries probed.
    by_page: bool,
    regular: u32,
    /// Sectors of the current write, which keep their buckets while it is executed.
    reserved: std::ops::Range<u32>,
    /// Sectors without a bucket after a rebuild, on their way to the MLC flash.
    overflow: Vec<(u32, u32)>,
}

/// The greatest prime below `number`; 1 when there is none.
fn prime_below(number: u32) -> u32 {
    let prime = |n: u32| n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    (2..number).rev().find(|n| prime(*n)).unwrap_or(1)
}

impl HashTable {
    /// A table of `buckets`, of which `probes` are probed for a sector.
    pub fn new(buckets: u32, probes: u32, probing: Probing) -> Self {
        let buckets = buckets.max(2);
        Self {
            keys: vec![NONE; buckets as usize],
            values: vec![NONE; buckets as usize],
            prime: prime_below(buckets),
            probes: probes.clamp(1, buckets),
            probing,
            unit: 1,
            by_page: false,
            regular: 0,
            reserved: 0..0,
            overflow: Vec::new(),
        }
    }

    /// Entries take `unit` buckets each; `buckets` and `probes` still count buckets.
    #[must_use]
    pub fn with_entries_of(self, unit: u32) -> Self {
        Self { unit: unit.max(1), ..self }
    }

    /// Hashes the numbers of pages, of one entry each, instead of sectors.
    #[must_use]
    pub fn keyed_by_page(self) -> Self {
        let entries = (self.buckets() as u32 / self.unit).max(2);
        let probes = (self.probes / self.unit).clamp(1, entries);
        Self { prime: prime_below(entries), probes, by_page: true, ..self }
    }

    #[inline]
    fn bucket(&self, sector: u32, probe: u32) -> usize {
        if self.by_page {
            return self.bucket_of_page(sector, probe);
        }
        let step = match self.probing {
            Probing::Linear => u64::from(probe),
            Probing::Quadratic => {
                let entry = u64::from(probe / self.unit);
                entry * entry * u64::from(self.unit) + u64::from(probe % self.unit)
            }
        };
        let at = u64::from(sector % self.prime) + step;
        let count = self.keys.len() as u64;
        (if at < count { at } else { at % count }) as usize
    }

    fn bucket_of_page(&self, sector: u32, probe: u32) -> usize {
        let step = match self.probing {
            Probing::Linear => u64::from(probe),
            Probing::Quadratic => u64::from(probe) * u64::from(probe),
        };
        let (page, within) = (sector / self.unit, sector % self.unit);
        let entries = self.keys.len() as u64 / u64::from(self.unit);
        let entry = (u64::from(page % self.prime) + step) % entries;
        (entry * u64::from(self.unit)) as usize + within as usize
    }

    #[inline]
    fn find(&self, sector: u32) -> Option<usize> {
        let first = (sector % self.prime) as usize;
        if self.probing == Probing::Linear
            && !self.by_page
            && let Some(window) = self.keys.get(first..first + self.probes as usize)
        {
            return window.iter().position(|key| *key == sector).map(|at| first + at);
        }
        (0..self.probes).map(|probe| self.bucket(sector, probe)).find(|at| self.keys[*at] == sector)
    }

    pub const fn buckets(&self) -> usize {
        self.keys.len()
    }

    pub fn key(&self, bucket: usize) -> Option<u32> {
        Some(self.keys[bucket]).filter(|key| *key != NONE)
    }

    #[inline]
    pub fn get(&self, sector: u32) -> Option<HashEntry> {
        match self.find(sector) {
            Some(at) if self.values[at] & VIRTUAL != 0 => {
                Some(HashEntry::Virtual(self.values[at] & !VIRTUAL))
            }
            Some(at) => Some(HashEntry::Regular(self.values[at])),
            None if self.overflow.is_empty() => None,
            None => {
                let found = self.overflow.iter().find(|(key, _)| *key == sector);
                found.map(|(_, slot)| HashEntry::Regular(*slot))
            }
        }
    }

    /// The slot of `sector` if it is on the SLC flash.
    #[inline]
    pub fn slot(&self, sector: u32) -> Option<u32> {
        if self.regular == 0 {
            return None;
        }
        match self.get(sector)? {
            HashEntry::Regular(slot) => Some(slot),
            HashEntry::Virtual(_) => None,
        }
    }

    /// The bucket that [`HashTable::set`] would use for `sector`; with `over_virtual` that of a
    /// virtual entry if none is free.
    fn bucket_for(&self, sector: u32, over_virtual: bool) -> Option<usize> {
        let window = || (0..self.probes).map(|probe| self.bucket(sector, probe));
        let is_virtual = |at: &usize| {
            let value = self.values[*at];
            self.keys[*at] != NONE && value & VIRTUAL != 0 && value != RESERVED
        };
        self.find(sector)
            .or_else(|| window().find(|at| self.keys[*at] == NONE))
            .or_else(|| if over_virtual { window().find(is_virtual) } else { None })
    }

    /// Reserves a bucket for each of `sectors` sectors from `first` on, until
    /// [`HashTable::release`]. Returns false, with nothing reserved, if one has no bucket. Data
    /// replace virtual entries (assumed). `before` is scratch space.
    pub fn reserve(&mut self, first: u32, sectors: u32, before: &mut Vec<Bucket>) -> bool {
        before.clear();
        // Sectors that have a bucket keep it, so that no other sector takes it.
        for sector in first..first + sectors {
            if let Some(at) = self.find(sector).filter(|at| self.values[*at] & VIRTUAL != 0) {
                self.reserve_bucket(at, sector, before);
            }
        }
        for sector in first..first + sectors {
            if self.find(sector).is_some() {
                continue;
            }
            let Some(at) = self.bucket_for(sector, true) else {
                for (at, key, value) in before.drain(..).rev() {
                    self.put(at, key, value);
                }
                return false;
            };
            self.reserve_bucket(at, sector, before);
        }
        self.reserved = first..first + sectors;
        true
    }

    fn reserve_bucket(&mut self, at: usize, sector: u32, before: &mut Vec<Bucket>) {
        before.push((at, self.keys[at], self.values[at]));
        self.put(at, sector, RESERVED);
    }

    /// The write has been executed.
    pub const fn release(&mut self) {
        self.reserved = 0..0;
    }

    #[inline]
    fn put(&mut self, at: usize, sector: u32, value: u32) {
        let was = self.keys[at] != NONE && self.values[at] & VIRTUAL == 0;
        let is = value & VIRTUAL == 0;
        self.regular = self.regular + u32::from(is) - u32::from(was);
        (self.keys[at], self.values[at]) = (sector, value);
    }

    /// Sets the entry of `sector`. Returns false if it has no bucket.
    pub fn set(&mut self, sector: u32, entry: HashEntry) -> bool {
        let (value, regular) = match entry {
            HashEntry::Regular(slot) => (slot, true),
            HashEntry::Virtual(block) => (block | VIRTUAL, false),
        };
        let bucket = self.bucket_for(sector, regular);
        if let Some(at) = bucket {
            self.put(at, sector, value);
        }
        bucket.is_some()
    }

    /// As [`HashTable::set`] for data that must stay reachable: without a bucket the entry goes to
    /// the overflow list, and false is returned.
    pub fn set_or_overflow(&mut self, sector: u32, slot: u32) -> bool {
        let has_bucket = self.set(sector, HashEntry::Regular(slot));
        if !has_bucket {
            self.overflow.push((sector, slot));
            self.regular += 1;
        }
        has_bucket
    }

    /// Removes the entry of `sector`. Its bucket becomes free, or stays reserved.
    pub fn remove(&mut self, sector: u32) {
        if let Some(at) = self.find(sector) {
            match self.reserved.contains(&sector) {
                true => self.put(at, sector, RESERVED),
                false => self.put(at, NONE, VIRTUAL),
            }
            return;
        }
        if let Some(at) = self.overflow.iter().position(|(key, _)| *key == sector) {
            self.overflow.swap_remove(at);
            self.regular -= 1;
        }
    }

    /// Removes the virtual entry of `sector` if it belongs to `block`.
    pub fn remove_virtual(&mut self, sector: u32, block: u32) {
        if self.get(sector) == Some(HashEntry::Virtual(block)) {
            self.remove(sector);
        }
    }

    pub fn save(&self, to: &mut Saver) {
        to.put(&(&self.keys, &self.values, self.regular, &self.overflow));
    }

    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        restore::table(from, "the keys of the hash table", &mut self.keys)?;
        restore::table(from, "the values of the hash table", &mut self.values)?;
        (self.regular, self.overflow) = from.take()?;
        let entries = self.entries();
        let found = entries.iter().all(|(sector, slot)| self.slot(*sector) == Some(*slot));
        let consistent = entries.len() == self.regular as usize && found;
        restore::check(consistent, "the hash table does not find its entries")
    }

    pub fn clear(&mut self) {
        self.keys.fill(NONE);
        self.values.fill(NONE);
        self.overflow.clear();
        self.reserved = 0..0;
        self.regular = 0;
    }

    /// All regular entries as (sector, slot), by sector.
    pub fn entries(&self) -> Vec<(u32, u32)> {
        let pairs = self.keys.iter().zip(&self.values);
        let regular = pairs.filter(|(key, value)| **key != NONE && **value & VIRTUAL == 0);
        let mut all: Vec<(u32, u32)> = regular.map(|(key, value)| (*key, *value)).collect();
        all.extend(&self.overflow);
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn primes() {
        let check = |number, prime| assert_eq!(prime_below(number), prime);
        check(16_384, 16_381);
        check(32_768, 32_749);
        check(65_536, 65_521);
        check(2, 1);
        check(3, 2);
    }

    #[test]
    fn a_sector_without_a_bucket_is_rejected() {
        for probing in [Probing::Linear, Probing::Quadratic] {
            let mut table = HashTable::new(8, 3, probing);
            assert_eq!(table.prime, 7);
            for sector in [0, 7, 14] {
                assert!(table.set(sector, HashEntry::Regular(sector)));
            }
            assert!(!table.set(21, HashEntry::Regular(1)), "its three buckets are occupied");
            let mut before = Vec::new();
            assert!(!table.reserve(21, 1, &mut before) && before.is_empty());
            assert!(!table.set_or_overflow(21, 9));
            assert_eq!(table.slot(21), Some(9));
            table.remove(21);
            assert_eq!((table.get(21), table.regular), (None, 3));
        }
    }

    #[test]
    fn pages_as_keys_share_their_home_entry() {
        // Four entries of two sectors, prime 3: pages 1 and 4 have home entry 1.
        let table = || HashTable::new(8, 4, Probing::Linear).with_entries_of(2).keyed_by_page();
        let mut table = table();
        assert_eq!((table.prime, table.probes), (3, 2));
        for sector in [2, 3, 8, 9] {
            assert!(table.set(sector, HashEntry::Regular(sector)));
        }
        assert_eq!([2, 3, 8, 9].map(|sector| table.find(sector)), [2, 3, 4, 5].map(Some));
        assert!(!table.set(14, HashEntry::Regular(1)), "both entries probed are occupied");
        table.remove(8);
        assert!(table.set(14, HashEntry::Regular(1)), "its sector of the entry is free");
    }

    #[test]
    fn only_data_replace_virtual_entries() {
        let mut table = HashTable::new(8, 1, Probing::Linear);
        assert!(table.set(1, HashEntry::Virtual(5)));
        assert!(!table.set(8, HashEntry::Virtual(6)));
        assert!(table.set(8, HashEntry::Regular(6)));
        assert_eq!((table.get(1), table.slot(8), table.regular), (None, Some(6), 1));
        table.remove_virtual(8, 6);
        assert_eq!(table.regular, 1);
    }

    #[test]
    fn it_agrees_with_a_map_in_random_operations() {
        let mut stream = hybridsim_engine::Stream::new(5, "hash");
        for round in 0..60 {
            let probing = [Probing::Linear, Probing::Quadratic][round % 2];
            let mut table =
                HashTable::new(2 + stream.below(60) as u32, 1 + round as u32 % 9, probing);
            if round % 3 == 0 {
                table = table.with_entries_of(2).keyed_by_page();
            }
            let mut map: BTreeMap<u32, HashEntry> = BTreeMap::new();
            let mut before = Vec::new();
            for step in 0..600u32 {
                let sector = stream.below(90) as u32;
                match stream.below(5) {
                    0 => {
                        table.remove(sector);
                        map.remove(&sector);
                    }
                    1 => {
                        if table.set(sector, HashEntry::Virtual(step % 7)) {
                            map.insert(sector, HashEntry::Virtual(step % 7));
                        }
                    }
                    _ => {
                        let sectors = 1 + stream.below(8) as u32;
                        if table.reserve(sector, sectors, &mut before) {
                            for one in sector..sector + sectors {
                                assert!(
                                    table.set(one, HashEntry::Regular(step)),
                                    "it was reserved"
                                );
                                map.insert(one, HashEntry::Regular(step));
                            }
                            table.release();
                        }
                    }
                }
                // Virtual entries may have been replaced; regular ones never.
                map.retain(|sector, entry| {
                    matches!(entry, HashEntry::Regular(_)) || table.get(*sector).is_some()
                });
                for sector in 0..100 {
                    assert_eq!(table.get(sector), map.get(&sector).copied(), "sector {sector}");
                }
                let regular = map.values().filter(|entry| matches!(entry, HashEntry::Regular(_)));
                assert_eq!(table.regular as usize, regular.count());
            }
        }
    }

    #[test]
    fn reserved_sectors_have_a_bucket_whatever_is_cleaned_meanwhile() {
        let mut stream = hybridsim_engine::Stream::new(6, "hash");
        let (mut reservations, mut before) = (0, Vec::new());
        for round in 0..3_000 {
            let probing = [Probing::Linear, Probing::Quadratic][round % 2];
            let mut table = HashTable::new(24 + stream.below(20) as u32, 5, probing);
            for step in 0..20 {
                let sector = stream.below(200) as u32;
                table.set(sector, HashEntry::Regular(step));
            }
            let (first, sectors) = (stream.below(190) as u32, 10);
            if !table.reserve(first, sectors, &mut before) {
                continue;
            }
            reservations += 1;
            // Cleaning moves the old data of the write away; other sectors need buckets.
            (first..first + sectors).filter(|_| stream.chance(0.7)).for_each(|one| {
                table.remove(one);
            });
            for other in 200..260 {
                table.set(other, HashEntry::Virtual(3));
                table.set(other, HashEntry::Regular(3));
            }
            for one in first..first + sectors {
                assert!(table.set(one, HashEntry::Regular(9)), "{probing:?}, round {round}: {one}");
            }
            table.release();
        }
        assert!(reservations > 100, "{reservations}");
    }

    #[test]
    fn a_reservation_that_fails_changes_nothing() {
        let mut stream = hybridsim_engine::Stream::new(7, "hash");
        let (mut rejected, mut previous) = (0, Vec::new());
        for round in 0..500 {
            let probing = [Probing::Linear, Probing::Quadratic][round % 2];
            let mut table = HashTable::new(32, 3, probing);
            for step in 0..30 {
                let sector = stream.below(200) as u32;
                table.set(sector, HashEntry::Regular(step));
                table.set(stream.below(200) as u32, HashEntry::Virtual(step));
            }
            let before = table.clone();
            if !table.reserve(stream.below(190) as u32, 10, &mut previous) {
                rejected += 1;
                assert_eq!((&table.keys, table.regular), (&before.keys, before.regular));
                assert_eq!(table.values, before.values);
            }
        }
        assert!(rejected > 100, "{rejected}");
    }
}
