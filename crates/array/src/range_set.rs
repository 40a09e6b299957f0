//! A set of numbers stored as ranges: small where the numbers are adjacent.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RangeSet {
    /// End of each range by its first number; ranges neither touch nor overlap.
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl RangeSet {
    pub const fn len(&self) -> u64 {
        self.count
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn insert(&mut self, steps: Range<u64>) {
        if steps.is_empty() {
            return;
        }
        let (mut from, mut to) = (steps.start, steps.end);
        // Merge the ranges that touch it, from the last one back.
        while let Some((&first, &end)) = self.ranges.range(..=to).next_back() {
            if end < from {
                break;
            }
            (from, to) = (from.min(first), to.max(end));
            self.ranges.remove(&first);
            self.count -= end - first;
        }
        self.ranges.insert(from, to);
        self.count += to - from;
    }

    /// Removes `step`; returns whether it was in the set.
    pub fn remove(&mut self, step: u64) -> bool {
        let Some((&first, &end)) = self.ranges.range(..=step).next_back() else { return false };
        if step >= end {
            return false;
        }
        self.ranges.remove(&first);
        if first < step {
            self.ranges.insert(first, step);
        }
        if step + 1 < end {
            self.ranges.insert(step + 1, end);
        }
        self.count -= 1;
        true
    }

    /// The first number in the set at or after `step`.
    pub fn first_from(&self, step: u64) -> Option<u64> {
        if let Some((_, &end)) = self.ranges.range(..=step).next_back()
            && step < end
        {
            return Some(step);
        }
        self.ranges.range(step..).next().map(|(first, _)| *first)
    }

    /// The first number in the set within `steps`.
    pub fn first_of(&self, steps: Range<u64>) -> Option<u64> {
        self.first_from(steps.start).filter(|step| *step < steps.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn as_a_set_of_numbers(work in prop::collection::vec((0u64..60, 0u64..12), 1..200)) {
            let (mut set, mut model) = (RangeSet::default(), BTreeSet::new());
            for (at, length) in work {
                if length < 6 {
                    prop_assert_eq!(set.remove(at), model.remove(&at));
                } else {
                    set.insert(at..at + length - 6);
                    model.extend(at..at + length - 6);
                }
                prop_assert_eq!(set.len(), model.len() as u64);
                prop_assert_eq!(set.first_from(at), model.range(at..).next().copied());
                let of = model.range(at..at + length).next().copied();
                prop_assert_eq!(set.first_of(at..at + length), of);
                let ranges: Vec<_> = set.ranges.iter().collect();
                prop_assert!(ranges.windows(2).all(|two| two[0].1 < two[1].0), "ranges touch");
            }
        }
    }
}
