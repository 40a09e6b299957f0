//! Finding the range of numbers that holds a number, for look-ups at every request.

/// Most entries of the table.
const ENTRIES_MAX: u64 = 1024;

/// Ranges that follow one another. A table by the upper bits of a number narrows the search to the
/// few ranges that begin near it.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    /// The first number of each range, ascending, and the first one behind the last range.
    firsts: Vec<u64>,
    shift: u32,
    /// The ranges that hold the first numbers of each group with the same upper bits and of the
    /// next group.
    table: Vec<(u32, u32)>,
}

impl Ranges {
    /// Ranges that begin at `firsts`, the first of them at 0, and end at `end`.
    pub fn new(mut firsts: Vec<u64>, end: u64) -> Self {
        let shift = u64::BITS - (end / ENTRIES_MAX).leading_zeros();
        let holding = |number: u64| firsts.partition_point(|first| *first <= number).max(1) - 1;
        let holding = |group: u64| holding(group << shift) as u32;
        let table = (0..=end >> shift).map(|group| (holding(group), holding(group + 1))).collect();
        firsts.push(end);
        Self { firsts, shift, table }
    }

    /// The number of the range that holds `number`, and the end of the range.
    #[inline]
    pub fn find(&self, number: u64) -> (usize, u64) {
        let (low, high) = self.table[(number >> self.shift) as usize];
        let (mut low, mut high) = (low as usize, high as usize);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.firsts[middle] <= number {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        (low, self.firsts[low + 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_range_of_every_number_is_found(
            lengths in prop::collection::vec(1u64..400, 1..60), scale in 1u64..5_000,
        ) {
            let mut ends = lengths.iter().scan(0, |end, length| {
                *end += if length % 3 == 0 { length * scale } else { *length };
                Some(*end)
            }).collect::<Vec<u64>>();
            let end = *ends.last().unwrap();
            let mut firsts = vec![0];
            firsts.extend_from_slice(&ends);
            firsts.pop();
            let ranges = Ranges::new(firsts.clone(), end);
            ends.push(u64::MAX);
            for (at, (first, end)) in firsts.iter().zip(&ends).enumerate() {
                for number in [*first, (first + end - 1) / 2, end - 1] {
                    prop_assert_eq!(ranges.find(number), (at, *end));
                }
            }
        }
    }
}
