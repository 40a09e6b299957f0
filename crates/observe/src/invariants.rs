//! Checks that hold in every run, whatever the models do.

use hybridsim_engine::event::Times;
use hybridsim_engine::{CommonEvent, ComponentId, EventRecord, EventSink, SimTime};

/// Violations beyond this number are only counted.
const REPORTED_MAX: usize = 20;

/// The fold: what was broken, in words.
#[derive(Clone, Debug)]
pub struct Invariants {
    paths: Vec<String>,
    state_ns: Vec<u64>,
    last: SimTime,
    arrived: u64,
    completed: u64,
    spent_ns: u64,
    violations: Vec<String>,
    unreported: u64,
}

impl Invariants {
    /// Checks for a system whose nodes have these `paths`, by number.
    pub fn new(paths: Vec<String>) -> Self {
        let state_ns = vec![0; paths.len()];
        Self {
            paths,
            state_ns,
            last: SimTime::ZERO,
            arrived: 0,
            completed: 0,
            spent_ns: 0,
            violations: Vec::new(),
            unreported: 0,
        }
    }

    /// Every broken rule of a run that ended at `end`.
    ///
    /// A run that ended before all requests had completed (`complete` is false) may leave requests
    /// in flight and state times unreported.
    pub fn finish(mut self, end: SimTime, complete: bool) -> Vec<String> {
        if end < self.last {
            self.report(format!("the run ended at {end}, before its last event at {}", self.last));
        }
        if complete && self.arrived != self.completed {
            let (arrived, completed) = (self.arrived, self.completed);
            self.report(format!("{arrived} requests arrived but {completed} completed"));
        }
        for node in 0..self.state_ns.len() {
            let total = self.state_ns[node];
            if complete && total != 0 && total != end.as_ns() {
                let path = self.paths[node].clone();
                let run = end.as_ns();
                self.report(format!("{path}: state times sum to {total} ns of {run} ns run"));
            }
        }
        if self.unreported > 0 {
            self.violations.push(format!("and {} more broken rules", self.unreported));
        }
        self.violations
    }

    #[cold]
    fn report(&mut self, broken: String) {
        if self.violations.len() < REPORTED_MAX {
            self.violations.push(broken);
        } else {
            self.unreported += 1;
        }
    }

    fn path(&self, node: ComponentId) -> String {
        let path = self.paths.get(node.0 as usize).cloned();
        path.unwrap_or_else(|| format!("unknown node {}", node.0))
    }

    #[cold]
    fn check_parts(&mut self, record: EventRecord, latency_ns: u64) {
        let spent = self.spent_ns;
        self.report(format!(
            "at {}: the phases of {:?} sum to {spent} ns, its latency is {latency_ns} ns",
            record.time,
            record.event::<CommonEvent>()
        ));
    }

    #[inline]
    fn state_time(&mut self, now: SimTime, component: ComponentId, time_ns: u64) {
        let Some(total) = self.state_ns.get_mut(component.0 as usize) else {
            return self.unknown_state(component);
        };
        *total = total.saturating_add(time_ns);
        let total = *total;
        if total > now.as_ns() {
            self.too_much_state(now, component, total);
        }
    }

    #[cold]
    fn unknown_state(&mut self, component: ComponentId) {
        let path = self.path(component);
        self.report(format!("{path} emitted a state time"));
    }

    #[cold]
    fn too_much_state(&mut self, now: SimTime, component: ComponentId, total: u64) {
        let path = self.path(component);
        self.report(format!("{path}: {total} ns of state times by {now}"));
    }
}

impl Invariants {
    /// The next event. No function takes the record by reference: the recorder's copy of it, whose
    /// kind is a constant, must not need an address.
    #[inline(always)]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        self.pass_time(record.time);
        match record.event() {
            Some(CommonEvent::Arrived { .. }) => self.arrived += 1,
            Some(CommonEvent::PhaseTime { duration: time, .. }) => {
                self.spent_ns = self.spent_ns.saturating_add(time.as_ns());
            }
            Some(CommonEvent::PhaseTimes { .. }) => {
                self.spent_ns = self.spent_ns.saturating_add(sum(record));
            }
            Some(CommonEvent::Completed { latency, .. }) => {
                self.completed += 1;
                if self.spent_ns != latency.as_ns() {
                    self.check_parts(*record, latency.as_ns());
                }
                self.spent_ns = 0;
                if self.completed > self.arrived {
                    self.more_completed(record.time);
                }
            }
            // These will never complete.
            Some(CommonEvent::PowerCut { lost }) => self.completed += u64::from(lost),
            Some(CommonEvent::StateTime { duration: time, .. }) => {
                self.state_time(record.time, record.component(), time.as_ns())
            }
            Some(CommonEvent::StateTimes { .. }) => {
                self.state_time(record.time, record.component(), sum(record))
            }
            _ => {}
        }
    }

    /// An event was emitted at `now`.
    #[inline(always)]
    pub(crate) fn pass_time(&mut self, now: SimTime) {
        if now < self.last {
            self.back_in_time(now);
        }
        self.last = now;
    }

    #[cold]
    fn back_in_time(&mut self, now: SimTime) {
        self.report(format!("time went back from {} to {now}", self.last));
    }

    #[cold]
    fn more_completed(&mut self, now: SimTime) {
        self.report(format!("at {now} more requests had completed than arrived"));
    }
}

/// The sum of the four times of `record`, in ns.
#[inline(always)]
fn sum(record: &EventRecord) -> u64 {
    let [(_, one), (_, two), (_, three), (_, four)] = Times::of(record);
    one + two + three + four
}

impl EventSink for Invariants {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.add(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ns, record};
    use hybridsim_engine::{LatencyPhase, Lba, Op, PowerState};

    const OP: Op = Op::Read;

    fn arrived(time: u64) -> EventRecord {
        record(time, 0, CommonEvent::Arrived { op: OP, sectors: 8, lba: Lba(0) })
    }
    fn spent(time: u64, phase: LatencyPhase, length: u64) -> EventRecord {
        record(time, 0, CommonEvent::PhaseTime { op: OP, phase, duration: ns(length) })
    }
    fn completed(time: u64, latency: u64) -> EventRecord {
        let event =
            CommonEvent::Completed { op: OP, sectors: 8, lba: Lba(0), latency: ns(latency) };
        record(time, 0, event)
    }
    fn state(time: u64, length: u64) -> EventRecord {
        record(time, 1, CommonEvent::StateTime { state: PowerState::Idle, duration: ns(length) })
    }

    #[track_caller]
    fn check(events: &[EventRecord], end: u64, expect: &[&str]) {
        let mut fold = Invariants::new(vec!["host".into(), "disk".into()]);
        fold.take(events);
        let found = fold.finish(SimTime::from_ns(end), true);
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (found, expect) in found.iter().zip(expect) {
            assert!(found.contains(expect), "{found:?} lacks {expect:?}");
        }
    }

    #[test]
    fn a_sound_run_breaks_nothing() {
        let breakdown = [spent(9, LatencyPhase::Queue, 4), spent(9, LatencyPhase::Bus, 2)];
        let events = [arrived(3), breakdown[0], breakdown[1], completed(9, 6), state(10, 10)];
        check(&events, 10, &[]);
    }

    #[test]
    fn each_rule_is_watched() {
        check(&[arrived(1)], 5, &["1 requests arrived but 0 completed"]);
        check(&[arrived(1), spent(4, LatencyPhase::Bus, 2), completed(4, 3)], 5, &["sum to 2 ns"]);
        check(&[state(5, 3), state(6, 2)], 6, &["5 ns of 6 ns run"]);
        check(&[state(5, 6)], 6, &["disk: 6 ns of state times by 5 ns"]);
        check(&[arrived(5), state(4, 0)], 5, &["back from 5 ns to 4 ns", "1 requests arrived"]);
        check(&[state(7, 7)], 5, &["ended at 5 ns", "7 ns of 5 ns run"]);
        check(&[completed(4, 0)], 5, &["more requests had completed", "0 requests arrived"]);
    }

    #[test]
    fn a_run_broken_off_may_leave_requests_in_flight() {
        let mut fold = Invariants::new(vec!["host".into(), "disk".into()]);
        fold.take(&[arrived(1), state(2, 2)]);
        assert!(fold.finish(SimTime::from_ns(9), false).is_empty());
    }

    #[test]
    fn many_broken_rules_are_counted() {
        let events: Vec<EventRecord> = (0..100).map(|_| completed(4, 1)).collect();
        let mut fold = Invariants::new(Vec::new());
        fold.take(&events);
        let found = fold.finish(SimTime::from_ns(4), true);
        assert_eq!(found.len(), REPORTED_MAX + 1);
        assert_eq!(found[REPORTED_MAX], "and 181 more broken rules");
    }
}
