//! Lengths of time that come in groups: the phases of a latency, the power states of a device.
//!
//! Up to four stand in one record, because a disk alone would emit ten records for each request.

use super::{CommonEvent, EventRecord, PowerState, kind_of};
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

    /// Passes `times`, each with the number of its phase or state, to `emit` in as few records as
    /// hold them, in their order; `a` is the records' [`Slot::A`](super::Slot::A).
    #[inline(always)]
    pub fn emit(self, a: u8, times: &[(u8, SimDuration)], mut emit: impl FnMut(EventRecord)) {
        let mut rest = times;
        while !rest.is_empty() {
            let (mut codes, mut ns, mut count) = (0, [0; MAX], 0);
            while let Some(&(code, time)) = rest.get(count)
                && count < MAX
                && let Ok(short) = u32::try_from(time.as_ns())
            {
                codes |= u32::from(code) << (8 * count);
                ns[count] = short;
                count += 1;
            }
            let head = u64::from(a) << 24;
            if count > 1 {
                let [c, d] = [[ns[0], ns[1]], [ns[2], ns[3]]]
                    .map(|[low, high]| u64::from(low) | u64::from(high) << 32);
                let head = head | u64::from(self.several) << 16 | u64::from(codes) << 32;
                emit(EventRecord { head, c, d, ..EventRecord::default() });
            } else {
                let (code, time) = rest[0];
                let head = head | u64::from(self.one) << 16 | u64::from(code) << 32;
                emit(EventRecord { head, c: time.as_ns(), ..EventRecord::default() });
            }
            rest = &rest[count.max(1)..];
        }
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

impl CommonEvent {
    /// The phases of a latency that the event states, and the time in each.
    pub fn phases(self) -> impl Iterator<Item = (LatencyPhase, SimDuration)> {
        let none = (LatencyPhase::Queue, SimDuration::ZERO);
        let all = match self {
            Self::PhaseTime { phase, duration, .. } => [(phase, duration), none, none, none],
            Self::PhaseTimes {
                phase_1,
                phase_2,
                phase_3,
                phase_4,
                duration_1,
                duration_2,
                duration_3,
                duration_4,
                ..
            } => [
                (phase_1, duration_1),
                (phase_2, duration_2),
                (phase_3, duration_3),
                (phase_4, duration_4),
            ],
            _ => [none; MAX],
        };
        all.into_iter().filter(|(_, time)| !time.is_zero())
    }

    /// The power states that the event states, and the time in each.
    pub fn states(self) -> impl Iterator<Item = (PowerState, SimDuration)> {
        let none = (PowerState::Idle, SimDuration::ZERO);
        let all = match self {
            Self::StateTime { state, duration } => [(state, duration), none, none, none],
            Self::StateTimes {
                state_1,
                state_2,
                state_3,
                state_4,
                duration_1,
                duration_2,
                duration_3,
                duration_4,
            } => [
                (state_1, duration_1),
                (state_2, duration_2),
                (state_3, duration_3),
                (state_4, duration_4),
            ],
            _ => [none; MAX],
        };
        all.into_iter().filter(|(_, time)| !time.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::request::Op;

    fn records(times: &[(LatencyPhase, u64)]) -> Vec<EventRecord> {
        let times: Vec<_> =
            times.iter().map(|&(it, ns)| (it as u8, SimDuration::from_ns(ns))).collect();
        let mut records = Vec::new();
        Times::PHASES.emit(Op::Write.code(), &times, |it| records.push(it));
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
            (&[(Queue, short), (Bus, 1), (Seek, 2), (Transfer, short)][..], 1),
            (&[(Queue, 1), (Bus, 2), (Seek, 3), (Transfer, 4), (Bus, 5)][..], 2),
            (&[(Queue, 1), (Bus, 2), (Seek, long), (Transfer, 4)][..], 3),
        ] {
            let records = records(times);
            assert_eq!(records.len(), expected, "{times:?}");
            let events = records.iter().map(|it| CommonEvent::decode(it).expect("a common event"));
            let found: Vec<_> =
                events.flat_map(CommonEvent::phases).map(|(it, time)| (it, time.as_ns())).collect();
            assert_eq!(found, times);
        }
        let two = records(&[(Queue, 1), (Bus, 2)]);
        assert_eq!(Times::of(&two[0])[..2], [(Queue as u8, 1), (Bus as u8, 2)]);
        assert!(matches!(
            two[0].event(),
            Some(CommonEvent::PhaseTimes { op: Op::Write, phase_2: Bus, .. })
        ));
    }

    #[test]
    fn states_come_back_in_their_order() {
        let times = PowerState::ALL.map(|it| (it as u8, SimDuration::from_ns(1 + it as u64)));
        let mut records = Vec::new();
        Times::STATES.emit(0, &times, |it| records.push(it));
        let events = records.iter().map(|it| CommonEvent::decode(it).expect("a common event"));
        let found: Vec<_> = events.flat_map(CommonEvent::states).map(|(it, _)| it).collect();
        assert_eq!((records.len(), found), (3, PowerState::ALL.to_vec()));
    }
}
