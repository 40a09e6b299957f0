//! Pages written often of late are hot.
//!
//! A page counts in two small counters chosen by hashing its number, and is hot when both are at
//! the threshold or above; pages share counters, so a cold page passes for hot now and then. All
//! counters are halved from time to time, so that what was hot grows cold. The memory does not
//! depend on the size of the device. As in the source, 4,096 counters are halved after 5,117
//! writes.

use super::{BuiltClassifier, HotColdClassifier, HotColdEntry};
use crate::ftl::Hint;
use crate::geometry::Lpn;
use hybridsim_config::param::{Kind, Param, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::state::{self, Loader, Saver, StateError};

/// By recent writes.
pub const ENTRY: HotColdEntry = HotColdEntry {
    description: Description {
        name: "write-count",
        summary: "Pages written often of late are hot, by hashed counters that decay.",
        origin: "Hsieh, Kuo and Chang, ACM Transactions on Storage 2006",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 3] = [
    Param::with("counters", Kind::Count { min: 2, max: 1 << 26 }, "4096", "Size of the table."),
    Param::with(
        "threshold",
        Kind::Count { min: 1, max: COUNT_MAX as u64 },
        "4",
        "Both counters of a hot page are at least this; they end at 15.",
    ),
    Param::with(
        "decay_writes",
        Kind::Count { min: 1, max: 1 << 40 },
        "5117",
        "Pages written between two halvings of all counters.",
    ),
];

/// Counters have four bits.
const COUNT_MAX: u8 = 15;

struct WriteCount {
    counters: Vec<u8>,
    threshold: u8,
    decay_writes: u64,
    until_decay: u64,
}

fn build(settings: &Settings) -> BuiltClassifier {
    let decay_writes = settings.count("decay_writes");
    Ok(Box::new(WriteCount {
        counters: vec![0; settings.count("counters") as usize],
        threshold: settings.count("threshold") as u8,
        decay_writes,
        until_decay: decay_writes,
    }))
}

impl WriteCount {
    /// The two counters of a page: the halves of a multiplicative hash.
    fn places(&self, lpn: Lpn) -> [usize; 2] {
        let hash = (u64::from(lpn.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let size = self.counters.len() as u64;
        [hash >> 32, hash & 0xffff_ffff].map(|half| ((half * size) >> 32) as usize)
    }
}

impl HotColdClassifier for WriteCount {
    fn is_hot(&mut self, lpn: Lpn, _hint: Hint) -> bool {
        if self.until_decay == 0 {
            self.until_decay = self.decay_writes;
            self.counters.iter_mut().for_each(|counter| *counter /= 2);
        }
        self.until_decay -= 1;
        let places = self.places(lpn);
        // Only the lesser counter rises, both when equal: the greater one counts other pages too.
        let [one, other] = places.map(|place| self.counters[place]);
        let count = (one.min(other) + 1).min(COUNT_MAX);
        for place in places {
            self.counters[place] = self.counters[place].max(count);
        }
        count >= self.threshold
    }

    fn save(&self, to: &mut Saver) {
        to.put(&(&self.counters, self.until_decay));
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (counters, until_decay): (Vec<u8>, u64) = from.take()?;
        state::same_length("the table of counters", counters.len(), self.counters.len())?;
        (self.counters, self.until_decay) = (counters, until_decay);
        Ok(())
    }

    fn ram_bytes(&self) -> u64 {
        self.counters.len() as u64 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINT: Hint = Hint { request_pages: 1 };

    fn counts(counters: usize, decay_writes: u64) -> WriteCount {
        let counters = vec![0; counters];
        WriteCount { counters, threshold: 4, decay_writes, until_decay: decay_writes }
    }

    #[test]
    fn a_page_is_hot_from_the_threshold_on_and_cools_down() {
        let mut counts = counts(1024, 100);
        let hot: Vec<bool> = (0..5).map(|_| counts.is_hot(Lpn(7), HINT)).collect();
        assert_eq!(hot, [false, false, false, true, true]);
        // Other pages, each once: with the halvings both counters fall below the threshold.
        (1_000..1_195).for_each(|lpn| _ = counts.is_hot(Lpn(lpn), HINT));
        assert!(!counts.is_hot(Lpn(7), HINT));
    }

    #[test]
    fn halving_comes_after_so_many_writes() {
        let mut counts = counts(1024, 6);
        (0..6).for_each(|_| _ = counts.is_hot(Lpn(7), HINT));
        // 6 became 3, and this write makes it 4.
        assert!(counts.is_hot(Lpn(7), HINT));
        assert!(counts.places(Lpn(7)).iter().all(|place| counts.counters[*place] == 4));
    }

    #[test]
    fn few_cold_pages_pass_for_hot() {
        let mut counts = counts(65_536, 5117);
        let wrong = (0..50_000u32).filter(|lpn| counts.is_hot(Lpn(lpn * 977), HINT)).count();
        assert!(wrong < 50, "{wrong} of 50,000 pages written once");
    }
}
