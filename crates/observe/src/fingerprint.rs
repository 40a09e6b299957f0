//! One number for everything that happened in a run.
//!
//! Two runs with the same fingerprint told the same events, in the same order, at the same times,
//! at the same nodes. It is 64 bits wide, printed as 16 hexadecimal digits, and depends on
//! nothing but the stream of events: not on the platform, the build mode or other observers.
//!
//! # How to compute it again
//!
//! All arithmetic is on unsigned 64-bit integers that wrap. `^` is exclusive or, `rotate` turns
//! left. `fold(x, y)` is the 128-bit product of `x` and `y`, its upper half `^` its lower half.
//! Every event is four words:
//!
//! | word | bits | holds |
//! |---|---|---|
//! | `w0` | 0 to 63 | time in ns |
//! | `w1` | 0 to 15, 16 to 23, 24 to 31, 32 to 63 | node, kind, `a`, `b` |
//! | `w2`, `w3` | 0 to 63 | `c`, `d` |
//!
//! Fields not named are zero; enumerations enter as the numbers the engine declares for them.
//!
//! | kind | event | a | b | c | d |
//! |---|---|---|---|---|---|
//! | 0 | `Arrived` | op | sectors | lba | |
//! | 1 | `Completed` | op | sectors | lba | latency ns |
//! | 2 | `Spent` | op | part | ns | |
//! | 3 | `QueueDepth` | | depth | | |
//! | 4 | `Seek` | | distance | ns | |
//! | 5 | `Rotate` | | | ns | |
//! | 6 | `MediaTransfer` | | sectors | ns | |
//! | 7 | `DiskCache` | op | outcome | | |
//! | 8 | `StateTime` | state | | ns | |
//! | 9 | `FlashRead` | cause | die | | |
//! | 10 | `FlashProgram` | cause | die | | |
//! | 11 | `FlashErase` | cause | die | block | erases |
//! | 12 | `FreeBlocks` | | free | | |
//! | 13 | `Wear` | | erases | blocks | |
//! | 14 | `CacheLookup` | op | hits | misses | |
//! | 15 | `Bypassed` | op | sectors | | |
//! | 16 | `Destaged` | | sectors | | |
//! | 17 | `CleanupStarted` | | | | |
//! | 18 | `CleanupEnded` | | pages | | |
//! | 19 | `DirtyPages` | | pages | | |
//! | 20 | `Custom` | name | | value | |
//! | 21 | `VictimSearch` | | blocks | | |
//! | 22 | `PowerCut` | | lost | | |
//! | 23 | `Recovered` | | | ns | |
//!
//! `FlashBusy`, which is told only where somebody looks, and `ReadUnwritten`, which younger than
//! published fingerprints is, are left out.
//!
//! With the keys below, and `state` zero at first, each event does
//!
//! ```text
//! x     = fold(w0 ^ K0, w1 ^ K1) ^ fold(w2 ^ K2, w3 ^ K3)
//! state = (rotate(state, 23) ^ x) * M
//! ```
//!
//! The step is a permutation of `state`, so a difference never vanishes by itself. At the end
//! `state ^ (number of events)` goes through the finaliser of SplitMix64.

use hybridsim_engine::{EventRecord, EventSink};
use std::fmt;

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd1b5_4a32_d192_ed03;
const K2: u64 = 0x8cb9_2ba7_2f3d_8dd7;
const K3: u64 = 0xa24b_aed4_963e_e407;
const M: u64 = 0xff51_afd7_ed55_8ccd;

/// The fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    state: u64,
    events: u64,
}

impl Fingerprint {
    /// The fingerprint of the events so far.
    pub fn value(&self) -> u64 {
        let mut z = self.state ^ self.events;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Facts so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The next event.
    #[inline(always)]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        if record.is_detail() {
            return;
        }
        let [w0, w1, w2, w3] = record.words();
        let x = fold(w0 ^ K0, w1 ^ K1) ^ fold(w2 ^ K2, w3 ^ K3);
        self.state = (self.state.rotate_left(23) ^ x).wrapping_mul(M);
        self.events += 1;
    }
}

impl fmt::Display for Fingerprint {
    /// 16 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.value())
    }
}

impl EventSink for Fingerprint {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.add(record));
    }
}

#[inline(always)]
fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stamp;
    use hybridsim_engine::{CommonEvent, Lba, Op, SimDuration};

    fn every_event() -> Vec<EventRecord> {
        crate::testing::every_event().into_iter().filter(|event| !event.is_detail()).collect()
    }

    fn of(events: &[EventRecord]) -> u64 {
        let mut fingerprint = Fingerprint::default();
        fingerprint.take(events);
        fingerprint.value()
    }

    /// Worked out from the page above by a program of its own, not by this code.
    /// They may only change together with a new `schema_version`.
    #[test]
    fn known_streams_have_known_fingerprints() {
        assert_eq!(of(&[]), 0);
        let arrived = CommonEvent::Arrived { op: Op::Write, sectors: 8, lba: Lba(1000) };
        assert_eq!(of(&[stamp(5, 0, arrived)]), 0xf716_1068_8012_3205);
        let (op, latency) = (Op::Write, SimDuration::from_ns(900));
        let completed = CommonEvent::Completed { op, sectors: 8, lba: Lba(1000), latency };
        assert_eq!(of(&[stamp(5, 0, arrived), stamp(905, 3, completed)]), 0x7bf5_ed9c_0230_f29f);
    }

    #[test]
    fn every_field_of_every_fact_counts() {
        let events = every_event();
        let mut seen = std::collections::BTreeSet::from([of(&events)]);
        for at in 0..events.len() {
            let mut later = events.clone();
            later[at].time += SimDuration::from_ns(1);
            assert!(seen.insert(of(&later)), "time of {:?}", events[at]);
            let mut elsewhere = events.clone();
            elsewhere[at].head ^= 1;
            assert!(seen.insert(of(&elsewhere)), "node of {:?}", events[at]);
            let mut missing = events.clone();
            missing.remove(at);
            assert!(seen.insert(of(&missing)), "presence of {:?}", events[at]);
        }
        for at in 1..events.len() {
            let mut swapped = events.clone();
            swapped.swap(at - 1, at);
            assert!(seen.insert(of(&swapped)), "order of {:?}", events[at]);
        }
        for (one, other) in crate::testing::one_field_apart() {
            assert!(one.is_detail() || of(&[one]) != of(&[other]), "{one:?} {other:?}");
        }
    }

    #[test]
    fn detailed_events_are_left_out() {
        let all = crate::testing::every_event();
        assert!(all.len() > every_event().len());
        assert_eq!(of(&all), of(&every_event()));
    }

    #[test]
    fn batches_make_no_difference() {
        let events = every_event();
        let mut split = Fingerprint::default();
        split.take(&events[..7]);
        split.take(&[]);
        split.take(&events[7..]);
        assert_eq!(split.value(), of(&events));
    }
}
