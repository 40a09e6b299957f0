//! Stack distances and popularity of 4 KiB blocks, tracked for a sample of blocks.
//!
//! The sample is chosen by hash, so it contains all accesses to a block or none. Distances within
//! the sample are scaled up (SHARDS, Waldspurger et al., FAST 2015, fixed-size variant: when the
//! sample exceeds its maximum size, half of it is dropped).

use super::footprint::{BlockKey, sample_hash, sampled};
use super::{HotSpots, LruPoint, Reuse};
use crate::fenwick::Fenwick;
use rustc_hash::FxHashMap;

pub const BLOCK_BYTES: u64 = 4096;

/// A set of slots that counts its members up to a slot: one bit per slot, and a Fenwick tree over
/// groups of [`GROUP`] slots, which is small enough for the processor's cache.
pub struct SlotSet {
    bits: Vec<u64>,
    /// Members by group.
    groups: Fenwick,
}

/// Slots of a leaf of the tree: a cache line.
const GROUP: usize = 512;
const GROUP_WORDS: usize = GROUP / 64;

impl SlotSet {
    /// An empty set of slots below `slots`.
    pub fn new(slots: usize) -> Self {
        let groups = slots.div_ceil(GROUP);
        Self { bits: vec![0; groups * GROUP_WORDS], groups: Fenwick::from_ones(groups, 0) }
    }

    /// Number of slots there can be.
    pub fn capacity(&self) -> usize {
        self.bits.len() * 64
    }

    /// Removes all slots, and adds those below `count`.
    pub fn fill(&mut self, count: u32) {
        self.bits.fill(0);
        self.groups.set_ones(0);
        (0..count).for_each(|slot| self.insert(slot));
    }

    /// Adds a slot, which must not be in the set.
    pub fn insert(&mut self, slot: u32) {
        self.change(slot, 1);
    }

    /// Removes a slot, which must be in the set.
    pub fn remove(&mut self, slot: u32) {
        self.change(slot, -1);
    }

    fn change(&mut self, slot: u32, by: i32) {
        let slot = slot as usize;
        self.bits[slot / 64] ^= 1 << (slot % 64);
        self.groups.add((slot / GROUP) as u32, by);
    }

    /// Members up to and including `slot`.
    pub fn count_up_to(&self, slot: u32) -> u32 {
        let (word, group) = (slot as usize / 64, slot as usize / GROUP);
        let before = &self.bits[group * GROUP_WORDS..word];
        let mut sum: u32 = before.iter().map(|word| word.count_ones()).sum();
        sum += (self.bits[word] & (u64::MAX >> (63 - slot % 64))).count_ones();
        sum + group.checked_sub(1).map_or(0, |before| self.groups.up_to(before as u32))
    }
}

/// LRU stack distances of a sample of blocks.
pub struct StackDistances {
    blocks_max: usize,
    level: u32,
    /// Per block, the slot of its last use.
    last: FxHashMap<BlockKey, u32>,
    slots: SlotSet,
    slot: u32,
    /// Sampled accesses by sampling level and distance within the sample.
    counts: Vec<Vec<u64>>,
    cold: f64,
    /// All accesses, sampled or not.
    accesses: u64,
}

impl StackDistances {
    /// Tracks at most `blocks_max` blocks.
    pub fn new(blocks_max: usize) -> Self {
        Self {
            blocks_max,
            level: 0,
            last: FxHashMap::default(),
            slots: SlotSet::new(blocks_max * 4 + 1),
            slot: 0,
            counts: Vec::new(),
            cold: 0.0,
            accesses: 0,
        }
    }

    /// Counts an access to `block` with its [`sample_hash`].
    #[inline]
    pub fn access(&mut self, block: BlockKey, hash: u64) {
        self.accesses += 1;
        if sampled(hash, self.level) {
            self.track(block);
        }
    }

    fn count(&mut self, distance: u32) {
        let (level, distance) = (self.level as usize, distance as usize);
        if level >= self.counts.len() {
            self.counts.resize(level + 1, Vec::new());
        }
        let counts = &mut self.counts[level];
        if distance >= counts.len() {
            counts.resize(distance + 1, 0);
        }
        counts[distance] += 1;
    }

    fn track(&mut self, block: BlockKey) {
        if self.slot as usize == self.slots.capacity() {
            self.renumber();
        }
        let slot = self.slot;
        self.slot += 1;
        let weight = (1u64 << self.level) as f64;
        match self.last.insert(block, slot) {
            Some(before) => {
                // Blocks used since: those with a later slot.
                let since = self.last.len() as u32 - self.slots.count_up_to(before);
                self.count(since);
                self.slots.remove(before);
            }
            None => self.cold += weight,
        }
        self.slots.insert(slot);
        if self.last.len() > self.blocks_max {
            self.level += 1;
            let level = self.level;
            self.last.retain(|key, _| sampled(sample_hash(*key), level));
            self.renumber();
        }
    }

    /// Renumbers the slots from 0, in order of last use.
    fn renumber(&mut self) {
        let mut order: Vec<(u32, BlockKey)> =
            self.last.iter().map(|(key, slot)| (*slot, *key)).collect();
        order.sort_unstable();
        for (slot, (_, key)) in (0..).zip(&order) {
            self.last.insert(*key, slot);
        }
        self.slot = order.len() as u32;
        self.slots.fill(self.slot);
    }

    /// All accesses, sampled or not.
    pub const fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Distinct blocks, estimated from the sample.
    pub fn blocks(&self) -> u64 {
        (self.last.len() as u64) << self.level
    }

    /// The sample holds one in `2^level` blocks.
    pub const fn level(&self) -> u32 {
        self.level
    }

    /// Distances in blocks, each with the number of accesses it represents.
    fn distances(&self) -> impl Iterator<Item = (u64, f64)> {
        (0u32..).zip(&self.counts).flat_map(|(level, counts)| {
            let weighted = move |(distance, &count): (u64, &u64)| {
                (distance << level, count as f64 * (1u64 << level) as f64)
            };
            (0u64..).zip(counts).map(weighted)
        })
    }

    /// The hit ratio of an LRU cache of `blocks` blocks. The difference between expected and actual
    /// sampled accesses is added at the shortest distance (SHARDS-adj, same paper, section 3.4).
    pub fn hit_ratio(&self, blocks: u64) -> Option<f64> {
        let (mut seen, mut hits) = (self.cold, 0.0);
        for (distance, weight) in self.distances() {
            seen += weight;
            hits += if distance < blocks { weight } else { 0.0 };
        }
        let all = self.accesses as f64;
        let share = |hits: f64| ((hits + all - seen) / all).clamp(0.0, 1.0);
        (self.accesses > 0).then(|| if blocks == 0 { 0.0 } else { share(hits) })
    }

    fn by_bits(&self) -> [f64; 65] {
        let mut by_bits = [0.0; 65];
        for (distance, weight) in self.distances() {
            by_bits[(64 - distance.leading_zeros()) as usize] += weight;
        }
        by_bits
    }

    pub fn finish(&self) -> Reuse {
        let by_bits = self.by_bits();
        let total = self.cold + by_bits.iter().sum::<f64>();
        let mut reuse = Reuse { sampled_fraction: fraction(self.level), ..Reuse::default() };
        if total == 0.0 {
            return reuse;
        }
        reuse.cold_fraction = self.cold / total;
        let longest = by_bits.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
        let mut hits = 0.0;
        for (bits, weight) in by_bits.iter().enumerate().take(longest + 1) {
            // A distance of at most this many bits is below 2^bits blocks.
            hits += weight;
            let cache_bytes =
                BLOCK_BYTES.saturating_mul(1u64.checked_shl(bits as u32).unwrap_or(0));
            reuse.lru.push(LruPoint { cache_bytes, hit_ratio: hits / total });
        }
        reuse
    }
}

fn fraction(level: u32) -> f64 {
    1.0 / (1u64 << level) as f64
}

/// Access counts of a sample of blocks.
pub struct Popularity {
    blocks_max: usize,
    level: u32,
    uses: FxHashMap<BlockKey, u32>,
}

impl Popularity {
    /// Counts at most `blocks_max` blocks.
    pub fn new(blocks_max: usize) -> Self {
        Self { blocks_max, level: 0, uses: FxHashMap::default() }
    }

    /// Counts an access to `block` with its [`sample_hash`].
    #[inline]
    pub fn access(&mut self, block: BlockKey, hash: u64) {
        if !sampled(hash, self.level) {
            return;
        }
        let uses = self.uses.entry(block).or_insert(0);
        *uses = uses.saturating_add(1);
        while self.uses.len() > self.blocks_max {
            self.level += 1;
            let level = self.level;
            self.uses.retain(|key, _| sampled(sample_hash(*key), level));
        }
    }

    pub fn finish(&self) -> HotSpots {
        let mut uses: Vec<u64> = self.uses.values().map(|&uses| u64::from(uses)).collect();
        uses.sort_unstable_by(|a, b| b.cmp(a));
        let total: u64 = uses.iter().sum();
        let top: u64 = uses.iter().take(uses.len().div_ceil(100)).sum();
        HotSpots {
            blocks: (uses.len() as u64) << self.level,
            top_percent_fraction: top as f64 / total.max(1) as f64,
            sampled_fraction: fraction(self.level),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::Stream;
    use hybridsim_engine::sample::Zipf;

    #[test]
    fn a_slot_set_counts_its_members() {
        let (mut set, mut stream) = (SlotSet::new(2_000), Stream::new(1, "slots"));
        let mut list = vec![false; set.capacity()];
        assert_eq!(list.len(), 2_048);
        for _ in 0..5_000 {
            let slot = stream.below(2_048) as usize;
            match list[slot] {
                true => set.remove(slot as u32),
                false => set.insert(slot as u32),
            }
            list[slot] = !list[slot];
            let at = stream.below(2_048) as usize;
            let count = list[..=at].iter().filter(|member| **member).count();
            assert_eq!(set.count_up_to(at as u32) as usize, count, "{at}");
        }
        set.fill(700);
        assert_eq!([0, 699, 2_047].map(|slot| set.count_up_to(slot)), [1, 700, 700]);
    }

    /// LRU stack distances by searching the stack.
    fn naive(accesses: &[u64]) -> (f64, [f64; 65]) {
        let (mut stack, mut cold, mut by_bits) = (Vec::new(), 0.0, [0.0; 65]);
        for &block in accesses {
            match stack.iter().rposition(|&other| other == block) {
                Some(at) => {
                    let distance = (stack.len() - 1 - at) as u64;
                    by_bits[(64 - distance.leading_zeros()) as usize] += 1.0;
                    stack.remove(at);
                }
                None => cold += 1.0,
            }
            stack.push(block);
        }
        (cold, by_bits)
    }

    fn skewed(count: usize, blocks: u64) -> Vec<u64> {
        let (zipf, mut stream) = (Zipf::new(blocks, 0.8), Stream::new(3, "reuse"));
        (0..count).map(|_| zipf.draw(&mut stream)).collect()
    }

    fn track(accesses: &[u64], blocks_max: usize) -> StackDistances {
        let mut distances = StackDistances::new(blocks_max);
        accesses.iter().for_each(|&n| distances.access((0, n), sample_hash((0, n))));
        distances
    }

    #[test]
    fn distances_are_exact_while_all_blocks_are_tracked() {
        let accesses = skewed(5_000, 300);
        let distances = track(&accesses, 300);
        assert_eq!((distances.cold, distances.by_bits()), naive(&accesses));
        let different: std::collections::BTreeSet<u64> = accesses.iter().copied().collect();
        assert_eq!((distances.accesses(), distances.blocks()), (5_000, different.len() as u64));
        assert_eq!(distances.finish().sampled_fraction, 1.0);
    }

    #[test]
    fn a_sample_gives_about_the_same_hit_ratios() {
        let accesses = skewed(200_000, 40_000);
        let (exact, sample) =
            (track(&accesses, 100_000).finish(), track(&accesses, 4_000).finish());
        assert!(sample.sampled_fraction < 1.0);
        for point in &exact.lru {
            let of = sample.lru.iter().find(|other| other.cache_bytes == point.cache_bytes);
            let error = of.map_or(0.0, |of| (of.hit_ratio - point.hit_ratio).abs());
            assert!(error < 0.08, "{point:?} {of:?}");
        }
    }

    /// The hit ratio of an LRU cache of `blocks` blocks, by simulating it.
    fn simulated(accesses: &[u64], blocks: usize) -> f64 {
        let (mut stack, mut hits) = (Vec::new(), 0);
        for &block in accesses {
            if let Some(at) = stack.iter().rposition(|&other| other == block) {
                hits += 1;
                stack.remove(at);
            } else if stack.len() == blocks {
                stack.remove(0);
            }
            stack.push(block);
        }
        f64::from(hits) / accesses.len() as f64
    }

    #[test]
    fn hit_ratios_are_those_of_a_cache() {
        let accesses = skewed(4_000, 300);
        let distances = track(&accesses, 300);
        for blocks in [1, 2, 3, 10, 31, 100, 299, 300] {
            let ours = distances.hit_ratio(blocks as u64).expect("there are accesses");
            assert!((ours - simulated(&accesses, blocks)).abs() < 1e-12, "{blocks}: {ours}");
        }
        assert_eq!(distances.hit_ratio(0), Some(0.0));
        assert_eq!(StackDistances::new(10).hit_ratio(10), None);
        let accesses = skewed(60_000, 20_000);
        let sample = track(&accesses, 4_000);
        assert!(sample.level() > 0);
        for blocks in [200, 1_000, 4_000, 10_000] {
            let ours = sample.hit_ratio(blocks as u64).expect("there are accesses");
            let exact = simulated(&accesses, blocks);
            assert!((ours - exact).abs() < 0.03, "{blocks}: {ours} and {exact}");
        }
    }

    #[test]
    fn hot_spots_of_known_shares() {
        let mut popularity = Popularity::new(10_000);
        let mut touch = |n: u64| popularity.access((0, n), sample_hash((0, n)));
        (0..1_000).for_each(&mut touch);
        (0..1_000).for_each(|n| touch(n % 10));
        let spots = popularity.finish();
        assert_eq!((spots.blocks, spots.sampled_fraction), (1_000, 1.0));
        assert!((spots.top_percent_fraction - 1_010.0 / 2_000.0).abs() < 1e-12);
    }
}
