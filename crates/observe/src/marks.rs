//! Instants that stand out in a run: power failures, failed members, rebuilds, throttling.

use crate::events::AnyEvent::{self, Common, Flash};
use crate::pictures::Mark;
use hybridsim_engine::event::kind_of;
use hybridsim_engine::{CommonEvent, EventRecord};
use hybridsim_flash::{FlashEvent, Throttling};
use std::collections::BTreeMap;

/// Marks kept; a run that fails over and over has more than a chart can show.
const MARKS_MAX: usize = 200;

const POWER_CUT: u8 = kind_of::<CommonEvent>("power_cut");
const REDUNDANCY: u8 = kind_of::<CommonEvent>("redundancy");
const TEMPERATURE: u8 = kind_of::<FlashEvent>("temperature");

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct MarkFold {
    marks: Vec<(u64, u16, &'static str)>,
    left_out: u64,
    /// The state of thermal throttling of each node that reported one.
    throttling: BTreeMap<u16, Throttling>,
}

impl MarkFold {
    /// The next event.
    #[inline]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        if matches!(record.kind(), POWER_CUT | REDUNDANCY | TEMPERATURE) {
            self.add_mark(record);
        }
    }

    #[cold]
    fn add_mark(&mut self, record: &EventRecord) {
        let mut ns = record.time.as_ns();
        let what = match AnyEvent::of(record) {
            Some(Common(CommonEvent::PowerCut { .. })) => "power_failure",
            Some(Common(CommonEvent::Redundancy { change, .. })) => change.name(),
            Some(Flash(FlashEvent::Temperature { throttling, elapsed, .. })) => {
                let before = self.throttling.insert(record.component().0, throttling);
                if before.is_none_or(|before| before == throttling) {
                    return;
                }
                ns = ns.saturating_sub(elapsed.as_ns());
                match throttling {
                    Throttling::None => "throttling_ended",
                    Throttling::Light => "light_throttling",
                    Throttling::Heavy => "heavy_throttling",
                }
            }
            _ => return,
        };
        if self.marks.len() < MARKS_MAX {
            self.marks.push((ns, record.component().0, what));
        } else {
            self.left_out += 1;
        }
    }

    /// The first marks, and the number of the others; `paths` names the nodes.
    pub fn finish(self, paths: &[String]) -> (Vec<Mark>, u64) {
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

    #[test]
    fn changes_of_throttling_are_marked_at_the_instant_of_the_change() {
        let mut fold = MarkFold::default();
        let report = |time: u64, throttling, elapsed: u64| {
            let (millikelvin, millikelvin_max) = (350_000, 350_000);
            let elapsed = ns(elapsed);
            let event =
                FlashEvent::Temperature { throttling, millikelvin, elapsed, millikelvin_max };
            record(time, 1, event)
        };
        fold.add(&report(0, Throttling::None, 0));
        fold.add(&report(50, Throttling::Light, 20));
        fold.add(&report(60, Throttling::Light, 30));
        fold.add(&report(90, Throttling::None, 10));
        let (marks, _) = fold.finish(&["host".to_owned(), "host/ssd".to_owned()]);
        let seen: Vec<_> = marks.iter().map(|mark| (mark.ns, &*mark.what)).collect();
        assert_eq!(seen, [(30, "light_throttling"), (80, "throttling_ended")]);
    }
}
