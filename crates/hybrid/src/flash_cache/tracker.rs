//! Hit ratios a cache of any size would have had, from LRU stacks divided into segments (op-fcl,
//! workload tracker).
//!
//! LRU has the inclusion property, so one stack as long as the largest cache gives the hits of all
//! sizes; a segment counts the hits at its depth. At the end of a period all counts are halved.

use super::cost::Demand;
use hybridsim_cache::replacement::CachedPage;
use hybridsim_cache::replacement::list::SlotList;
use hybridsim_engine::Op;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Segment {
    /// Slot of its least recently used page.
    oldest: u32,
    length: u64,
    hits: f64,
}

/// An LRU stack in segments of equal size.
#[derive(Debug, Serialize, Deserialize)]
pub struct LruStack {
    /// The pages of all segments, least recently used first.
    pages: SlotList,
    /// By slot, the segment of the page.
    segment_of: Vec<u32>,
    free: Vec<u32>,
    slots: FxHashMap<u64, u32>,
    segments: Vec<Segment>,
    segment_pages: u64,
    references: f64,
}

impl LruStack {
    /// `segments` segments of `segment_pages` pages each.
    pub fn new(segments: usize, segment_pages: u64) -> Self {
        Self {
            pages: SlotList::default(),
            segment_of: Vec::new(),
            free: Vec::new(),
            slots: FxHashMap::default(),
            segments: vec![Segment { oldest: NONE, length: 0, hits: 0.0 }; segments],
            segment_pages: segment_pages.max(1),
            references: 0.0,
        }
    }

    fn clear(&mut self) {
        *self = Self::new(self.segments.len(), self.segment_pages);
    }

    /// Whether a page is in the stack.
    pub fn contains(&self, page: u64) -> bool {
        self.slots.contains_key(&page)
    }

    /// References a page: counts the hit in its segment and moves it to the top. Returns whether
    /// it was in the stack.
    pub fn refer(&mut self, page: u64) -> bool {
        self.references += 1.0;
        let found = self.slots.get(&page).copied();
        let slot = match found {
            Some(slot) => {
                self.segments[self.segment_of[slot as usize] as usize].hits += 1.0;
                self.unlink(CachedPage { page, slot });
                slot
            }
            None => self.allocate(page),
        };
        self.pages.push(CachedPage { page, slot });
        self.enter(slot, 0);
        self.overflow();
        found.is_some()
    }

    fn allocate(&mut self, page: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.segment_of.push(0);
            self.segment_of.len() as u32 - 1
        });
        self.slots.insert(page, slot);
        slot
    }

    /// Removes a page.
    pub fn remove(&mut self, page: u64) {
        if let Some(slot) = self.slots.remove(&page) {
            self.unlink(CachedPage { page, slot });
            self.free.push(slot);
        }
    }

    fn unlink(&mut self, page: CachedPage) {
        let number = self.segment_of[page.slot as usize];
        let segment = &mut self.segments[number as usize];
        if segment.oldest == page.slot {
            let newer = self.pages.after(page.slot).map(|newer| newer.slot);
            let same = |slot: &u32| self.segment_of[*slot as usize] == number;
            segment.oldest = newer.filter(same).unwrap_or(NONE);
        }
        segment.length -= 1;
        self.pages.remove(page);
    }

    /// Counts a page in a segment, of which it is the most recently used one.
    fn enter(&mut self, slot: u32, number: usize) {
        self.segment_of[slot as usize] = number as u32;
        let segment = &mut self.segments[number];
        if segment.length == 0 {
            segment.oldest = slot;
        }
        segment.length += 1;
    }

    /// Moves the least recently used page of every segment that is too long to the next one; from
    /// the last segment it leaves the stack.
    fn overflow(&mut self) {
        for number in 0..self.segments.len() {
            if self.segments[number].length <= self.segment_pages {
                return;
            }
            if number + 1 == self.segments.len() {
                let last = self.pages.oldest().expect("the last segment is too long");
                self.remove(last.page);
                return;
            }
            // The order of pages stays; the border between the segments moves by one page.
            let oldest = self.segments[number].oldest;
            let newer = self.pages.after(oldest).expect("the segment has more than one page");
            self.segments[number].oldest = newer.slot;
            self.segments[number].length -= 1;
            self.enter(oldest, number + 1);
        }
    }

    /// Hit ratio of a cache of `pages` pages: exact at the borders of segments, interpolated
    /// between them.
    pub fn hit_rate(&self, pages: f64) -> f64 {
        if self.references <= 0.0 {
            return 0.0;
        }
        let depth = (pages / self.segment_pages as f64).max(0.0);
        let whole = (depth as usize).min(self.segments.len());
        let mut hits: f64 = self.segments[..whole].iter().map(|segment| segment.hits).sum();
        if let Some(part) = self.segments.get(whole) {
            hits += part.hits * (depth - whole as f64);
        }
        hits / self.references
    }

    fn hits(&self) -> f64 {
        self.segments.iter().map(|segment| segment.hits).sum()
    }

    fn decay(&mut self, factor: f64) {
        self.references *= factor;
        self.segments.iter_mut().for_each(|segment| segment.hits *= factor);
    }
}

/// The LRU stacks of the read and the write cache.
#[derive(Debug, Serialize, Deserialize)]
pub struct Tracker {
    read: LruStack,
    write: LruStack,
    /// Read hits in the write stack.
    read_hits_of_writes: f64,
    /// One page in `sampled` is tracked (SHARDS).
    sampled: u64,
}

impl Tracker {
    /// Stacks of `pages` pages in `segments` segments. One page in `sampled` is tracked, chosen by
    /// a hash of its number (SHARDS, Waldspurger et al., FAST 2015).
    pub fn new(segments: usize, pages: u64, sampled: u64) -> Self {
        let segment_pages = (pages / segments as u64 / sampled).max(1);
        Self {
            read: LruStack::new(segments, segment_pages),
            write: LruStack::new(segments, segment_pages),
            read_hits_of_writes: 0.0,
            sampled,
        }
    }

    /// An access to a page that is not part of a sequential stream.
    pub fn refer(&mut self, op: Op, page: u64) {
        let mixed = (page ^ (page >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if self.sampled > 1 && !mixed.is_multiple_of(self.sampled) {
            return;
        }
        if op == Op::Read && !self.write.contains(page) {
            self.read.refer(page);
            return;
        }
        if op == Op::Read {
            self.read_hits_of_writes += 1.0;
        } else {
            self.read.remove(page);
        }
        self.write.refer(page);
    }

    /// Power failure: the stacks are in memory only.
    pub fn clear(&mut self) {
        self.read.clear();
        self.write.clear();
        self.read_hits_of_writes = 0.0;
    }

    /// Ends a period: halves all counts.
    pub fn end_period(&mut self) {
        self.read.decay(0.5);
        self.write.decay(0.5);
        self.read_hits_of_writes *= 0.5;
    }
}

impl Demand for Tracker {
    fn read_hits(&self, pages: f64) -> f64 {
        self.read.hit_rate(pages / self.sampled as f64)
    }

    fn write_hits(&self, pages: f64) -> f64 {
        self.write.hit_rate(pages / self.sampled as f64)
    }

    fn read_share(&self) -> f64 {
        let all = self.read.references + self.write.references;
        if all > 0.0 { self.read.references / all } else { 0.5 }
    }

    fn reads_of_write_hits(&self) -> f64 {
        let hits = self.write.hits();
        if hits > 0.0 { self.read_hits_of_writes / hits } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Depth of `page` in a stack, most recently used first.
    fn brute(stack: &mut Vec<u64>, page: u64) -> Option<usize> {
        let depth = stack.iter().position(|other| *other == page);
        if let Some(depth) = depth {
            stack.remove(depth);
        }
        stack.insert(0, page);
        depth
    }

    proptest! {
        #[test]
        fn hit_rates_are_exact_at_the_borders_of_segments(
            pages in proptest::collection::vec(0u64..60, 1..600),
            segments in 1usize..6,
            segment_pages in 1u64..9,
        ) {
            let mut stack = LruStack::new(segments, segment_pages);
            let (mut all, mut depths) = (Vec::new(), Vec::new());
            for &page in &pages {
                stack.refer(page);
                depths.push(brute(&mut all, page));
            }
            for whole in 0..=segments {
                let size = whole as u64 * segment_pages;
                let hits = depths.iter().flatten().filter(|depth| (**depth as u64) < size).count();
                let expect = hits as f64 / pages.len() as f64;
                prop_assert!((stack.hit_rate(size as f64) - expect).abs() < 1e-12);
            }
        }

        #[test]
        fn removal_keeps_the_stack_consistent(
            steps in proptest::collection::vec((0u64..30, any::<bool>()), 1..300)
        ) {
            let mut stack = LruStack::new(3, 4);
            for (page, remove) in steps {
                if remove { stack.remove(page) } else { let _ = stack.refer(page); }
                let length: u64 = stack.segments.iter().map(|segment| segment.length).sum();
                prop_assert_eq!(length as usize, stack.slots.len());
                prop_assert!(stack.segments.iter().all(|segment| segment.length <= 4));
            }
        }
    }

    #[test]
    fn reads_of_written_pages_count_in_the_write_stack() {
        let mut tracker = Tracker::new(4, 400, 1);
        for page in 0..50 {
            tracker.refer(Op::Write, page);
            tracker.refer(Op::Read, page);
            tracker.refer(Op::Read, 1000 + page);
        }
        assert_eq!(tracker.read_share(), 1.0 / 3.0);
        assert_eq!(tracker.reads_of_write_hits(), 1.0);
        assert_eq!(tracker.write_hits(400.0), 0.5);
        assert_eq!(tracker.read_hits(400.0), 0.0);
        tracker.refer(Op::Write, 1000);
        assert!(!tracker.read.contains(1000), "a written page leaves the read stack");
        tracker.clear();
        assert!(!tracker.write.contains(1000), "the stacks are empty");
        assert_eq!((tracker.read_share(), tracker.write_hits(400.0)), (0.5, 0.0));
    }

    #[test]
    fn a_sample_estimates_the_hit_ratio_without_dominant_pages() {
        let mut stream = hybridsim_engine::Stream::new(1, "shards");
        let zipf = hybridsim_engine::sample::Zipf::new(20_000, 0.5);
        let (mut all, mut some) = (Tracker::new(16, 16_000, 1), Tracker::new(16, 16_000, 8));
        for _ in 0..400_000 {
            let page = zipf.draw(&mut stream);
            all.refer(Op::Write, page);
            some.refer(Op::Write, page);
        }
        for pages in [2_000.0, 6_000.0, 12_000.0] {
            let (exact, about) = (all.write_hits(pages), some.write_hits(pages));
            assert!((exact - about).abs() < 0.06, "{pages}: {exact} and {about}");
        }
    }
}
