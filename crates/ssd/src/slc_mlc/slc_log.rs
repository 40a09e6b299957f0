//! The SLC flash: a circular log (chang-slc-mlc, section 3.3).
//!
//! Blocks form a ring. New data go to the head block; data that are still valid in the tail block
//! were not written for a whole round and are cold. A page consists of slots of one sector, which
//! the hash table locates; the spare area of a page has its sectors and the age of their data.

use super::NONE;
use super::hash_table::{HashEntry, HashTable};
use super::operations::{Command, Medium, Operations, Statistic};
use hybridsim_engine::Contents;
use hybridsim_engine::state::{Loader, Saver, StateError};
use hybridsim_flash::array::Array;
use hybridsim_flash::event::Cause;
use hybridsim_flash::geometry::{BlockId, Lpn, Ppn};
use hybridsim_flash::restore;
use serde::{Deserialize, Serialize};

/// A sector to be programmed at the head.
#[derive(Clone, Copy, Debug)]
pub struct SectorWrite {
    pub sector: u32,
    /// Time at which the host wrote the data.
    pub written: u64,
    /// In verified runs.
    pub version: u64,
}

/// The position of the log in the ring.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ring {
    /// The block that is being filled.
    pub head: u32,
    /// The block that is cleaned next.
    pub tail: u32,
    /// Blocks from the tail to the head, without the head.
    pub used: u32,
    /// Blocks not worn out.
    pub usable: u32,
    /// Maximum of `used`: Algorithm 2 varies it.
    pub k: u32,
}

pub struct SlcLog {
    pub array: Array,
    pub pages_per_block: u32,
    pub sectors_per_page: u32,
    pub hash: HashTable,
    pub ring: Ring,
    /// k as the device was configured, which wear may lower.
    k_configured: u32,
    /// Spare areas: the sector in each slot.
    pub sectors: Vec<u32>,
    /// Spare areas: when the data of each slot were written.
    pub written: Vec<u64>,
    /// Spare areas: blocks are numbered in the order they were opened.
    pub opened: Vec<u64>,
    opened_last: u64,
    /// Valid slots per page.
    valid_slots: Vec<u8>,
    /// Sectors with a virtual entry that belongs to a block, by block.
    virtual_entries: Vec<Vec<u32>>,
    /// Erases of all blocks.
    pub erases: u64,
    /// Versions by slot, in verified runs.
    pub versions: Contents,
    pub verifying: bool,
}

/// The head, one block to advance to, and one for the valid data of the tail block.
pub const NOT_IN_K: u32 = 3;

/// The smallest number of blocks of a log.
pub const BLOCKS_MIN: u32 = 5;

impl SlcLog {
    pub fn new(array: Array, hash: HashTable) -> Self {
        let geometry = *array.geometry();
        let (blocks, sectors_per_page) = (geometry.blocks(), geometry.sectors_per_page());
        let slots = geometry.pages() as usize * sectors_per_page as usize;
        let mut log = Self {
            pages_per_block: geometry.pages_per_block(),
            sectors_per_page,
            hash,
            ring: Ring { head: 0, tail: 0, used: 0, usable: blocks, k: 0 },
            k_configured: u32::MAX,
            sectors: vec![NONE; slots],
            written: vec![0; slots],
            opened: vec![0; blocks as usize],
            opened_last: 1,
            valid_slots: vec![0; geometry.pages() as usize],
            virtual_entries: vec![Vec::new(); blocks as usize],
            erases: 0,
            versions: Contents::default(),
            verifying: false,
            array,
        };
        log.opened[0] = 1;
        log.ring.k = log.k_max();
        log
    }

    /// Limits the log to `k` blocks: "a predefined parameter" (section 3.3).
    #[must_use]
    pub fn with_k(mut self, k: u32) -> Self {
        self.k_configured = k;
        self.ring.k = self.k_max();
        self
    }

    /// Number of blocks, including those worn out.
    pub fn blocks(&self) -> u32 {
        self.opened.len() as u32
    }

    /// The greatest k to which Algorithm 2 raises the length of the log.
    pub fn k_max(&self) -> u32 {
        self.ring.usable.saturating_sub(NOT_IN_K).min(self.k_configured)
    }

    /// Whether enough blocks are left to write to.
    pub const fn is_usable(&self) -> bool {
        self.ring.usable >= BLOCKS_MIN
    }

    const fn slots_per_block(&self) -> u32 {
        self.pages_per_block * self.sectors_per_page
    }

    pub const fn block_of(&self, slot: u32) -> u32 {
        slot / self.slots_per_block()
    }

    pub fn slot_in_tail(&self, sector: u32) -> Option<u32> {
        self.hash.slot(sector).filter(|slot| self.block_of(*slot) == self.ring.tail)
    }

    pub fn head_is_full(&self) -> bool {
        self.array.next_page(BlockId(self.ring.head)) == self.pages_per_block
    }

    fn next_block(&self, block: u32) -> u32 {
        let after = |block| if block + 1 == self.blocks() { 0 } else { block + 1 };
        let mut block = after(block);
        while self.array.is_retired(BlockId(block)) {
            block = after(block);
        }
        block
    }

    /// Advances the head to the next block. Returns false if that is the tail.
    pub fn advance_head(&mut self) -> bool {
        if self.ring.used + 1 >= self.ring.usable {
            return false;
        }
        self.ring.head = self.next_block(self.ring.head);
        self.ring.used += 1;
        self.opened_last += 1;
        self.opened[self.ring.head as usize] = self.opened_last;
        true
    }

    /// Programs the next page of the head with up to a page of sectors. Returns false if a sector
    /// has no bucket, which its caller should have reserved.
    #[must_use]
    pub fn program(&mut self, sectors: &[SectorWrite], cause: Cause, ops: &mut Operations) -> bool {
        let head = self.ring.head;
        let page = head * self.pages_per_block + self.array.next_page(BlockId(head));
        self.array.program(Ppn(page), Lpn(sectors.first().map_or(NONE, |first| first.sector)));
        self.valid_slots[page as usize] = sectors.len() as u8;
        for (slot, one) in (page * self.sectors_per_page..).zip(sectors) {
            if let Some(old) = self.hash.slot(one.sector) {
                self.invalidate(old);
            }
            if !self.hash.set(one.sector, HashEntry::Regular(slot)) {
                return false;
            }
            self.sectors[slot as usize] = one.sector;
            self.written[slot as usize] = one.written;
            if self.verifying {
                self.versions.write(u64::from(slot), &[one.version]);
            }
        }
        ops.pages(Medium::Slc, Command::Program, cause, 1);
        true
    }

    fn invalidate(&mut self, slot: u32) {
        let page = slot / self.sectors_per_page;
        self.valid_slots[page as usize] -= 1;
        if self.valid_slots[page as usize] == 0 {
            self.array.invalidate(Ppn(page));
        }
    }

    /// Removes the entry of `sector`. Returns whether its data were here.
    pub fn discard(&mut self, sector: u32) -> bool {
        let slot = self.hash.slot(sector);
        if let Some(slot) = slot {
            self.invalidate(slot);
        }
        self.hash.remove(sector);
        slot.is_some()
    }

    /// As [`SlcLog::discard`] for all of `sectors`; calls `discarded` for each whose data were
    /// here. For a long range it visits the entries, not each sector.
    pub fn discard_range(&mut self, sectors: std::ops::Range<u32>, mut discarded: impl FnMut(u32)) {
        if sectors.len() <= self.hash.buckets() {
            sectors.filter(|sector| self.discard(*sector)).for_each(discarded);
            return;
        }
        for bucket in 0..self.hash.buckets() {
            if let Some(sector) = self.hash.key(bucket).filter(|key| sectors.contains(key))
                && self.discard(sector)
            {
                discarded(sector);
            }
        }
    }

    /// Adds a virtual entry for `sector` that belongs to the head block. While all writes are
    /// rejected the head stays where it is, so an existing entry is not listed again.
    pub fn insert_virtual(&mut self, sector: u32) {
        let head = self.ring.head;
        let entry = HashEntry::Virtual(head);
        if self.hash.get(sector) == Some(entry)
            || self.hash.slot(sector).is_some()
            || !self.hash.set(sector, entry)
        {
            return;
        }
        let listed = &mut self.virtual_entries[head as usize];
        listed.push(sector);
        if listed.len() > 2 * self.hash.buckets() {
            // Entries that were removed, and perhaps added again, are still listed.
            listed.sort_unstable();
            listed.dedup();
            listed.retain(|sector| self.hash.get(*sector) == Some(entry));
        }
    }

    /// Collects the valid sectors of the tail block in `into`, in ascending order.
    pub fn tail_sectors(&self, into: &mut Vec<u32>) {
        into.clear();
        let tail = BlockId(self.ring.tail);
        let mut offset = self.array.next_valid(tail, 0);
        while let Some(at) = offset {
            let first = (tail.0 * self.pages_per_block + at) * self.sectors_per_page;
            for slot in first..first + self.sectors_per_page {
                let sector = self.sectors[slot as usize];
                if sector != NONE && self.hash.slot(sector) == Some(slot) {
                    into.push(sector);
                }
            }
            offset = self.array.next_valid(tail, at + 1);
        }
        into.sort_unstable();
    }

    /// Erases the tail block, which has no valid data, and advances the tail.
    pub fn erase_tail(&mut self, ops: &mut Operations) {
        let tail = self.ring.tail;
        let entries = self.virtual_entries[tail as usize].drain(..);
        entries.for_each(|sector| self.hash.remove_virtual(sector, tail));
        let slots = self.slots_per_block() as usize;
        let first = tail as usize * slots;
        self.sectors[first..first + slots].fill(NONE);
        self.opened[tail as usize] = 0;
        if self.verifying {
            self.versions.clear(first as u64, slots as u64);
        }
        self.ring.tail = self.next_block(tail);
        self.ring.used -= 1;
        let usable = self.array.erase(BlockId(tail));
        self.erases += 1;
        ops.erase(Medium::Slc, Cause::Gc, tail, self.array.erases(BlockId(tail)));
        ops.record(Statistic::SlcErases, 1);
        if !usable {
            self.ring.usable -= 1;
            self.ring.k = self.ring.k.min(self.k_max());
        }
    }

    /// Clears the tables that are in RAM only, for recovery.
    pub fn clear_tables(&mut self) {
        self.hash.clear();
        self.virtual_entries.iter_mut().for_each(Vec::clear);
        self.valid_slots.fill(0);
        self.ring.k = self.k_max();
    }

    /// Recovery found the newest data of `sector` in `slot`. Returns false if the hash table has no
    /// bucket for it, so that it has to move.
    pub fn insert_recovered(&mut self, sector: u32, slot: u32) -> bool {
        self.valid_slots[(slot / self.sectors_per_page) as usize] += 1;
        self.hash.set_or_overflow(sector, slot)
    }

    pub fn save(&self, to: &mut Saver) {
        self.array.save(to);
        self.hash.save(to);
        to.put(&(&self.sectors, &self.written, &self.opened));
        to.put(&(&self.valid_slots, &self.virtual_entries));
        to.put(&(self.ring, self.erases, self.opened_last));
    }

    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.array.restore(from)?;
        self.hash.restore(from)?;
        restore::table(from, "the table of sectors", &mut self.sectors)?;
        restore::table(from, "the table of write times", &mut self.written)?;
        restore::table(from, "the table of open blocks", &mut self.opened)?;
        restore::table(from, "the table of valid slots", &mut self.valid_slots)?;
        restore::table(from, "the table of virtual entries", &mut self.virtual_entries)?;
        (self.ring, self.erases, self.opened_last) = from.take()?;
        let Ring { head, tail, used, usable, .. } = self.ring;
        let (blocks, slots) = (self.opened.len(), self.sectors.len());
        let consistent = (head as usize) < blocks
            && (tail as usize) < blocks
            && usable as usize + self.array.retired_blocks() as usize == blocks
            && used <= usable
            && self.hash.entries().iter().all(|(_, slot)| (*slot as usize) < slots);
        restore::check(consistent, "the SLC log is of another device")
    }

    /// Checks the ring and the tables against each other.
    pub fn audit(&self) -> Result<(), String> {
        self.array.audit()?;
        let mut valid_slots = vec![0u8; self.valid_slots.len()];
        for (sector, slot) in self.hash.entries() {
            if self.sectors[slot as usize] != sector {
                return Err(format!("sector {sector} is not in slot {slot}"));
            }
            valid_slots[(slot / self.sectors_per_page) as usize] += 1;
        }
        if valid_slots != self.valid_slots {
            return Err("the counts of valid slots are wrong".to_owned());
        }
        let valid = valid_slots.iter().filter(|count| **count > 0).count() as u64;
        if valid != self.array.valid_pages() {
            let counted = self.array.valid_pages();
            return Err(format!("{valid} pages have valid slots, {counted} are valid"));
        }
        let Ring { head, tail, used, usable, .. } = self.ring;
        let mut block = tail;
        for _ in 0..used {
            block = self.next_block(block);
        }
        if block != head {
            return Err(format!("the head is not {used} blocks after the tail"));
        }
        // Blocks outside of the log are free.
        for _ in used + 1..usable {
            block = self.next_block(block);
            if self.array.next_page(BlockId(block)) != 0 {
                return Err(format!("block {block} outside of the log is not free"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash_table::Probing;
    use super::*;
    use hybridsim_engine::Loader;
    use hybridsim_flash::array::ProgramOrder;
    use hybridsim_flash::geometry::{Geometry, Shape};

    /// A log of eight blocks, each with this many erases.
    fn log(endurance: u32) -> SlcLog {
        let shape = Shape {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 8,
            pages_per_block: 4,
            page_bytes: 1024,
            spare_bytes: 0,
        };
        let geometry = Geometry::new(&shape).expect("a sound shape");
        let array = Array::new(geometry, ProgramOrder::Sequential, endurance);
        SlcLog::new(array, HashTable::new(8, 4, Probing::Linear))
    }

    #[test]
    fn a_sector_rejected_repeatedly_is_listed_once() {
        let mut log = log(100);
        (0..1000).for_each(|_| log.insert_virtual(5));
        assert_eq!(log.virtual_entries[log.ring.head as usize], [5]);
        for sector in 0..10_000 {
            log.insert_virtual(sector % 20);
            log.discard(sector % 20);
        }
        assert!(log.virtual_entries[log.ring.head as usize].len() <= 2 * log.hash.buckets());
    }

    #[test]
    fn a_worn_log_is_restored_and_one_that_counts_other_blocks_is_not() {
        let mut worn = log(1);
        assert!(worn.advance_head());
        worn.erase_tail(&mut Operations::default());
        assert_eq!((worn.ring.usable, worn.array.retired_blocks()), (7, 1));
        let restored = |worn: &SlcLog| {
            let mut saver = Saver::default();
            worn.save(&mut saver);
            let mut other = log(1);
            other.restore(&mut Loader::new(&saver.into_bytes())).map(|()| other.ring.usable)
        };
        assert_eq!(restored(&worn).ok(), Some(7));
        worn.ring.usable = 8;
        assert!(restored(&worn).is_err(), "eight usable blocks beside one worn out");
    }
}
