//! A page-mapped flash translation layer in plain vectors, as an oracle: one plane, one log, greedy
//! garbage collection of whole blocks when one free block is left.

use std::collections::VecDeque;

/// Place of a page: block, and position in it.
type Place = (usize, usize);

pub(crate) struct PageMap {
    pages_per_block: usize,
    places: Vec<Option<Place>>,
    /// By block, the logical pages programmed since it was erased.
    programmed: Vec<Vec<usize>>,
    valid: Vec<usize>,
    /// By block, when it became full or last lost a page: ties go to the oldest.
    changed: Vec<u64>,
    now: u64,
    free: VecDeque<usize>,
    open: usize,
    pub(crate) copies: u64,
    pub(crate) erases: u64,
}

impl PageMap {
    pub(crate) fn new(blocks: usize, pages_per_block: usize, logical_pages: usize) -> Self {
        Self {
            pages_per_block,
            places: vec![None; logical_pages],
            programmed: vec![Vec::new(); blocks],
            valid: vec![0; blocks],
            changed: vec![0; blocks],
            now: 0,
            free: (1..blocks).collect(),
            open: 0,
            copies: 0,
            erases: 0,
        }
    }

    pub(crate) fn write(&mut self, page: usize) {
        while self.is_full(self.open) && self.free.len() <= 1 {
            self.collect();
        }
        self.program(page);
    }

    fn is_full(&self, block: usize) -> bool {
        self.programmed[block].len() == self.pages_per_block
    }

    fn program(&mut self, page: usize) {
        if self.is_full(self.open) {
            self.open = self.free.pop_front().expect("garbage collection keeps a block free");
        }
        let place = (self.open, self.programmed[self.open].len());
        self.programmed[self.open].push(page);
        self.valid[self.open] += 1;
        if let Some((block, _)) = self.places[page].replace(place) {
            self.valid[block] -= 1;
            self.change(block);
        }
        if self.is_full(self.open) {
            self.change(self.open);
        }
    }

    fn change(&mut self, block: usize) {
        self.now += 1;
        self.changed[block] = self.now;
    }

    fn collect(&mut self) {
        let full = (0..self.valid.len()).filter(|block| self.is_full(*block));
        let victim = full.min_by_key(|block| (self.valid[*block], self.changed[*block]));
        let victim = victim.expect("the open block is full");
        for (at, page) in self.programmed[victim].clone().into_iter().enumerate() {
            if self.places[page] == Some((victim, at)) {
                self.program(page);
                self.copies += 1;
            }
        }
        self.programmed[victim].clear();
        self.free.push_back(victim);
        self.erases += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_overwritten_in_order_are_not_copied() {
        let mut map = PageMap::new(8, 4, 20);
        (0..10).for_each(|_| (0..20).for_each(|page| map.write(page)));
        // 200 pages fill 50 blocks, of which the last 7 are not erased yet.
        assert_eq!((map.copies, map.erases), (0, 43));
    }

    #[test]
    fn the_victim_has_the_fewest_valid_pages_and_is_the_oldest_of_several() {
        let mut map = PageMap::new(4, 2, 4);
        // Blocks 0 to 2: (0 1) (2 3) (0 2).
        [0, 1, 2, 3, 0, 2].into_iter().for_each(|page| map.write(page));
        assert_eq!((map.copies, map.erases), (0, 0));
        // Blocks 0 and 1 lost a page each, 0 first: page 1 is copied.
        map.write(0);
        assert_eq!((map.copies, map.erases), (1, 1));
        assert_eq!(map.places[1], Some((3, 0)));
    }
}
