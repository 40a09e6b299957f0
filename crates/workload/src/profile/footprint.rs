//! The union of all sectors accessed, in bounded memory.
//!
//! Sectors are bits in chunks of 2 MiB; ranges of 8 GiB that one request covers are
//! marked as full instead. When there are more chunks than memory allows, only those whose hash
//! ends in one more zero bit are kept, and the count is scaled up.

use hybridsim_engine::{Request, SECTOR_BYTES};
use rustc_hash::{FxHashMap, FxHashSet};

/// A block: its volume and its number there.
pub type BlockKey = (u16, u64);

const CHUNK: u64 = 4096;
const WORDS: usize = CHUNK as usize / 64;
/// Sectors of a range that is marked full at once.
const LARGE: u64 = 1 << 24;

/// Hashes a key so that the low bits can select a sample (the finaliser of SplitMix64).
#[inline]
pub fn sample_hash((volume, number): BlockKey) -> u64 {
    let mut x = number ^ (u64::from(volume) << 48) ^ 0x9e37_79b9_7f4a_7c15;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Whether a key is in the sample of one in `2^level`.
#[inline]
pub const fn sampled(hash: u64, level: u32) -> bool {
    hash & ((1 << level) - 1) == 0
}

/// A set of sectors.
pub struct Footprint {
    chunks: FxHashMap<BlockKey, Box<[u64; WORDS]>>,
    chunk_level: u32,
    large: FxHashSet<BlockKey>,
    large_level: u32,
    chunks_max: usize,
}

impl Footprint {
    /// An empty set of at most `chunks_max` chunks, about 550 bytes each.
    pub fn new(chunks_max: usize) -> Self {
        Self {
            chunks: FxHashMap::default(),
            chunk_level: 0,
            large: FxHashSet::default(),
            large_level: 0,
            chunks_max,
        }
    }

    pub fn add(&mut self, request: &Request) {
        let (start, end) = (request.lba.0, request.end().0);
        let (first_large, last_large) = (start.div_ceil(LARGE), end / LARGE);
        if first_large < last_large {
            for number in first_large..last_large {
                self.add_large((request.volume, number));
            }
            self.add_range(request.volume, start, first_large * LARGE);
            self.add_range(request.volume, last_large * LARGE, end);
        } else {
            self.add_range(request.volume, start, end);
        }
    }

    fn add_large(&mut self, key: BlockKey) {
        if sampled(sample_hash(key), self.large_level) && self.large.insert(key) {
            while self.large.len() > self.chunks_max {
                self.large_level += 1;
                let level = self.large_level;
                self.large.retain(|key| sampled(sample_hash(*key), level));
            }
        }
    }

    fn add_range(&mut self, volume: u16, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let number = at / CHUNK;
            let next = end.min((number + 1).saturating_mul(CHUNK));
            let key = (volume, number);
            if sampled(sample_hash(key), self.chunk_level) {
                let bits = self.chunks.entry(key).or_insert_with(|| Box::new([0; WORDS]));
                set_bits(bits, (at % CHUNK) as usize, (next - at) as usize);
                if self.chunks.len() > self.chunks_max {
                    self.raise_sampling_level();
                }
            }
            at = next;
        }
    }

    fn raise_sampling_level(&mut self) {
        while self.chunks.len() > self.chunks_max {
            self.chunk_level += 1;
            let level = self.chunk_level;
            self.chunks.retain(|key, _| sampled(sample_hash(*key), level));
        }
    }

    /// Sectors in the set, and the fraction of the address space that was counted.
    pub fn sectors(&self) -> (u64, f64) {
        let outside = self.chunks.iter().filter(|((volume, number), _)| {
            !self.large.contains(&(*volume, *number / (LARGE / CHUNK)))
        });
        let bits =
            outside.map(|(_, bits)| bits.iter().map(|w| u64::from(w.count_ones())).sum::<u64>());
        let small = bits.sum::<u64>().saturating_mul(1 << self.chunk_level);
        let large = (self.large.len() as u64).saturating_mul(LARGE);
        let large = large.saturating_mul(1 << self.large_level);
        let level = self.chunk_level.max(self.large_level);
        (small.saturating_add(large), 1.0 / (1u64 << level) as f64)
    }

    /// As [`Footprint::sectors`], in bytes.
    pub fn bytes(&self) -> (u64, f64) {
        let (sectors, fraction) = self.sectors();
        (sectors.saturating_mul(SECTOR_BYTES), fraction)
    }
}

fn set_bits(words: &mut [u64; WORDS], start: usize, length: usize) {
    let end = start + length;
    let (first, last) = (start / 64, (end - 1) / 64);
    for (index, word) in words.iter_mut().enumerate().take(last + 1).skip(first) {
        let low = if index == first { start % 64 } else { 0 };
        let high = if index == last { (end - 1) % 64 + 1 } else { 64 };
        let mask = if high - low == 64 { u64::MAX } else { ((1 << (high - low)) - 1) << low };
        *word |= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{Lba, Op, Stream};
    use std::collections::BTreeSet;

    fn write(volume: u16, lba: u64, sectors: u32) -> Request {
        Request { volume, ..Request::new(Op::Write, Lba(lba), sectors) }
    }

    #[test]
    fn the_union_is_exact_while_it_fits() {
        let mut stream = Stream::new(1, "footprint");
        let mut footprint = Footprint::new(10_000);
        let mut naive = BTreeSet::new();
        for _ in 0..2_000 {
            let volume = stream.below(2) as u16;
            let request = write(volume, stream.below(200_000), 1 + stream.below(300) as u32);
            footprint.add(&request);
            naive.extend((request.lba.0..request.end().0).map(|sector| (volume, sector)));
            if naive.len() % 7 == 0 {
                assert_eq!(footprint.sectors(), (naive.len() as u64, 1.0));
            }
        }
        assert_eq!(footprint.sectors(), (naive.len() as u64, 1.0));
    }

    #[test]
    fn huge_requests_take_little_memory() {
        let mut footprint = Footprint::new(10_000);
        for index in 0..100u64 {
            footprint.add(&write(0, index * 77, u32::MAX));
        }
        let sectors = u64::from(u32::MAX) + 99 * 77;
        assert_eq!(footprint.sectors(), (sectors, 1.0));
        footprint.add(&write(0, u64::MAX - 5, u32::MAX));
        assert_eq!(footprint.sectors(), (sectors + 5, 1.0));
        assert!(footprint.chunks.len() <= 10_000);
    }

    #[test]
    fn beyond_its_memory_it_samples_and_reports_so() {
        let mut stream = Stream::new(2, "footprint");
        let mut footprint = Footprint::new(1_000);
        let mut naive = BTreeSet::new();
        for _ in 0..60_000 {
            let block = stream.below(1 << 22);
            footprint.add(&write(0, block * 8, 8));
            naive.insert(block);
        }
        let (sectors, fraction) = footprint.sectors();
        assert!(fraction < 1.0 && footprint.chunks.len() <= 1_000);
        let error = (sectors as f64 / (naive.len() * 8) as f64 - 1.0).abs();
        assert!(error < 0.1, "{error}");
    }
}
