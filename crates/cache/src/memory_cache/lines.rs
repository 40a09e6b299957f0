//! The lines of a memory cache: what each holds, and which one goes when room is needed.

use hybridsim_engine::Stream;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};

/// Which line goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The one that came first.
    Fifo,
    /// The one used least recently.
    Lru,
    /// As `Lru`, but lines used again are protected, up to so many.
    Slru(usize),
    /// Any.
    Random,
    /// The one that came last.
    Lifo,
}

/// A line: one bit per sector.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    /// Which line of the device.
    pub number: u64,
    /// Sectors it holds.
    pub valid: u64,
    /// Sectors the device does not have yet.
    pub dirty: u64,
    /// Whether a write of some of it is under way.
    pub flushing: bool,
    /// Requests that need it to stay.
    pub pins: u32,
    /// Number of the write that made it dirty.
    pub since: u64,
    /// Where it stands in the order of replacement.
    rank: u64,
    protected: bool,
}

impl Line {
    /// Whether its place may be given away; `strictly`, once it has been written back.
    fn may_go(&self, strictly: bool) -> bool {
        (strictly || self.dirty == 0) && !self.flushing && self.pins == 0
    }
}

/// Entries a list of lines may have, before those are left out that no longer hold.
const fn at_most(lines: usize) -> usize {
    2 * lines + 64
}

/// The lines.
#[derive(Debug)]
pub struct Lines {
    slots: Vec<Line>,
    free: Vec<u32>,
    by_number: FxHashMap<u64, u32>,
    /// Lines that are dirty keep their turn to go.
    strictly: bool,
    /// Lines that may go, by rank.
    going: BTreeSet<(u64, u32)>,
    /// Lines that became dirty, in that order; left out when seen clean or older than told.
    dirty: VecDeque<(u64, u32)>,
    protected: VecDeque<(u64, u32)>,
    protected_count: usize,
    replacement: Replacement,
    ticks: u64,
    writes: u64,
    stream: Stream,
}

impl Lines {
    /// So many empty lines. The next line to go is the first clean one, or `strictly` the first
    /// one, which has to be written back if it is dirty.
    pub fn new(count: u32, replacement: Replacement, strictly: bool, stream: Stream) -> Self {
        Self {
            slots: vec![Line::default(); count as usize],
            free: (0..count).rev().collect(),
            by_number: FxHashMap::default(),
            strictly,
            going: BTreeSet::new(),
            dirty: VecDeque::new(),
            protected: VecDeque::new(),
            protected_count: 0,
            replacement,
            ticks: 0,
            writes: 0,
            stream,
        }
    }

    /// Lines there are.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Lines that could be had now.
    pub fn available(&self) -> usize {
        self.free.len() + self.going.len()
    }

    /// Of the next `count` lines to be had, the first that has to be written back before.
    pub fn in_the_way(&self, count: usize) -> Option<u32> {
        let going = self.going.iter().take(count.saturating_sub(self.free.len()));
        let mut slots = going.map(|(_, slot)| *slot);
        slots.find(|slot| self.slots[*slot as usize].dirty != 0)
    }

    /// Where line `number` is.
    pub fn find(&self, number: u64) -> Option<u32> {
        self.by_number.get(&number).copied()
    }

    /// The line in `slot`.
    pub fn get(&self, slot: u32) -> &Line {
        &self.slots[slot as usize]
    }

    /// Changes the line in `slot`.
    pub fn change(&mut self, slot: u32, change: impl FnOnce(&mut Line)) {
        let strictly = self.strictly;
        let line = &mut self.slots[slot as usize];
        let (could, was_dirty) = (line.may_go(strictly), line.dirty != 0);
        change(line);
        let (can, rank) = (line.may_go(strictly), line.rank);
        if line.dirty != 0 && !was_dirty {
            self.writes += 1;
            line.since = self.writes;
            self.dirty.push_back((line.since, slot));
            if self.dirty.len() > at_most(self.slots.len()) {
                let lines = &self.slots;
                self.dirty.retain(|(since, slot)| {
                    let line = &lines[*slot as usize];
                    line.dirty != 0 && line.since == *since
                });
            }
        }
        match (could, can) {
            (true, false) => {
                self.going.remove(&(rank, slot));
            }
            (false, true) => {
                self.going.insert((rank, slot));
            }
            _ => {}
        }
    }

    fn set_rank(&mut self, slot: u32, rank: u64) {
        let line = &mut self.slots[slot as usize];
        if line.may_go(self.strictly) {
            self.going.remove(&(line.rank, slot));
            self.going.insert((rank, slot));
        }
        line.rank = rank;
    }

    /// The line in `slot` was used.
    pub fn touch(&mut self, slot: u32) {
        self.ticks += 1;
        let tick = self.ticks;
        match self.replacement {
            Replacement::Lru => self.set_rank(slot, tick),
            Replacement::Slru(most) => {
                if !std::mem::replace(&mut self.slots[slot as usize].protected, true) {
                    self.protected_count += 1;
                }
                // Protected lines go after all others.
                self.set_rank(slot, tick | 1 << 63);
                self.protected.push_back((tick | 1 << 63, slot));
                self.demote(most);
                if self.protected.len() > at_most(self.slots.len()) {
                    let lines = &self.slots;
                    self.protected.retain(|(rank, slot)| {
                        let line = &lines[*slot as usize];
                        line.protected && line.rank == *rank
                    });
                }
            }
            Replacement::Fifo | Replacement::Random | Replacement::Lifo => {}
        }
    }

    fn demote(&mut self, most: usize) {
        while let Some(&(rank, slot)) = self.protected.front() {
            let line = &mut self.slots[slot as usize];
            let stale = !line.protected || line.rank != rank;
            if !stale {
                if self.protected_count <= most {
                    return;
                }
                line.protected = false;
                self.protected_count -= 1;
                self.set_rank(slot, rank & !(1 << 63));
            }
            self.protected.pop_front();
        }
    }

    /// The place of line `number`; a line that may go makes room. `None` when none may, or it has
    /// to be written back before.
    pub fn allocate(&mut self, number: u64) -> Option<u32> {
        if let Some(slot) = self.find(number) {
            return Some(slot);
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let (_, slot) = *self.going.first()?;
                if self.slots[slot as usize].dirty != 0 {
                    return None;
                }
                self.forget(slot);
                self.free.pop()?
            }
        };
        self.ticks += 1;
        let rank = match self.replacement {
            Replacement::Random => self.stream.bits() >> 1,
            Replacement::Lifo => (1 << 62) - self.ticks,
            Replacement::Fifo | Replacement::Lru | Replacement::Slru(_) => self.ticks,
        };
        self.slots[slot as usize] = Line { number, rank, ..Line::default() };
        self.by_number.insert(number, slot);
        self.going.insert((rank, slot));
        Some(slot)
    }

    /// Drops a line that may go.
    pub fn forget(&mut self, slot: u32) {
        let line = self.slots[slot as usize];
        if line.may_go(false) {
            self.going.remove(&(line.rank, slot));
            self.by_number.remove(&line.number);
            self.protected_count -= usize::from(line.protected);
            self.slots[slot as usize] = Line { pins: 1, ..Line::default() };
            self.free.push(slot);
        }
    }

    /// The dirty line that has been so for longest and of which no write is under way or held up,
    /// and the number of the write that made it so.
    pub fn oldest_dirty(&mut self) -> Option<(u64, u32)> {
        let lines = &self.slots;
        let is_dirty = |since: u64, slot: u32| {
            let line = &lines[slot as usize];
            line.dirty != 0 && line.since == since
        };
        while self.dirty.front().is_some_and(|(since, slot)| !is_dirty(*since, *slot)) {
            self.dirty.pop_front();
        }
        let mut all = self.dirty.iter().copied();
        all.find(|&(since, slot)| {
            let line = &lines[slot as usize];
            is_dirty(since, slot) && !line.flushing && line.pins == 0
        })
    }

    /// The number of the last write so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Whether anything written up to `number` is still dirty.
    pub fn is_dirty_until(&self, number: u64) -> bool {
        let dirty = |(since, slot): &(u64, u32)| {
            let line = &self.slots[*slot as usize];
            line.dirty != 0 && line.since == *since
        };
        self.dirty.iter().take_while(|(since, _)| *since <= number).any(dirty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirty_lines_keep_their_turn_only_strictly() {
        for strictly in [false, true] {
            let mut lines = Lines::new(2, Replacement::Lru, strictly, Stream::new(1, "lines"));
            let first = lines.allocate(7).expect("there is room");
            lines.change(first, |line| line.dirty = 1);
            lines.allocate(8).expect("there is room");
            assert_eq!(lines.available(), 1 + usize::from(strictly));
            assert_eq!(lines.in_the_way(1), strictly.then_some(first));
            assert_eq!(lines.allocate(9).is_some(), !strictly);
            lines.change(first, |line| line.dirty = 0);
            assert_eq!(lines.in_the_way(1), None);
            assert!(lines.allocate(10).is_some());
            assert_eq!(lines.find(7).is_some(), !strictly && lines.find(8).is_some());
        }
    }

    #[test]
    fn lists_stay_short_however_long_their_first_entry_holds() {
        let mut lines = Lines::new(4, Replacement::Slru(4), false, Stream::new(1, "lines"));
        let slots = [7, 8].map(|number| lines.allocate(number).expect("there is room"));
        for slot in slots {
            lines.change(slot, |line| line.dirty = 1);
            lines.touch(slot);
        }
        for _ in 0..1000 {
            lines.change(slots[1], |line| line.dirty = 0);
            lines.change(slots[1], |line| line.dirty = 1);
            lines.touch(slots[1]);
        }
        assert!(lines.dirty.len() <= at_most(4) && lines.protected.len() <= at_most(4));
        assert_eq!(lines.oldest_dirty(), Some((1, slots[0])));
        assert_eq!(lines.protected.front().map(|entry| entry.1), Some(slots[0]));
    }
}
