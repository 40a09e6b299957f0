//! The FQueue in memory: redirected writes in order of arrival, with an index by address.

use hybridsim_engine::Contents;
use hybridsim_engine::sorted::SortedMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    sectors: u64,
    number: u64,
}

/// The queue. Entries never overlap. Volatile; the NV cache holds the same data.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct FQueue {
    size: u64,
    used: u64,
    entries: SortedMap<u64, Entry>,
    /// Number of arrival and address, in order of arrival; stale entries are removed later.
    order: VecDeque<(u64, u64)>,
    numbers: u64,
    /// Data versions of verified runs.
    #[serde(skip)]
    pub data: Contents,
}

impl FQueue {
    /// Sets the size in sectors.
    pub const fn resize(&mut self, sectors: u64) {
        self.size = sectors;
    }

    /// Size in sectors.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Sectors in use.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Whether the queue is empty.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries by address: first sector and length.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.entries.iter().map(|(lba, entry)| (lba, entry.sectors))
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.order.clear();
        self.data = Contents::default();
        self.used = 0;
    }

    /// Adds an entry, which overlaps no other.
    pub fn add(&mut self, lba: u64, sectors: u64) {
        debug_assert!(self.used + sectors <= self.size, "the caller checks the free space");
        let number = self.numbers;
        self.numbers += 1;
        self.entries.insert(lba, Entry { sectors, number });
        // Removes stale entries once they are the majority: amortised constant time.
        if self.order.len() > 2 * self.entries.len() + 64 {
            let entries = &self.entries;
            self.order.retain(|listed| is_in(entries, *listed));
        }
        self.order.push_back((number, lba));
        self.used += sectors;
    }

    /// Removes every entry that begins within `lba..end`; returns how many there were.
    pub fn remove(&mut self, lba: u64, end: u64) -> u64 {
        let mut count = 0;
        while let Some((at, entry)) = self.entries.at_or_after(lba).filter(|entry| entry.0 < end) {
            self.entries.remove(at);
            self.used -= entry.sectors;
            self.data.clear(at, entry.sectors);
            count += 1;
        }
        while self.order.front().is_some_and(|first| !is_in(&self.entries, *first)) {
            self.order.pop_front();
        }
        count
    }

    /// Finds the entries that overlap `lba..end`, by address; with `touching`, also those adjacent
    /// to it.
    pub fn find(&self, lba: u64, end: u64, touching: bool, found: &mut Vec<(u64, u64)>) {
        found.clear();
        let reach = u64::from(touching);
        let before = self.entries.before(lba);
        let before = before.filter(|(at, entry)| *at + entry.sectors + reach > lba);
        let from_here = self.entries.range(lba..end + reach);
        found.extend(before.into_iter().chain(from_here).map(|(at, entry)| (at, entry.sectors)));
    }

    /// The oldest entry with the entries adjacent to it, up to `sectors_max` in all or the entry
    /// alone: first sector and end.
    pub fn oldest_run(&self, sectors_max: u64) -> Option<(u64, u64)> {
        let &(_, first) = self.order.front()?;
        let oldest = self.entries.get(first).expect("the first listed is in the queue");
        let (mut lba, mut end) = (first, first + oldest.sectors);
        while let Some((at, entry)) = self.entries.before(lba)
            && at + entry.sectors == lba
            && end - at <= sectors_max
        {
            lba = at;
        }
        while let Some(entry) = self.entries.get(end)
            && end + entry.sectors - lba <= sectors_max
        {
            end += entry.sectors;
        }
        Some((lba, end))
    }
}

/// Whether the entry with that number is still in the queue.
fn is_in(entries: &SortedMap<u64, Entry>, (number, lba): (u64, u64)) -> bool {
    entries.get(lba).is_some_and(|entry| entry.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushing_is_first_in_first_out_with_neighbours() {
        let mut queue = FQueue::default();
        queue.resize(100);
        for (lba, sectors) in [(50, 8), (10, 4), (58, 4), (46, 4), (90, 1)] {
            queue.add(lba, sectors);
        }
        assert_eq!(queue.used(), 21);
        assert_eq!(queue.oldest_run(100), Some((46, 62)));
        assert_eq!(queue.oldest_run(12), Some((46, 58)), "no longer than the limit");
        assert_eq!(queue.oldest_run(1), Some((50, 58)), "but at least the oldest entry");
        assert_eq!(queue.remove(46, 62), 3);
        assert_eq!(queue.oldest_run(100), Some((10, 14)));
        assert_eq!(queue.remove(0, 100), 2);
        assert_eq!((queue.oldest_run(100), queue.used()), (None, 0));
    }

    #[test]
    fn touching_is_wider_than_overlapping() {
        let mut queue = FQueue::default();
        queue.resize(100);
        for lba in [10, 20, 30] {
            queue.add(lba, 5);
        }
        let find = |lba, end, touching| {
            let mut found = Vec::new();
            queue.find(lba, end, touching, &mut found);
            found.iter().map(|entry| entry.0).collect::<Vec<_>>()
        };
        assert_eq!(find(15, 20, false), []);
        assert_eq!(find(15, 20, true), [10, 20]);
        assert_eq!(find(14, 31, false), [10, 20, 30]);
        assert_eq!(find(16, 19, true), []);
    }
}
