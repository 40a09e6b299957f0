//! The fingerprint of a run: one number for all its events.
//!
//! Two runs with the same fingerprint emitted the same events, in the same order, at the same
//! times, in the same components. It has 64 bits, printed as 16 hexadecimal digits, and depends
//! only on the stream of events: not on the platform, the build mode or other observers.
//!
//! # Computation
//!
//! All arithmetic is on unsigned 64-bit integers that wrap. `^` is exclusive or, `rotate` rotates
//! left. `fold(x, y)` is the 128-bit product of `x` and `y`, its upper half `^` its lower half.
//! Every event is four words:
//!
//! | word | bits | holds |
//! |---|---|---|
//! | `w0` | 0 to 63 | time in ns since the start of the run |
//! | `w1` | 0 to 15, 16 to 23, 24 to 31, 32 to 63 | component, kind, `a`, `b` |
//! | `w2`, `w3` | 0 to 63 | `c`, `d` |
//!
//! Unused fields are zero; enumerations are the numbers of their declarations, times are in ns.
//! Fields that share a column are of one length, the first in the lowest bits. The table is
//! generated from the declarations (a test compares them):
//!
//! | kind | event | a | b | c | d |
//! |---|---|---|---|---|---|
//! | 0 | `arrived` | op | sectors | lba | |
//! | 1 | `completed` | op | sectors | lba | latency |
//! | 2 | `phase_time` | op | phase | duration | |
//! | 3 | `queue_depth` | | depth | | |
//! | 4 | `seek` | | distance | duration | |
//! | 5 | `rotate` | | | duration | |
//! | 6 | `media_transfer` | | sectors | duration | |
//! | 7 | `disk_cache` | op | outcome | | |
//! | 8 | `state_time` | | state | duration | |
//! | 9 | `flash_read` | cause | die | | |
//! | 10 | `flash_program` | cause | die | | |
//! | 11 | `flash_erase` | cause | die | block | erases |
//! | 12 | `free_blocks` | | free | | |
//! | 13 | `wear` | | erases | blocks | |
//! | 14 | `cache_lookup` | op | hits | misses | |
//! | 15 | `bypassed` | op | sectors | | |
//! | 16 | `destaged` | | sectors | | |
//! | 17 | `cleanup_started` | | | | |
//! | 18 | `cleanup_ended` | | pages | | |
//! | 19 | `dirty_pages` | | pages | | |
//! | 20 | `custom` | name | | value | |
//! | 21 | `victim_search` | | blocks | | |
//! | 22 | `power_cut` | | lost | | |
//! | 23 | `recovered` | | | took | |
//! | 24 | `read_retried` | cause | die | retries | |
//! | 25 | `uncorrectable` | cause | die | page | |
//! | 26 | `temperature` | throttling | millikelvin | ago | |
//! | 27 | `log_write` | | requested | written | |
//! | 28 | `log_summary` | | sectors | | |
//! | 29 | `blocks_moved` | | sectors | | |
//! | 30 | `segment_cleaned` | | | | |
//! | 31 | `segment_freed` | | free | | |
//! | 32 | `phase_times` | op | phase_1..4 | duration_1..2 | duration_3..4 |
//! | 33 | `state_times` | | state_1..4 | duration_1..2 | duration_3..4 |
//! | 34 | `access` | | distance | seek rotate | transfer sectors |
//!
//! Detailed events, those of kind 128 and above, are left out.
//!
//! There are four accumulators, zero at first. With the keys below, event number `n`, counted from
//! zero, does
//!
//! ```text
//! x          = fold(w0 ^ K0, w1 ^ K1) ^ fold(w2 ^ K2, w3 ^ K3)
//! acc[n % 4] = (rotate(acc[n % 4], 23) ^ x) * M
//! ```
//!
//! The step is a permutation of the accumulator, so a difference is preserved. At the end the
//! accumulators are joined, from the first to the last, into `state`, zero at first:
//!
//! ```text
//! state = (rotate(state, 23) ^ acc[i]) * M
//! ```
//!
//! `state ^ (number of events)` goes through the finaliser of SplitMix64. There are four, because
//! a processor works on all of them at once.

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
    accumulators: [u64; ACCUMULATORS],
    events: u64,
}

const ACCUMULATORS: usize = 4;

impl Fingerprint {
    /// The fingerprint of the events so far.
    pub fn value(&self) -> u64 {
        let mut z = self.accumulators.into_iter().fold(0, step) ^ self.events;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The next events, all of which count, and the first of which goes to the first accumulator.
    #[inline(always)]
    fn add_to_all(&mut self, records: &[EventRecord; ACCUMULATORS]) {
        for (sum, record) in self.accumulators.iter_mut().zip(records) {
            *sum = step(*sum, mixed(record));
        }
        self.events += ACCUMULATORS as u64;
    }

    #[inline]
    fn add(&mut self, record: &EventRecord) {
        if !record.is_detail() {
            let sum = &mut self.accumulators[self.events as usize % ACCUMULATORS];
            *sum = step(*sum, mixed(record));
            self.events += 1;
        }
    }
}

#[inline(always)]
fn mixed(record: &EventRecord) -> u64 {
    let [w0, w1, w2, w3] = record.words();
    fold(w0 ^ K0, w1 ^ K1) ^ fold(w2 ^ K2, w3 ^ K3)
}

#[inline(always)]
fn step(state: u64, x: u64) -> u64 {
    (state.rotate_left(23) ^ x).wrapping_mul(M)
}

impl fmt::Display for Fingerprint {
    /// 16 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.value())
    }
}

impl EventSink for Fingerprint {
    fn take(&mut self, events: &[EventRecord]) {
        // A copy, which the compiler keeps in registers.
        let mut fingerprint = *self;
        // One test for all: most runs have no detailed events.
        let kinds = events.iter().fold(0, |kinds, record| kinds | record.kind());
        if kinds >= EventRecord::FIRST_DETAIL_KIND {
            events.iter().for_each(|record| fingerprint.add(record));
        } else {
            let to_first = self.events.wrapping_neg() as usize % ACCUMULATORS;
            let (before, events) = events.split_at(to_first.min(events.len()));
            let (fours, after) = events.as_chunks::<ACCUMULATORS>();
            before.iter().for_each(|record| fingerprint.add(record));
            fours.iter().for_each(|records| fingerprint.add_to_all(records));
            after.iter().for_each(|record| fingerprint.add(record));
        }
        *self = fingerprint;
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
    use crate::events::kinds;
    use crate::testing::record;
    use hybridsim_engine::event::Slot;
    use hybridsim_engine::{CommonEvent, EventKind, Lba, Op, SimDuration};

    fn every_event() -> Vec<EventRecord> {
        crate::testing::every_event().into_iter().filter(|event| !event.is_detail()).collect()
    }

    fn of(events: &[EventRecord]) -> u64 {
        let mut fingerprint = Fingerprint::default();
        fingerprint.take(events);
        fingerprint.value()
    }

    /// Computed from the description above by an independent program.
    /// They may only change together with a new `schema_version`.
    #[test]
    fn known_streams_have_known_fingerprints() {
        assert_eq!(of(&[]), 0);
        let arrived = CommonEvent::Arrived { op: Op::Write, sectors: 8, lba: Lba(1000) };
        assert_eq!(of(&[record(5, 0, arrived)]), 0xb6d9_5b7b_5eb6_b691);
        let (op, latency) = (Op::Write, SimDuration::from_ns(900));
        let completed = CommonEvent::Completed { op, sectors: 8, lba: Lba(1000), latency };
        let two = [record(5, 0, arrived), record(905, 3, completed)];
        assert_eq!(of(&two), 0x0985_df57_710b_bbe2);
        assert_eq!(of(&two.repeat(5)), 0x0ea4_3ca7_cb38_c68c);
    }

    #[test]
    fn every_field_of_every_event_counts() {
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
    fn the_table_is_that_of_the_declarations() {
        let row = |kind: &EventKind| {
            let [a, b, c, d] = [Slot::A, Slot::B, Slot::C, Slot::D].map(|column: Slot| {
                let (start, length) = column.bytes();
                let within = |slot: Slot| (start..start + length).contains(&slot.bytes().0);
                let fields = kind.fields.iter().filter(|field| within(field.slot));
                let names: Vec<&str> = fields.map(|field| field.name).collect();
                let numbered = |name: &str| name.ends_with(|last: char| last.is_ascii_digit());
                match names[..] {
                    [first, .., last] if numbered(first) => {
                        format!("{first}..{} ", &last[last.len() - 1..])
                    }
                    [] => String::new(),
                    _ => names.join(" ") + " ",
                }
            });
            format!("//! | {} | `{}` | {a}| {b}| {c}| {d}|\n", kind.kind, kind.name)
        };
        let hashed = kinds().into_iter().filter(|it| it.kind < EventRecord::FIRST_DETAIL_KIND);
        let table: String = hashed.map(row).collect();
        assert!(include_str!("fingerprint.rs").contains(&table), "{table}");
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
