//! What happened how often and took how long, per node.

use crate::events::AnyEvent::{self, Cache, Common, Disk, Flash};
use hybridsim_cache::CacheEvent;
use hybridsim_disk::{DiskCacheOutcome, DiskEvent};
use hybridsim_engine::{CommonEvent, EventRecord, EventSink, Op, PowerState, SimTime};
use hybridsim_flash::{Cause, FlashEvent};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

const OPS: usize = Op::ALL.len();
const OUTCOMES: usize = 4;
/// Values of `CommonEvent::Custom` kept apart per node.
const CUSTOM: usize = 256;

/// A level that changes at known times: mean over time, least and most.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The value now.
    pub now: u64,
    /// The least value.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
    since: u64,
    first: u64,
    integral: u128,
}

impl Level {
    /// A level first told at `time` ns.
    pub const fn new(time: u64, value: u64) -> Self {
        Self { now: value, min: value, max: value, since: time, first: time, integral: 0 }
    }

    /// The level is `value` from `time` ns on.
    #[inline]
    pub fn set(&mut self, time: u64, value: u64) {
        self.integral += u128::from(self.now) * u128::from(time.saturating_sub(self.since));
        self.since = time;
        self.now = value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Mean over the time from the first value to `end` ns.
    pub fn mean(&self, end: u64) -> Option<f64> {
        let last = u128::from(self.now) * u128::from(end.saturating_sub(self.since));
        let span = end.saturating_sub(self.first);
        (span > 0).then(|| (self.integral + last) as f64 / span as f64)
    }
}

/// Statistics of one of an extension's own numbers.
#[derive(Clone, Copy, Debug)]
pub struct Custom {
    /// How often it was told.
    pub count: u64,
    /// Sum of its values.
    pub sum: u128,
    /// Least value.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
    /// Last value.
    pub last: u64,
}

/// Sums of one node. Times are in ns.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Disk arm movements.
    pub seeks: u64,
    /// Cylinders crossed in all.
    pub seek_cylinders: u64,
    /// Time spent moving the arm.
    pub seek_ns: u64,
    /// Waits for a sector to come round.
    pub rotations: u64,
    /// Time spent in such waits.
    pub rotation_ns: u64,
    /// Transfers between medium and buffer.
    pub transfers: u64,
    /// Sectors moved by them.
    pub transfer_sectors: u64,
    /// Time spent in them.
    pub transfer_ns: u64,
    /// Requests by what the disk's buffer did, by operation and outcome.
    pub disk_cache: [[u64; OUTCOMES]; OPS],
    /// Time by power state.
    pub state_ns: [u64; PowerState::COUNT],
    /// Changes into [`PowerState::SpinUp`].
    pub spin_ups: u64,
    /// Flash pages read, by cause.
    pub flash_reads: [u64; Cause::ALL.len()],
    /// Flash pages programmed, by cause.
    pub flash_programs: [u64; Cause::ALL.len()],
    /// Flash blocks erased, by cause.
    pub flash_erases: [u64; Cause::ALL.len()],
    /// Erases of each block that was erased; only sums and maxima of them are ever told, so their
    /// order does not matter.
    pub erases_by_block: FxHashMap<u32, u64>,
    /// Pages asked for that held nothing.
    pub unwritten_reads: u64,
    /// Searches for a victim.
    pub searches: u64,
    /// Blocks looked at in them.
    pub searched_blocks: u64,
    /// Free blocks.
    pub free_blocks: Option<Level>,
    /// Blocks by how often they were erased, at the end.
    pub wear: BTreeMap<u32, u64>,
    /// Requests that asked a cache.
    pub lookups: u64,
    /// Pages found in a cache, by operation.
    pub hits: [u64; OPS],
    /// Pages not found, by operation.
    pub misses: [u64; OPS],
    /// Requests that went round a cache.
    pub bypasses: u64,
    /// Sectors of these.
    pub bypassed_sectors: u64,
    /// Writes back to the slow medium.
    pub destages: u64,
    /// Sectors of these.
    pub destaged_sectors: u64,
    /// Cleanings begun.
    pub cleanups: u64,
    /// Pages made free by cleanings.
    pub cleaned_pages: u64,
    /// Dirty pages.
    pub dirty_pages: Option<Level>,
    /// Requests waiting.
    pub queue_depth: Option<Level>,
    /// Returns to service after power failures.
    pub recoveries: u64,
    /// Time they took.
    pub recovery_ns: u64,
    /// The longest of them.
    pub recovery_ns_max: u64,
    /// An extension's own numbers, by name index.
    pub custom: Vec<Option<Custom>>,
    last_state: Option<PowerState>,
    /// How the node spent its time is told up to here.
    told_ns: u64,
}

/// The fold: sums per node, and of the workload.
#[derive(Clone, Debug)]
pub struct Counters {
    nodes: Vec<Node>,
    from: u64,
    /// Requests arrived, by operation.
    pub arrived: [u64; OPS],
    /// Requests completed, by operation.
    pub completed: [u64; OPS],
    /// Sectors of completed requests, by operation.
    pub sectors: [u64; OPS],
    /// When the last request arrived, in ns.
    pub last_arrival_ns: u64,
    /// When the last one completed, in ns.
    pub last_completion_ns: u64,
    /// Power failures.
    pub power_cuts: u64,
    /// Requests of the workload they took away.
    pub requests_lost: u64,
}

impl Counters {
    /// Sums over what happens after `from` in a system of `nodes` nodes.
    pub fn new(nodes: usize, from: SimTime) -> Self {
        Self {
            nodes: vec![Node::default(); nodes],
            from: from.as_ns(),
            arrived: [0; OPS],
            completed: [0; OPS],
            sectors: [0; OPS],
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
        let from_ns = from.as_ns();
        let goes_on = |level: Option<Level>| level.map(|level| Level::new(from_ns, level.now));
        let node = |node: &Node| Node {
            told_ns: node.told_ns,
            free_blocks: goes_on(node.free_blocks),
            dirty_pages: goes_on(node.dirty_pages),
            queue_depth: goes_on(node.queue_depth),
            ..Node::default()
        };
        Self {
            nodes: self.nodes.iter().map(node).collect(),
            last_arrival_ns: self.last_arrival_ns,
            last_completion_ns: self.last_completion_ns,
            power_cuts: self.power_cuts,
            requests_lost: self.requests_lost,
            ..Self::new(0, from)
        }
    }

    /// Sums by node number.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node's sums; nodes the system did not describe are added as they speak.
    #[inline]
    fn node(&mut self, stamped: &EventRecord) -> &mut Node {
        let at = stamped.component.0 as usize;
        if at >= self.nodes.len() {
            self.grow(at);
        }
        &mut self.nodes[at]
    }

    #[cold]
    fn grow(&mut self, at: usize) {
        self.nodes.resize(at + 1, Node::default());
    }
}

impl Counters {
    /// The next event.
    #[inline(always)]
    pub(crate) fn add(&mut self, stamped: &EventRecord) {
        let now = stamped.time.as_ns();
        match AnyEvent::of(stamped) {
            Some(Common(CommonEvent::Arrived { op, .. })) => {
                self.arrived[op as usize] += 1;
                self.last_arrival_ns = now;
            }
            Some(Common(CommonEvent::Completed { op, sectors, .. })) => {
                self.last_completion_ns = now;
                self.completed[op as usize] += 1;
                self.sectors[op as usize] += u64::from(sectors);
            }
            Some(Common(CommonEvent::PhaseTime { .. })) => {}
            Some(Common(CommonEvent::PowerCut { lost })) => {
                self.power_cuts += 1;
                self.requests_lost += u64::from(lost);
            }
            Some(Common(CommonEvent::StateTime { state, duration: time })) => {
                let from = self.from;
                self.node(stamped).state_time(state, time.as_ns(), from);
            }
            _ => self.node(stamped).take(stamped, now),
        }
    }
}

impl EventSink for Counters {
    fn take(&mut self, events: &[EventRecord]) {
        events.iter().for_each(|stamped| self.add(stamped));
    }
}

impl Node {
    /// The spans of a node lie end to end from time zero on; what counts is after `from`.
    #[inline]
    fn state_time(&mut self, state: PowerState, ns: u64, from: u64) {
        let begin = self.told_ns.max(from);
        self.told_ns = self.told_ns.saturating_add(ns);
        let ns = self.told_ns.saturating_sub(begin);
        if ns == 0 {
            return;
        }
        let total = &mut self.state_ns[state as usize];
        *total = total.saturating_add(ns);
        if state == PowerState::SpinUp && self.last_state != Some(state) {
            self.spin_ups += 1;
        }
        self.last_state = Some(state);
    }

    #[inline(always)]
    fn take(&mut self, stamped: &EventRecord, now: u64) {
        match AnyEvent::of(stamped) {
            Some(Flash(FlashEvent::Read { cause, .. })) => self.flash_reads[cause as usize] += 1,
            Some(Flash(FlashEvent::Program { cause, .. })) => {
                self.flash_programs[cause as usize] += 1
            }
            Some(Flash(FlashEvent::Erase { cause, block, .. })) => {
                self.flash_erases[cause as usize] += 1;
                *self.erases_by_block.entry(block).or_default() += 1;
            }
            Some(Flash(FlashEvent::FreeBlocks { free })) => {
                level(&mut self.free_blocks, now, u64::from(free))
            }
            Some(Common(CommonEvent::QueueDepth { depth })) => {
                level(&mut self.queue_depth, now, u64::from(depth))
            }
            Some(Disk(DiskEvent::Seek { distance, duration: time })) => {
                self.seeks += 1;
                self.seek_cylinders += u64::from(distance);
                self.seek_ns = self.seek_ns.saturating_add(time.as_ns());
            }
            Some(Disk(DiskEvent::Rotate { duration: time })) => {
                self.rotations += 1;
                self.rotation_ns = self.rotation_ns.saturating_add(time.as_ns());
            }
            Some(Disk(DiskEvent::MediaTransfer { sectors, duration: time })) => {
                self.transfers += 1;
                self.transfer_sectors += u64::from(sectors);
                self.transfer_ns = self.transfer_ns.saturating_add(time.as_ns());
            }
            Some(Disk(DiskEvent::DiskCache { op, outcome })) => {
                self.disk_cache[op as usize][outcome as usize] += 1;
            }
            Some(Cache(CacheEvent::CacheLookup { op, hits, misses })) => {
                self.lookups += 1;
                self.hits[op as usize] += u64::from(hits);
                self.misses[op as usize] += u64::from(misses);
            }
            Some(Cache(CacheEvent::DirtyPages { pages })) => {
                level(&mut self.dirty_pages, now, u64::from(pages))
            }
            Some(event) => self.take_rare(event),
            None => {}
        }
    }

    #[inline(never)]
    fn take_rare(&mut self, event: AnyEvent) {
        match event {
            Cache(CacheEvent::Bypassed { sectors, .. }) => {
                self.bypasses += 1;
                self.bypassed_sectors += u64::from(sectors);
            }
            Cache(CacheEvent::Destaged { sectors }) => {
                self.destages += 1;
                self.destaged_sectors += u64::from(sectors);
            }
            Flash(FlashEvent::ReadUnwritten { pages }) => self.unwritten_reads += u64::from(pages),
            Flash(FlashEvent::VictimSearch { blocks }) => {
                self.searches += 1;
                self.searched_blocks += u64::from(blocks);
            }
            Common(CommonEvent::Recovered { took }) => {
                self.recoveries += 1;
                self.recovery_ns = self.recovery_ns.saturating_add(took.as_ns());
                self.recovery_ns_max = self.recovery_ns_max.max(took.as_ns());
            }
            Cache(CacheEvent::CleanupStarted) => self.cleanups += 1,
            Cache(CacheEvent::CleanupEnded { pages }) => self.cleaned_pages += u64::from(pages),
            Flash(FlashEvent::Wear { erases, blocks }) => {
                *self.wear.entry(erases).or_default() += u64::from(blocks);
            }
            Common(CommonEvent::Custom { name, value }) => self.take_custom(name, value),
            _ => {}
        }
    }

    fn take_custom(&mut self, name: u8, value: u64) {
        if self.custom.is_empty() {
            self.custom.resize(CUSTOM, None);
        }
        let first = Custom { count: 0, sum: 0, min: value, max: value, last: value };
        let custom = self.custom[name as usize].get_or_insert(first);
        custom.count += 1;
        custom.sum += u128::from(value);
        custom.min = custom.min.min(value);
        custom.max = custom.max.max(value);
        custom.last = value;
    }

    /// Requests of one operation whose outcome in the disk's buffer was `outcome`.
    pub const fn buffered(&self, op: Op, outcome: DiskCacheOutcome) -> u64 {
        self.disk_cache[op as usize][outcome as usize]
    }
}

#[inline]
fn level(level: &mut Option<Level>, now: u64, value: u64) {
    level.get_or_insert_with(|| Level::new(now, value)).set(now, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_event, ns, stamp};
    use hybridsim_engine::Event;

    fn fold(nodes: usize, from: u64, events: &[EventRecord]) -> Counters {
        let mut counters = Counters::new(nodes, SimTime::from_ns(from));
        counters.take(events);
        counters
    }

    #[test]
    fn every_fact_is_counted_at_its_node() {
        fn one(event: impl Event) -> Node {
            fold(2, 0, &[stamp(100, 1, event)]).nodes()[1].clone()
        }
        let seek = one(DiskEvent::Seek { distance: 7, duration: ns(9) });
        assert_eq!((seek.seeks, seek.seek_cylinders, seek.seek_ns), (1, 7, 9));
        let program = one(FlashEvent::Program { cause: Cause::Gc, die: 3 });
        assert_eq!(program.flash_programs, [0, 1, 0, 0, 0, 0]);
        let lookup = one(CacheEvent::CacheLookup { op: Op::Write, hits: 2, misses: 5 });
        assert_eq!((lookup.hits, lookup.misses), ([0, 2, 0, 0], [0, 5, 0, 0]));
        let bypass = one(CacheEvent::Bypassed { op: Op::Read, sectors: 16 });
        assert_eq!((bypass.bypasses, bypass.bypassed_sectors), (1, 16));
        let destage = one(CacheEvent::Destaged { sectors: 64 });
        assert_eq!((destage.destages, destage.destaged_sectors), (1, 64));
        let wear = one(FlashEvent::Wear { erases: 3, blocks: 10 });
        assert_eq!(wear.wear, BTreeMap::from([(3, 10)]));
        let search = one(FlashEvent::VictimSearch { blocks: 9 });
        assert_eq!((search.searches, search.searched_blocks), (1, 9));
        let erase = one(FlashEvent::Erase { cause: Cause::Gc, die: 0, block: u32::MAX, erases: 7 });
        assert_eq!(erase.erases_by_block, FxHashMap::from_iter([(u32::MAX, 1)]));
        let custom =
            one(CommonEvent::Custom { name: 255, value: u64::MAX }).custom[255].expect("told");
        assert_eq!((custom.count, custom.sum), (1, u128::from(u64::MAX)));
    }

    #[test]
    fn nodes_never_described_do_no_harm() {
        let counters = fold(0, 0, &every_event());
        assert!(counters.nodes().len() <= 4);
        let seeks: u64 = counters.nodes().iter().map(|node| node.seeks).sum();
        assert_eq!(seeks, 1);
    }

    #[test]
    fn spans_told_together_count_from_where_the_window_begins() {
        let span =
            |now, state, time| stamp(now, 0, CommonEvent::StateTime { state, duration: ns(time) });
        let (idle, seek, read) = (PowerState::Idle, PowerState::Seek, PowerState::Read);
        let mut counters = fold(1, 0, &[span(20, read, 20)]);
        counters = counters.measured_from(SimTime::from_ns(70));
        // Idle to 50, seek to 80, read to 100, all told at 100: the window has 10 + 20 of it.
        counters.take(&[span(100, idle, 30), span(100, seek, 30), span(100, read, 20)]);
        let of = |state: PowerState| counters.nodes()[0].state_ns[state as usize];
        assert_eq!((of(idle), of(seek), of(read)), (0, 10, 20));
    }

    #[test]
    fn a_level_goes_on_where_the_warm_up_left_it() {
        let depth = |now, depth| stamp(now, 0, CommonEvent::QueueDepth { depth });
        let mut counters = fold(1, 0, &[depth(10, 90), depth(20, 8)]);
        counters = counters.measured_from(SimTime::from_ns(50));
        let level = |counters: &Counters| counters.nodes()[0].queue_depth.expect("it was told");
        assert_eq!((level(&counters).max, level(&counters).mean(60)), (8, Some(8.0)));
        counters.take(&[depth(60, 2)]);
        assert_eq!(level(&counters).mean(70), Some(5.0));
        let failed = fold(1, 0, &[stamp(1, 0, CommonEvent::PowerCut { lost: 3 })]);
        let failed = failed.measured_from(SimTime::from_ns(50));
        assert_eq!((failed.power_cuts, failed.requests_lost), (1, 3));
    }

    #[test]
    fn a_spin_up_told_in_pieces_is_one() {
        let state = |time, state| stamp(time, 0, CommonEvent::StateTime { state, duration: ns(1) });
        let (up, idle) = (PowerState::SpinUp, PowerState::Idle);
        let events = [state(1, up), state(2, up), state(3, idle), state(4, up)];
        assert_eq!(fold(1, 0, &events).nodes()[0].spin_ups, 2);
    }

    #[test]
    fn a_level_is_averaged_over_time() {
        let mut level = Level::new(100, 4);
        level.set(110, 10);
        level.set(130, 0);
        // 10 ns of 4, 20 ns of 10, 10 ns of 0.
        assert_eq!(level.mean(140), Some(6.0));
        assert_eq!((level.min, level.max, level.now), (0, 10, 0));
        assert_eq!(Level::new(5, 1).mean(5), None);
    }
}
