//! The SLC flash (chang-slc-mlc, section 3.3): a circular log.
//!
//! Blocks form a ring. New data go to the head block; what is still valid in the tail block was
//! not written for a whole round and is cold. Sectors are found by the hash table; the spare area
//! of a page names its sectors and says how old their data are.

use super::hash::{Entry, HashTable, NONE};
use super::state::below;
use super::work::{Act, Medium, Number, Work};
use crate::array::Array;
use crate::event::Cause;
use crate::geometry::{BlockId, Lpn, Ppn};
use hybridsim_engine::Contents;
use hybridsim_engine::state::{Loader, Saver, StateError, same_length};

/// A sector on its way to the head.
#[derive(Clone, Copy, Debug)]
pub struct Moving {
    /// Which.
    pub sector: u32,
    /// When its data was written.
    pub written: u64,
    /// What it holds, in verified runs.
    pub stamp: u64,
}

/// The log.
pub struct SlcLog {
    /// The cells.
    pub array: Array,
    /// Pages of a block.
    pub per_block: u32,
    /// Sectors of a page.
    pub sectors: u32,
    /// Where sectors are.
    pub hash: HashTable,
    /// Spare areas: the sector in each place, [`NONE`] where there is none.
    pub names: Vec<u32>,
    /// Spare areas: when the data of each place was written.
    pub written: Vec<u64>,
    /// Spare areas: when a block was opened.
    pub opened: Vec<u64>,
    /// Places of a page that are still needed.
    live: Vec<u8>,
    /// Block data go to.
    pub head: u32,
    /// Block that is cleaned next.
    pub tail: u32,
    /// Blocks from the tail to the head, without the head.
    pub used: u32,
    /// Blocks not worn out.
    pub usable: u32,
    /// Most blocks between head and tail.
    pub k: u32,
    /// Marks that go with each block.
    marks: Vec<Vec<u32>>,
    /// Erases of all blocks.
    pub erases: u64,
    /// Blocks opened so far.
    pub opened_count: u64,
    /// Stamps by place, in verified runs.
    pub cells: Contents,
    /// Whether the run is verified.
    pub verifying: bool,
}

/// Blocks that are neither between head and tail nor the head: one to advance to, one for what
/// the tail block still holds.
const FREE: u32 = 3;

/// Fewer blocks make no ring.
pub const BLOCKS_MIN: u32 = 5;

impl SlcLog {
    /// An empty log.
    pub fn new(array: Array, hash: HashTable) -> Self {
        let geometry = *array.geometry();
        let (blocks, sectors) = (geometry.blocks(), geometry.sectors_per_page());
        let places = geometry.pages() as usize * sectors as usize;
        let mut log = Self {
            per_block: geometry.pages_per_block(),
            sectors,
            hash,
            names: vec![NONE; places],
            written: vec![0; places],
            opened: vec![0; blocks as usize],
            live: vec![0; geometry.pages() as usize],
            head: 0,
            tail: 0,
            used: 0,
            usable: blocks,
            k: 0,
            marks: vec![Vec::new(); blocks as usize],
            erases: 0,
            opened_count: 1,
            cells: Contents::default(),
            verifying: false,
            array,
        };
        log.opened[0] = 1;
        log.k = log.k_max();
        log
    }

    /// Blocks, worn out ones included.
    pub fn blocks(&self) -> u32 {
        self.opened.len() as u32
    }

    /// The greatest k.
    pub const fn k_max(&self) -> u32 {
        self.usable.saturating_sub(FREE)
    }

    /// Whether it can take data.
    pub const fn works(&self) -> bool {
        self.usable >= BLOCKS_MIN
    }

    /// Sectors between the pages of the head block.
    pub const fn places_per_block(&self) -> u32 {
        self.per_block * self.sectors
    }

    /// The block of `place`.
    pub const fn block_of(&self, place: u32) -> u32 {
        place / self.places_per_block()
    }

    /// Whether the head block has no free page.
    pub fn head_is_full(&self) -> bool {
        self.array.next_page(BlockId(self.head)) == self.per_block
    }

    fn following(&self, block: u32) -> u32 {
        let after = |block| if block + 1 == self.blocks() { 0 } else { block + 1 };
        let mut block = after(block);
        while self.array.is_retired(BlockId(block)) {
            block = after(block);
        }
        block
    }

    /// The head goes on to the next block; false when that is the tail.
    pub fn advance(&mut self) -> bool {
        if self.used + 1 >= self.usable {
            return false;
        }
        self.head = self.following(self.head);
        self.used += 1;
        self.opened_count += 1;
        self.opened[self.head as usize] = self.opened_count;
        true
    }

    /// Programs the next page of the head with up to a page of sectors. False when the hash table
    /// had no bucket for one of them: its caller forgot to claim one.
    #[must_use]
    pub fn program(&mut self, moving: &[Moving], cause: Cause, work: &mut Work) -> bool {
        let page = self.head * self.per_block + self.array.next_page(BlockId(self.head));
        self.array.program(Ppn(page), Lpn(moving.first().map_or(NONE, |first| first.sector)));
        self.live[page as usize] = moving.len() as u8;
        for (place, one) in (page * self.sectors..).zip(moving) {
            if let Some(old) = self.hash.place(one.sector) {
                self.drop_place(old);
            }
            if !self.hash.set(one.sector, Entry::Regular(place)) {
                return false;
            }
            self.names[place as usize] = one.sector;
            self.written[place as usize] = one.written;
            if self.verifying {
                self.cells.write(u64::from(place), &[one.stamp]);
            }
        }
        work.pages(Medium::Slc, Act::Program, cause, false, 1);
        true
    }

    /// The data in `place` are not needed any more.
    pub fn drop_place(&mut self, place: u32) {
        let page = place / self.sectors;
        self.live[page as usize] -= 1;
        if self.live[page as usize] == 0 {
            self.array.invalidate(Ppn(page));
        }
    }

    /// Forgets `sector`, regular or not; whether its data were here.
    pub fn forget(&mut self, sector: u32) -> bool {
        let place = self.hash.place(sector);
        if let Some(place) = place {
            self.drop_place(place);
        }
        self.hash.remove(sector);
        place.is_some()
    }

    /// As [`SlcLog::forget`] for all of `sectors`; those whose data were here are handed to `lost`.
    /// Of a long range what is known is looked at, not each sector.
    pub fn forget_range(&mut self, sectors: std::ops::Range<u32>, mut lost: impl FnMut(u32)) {
        if sectors.len() <= self.hash.buckets() {
            for sector in sectors {
                if self.forget(sector) {
                    lost(sector);
                }
            }
            return;
        }
        for bucket in 0..self.hash.buckets() {
            if let Some(sector) = self.hash.key(bucket).filter(|key| sectors.contains(key))
                && self.forget(sector)
            {
                lost(sector);
            }
        }
    }

    /// Marks `sector` as a virtual one that goes with the head block. While all writes are refused
    /// the head stays where it is, so one that is marked already must not be listed again.
    pub fn mark(&mut self, sector: u32) {
        if self.hash.get(sector) == Some(Entry::Virtual(self.head)) {
            return;
        }
        if self.hash.place(sector).is_some() || !self.hash.set(sector, Entry::Virtual(self.head)) {
            return;
        }
        let (hash, head) = (&self.hash, self.head);
        let marks = &mut self.marks[head as usize];
        marks.push(sector);
        if marks.len() > 2 * hash.buckets() {
            // Marks that were forgotten since, and perhaps made again, are still listed.
            marks.sort_unstable();
            marks.dedup();
            marks.retain(|sector| hash.get(*sector) == Some(Entry::Virtual(head)));
        }
    }

    /// Whether `sector` is known, regular or marked.
    pub fn knows(&self, sector: u32) -> bool {
        self.hash.get(sector).is_some()
    }

    /// The valid sectors of the tail block, in `into`, by sector.
    pub fn tail_sectors(&self, into: &mut Vec<u32>) {
        into.clear();
        let tail = BlockId(self.tail);
        let mut offset = self.array.next_valid(tail, 0);
        while let Some(at) = offset {
            let first = (self.tail * self.per_block + at) * self.sectors;
            for place in first..first + self.sectors {
                let sector = self.names[place as usize];
                if sector != NONE && self.hash.place(sector) == Some(place) {
                    into.push(sector);
                }
            }
            offset = self.array.next_valid(tail, at + 1);
        }
        into.sort_unstable();
    }

    /// Erases the tail block, which holds nothing valid, and goes on to the next.
    pub fn drop_tail(&mut self, work: &mut Work) {
        let tail = self.tail;
        let mut marks = std::mem::take(&mut self.marks[tail as usize]);
        marks.iter().for_each(|sector| self.hash.remove_virtual(*sector, tail));
        marks.clear();
        self.marks[tail as usize] = marks;
        let places = self.places_per_block() as usize;
        let first = tail as usize * places;
        self.names[first..first + places].fill(NONE);
        self.opened[tail as usize] = 0;
        if self.verifying {
            self.cells.clear(first as u64, places as u64);
        }
        self.tail = self.following(tail);
        self.used -= 1;
        let usable = self.array.erase(BlockId(tail));
        self.erases += 1;
        work.erase(Medium::Slc, Cause::Gc, tail, self.array.erases(BlockId(tail)));
        work.tell(Number::SlcErases, 1);
        if !usable {
            self.usable -= 1;
            self.k = self.k.min(self.k_max());
        }
    }

    /// What only memory knew is gone; see `recovery`.
    pub fn forget_all(&mut self) {
        self.hash.clear();
        self.marks.iter_mut().for_each(Vec::clear);
        self.live.fill(0);
        self.k = self.k_max();
    }

    /// After a rebuild: `place` holds what is newest of its sector. False when the hash table has
    /// no bucket for it, and it has to move.
    pub fn found(&mut self, sector: u32, place: u32) -> bool {
        self.live[(place / self.sectors) as usize] += 1;
        self.hash.set_or_keep_aside(sector, place)
    }

    /// Puts down what it holds.
    pub(super) fn save(&self, to: &mut Saver) {
        self.array.save(to);
        self.hash.save(to);
        to.put(&(&self.names, &self.written, &self.opened, &self.live, &self.marks));
        to.put(&(self.head, self.tail, self.used, self.usable, self.k));
        to.put(&(self.erases, self.opened_count));
    }

    /// Takes back what [`SlcLog::save`] put down.
    ///
    /// # Errors
    /// When it is of another log.
    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.array.restore(from)?;
        self.hash.restore(from)?;
        type Tables = (Vec<u32>, Vec<u64>, Vec<u64>, Vec<u8>, Vec<Vec<u32>>);
        let (names, written, opened, live, marks): Tables = from.take()?;
        let blocks = self.opened.len();
        same_length("the list of names", names.len(), self.names.len())?;
        same_length("the list of ages", written.len(), self.written.len())?;
        same_length("the list of blocks", opened.len(), blocks)?;
        same_length("the list of live places", live.len(), self.live.len())?;
        same_length("the list of marks", marks.len(), blocks)?;
        (self.names, self.written, self.opened) = (names, written, opened);
        (self.live, self.marks) = (live, marks);
        (self.head, self.tail, self.used, self.usable, self.k) = from.take()?;
        (self.erases, self.opened_count) = from.take()?;
        let retired = self.array.retired_blocks() as usize;
        below("the log", &[self.head, self.tail], blocks)?;
        let places = self.names.len();
        if self.hash.entries().iter().any(|(_, place)| *place as usize >= places)
            || [self.head, self.tail].contains(&NONE)
            || self.usable as usize + retired != blocks
            || self.used > self.usable
        {
            return Err(StateError("the SLC log is of another device".to_owned()));
        }
        Ok(())
    }

    /// Checks the ring and its books.
    ///
    /// # Errors
    /// What does not agree.
    pub fn audit(&self) -> Result<(), String> {
        self.array.audit()?;
        let mut live = vec![0u8; self.live.len()];
        for (sector, place) in self.hash.entries() {
            if self.names[place as usize] != sector {
                return Err(format!("sector {sector} is not at place {place}"));
            }
            live[(place / self.sectors) as usize] += 1;
        }
        if live != self.live {
            return Err("the books of live places do not add up".to_owned());
        }
        let valid = live.iter().filter(|count| **count > 0).count() as u64;
        if valid != self.array.valid_pages() {
            return Err(format!("{valid} pages live, {} valid", self.array.valid_pages()));
        }
        let mut block = self.tail;
        for _ in 0..self.used {
            block = self.following(block);
        }
        if block != self.head {
            return Err(format!("{} blocks on from the tail is not the head", self.used));
        }
        // What is not between the two is free.
        for _ in self.used + 1..self.usable {
            block = self.following(block);
            if self.array.next_page(BlockId(block)) != 0 {
                return Err(format!("block {block} outside of the log is not free"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::Probing;
    use super::*;
    use crate::array::ProgramOrder;
    use crate::geometry::{Geometry, Shape};

    #[test]
    fn a_sector_refused_again_and_again_is_listed_once() {
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
        let array = Array::new(geometry, ProgramOrder::Sequential, 100);
        let mut log = SlcLog::new(array, HashTable::new(8, 4, Probing::Linear));
        (0..1000).for_each(|_| log.mark(5));
        assert_eq!(log.marks[log.head as usize], [5]);
        for sector in 0..10_000 {
            log.mark(sector % 20);
            log.forget(sector % 20);
        }
        assert!(log.marks[log.head as usize].len() <= 2 * log.hash.buckets());
    }
}
