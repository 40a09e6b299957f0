//! The queue of a device: a scheduler, with priorities, time-outs and merging of requests.
//!
//! - *Priority*: synchronous requests have a scheduler of their own, which is served first.
//! - *Timeout*: requests that have waited too long are served before all others, in the order of a
//!   third scheduler.
//! - *Concatenation*: requests that continue the selected one are merged with it.
//! - *Overlap*: when a request completes, earlier queued requests within its range complete with
//!   it; and a read within the range of a queued write is served from that write.
//!
//! A request served out of turn stays in its scheduler until that selects it, and is then skipped;
//! when stale entries outnumber the waiting requests, the scheduler is refilled.

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{EntryChoice, Kind, Problem};
use hybridsim_config::registry::{Entry, Registry};
use hybridsim_engine::schedule::{Head, Queued, Scheduler};
use hybridsim_engine::sorted::Sorted;
use hybridsim_engine::{
    Flags, Lba, Loader, Op, Request, RequestId, Saver, SimDuration, SimTime, StateError,
};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry as Place;

hybridsim_config::choices! {
    /// Requests with priority.
    enum Priority { None = "none", Sync = "sync" }
}

hybridsim_config::choices! {
    /// Waits after which requests go first.
    enum TimeoutRule { None = "none", Full = "full", Half = "half" }
}

hybridsim_config::choices! {
    /// Requests that are merged.
    enum Concatenate { None = "none", Reads = "reads", Writes = "writes", Both = "both" }
}

hybridsim_config::choices! {
    /// Effect of a request on others in its range.
    enum Overlap {
        Independent = "independent",
        Completed = "completed",
        QueuedWrites = "queued-writes",
    }
}

const TIMES_OUT: Needs = Needs::Not("timeout", &["none"]);
const HALF: Needs = Needs::Is("timeout", &["half"]);

hybridsim_config::params! {
    /// Parameters of a queue.
    pub struct Parameters {
        scheduler: EntryChoice = Kind::Entry(SchedulerEntry::CATEGORY), default "\"fcfs\"",
            "Order in which waiting requests are dispatched to a device";
        priority: Priority = Kind::Choice(Priority::NAMES), default "\"none\"",
            "sync: synchronous requests are dispatched before all others, in the order of \
             `priority_scheduler`";
        priority_scheduler: EntryChoice = Kind::Entry(SchedulerEntry::CATEGORY), default "\"fcfs\""
            needs &[Needs::Any(&[Needs::Is("priority", &["sync"]), HALF])],
            "Order of requests that have priority";
        timeout: TimeoutRule = Kind::Choice(TimeoutRule::NAMES), default "\"none\"",
            "full: requests that have waited for `timeout_after` are dispatched before all \
             others, in the order of `timeout_scheduler`, or, with `priority`, as synchronous \
             requests; half: after half that time they are dispatched before others in that \
             order, after all of it with priority";
        timeout_after: SimDuration = Kind::Duration, default "\"6s\"" needs &[TIMES_OUT],
            "Wait after which a request is dispatched before others";
        timeout_scheduler: EntryChoice = Kind::Entry(SchedulerEntry::CATEGORY), default "\"fcfs\""
            needs &[TIMES_OUT, Needs::Any(&[Needs::Is("priority", &["none"]), HALF])],
            "Order of requests that have waited too long";
        concatenate: Concatenate = Kind::Choice(Concatenate::NAMES), default "\"none\"",
            "Waiting requests that continue the selected one are merged with it";
        concatenate_max: u32 = Kind::Count { min: 1, max: 1 << 22 }, default "128"
            needs &[Needs::Not("concatenate", &["none"])],
            "Most sectors of a merged request";
        overlap: Overlap = Kind::Choice(Overlap::NAMES), default "\"independent\"",
            "completed: waiting requests within the range of a later request complete with it; \
             queued-writes: in addition, reads within a waiting write are served from it";
    }
}

/// The schedulers in the order they are served: DiskSim's priority, timeout and base queues.
const PRIORITISED: usize = 0;
const TIMED_OUT: usize = 1;
const BASE: usize = 2;

/// Which requests may be merged.
#[derive(Clone, Copy, Debug)]
struct Joins {
    reads: bool,
    writes: bool,
    sectors_max: u32,
}

/// Request time-out.
#[derive(Clone, Copy, Debug)]
struct Timeout {
    after: SimDuration,
    half: bool,
}

/// A request of the parent.
#[derive(Clone, Copy, Debug)]
pub struct QueuedRequest {
    /// The parent's number of it.
    pub id: RequestId,
    /// The request.
    pub item: Queued,
}

/// A waiting request, and the scheduler it was last added to.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: QueuedRequest,
    with: usize,
}

/// A device's queue. Keys of items are given by the queue.
pub struct IoQueue {
    schedulers: [Option<Box<dyn Scheduler>>; 3],
    /// Whether there is more than one scheduler.
    several: bool,
    waiting: FxHashMap<u64, Waiting>,
    /// By address, for merging and overlaps; arrival numbers are the keys.
    by_address: Option<Sorted>,
    /// In order of expiry; served requests are skipped.
    ages: VecDeque<(SimTime, u64, bool)>,
    timeout: Option<Timeout>,
    priority: bool,
    joins: Joins,
    /// Whether completions complete overlapped requests, and waiting writes serve reads.
    overlaps: bool,
    answers_reads: bool,
    arrivals: u64,
    /// The first sector after the last request each scheduler chose.
    last: [Lba; 3],
    refill: Vec<Queued>,
}

impl IoQueue {
    /// A queue with these parameters.
    ///
    /// # Errors
    /// Problems of the schedulers, and times that make no sense.
    pub fn read(params: &Parameters, registry: &Registry) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut scheduler = |name: &'static str, choice: &EntryChoice| {
            let (entry, settings) = registry.chosen::<SchedulerEntry>(choice);
            let blame = |problem: Problem| Problem::new(name, problem.to_string());
            let built = (entry.build)(settings);
            built.map_err(|more| problems.extend(more.into_iter().map(blame))).ok()
        };
        let Parameters { concatenate, overlap, timeout, timeout_after: after, .. } = *params;
        let (half, priority) = (timeout == TimeoutRule::Half, params.priority == Priority::Sync);
        let times_out = timeout != TimeoutRule::None;
        let late = times_out.then(|| scheduler("timeout_scheduler", &params.timeout_scheduler));
        let urgent =
            (priority || half).then(|| scheduler("priority_scheduler", &params.priority_scheduler));
        let base = scheduler("scheduler", &params.scheduler);
        let schedulers = [urgent.flatten(), late.flatten(), base];
        if after.is_zero() && times_out {
            problems.push(Problem::new("timeout_after", "must be more than nothing"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let joins = concatenate != Concatenate::None;
        let overlaps = overlap != Overlap::Independent;
        Ok(Self {
            several: schedulers.iter().flatten().count() > 1,
            schedulers,
            waiting: FxHashMap::default(),
            by_address: (joins || overlaps).then(Sorted::default),
            ages: VecDeque::new(),
            timeout: times_out.then_some(Timeout { after, half }),
            priority,
            joins: Joins {
                reads: matches!(concatenate, Concatenate::Reads | Concatenate::Both),
                writes: matches!(concatenate, Concatenate::Writes | Concatenate::Both),
                sectors_max: params.concatenate_max,
            },
            overlaps,
            answers_reads: overlap == Overlap::QueuedWrites,
            arrivals: 0,
            last: [Lba(0); 3],
            refill: Vec::new(),
        })
    }

    /// Whether every write is forwarded as it is. Merged writes could cross the end of a zone, and
    /// an overlapped one would leave its zone unwritten.
    pub fn forwards_writes(&self) -> bool {
        !self.joins.writes && !self.overlaps
    }

    /// Writes its state; no request waits.
    ///
    /// # Errors
    /// If a scheduler cannot be saved, or still lists requests that were served out of turn.
    pub fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(&(self.arrivals, self.last));
        for scheduler in self.schedulers.iter().flatten() {
            if !scheduler.is_empty() {
                return Err(StateError(
                    "its scheduler still lists requests that were joined to others or completed \
                     out of turn"
                        .to_owned(),
                ));
            }
            scheduler.save(to)?;
        }
        Ok(())
    }

    /// Reads back what [`IoQueue::save`] wrote.
    ///
    /// # Errors
    /// If the state belongs to another queue.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        (self.arrivals, self.last) = from.take()?;
        self.schedulers.iter_mut().flatten().try_for_each(|scheduler| scheduler.restore(from))
    }

    /// Requests waiting.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds request `id` of the parent.
    pub fn push(&mut self, id: RequestId, request: Request, since: SimTime) {
        let key = self.arrivals;
        self.arrivals += 1;
        let item = Queued { key, request, since };
        if let Some(by_address) = &mut self.by_address {
            by_address.insert((request.lba.0, key), item);
        }
        let with =
            if self.priority && request.flags.contains(Flags::SYNC) { PRIORITISED } else { BASE };
        self.give(QueuedRequest { id, item }, with);
        if let Some(timeout) = self.timeout {
            let after = if timeout.half { timeout.after / 2 } else { timeout.after };
            self.remember(since + after, key, timeout.half);
        }
    }

    /// Records when a request will have waited for half of its time-out, or all of it.
    fn remember(&mut self, at: SimTime, key: u64, half: bool) {
        if self.ages.back().is_none_or(|(last, ..)| *last <= at) {
            self.ages.push_back((at, key, half));
        } else {
            let place = self.ages.partition_point(|(other, ..)| *other <= at);
            self.ages.insert(place, (at, key, half));
        }
    }

    fn give(&mut self, request: QueuedRequest, with: usize) {
        self.waiting.insert(request.item.key, Waiting { request, with });
        self.schedulers[with].as_mut().expect("built when it may be used").push(request.item);
    }

    /// Moves requests whose time-out has expired to the schedulers for them.
    fn expire(&mut self, now: SimTime) {
        while self.ages.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((at, key, half)) = self.ages.pop_front() else { return };
            let Some(&Waiting { request, with }) = self.waiting.get(&key) else { continue };
            if half {
                let rest = self.timeout.map_or(SimDuration::ZERO, |timeout| timeout.after / 2);
                self.remember(at + rest, key, false);
                if with == BASE {
                    self.give(request, TIMED_OUT);
                }
                continue;
            }
            let first = self.priority || self.timeout.is_some_and(|timeout| timeout.half);
            let late = if first { PRIORITISED } else { TIMED_OUT };
            if with != late {
                self.give(request, late);
            }
        }
    }

    /// Until when the device should stay idle.
    pub fn hold_until(&mut self, head: &Head<'_>) -> Option<SimTime> {
        self.expire(head.now);
        let late = |at: usize| self.schedulers[at].as_ref().is_some_and(|it| !it.is_empty());
        if late(TIMED_OUT) || late(PRIORITISED) {
            return None;
        }
        let head = self.own(head, BASE);
        self.schedulers[BASE].as_mut()?.hold_until(&head)
    }

    /// Head position for scheduler `at`: each of several continues from its own last request, so
    /// that requests served before it do not reset a sweep.
    fn own<'a>(&self, head: &Head<'a>, at: usize) -> Head<'a> {
        Head { last: if self.several { self.last[at] } else { head.last }, ..*head }
    }

    /// The next request.
    pub fn pop(&mut self, head: &Head<'_>) -> Option<QueuedRequest> {
        self.expire(head.now);
        for at in [PRIORITISED, TIMED_OUT, BASE] {
            if self.schedulers[at].is_none() {
                continue;
            }
            let head = &self.own(head, at);
            self.refill_if_stale(at, head);
            while let Some(item) = self.schedulers[at].as_mut()?.pop(head) {
                if let Place::Occupied(place) = self.waiting.entry(item.key)
                    && place.get().with == at
                {
                    let Waiting { request, .. } = place.remove();
                    self.forget_address(&item);
                    if item.request.op != Op::Flush {
                        self.last[at] = item.request.end();
                    }
                    return Some(request);
                }
            }
        }
        None
    }

    /// Refills a scheduler that holds more stale entries than requests.
    fn refill_if_stale(&mut self, at: usize, head: &Head<'_>) {
        let Some(scheduler) = &mut self.schedulers[at] else { return };
        if scheduler.len() <= 64 + 2 * self.waiting.len() {
            return;
        }
        while let Some(item) = scheduler.pop(head) {
            if self.waiting.get(&item.key).is_some_and(|waiting| waiting.with == at) {
                self.refill.push(item);
            }
        }
        self.refill.sort_unstable_by_key(|item| item.key);
        for item in self.refill.drain(..) {
            scheduler.push(item);
        }
    }

    /// Removes a waiting request out of turn.
    fn take(&mut self, key: u64) -> Option<QueuedRequest> {
        let Waiting { request, .. } = self.waiting.remove(&key)?;
        self.forget_address(&request.item);
        Some(request)
    }

    #[inline]
    fn forget_address(&mut self, item: &Queued) {
        if let Some(by_address) = &mut self.by_address {
            by_address.take((item.request.lba.0, item.key));
        }
    }

    fn waiting_item(&self, key: u64) -> Option<Queued> {
        Some(self.waiting.get(&key)?.request.item)
    }

    /// A waiting request that continues one of the same kind that ends at `end`, the joined request
    /// having `sectors` sectors so far.
    pub fn continuing(
        &mut self,
        request: &Request,
        end: u64,
        sectors: u32,
    ) -> Option<QueuedRequest> {
        let joins = match request.op {
            Op::Read => self.joins.reads,
            Op::Write => self.joins.writes,
            Op::Trim | Op::Flush | Op::Zone(_) => false,
        };
        if !joins {
            return None;
        }
        let mut from = self.by_address.as_ref()?.at_or_after(end)?;
        // Several may start there; check a few.
        for _ in 0..8 {
            if from.0 != end {
                return None;
            }
            let next = self.waiting_item(from.1)?.request;
            let fits = sectors.saturating_add(next.sectors) <= self.joins.sectors_max;
            if next.op == request.op && next.flags == request.flags && fits {
                return self.take(from.1);
            }
            from = self.by_address.as_ref()?.after(from)?;
        }
        None
    }

    /// A waiting request that lies within `done`, which came later (its key is `key`) and has been
    /// completed.
    #[inline]
    pub fn covered(&mut self, done: &Request, key: u64) -> Option<QueuedRequest> {
        if !self.overlaps || !matches!(done.op, Op::Read | Op::Write) {
            return None;
        }
        let mut from = self.by_address.as_ref()?.at_or_after(done.lba.0)?;
        loop {
            let item = self.waiting_item(from.1)?;
            let request = item.request;
            let covers = match done.op {
                Op::Read => request.op == Op::Read,
                _ => matches!(request.op, Op::Read | Op::Write),
            };
            let forced = request.flags.contains(Flags::FUA) && !done.flags.contains(Flags::FUA);
            if request.lba.0 >= done.end().0 {
                return None;
            }
            if covers && !forced && item.key < key && request.end() <= done.end() {
                return self.take(item.key);
            }
            from = self.by_address.as_ref()?.after(from)?;
        }
    }

    /// A waiting write that contains the range of `read`.
    pub fn answering(&self, read: &Request) -> Option<Request> {
        if !self.answers_reads || read.op != Op::Read || read.flags.contains(Flags::FUA) {
            return None;
        }
        let by_address = self.by_address.as_ref()?;
        let mut at = by_address.below(read.lba.0.saturating_add(1))?;
        // Writes that start far before are rare; check a few.
        for _ in 0..8 {
            let request = self.waiting_item(at.1)?.request;
            if request.op == Op::Write && request.end() >= read.end() {
                return Some(request);
            }
            at = by_address.below(at.0)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_host::scheduler::fcfs::Fcfs;

    fn queue(priority: bool, timeout: Option<Timeout>) -> IoQueue {
        let fcfs = || Some(Box::new(Fcfs::default()) as Box<dyn Scheduler>);
        IoQueue {
            schedulers: [fcfs(), fcfs(), fcfs()],
            several: true,
            waiting: FxHashMap::default(),
            by_address: None,
            ages: VecDeque::new(),
            timeout,
            priority,
            joins: Joins { reads: false, writes: false, sectors_max: 1 },
            overlaps: false,
            answers_reads: false,
            arrivals: 0,
            last: [Lba(0); 3],
            refill: Vec::new(),
        }
    }

    /// Order at `now` of requests that arrive at these milliseconds, synchronous or not.
    fn order(mut queue: IoQueue, requests: &[(u64, bool)], now: u64) -> Vec<u64> {
        let at = |ms: u64| SimTime::from_ns(ms * 1_000_000);
        for &(ms, urgent) in requests {
            let flags = if urgent { Flags::SYNC } else { Flags::NONE };
            let request = Request { flags, ..Request::new(Op::Read, Lba(ms), 1) };
            queue.push(RequestId(0), request, at(ms));
        }
        let head = Head { now: at(now), last: Lba(0), positioner: None };
        std::iter::from_fn(|| queue.pop(&head)).map(|it| it.item.request.lba.0).collect()
    }

    #[test]
    fn who_is_urgent_or_late_goes_first() {
        let work = [(0, false), (10, false), (20, true), (30, false)];
        let timeout = |half| Some(Timeout { after: SimDuration::from_ms(20), half });
        assert_eq!(order(queue(false, None), &work, 31), [0, 10, 20, 30]);
        assert_eq!(order(queue(true, None), &work, 31), [20, 0, 10, 30]);
        // Requests that waited for 20 ms are first; with priorities, after synchronous requests.
        assert_eq!(order(queue(false, timeout(false)), &work, 25), [0, 10, 20, 30]);
        assert_eq!(order(queue(true, timeout(false)), &work, 31), [20, 0, 10, 30]);
        let late = [(0, true), (5, false), (20, false), (24, true)];
        assert_eq!(order(queue(true, timeout(false)), &late, 24), [0, 24, 5, 20]);
        assert_eq!(order(queue(true, timeout(false)), &late, 25), [0, 24, 5, 20]);
        // Half of the time is enough to pass those who have not waited so long.
        assert_eq!(order(queue(true, timeout(true)), &late, 31), [0, 24, 5, 20]);
        let swept = [(20, false), (5, false)];
        assert_eq!(order(queue(false, timeout(true)), &swept, 16), [5, 20]);
        assert_eq!(order(queue(false, timeout(true)), &swept, 14), [20, 5]);
    }

    /// Holds its requests for ever.
    struct Holding(Fcfs);

    impl Scheduler for Holding {
        fn push(&mut self, item: Queued) {
            self.0.push(item);
        }
        fn pop(&mut self, head: &Head<'_>) -> Option<Queued> {
            self.0.pop(head)
        }
        fn len(&self) -> usize {
            self.0.len()
        }
        fn hold_until(&mut self, _: &Head<'_>) -> Option<SimTime> {
            Some(SimTime::NEVER)
        }
    }

    #[test]
    fn a_scheduler_holds_no_requests_that_are_urgent_or_late() {
        let head = Head { now: SimTime::ZERO, last: Lba(0), positioner: None };
        let timeout = Some(Timeout { after: SimDuration::from_ms(20), half: false });
        let held = |priority, flags, now| {
            let mut queue = queue(priority, timeout);
            queue.schedulers[BASE] = Some(Box::new(Holding(Fcfs::default())));
            for (flags, lba) in [(Flags::NONE, 1), (flags, 2)] {
                let request = Request { flags, ..Request::new(Op::Read, Lba(lba), 1) };
                queue.push(RequestId(0), request, SimTime::ZERO);
            }
            queue.hold_until(&Head { now: SimTime::ZERO + SimDuration::from_ms(now), ..head })
        };
        assert_eq!(held(true, Flags::NONE, 19), Some(SimTime::NEVER));
        assert_eq!(held(true, Flags::SYNC, 19), None, "one is urgent");
        assert_eq!(held(false, Flags::SYNC, 19), Some(SimTime::NEVER), "there is no priority");
        assert_eq!(held(false, Flags::NONE, 20), None, "both are late");
    }

    #[test]
    fn requests_are_joined_after_a_restart_from_a_saved_state() {
        let joining = || {
            let joins = Joins { reads: true, writes: true, sectors_max: 128 };
            IoQueue { by_address: Some(Sorted::default()), joins, ..queue(false, None) }
        };
        let head = Head { now: SimTime::ZERO, last: Lba(0), positioner: None };
        // The first address after the joined requests, the request left, and whether it was all.
        let serve = |queue: &mut IoQueue| {
            for lba in [8, 9, 10, 40] {
                queue.push(RequestId(0), Request::new(Op::Write, Lba(lba), 1), SimTime::ZERO);
            }
            let first = queue.pop(&head).expect("it was added").item.request;
            let mut end = first.end().0;
            while queue.continuing(&first, end, 1).is_some() {
                end += 1;
            }
            let last = queue.pop(&head).expect("it was added").item.request.lba.0;
            (end, last, queue.pop(&head).is_none())
        };
        let mut before = joining();
        assert_eq!(serve(&mut before), (11, 40, true));
        let mut saver = Saver::default();
        before.save(&mut saver).expect("nothing waits");
        let state = saver.into_bytes();
        let mut after = joining();
        after.restore(&mut Loader::new(&state)).expect("it is of such a queue");
        assert_eq!(serve(&mut after), (11, 40, true));
    }
}
