//! Numbers the pages of a trace densely, in the order of their first access.

use hybridsim_workload::profile::BlockKey;

/// A page and its number; four of them fill a cache line of the processor.
#[derive(Clone, Copy)]
struct Numbered {
    page: u64,
    /// [`FREE`] in an empty entry.
    id: u32,
    volume: u16,
}

const FREE: u32 = u32::MAX;
const EMPTY: Numbered = Numbered { page: 0, id: FREE, volume: 0 };
const BITS_MIN: u32 = 10;

/// A hash table with open addressing. Its hash is the caller's, of which it uses the high bits.
pub struct PageNumbers {
    table: Vec<Numbered>,
    bits: u32,
    count: u32,
}

impl Default for PageNumbers {
    fn default() -> Self {
        Self { table: vec![EMPTY; 1 << BITS_MIN], bits: BITS_MIN, count: 0 }
    }
}

impl PageNumbers {
    /// Pages with a number.
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Reads the entry where the search for a hash begins, so that the processor's cache has it
    /// when [`Self::number`] is called: reads of several pages overlap, searches do not.
    pub fn prefetch(&self, hash: u64) -> u32 {
        self.table[self.first(hash)].id
    }

    const fn first(&self, hash: u64) -> usize {
        (hash >> (64 - self.bits)) as usize
    }

    /// The number of a page, which is [`Self::len`] before the call for a new page.
    pub fn number(&mut self, (volume, page): BlockKey, hash: u64) -> u32 {
        let mut at = self.first(hash);
        loop {
            let entry = &mut self.table[at];
            if entry.id == FREE {
                break;
            }
            if entry.page == page && entry.volume == volume {
                return entry.id;
            }
            at = (at + 1) & (self.table.len() - 1);
        }
        let id = self.count;
        self.table[at] = Numbered { page, id, volume };
        self.count += 1;
        id
    }

    /// Makes space for `more` pages: three quarters of the table are used at most.
    pub fn reserve(&mut self, more: usize, hash_of: fn(BlockKey) -> u64) {
        if (self.count as usize + more) * 4 <= self.table.len() * 3 {
            return;
        }
        self.bits += 1;
        let old = std::mem::replace(&mut self.table, vec![EMPTY; 1 << self.bits]);
        // Entries move in order of their hash, so both tables are passed through once.
        for entry in old.into_iter().filter(|entry| entry.id != FREE) {
            let mut at = self.first(hash_of((entry.volume, entry.page)));
            while self.table[at].id != FREE {
                at = (at + 1) & (self.table.len() - 1);
            }
            self.table[at] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;
    use hybridsim_workload::profile::sample_hash;
    use std::collections::BTreeMap;

    #[test]
    fn numbers_are_those_of_a_map() {
        let (mut numbers, mut stream) = (PageNumbers::default(), Stream::new(1, "numbers"));
        let mut map: BTreeMap<BlockKey, u32> = BTreeMap::new();
        for _ in 0..50_000 {
            // A few pages at the far end of the largest device, on several volumes.
            let page = stream.below(10_000) + [0, 1 << 54][stream.below(2) as usize];
            let key = (stream.below(3) as u16, page);
            let next = map.len() as u32;
            let expected = *map.entry(key).or_insert(next);
            numbers.reserve(1, sample_hash);
            assert_eq!(numbers.number(key, sample_hash(key)), expected);
        }
        assert_eq!(numbers.len() as usize, map.len());
        assert!(numbers.table.len() * 3 >= map.len() * 4 && map.len() > 30_000);
    }
}
