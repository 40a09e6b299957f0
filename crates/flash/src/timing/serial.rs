//! One operation at a time: the timing of older papers.
//!
//! A request takes its overhead and the sum of its operations: n pages are read in `overhead + n *
//! read` (konanki, table 4.1). Operations take as long as in [`Interleaved`], whose dies and
//! channels are never in use by two of them.

use super::{
    BusyIntervals, DieSlowdowns, Interleaved, Latency, OperationTimes, Scheduled, TIMES,
    TimingEntry, TimingModel,
};
use crate::geometry::Geometry;
use crate::ops::FlashOp;
use hybridsim_config::registry::Description;
use hybridsim_engine::{LatencyPhase, Loader, Op, Saver, SimDuration, SimTime, StateError};

pub const ENTRY: TimingEntry = TimingEntry {
    description: Description {
        name: "serial",
        summary: "One operation at a time, as in older papers.",
        origin: "konanki, table 4.1",
        params: &[],
    },
    provides: &[TIMES],
    build: |input| Ok(Box::new(Serial::new(*input.geometry, input.times))),
};

pub struct Serial {
    dies: Interleaved,
    /// End of the last request.
    free: SimTime,
}

impl Serial {
    pub fn new(geometry: Geometry, times: OperationTimes) -> Self {
        let mut dies = Interleaved::new(geometry, times);
        dies.one_at_a_time = true;
        Self { dies, free: SimTime::ZERO }
    }
}

impl TimingModel for Serial {
    fn busy(&mut self, now: SimTime, everything: bool) -> Option<&mut BusyIntervals> {
        self.dies.busy(now, everything)
    }

    fn slowdowns(&mut self) -> Option<(&Geometry, &mut DieSlowdowns)> {
        self.dies.slowdowns()
    }

    fn save(&self, to: &mut Saver) {
        self.dies.save(to);
        to.put(&self.free);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.dies.restore(from)?;
        self.free = from.take()?;
        Ok(())
    }

    fn begin(&mut self, now: SimTime, op: Op, bytes: u64) {
        let start = now.max(self.free);
        self.dies.begin_background(start);
        let Interleaved { request, times, .. } = &mut self.dies;
        let overhead = times.overhead(op);
        // Reads, too, occupy the link first: nothing else happens meanwhile.
        let bus = SimDuration::transfer(bytes, times.host_rate_of(op));
        request.op = op;
        request.received.at = start + overhead + bus;
        request.received.latency =
            Latency { queue: start.since(now), overhead, bus, ..Latency::default() };
    }

    fn begin_background(&mut self, now: SimTime) {
        self.dies.begin_background(now.max(self.free));
    }

    fn work(&mut self, time: SimDuration, phase: LatencyPhase) {
        self.dies.work(time, phase);
    }

    fn page(&mut self, ops: &[FlashOp], _bytes: u64, _bytes_behind: u64) {
        let Interleaved { request, times, .. } = &self.dies;
        let mut at = request.received;
        if matches!(request.op, Op::Read | Op::Write) && !ops.is_empty() {
            at.pass_ram(times.ram);
        }
        ops.iter().for_each(|op| self.dies.schedule(op, &mut at));
        self.dies.request.received = at;
    }

    fn end(&mut self) -> Scheduled {
        let timed = self.dies.request.end();
        self.free = timed.end;
        Scheduled::Completes(timed)
    }
}
