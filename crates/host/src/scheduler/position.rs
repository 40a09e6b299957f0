//! Waiting requests sorted by position: first sector, or cylinder as the device reports it.

use hybridsim_config::param::Kind;
use hybridsim_engine::schedule::{Head, Queued};
use hybridsim_engine::sorted::{Key, Sorted};
use hybridsim_engine::{Checkpoint, Lba};

hybridsim_config::choices! {
    /// The unit of positions.
    pub enum Unit { Lbn = "lbn", Cylinder = "cylinder" }
}

hybridsim_config::params! {
    /// Parameters of queues sorted by position.
    pub struct Parameters {
        by: Unit = Kind::Choice(Unit::NAMES), default "\"lbn\"",
            "Compares first sectors, or cylinders as the device below reports them (requests on \
             one cylinder are served in order of arrival); devices without cylinders are compared \
             by sector";
    }
}

/// The queue. By cylinder, requests that arrived since the last decision are sorted in at the next
/// one, when the device can be asked for their cylinders.
#[derive(Debug, Default)]
pub struct ByPosition {
    sorted: Sorted,
    unsorted: Vec<Queued>,
    cylinders: bool,
    /// The first sector of the last request served, and the first one after it.
    served: (u64, u64),
}

impl ByPosition {
    /// Sorted by the chosen unit.
    pub fn new(params: &Parameters) -> Self {
        Self { cylinders: params.by == Unit::Cylinder, ..Self::default() }
    }

    pub fn push(&mut self, item: Queued) {
        if self.cylinders {
            self.unsorted.push(item);
        } else {
            self.sorted.push(item);
        }
    }

    /// Sorts new requests in and returns the position of the head.
    pub fn head_position(&mut self, head: &Head<'_>) -> u64 {
        let device = head.positioner.filter(|_| self.cylinders);
        let position = |lba: u64| match device {
            Some(device) => u64::from(device.cylinder(Lba(lba))),
            None => lba,
        };
        for item in self.unsorted.drain(..) {
            self.sorted.push_at(position(item.request.lba.0), item);
        }
        match device {
            // The head is on the cylinder of the last sector it passed.
            Some(_) => position(head.last.0.saturating_sub(1)),
            None => head.last.0,
        }
    }

    /// As [`ByPosition::head_position`], for sweeps: their position is the start of the last
    /// request as long as nothing else was served since, so that a request with the same start,
    /// such as a write of what was just read, is not behind the head.
    pub fn elevator_position(&mut self, head: &Head<'_>) -> u64 {
        let (first, end) = self.served;
        if end != head.last.0 {
            return self.head_position(head);
        }
        // By cylinder, the position is that of the sector before the one given.
        let first = first + u64::from(self.cylinders);
        self.head_position(&Head { last: Lba(first), ..*head })
    }

    /// Positions of the device; the largest one in the queue where the device reports no size.
    pub fn span(&self, head: &Head<'_>) -> u64 {
        match head.positioner.filter(|device| device.sectors() > 0) {
            Some(device) if self.cylinders => {
                u64::from(device.cylinder(Lba(device.sectors() - 1))) + 1
            }
            Some(device) => device.sectors(),
            None => self.sorted.below(u64::MAX).map_or(1, |key| key.0.max(1)),
        }
    }

    /// The first key at or after `position`. Call [`ByPosition::head_position`] before.
    pub fn at_or_after(&self, position: u64) -> Option<Key> {
        self.sorted.at_or_after(position)
    }

    /// Key of the request that arrived first at the largest position below.
    pub fn below(&self, position: u64) -> Option<Key> {
        self.sorted.below(position)
    }

    pub fn get(&self, key: Key) -> Option<&Queued> {
        self.sorted.get(key)
    }

    pub fn take(&mut self, key: Key) -> Option<Queued> {
        let item = self.sorted.take(key)?;
        self.served = (item.request.lba.0, item.request.end().0);
        Some(item)
    }

    pub fn len(&self) -> usize {
        self.sorted.len() + self.unsorted.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Checkpoint for ByPosition {
    hybridsim_engine::saves!(served);
}
