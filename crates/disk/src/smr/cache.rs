//! The persistent cache: a circular log of writes on the disk, and the map of the sectors in it.

use hybridsim_engine::sorted::SortedMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Consecutive sectors with data in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First sector, of the address space of the disk.
    pub lba: u64,
    pub sectors: u64,
    /// Position of the data in the log.
    pub at: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Mapped {
    sectors: u64,
    at: u64,
}

/// A write in the log.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Record {
    lba: u64,
    sectors: u64,
    at: u64,
    /// Sectors of the log that become free with it: its data, the header before them, and what is
    /// left unused before the log continues at its start.
    used: u64,
}

/// Writes that are being appended to the log together.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Position of its first data.
    at: u64,
    /// Sectors besides data.
    overhead: u64,
}

/// The log and its map, whose size follows the number of records.
#[derive(Debug, Serialize, Deserialize)]
pub struct PersistentCache {
    sectors: u64,
    records_max: usize,
    header: u64,
    map: SortedMap<u64, Mapped>,
    /// Oldest first; the oldest has data that were not overwritten.
    log: VecDeque<Record>,
    /// Position after the newest record.
    head: u64,
    /// Sectors from the oldest record to the head.
    used: u64,
    #[serde(skip)]
    group: Option<Group>,
}

impl PersistentCache {
    /// An empty log of `sectors` sectors and at most `records_max` writes, with a header of
    /// `header` sectors before those appended together.
    pub fn new(sectors: u64, records_max: usize, header: u64) -> Self {
        let (map, log) = (SortedMap::default(), VecDeque::new());
        Self { sectors, records_max, header, map, log, head: 0, used: 0, group: None }
    }

    /// Sectors of the log that are in use.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// Whether the saved log can be one of a cache like this, of a disk with `capacity` sectors.
    pub fn is_like(&self, saved: &Self, capacity: u64) -> bool {
        let size = |it: &Self| (it.sectors, it.records_max, it.header);
        let fits = |first: u64, sectors: u64, all: u64| {
            first.checked_add(sectors).is_some_and(|end| end <= all)
        };
        let is_in = |(lba, it): (u64, Mapped)| {
            fits(lba, it.sectors, capacity) && fits(it.at, it.sectors, self.sectors)
        };
        size(self) == size(saved)
            && saved.log.iter().all(|it| fits(it.lba, it.sectors, capacity))
            && saved.log.iter().map(|it| it.used).try_fold(0, u64::checked_add) == Some(saved.used)
            && saved.map.iter().all(is_in)
            && saved.head.max(saved.used) <= self.sectors
    }

    /// The position of the newest `sectors` sectors of the log, at least its start, as a read at
    /// recovery does not wrap around.
    pub const fn newest(&self, sectors: u64) -> u64 {
        self.head.saturating_sub(sectors)
    }

    /// Begins to append `data` sectors of `records` writes. Returns the position of the header, or
    /// `None` where they do not fit.
    pub fn begin(&mut self, data: u64, records: usize) -> Option<u64> {
        debug_assert!(self.group.is_none(), "one group at a time");
        let total = self.header + data;
        if self.used == 0 && self.head + total > self.sectors {
            self.head = 0;
        }
        let wraps = self.head + total > self.sectors;
        let unused = if wraps { self.sectors - self.head } else { 0 };
        if self.used + unused + total > self.sectors || self.log.len() + records > self.records_max
        {
            return None;
        }
        let at = if wraps { 0 } else { self.head };
        self.group = Some(Group { at: at + self.header, overhead: unused + self.header });
        Some(at)
    }

    /// The group is on the medium: `writes` (first sector, sectors) in order.
    pub fn append(&mut self, writes: impl Iterator<Item = (u64, u64)>) {
        let Some(Group { mut at, mut overhead }) = self.group.take() else { return };
        for (lba, sectors) in writes {
            self.remove_extents(lba, lba + sectors);
            self.map.insert(lba, Mapped { sectors, at });
            let used = overhead + sectors;
            self.log.push_back(Record { lba, sectors, at, used });
            self.used += used;
            (at, overhead) = (at + sectors, 0);
        }
        self.head = at;
        self.free_oldest();
    }

    /// The group did not reach the medium.
    pub fn abandon(&mut self) {
        self.group = None;
    }

    /// Removes a range, whose data are elsewhere.
    pub fn remove(&mut self, from: u64, to: u64) {
        self.remove_extents(from, to);
        self.free_oldest();
    }

    fn remove_extents(&mut self, from: u64, to: u64) {
        loop {
            let first = self.stored(from, to).next();
            let Some(Extent { lba, sectors, at }) = first else { break };
            let end = lba + sectors;
            self.map.remove(lba);
            if lba < from {
                self.map.insert(lba, Mapped { sectors: from - lba, at });
            }
            if end > to {
                self.map.insert(to, Mapped { sectors: end - to, at: at + (to - lba) });
            }
        }
    }

    /// Frees the oldest records whose data were overwritten or moved.
    fn free_oldest(&mut self) {
        while let Some(&Record { lba, sectors, at, used }) = self.log.front() {
            let own = at..at + sectors;
            if self.extents(lba, lba + sectors).any(|it| own.contains(&it.at)) {
                break;
            }
            self.log.pop_front();
            self.used -= used;
        }
    }

    /// A sector of the oldest record.
    pub fn oldest(&self) -> Option<u64> {
        // The first sectors of the record may have been overwritten; all are in one band.
        self.log.front().map(|it| it.lba)
    }

    /// Extents that overlap a range, whole.
    fn stored(&self, from: u64, to: u64) -> impl Iterator<Item = Extent> + '_ {
        let extent = |(lba, Mapped { sectors, at })| Extent { lba, sectors, at };
        let before = self.map.before(from).map(extent);
        let before = before.filter(|it| it.lba + it.sectors > from);
        before.into_iter().chain(self.map.range(from..to).map(extent))
    }

    /// The parts of a range that are in the log, in order.
    pub fn extents(&self, from: u64, to: u64) -> impl Iterator<Item = Extent> + '_ {
        self.stored(from, to).map(move |it| {
            let (first, end) = (it.lba.max(from), (it.lba + it.sectors).min(to));
            Extent { lba: first, sectors: end - first, at: it.at + (first - it.lba) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;
    use std::collections::BTreeMap;

    fn append(cache: &mut PersistentCache, writes: &[(u64, u64)]) -> Option<u64> {
        let data = writes.iter().map(|it| it.1).sum();
        let at = cache.begin(data, writes.len())?;
        cache.append(writes.iter().copied());
        Some(at)
    }

    #[test]
    fn a_log_that_is_full_takes_more_when_its_oldest_writes_are_gone() {
        let mut cache = PersistentCache::new(100, 10, 8);
        assert_eq!(append(&mut cache, &[(0, 30)]), Some(0));
        assert_eq!(append(&mut cache, &[(40, 30)]), Some(38));
        assert_eq!(cache.used(), 76);
        assert_eq!(append(&mut cache, &[(80, 20)]), None, "24 sectors are left at the end");
        cache.remove(40, 70);
        assert_eq!(cache.used(), 76, "the oldest keeps the space of later ones");
        cache.remove(0, 30);
        assert_eq!((cache.used(), cache.oldest()), (0, None));
        assert_eq!(append(&mut cache, &[(80, 20), (4, 4)]), Some(0), "it begins again");
        assert_eq!(cache.extents(0, 100).map(|it| it.at).collect::<Vec<_>>(), [28, 8]);
    }

    #[test]
    fn writes_are_bounded_and_a_cycle_leaves_the_end_unused() {
        let mut cache = PersistentCache::new(100, 3, 0);
        for lba in [0, 50, 100] {
            assert!(append(&mut cache, &[(lba, 30)]).is_some());
        }
        assert_eq!(append(&mut cache, &[(200, 1)]), None, "three records are there");
        cache.remove(0, 30);
        assert_eq!(append(&mut cache, &[(0, 20)]), Some(0), "10 sectors are left unused");
        assert_eq!(cache.used(), 90);
    }

    #[test]
    fn a_full_log_is_accepted_from_a_state() {
        let new = || PersistentCache::new(100, 10, 0);
        let mut full = new();
        assert_eq!(append(&mut full, &[(0, 60), (60, 40)]), Some(0));
        assert_eq!((full.head, full.used()), (100, 100));
        assert!(new().is_like(&full, 100));
        assert!(!new().is_like(&full, 99), "the disk is too small");
        full.head = 101;
        assert!(!new().is_like(&full, 100), "it ends behind the log");
    }

    /// The map agrees with one that has each sector, whatever is overwritten, removed and freed.
    #[test]
    fn extents_agree_with_single_sectors() {
        let mut stream = Stream::new(1, "cache");
        let (mut cache, mut plain) = (PersistentCache::new(2_000, 60, 8), BTreeMap::new());
        let mut full = 0;
        for _ in 0..20_000 {
            let (lba, sectors) = (stream.below(400), 1 + stream.below(40));
            if stream.chance(0.3) {
                cache.remove(lba, lba + sectors);
                plain.retain(|it, _| !(lba..lba + sectors).contains(it));
            } else if let Some(at) = append(&mut cache, &[(lba, sectors)]) {
                plain.extend((0..sectors).map(|it| (lba + it, at + 8 + it)));
            } else {
                full += 1;
                let oldest = cache.oldest().expect("it is full") / 50 * 50;
                // A record may go on in the next band.
                cache.remove(oldest, oldest + 100);
                plain.retain(|it, _| !(oldest..oldest + 100).contains(it));
            }
            let (from, to) = (stream.below(400), 440);
            let found = cache.extents(from, to);
            let found = found.flat_map(|it| (0..it.sectors).map(move |i| (it.lba + i, it.at + i)));
            assert!(found.eq(plain.range(from..to).map(|(lba, at)| (*lba, *at))));
            assert!(cache.used() <= 2_000);
        }
        assert!(full > 100, "{full}");
    }
}
