//! Partial search: the block with the fewest valid pages of a share of the candidates, with a cost
//! for each block searched.
//!
//! flashsim, figure 8: searching for the block with the fewest valid pages costs energy of the
//! processor and the system bus, so a controller may search only a share of the blocks. 0 takes a
//! random block without a search, 1 searches all. (The figure's caption says "least number of
//! invalid pages"; section 4.4 says fewest valid pages.)
//!
//! The simulator does not scan. Of `n` candidates sorted by valid pages, a set of `k` drawn without
//! replacement has its lowest rank above `r` with probability C(n - r, k) / C(n, k); the rank is
//! drawn by inverting that, in O(log n). One of the blocks with as many valid pages is then drawn
//! evenly, since a search in random order keeps the first of several. The victim has the
//! distribution of a scan, up to rounding.

use super::drawn::{DrawRank, Drawn};
use super::{BuiltPolicy, GcEntry, GcInput, SEARCH};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::Stream;
use serde::{Deserialize, Serialize};

pub const ENTRY: GcEntry = GcEntry {
    description: Description {
        name: "partial-search",
        summary: "Collects the block with the fewest valid pages among a searched share of them.",
        origin: "flashsim (FlashSim), section 4.4 and figure 8",
        params: Parameters::PARAMS,
    },
    provides: &[SEARCH],
    build,
};

hybridsim_config::params! {
    struct Parameters {
        fraction: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "1.0",
            "The share of a plane's candidates searched; 0 takes a random block without a search.";
    }
}

/// The share of the candidates searched.
#[derive(Serialize, Deserialize)]
struct Partial(f64);

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let params = Parameters::from_settings(input.settings);
    Ok(Box::new(Drawn::new(input, Partial(params.fraction))))
}

/// The natural logarithm of the binomial coefficient `all` over `chosen`.
fn ln_choose(all: u32, chosen: u32) -> f64 {
    let ln_factorial = |number: u32| libm::lgamma(f64::from(number) + 1.0);
    ln_factorial(all) - ln_factorial(chosen) - ln_factorial(all - chosen)
}

/// The lowest rank (from 0) in a set of `chosen` of `all` ranks drawn without replacement.
fn least_rank(all: u32, chosen: u32, stream: &mut Stream) -> u32 {
    debug_assert!((1..=all).contains(&chosen), "{chosen} of {all}");
    // The probability that all of the set lie above the first `skipped` ranks falls from 1.
    let drawn = libm::log(1.0 - stream.unit());
    let total = ln_choose(all, chosen);
    let (mut low, mut high) = (0, all - chosen);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if ln_choose(all - middle, chosen) - total > drawn {
            low = middle
        } else {
            high = middle - 1
        }
    }
    low
}

impl DrawRank for Partial {
    fn draw(&self, candidates: u32, stream: &mut Stream) -> (u32, u32) {
        let searched = (f64::from(candidates) * self.0).ceil() as u32;
        let rank = match searched.min(candidates) {
            0 => stream.below(u64::from(candidates)) as u32,
            chosen => least_rank(candidates, chosen, stream),
        };
        (rank, searched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_rank_is_distributed_as_in_a_scan() {
        let mut stream = Stream::new(1, "rank");
        for (all, chosen) in [(1, 1), (7, 1), (7, 3), (7, 7), (40, 10), (1_000, 400)] {
            let draws = 40_000;
            let mut counted = vec![0u32; all as usize + 1];
            let mut scanned = counted.clone();
            let mut order: Vec<u32> = (0..all).collect();
            for _ in 0..draws {
                counted[least_rank(all, chosen, &mut stream) as usize] += 1;
                for position in 0..chosen as usize {
                    let left = u64::from(all) - position as u64;
                    let other = position + stream.below(left) as usize;
                    order.swap(position, other);
                }
                let least = order[..chosen as usize].iter().min().expect("not empty");
                scanned[*least as usize] += 1;
            }
            // Kolmogorov and Smirnov for two samples, at a level of 1 in 10,000.
            let (mut one, mut other) = (0i64, 0i64);
            for (a, b) in counted.iter().zip(&scanned) {
                one += i64::from(*a);
                other += i64::from(*b);
                let apart = (one - other).abs() as f64 / f64::from(draws);
                assert!(apart < 2.2 * (2.0 / f64::from(draws)).sqrt(), "{chosen} of {all}");
            }
        }
    }

    #[test]
    fn a_huge_pool_costs_no_scan() {
        let mut stream = Stream::new(1, "rank");
        let all = u32::MAX - 1;
        assert_eq!(least_rank(all, all, &mut stream), 0);
        let mean = (0..1_000).map(|_| f64::from(least_rank(all, 1_000, &mut stream))).sum::<f64>();
        let expected = f64::from(all) / 1_001.0;
        assert!((mean / 1_000.0 / expected - 1.0).abs() < 0.12, "{mean}");
    }
}
