//! Shortest mimicked time first: the request whose expected service time is shortest, as learnt
//! from the requests served so far.
//!
//! Popovici, Arpaci-Dusseau and Arpaci-Dusseau (USENIX 2003, the Disk Mimic), which bisson-fqueue
//! cites: the host does not know the disk, so it records the time of each request by its direction,
//! the direction of the request before and the logical distance between them, and takes the mean of
//! what it has seen. Distances are kept in octaves here (assumed; the original samples them and
//! interpolates). A distance never seen takes the mean of the nearest octaves that were, and the
//! distance itself breaks ties, so that an untrained queue is served like `sstf`.
//!
//! The time of a request is that between two decisions, as long as the queue was not empty in
//! between: the host sees completions, not the arm. It needs a device that serves one request at a
//! time. Distant requests can starve.

use super::entry;
use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::Kind;
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::{Lba, Loader, Op, Saver, SimTime, StateError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

hybridsim_config::params! {
    struct Parameters {
        window: usize = Kind::Count { min: 1, max: 65_536 }, default "256",
            "The oldest waiting requests that are compared; the run time of a decision grows with \
             it";
        memory: u64 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "10000",
            "Requests after which a mean moves no slower, so that it follows a changing disk";
    }
}

pub const ENTRY: SchedulerEntry = entry(
    "smtf",
    "the request with the shortest expected time, learnt from those served",
    "Popovici et al. 2003, the Disk Mimic; bisson-fqueue, section V",
    Parameters::PARAMS,
    |settings| {
        let params = Parameters::from_settings(settings);
        Ok(Box::new(ShortestMimicked {
            queue: VecDeque::new(),
            window: params.window,
            learnt: Learnt::new(params.memory),
            dispatched: None,
            busy: false,
        }))
    },
);

/// Octaves of distance in either direction, and distance 0.
const OCTAVES: usize = 64;
const CELLS: usize = 2 * OCTAVES + 1;

/// Mean times by direction of two successive requests and by distance.
#[derive(Debug, Serialize, Deserialize)]
struct Learnt {
    /// Mean in nanoseconds, and the number of requests it is of.
    cells: Vec<(u64, u64)>,
    memory: u64,
}

impl Learnt {
    fn new(memory: u64) -> Self {
        Self { cells: vec![(0, 0); 4 * CELLS], memory }
    }

    fn kind(before: Op, op: Op) -> usize {
        2 * usize::from(before == Op::Write) + usize::from(op == Op::Write)
    }

    /// The cell of a distance from `last` to `to`: ahead in the upper half.
    fn cell(last: Lba, to: Lba) -> usize {
        let octave = |distance: u64| 64 - distance.leading_zeros() as usize;
        match to.0.cmp(&last.0) {
            std::cmp::Ordering::Equal => OCTAVES,
            std::cmp::Ordering::Greater => OCTAVES + octave(to.0 - last.0),
            std::cmp::Ordering::Less => OCTAVES - octave(last.0 - to.0),
        }
    }

    fn add(&mut self, kind: usize, cell: usize, ns: u64) {
        let (mean, count) = &mut self.cells[kind * CELLS + cell];
        *count = (*count + 1).min(self.memory);
        let (old, new) = (i128::from(*mean), i128::from(ns));
        *mean = (old + (new - old) / i128::from(*count)) as u64;
    }

    /// The expected time, from the nearest cells seen on either side; 0 before anything was.
    fn expected(&self, kind: usize, cell: usize) -> u64 {
        let cells = &self.cells[kind * CELLS..(kind + 1) * CELLS];
        let seen = |at: usize| Some(cells[at]).filter(|(_, count)| *count > 0).map(|cell| cell.0);
        let below = (0..=cell).rev().find_map(|at| Some((cell - at, seen(at)?)));
        let above = (cell..CELLS).find_map(|at| Some((at - cell, seen(at)?)));
        match (below, above) {
            (Some((0, mean)), _) => mean,
            (Some((down, low)), Some((up, high))) => {
                let (down, up) = (down as u128, up as u128);
                let both = u128::from(low) * up + u128::from(high) * down;
                (both / (down + up)) as u64
            }
            (one, other) => one.or(other).map_or(0, |(_, mean)| mean),
        }
    }
}

/// The request whose service is being timed.
#[derive(Clone, Copy, Debug)]
struct Dispatched {
    at: SimTime,
    kind: usize,
    cell: usize,
    op: Op,
}

/// Requests in order of arrival; the one with the shortest expected time is dispatched.
#[derive(Debug)]
struct ShortestMimicked {
    queue: VecDeque<Queued>,
    window: usize,
    learnt: Learnt,
    dispatched: Option<Dispatched>,
    /// A request has waited since the last one was dispatched, so that the next decision is made
    /// when that completes.
    busy: bool,
}

impl Scheduler for ShortestMimicked {
    fn push(&mut self, item: Queued) {
        self.queue.push_back(item);
    }

    fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
        let before = self.dispatched.map_or(Op::Read, |last| last.op);
        if let Some(last) = self.dispatched.filter(|_| self.busy) {
            self.learnt.add(last.kind, last.cell, head.now.since(last.at).as_ns());
        }
        let cost = |item: &Queued| {
            let kind = Learnt::kind(before, item.request.op);
            let expected = self.learnt.expected(kind, Learnt::cell(head.last, item.request.lba));
            (expected, item.request.lba.0.abs_diff(head.last.0))
        };
        let window = self.queue.iter().take(self.window).enumerate();
        let (at, _) = window.min_by_key(|(at, item)| (cost(item), *at))?;
        let item = self.queue.remove(at)?;
        let kind = Learnt::kind(before, item.request.op);
        let cell = Learnt::cell(head.last, item.request.lba);
        self.dispatched = Some(Dispatched { at: head.now, kind, cell, op: item.request.op });
        self.busy = !self.queue.is_empty();
        Some(item)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        // The queue is empty, so no time is being taken.
        to.put(&(&self.learnt, self.dispatched.map(|last| last.op == Op::Write)));
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let last: Option<bool>;
        (self.learnt, last) = from.take()?;
        let op = |write| if write { Op::Write } else { Op::Read };
        self.dispatched =
            last.map(|write| Dispatched { at: SimTime::ZERO, kind: 0, cell: 0, op: op(write) });
        self.busy = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_engine::{Request, SimDuration};

    fn scheduler() -> ShortestMimicked {
        ShortestMimicked {
            queue: VecDeque::new(),
            window: 256,
            learnt: Learnt::new(10_000),
            dispatched: None,
            busy: false,
        }
    }

    fn at(key: u64, lba: u64) -> Queued {
        Queued { key, request: Request::new(Op::Write, Lba(lba), 8), since: SimTime::ZERO }
    }

    fn head(last: u64, now_us: u64) -> Head<'static> {
        let now = SimTime::ZERO + SimDuration::from_us(now_us);
        Head { now, last: Lba(last), positioner: None }
    }

    #[test]
    fn untrained_it_takes_the_nearest() {
        let mut smtf = scheduler();
        [at(0, 9000), at(1, 1200), at(2, 400)].into_iter().for_each(|item| smtf.push(item));
        let order: Vec<_> = (0..3).map(|_| smtf.pop(&head(1000, 0)).expect("waits").key).collect();
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn it_learns_that_a_long_way_may_be_short() {
        let mut smtf = scheduler();
        let kind = Learnt::kind(Op::Write, Op::Write);
        // Just ahead costs a turn, far ahead only a seek.
        smtf.learnt.add(kind, Learnt::cell(Lba(0), Lba(100)), 8_000);
        smtf.learnt.add(kind, Learnt::cell(Lba(0), Lba(5000)), 3_000);
        smtf.dispatched = Some(Dispatched { at: SimTime::ZERO, kind, cell: 0, op: Op::Write });
        [at(0, 100), at(1, 5000)].into_iter().for_each(|item| smtf.push(item));
        assert_eq!(smtf.pop(&head(0, 10)).expect("waits").key, 1);
    }

    #[test]
    fn times_are_taken_between_decisions_of_a_busy_queue() {
        let mut smtf = scheduler();
        [at(0, 0), at(1, 100)].into_iter().for_each(|item| smtf.push(item));
        smtf.pop(&head(0, 0)).expect("waits");
        smtf.pop(&head(8, 500)).expect("waits");
        let kind = Learnt::kind(Op::Read, Op::Write);
        assert_eq!(smtf.learnt.expected(kind, OCTAVES), 500_000, "the first took 500 us");
        // The queue ran empty: how long the second took is unknown.
        smtf.push(at(2, 200));
        smtf.pop(&head(108, 900_000)).expect("waits");
        let kind = Learnt::kind(Op::Write, Op::Write);
        assert_eq!(smtf.learnt.expected(kind, Learnt::cell(Lba(8), Lba(100))), 0);
    }
}
