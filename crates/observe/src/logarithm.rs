//! Buckets that grow with the value: eight to an octave, so neighbours are at most 12.5 % apart.

const BITS: u32 = 3;
const STEPS: u64 = 1 << BITS;

/// Number of buckets that hold any `u64`.
pub const BUCKETS: usize = ((64 - BITS as usize) + 1) << BITS;

/// The bucket of `value`.
#[inline]
pub fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - BITS;
    (((shift as usize) + 1) << BITS) + ((value >> shift) as usize - STEPS as usize)
}

/// The smallest value of a bucket; `u64::MAX` past the last one.
pub fn lower_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let (shift, step) = (bucket / STEPS - 1, bucket % STEPS);
    u64::try_from(u128::from(STEPS + step) << shift).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ends_fit() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(lower_bound(BUCKETS), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_value_lies_within_its_bucket(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let at = bucket(value);
            prop_assert!(lower_bound(at) <= value);
            prop_assert!(value < lower_bound(at + 1) || at + 1 == BUCKETS);
        }
    }
}
