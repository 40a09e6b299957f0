//! Finding the range of numbers that holds a number, for look-ups at every request.

/// Most entries of the table.
const ENTRIES_MAX: u64 = 1024;

/// Ranges that follow one another. A table by the upper bits of a number narrows the search to the
/// few ranges that begin near it.
#[derive(Clone, Debug)]
pub(super) struct Ranges {
    /// The first number of each range, ascending.
    firsts: Vec<u64>,
    /// The first number behind the last range.
    end: u64,
    shift: u32,
    /// The range that holds the first number of each group with the same upper bits.
    table: Vec<u32>,
}

impl Ranges {
    /// Ranges that begin at `firsts`, the first of them at 0, and end at `end`.
    pub fn new(firsts: Vec<u64>, end: u64) -> Self {
        let shift = u64::BITS - (end / ENTRIES_MAX).leading_zeros();
        let holding = |number: u64| firsts.partition_point(|first| *first <= number).max(1) - 1;
        let table = (0..=(end >> shift) + 1).map(|group| holding(group << shift) as u32).collect();
        Self { firsts, end, shift, table }
    }

    /// The number of the range that holds `number`, and the end of the range.
    #[inline]
    pub fn find(&self, number: u64) -> (usize, u64) {
        let group = (number >> self.shift) as usize;
        let (low, high) = (self.table[group] as usize, self.table[group + 1] as usize);
        let at = low + self.firsts[low + 1..=high].partition_point(|first| *first <= number);
        (at, self.firsts.get(at + 1).copied().unwrap_or(self.end))
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
