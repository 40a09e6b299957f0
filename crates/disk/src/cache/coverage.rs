//! What a buffer holds, by groups of sectors: most look-ups of sectors it does not hold need no
//! search of its segments.

use std::ops::Range;

/// Groups per segment, so that few groups share a counter.
const GROUPS: usize = 16;
/// Most counters.
const GROUPS_MAX: usize = 1 << 16;

/// Counts the ranges in each group of sectors. Groups far apart share counters, so false
/// positives are possible, false negatives are not (a counting filter).
#[derive(Debug)]
pub(super) struct Coverage {
    /// Sectors in a group are 2 to the power of this.
    shift: u32,
    counts: Vec<u32>,
}

impl Default for Coverage {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl Coverage {
    /// For `ranges` ranges of up to `sectors`, which are then in two groups at most.
    pub fn new(ranges: usize, sectors: u64) -> Self {
        let counters = ranges.saturating_mul(GROUPS).clamp(1, GROUPS_MAX).next_power_of_two();
        let shift = u64::BITS - sectors.saturating_sub(1).leading_zeros();
        Self { shift: shift.min(u64::BITS - 1), counts: vec![0; counters] }
    }

    #[inline]
    fn at(&self, group: u64) -> usize {
        group as usize & (self.counts.len() - 1)
    }

    /// Whether any range may hold `sector`.
    #[inline]
    pub fn may_hold(&self, sector: u64) -> bool {
        self.counts[self.at(sector >> self.shift)] > 0
    }

    /// Whether any range may hold a sector of `start..end`.
    #[inline]
    pub fn may_hold_any(&self, start: u64, end: u64) -> bool {
        self.groups(start, end).any(|group| self.counts[self.at(group)] > 0)
    }

    /// The groups of `start..end`, the same counter only once.
    #[inline]
    fn groups(&self, start: u64, end: u64) -> Range<u64> {
        if start >= end {
            return 0..0;
        }
        let (first, last) = (start >> self.shift, (end - 1) >> self.shift);
        first..(last + 1).min(first + self.counts.len() as u64)
    }

    /// A range that covered `old` covers `new`.
    #[inline]
    pub fn replace(&mut self, old: (u64, u64), new: (u64, u64)) {
        let (old, new) = (self.groups(old.0, old.1), self.groups(new.0, new.1));
        if old == new {
            return;
        }
        for group in old {
            let at = self.at(group);
            self.counts[at] -= 1;
        }
        for group in new {
            let at = self.at(group);
            self.counts[at] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_a_range_holds_always_seems_to_be_covered(
            work in prop::collection::vec((0usize..4, 0u64..4_000, 0u64..=100), 1..60),
        ) {
            let (mut coverage, mut ranges) = (Coverage::new(4, 100), [(0, 0); 4]);
            for (at, start, sectors) in work {
                let new = (start, start + sectors);
                coverage.replace(ranges[at], new);
                ranges[at] = new;
                for &(from, to) in &ranges {
                    prop_assert!((from..to).all(|sector| coverage.may_hold(sector)));
                    prop_assert!(from == to || coverage.may_hold_any(from, to));
                    prop_assert!(from == to || coverage.may_hold_any(to - 1, to + 1_000));
                }
            }
            for range in ranges {
                coverage.replace(range, (0, 0));
            }
            prop_assert!((0..5_000).all(|sector| !coverage.may_hold(sector)));
        }
    }
}
