//! Waiting requests sorted by where they are: first sector, or cylinder as the device tells it.

use hybridsim_config::param::{Kind, Param, Settings};
use hybridsim_engine::schedule::{Head, Queued};
use hybridsim_engine::sorted::{Key, Sorted};
use hybridsim_engine::{Lba, Loader, Saver, StateError};

/// What is compared.
pub const BY: Param = Param::with(
    "by",
    Kind::Choice(&["lbn", "cylinder"]),
    "\"lbn\"",
    "Compares first sectors, or cylinders as the device below tells them (requests on one cylinder \
     go in order of arrival); devices without cylinders are compared by sector",
);

/// The queue. By cylinder, what arrived since the last decision is sorted in at the next, when the
/// device can be asked.
#[derive(Debug, Default)]
pub struct ByPosition {
    sorted: Sorted,
    fresh: Vec<Queued>,
    cylinders: bool,
    /// The first sector of the last request served, and the first one after it.
    served: (u64, u64),
}

impl ByPosition {
    /// Sorted as parameter [`BY`] says.
    pub fn read(settings: &Settings) -> Self {
        Self { cylinders: settings.text("by") == "cylinder", ..Self::default() }
    }

    /// Adds an item.
    pub fn push(&mut self, item: Queued) {
        if self.cylinders {
            self.fresh.push(item);
        } else {
            self.sorted.push(item);
        }
    }

    /// Where the head is, after sorting in what is new.
    pub fn settle(&mut self, head: &Head<'_>) -> u64 {
        let device = head.positioner.filter(|_| self.cylinders);
        let place = |lba: u64| match device {
            Some(device) => u64::from(device.cylinder(Lba(lba))),
            None => lba,
        };
        for item in self.fresh.drain(..) {
            self.sorted.push_at(place(item.request.lba.0), item);
        }
        match device {
            // The head is on the cylinder of the last sector it passed.
            Some(_) => place(head.last.0.saturating_sub(1)),
            None => head.last.0,
        }
    }

    /// As [`ByPosition::settle`], for sweeps: they stand where the last request began as long as
    /// nothing else was served since, so that what begins at the same place, such as a write of
    /// what was just read, is not behind them.
    pub fn settle_sweep(&mut self, head: &Head<'_>) -> u64 {
        let (first, end) = self.served;
        if end != head.last.0 {
            return self.settle(head);
        }
        // By cylinder, the place asked for is that of the sector before.
        let first = first + u64::from(self.cylinders);
        self.settle(&Head { last: Lba(first), ..*head })
    }

    /// Positions there are, by the device's word; the largest one asked for where it has none.
    pub fn span(&self, head: &Head<'_>) -> u64 {
        match head.positioner.filter(|device| device.sectors() > 0) {
            Some(device) if self.cylinders => {
                u64::from(device.cylinder(Lba(device.sectors() - 1))) + 1
            }
            Some(device) => device.sectors(),
            None => self.sorted.below(u64::MAX).map_or(1, |key| key.0.max(1)),
        }
    }

    /// The first key at or after `position`. Call [`ByPosition::settle`] before.
    pub fn at_or_after(&self, position: u64) -> Option<Key> {
        self.sorted.at_or_after(position)
    }

    /// Of the items at the largest position below, the key of the one that came first.
    pub fn below(&self, position: u64) -> Option<Key> {
        self.sorted.below(position)
    }

    /// The item with `key`.
    pub fn get(&self, key: Key) -> Option<&Queued> {
        self.sorted.get(key)
    }

    /// Takes the item with `key` out.
    pub fn take(&mut self, key: Key) -> Option<Queued> {
        let item = self.sorted.take(key)?;
        self.served = (item.request.lba.0, item.request.end().0);
        Some(item)
    }

    /// Items in the queue.
    pub fn len(&self) -> usize {
        self.sorted.len() + self.fresh.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes where a sweep stands; the queue is empty.
    pub fn save(&self, to: &mut Saver) {
        to.put(&self.served);
    }

    /// Reads back what [`ByPosition::save`] wrote.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.served = from.take()?;
        Ok(())
    }
}
