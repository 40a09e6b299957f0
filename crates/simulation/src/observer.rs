//! Events are observed on a thread of their own, while the simulation goes on.
//!
//! Half of the instructions of a run with pictures or a list of requests are statistics, which the
//! simulation never reads. Their thread gets the events in the same order
//! and batches them differently, so results are the same.

use hybridsim_engine::{EventRecord, EventSink};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

/// Events that are passed on together: 128 KiB.
const BATCH: usize = 4096;
/// Batches on their way. The simulation waits when the observer is further behind.
const BATCHES_MAX: usize = 8;

/// Calls `simulate` with a sink whose events `observer` gets on a thread of its own; returns once
/// the observer has them all.
///
/// # Panics
/// Panics when either of them does.
pub fn beside<R>(
    observer: &mut (dyn EventSink + Send),
    simulate: impl FnOnce(&mut dyn EventSink) -> R,
) -> R {
    let (full, batches) = mpsc::sync_channel::<Vec<EventRecord>>(BATCHES_MAX);
    let (done, empty) = mpsc::sync_channel(BATCHES_MAX + 1);
    thread::scope(|scope| {
        scope.spawn(move || {
            for mut batch in batches {
                observer.take(&batch);
                batch.clear();
                // The simulation may have ended.
                drop(done.try_send(batch));
            }
        });
        let mut sender = Sender { batch: Vec::with_capacity(BATCH), full, empty };
        let result = simulate(&mut sender);
        sender.pass_on();
        result
    })
}

/// The simulation's end.
struct Sender {
    batch: Vec<EventRecord>,
    full: SyncSender<Vec<EventRecord>>,
    /// Batches to fill again.
    empty: Receiver<Vec<EventRecord>>,
}

impl Sender {
    fn pass_on(&mut self) {
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let batch = std::mem::replace(&mut self.batch, next);
        self.full.send(batch).expect("the observer takes events until the simulation ends");
    }
}

impl EventSink for Sender {
    fn take(&mut self, events: &[EventRecord]) {
        if self.batch.len() + events.len() > BATCH {
            self.pass_on();
        }
        self.batch.extend_from_slice(events);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::SimTime;

    fn event(number: u64) -> EventRecord {
        EventRecord { time: SimTime::from_ns(number), c: number, ..EventRecord::of_kind(1) }
    }

    #[test]
    fn all_events_arrive_in_order() {
        for count in [0, 1, BATCH as u64 - 1, 10 * BATCH as u64 + 17] {
            let mut seen: Vec<EventRecord> = Vec::new();
            let result = beside(&mut seen, |sink| {
                let events: Vec<EventRecord> = (0..count).map(event).collect();
                let (first, rest) = events.split_at(events.len() / 3);
                sink.take(first);
                rest.chunks(100).for_each(|chunk| sink.take(chunk));
                "result"
            });
            assert_eq!((result, seen.len() as u64), ("result", count));
            assert!(seen.into_iter().eq((0..count).map(event)));
        }
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn an_observer_that_panics_ends_the_run() {
        struct Refuses;
        impl EventSink for Refuses {
            fn take(&mut self, events: &[EventRecord]) {
                assert!(events.is_empty(), "refused");
            }
        }
        beside(&mut Refuses, |sink| sink.take(&[event(1)]));
    }
}
