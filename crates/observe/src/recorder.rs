//! All folds of a run behind one sink.

use crate::breakdown::Breakdown;
use crate::busy::BusyFold;
use crate::counters::Counters;
use crate::fingerprint::Fingerprint;
use crate::invariants::Invariants;
use crate::latency::LatencyFold;
use crate::pictures::Pictures;
use crate::results::{Cost, Label, RunResults, WarmupResult};
use crate::series::SeriesFold;
use crate::summary;
use hybridsim_engine::{Fact, FactSink, LayerInfo, SimDuration, SimTime, Stamped};

/// How much is observed. The fingerprint is the same either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The summary only.
    #[default]
    Bare,
    /// The summary, and what pictures are drawn from.
    Full,
}

/// What statistics leave out. The machine does the same work either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Warmup {
    /// Nothing.
    #[default]
    None,
    /// Everything up to the completion of so many requests.
    Requests(u64),
    /// Everything before this time.
    Time(SimDuration),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Simulated time at the end.
    pub time: SimTime,
    /// Events the machine handled.
    pub events: u64,
    /// Whether the run reached its end; `false` when it was interrupted.
    pub complete: bool,
}

/// Where the measured window begins.
#[derive(Clone, Copy, Debug, Default)]
struct Gate {
    warmup: Warmup,
    open: bool,
    since: SimTime,
    before: u64,
}

impl Gate {
    /// How many of `facts` are still before the window.
    fn closed_for(&mut self, facts: &[Stamped]) -> usize {
        for (at, stamped) in facts.iter().enumerate() {
            if let Warmup::Time(length) = self.warmup
                && stamped.time >= SimTime::ZERO + length
            {
                self.open_at(SimTime::ZERO + length);
                return at;
            }
            if matches!(stamped.fact, Fact::Completed { .. }) {
                self.before += 1;
                if matches!(self.warmup, Warmup::Requests(wanted) if self.before >= wanted) {
                    self.open_at(stamped.time);
                    return at + 1;
                }
            }
        }
        facts.len()
    }

    fn open_at(&mut self, time: SimTime) {
        (self.open, self.since) = (true, time);
    }
}

/// The bundle of folds a run is observed with.
#[derive(Clone, Debug)]
pub struct Recorder {
    nodes: Vec<(String, LayerInfo)>,
    gate: Gate,
    fingerprint: Fingerprint,
    invariants: Invariants,
    counters: Counters,
    latency: LatencyFold,
    breakdown: Breakdown,
    series: Option<Box<SeriesFold>>,
    busy: Option<Box<BusyFold>>,
}

/// Everything `finish` works out.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The summary.
    pub results: RunResults,
    /// What pictures are drawn from, when observed with [`Detail::Full`].
    pub pictures: Option<Pictures>,
    /// The latencies of the measured window.
    pub latencies: LatencyFold,
    /// A warning that the system did not keep up with the workload, for runs in an open loop.
    pub behind: Option<String>,
}

impl Recorder {
    /// A recorder for a system whose nodes are `nodes`, as the machine describes them.
    pub fn new(nodes: Vec<(String, LayerInfo)>, detail: Detail, warmup: Warmup) -> Self {
        let paths = nodes.iter().map(|node| node.0.clone()).collect();
        let mut gate = Gate { warmup, ..Gate::default() };
        if matches!(warmup, Warmup::None | Warmup::Requests(0) | Warmup::Time(SimDuration::ZERO)) {
            gate.open_at(SimTime::ZERO);
        }
        Self {
            gate,
            fingerprint: Fingerprint::default(),
            invariants: Invariants::new(paths),
            counters: Counters::new(nodes.len(), SimTime::ZERO),
            latency: LatencyFold::default(),
            breakdown: Breakdown::default(),
            series: (detail == Detail::Full).then(Box::default),
            busy: (detail == Detail::Full).then(Box::default),
            nodes,
        }
    }

    /// The fingerprint of the facts so far.
    pub const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Requests completed so far in the measured window, for progress displays.
    pub fn completed(&self) -> u64 {
        self.counters.completed.iter().sum()
    }

    fn measure(&mut self, facts: &[Stamped]) {
        self.counters.take(facts);
        self.latency.take(facts);
        self.breakdown.take(facts);
    }

    #[cold]
    fn warm_up(&mut self, facts: &[Stamped]) {
        let skipped = self.gate.closed_for(facts);
        self.counters.take(&facts[..skipped]);
        if let Some(busy) = &mut self.busy {
            busy.take(&facts[..skipped]);
        }
        if self.gate.open {
            self.counters = self.counters.measured_from(self.gate.since);
            if let Some(busy) = &mut self.busy {
                busy.measure_from(self.gate.since.as_ns());
                busy.take(&facts[skipped..]);
            }
            self.measure(&facts[skipped..]);
        }
    }

    /// The results of the run. `warnings` are the caller's; broken invariants and remarks on the
    /// statistics are added.
    pub fn finish(
        mut self,
        ending: Ending,
        label: Label,
        cost: Cost,
        warnings: Vec<String>,
    ) -> Finished {
        if !self.gate.open {
            self.gate.since = ending.time;
            self.counters = self.counters.measured_from(ending.time);
            if let Some(busy) = &mut self.busy {
                busy.measure_from(ending.time.as_ns());
            }
        }
        let mut busy = self.busy.take();
        let utilisation =
            busy.as_mut().map(|busy| busy.utilisation(&self.nodes, ending.time.as_ns()));
        let since = self.gate.since;
        let run = summary::Run {
            nodes: &self.nodes,
            counters: &self.counters,
            latency: &self.latency,
            breakdown: &self.breakdown,
            utilisation: utilisation.unwrap_or_default(),
            warmup: WarmupResult { requests: self.gate.before, ns: since.as_ns() },
            asked_for_warmup: self.gate.warmup != Warmup::None,
            ending,
        };
        let violations = self.invariants.finish(ending.time, ending.complete);
        let results = summary::results(&run, &self.fingerprint, label, cost, warnings, violations);
        let paths: Vec<String> = self.nodes.iter().map(|node| node.0.clone()).collect();
        let series = self.series.map(|fold| fold.finish(ending.time, &paths));
        let mut pictures = series.map(|series| summary::pictures(&run, series));
        if let Some(pictures) = &mut pictures {
            pictures.activity = busy.and_then(|busy| busy.activity(&self.nodes));
        }
        let behind = summary::fell_behind(&run);
        Finished { results, pictures, latencies: self.latency, behind }
    }
}

impl Recorder {
    /// One pass for all folds of the measured window. In each arm the kind of the fact is known,
    /// so every fold's own `match` is decided by the compiler and a fact is looked at once.
    fn observe(&mut self, facts: &[Stamped]) {
        for stamped in facts {
            match stamped.fact {
                Fact::FlashProgram { .. } => self.add(stamped),
                Fact::FlashRead { .. } => self.add(stamped),
                Fact::Spent { .. } => self.add(stamped),
                Fact::StateTime { .. } => self.add(stamped),
                Fact::Arrived { .. } => self.add(stamped),
                Fact::Completed { .. } => self.add(stamped),
                Fact::Seek { .. } => self.add(stamped),
                Fact::Rotate { .. } => self.add(stamped),
                Fact::MediaTransfer { .. } => self.add(stamped),
                Fact::DiskCache { .. } => self.add(stamped),
                Fact::QueueDepth { .. } => self.add(stamped),
                Fact::CacheLookup { .. } => self.add(stamped),
                Fact::FlashBusy { .. } => {}
                _ => self.add_rare(stamped),
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, stamped: &Stamped) {
        self.fingerprint.add(stamped);
        self.invariants.add(stamped);
        self.counters.add(stamped);
        self.latency.add(stamped);
        self.breakdown.add(stamped);
    }

    #[inline(never)]
    fn add_rare(&mut self, stamped: &Stamped) {
        self.add(stamped);
    }
}

impl FactSink for Recorder {
    fn take(&mut self, facts: &[Stamped]) {
        if self.gate.open {
            self.observe(facts);
            if let Some(busy) = &mut self.busy {
                busy.take(facts);
            }
        } else {
            self.fingerprint.take(facts);
            self.invariants.take(facts);
            self.warm_up(facts);
        }
        if let Some(series) = &mut self.series {
            series.take(facts);
        }
    }
}
