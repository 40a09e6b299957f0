//! Every event there is: the sets the engine and the device crates declare.

use hybridsim_cache::CacheEvent;
use hybridsim_disk::DiskEvent;
use hybridsim_engine::event::FieldValues;
use hybridsim_engine::{CommonEvent, Event, EventKind, EventRecord, SimDuration, SimTime};
use hybridsim_flash::FlashEvent;
use hybridsim_layer::LayerEvent;

macro_rules! sets {
    ($($variant:ident($set:ty) = $doc:literal),* $(,)?) => {
        /// An event of any set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AnyEvent {
            $( #[doc = $doc] $variant($set), )*
        }

        impl AnyEvent {
            /// The event a record holds; `None` where no set declares it.
            #[inline(always)]
            pub fn of(record: &EventRecord) -> Option<Self> {
                $(
                    if let Some(event) = <$set>::decode(record) {
                        return Some(Self::$variant(event));
                    }
                )*
                None
            }
        }

        /// The descriptions of all events, by set.
        pub const SETS: &[&[EventKind]] = &[$(<$set as Event>::KINDS),*];
    };
}

sets! {
    Common(CommonEvent) = "Events of the host and of any component.",
    Disk(DiskEvent) = "Events of disks.",
    Flash(FlashEvent) = "Events of flash devices.",
    Cache(CacheEvent) = "Events of caches.",
    Layer(LayerEvent) = "Events of translation layers on the host.",
}

/// The descriptions of all events, by number.
pub fn kinds() -> Vec<&'static EventKind> {
    let mut kinds: Vec<&EventKind> = SETS.iter().copied().flatten().collect();
    kinds.sort_unstable_by_key(|kind| kind.kind);
    kinds
}

/// The record as it is in a run that began at `base`: its time, and the times in its fields, count
/// from there.
pub fn since(record: &EventRecord, base: SimDuration) -> EventRecord {
    let mut record = EventRecord { time: record.time - base, ..*record };
    let kind = SETS.iter().copied().flatten().find(|kind| kind.kind == record.kind());
    for field in kind.map_or(&[][..], |kind| kind.fields) {
        if matches!(field.values, FieldValues::Instant) {
            let time = SimTime::from_ns(field.slot.get(&record)) - base;
            field.slot.put(&mut record, time.as_ns());
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_and_names_are_unique() {
        let kinds = kinds();
        let numbers: BTreeSet<u8> = kinds.iter().map(|kind| kind.kind).collect();
        let names: BTreeSet<&str> = kinds.iter().map(|kind| kind.name).collect();
        assert_eq!((numbers.len(), names.len()), (kinds.len(), kinds.len()));
    }

    #[test]
    fn the_fields_of_an_event_do_not_overlap() {
        for kind in kinds() {
            let mut bytes = BTreeSet::new();
            for (first, length) in kind.fields.iter().map(|field| field.slot.bytes()) {
                for byte in first..first + length {
                    assert!(bytes.insert(byte), "{}: byte {byte} twice", kind.name);
                }
            }
        }
    }

    #[test]
    fn every_event_is_decoded_as_it_was_encoded() {
        let mut seen = BTreeSet::new();
        for record in crate::testing::every_event() {
            let encoded = match AnyEvent::of(&record).expect("a declared event") {
                AnyEvent::Common(event) => event.encode(),
                AnyEvent::Disk(event) => event.encode(),
                AnyEvent::Flash(event) => event.encode(),
                AnyEvent::Cache(event) => event.encode(),
                AnyEvent::Layer(event) => event.encode(),
            };
            let head = encoded.head | u64::from(record.component().0);
            assert_eq!(EventRecord { time: record.time, head, ..encoded }, record);
            seen.insert(record.kind());
        }
        let all: BTreeSet<u8> = kinds().iter().map(|kind| kind.kind).collect();
        assert_eq!(seen, all);
    }

    #[test]
    fn a_number_without_a_meaning_is_no_event() {
        assert_eq!(AnyEvent::of(&EventRecord::of_kind(255)), None);
        assert_eq!(AnyEvent::of(&EventRecord { head: 200 << 24, ..EventRecord::default() }), None);
    }
}
