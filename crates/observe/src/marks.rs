//! Instants that stand out in a run: power failures, failed members, rebuilds, throttling.

use crate::events::AnyEvent::{self, Common, Flash};
use crate::metrics::instant;
use crate::pictures::Mark;
use hybridsim_engine::event::kind_of;
use hybridsim_engine::{CommonEvent, EventRecord};
use hybridsim_flash::{FlashEvent, Throttling};
use std::collections::BTreeMap;

/// Failures and rebuilds kept; a run that fails over and over has more than a chart can show.
const MARKS_MAX: usize = 200;
/// Changes of throttling kept beside them: a drive alternates between throttling and full rate.
const CHANGES_MAX: usize = 50;

const POWER_CUT: u8 = kind_of::<CommonEvent>("power_cut");
const REDUNDANCY: u8 = kind_of::<CommonEvent>("redundancy");
const TEMPERATURE: u8 = kind_of::<FlashEvent>("temperature");

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct MarkFold {
    marks: Vec<(u64, u16, &'static str)>,
    /// Changes of thermal throttling among the marks.
    changes: usize,
    left_out: u64,
    /// The state of thermal throttling of each node that reported one.
    throttling: BTreeMap<u16, Throttling>,
}

impl MarkFold {
    #[inline]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        if matches!(record.kind(), POWER_CUT | REDUNDANCY | TEMPERATURE) {
            self.add_mark(record);
        }
    }

    #[cold]
    fn add_mark(&mut self, record: &EventRecord) {
        let mut ns = record.time.as_ns();
        let mut is_change = false;
        let what = match AnyEvent::of(record) {
            Some(Common(CommonEvent::PowerCut { .. })) => "power_failure",
            Some(Common(CommonEvent::Redundancy { change, .. })) => change.name(),
            Some(Flash(FlashEvent::Temperature { throttling, ago, .. })) => {
                let Some(at) = instant(ns, ago) else { return };
                let before = self.throttling.insert(record.component().0, throttling);
                if before.is_none_or(|before| before == throttling) {
                    return;
                }
                (ns, is_change) = (at, true);
                match throttling {
                    Throttling::None => "throttling_ended",
                    Throttling::Light => "light_throttling",
                    Throttling::Heavy => "heavy_throttling",
                }
            }
            _ => return,
        };
        let (kept, most) = match is_change {
            true => (self.changes, CHANGES_MAX),
            false => (self.marks.len() - self.changes, MARKS_MAX),
        };
        if kept < most {
            self.marks.push((ns, record.component().0, what));
            self.changes += usize::from(is_change);
        } else {
            self.left_out += 1;
        }
    }

    /// The first marks in order of time, and the number of the others; `paths` names the nodes.
    pub fn finish(mut self, paths: &[String]) -> (Vec<Mark>, u64) {
        // Throttling is reported later than it changes.
        self.marks.sort_by_key(|mark| mark.0);
        let mark = |(ns, node, what): (u64, u16, &str)| {
            let path = paths.get(usize::from(node)).cloned().unwrap_or_default();
            Mark { ns, path, what: what.to_owned() }
        };
        (self.marks.into_iter().map(mark).collect(), self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ns, record};
    use hybridsim_engine::RedundancyChange;

    #[test]
    fn the_first_marks_are_kept_and_the_others_counted() {
        let mut fold = MarkFold::default();
        let change = RedundancyChange::RebuildEnded;
        fold.add(&record(5, 1, CommonEvent::Redundancy { change, degraded: 0, took: ns(3) }));
        fold.add(&record(6, 1, CommonEvent::QueueDepth { depth: 3 }));
        (0..MARKS_MAX as u64 + 1).for_each(|at| {
            fold.add(&record(10 + at, 0, CommonEvent::PowerCut { lost: 1 }));
        });
        let (marks, left_out) = fold.finish(&["host".to_owned(), "host/raid".to_owned()]);
        let (path, what) = ("host/raid".to_owned(), "rebuild_ended".to_owned());
        assert_eq!(marks[0], Mark { ns: 5, path, what });
        assert_eq!((&*marks[1].what, marks[1].ns, marks.len()), ("power_failure", 10, MARKS_MAX));
        assert_eq!(left_out, 2);
    }

    /// A report of throttling at `time`, `elapsed` after its instant.
    fn throttling(time: u64, elapsed: u64, throttling: Throttling) -> EventRecord {
        let event = FlashEvent::Temperature { throttling, millikelvin: 350_000, ago: ns(elapsed) };
        record(time, 1, event)
    }

    fn seen(marks: &[Mark]) -> Vec<(u64, &str)> {
        marks.iter().map(|mark| (mark.ns, &*mark.what)).collect()
    }

    #[test]
    fn changes_of_throttling_are_marked_at_their_instants_in_order() {
        let mut fold = MarkFold::default();
        fold.add(&throttling(0, 0, Throttling::None));
        fold.add(&throttling(50, 20, Throttling::Light));
        fold.add(&throttling(60, 0, Throttling::Light));
        fold.add(&record(85, 0, CommonEvent::PowerCut { lost: 1 }));
        fold.add(&throttling(90, 10, Throttling::None));
        // Of a run before this one.
        fold.add(&throttling(95, 100, Throttling::Heavy));
        let (marks, left_out) = fold.finish(&["host".to_owned(), "host/ssd".to_owned()]);
        let expected = [(30, "light_throttling"), (80, "throttling_ended"), (85, "power_failure")];
        assert_eq!((&*seen(&marks), left_out), (&expected[..], 0));
    }

    #[test]
    fn failures_have_their_marks_however_often_throttling_changes() {
        let mut fold = MarkFold::default();
        fold.add(&throttling(0, 0, Throttling::None));
        let states = [Throttling::Light, Throttling::None];
        for (at, state) in (1..=1_000).zip(states.into_iter().cycle()) {
            fold.add(&throttling(at, 0, state));
        }
        fold.add(&record(2_000, 0, CommonEvent::PowerCut { lost: 1 }));
        let (marks, left_out) = fold.finish(&["host".to_owned(), "host/ssd".to_owned()]);
        assert_eq!((marks.len(), left_out), (CHANGES_MAX + 1, 1_000 - CHANGES_MAX as u64));
        assert_eq!(seen(&marks)[CHANGES_MAX], (2_000, "power_failure"));
    }
}
