//! The hot-data filter (chang-slc-mlc, section 3.2): a write is hot if it is small, and the sizes
//! of past writes decide what is small.
//!
//! Eleven counters hold the number of writes of about 2^0 to 2^10 sectors. On a desktop their
//! histogram has two peaks; 2-means clustering finds them, and the centre of the lower cluster is
//! the threshold. Algorithm 1 as printed weighs all counters with the same number, so that any
//! i = j = p has cost 0; what is meant is the sum of c[k] |k - i| below p and of c[k] |k - j|
//! above. Even then its loop stays at its starting point 0; trying all ten splits takes no longer.

use hybridsim_engine::state::{Loader, Saver, StateError};
use hybridsim_flash::restore;

/// Size classes: 2^0 to 2^10 sectors.
const COUNTERS: usize = 11;

hybridsim_config::choices! {
    /// Computation of the threshold.
    pub enum Search {
        /// The best of all splits.
        Exhaustive = "exhaustive",
        /// Algorithm 1 with the intended sum: assignment and centres in turn from i = j = p = 0.
        Lloyd = "lloyd",
        /// Algorithm 1 as printed.
        Literal = "literal",
    }
}

/// Sum of distances of the writes in `counters[from..to]` from `centre`.
fn spread(counters: &[u64; COUNTERS], from: usize, to: usize, centre: usize) -> u64 {
    let terms = (from..to).map(|at| counters[at].saturating_mul(at.abs_diff(centre) as u64));
    terms.fold(0, u64::saturating_add)
}

/// The centre of `counters[from..to]` with the smallest spread; the lowest of equals.
fn median(counters: &[u64; COUNTERS], from: usize, to: usize) -> usize {
    (from..to).min_by_key(|centre| spread(counters, from, to, *centre)).unwrap_or(from)
}

/// Cost of centres `i` and `j` with the split behind `p`.
fn cost(counters: &[u64; COUNTERS], i: usize, j: usize, p: usize) -> u64 {
    spread(counters, 0, p + 1, i).saturating_add(spread(counters, p + 1, COUNTERS, j))
}

/// As [`cost`], but as Algorithm 1 is printed.
fn printed_cost(counters: &[u64; COUNTERS], i: usize, j: usize, p: usize) -> u64 {
    let below = counters[i].saturating_mul(i.abs_diff(p) as u64 * (p as u64 + 1));
    let above = counters[j].saturating_mul(j.abs_diff(p) as u64 * (COUNTERS - 1 - p) as u64);
    below.saturating_add(above)
}

/// The exponent of the threshold: small writes have up to 2^i sectors.
fn threshold(counters: &[u64; COUNTERS], search: Search) -> usize {
    match search {
        Search::Exhaustive => {
            let centres = |p| (median(counters, 0, p + 1), median(counters, p + 1, COUNTERS));
            let split = (0..COUNTERS - 1).min_by_key(|&p| {
                let (i, j) = centres(p);
                cost(counters, i, j, p)
            });
            centres(split.unwrap_or(0)).0
        }
        Search::Lloyd => alternate(counters, cost),
        Search::Literal => alternate(counters, printed_cost),
    }
}

/// The loop of Algorithm 1: best centres for the split, best split for the centres, until the cost
/// no longer falls.
fn alternate(
    counters: &[u64; COUNTERS],
    cost: fn(&[u64; COUNTERS], usize, usize, usize) -> u64,
) -> usize {
    let mut split = 0;
    loop {
        let pairs = (0..COUNTERS).flat_map(|i| (0..COUNTERS).map(move |j| (i, j)));
        let (i, j) =
            pairs.min_by_key(|&(i, j)| cost(counters, i, j, split)).expect("there are pairs");
        let fixed = cost(counters, i, j, split);
        let next =
            (0..COUNTERS).min_by_key(|&p| cost(counters, i, j, p)).expect("there are splits");
        if cost(counters, i, j, next) >= fixed {
            return i;
        }
        // The cost falls in every round, so the loop ends.
        split = next;
    }
}

/// The nearest power of two of `sectors`, as an exponent below [`COUNTERS`].
fn size_class(sectors: u32) -> usize {
    let sectors = u64::from(sectors.max(1));
    let floor = sectors.ilog2();
    // Nearest on the logarithmic scale: round up above 2^(floor + 1/2).
    let up = sectors * sectors > 1 << (2 * floor + 1);
    (floor as usize + usize::from(up)).min(COUNTERS - 1)
}

/// Counts write sizes and classifies writes.
#[derive(Clone, Debug)]
pub struct HotDataFilter {
    search: Search,
    counters: [u64; COUNTERS],
    /// Writes until the threshold is computed again.
    left: u64,
    every: u64,
    /// Sectors of the largest hot write.
    threshold: u32,
    /// Every write is hot, whatever its size.
    all: bool,
}

impl HotDataFilter {
    /// Computes the threshold every `every` writes; until then it is `first`.
    pub fn new(search: Search, every: u64, first: u32) -> Self {
        let every = every.max(1);
        Self { search, counters: [0; COUNTERS], left: every, every, threshold: first, all: false }
    }

    /// Every write is hot, as for the SLC cache of a TLC drive.
    pub fn all() -> Self {
        Self { all: true, ..Self::new(Search::Exhaustive, u64::MAX, u32::MAX) }
    }

    /// Counts a write. Returns the new threshold if it was computed again.
    #[inline]
    pub fn record(&mut self, sectors: u32) -> Option<u32> {
        if self.all {
            return None;
        }
        self.counters[size_class(sectors)] += 1;
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        self.left = self.every;
        self.threshold = 1 << threshold(&self.counters, self.search);
        Some(self.threshold)
    }

    #[inline]
    pub const fn is_hot(&self, sectors: u32) -> bool {
        sectors <= self.threshold
    }

    pub fn save(&self, to: &mut Saver) {
        to.put(&(self.counters, self.left, self.threshold));
    }

    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.counters, self.left, self.threshold) = from.take()?;
        restore::check((1..=self.every).contains(&self.left), "the filter has another interval")
    }

    /// The counters are lost at a power failure.
    pub fn reset(&mut self) {
        self.counters = [0; COUNTERS];
        self.left = self.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(pairs: &[(usize, u64)]) -> [u64; COUNTERS] {
        let mut counters = [0; COUNTERS];
        pairs.iter().for_each(|&(at, count)| counters[at] = count);
        counters
    }

    #[test]
    fn sizes_go_to_the_nearest_power() {
        let check = |sectors, class| assert_eq!(size_class(sectors), class, "{sectors}");
        check(0, 0);
        check(1, 0);
        check(5, 2);
        check(6, 3);
        check(8, 3);
        check(11, 3);
        check(12, 4);
        check(128, 7);
        check(5_000, 10);
        check(u32::MAX, 10);
    }

    #[test]
    fn the_lower_cluster_is_the_threshold() {
        let check = |pairs: &[(usize, u64)], expected| {
            assert_eq!(threshold(&counters(pairs), Search::Exhaustive), expected, "{pairs:?}");
        };
        // NTFS and ext3 of Figure 7: peaks at 8 and 128, at 8 and 256.
        check(&[(0, 3), (1, 2), (3, 62), (4, 4), (7, 25)], 3);
        check(&[(0, 3), (3, 65), (6, 4), (8, 22)], 3);
        check(&[(10, 1)], 0);
        check(&[], 0);
        check(&[(2, 1), (9, 1)], 2);
    }

    #[test]
    fn no_split_is_cheaper_than_the_exhaustive_one() {
        let mut stream = hybridsim_engine::Stream::new(3, "filter");
        for _ in 0..300 {
            let counters: [u64; COUNTERS] = std::array::from_fn(|_| stream.below(1000));
            let all = (0..COUNTERS - 1)
                .flat_map(|p| (0..=p).flat_map(move |i| (p + 1..COUNTERS).map(move |j| (i, j, p))));
            let best = all.clone().map(|(i, j, p)| cost(&counters, i, j, p)).min();
            let found = threshold(&counters, Search::Exhaustive);
            let with_it = all.filter(|(i, ..)| *i == found);
            assert_eq!(with_it.map(|(i, j, p)| cost(&counters, i, j, p)).min(), best);
        }
    }

    #[test]
    fn algorithm_1_as_printed_stays_at_its_starting_point() {
        let sizes = counters(&[(3, 62), (7, 25)]);
        assert_eq!(threshold(&sizes, Search::Literal), 0);
        assert!(threshold(&sizes, Search::Lloyd) < 3);
    }

    #[test]
    fn the_threshold_is_computed_periodically() {
        let mut filter = HotDataFilter::new(Search::Exhaustive, 3, 16);
        assert_eq!((filter.record(8), filter.record(8)), (None, None));
        assert!(filter.is_hot(16));
        assert_eq!(filter.record(128), Some(8));
        assert!(filter.is_hot(8) && !filter.is_hot(9));
        assert!(HotDataFilter::all().is_hot(u32::MAX));
    }
}
