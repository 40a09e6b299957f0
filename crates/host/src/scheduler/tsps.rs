//! The travelling salesman: plans the fastest order of several requests and serves them in it.
//!
//! The plan is exact: every subset of the oldest `window` requests is considered (Held and Karp
//! 1962), each leg from where and when the one before would end by the device's own estimates. A
//! new plan is made when the previous one is complete, so a request waits for at most one plan once
//! it is among the oldest.

use super::entry;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::Kind;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Lba, SimTime};
use std::collections::VecDeque;

hybridsim_config::params! {
    struct Parameters {
        window: usize = Kind::Count { min: 1, max: 12 }, default "8",
            "Requests in a plan; each more doubles the run time of planning";
    }
}

pub const ENTRY: SchedulerEntry = entry(
    "tsps",
    "plans the fastest order of the oldest requests and serves them in it",
    "DiskSim's TSPS (27); Held and Karp 1962",
    Parameters::PARAMS,
    |settings| Ok(Box::new(Tsps::new(Parameters::from_settings(settings).window))),
);

/// The fastest way to serve a subset that ends with a given request.
#[derive(Clone, Copy, Debug)]
struct Route {
    end: SimTime,
    /// The request served before the last.
    before: u8,
}

/// Requests in order of arrival, and those of the current plan.
#[derive(Debug)]
struct Tsps {
    queue: VecDeque<Queued>,
    plan: VecDeque<Queued>,
    table: Vec<Route>,
    window: usize,
}

impl Tsps {
    fn new(window: usize) -> Self {
        Self { queue: VecDeque::new(), plan: VecDeque::new(), table: Vec::new(), window }
    }

    fn leg(head: &Head<'_>, from: Lba, start: SimTime, item: &Queued) -> SimTime {
        match head.positioner {
            Some(device) => {
                let time = device.positioning(start, from, &item.request);
                start + time + device.transfer(&item.request)
            }
            None => {
                let distance = item.request.lba.0.abs_diff(from.0);
                SimTime::from_ns(start.as_ns().saturating_add(distance))
            }
        }
    }

    fn make_plan(&mut self, head: &Head<'_>) {
        let count = self.window.min(self.queue.len());
        let never = Route { end: SimTime::NEVER, before: u8::MAX };
        self.table.clear();
        self.table.resize(count << count, never);
        for last in 0..count {
            let end = Self::leg(head, head.last, head.now, &self.queue[last]);
            self.table[(1 << last) * count + last] = Route { end, before: u8::MAX };
        }
        for set in 1usize..1 << count {
            for last in (0..count).filter(|last| set >> last & 1 == 1) {
                let from = self.table[set * count + last];
                for next in (0..count).filter(|next| set >> next & 1 == 0) {
                    let start = self.queue[last].request.end();
                    let end = Self::leg(head, start, from.end, &self.queue[next]);
                    let route = &mut self.table[(set | 1 << next) * count + next];
                    if end < route.end || route.before == u8::MAX {
                        *route = Route { end, before: last as u8 };
                    }
                }
            }
        }
        self.follow_back(count);
    }

    /// Moves the requests of the fastest route to the plan, following the table back from its end.
    fn follow_back(&mut self, count: usize) {
        let mut set = (1 << count) - 1;
        let ends = (0..count).map(|last| (self.table[set * count + last].end, last));
        let Some((_, mut last)) = ends.min() else { return };
        loop {
            self.plan.push_front(self.queue[last]);
            let before = self.table[set * count + last].before;
            set &= !(1 << last);
            if set == 0 {
                break;
            }
            last = before as usize;
        }
        self.queue.drain(..count);
    }
}

impl Scheduler for Tsps {
    fn push(&mut self, item: Queued) {
        self.queue.push_back(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        if self.plan.is_empty() && !self.queue.is_empty() {
            self.make_plan(head);
        }
        self.plan.pop_front()
    }

    fn len(&self) -> usize {
        self.queue.len() + self.plan.len()
    }

    hybridsim_engine::saves!();
}
