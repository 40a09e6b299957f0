//! Events for the tests of this crate.

use crate::events::kinds;
use hybridsim_engine::{ComponentId, Event, EventKind, EventRecord, SimDuration, SimTime};

/// The record of `event` at `time` ns in component number `component`.
pub fn record(time: u64, component: u16, event: impl Event) -> EventRecord {
    EventRecord::new(SimTime::from_ns(time), ComponentId(component), event)
}

/// Shorthand for a length of time.
pub const fn ns(ns: u64) -> SimDuration {
    SimDuration::from_ns(ns)
}

/// The record of an event whose fields are all 1, except field number `zero`.
fn ones_but(kind: &EventKind, zero: Option<usize>) -> EventRecord {
    let mut record = EventRecord::of_kind(kind.kind);
    for (at, field) in kind.fields.iter().enumerate() {
        field.slot.put(&mut record, u64::from(zero != Some(at)));
    }
    record
}

/// Pairs of records that differ in one field, for every field of every event.
pub fn one_field_apart() -> Vec<(EventRecord, EventRecord)> {
    let of = |kind: &'static EventKind| {
        (0..kind.fields.len()).map(|at| (ones_but(kind, None), ones_but(kind, Some(at))))
    };
    kinds().into_iter().flat_map(of).collect()
}

/// A stream with every event.
pub fn every_event() -> Vec<EventRecord> {
    let record = |(kind, at): (&EventKind, u64)| {
        let record = ones_but(kind, None);
        EventRecord { time: SimTime::from_ns(at * 10), head: record.head | (at % 4), ..record }
    };
    kinds().into_iter().zip(1..).map(record).collect()
}
