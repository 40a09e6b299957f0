//! Frequently written pages are hot.
//!
//! A write increments two small counters chosen by hashing the page number; a page is hot when both
//! are at the threshold or above. Pages share counters, so some cold pages are classified as hot.
//! All counters are halved periodically (exponential decay). The memory does not depend on the
//! size of the device. As in the source, 4,096 counters are halved after 5,117 writes.

use super::{COLD, HOT, Placement, PlacementEntry};
use crate::geometry::Lpn;
use crate::request::Hint;
use hybridsim_config::param::{Built, Kind, Settings};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: PlacementEntry = PlacementEntry {
    description: Description {
        name: "write-count",
        summary: "Frequently written pages are hot, by hashed counters with decay.",
        origin: "Hsieh, Kuo and Chang, ACM Transactions on Storage 2006",
        params: Parameters::PARAMS,
    },
    build,
};

hybridsim_config::params! {
    struct Parameters {
        counters: usize = Kind::Count { min: 2, max: 1 << 26 }, default "4096",
            "Size of the table.";
        threshold: u8 = Kind::Count { min: 1, max: COUNT_MAX as u64 }, default "4",
            "Both counters of a hot page are at least this; they saturate at 15.";
        decay_writes: u64 = Kind::Count { min: 1, max: 1 << 40 }, default "5117",
            "Pages written between two halvings of all counters: a page is hot that is written \
             `threshold` times in about as many. With many pages none may be: raise it, and \
             `counters` with it.";
    }
}

/// Counters have four bits.
const COUNT_MAX: u8 = 15;

#[derive(Serialize, Deserialize)]
struct WriteCount {
    counters: Vec<u8>,
    threshold: u8,
    decay_writes: u64,
    until_decay: u64,
}

fn build(settings: &Settings) -> Built<dyn Placement> {
    let params = Parameters::from_settings(settings);
    Ok(Box::new(WriteCount {
        counters: vec![0; params.counters],
        threshold: params.threshold,
        decay_writes: params.decay_writes,
        until_decay: params.decay_writes,
    }))
}

impl WriteCount {
    /// The two counters of a page: the halves of a multiplicative hash.
    fn counters_of(&self, lpn: Lpn) -> [usize; 2] {
        let hash = (u64::from(lpn.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let size = self.counters.len() as u64;
        [hash >> 32, hash & 0xffff_ffff].map(|half| ((half * size) >> 32) as usize)
    }
}

impl Placement for WriteCount {
    fn class(&mut self, lpn: Lpn, _hint: Hint) -> u8 {
        if self.until_decay == 0 {
            self.until_decay = self.decay_writes;
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
        }
        self.until_decay -= 1;
        let chosen = self.counters_of(lpn);
        // Only the lower counter rises, or both when equal: the higher one counts other pages too.
        let [one, other] = chosen.map(|at| self.counters[at]);
        let count = (one.min(other) + 1).min(COUNT_MAX);
        for at in chosen {
            self.counters[at] = self.counters[at].max(count);
        }
        if count >= self.threshold { HOT } else { COLD }
    }

    fn ram_bytes(&self) -> u64 {
        self.counters.len() as u64 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINT: Hint = Hint::of_pages(1);

    fn counts(counters: usize, decay_writes: u64) -> WriteCount {
        let counters = vec![0; counters];
        WriteCount { counters, threshold: 4, decay_writes, until_decay: decay_writes }
    }

    #[test]
    fn a_page_is_hot_from_the_threshold_on_and_cools_down() {
        let mut counts = counts(1024, 100);
        let hot: Vec<bool> = (0..5).map(|_| counts.class(Lpn(7), HINT) == HOT).collect();
        assert_eq!(hot, [false, false, false, true, true]);
        // Other pages, each once: with the halvings both counters fall below the threshold.
        (1_000..1_195).for_each(|lpn| _ = counts.class(Lpn(lpn), HINT));
        assert_eq!(counts.class(Lpn(7), HINT), COLD);
    }

    #[test]
    fn counters_are_halved_after_decay_writes() {
        let mut counts = counts(1024, 6);
        (0..6).for_each(|_| _ = counts.class(Lpn(7), HINT));
        // 6 became 3, and this write makes it 4.
        assert_eq!(counts.class(Lpn(7), HINT), HOT);
        assert!(counts.counters_of(Lpn(7)).iter().all(|at| counts.counters[*at] == 4));
    }

    #[test]
    fn few_cold_pages_are_classified_as_hot() {
        let mut counts = counts(65_536, 5117);
        let wrong = (0..50_000u32).filter(|lpn| counts.class(Lpn(lpn * 977), HINT) == HOT).count();
        assert!(wrong < 50, "{wrong} of 50,000 pages written once");
    }
}
