//! Sums over the events of the workload and of each component.

use crate::backlog::Backlogs;
use crate::events::AnyEvent::{self, Common};
use crate::metrics::ComponentFold;
use hybridsim_engine::{CommonEvent, ComponentId, EventRecord, EventSink, Op, SimTime};

const OPS: usize = Op::COUNT;

/// The fold: sums by component, and of the workload.
#[derive(Clone, Debug)]
pub struct Counters {
    components: Vec<ComponentFold>,
    from: u64,
    /// Backlogs of the host, which is the root.
    pub(crate) backlogs: Backlogs,
    /// Requests arrived, by operation.
    pub arrived: [u64; OPS],
    /// Requests completed, by operation.
    pub completed: [u64; OPS],
    /// Sectors of completed requests, by operation.
    pub sectors: [u64; OPS],
    /// Requests that the system could not serve.
    pub failed: u64,
    /// Arrival of the last request, in ns.
    pub last_arrival_ns: u64,
    /// Completion of the last request, in ns.
    pub last_completion_ns: u64,
    /// Power failures.
    pub power_cuts: u64,
    /// Requests of the workload in flight at one, which never complete.
    pub requests_lost: u64,
}

impl Counters {
    /// Sums over what happens after `from` in a system of `components` components.
    pub fn new(components: usize, from: SimTime) -> Self {
        Self {
            components: vec![ComponentFold::default(); components],
            from: from.as_ns(),
            backlogs: Backlogs::default(),
            arrived: [0; OPS],
            completed: [0; OPS],
            sectors: [0; OPS],
            failed: 0,
            last_arrival_ns: 0,
            last_completion_ns: 0,
            power_cuts: 0,
            requests_lost: 0,
        }
    }

    /// Sums over what happens after `from`, later on in the same run: levels are what they are,
    /// and power failures are those of the whole run.
    #[must_use]
    pub fn measured_from(&self, from: SimTime) -> Self {
        Self {
            components: self.components.iter().map(|it| it.measured_from(from.as_ns())).collect(),
            last_arrival_ns: self.last_arrival_ns,
            last_completion_ns: self.last_completion_ns,
            power_cuts: self.power_cuts,
            requests_lost: self.requests_lost,
            backlogs: self.backlogs.measured_later(),
            ..Self::new(0, from)
        }
    }

    pub(crate) fn components(&self) -> &[ComponentFold] {
        &self.components
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, record: &EventRecord) {
        let now = record.time.as_ns();
        match AnyEvent::of(record) {
            Some(Common(CommonEvent::Arrived { op, .. })) => {
                self.arrived[op.index()] += 1;
                self.last_arrival_ns = now;
            }
            Some(Common(CommonEvent::Completed { op, sectors, .. })) => {
                self.last_completion_ns = now;
                self.completed[op.index()] += 1;
                self.sectors[op.index()] += u64::from(sectors);
            }
            Some(Common(CommonEvent::PhaseTime { .. } | CommonEvent::PhaseTimes { .. })) => {}
            Some(Common(CommonEvent::Failed { .. })) => self.failed += 1,
            Some(Common(CommonEvent::PowerCut { lost })) => {
                self.power_cuts += 1;
                self.requests_lost += u64::from(lost);
            }
            event => {
                if let Some(Common(CommonEvent::QueueDepth { depth })) = event
                    && record.component() == ComponentId(0)
                {
                    self.backlogs.add(now, u64::from(depth));
                }
                // A component that the system did not describe has no results.
                if let Some((component, from)) = self.component(record.component()) {
                    component.add(record, from);
                }
            }
        }
    }

    /// The sums of a component that the system described, and the start of the window.
    #[inline(always)]
    pub(crate) fn component(&mut self, id: ComponentId) -> Option<(&mut ComponentFold, u64)> {
        Some((self.components.get_mut(id.0 as usize)?, self.from))
    }
}

impl EventSink for Counters {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|record| self.add(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Component;
    use crate::testing::{every_event, ns, record};
    use hybridsim_cache::CacheEvent;
    use hybridsim_disk::{DiskCacheOutcome, DiskEvent};
    use hybridsim_engine::{ComponentInfo, Event, PowerState};
    use hybridsim_flash::{Cause, FlashEvent};

    fn fold(nodes: usize, from: u64, events: &[EventRecord]) -> Counters {
        let mut counters = Counters::new(nodes, SimTime::from_ns(from));
        counters.take(events);
        counters
    }

    #[test]
    fn every_event_is_counted_at_its_component() {
        fn one(event: impl Event) -> Component {
            let counters = fold(2, 0, &[record(100, 1, event)]);
            counters.components()[1].results(&ComponentInfo::default(), 1, 100)
        }
        let disk = one(DiskEvent::Seek { distance: 7, duration: ns(9) }).disk.expect("a disk");
        assert_eq!((disk.seeks, disk.seek_cylinders_mean, disk.seek_ns), (1, Some(7.0), 9));
        let (op, outcome) = (Op::Write, DiskCacheOutcome::Buffered);
        let disk = one(DiskEvent::DiskCache { op, outcome }).disk.expect("a disk");
        assert_eq!((disk.buffer_writes.buffered, disk.buffer_reads.buffered), (1, 0));
        let of = |event: FlashEvent| one(event).flash.expect("a flash device");
        assert_eq!(of(FlashEvent::Program { cause: Cause::Gc, die: 3 }).gc_programs, 1);
        let wear = of(FlashEvent::Wear { erases: 3, blocks: 10 }).erase_count.expect("its wear");
        assert_eq!((wear.blocks, wear.max), (10, 3));
        let search = fold(2, 0, &[record(100, 1, FlashEvent::VictimSearch { blocks: 9 })]);
        assert_eq!(search.components()[1].flash.count("victim_search"), 9);
        let (cause, block) = (Cause::Gc, u32::MAX);
        assert_eq!(of(FlashEvent::Erase { cause, die: 0, block, erases: 7 }).erases, 1);
        let of = |event: CacheEvent| one(event).cache.expect("a cache");
        let lookup = of(CacheEvent::CacheLookup { op, hits: 2, misses: 5 });
        assert_eq!((lookup.write_hits, lookup.write_misses, lookup.read_hits), (2, 5, 0));
        let bypass = of(CacheEvent::Bypassed { op: Op::Read, sectors: 16 });
        assert_eq!((bypass.bypasses, bypass.bypassed_bytes), (1, 8192));
        let destage = of(CacheEvent::Destaged { sectors: 64 });
        assert_eq!((destage.destages, destage.destaged_bytes), (1, 32_768));
        let custom = one(CommonEvent::Custom { name: 255, value: u64::MAX });
        assert_eq!(custom.custom["number 255"].max, u64::MAX);
    }

    #[test]
    fn nodes_never_described_do_no_harm() {
        let counters = fold(0, 0, &every_event());
        assert_eq!((counters.components().len(), counters.arrived.iter().sum()), (0, 1u64));
    }

    #[test]
    fn spans_reported_together_count_from_the_start_of_the_window() {
        let span =
            |now, state, time| record(now, 0, CommonEvent::StateTime { state, duration: ns(time) });
        let (idle, seek, read) = (PowerState::Idle, PowerState::Seek, PowerState::Read);
        let mut counters = fold(1, 0, &[span(20, read, 20)]);
        counters = counters.measured_from(SimTime::from_ns(70));
        // Idle to 50, seek to 80, read to 100, all reported at 100: the window has 10 + 20 of it.
        counters.take(&[span(100, idle, 30), span(100, seek, 30), span(100, read, 20)]);
        let of = |state: PowerState| counters.components()[0].power.state_ns[state as usize];
        assert_eq!((of(idle), of(seek), of(read)), (0, 10, 20));
    }

    #[test]
    fn a_level_goes_on_where_the_warm_up_left_it() {
        let depth = |now, depth| record(now, 0, CommonEvent::QueueDepth { depth });
        let mut counters = fold(1, 0, &[depth(10, 90), depth(20, 8)]);
        counters = counters.measured_from(SimTime::from_ns(50));
        let queue = |counters: &Counters, end| {
            counters.components()[0].results(&ComponentInfo::default(), 1, end).queue.expect("one")
        };
        let before = queue(&counters, 60);
        assert_eq!((before.queue_depth_max, before.queue_depth_mean), (8, Some(8.0)));
        counters.take(&[depth(60, 2)]);
        assert_eq!(queue(&counters, 70).queue_depth_mean, Some(5.0));
        let failed = fold(1, 0, &[record(1, 0, CommonEvent::PowerCut { lost: 3 })]);
        let failed = failed.measured_from(SimTime::from_ns(50));
        assert_eq!((failed.power_cuts, failed.requests_lost), (1, 3));
    }

    #[test]
    fn a_spin_up_reported_in_intervals_is_one() {
        let state =
            |time, state| record(time, 0, CommonEvent::StateTime { state, duration: ns(1) });
        let (up, idle) = (PowerState::SpinUp, PowerState::Idle);
        let events = [state(1, up), state(2, up), state(3, idle), state(4, up)];
        assert_eq!(fold(1, 0, &events).components()[0].power.spin_ups, 2);
    }
}
