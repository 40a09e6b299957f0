//! The directory of a cache without data: numbers of the pages it holds, those in ghost lists
//! included, and of no others.

/// The directory. Pages are kept by number, so that eight entries fill a cache line of the
/// processor.
pub struct Directory {
    table: Table,
    pages: Vec<u64>,
    /// Numbers below `pages.len()` that are not in use.
    free: Vec<u32>,
}

enum Table {
    /// Entries by linear probing, about half of them empty, three quarters without ghost lists:
    /// shorter searches save more than a smaller table. An entry is the high half of the page's
    /// hash, which begins with the place where the search starts, and the number plus one; 0 is
    /// empty.
    Hashed { entries: Vec<u64>, shift: u32 },
    /// By hash, where that is a page number of its own, the number plus one.
    Dense(Vec<u32>),
}

/// Hash of a page, from which [`Directory`] takes the high half: both halves of one product.
#[inline]
pub fn hash_of(page: u64) -> u64 {
    let mixed = page ^ 0x2545_f491_4f6c_dd1d;
    let product = u128::from(mixed) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

/// The place in a table of `2^(64 - shift)` entries where the search for a hash starts.
#[inline]
const fn home(hash: u64, shift: u32) -> usize {
    (hash >> shift) as usize
}

#[inline]
fn enter(entries: &mut [u64], shift: u32, hash: u64, number: u32) {
    let mut at = home(hash, shift);
    while entries[at] != 0 {
        at = (at + 1) & (entries.len() - 1);
    }
    entries[at] = hash >> 32 << 32 | (u64::from(number) + 1);
}

impl Directory {
    /// A directory for a cache of `capacity` pages.
    pub fn new(capacity: u32) -> Self {
        let bits = (4 * u64::from(capacity).max(8)).next_power_of_two().ilog2();
        let table = Table::Hashed { entries: vec![0; 1 << bits], shift: u64::BITS - bits };
        Self { table, pages: Vec::new(), free: Vec::new() }
    }

    /// A directory of pages that are numbered densely from zero: their hash is that number.
    pub const fn dense() -> Self {
        Self { table: Table::Dense(Vec::new()), pages: Vec::new(), free: Vec::new() }
    }

    /// Makes space for hashes below `end`, where they are dense, before any is accessed.
    pub fn reserve(&mut self, end: usize) {
        if let Table::Dense(numbers) = &mut self.table {
            numbers.resize(end.max(numbers.len()), 0);
        }
    }

    /// The hash of the page of a number in use.
    #[inline]
    pub fn hash(&self, number: u32) -> u64 {
        let page = self.pages[number as usize];
        if matches!(self.table, Table::Dense(_)) { page } else { hash_of(page) }
    }

    /// Pages in the directory.
    #[inline]
    pub const fn len(&self) -> usize {
        self.pages.len() - self.free.len()
    }

    /// The entry where the search for a page begins: the number plus one of what is probably that
    /// page, or zero. Reads of several pages overlap, searches do not: afterwards the processor's
    /// cache has what [`Self::number`] reads.
    #[inline]
    pub fn probable(&self, hash: u64) -> u32 {
        match &self.table {
            Table::Hashed { entries, shift } => entries[home(hash, *shift)] as u32,
            Table::Dense(numbers) => numbers[hash as usize],
        }
    }

    /// The page of a number in use, or its hash where these are dense.
    #[inline]
    pub fn page(&self, number: u32) -> u64 {
        self.pages[number as usize]
    }

    /// The number of a page that is in the directory.
    #[inline]
    pub fn number(&self, page: u64, hash: u64) -> Option<u32> {
        let Table::Hashed { entries, shift } = &self.table else {
            return self.probable(hash).checked_sub(1);
        };
        let mut at = home(hash, *shift);
        loop {
            let entry = entries[at];
            if entry == 0 {
                return None;
            }
            if entry >> 32 == hash >> 32 {
                let number = entry as u32 - 1;
                if self.pages[number as usize] == page {
                    return Some(number);
                }
            }
            at = (at + 1) & (entries.len() - 1);
        }
    }

    /// Adds a page that is not in the directory; returns its number, the lowest that was never
    /// used unless others are free again.
    #[inline]
    pub fn add(&mut self, page: u64, hash: u64) -> u32 {
        // A page is added before the one it displaces is removed.
        if let Table::Hashed { entries, .. } = &self.table
            && 2 * self.len() > entries.len()
        {
            self.grow();
        }
        let page = self.kept(page, hash);
        let number = match self.free.pop() {
            Some(number) => {
                self.pages[number as usize] = page;
                number
            }
            None => {
                self.pages.push(page);
                self.pages.len() as u32 - 1
            }
        };
        self.enter(hash, number);
        number
    }

    /// Replaces the page of a number by one that is not in the directory.
    #[inline]
    pub fn replace(&mut self, number: u32, page: u64, hash: u64) {
        self.clear(number, self.hash(number));
        self.pages[number as usize] = self.kept(page, hash);
        self.enter(hash, number);
    }

    /// Removes the page of a number.
    #[inline]
    pub fn remove(&mut self, number: u32) {
        self.clear(number, self.hash(number));
        self.free.push(number);
    }

    /// The value kept for a page: its hash where hashes are dense, otherwise its number.
    #[inline]
    const fn kept(&self, page: u64, hash: u64) -> u64 {
        if matches!(self.table, Table::Dense(_)) { hash } else { page }
    }

    #[cold]
    fn grow(&mut self) {
        let Table::Hashed { entries, shift } = &mut self.table else { return };
        *shift -= 1;
        let old = std::mem::replace(entries, vec![0; 2 * entries.len()]);
        for entry in old.into_iter().filter(|entry| *entry != 0) {
            let number = entry as u32 - 1;
            enter(entries, *shift, hash_of(self.pages[number as usize]), number);
        }
    }

    #[inline]
    fn enter(&mut self, hash: u64, number: u32) {
        match &mut self.table {
            Table::Hashed { entries, shift } => enter(entries, *shift, hash, number),
            Table::Dense(numbers) => numbers[hash as usize] = number + 1,
        }
    }

    /// Removes the entry of a number and closes the gap: later entries move there unless their own
    /// search begins behind it.
    #[inline]
    fn clear(&mut self, number: u32, hash: u64) {
        let (entries, shift) = match &mut self.table {
            Table::Hashed { entries, shift } => (entries, *shift),
            Table::Dense(numbers) => return numbers[hash as usize] = 0,
        };
        let mask = entries.len() - 1;
        let mut gap = home(hash, shift);
        while entries[gap] as u32 != number + 1 {
            gap = (gap + 1) & mask;
        }
        let mut at = (gap + 1) & mask;
        loop {
            let entry = entries[at];
            if entry == 0 {
                break;
            }
            let from_home = at.wrapping_sub(home(entry, shift)) & mask;
            if from_home >= at.wrapping_sub(gap) & mask {
                entries[gap] = entry;
                gap = at;
            }
            at = (at + 1) & mask;
        }
        entries[gap] = 0;
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
            // Three times as many pages as it was made for.
            let pages_max = 3 * capacity as usize;
            for _ in 0..40_000 {
                // Some pages are far apart, as on several volumes.
                let page =
                    stream.below(u64::from(capacity) * 9) << [0, 40][stream.below(2) as usize];
                let hash = hash_of(page);
                assert_eq!(directory.number(page, hash), map.get(&page).copied());
                if map.contains_key(&page) {
                    continue;
                }
                let some = stream.below(held.len().max(1) as u64) as usize;
                match stream.below(3) {
                    0 if !held.is_empty() => {
                        let before = std::mem::replace(&mut held[some], page);
                        let number = map.remove(&before).expect("it was added");
                        directory.replace(number, page, hash);
                        map.insert(page, number);
                    }
                    1 if !held.is_empty() => {
                        let number = map.remove(&held.swap_remove(some)).expect("it was added");
                        directory.remove(number);
                    }
                    _ if held.len() < pages_max => {
                        held.push(page);
                        map.insert(page, directory.add(page, hash));
                        assert_eq!(directory.page(map[&page]), page);
                    }
                    _ => {}
                }
                assert_eq!(directory.len(), held.len());
            }
            let Table::Hashed { entries, .. } = &directory.table else { unreachable!() };
            let used = entries.iter().filter(|entry| **entry != 0).count();
            assert_eq!(used, held.len(), "no entry is left over");
            assert!(directory.pages.len() <= pages_max, "numbers are used again");
        }
    }
}
