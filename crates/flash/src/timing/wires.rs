//! The wires of a device: channels to its dies, and the link to the host.

use super::{Bus, Delays, Journal, Path, Reached};
use crate::geometry::Geometry;
use crate::ops::FlashOp;
use hybridsim_engine::{Loader, Op, Saver, SimDuration, SimTime, StateError};

/// Channels and host link, each with a schedule of its own, and what they carry for onlookers.
pub struct Wires {
    geometry: Geometry,
    channels: Vec<Bus>,
    to_host: Bus,
    from_host: Bus,
    host_rate: u64,
    full_duplex: bool,
    now: SimTime,
    pub(super) journal: Journal,
}

impl Wires {
    /// Nothing on any of them.
    pub fn new(geometry: Geometry, delays: &Delays) -> Self {
        let bus = || Bus::new(delays.schedule_slots);
        Self {
            geometry,
            channels: (0..geometry.channels()).map(|_| bus()).collect(),
            to_host: bus(),
            from_host: bus(),
            host_rate: delays.host_rate,
            full_duplex: delays.host_full_duplex,
            now: SimTime::ZERO,
            journal: Journal::default(),
        }
    }

    pub(super) fn save(&self, to: &mut Saver) {
        for bus in self.channels.iter().chain([&self.to_host, &self.from_host]) {
            bus.save(to);
        }
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let buses = self.channels.iter_mut().chain([&mut self.to_host, &mut self.from_host]);
        for bus in buses {
            bus.restore(from)?;
        }
        Ok(())
    }

    /// It is `now`; nothing will be asked for before.
    #[inline]
    pub fn advance(&mut self, now: SimTime) {
        self.now = now;
    }

    /// Takes the channel of `op` for `length`, from `earliest` on or in the first gap after it.
    #[inline]
    pub fn send(&mut self, op: &FlashOp, earliest: SimTime, length: SimDuration) -> SimTime {
        let channel = self.geometry.channel_of(op.die);
        let bus = &mut self.channels[channel as usize];
        bus.advance(self.now);
        let begin = bus.reserve(earliest, length);
        self.journal.channel(channel, op, begin, length);
        begin
    }

    /// Brings in the data of a request of `bytes` that has been looked at by `ready`, if it has
    /// any. Says when they begin to come in, too.
    #[inline]
    pub fn from_host(
        &mut self,
        op: Op,
        bytes: u64,
        ready: SimTime,
        path: Path,
    ) -> (SimTime, Reached) {
        if op != Op::Write || self.host_rate == 0 {
            return (ready, Reached { at: ready, path });
        }
        let length = SimDuration::transfer(bytes, self.host_rate);
        let link = if self.full_duplex { &mut self.from_host } else { &mut self.to_host };
        link.advance(self.now);
        let begin = link.reserve(ready, length);
        let path = Path { queue: begin.since(ready), bus: length, ..path };
        (begin, Reached { at: begin + length, path })
    }

    /// Hands `bytes` to the host, from the moment `from` on.
    #[inline]
    pub fn to_host(&mut self, from: Reached, bytes: u64) -> Reached {
        if self.host_rate == 0 {
            return from;
        }
        let length = SimDuration::transfer(bytes, self.host_rate);
        self.to_host.advance(self.now);
        let start = self.to_host.reserve(from.at, length);
        let mut path = from.path;
        path.queue += start.since(from.at);
        path.bus += length;
        Reached { at: start + length, path }
    }
}
