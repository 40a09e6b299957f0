//! Which accesses bring pages into the cache, and what a write does (beyond the paper): settings
//! of the flash caches that are deployed.

use hybridsim_cache::replacement::index::PageIndex;
use hybridsim_engine::SimTime;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

hybridsim_config::choices! {
    /// Completion of writes.
    pub enum WritePolicy {
        /// Complete when flash has the data.
        Back = "back",
        /// Complete when the disk has the data, which are then written to flash as clean data.
        Through = "through",
        /// Complete when the disk has the data; flash drops its copy.
        Around = "around",
    }
}

/// The accesses that promote pages.
#[derive(Debug, Serialize, Deserialize)]
pub struct Promotion {
    /// Accesses to a page until it is cached.
    after: u32,
    /// Share of the cache in use below which every access promotes.
    all_below: f64,
    /// Accesses to pages that are not cached, and these pages in the order of their first access.
    counts: PageIndex,
    order: VecDeque<u64>,
    /// Bytes a second.
    rate: Option<u64>,
    /// The current second, and bytes left in it.
    second: u64,
    left: u64,
}

impl Promotion {
    pub fn new(after: u32, all_below: f64, rate: Option<u64>) -> Self {
        Self {
            after,
            all_below,
            counts: PageIndex::default(),
            order: VecDeque::new(),
            rate,
            second: 0,
            left: rate.unwrap_or(0),
        }
    }

    /// Forgets all accesses.
    pub fn clear(&mut self) {
        self.counts = PageIndex::default();
        self.order.clear();
    }

    /// Counts an access to `pages`, of which `cached` are in the cache, which uses `used` of at
    /// most `limit` pages. Returns whether the others are promoted: a request is promoted as a
    /// whole or not at all. As in Open CAS, nothing is counted while every access promotes, or if
    /// all pages are cached, and twice as many pages are counted as the cache has.
    pub fn admits(
        &mut self,
        pages: RangeInclusive<u64>,
        cached: u64,
        (used, limit): (u64, u64),
    ) -> bool {
        let all_cached = cached > pages.end() - pages.start();
        let eager = used < (self.all_below * limit as f64) as u64;
        if self.after <= 1 || eager || all_cached {
            return true;
        }
        let counted_max = 2 * limit as usize;
        // Every page is counted, also after one that is not known.
        let mut known = true;
        for page in pages.take(counted_max) {
            known &= self.count(page, counted_max) >= self.after;
        }
        known || cached > 0
    }

    /// A page is cached: once evicted, its accesses are counted from the first again.
    pub fn promoted(&mut self, page: u64) {
        if self.after > 1 && self.counts.remove(page).is_some() {
            // It keeps its place in the order.
            self.counts.insert(page, 0);
        }
    }

    fn count(&mut self, page: u64, counted_max: usize) -> u32 {
        if let Some(count) = self.counts.remove(page) {
            let count = (count + 1).min(self.after);
            self.counts.insert(page, count);
            return count;
        }
        self.counts.insert(page, 1);
        self.order.push_back(page);
        while self.order.len() > counted_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(oldest);
        }
        1
    }

    /// Whether `bytes` may be promoted in this second; if so they count.
    pub fn within_rate(&mut self, now: SimTime, bytes: u64) -> bool {
        let Some(rate) = self.rate else { return true };
        let second = now.as_ns() / 1_000_000_000;
        if second != self.second {
            (self.second, self.left) = (second, rate);
        }
        let within = bytes <= self.left;
        self.left -= if within { bytes } else { 0 };
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_access_promotes() {
        let mut promotion = Promotion::new(3, 0.8, None);
        let mut admits =
            |first, last, cached, used| promotion.admits(first..=last, cached, (used, 10));
        assert!(!admits(5, 5, 0, 9) && !admits(5, 5, 0, 9) && admits(5, 5, 0, 9));
        assert!(!admits(5, 6, 0, 9), "page 6 is new");
        assert!(admits(6, 7, 1, 9), "a request with a cached page");
        assert!(admits(8, 8, 0, 7), "a cache that is not full");
        (5..=6).for_each(|page| assert!(admits(page, page, 1, 9), "cached pages do not count"));
        assert!(!admits(8, 8, 0, 9) && !admits(8, 8, 0, 9), "nothing was counted so far");
        // Twenty pages are counted: page 5, the oldest, is no longer among them.
        (20..40).for_each(|page| assert!(!admits(page, page, 0, 9)));
        assert!(!admits(5, 5, 0, 9));
        assert!(!admits(0, u64::MAX, 0, 9), "a huge request ends");
    }

    #[test]
    fn a_page_that_was_evicted_is_counted_again() {
        let mut promotion = Promotion::new(2, 0.0, None);
        assert!(!promotion.admits(5..=5, 0, (9, 10)) && promotion.admits(5..=5, 0, (9, 10)));
        promotion.promoted(5);
        assert!(!promotion.admits(5..=5, 0, (9, 10)) && promotion.admits(5..=5, 0, (9, 10)));
        promotion.promoted(6);
        assert!(!promotion.admits(6..=6, 0, (9, 10)), "one that was never counted");
    }

    #[test]
    fn a_second_has_its_bytes() {
        let mut promotion = Promotion::new(1, 0.0, Some(10_000));
        let mut within =
            |ms: u64, bytes| promotion.within_rate(SimTime::from_ns(ms * 1_000_000), bytes);
        assert!(within(0, 4096) && within(500, 4096) && !within(999, 4096));
        assert!(within(999, 1000), "what is left");
        assert!(within(1000, 4096) && within(1001, 4096) && !within(1002, 4096));
        assert!(!within(5000, 10_001), "more than a second's worth never is");
    }
}
