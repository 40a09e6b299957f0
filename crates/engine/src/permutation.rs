//! Random permutations of more numbers than a table could hold.

use crate::rng::Stream;

/// A pseudo-random permutation of `0..n`, without a table.
///
/// A Feistel network over the next power of four, walked until the value is in range
/// (Black and Rogaway 2002, cycle walking); at most four steps on average.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// A permutation of `0..n` with keys drawn from `stream`; `n` at least 1.
    pub fn new(n: u64, stream: &mut Stream) -> Self {
        let n = n.max(1);
        let bits = 64 - (n - 1).leading_zeros();
        let keys = std::array::from_fn(|_| stream.bits());
        Self { n, half_bits: bits.div_ceil(2).max(1), keys }
    }

    /// The image of `index`, which is below `n`.
    #[inline]
    pub fn map(&self, index: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut value = index;
        loop {
            let (mut left, mut right) = (value >> self.half_bits, value & mask);
            for key in self.keys {
                let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
                (left, right) = (right, left ^ (mixed & mask));
            }
            value = (left << self.half_bits) | right;
            if value < self.n {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_the_image_of_one() {
        for n in [1, 2, 3, 4, 5, 7, 8, 100, 1023, 1024, 1025, 5000] {
            let permutation = Permutation::new(n, &mut Stream::new(1, "permutation"));
            let mut seen = vec![false; n as usize];
            (0..n).for_each(|index| seen[permutation.map(index) as usize] = true);
            assert!(seen.iter().all(|&seen| seen), "{n}");
        }
    }
}
