//! The request that is being scheduled on dies that work in parallel.

use super::{Interconnect, Latency, Milestone, OperationTimes, Timed};
use hybridsim_engine::{LatencyPhase, Op, SimDuration, SimTime};

#[derive(Clone, Copy, Debug)]
pub struct RequestSchedule {
    pub op: Op,
    /// All data of the request are in the device, or its command if it brings none.
    pub received: Milestone,
    /// Start of the data transfer from the host.
    pub data_from: SimTime,
    /// Completion of the page that completes last.
    last: Milestone,
    /// End of the last operation.
    pub idle_from: SimTime,
}

impl RequestSchedule {
    pub fn new() -> Self {
        Self::background(SimTime::ZERO)
    }

    /// Background work that starts at `now`.
    pub fn background(now: SimTime) -> Self {
        let start = Milestone::start(now);
        Self { op: Op::Flush, received: start, data_from: now, last: start, idle_from: now }
    }

    #[inline]
    pub fn begin(
        &mut self,
        interconnect: &mut Interconnect,
        times: &OperationTimes,
        now: SimTime,
        (op, bytes): (Op, u64),
    ) {
        interconnect.advance(now);
        self.op = op;
        let overhead = times.overhead(op);
        let taken = interconnect.admit(overhead);
        let latency = Latency { queue: taken.since(now), overhead, ..Latency::default() };
        (self.data_from, self.received) =
            interconnect.from_host(op, bytes, taken + overhead, latency);
        self.last = Milestone::start(now);
        self.idle_from = now;
    }

    /// The controller takes `time` more before the next operation: for the command, or in search of
    /// a victim (`phase`).
    pub fn work(&mut self, time: SimDuration, phase: LatencyPhase) {
        self.received.at += time;
        let Latency { overhead, gc, .. } = &mut self.received.latency;
        *(if phase == LatencyPhase::Gc { gc } else { overhead }) += time;
        self.data_from += time;
        self.idle_from = self.idle_from.max(self.received.at);
    }

    /// A page is done at `page`; read data still pass through `ram`, if there are any, and over the
    /// host link.
    #[inline]
    pub fn end_page(
        &mut self,
        interconnect: &mut Interconnect,
        mut page: Milestone,
        ram: Option<SimDuration>,
        bytes: u64,
    ) {
        if self.op == Op::Read {
            if let Some(ram) = ram {
                page.pass_ram(ram);
            }
            page = interconnect.to_host(page, bytes);
        }
        if page.at >= self.last.at {
            self.last = page;
        }
    }

    #[inline]
    pub fn end(&self) -> Timed {
        let last = if self.received.at >= self.last.at { &self.received } else { &self.last };
        let (end, breakdown) = (last.at, last.latency.breakdown());
        Timed { end, breakdown, idle_from: self.idle_from.max(end) }
    }
}
