//! The hash table that finds data on the SLC flash (chang-slc-mlc, sections 3.3 and 5.4).
//!
//! Sector `s` belongs into one of a few buckets from `s mod H_d` on, `H_d` being the greatest
//! prime below the number of buckets. Buckets are freed in any order, so a lookup looks at all of
//! them; there are no marks of what was deleted. An entry is *regular*, and tells the place of a
//! sector on flash, or *virtual* (section 3.4), and tells the block with which it goes.

use hybridsim_engine::state::{Loader, Saver, StateError, same_length};

/// How buckets follow one another when the first is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probing {
    /// The next ones.
    Linear,
    /// 1, 4, 9, ... further on.
    Quadratic,
}

/// No sector, or no place.
pub const NONE: u32 = u32::MAX;

/// What is known of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is at this place on the SLC flash.
    Regular(u32),
    /// It was refused or moved away lately; the mark goes when this block is erased.
    Virtual(u32),
}

/// The flag of virtual entries in what a bucket holds.
const VIRTUAL: u32 = 1 << 31;
/// The bucket is kept for data on their way.
const CLAIMED: u32 = u32::MAX;

/// What a bucket held: where it is, its key and its value.
pub type Bucket = (usize, u32, u32);

/// The table.
#[derive(Clone, Debug)]
pub struct HashTable {
    keys: Vec<u32>,
    values: Vec<u32>,
    prime: u32,
    probes: u32,
    probing: Probing,
    /// Buckets that make an entry: with entries of pages, one for each sector.
    unit: u32,
    regular: u32,
    /// Sectors of the write under way: what they lose stays theirs.
    claims: std::ops::Range<u32>,
    /// Found no bucket when the table was rebuilt; on their way to the MLC flash.
    overflow: Vec<(u32, u32)>,
}

/// The greatest prime below `number`; 1 when there is none.
pub fn prime_below(number: u32) -> u32 {
    let prime = |n: u32| n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    (2..number).rev().find(|n| prime(*n)).unwrap_or(1)
}

impl HashTable {
    /// A table of `buckets` with `probes` buckets to the sector.
    pub fn new(buckets: u32, probes: u32, probing: Probing) -> Self {
        let buckets = buckets.max(2);
        Self {
            keys: vec![NONE; buckets as usize],
            values: vec![NONE; buckets as usize],
            prime: prime_below(buckets),
            probes: probes.clamp(1, buckets),
            probing,
            unit: 1,
            regular: 0,
            claims: 0..0,
            overflow: Vec::new(),
        }
    }

    /// The table with entries of `unit` buckets each; `buckets` and `probes` count buckets still.
    #[must_use]
    pub fn with_entries_of(self, unit: u32) -> Self {
        Self { unit: unit.max(1), ..self }
    }

    /// Number of regular entries.
    #[inline]
    pub const fn regular(&self) -> u32 {
        self.regular
    }

    #[inline]
    fn bucket(&self, sector: u32, probe: u32) -> usize {
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

    #[inline]
    fn find(&self, sector: u32) -> Option<usize> {
        let first = (sector % self.prime) as usize;
        if self.probing == Probing::Linear
            && let Some(window) = self.keys.get(first..first + self.probes as usize)
        {
            return window.iter().position(|key| *key == sector).map(|at| first + at);
        }
        (0..self.probes).map(|probe| self.bucket(sector, probe)).find(|at| self.keys[*at] == sector)
    }

    /// Number of buckets.
    pub const fn buckets(&self) -> usize {
        self.keys.len()
    }

    /// The sector that has `bucket`.
    pub fn key(&self, bucket: usize) -> Option<u32> {
        Some(self.keys[bucket]).filter(|key| *key != NONE)
    }

    /// What is known of `sector`.
    #[inline]
    pub fn get(&self, sector: u32) -> Option<Entry> {
        match self.find(sector) {
            Some(at) if self.values[at] & VIRTUAL != 0 => {
                Some(Entry::Virtual(self.values[at] & !VIRTUAL))
            }
            Some(at) => Some(Entry::Regular(self.values[at])),
            None if self.overflow.is_empty() => None,
            None => {
                let found = self.overflow.iter().find(|(key, _)| *key == sector);
                found.map(|(_, place)| Entry::Regular(*place))
            }
        }
    }

    /// The place of `sector`, if it is on the SLC flash.
    #[inline]
    pub fn place(&self, sector: u32) -> Option<u32> {
        if self.regular == 0 {
            return None;
        }
        match self.get(sector)? {
            Entry::Regular(place) => Some(place),
            Entry::Virtual(_) => None,
        }
    }

    /// The bucket [`HashTable::set`] would use for `sector`; with `over_marks` that of a mark when
    /// none is free.
    fn room(&self, sector: u32, over_marks: bool) -> Option<usize> {
        let window = || (0..self.probes).map(|probe| self.bucket(sector, probe));
        let is_mark = |at: &usize| {
            let value = self.values[*at];
            self.keys[*at] != NONE && value & VIRTUAL != 0 && value != CLAIMED
        };
        self.find(sector)
            .or_else(|| window().find(|at| self.keys[*at] == NONE))
            .or_else(|| if over_marks { window().find(is_mark) } else { None })
    }

    /// Claims a bucket for each of `sectors` sectors from `first` on; false, and nothing claimed,
    /// when one has none. A mark gives way to data (assumed). `before` is scratch space. From then
    /// on nothing but their own data takes these buckets, whatever happens meanwhile, until
    /// [`HashTable::release`].
    pub fn claim(&mut self, first: u32, sectors: u32, before: &mut Vec<Bucket>) -> bool {
        before.clear();
        // Those that have a bucket keep it, so that none of the others takes it.
        for sector in first..first + sectors {
            if let Some(at) = self.find(sector).filter(|at| self.values[*at] & VIRTUAL != 0) {
                self.claim_bucket(at, sector, before);
            }
        }
        for sector in first..first + sectors {
            if self.find(sector).is_some() {
                continue;
            }
            let Some(at) = self.room(sector, true) else {
                for (at, key, value) in before.drain(..).rev() {
                    self.put(at, key, value);
                }
                return false;
            };
            self.claim_bucket(at, sector, before);
        }
        self.claims = first..first + sectors;
        true
    }

    fn claim_bucket(&mut self, at: usize, sector: u32, before: &mut Vec<Bucket>) {
        before.push((at, self.keys[at], self.values[at]));
        self.put(at, sector, CLAIMED);
    }

    /// The claimed sectors are written.
    pub const fn release(&mut self) {
        self.claims = 0..0;
    }

    #[inline]
    fn put(&mut self, at: usize, sector: u32, value: u32) {
        let was = self.keys[at] != NONE && self.values[at] & VIRTUAL == 0;
        let is = value & VIRTUAL == 0;
        self.regular = self.regular + u32::from(is) - u32::from(was);
        (self.keys[at], self.values[at]) = (sector, value);
    }

    /// Notes `entry` of `sector`; false when it has no bucket.
    pub fn set(&mut self, sector: u32, entry: Entry) -> bool {
        let (value, regular) = match entry {
            Entry::Regular(place) => (place, true),
            Entry::Virtual(block) => (block | VIRTUAL, false),
        };
        let room = self.room(sector, regular);
        if let Some(at) = room {
            self.put(at, sector, value);
        }
        room.is_some()
    }

    /// As [`HashTable::set`] for data that has to be kept somewhere: without a bucket it is kept
    /// aside, and the answer is false.
    pub fn set_or_keep_aside(&mut self, sector: u32, place: u32) -> bool {
        let kept = self.set(sector, Entry::Regular(place));
        if !kept {
            self.overflow.push((sector, place));
            self.regular += 1;
        }
        kept
    }

    /// Forgets `sector`. Its bucket is free, or stays claimed.
    pub fn remove(&mut self, sector: u32) {
        if let Some(at) = self.find(sector) {
            match self.claims.contains(&sector) {
                true => self.put(at, sector, CLAIMED),
                false => self.put(at, NONE, VIRTUAL),
            }
            return;
        }
        if let Some(at) = self.overflow.iter().position(|(key, _)| *key == sector) {
            self.overflow.swap_remove(at);
            self.regular -= 1;
        }
    }

    /// Forgets the mark of `sector` if it goes with `block`.
    pub fn remove_virtual(&mut self, sector: u32, block: u32) {
        if self.get(sector) == Some(Entry::Virtual(block)) {
            self.remove(sector);
        }
    }

    /// Puts down what it knows.
    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&(&self.keys, &self.values, self.regular, &self.overflow));
    }

    /// Takes back what [`HashTable::save`] put down.
    ///
    /// # Errors
    /// When it is of a table of another size, or finds other than it says.
    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (keys, values): (Vec<u32>, Vec<u32>);
        (keys, values, self.regular, self.overflow) = from.take()?;
        same_length("the hash table", keys.len(), self.keys.len())?;
        same_length("the hash table", values.len(), self.values.len())?;
        (self.keys, self.values) = (keys, values);
        let known = |entry: &(u32, u32)| self.place(entry.0) == Some(entry.1);
        let entries = self.entries();
        if entries.len() != self.regular as usize || !entries.iter().all(known) {
            return Err(StateError("the hash table does not find what is in it".to_owned()));
        }
        Ok(())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.keys.fill(NONE);
        self.values.fill(NONE);
        self.overflow.clear();
        self.claims = 0..0;
        self.regular = 0;
    }

    /// All regular entries as (sector, place), by sector; for tests.
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
    fn what_has_no_bucket_is_refused() {
        for (probing, places) in [(Probing::Linear, [0, 7, 14]), (Probing::Quadratic, [0, 7, 14])] {
            let mut table = HashTable::new(8, 3, probing);
            assert_eq!(table.prime, 7);
            for sector in places {
                assert!(table.set(sector, Entry::Regular(sector)));
            }
            assert!(!table.set(21, Entry::Regular(1)), "its three buckets are taken");
            let mut claimed = Vec::new();
            assert!(!table.claim(21, 1, &mut claimed) && claimed.is_empty());
            assert!(!table.set_or_keep_aside(21, 9));
            assert_eq!(table.place(21), Some(9));
            table.remove(21);
            assert_eq!((table.get(21), table.regular()), (None, 3));
        }
    }

    #[test]
    fn a_mark_gives_way_to_data_only() {
        let mut table = HashTable::new(8, 1, Probing::Linear);
        assert!(table.set(1, Entry::Virtual(5)));
        assert!(!table.set(8, Entry::Virtual(6)));
        assert!(table.set(8, Entry::Regular(6)));
        assert_eq!((table.get(1), table.place(8), table.regular()), (None, Some(6), 1));
        table.remove_virtual(8, 6);
        assert_eq!(table.regular(), 1);
    }

    #[test]
    fn it_agrees_with_a_map_whatever_is_done() {
        let mut stream = hybridsim_engine::Stream::new(5, "hash");
        for round in 0..60 {
            let probing = [Probing::Linear, Probing::Quadratic][round % 2];
            let mut table =
                HashTable::new(2 + stream.below(60) as u32, 1 + round as u32 % 9, probing);
            let mut map: BTreeMap<u32, Entry> = BTreeMap::new();
            let mut claimed = Vec::new();
            for step in 0..600u32 {
                let sector = stream.below(90) as u32;
                match stream.below(5) {
                    0 => {
                        table.remove(sector);
                        map.remove(&sector);
                    }
                    1 => {
                        if table.set(sector, Entry::Virtual(step % 7)) {
                            map.insert(sector, Entry::Virtual(step % 7));
                        }
                    }
                    _ => {
                        let sectors = 1 + stream.below(8) as u32;
                        if table.claim(sector, sectors, &mut claimed) {
                            for one in sector..sector + sectors {
                                assert!(table.set(one, Entry::Regular(step)), "it was claimed");
                                map.insert(one, Entry::Regular(step));
                            }
                            table.release();
                        }
                    }
                }
                // Marks may have given way; data never.
                map.retain(|sector, entry| {
                    matches!(entry, Entry::Regular(_)) || table.get(*sector).is_some()
                });
                for sector in 0..100 {
                    assert_eq!(table.get(sector), map.get(&sector).copied(), "sector {sector}");
                }
                let regular = map.values().filter(|entry| matches!(entry, Entry::Regular(_)));
                assert_eq!(table.regular() as usize, regular.count());
            }
        }
    }

    #[test]
    fn what_was_claimed_has_room_whatever_is_cleaned_meanwhile() {
        let mut stream = hybridsim_engine::Stream::new(6, "hash");
        let (mut claims, mut claimed) = (0, Vec::new());
        for round in 0..3_000 {
            let probing = [Probing::Linear, Probing::Quadratic][round % 2];
            let mut table = HashTable::new(24 + stream.below(20) as u32, 5, probing);
            for step in 0..20 {
                let sector = stream.below(200) as u32;
                table.set(sector, Entry::Regular(step));
            }
            let (first, sectors) = (stream.below(190) as u32, 10);
            if !table.claim(first, sectors, &mut claimed) {
                continue;
            }
            claims += 1;
            // Cleaning moves the old data of the write away; others want room.
            (first..first + sectors).filter(|_| stream.chance(0.7)).for_each(|one| {
                table.remove(one);
            });
            for other in 200..260 {
                table.set(other, Entry::Virtual(3));
                table.set(other, Entry::Regular(3));
            }
            for one in first..first + sectors {
                assert!(table.set(one, Entry::Regular(9)), "{probing:?}, round {round}: {one}");
            }
            table.release();
        }
        assert!(claims > 100, "{claims}");
    }

    #[test]
    fn a_claim_that_fails_changes_nothing() {
        let mut stream = hybridsim_engine::Stream::new(7, "hash");
        let (mut refused, mut claimed) = (0, Vec::new());
        for round in 0..500 {
            let probing = [Probing::Linear, Probing::Quadratic][round % 2];
            let mut table = HashTable::new(32, 3, probing);
            for step in 0..30 {
                let sector = stream.below(200) as u32;
                table.set(sector, Entry::Regular(step));
                table.set(stream.below(200) as u32, Entry::Virtual(step));
            }
            let before = table.clone();
            if !table.claim(stream.below(190) as u32, 10, &mut claimed) {
                refused += 1;
                assert_eq!((&table.keys, table.regular), (&before.keys, before.regular));
                assert_eq!(table.values, before.values);
            }
        }
        assert!(refused > 100, "{refused}");
    }
}
