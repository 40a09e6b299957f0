//! Lengths of time that come in groups: the phases of a latency, the power states of a device.
//!
//! Up to four stand in one record, because a disk alone would emit ten records for each request.

use super::{CommonEvent, Event, EventRecord, Field, PowerState, Slot, kind_of};
use crate::latency::LatencyPhase;
use crate::time::SimDuration;

/// Times in one record.
const MAX: usize = 4;

/// The two events that state times of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The number of the event that states one time, of any length.
    pub one: u8,
    /// The number of the event that states up to four times below 2^32 ns.
    pub several: u8,
}

impl Times {
    /// Phases of the latency of a request.
    pub const PHASES: Self = Self {
        one: kind_of::<CommonEvent>("phase_time"),
        several: kind_of::<CommonEvent>("phase_times"),
    };
    /// Power states of a device.
    pub const STATES: Self = Self {
        one: kind_of::<CommonEvent>("state_time"),
        several: kind_of::<CommonEvent>("state_times"),
    };

    /// The times in a record of either event, each with its phase or state; none in any other.
    fn read<T: Field>(self, record: EventRecord) -> impl Iterator<Item = (T, SimDuration)> {
        let all = match record.kind() {
            kind if kind == self.several => Self::of(&record),
            kind if kind == self.one => {
                [(Slot::B0.get(&record) as u8, record.c), (0, 0), (0, 0), (0, 0)]
            }
            _ => [(0, 0); MAX],
        };
        let times = all.into_iter().filter(|(_, ns)| *ns > 0);
        times.filter_map(|(code, ns)| Some((T::from_word(code.into())?, SimDuration::from_ns(ns))))
    }

    /// The times in a record of [`Times::several`] in ns, each with the number of its phase or
    /// state; zero stands for none.
    #[inline(always)]
    pub const fn of(record: &EventRecord) -> [(u8, u64); MAX] {
        let EventRecord { head, c, d, .. } = *record;
        [
            ((head >> 32) as u8, c as u32 as u64),
            ((head >> 40) as u8, c >> 32),
            ((head >> 48) as u8, d as u32 as u64),
            ((head >> 56) as u8, d >> 32),
        ]
    }
}

/// Times on their way into as few records as hold them, in their order. Dropping it writes what is
/// left.
pub struct TimesWriter<'a> {
    to: &'a mut Vec<EventRecord>,
    kinds: Times,
    /// The records without kind, codes and times.
    plain: EventRecord,
    /// Whether the sum of all times fits a field, and so each of them.
    short: bool,
    codes: u32,
    ns: [u32; MAX],
    count: usize,
}

impl<'a> TimesWriter<'a> {
    /// Appends records of `kinds` to `to`; time, component and [`Slot::A`](super::Slot::A) are
    /// those of `plain`. The times sum to `sum`.
    #[inline(always)]
    pub fn new(
        to: &'a mut Vec<EventRecord>,
        kinds: Times,
        plain: EventRecord,
        sum: SimDuration,
    ) -> Self {
        let short = sum.as_ns() <= u64::from(u32::MAX);
        Self { to, kinds, plain, short, codes: 0, ns: [0; MAX], count: 0 }
    }

    /// Adds `time`, above zero, of the phase or state numbered `code`.
    #[inline(always)]
    pub fn add(&mut self, code: u8, time: SimDuration) {
        if !self.short {
            return self.write_one(code, time.as_ns());
        }
        debug_assert!(!time.is_zero() && time.as_ns() <= u64::from(u32::MAX), "the sum is wrong");
        self.codes |= u32::from(code) << (8 * self.count);
        self.ns[self.count] = time.as_ns() as u32;
        self.count += 1;
        if self.count == MAX {
            self.write();
        }
    }

    #[inline(always)]
    fn head(&self, kind: u8, codes: u32) -> u64 {
        self.plain.head | u64::from(kind) << 16 | u64::from(codes) << 32
    }

    #[cold]
    fn write_one(&mut self, code: u8, ns: u64) {
        let head = self.head(self.kinds.one, code.into());
        self.to.push(EventRecord { head, c: ns, ..self.plain });
    }

    #[inline(always)]
    fn write(&mut self) {
        let kind = if self.count > 1 { self.kinds.several } else { self.kinds.one };
        let [first, second, third, fourth] = self.ns.map(u64::from);
        let (c, d) = (first | second << 32, third | fourth << 32);
        self.to.push(EventRecord { head: self.head(kind, self.codes), c, d, ..self.plain });
        (self.codes, self.ns, self.count) = (0, [0; MAX], 0);
    }
}

impl Drop for TimesWriter<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.count > 0 {
            self.write();
        }
    }
}

impl CommonEvent {
    /// The phases of a latency that the event states, and the time in each.
    pub fn phases(self) -> impl Iterator<Item = (LatencyPhase, SimDuration)> {
        Times::PHASES.read(self.encode())
    }

    /// The power states that the event states, and the time in each.
    pub fn states(self) -> impl Iterator<Item = (PowerState, SimDuration)> {
        Times::STATES.read(self.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;

    fn records(times: &[(u8, u64)], kinds: Times) -> Vec<EventRecord> {
        let mut records = Vec::new();
        let head = u64::from(Op::Write.code()) << 24;
        let plain = EventRecord { head, ..EventRecord::default() };
        let sum = times.iter().map(|&(_, ns)| SimDuration::from_ns(ns)).sum();
        let mut writer = TimesWriter::new(&mut records, kinds, plain, sum);
        times.iter().for_each(|&(code, ns)| writer.add(code, SimDuration::from_ns(ns)));
        drop(writer);
        records
    }

    #[test]
    fn times_come_back_in_their_order_whatever_their_length() {
        use LatencyPhase::{Bus, Queue, Seek, Transfer};
        let (long, short) = (u64::from(u32::MAX) + 1, u64::from(u32::MAX));
        for (times, expected) in [
            (&[][..], 0),
            (&[(Bus, 7)][..], 1),
            (&[(Bus, long)][..], 1),
            (&[(Queue, short - 6), (Bus, 1), (Seek, 2), (Transfer, 3)][..], 1),
            (&[(Queue, 1), (Bus, 2), (Seek, 3), (Transfer, 4), (Bus, 5)][..], 2),
            (&[(Queue, 1), (Bus, 2), (Seek, long), (Transfer, 4)][..], 4),
        ] {
            let codes: Vec<_> = times.iter().map(|&(it, ns)| (it as u8, ns)).collect();
            let records = records(&codes, Times::PHASES);
            assert_eq!(records.len(), expected, "{times:?}");
            let events = records.iter().map(|it| CommonEvent::decode(it).expect("a common event"));
            let found: Vec<_> =
                events.flat_map(CommonEvent::phases).map(|(it, time)| (it, time.as_ns())).collect();
            assert_eq!(found, times);
        }
        let codes =
            [(Queue as u8, 1), (Bus as u8, 2), (Seek as u8, 3), (Transfer as u8, short - 9)];
        let two = records(&codes, Times::PHASES);
        assert_eq!(Times::of(&two[0]), codes);
        assert!(matches!(
            two[0].event(),
            Some(CommonEvent::PhaseTimes { op: Op::Write, phase_2: Bus, .. })
        ));
    }

    #[test]
    fn states_come_back_in_their_order() {
        let records = records(&PowerState::ALL.map(|it| (it as u8, 1)), Times::STATES);
        let events = records.iter().map(|it| CommonEvent::decode(it).expect("a common event"));
        let found: Vec<_> = events.flat_map(CommonEvent::states).map(|(it, _)| it).collect();
        assert_eq!((records.len(), found), (3, PowerState::ALL.to_vec()));
    }
}
