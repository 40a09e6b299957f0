//! Curves of `lru` from reuse times, by the average eviction time (AET: Hu et al., "Fast Miss Ratio
//! Curve Modeling for Storage Cache", ACM ToS 14(2), 2018).
//!
//! The reuse time of an access is the number of accesses since the last one to its page. In a
//! cache of `c` pages, a page that is not accessed again moves to the end of the stack in the
//! average eviction time `T`: each access pushes it down if its own reuse time is longer than the
//! page's age, so the shares `P(t)` of accesses with a reuse time above `t`, summed over `t < T`,
//! are `c`. The miss ratio is `P(T)`. One pass over the trace counts reuse times of a sample of
//! pages by hash, in memory for the last access to each of them.

use super::simulate::{PARTS, error};
use hybridsim_workload::profile::{BlockKey, sample_hash, sampled};
use rustc_hash::FxHashMap;

/// Bins for every power of two of a reuse time, which is thereby known within 0.8 %.
const BINS_PER_POWER: u64 = 128;
const POWER_BITS: u32 = BINS_PER_POWER.ilog2();

/// Accesses by reuse time, in bins whose width grows with the time.
#[derive(Clone, Default)]
struct Histogram {
    /// Accesses represented, by bin.
    bins: Vec<u64>,
}

/// The bin of a time: one for each time below `2 * BINS_PER_POWER`.
const fn bin(time: u64) -> usize {
    let power = (u64::BITS - time.leading_zeros()).saturating_sub(POWER_BITS + 1);
    (power as u64 * BINS_PER_POWER + (time >> power)) as usize
}

const fn start(bin: usize) -> u64 {
    let power = (bin as u64 / BINS_PER_POWER).saturating_sub(1);
    (bin as u64 - power * BINS_PER_POWER) << power
}

impl Histogram {
    fn add(&mut self, time: u64, weight: u64) {
        let bin = bin(time);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += weight;
    }

    fn at(&self, bin: usize) -> f64 {
        self.bins.get(bin).map_or(0.0, |weight| *weight as f64)
    }

    fn sum(&self) -> f64 {
        self.bins.iter().sum::<u64>() as f64
    }

    fn merged(parts: impl Iterator<Item = Self>) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum.bins.resize(sum.bins.len().max(part.bins.len()), 0);
            sum.bins.iter_mut().zip(&part.bins).for_each(|(sum, bin)| *sum += bin);
            sum
        })
    }
}

#[derive(Clone, Default)]
struct Part {
    again: Histogram,
    /// First accesses, by the number of accesses before them.
    first: Histogram,
}

/// Reuse times of a sample of pages.
pub struct ReuseTimes {
    pages_max: usize,
    level: u32,
    /// The last access to each page of the sample, by the page's hash.
    last: FxHashMap<u64, u64>,
    parts: Vec<Part>,
    accesses: u64,
}

impl ReuseTimes {
    /// Samples at most `pages_max` pages.
    pub fn new(pages_max: usize) -> Self {
        let parts = vec![Part::default(); PARTS as usize];
        Self { pages_max, level: 0, last: FxHashMap::default(), parts, accesses: 0 }
    }

    /// Counts an access.
    #[inline]
    pub fn access(&mut self, page: BlockKey) {
        let (now, hash) = (self.accesses, sample_hash(page));
        self.accesses += 1;
        if sampled(hash, self.level) {
            self.count(hash, now);
        }
    }

    fn count(&mut self, hash: u64, now: u64) {
        // The sample is chosen by the low bits.
        let part = &mut self.parts[(hash >> (u64::BITS - PARTS.ilog2())) as usize];
        let weight = 1 << self.level;
        match self.last.insert(hash, now) {
            Some(before) => part.again.add(now - before, weight),
            None => part.first.add(now, weight),
        }
        while self.last.len() > self.pages_max {
            self.level += 1;
            let level = self.level;
            self.last.retain(|hash, _| sampled(*hash, level));
        }
    }

    /// All accesses, sampled or not.
    pub const fn accesses(&self) -> u64 {
        self.accesses
    }

    /// Distinct pages, estimated from the sample.
    pub fn pages(&self) -> u64 {
        (self.last.len() as u64) << self.level
    }

    /// The sample holds one in `2^level` pages.
    pub const fn level(&self) -> u32 {
        self.level
    }

    /// Miss ratios of caches of these sizes in pages, in ascending order, and their sampling
    /// errors, unless all pages are in the sample; none for a trace without accesses.
    pub fn miss_ratios(&self, sizes: &[u64]) -> Option<Vec<(f64, Option<f64>)>> {
        if self.accesses == 0 {
            return None;
        }
        let whole = Part {
            again: Histogram::merged(self.parts.iter().map(|part| part.again.clone())),
            first: Histogram::merged(self.parts.iter().map(|part| part.first.clone())),
        };
        let whole = whole.miss_ratios(sizes, self.accesses, 1.0);
        let share = f64::from(PARTS);
        let parts: Vec<Vec<f64>> =
            self.parts.iter().map(|part| part.miss_ratios(sizes, self.accesses, share)).collect();
        let point = |(at, &ratio): (usize, &f64)| {
            let parts: Vec<f64> = parts.iter().map(|part| part[at]).collect();
            (ratio, (self.level > 0).then(|| error(ratio, &parts)))
        };
        Some(whole.iter().enumerate().map(point).collect())
    }
}

impl Part {
    /// Miss ratios when each counted access represents `scale` of them.
    ///
    /// The paper counts a first access as a reuse time without end. Here it only is known to be
    /// longer than the trace before it: `P(t)` for the eviction time is taken over the accesses
    /// with more than `t` before them. Otherwise eviction times near the trace's length are too
    /// short, and so miss ratios of caches near the footprint too high.
    fn miss_ratios(&self, sizes: &[u64], accesses: u64, scale: f64) -> Vec<f64> {
        let all = accesses as f64;
        let cold = self.first.sum() * scale;
        let (mut again, mut first) = (self.again.sum() * scale, cold);
        let mut sizes = sizes.iter().peekable();
        let mut ratios = Vec::with_capacity(sizes.len());
        let longer =
            |count: f64, of: f64| if of > 0.0 { (count / of).clamp(0.0, 1.0) } else { 0.0 };
        let mut held = 0.0;
        let bins = self.again.bins.len().max(self.first.bins.len());
        for bin in 0..=bins {
            let (from, to) = (start(bin) as f64, start(bin + 1) as f64);
            let gone = (self.again.at(bin) * scale, self.first.at(bin) * scale);
            let share = longer(again + first, all - from);
            let next_share = longer(again + first - gone.0 - gone.1, all - to);
            let grows = (share + next_share) / 2.0 * (to - from);
            while let Some(size) = sizes.next_if(|size| held + grows >= **size as f64) {
                let within = ((*size as f64 - held) / grows.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
                ratios.push(((again - gone.0 * within + cold) / all).clamp(0.0, 1.0));
            }
            held += grows;
            again -= gone.0;
            first -= gone.1;
        }
        ratios.extend(sizes.map(|_| (cold / all).clamp(0.0, 1.0)));
        ratios
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_cover_all_times_without_gaps() {
        let mut before = 0;
        for at in 0..bin(u64::MAX) {
            let first = start(at);
            assert_eq!(bin(first), at);
            assert!(at == 0 || (first > before && bin(first - 1) == at - 1), "{at}");
            assert!((first - before) as f64 <= 1.0 + first as f64 / 128.0, "{at}: too wide");
            before = first;
        }
    }
}
