//! Power failures: when they occur, and what they leave of writes in flight.

use crate::contents::Contents;
use crate::rng::Stream;
use crate::time::SimTime;
use std::collections::VecDeque;

/// Injects power failures before random messages; the number of messages between two of them is
/// geometrically distributed.
#[derive(Debug)]
pub struct PowerFailureInjector {
    chance: f64,
    left: u64,
    stream: Stream,
}

impl PowerFailureInjector {
    /// One failure per `mean` messages on average, and at most `count_max` of them.
    pub fn new(mean: u64, count_max: u64, stream: Stream) -> Self {
        Self { chance: 1.0 / mean.max(1) as f64, left: count_max, stream }
    }

    /// Whether the power fails before the next message.
    pub(crate) fn due(&mut self) -> bool {
        let due = self.left > 0 && self.stream.chance(self.chance);
        self.left -= u64::from(due);
        due
    }
}

/// The moment at which a write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// At this time.
    At(SimTime),
    /// The completion of the request of this number, which is not known yet.
    Served(u64),
    /// The destage from the volatile buffer that holds it.
    Buffered,
}

#[derive(Debug)]
struct Entry {
    durable: Durable,
    at: u64,
    old: Vec<u64>,
    new: Vec<u64>,
    /// Times at which the sectors of a buffered write leave the buffer.
    destaged: Vec<SimTime>,
}

/// The versions a medium held before writes that a power failure may still undo. Used in verified
/// runs with power failures; empty and free of cost in all others.
#[derive(Debug, Default)]
pub struct InFlightWrites {
    entries: VecDeque<Entry>,
}

/// Durable entries are dropped each time the number of entries has grown by this much.
const PRUNE_AFTER: usize = 1024;

impl InFlightWrites {
    /// `new` is about to be written from sector `at` of `contents` on.
    pub fn note(
        &mut self,
        contents: &Contents,
        at: u64,
        new: &[u64],
        durable: Durable,
        now: SimTime,
    ) {
        if self.entries.len().is_multiple_of(PRUNE_AFTER) {
            self.entries.retain(|entry| !entry.is_durable(now));
        }
        let mut old = vec![0; new.len()];
        contents.read(at, &mut old);
        let destaged = vec![SimTime::NEVER; new.len()];
        self.entries.push_back(Entry { durable, at, old, new: new.to_vec(), destaged });
    }

    /// The buffered data of the sectors `from..to` are on the medium, or overwritten there, at
    /// `end`. Versions buffered later are still to be destaged.
    pub fn destage(&mut self, from: u64, to: u64, end: SimTime) {
        let buffered = |entry: &&mut Entry| entry.durable == Durable::Buffered;
        for entry in self.entries.iter_mut().filter(buffered) {
            for (sector, time) in (entry.at..).zip(&mut entry.destaged) {
                if (from..to).contains(&sector) && *time == SimTime::NEVER {
                    *time = end;
                }
            }
        }
    }

    /// Sets when the request of this number becomes durable.
    pub fn settle(&mut self, request: u64, durable: Durable) {
        let of_request = |entry: &&mut Entry| entry.durable == Durable::Served(request);
        if let Some(entry) = self.entries.iter_mut().rev().find(of_request) {
            entry.durable = durable;
        }
    }

    /// The power fails at `now`. Buffered sectors are lost; of every other write in flight a
    /// random number of sectors, from the first on, is on the medium. Writes are atomic by sector.
    /// Returns the sectors that reverted.
    pub fn cut(&mut self, contents: &mut Contents, now: SimTime, stream: &mut Stream) -> Vec<u64> {
        let mut undone = Vec::new();
        while let Some(entry) = self.entries.pop_back() {
            let landed = match entry.durable {
                Durable::At(time) if time <= now => continue,
                Durable::At(_) | Durable::Served(_) => {
                    stream.below(entry.new.len() as u64 + 1) as usize
                }
                Durable::Buffered => 0,
            };
            for i in landed..entry.new.len() {
                let volatile = entry.durable != Durable::Buffered || entry.destaged[i] > now;
                let sector = entry.at + i as u64;
                // A later write that is durable stays.
                if volatile && contents.get(sector) == entry.new[i] {
                    contents.write(sector, &[entry.old[i]]);
                    undone.push(sector);
                }
            }
        }
        undone
    }
}

impl Entry {
    fn is_durable(&self, now: SimTime) -> bool {
        match self.durable {
            Durable::At(time) => time <= now,
            Durable::Served(_) => false,
            Durable::Buffered => self.destaged.iter().all(|time| *time <= now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SimTime = SimTime::from_ns(100);

    fn write(
        undo: &mut InFlightWrites,
        contents: &mut Contents,
        at: u64,
        new: &[u64],
        durable: Durable,
    ) {
        undo.note(contents, at, new, durable, SimTime::ZERO);
        contents.write(at, new);
    }

    fn cut(undo: &mut InFlightWrites, contents: &mut Contents) -> [u64; 4] {
        let mut stream = Stream::new(1, "cut");
        undo.cut(contents, NOW, &mut stream);
        let mut left = [0; 4];
        contents.read(0, &mut left);
        left
    }

    #[test]
    fn what_is_durable_stays_and_what_is_buffered_goes() {
        let (mut undo, mut contents) = (InFlightWrites::default(), Contents::default());
        write(&mut undo, &mut contents, 0, &[1, 1, 1, 1], Durable::At(NOW));
        write(&mut undo, &mut contents, 1, &[2, 2], Durable::Buffered);
        undo.destage(0, 2, NOW);
        undo.destage(2, 3, SimTime::from_ns(101));
        assert_eq!(cut(&mut undo, &mut contents), [1, 2, 1, 1]);
    }

    #[test]
    fn overwritten_buffered_sectors_go_back_to_what_was_first() {
        let (mut undo, mut contents) = (InFlightWrites::default(), Contents::default());
        write(&mut undo, &mut contents, 0, &[1], Durable::Buffered);
        write(&mut undo, &mut contents, 0, &[2], Durable::Buffered);
        assert_eq!(cut(&mut undo, &mut contents), [0; 4]);
    }

    #[test]
    fn a_destaged_version_stays_when_a_newer_one_in_the_buffer_is_lost() {
        let (mut undo, mut contents) = (InFlightWrites::default(), Contents::default());
        write(&mut undo, &mut contents, 0, &[1], Durable::Buffered);
        undo.destage(0, 1, NOW);
        write(&mut undo, &mut contents, 0, &[2], Durable::Buffered);
        assert_eq!(cut(&mut undo, &mut contents), [1, 0, 0, 0]);
    }

    #[test]
    fn destaged_writes_are_dropped() {
        let (mut undo, mut contents) = (InFlightWrites::default(), Contents::default());
        for version in 1..=PRUNE_AFTER as u64 {
            write(&mut undo, &mut contents, 0, &[version, version], Durable::Buffered);
            undo.destage(0, 2, SimTime::ZERO);
        }
        write(&mut undo, &mut contents, 0, &[9], Durable::Buffered);
        assert_eq!(undo.entries.len(), 1);
    }

    #[test]
    fn a_durable_write_over_one_in_flight_stays() {
        let (mut undo, mut contents) = (InFlightWrites::default(), Contents::default());
        let never = Durable::At(SimTime::NEVER);
        write(&mut undo, &mut contents, 0, &[1, 1, 1, 1], never);
        write(&mut undo, &mut contents, 0, &[2, 2, 2, 2], Durable::At(NOW));
        assert_eq!(cut(&mut undo, &mut contents), [2; 4]);
    }

    #[test]
    fn a_write_in_flight_lands_from_its_first_sector_on_or_not_at_all() {
        let mut stream = Stream::new(1, "cut");
        let mut seen = [0; 5];
        for _ in 0..200 {
            let (mut undo, mut contents) = (InFlightWrites::default(), Contents::default());
            let never = Durable::At(SimTime::NEVER);
            write(&mut undo, &mut contents, 0, &[7; 4], never);
            undo.cut(&mut contents, NOW, &mut stream);
            let landed = (0..4).take_while(|sector| contents.get(*sector) == 7).count();
            assert!((landed as u64..4).all(|sector| contents.get(sector) == 0));
            seen[landed] += 1;
        }
        assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    }
}
