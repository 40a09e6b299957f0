//! The channels between controller and dies, the host link, and when the controller takes requests.

use super::{Bus, BusyIntervals, Latency, Milestone, OperationTimes};
use crate::geometry::{DieId, Geometry};
use crate::ops::FlashOp;
use crate::restore;
use hybridsim_engine::{Loader, Op, Saver, SimDuration, SimTime, StateError};

/// Channels and host link, each with its own schedule.
pub struct Interconnect {
    geometry: Geometry,
    times: OperationTimes,
    channels: Vec<Bus>,
    to_host: Bus,
    from_host: Bus,
    /// Time from which on the controller takes the next request.
    next_request: SimTime,
    /// Time from which on each processor core is free; empty if their number does not matter.
    cores: Vec<SimTime>,
    now: SimTime,
    pub(super) busy: BusyIntervals,
}

impl Interconnect {
    pub fn new(geometry: Geometry, times: &OperationTimes) -> Self {
        let bus = |shortest: SimDuration| Bus::new(times.schedule_slots, shortest);
        let shortest = times.shortest_transfer();
        Self {
            geometry,
            times: *times,
            channels: (0..geometry.channels()).map(|_| bus(shortest)).collect(),
            to_host: bus(SimDuration::ZERO),
            from_host: bus(SimDuration::ZERO),
            next_request: SimTime::ZERO,
            cores: vec![SimTime::ZERO; times.firmware_cores],
            now: SimTime::ZERO,
            busy: BusyIntervals::default(),
        }
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&(&self.channels, &self.to_host, &self.from_host, self.next_request));
        to.put(&self.cores);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        restore::table(from, "the list of channels", &mut self.channels)?;
        (self.to_host, self.from_host, self.next_request) = from.take()?;
        restore::table(from, "the list of processor cores", &mut self.cores)?;
        let mut buses = self.channels.iter().chain([&self.to_host, &self.from_host]);
        restore::check(buses.all(Bus::is_consistent), "a schedule table is out of order")
    }

    /// No transfer will start before `now` from here on.
    #[inline]
    pub fn advance(&mut self, now: SimTime) {
        self.now = now;
    }

    /// Admits a request that arrives now and that a processor core works on for `overhead`. Returns
    /// when the controller takes it.
    #[inline]
    pub fn admit(&mut self, overhead: SimDuration) -> SimTime {
        let mut at = self.next_request.max(self.now);
        if !self.cores.is_empty() {
            at = self.occupy_core(at, overhead);
        }
        self.next_request = at + self.times.request_interval;
        at
    }

    /// Occupies the core that is free first. Returns from when on.
    #[cold]
    fn occupy_core(&mut self, from: SimTime, overhead: SimDuration) -> SimTime {
        let Some(free) = self.cores.iter_mut().min() else { return from };
        let begin = from.max(*free);
        *free = begin + overhead;
        begin
    }

    /// Reserves the channel of `op` for `length` in the first gap from `earliest` on. Returns the
    /// start.
    #[inline]
    pub fn reserve(&mut self, op: &FlashOp, earliest: SimTime, length: SimDuration) -> SimTime {
        let channel = self.advance_channel(op.die);
        self.reserve_channel(channel, op, earliest, length)
    }

    /// The channel of `die`, for reservations from now on.
    #[inline]
    pub fn advance_channel(&mut self, die: DieId) -> u32 {
        let channel = self.geometry.channel_of(die);
        self.channels[channel as usize].advance(self.now);
        channel
    }

    /// As [`Interconnect::reserve`], of a channel from [`Interconnect::advance_channel`].
    #[inline(always)]
    pub fn reserve_channel(
        &mut self,
        channel: u32,
        op: &FlashOp,
        earliest: SimTime,
        length: SimDuration,
    ) -> SimTime {
        let begin = self.channels[channel as usize].reserve(earliest, length);
        self.busy.channel(channel, op, begin, length);
        begin
    }

    /// Transfers the data of a request of `bytes` to the device, from `ready` on. Returns when the
    /// transfer begins, and when it has ended.
    #[inline]
    pub fn from_host(
        &mut self,
        op: Op,
        bytes: u64,
        ready: SimTime,
        latency: Latency,
    ) -> (SimTime, Milestone) {
        if op != Op::Write || self.times.host_write_rate == 0 {
            return (ready, Milestone { at: ready, latency });
        }
        let length = SimDuration::transfer(bytes, self.times.host_write_rate);
        let link =
            if self.times.host_full_duplex { &mut self.from_host } else { &mut self.to_host };
        link.advance(self.now);
        let begin = link.reserve(ready, length);
        let queue = latency.queue + begin.since(ready);
        let latency = Latency { queue, bus: length, ..latency };
        (begin, Milestone { at: begin + length, latency })
    }

    /// Transfers `bytes` to the host.
    #[inline]
    pub fn to_host(&mut self, from: Milestone, bytes: u64) -> Milestone {
        if self.times.host_rate == 0 {
            return from;
        }
        let length = SimDuration::transfer(bytes, self.times.host_rate);
        self.to_host.advance(self.now);
        let start = self.to_host.reserve(from.at, length);
        let mut latency = from.latency;
        latency.queue += start.since(from.at);
        latency.bus += length;
        Milestone { at: start + length, latency }
    }
}
