//! Contents of a system whose power may fail: a read returns the bytes of the write that the
//! simulated system says it holds, sector by sector, which after a power failure may be an older
//! one than the last.
//!
//! A write is kept by its version until a later one of the same sector is durable for certain:
//! forced (FUA), or acknowledged before a flush that completed. Then it is *settled*: it becomes
//! part of the store, and what it replaces is forgotten. A power failure makes every write that is
//! not settled *uncertain*; the first read of a sector decides it, or a later settled write.
//!
//! Versions increase in order of submission. Writes of the same sector never overlap in time: the
//! drive submits the second when the first has completed.

use super::Data;
use super::store::{SECTOR, Store};
use hybridsim_engine::Contents as Versions;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The longest range that is decided by one read: 4 MiB.
const UNDECIDED_SECTORS_MAX: u64 = 8192;

/// The simulated system returned a version that can no longer be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    pub sector: u64,
}

struct Write {
    first: u64,
    data: Data,
    sectors: u64,
    /// Position in the order of acknowledgements.
    acknowledged: Option<u64>,
}

impl Write {
    fn copy(&self, sector: u64, to: &mut [u8]) {
        match &self.data {
            Data::Zeros => to.fill(0),
            Data::Bytes(bytes) => {
                let at = (sector - self.first) as usize * SECTOR;
                to.copy_from_slice(&bytes[at..at + SECTOR]);
            }
        }
    }

    /// Bytes it covers that a flush settles: none before it is acknowledged.
    fn kept(&self) -> u64 {
        self.acknowledged.map_or(0, |_| self.sectors * SECTOR as u64)
    }
}

/// A write of before a power failure, and how many of its sectors are undecided.
struct Uncertain {
    write: Write,
    left: u64,
}

/// The bytes of all writes that the system may still return.
pub struct History {
    store: Store,
    /// The version of every sector in the store; 0 where it is older than this session.
    settled: Versions,
    /// Writes since the last power failure, by version.
    recent: BTreeMap<u64, Write>,
    /// First sector and version of all writes, recent and uncertain.
    by_sector: BTreeSet<(u64, u64)>,
    /// Sectors of the longest write so far.
    longest: u64,
    uncertain: BTreeMap<u64, Uncertain>,
    /// Versions that a sector may have after a power failure, besides the settled one.
    candidates: FxHashMap<u64, Vec<u64>>,
    acknowledged: u64,
    kept_bytes: u64,
    /// Bytes of writes that failed since [`History::take_failed`] was true.
    failed_bytes: u64,
    lost_sectors: u64,
}

impl History {
    /// Over what `store` holds.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            settled: Versions::default(),
            recent: BTreeMap::new(),
            by_sector: BTreeSet::new(),
            longest: 0,
            uncertain: BTreeMap::new(),
            candidates: FxHashMap::default(),
            acknowledged: 0,
            kept_bytes: 0,
            failed_bytes: 0,
            lost_sectors: 0,
        }
    }

    pub fn store(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Bytes that acknowledged writes cover which a flush would settle. Zeros count as well: after
    /// a power failure, what is known of each of their sectors takes memory.
    pub fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Sectors found so far whose last acknowledged write a power failure took away.
    pub fn lost_sectors(&self) -> u64 {
        self.lost_sectors
    }

    /// Whether the store has everything.
    pub fn is_settled(&self) -> bool {
        self.recent.is_empty() && self.candidates.is_empty()
    }

    pub fn settled_store(&self) -> &Store {
        &self.store
    }

    /// A write is submitted.
    pub fn write(&mut self, version: u64, first: u64, sectors: u64, data: Data) {
        self.recent.insert(version, Write { first, data, sectors, acknowledged: None });
        self.by_sector.insert((first, version));
        self.longest = self.longest.max(sectors);
    }

    /// A write completed. A forced one is durable.
    ///
    /// # Errors
    /// Fails when the store cannot be written.
    pub fn written(&mut self, version: u64, forced: bool) -> io::Result<()> {
        self.acknowledged += 1;
        let order = self.acknowledged;
        if let Some(write) = self.recent.get_mut(&version) {
            write.acknowledged = Some(order);
            self.kept_bytes += write.kept();
        }
        if forced { self.settle(version) } else { Ok(()) }
    }

    /// A flush is submitted; returns what [`History::flushed`] takes.
    pub fn flush(&self) -> u64 {
        self.acknowledged
    }

    /// A flush completed: every write acknowledged before it was submitted is durable.
    ///
    /// # Errors
    /// Fails when the store cannot be written.
    pub fn flushed(&mut self, submitted: u64) -> io::Result<()> {
        let durable = |write: &Write| write.acknowledged.is_some_and(|order| order <= submitted);
        let list: Vec<u64> =
            self.recent.iter().filter(|(_, it)| durable(it)).map(|(version, _)| *version).collect();
        list.into_iter().try_for_each(|version| self.settle(version))
    }

    fn settle(&mut self, version: u64) -> io::Result<()> {
        let Some(write) = self.recent.remove(&version) else { return Ok(()) };
        self.by_sector.remove(&(write.first, version));
        self.kept_bytes -= write.kept();
        let stored = self.store_settled(version, &write);
        if stored.is_err() {
            // It is still known, and may be settled once the file can be written again.
            self.kept_bytes += write.kept();
            self.by_sector.insert((write.first, version));
            self.recent.insert(version, write);
        }
        stored
    }

    /// Stores the sectors of `write` that no later settled write covers.
    fn store_settled(&mut self, version: u64, write: &Write) -> io::Result<()> {
        let (mut sector, end) = (write.first, write.first + write.sectors);
        while sector < end {
            // A forced write may have been settled before an earlier one that was flushed later.
            let is_later = |at: &u64| self.settled.get(*at) > version;
            if is_later(&sector) {
                sector += 1;
                continue;
            }
            let run_end = (sector..end).find(is_later).unwrap_or(end);
            match &write.data {
                Data::Zeros => self.store.free(sector, run_end - sector)?,
                Data::Bytes(bytes) => {
                    let [from, to] = [sector, run_end].map(|at| (at - write.first) as usize);
                    self.store.write(sector, &bytes[from * SECTOR..to * SECTOR])?;
                }
            }
            // As a whole, which is kept in less memory.
            self.settled.write(sector, &vec![version; (run_end - sector) as usize]);
            // A later write that failed may be there all the same.
            (sector..run_end).for_each(|at| self.forget_candidates(at, version));
            sector = run_end;
        }
        Ok(())
    }

    /// `sector` holds `bytes` of `version` for certain.
    fn decide(&mut self, sector: u64, version: u64, bytes: &[u8]) -> io::Result<()> {
        self.store.write(sector, bytes)?;
        self.decided(sector, version);
        Ok(())
    }

    /// The store holds `version` of `sector`.
    fn decided(&mut self, sector: u64, version: u64) {
        self.settled.write(sector, &[version]);
        self.forget_candidates(sector, u64::MAX);
    }

    /// A read of `sector` returned `version`: later acknowledged writes are lost.
    fn count_lost(&mut self, sector: u64, version: u64) {
        let later = self.candidates.get(&sector).into_iter().flatten().filter(|it| **it > version);
        let acknowledged = |it: &u64| self.uncertain[it].write.acknowledged.is_some();
        self.lost_sectors += u64::from(later.copied().any(|it| acknowledged(&it)));
    }

    /// Forgets the candidates of `sector` before version `until`.
    fn forget_candidates(&mut self, sector: u64, until: u64) {
        let Some(mut list) = self.candidates.remove(&sector) else { return };
        let later: Vec<u64> = list.extract_if(.., |version| *version >= until).collect();
        if !later.is_empty() {
            self.candidates.insert(sector, later);
        }
        for version in list {
            let Some(uncertain) = self.uncertain.get_mut(&version) else { continue };
            uncertain.left -= 1;
            if uncertain.left == 0 {
                self.by_sector.remove(&(uncertain.write.first, version));
                self.uncertain.remove(&version);
            }
        }
    }

    /// A trim is submitted: what the range holds is undefined from now on, and reads as zeros
    /// unless the system returns a write it has kept.
    ///
    /// # Errors
    /// Fails when the store cannot be written.
    pub fn trim(&mut self, version: u64, first: u64, sectors: u64) -> io::Result<()> {
        let end = first + sectors;
        let mut allocated = Vec::new();
        let mut at = first;
        while at < end {
            let (length, is_allocated) = self.store.run(at);
            let length = length.min(end - at);
            if is_allocated {
                allocated.push((at, length));
            }
            at += length;
        }
        if !allocated.is_empty() {
            // Sectors that cannot be freed stay readable.
            self.store.free(first, sectors)?;
        }
        // Writes that are settled later must not come back.
        let near = (first.saturating_sub(self.longest), 0)..(end, 0);
        for (_, kept) in self.by_sector.range(near) {
            let uncertain = || self.uncertain.get(kept).map(|it| &it.write);
            let Some(write) = self.recent.get(kept).or_else(uncertain) else { continue };
            let (from, to) = (first.max(write.first), end.min(write.first + write.sectors));
            (from..to).for_each(|sector| self.settled.write(sector, &[version]));
        }
        for (at, length) in allocated {
            self.settled.write(at, &vec![version; length as usize]);
        }
        Ok(())
    }

    /// The power fails: what is not settled may be there or not.
    pub fn power_cut(&mut self) {
        self.kept_bytes = 0;
        for (version, write) in std::mem::take(&mut self.recent) {
            self.doubt(version, write);
        }
    }

    /// A write failed: it may be there or not.
    pub fn failed(&mut self, version: u64) {
        let Some(write) = self.recent.remove(&version) else { return };
        self.failed_bytes += write.sectors * SECTOR as u64;
        self.doubt(version, write);
    }

    /// Whether writes of more than `limit` bytes failed since it last returned true: they take
    /// memory until the ranges of [`History::undecided`] are read.
    pub fn take_failed(&mut self, limit: u64) -> bool {
        let due = self.failed_bytes > limit;
        if due {
            self.failed_bytes = 0;
        }
        due
    }

    /// The system fails reads of these sectors as well: each holds the newest that it may hold.
    ///
    /// # Errors
    /// Fails when the store cannot be written.
    pub fn assume_newest(&mut self, first: u64, sectors: u64) -> io::Result<()> {
        let mut bytes = [0; SECTOR];
        for sector in first..first + sectors {
            let settled = self.settled.get(sector);
            let later = |list: &Vec<u64>| list.iter().copied().filter(|it| *it > settled).max();
            let Some(version) = self.candidates.get(&sector).and_then(later) else {
                self.forget_candidates(sector, u64::MAX);
                continue;
            };
            let Some(uncertain) = self.uncertain.get(&version) else { continue };
            uncertain.write.copy(sector, &mut bytes);
            self.decide(sector, version, &bytes)?;
        }
        Ok(())
    }

    /// Whether `write` is there will be decided by a read.
    fn doubt(&mut self, version: u64, write: Write) {
        for sector in write.first..write.first + write.sectors {
            self.candidates.entry(sector).or_default().push(version);
        }
        let left = write.sectors;
        self.uncertain.insert(version, Uncertain { write, left });
    }

    /// Fills `bytes` with what `versions` of the sectors from `first` on are.
    ///
    /// # Errors
    /// A sector whose version can no longer be valid, or a store that cannot be read or written.
    pub fn read(
        &mut self,
        first: u64,
        versions: &[u64],
        bytes: &mut [u8],
    ) -> io::Result<Result<(), Stale>> {
        for ((sector, &version), to) in (first..).zip(versions).zip(bytes.chunks_mut(SECTOR)) {
            if let Some(write) = self.recent.get(&version) {
                write.copy(sector, to);
                continue;
            }
            if let Some(candidates) = self.candidates.get(&sector) {
                let known = candidates.contains(&version).then(|| self.uncertain.get(&version));
                if let Some(uncertain) = known.flatten() {
                    uncertain.write.copy(sector, to);
                    // Counted once it is decided; until then every read finds it again.
                    self.store.write(sector, to)?;
                    self.count_lost(sector, version);
                    self.decided(sector, version);
                    continue;
                }
            }
            let settled = self.settled.get(sector);
            if settled == version {
                self.store.read(sector, to)?;
                self.count_lost(sector, version);
                self.forget_candidates(sector, u64::MAX);
            } else if !self.store.is_allocated(sector) {
                // Trimmed.
                to.fill(0);
                self.count_lost(sector, settled);
                self.forget_candidates(sector, u64::MAX);
            } else {
                return Ok(Err(Stale { sector }));
            }
        }
        Ok(Ok(()))
    }

    /// The ranges (first sector, sectors) that a read has to decide, none longer than a read may
    /// be.
    pub fn undecided(&self) -> Vec<(u64, u64)> {
        let mut sectors: Vec<u64> = self.candidates.keys().copied().collect();
        sectors.sort_unstable();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for sector in sectors {
            match ranges.last_mut() {
                Some((first, count))
                    if *first + *count == sector && *count < UNDECIDED_SECTORS_MAX =>
                {
                    *count += 1;
                }
                _ => ranges.push((sector, 1)),
            }
        }
        ranges
    }

    /// Settles everything, for a state saved after the last completion.
    ///
    /// # Errors
    /// Fails when the store cannot be written.
    pub fn settle_all(&mut self) -> io::Result<()> {
        let versions: Vec<u64> = self.recent.keys().copied().collect();
        versions.into_iter().try_for_each(|version| self.settle(version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        History::new(Store::memory())
    }

    fn data(byte: u8, sectors: usize) -> Data {
        Data::Bytes(vec![byte; sectors * SECTOR])
    }

    fn read(history: &mut History, first: u64, versions: &[u64]) -> Result<Vec<u8>, Stale> {
        let mut bytes = vec![99; versions.len() * SECTOR];
        history.read(first, versions, &mut bytes).expect("memory")?;
        Ok(bytes.chunks(SECTOR).map(|sector| sector[0]).collect())
    }

    #[test]
    fn a_flush_settles_what_was_acknowledged_before_it() {
        let mut it = history();
        it.write(1, 0, 4, data(1, 4));
        it.written(1, false).expect("memory");
        it.write(2, 2, 4, data(2, 4));
        let flush = it.flush();
        it.written(2, false).expect("memory");
        it.flushed(flush).expect("memory");
        assert_eq!(it.recent.keys().collect::<Vec<_>>(), [&2]);
        assert_eq!(read(&mut it, 0, &[1, 1, 2, 2, 2]), Ok(vec![1, 1, 2, 2, 2]));
        assert_eq!(read(&mut it, 0, &[0]), Err(Stale { sector: 0 }), "it was flushed");
        assert_eq!(it.kept_bytes(), 4 * SECTOR as u64);
    }

    /// A history over a file of `sectors` sectors of ones, which cannot be written.
    fn unwritable(sectors: usize) -> History {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        std::io::Write::write_all(&mut file, &vec![1; sectors * SECTOR]).expect("space");
        let file = std::fs::File::open(file.path()).expect("for reading");
        History::new(Store::file(file, (sectors * SECTOR) as u64).expect("its data are found"))
    }

    #[test]
    fn a_write_that_cannot_be_stored_stays_known() {
        let mut it = unwritable(4);
        it.write(1, 0, 2, data(2, 2));
        it.written(1, true).expect_err("it is forced, and the file takes nothing");
        assert_eq!(read(&mut it, 0, &[1, 1, 0]), Ok(vec![2, 2, 1]));
        assert_eq!(it.kept_bytes(), 2 * SECTOR as u64);
        it.flushed(it.flush()).expect_err("still");
        assert_eq!(read(&mut it, 0, &[1, 1, 0]), Ok(vec![2, 2, 1]));
    }

    #[test]
    fn a_trim_that_cannot_free_changes_nothing() {
        let mut it = unwritable(4);
        it.write(1, 0, 2, data(2, 2));
        it.written(1, false).expect("nothing is stored yet");
        it.trim(2, 0, 4).expect_err("the file cannot be freed");
        assert_eq!((it.settled.get(0), it.settled.get(3)), (0, 0), "the write may be settled yet");
        assert_eq!(read(&mut it, 0, &[1, 1, 0]), Ok(vec![2, 2, 1]));
    }

    #[test]
    fn after_a_power_failure_a_read_decides() {
        let mut it = history();
        it.write(1, 0, 2, data(1, 2));
        it.written(1, true).expect("memory");
        it.write(2, 0, 2, data(2, 2));
        it.written(2, false).expect("memory");
        it.power_cut();
        it.flushed(it.flush()).expect("memory");
        assert_eq!(it.undecided(), [(0, 2)]);
        assert_eq!(read(&mut it, 0, &[1, 2]), Ok(vec![1, 2]), "one sector was lost");
        assert_eq!((it.undecided(), it.kept_bytes(), it.lost_sectors()), (vec![], 0, 1));
        assert_eq!(read(&mut it, 0, &[2]), Err(Stale { sector: 0 }), "it was lost");
    }

    #[test]
    fn a_write_that_failed_is_decided_by_a_read() {
        let mut it = history();
        it.write(1, 0, 2, data(1, 2));
        it.written(1, false).expect("memory");
        it.write(2, 0, 2, data(2, 2));
        it.failed(2);
        assert!(!it.take_failed(2 * SECTOR as u64));
        assert!(it.take_failed(0) && !it.take_failed(0));
        it.flushed(it.flush()).expect("memory");
        assert_eq!(it.undecided(), [(0, 2)], "the flush does not decide it");
        assert_eq!(read(&mut it, 0, &[2, 1]), Ok(vec![2, 1]), "a part of it is there");
        assert_eq!((it.undecided(), it.uncertain.len()), (vec![], 0));
        it.settle_all().expect("memory");
        assert_eq!(read(&mut it, 0, &[2, 1]), Ok(vec![2, 1]));
    }

    #[test]
    fn where_reads_fail_too_the_newest_write_is_kept() {
        let mut it = history();
        for version in [1, 2] {
            it.write(version, 0, 2, data(version as u8, 2));
            it.failed(version);
        }
        it.write(3, 1, 1, data(3, 1));
        it.failed(3);
        it.write(4, 2, 1, data(4, 1));
        it.failed(4);
        it.trim(5, 2, 1).expect("memory");
        it.assume_newest(0, 3).expect("memory");
        assert_eq!(read(&mut it, 2, &[0]), Ok(vec![0]), "it was trimmed later");
        assert_eq!((it.undecided(), it.uncertain.len()), (vec![], 0));
        assert_eq!(read(&mut it, 0, &[2, 3]), Ok(vec![2, 3]));
        assert_eq!(read(&mut it, 0, &[1]), Err(Stale { sector: 0 }));
    }

    #[test]
    fn a_forced_write_overtakes_an_earlier_one() {
        let mut it = history();
        it.write(1, 0, 2, data(1, 2));
        it.written(1, false).expect("memory");
        it.write(2, 1, 1, data(2, 1));
        it.written(2, true).expect("memory");
        it.flushed(it.flush()).expect("memory");
        assert_eq!(read(&mut it, 0, &[1, 2]), Ok(vec![1, 2]));
    }

    #[test]
    fn a_settled_write_ends_uncertainty() {
        let mut it = history();
        it.write(1, 0, 3, data(1, 3));
        it.power_cut();
        it.write(2, 0, 3, Data::Zeros);
        it.written(2, true).expect("memory");
        assert_eq!((it.undecided(), it.kept_bytes()), (vec![], 0));
        assert_eq!(read(&mut it, 0, &[2, 2, 2]), Ok(vec![0, 0, 0]));
    }

    #[test]
    fn what_a_power_failure_left_undecided_asks_for_no_flush() {
        let mut it = history();
        it.write(1, 0, 2, data(1, 2));
        assert_eq!(it.kept_bytes(), 0, "no flush settles it yet");
        it.written(1, false).expect("memory");
        it.write(2, 2, 8192, Data::Zeros);
        it.written(2, false).expect("memory");
        assert_eq!(it.kept_bytes(), (2 + 8192) * SECTOR as u64);
        it.power_cut();
        assert_eq!(it.kept_bytes(), 0);
        assert_eq!(it.undecided(), [(0, 8192), (8192, 2)], "no read is too long");
    }

    #[test]
    fn settled_zeros_take_no_memory_in_the_store() {
        let mut it = history();
        it.write(1, 0, 200, data(1, 200));
        it.write(2, 100, 1, data(2, 1));
        it.write(3, 0, 10_000, Data::Zeros);
        it.write(4, 50, 1, data(4, 1));
        for (version, forced) in [(1, true), (2, true), (4, true), (3, true)] {
            it.written(version, forced).expect("memory");
        }
        let allocated: Vec<u64> = (0..10_000).filter(|at| it.store.is_allocated(*at)).collect();
        assert_eq!(allocated, [50], "the later write stays");
        assert_eq!(read(&mut it, 49, &[3, 4, 3]), Ok(vec![0, 4, 0]));
    }

    #[test]
    fn a_trim_outlives_what_was_not_flushed_before_it() {
        let mut it = history();
        it.write(1, 0, 2, data(1, 2));
        it.written(1, false).expect("memory");
        it.trim(2, 0, 1).expect("memory");
        it.flushed(it.flush()).expect("memory");
        assert_eq!(read(&mut it, 0, &[0, 1]), Ok(vec![0, 1]), "the second was not trimmed");
        it.write(3, 4, 2, data(3, 2));
        it.written(3, false).expect("memory");
        it.trim(4, 4, 1).expect("memory");
        it.power_cut();
        assert_eq!(read(&mut it, 4, &[0, 0]), Ok(vec![0, 0]));
        assert_eq!((it.undecided(), it.lost_sectors()), (vec![], 1), "only the second was lost");
    }

    #[test]
    fn trimmed_sectors_read_as_zeros() {
        let mut it = history();
        it.write(1, 0, 2, data(1, 2));
        it.written(1, true).expect("memory");
        it.trim(2, 0, 1).expect("memory");
        assert_eq!(read(&mut it, 0, &[0, 1]), Ok(vec![0, 1]));
        assert_eq!(read(&mut it, 0, &[1]), Ok(vec![0]), "the device kept it, and may");
    }
}
