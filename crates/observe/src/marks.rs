//! Instants that stand out in a run: power failures, failed members, rebuilds.

use crate::events::AnyEvent::{self, Common};
use crate::pictures::Mark;
use hybridsim_engine::event::kind_of;
use hybridsim_engine::{CommonEvent, EventRecord};

/// Marks kept; a run that fails over and over has more than a chart can show.
const MARKS_MAX: usize = 200;

const POWER_CUT: u8 = kind_of::<CommonEvent>("power_cut");
const REDUNDANCY: u8 = kind_of::<CommonEvent>("redundancy");

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct MarkFold {
    marks: Vec<(u64, u16, &'static str)>,
    left_out: u64,
}

impl MarkFold {
    /// The next event.
    #[inline]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        if matches!(record.kind(), POWER_CUT | REDUNDANCY) {
            self.add_mark(record);
        }
    }

    #[cold]
    fn add_mark(&mut self, record: &EventRecord) {
        let what = match AnyEvent::of(record) {
            Some(Common(CommonEvent::PowerCut { .. })) => "power_failure",
            Some(Common(CommonEvent::Redundancy { change, .. })) => change.name(),
            _ => return,
        };
        if self.marks.len() < MARKS_MAX {
            self.marks.push((record.time.as_ns(), record.component().0, what));
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
}
