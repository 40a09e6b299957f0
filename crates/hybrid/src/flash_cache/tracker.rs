//! Hit rates a cache of any size would have had: stacks of page numbers by last use, in segments
//! (op-fcl, workload tracker).
//!
//! LRU is inclusive, so one stack as long as the largest cache tells the hits of all sizes at once;
//! a segment counts the hits at its depth. At the end of a period all counts are halved.

use super::cost::Demand;
use hybridsim_engine::Op;
use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    page: u64,
    /// Towards the top.
    before: u32,
    after: u32,
    segment: u32,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    first: u32,
    last: u32,
    length: u64,
    hits: f64,
}

/// A stack in segments of equal size.
#[derive(Debug)]
pub struct Stack {
    nodes: Vec<Node>,
    free: Vec<u32>,
    at: FxHashMap<u64, u32>,
    segments: Vec<Segment>,
    segment_pages: u64,
    references: f64,
}

impl Stack {
    /// `segments` segments of `segment_pages` pages each.
    pub fn new(segments: usize, segment_pages: u64) -> Self {
        let empty = Segment { first: NONE, last: NONE, length: 0, hits: 0.0 };
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            at: FxHashMap::default(),
            segments: vec![empty; segments],
            segment_pages: segment_pages.max(1),
            references: 0.0,
        }
    }

    /// Forgets all pages and hits.
    fn clear(&mut self) {
        *self = Self::new(self.segments.len(), self.segment_pages);
    }

    /// Whether a page is in it.
    pub fn holds(&self, page: u64) -> bool {
        self.at.contains_key(&page)
    }

    /// A page is used: counts a hit where it was, and puts it on top. Whether it was there.
    pub fn refer(&mut self, page: u64) -> bool {
        self.references += 1.0;
        let found = self.at.get(&page).copied();
        let node = match found {
            Some(node) => {
                let segment = self.nodes[node as usize].segment as usize;
                self.segments[segment].hits += 1.0;
                self.unlink(node);
                node
            }
            None => self.new_node(page),
        };
        self.push(node, 0);
        self.overflow();
        found.is_some()
    }

    fn new_node(&mut self, page: u64) -> u32 {
        let node = Node { page, before: NONE, after: NONE, segment: 0 };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.at.insert(page, at);
        at
    }

    /// Takes a page out.
    pub fn remove(&mut self, page: u64) {
        if let Some(node) = self.at.remove(&page) {
            self.unlink(node);
            self.free.push(node);
        }
    }

    fn unlink(&mut self, node: u32) {
        let Node { before, after, segment, .. } = self.nodes[node as usize];
        let segment = &mut self.segments[segment as usize];
        match before {
            NONE => segment.first = after,
            before => self.nodes[before as usize].after = after,
        }
        match after {
            NONE => segment.last = before,
            after => self.nodes[after as usize].before = before,
        }
        segment.length -= 1;
    }

    /// Puts a node at the top of a segment.
    fn push(&mut self, node: u32, to: usize) {
        let segment = &mut self.segments[to];
        let first = segment.first;
        let state = &mut self.nodes[node as usize];
        (state.before, state.after, state.segment) = (NONE, first, to as u32);
        match first {
            NONE => segment.last = node,
            first => self.nodes[first as usize].before = node,
        }
        segment.first = node;
        segment.length += 1;
    }

    /// What is too much in a segment goes on top of the next; from the last one it falls out.
    fn overflow(&mut self) {
        for at in 0..self.segments.len() {
            if self.segments[at].length <= self.segment_pages {
                return;
            }
            let last = self.segments[at].last;
            self.unlink(last);
            if at + 1 < self.segments.len() {
                self.push(last, at + 1);
            } else {
                self.at.remove(&self.nodes[last as usize].page);
                self.free.push(last);
            }
        }
    }

    /// Share of the references a cache of `pages` pages would have hit: exact at the borders of
    /// segments, in proportion between them.
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

/// The two stacks, and what share of the accesses each handles.
#[derive(Debug)]
pub struct Tracker {
    read: Stack,
    write: Stack,
    /// Hits of the write stack by reads.
    read_hits_of_writes: f64,
    /// One page in so many is followed (SHARDS); 1 follows all.
    sampled: u64,
}

impl Tracker {
    /// Stacks of `segments` segments that together are as long as `pages`; one page in `sampled`
    /// is followed, chosen by its number (SHARDS, Waldspurger et al., FAST 2015).
    pub fn new(segments: usize, pages: u64, sampled: u64) -> Self {
        let segment_pages = (pages / segments as u64 / sampled).max(1);
        Self {
            read: Stack::new(segments, segment_pages),
            write: Stack::new(segments, segment_pages),
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
        if op == Op::Read && !self.write.holds(page) {
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

    /// Forgets all it has seen; it was in memory only.
    pub fn clear(&mut self) {
        self.read.clear();
        self.write.clear();
        self.read_hits_of_writes = 0.0;
    }

    /// A period ends: older counts weigh half.
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
            let mut stack = Stack::new(segments, segment_pages);
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
        fn removing_keeps_the_stack_whole(
            steps in proptest::collection::vec((0u64..30, any::<bool>()), 1..300)
        ) {
            let mut stack = Stack::new(3, 4);
            for (page, remove) in steps {
                if remove { stack.remove(page) } else { let _ = stack.refer(page); }
                let length: u64 = stack.segments.iter().map(|segment| segment.length).sum();
                prop_assert_eq!(length as usize, stack.at.len());
                prop_assert!(stack.segments.iter().all(|segment| segment.length <= 4));
            }
        }
    }

    #[test]
    fn reads_of_what_was_written_belong_to_the_write_side() {
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
        assert!(!tracker.read.holds(1000), "written, it leaves the read side");
        tracker.clear();
        assert!(!tracker.write.holds(1000), "all is forgotten");
        assert_eq!((tracker.read_share(), tracker.write_hits(400.0)), (0.5, 0.0));
    }

    #[test]
    fn a_sample_tells_about_the_same_where_no_page_is_hot_by_itself() {
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
