//! Stack distances and popularity of 4 KiB blocks, followed for a sample of blocks.
//!
//! A block is in the sample by its hash alone, so all accesses to it are. Distances within the
//! sample are multiplied up (SHARDS, Waldspurger et al., FAST 2015, fixed-size variant: when the
//! sample outgrows its room, half of it is dropped).

use super::footprint::{sample_hash, sampled};
use super::{HotSpots, LruPoint, Reuse};
use rustc_hash::FxHashMap;

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 4096;

type Key = (u16, u64);

/// Follows the order of use of a sample of blocks.
pub struct StackDistances {
    blocks_max: usize,
    level: u32,
    /// Per block, the slot of its last use.
    last: FxHashMap<Key, u32>,
    /// Counts of occupied slots, as a Fenwick tree over slots from 1 on.
    tree: Vec<u32>,
    slot: u32,
    /// Weight of accesses whose distance, in blocks, has this many bits.
    by_bits: [f64; 65],
    cold: f64,
}

impl StackDistances {
    /// Follows at most `blocks_max` blocks.
    pub fn new(blocks_max: usize) -> Self {
        Self {
            blocks_max,
            level: 0,
            last: FxHashMap::default(),
            tree: vec![0; blocks_max * 4 + 1],
            slot: 0,
            by_bits: [0.0; 65],
            cold: 0.0,
        }
    }

    fn update(&mut self, slot: u32, by: i32) {
        let mut at = slot as usize;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    fn occupied_up_to(&self, slot: u32) -> u32 {
        let (mut at, mut sum) = (slot as usize, 0);
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    /// Notes a use of `block` with that hash.
    #[inline]
    pub fn access(&mut self, block: Key, hash: u64) {
        if sampled(hash, self.level) {
            self.follow(block);
        }
    }

    fn follow(&mut self, block: Key) {
        if self.slot as usize + 1 >= self.tree.len() {
            self.renumber();
        }
        self.slot += 1;
        let slot = self.slot;
        let weight = (1u64 << self.level) as f64;
        match self.last.insert(block, slot) {
            Some(before) => {
                // Blocks used since: those whose last use lies after this one's.
                let since = self.last.len() as u32 - self.occupied_up_to(before);
                let distance = u64::from(since) << self.level;
                self.by_bits[(64 - distance.leading_zeros()) as usize] += weight;
                self.update(before, -1);
            }
            None => self.cold += weight,
        }
        self.update(slot, 1);
        if self.last.len() > self.blocks_max {
            self.level += 1;
            let level = self.level;
            self.last.retain(|key, _| sampled(sample_hash(*key), level));
            self.renumber();
        }
    }

    /// Gives the blocks the slots from 1 on, in their order of last use.
    fn renumber(&mut self) {
        let mut order: Vec<(u32, Key)> =
            self.last.iter().map(|(key, slot)| (*slot, *key)).collect();
        order.sort_unstable();
        self.tree.fill(0);
        for (index, (_, key)) in order.iter().enumerate() {
            let slot = index as u32 + 1;
            self.last.insert(*key, slot);
            self.update(slot, 1);
        }
        self.slot = order.len() as u32;
    }

    /// The distances seen.
    pub fn finish(&self) -> Reuse {
        let total = self.cold + self.by_bits.iter().sum::<f64>();
        let mut reuse = Reuse { sampled_fraction: fraction(self.level), ..Reuse::default() };
        if total == 0.0 {
            return reuse;
        }
        reuse.cold_fraction = self.cold / total;
        let longest = self.by_bits.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
        let mut hits = 0.0;
        for (bits, weight) in self.by_bits.iter().enumerate().take(longest + 1) {
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

/// Counts uses of a sample of blocks.
pub struct Popularity {
    blocks_max: usize,
    level: u32,
    uses: FxHashMap<Key, u32>,
}

impl Popularity {
    /// Counts at most `blocks_max` blocks.
    pub fn new(blocks_max: usize) -> Self {
        Self { blocks_max, level: 0, uses: FxHashMap::default() }
    }

    /// Notes a use of `block` with that hash.
    #[inline]
    pub fn access(&mut self, block: Key, hash: u64) {
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

    /// The concentration seen.
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

    /// LRU stack distances by looking through the stack.
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

    fn follow(accesses: &[u64], blocks_max: usize) -> StackDistances {
        let mut distances = StackDistances::new(blocks_max);
        accesses.iter().for_each(|&n| distances.access((0, n), sample_hash((0, n))));
        distances
    }

    #[test]
    fn distances_are_exact_while_all_blocks_are_followed() {
        let accesses = skewed(5_000, 300);
        let distances = follow(&accesses, 300);
        assert_eq!((distances.cold, distances.by_bits), naive(&accesses));
        assert_eq!(distances.finish().sampled_fraction, 1.0);
    }

    #[test]
    fn a_sample_gives_about_the_same_hit_ratios() {
        let accesses = skewed(200_000, 40_000);
        let (exact, sample) =
            (follow(&accesses, 100_000).finish(), follow(&accesses, 4_000).finish());
        assert!(sample.sampled_fraction < 1.0);
        for point in &exact.lru {
            let of = sample.lru.iter().find(|other| other.cache_bytes == point.cache_bytes);
            let error = of.map_or(0.0, |of| (of.hit_ratio - point.hit_ratio).abs());
            assert!(error < 0.08, "{point:?} {of:?}");
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
