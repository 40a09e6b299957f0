//! The controller's write buffer: a write is answered when its data are in there, and a place is
//! free again when the page has been programmed.

use crate::geometry::DieId;
use hybridsim_engine::{Loader, Saver, SimDuration, SimTime, StateError};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Held {
    die: DieId,
    /// When the page will have been programmed.
    until: SimTime,
}

/// Pages on their way to the cells.
#[derive(Debug)]
pub struct WriteBuffer {
    pages_max: usize,
    /// Whether what is in it survives a loss of power, so that a flush need not wait.
    protected: bool,
    held: Vec<Held>,
}

impl WriteBuffer {
    /// A buffer of `pages_max` pages; with 0 there is none.
    pub fn new(pages_max: usize, protected: bool) -> Self {
        Self { pages_max, protected, held: Vec::with_capacity(pages_max.min(1 << 16)) }
    }

    /// Whether there is one at all.
    pub const fn exists(&self) -> bool {
        self.pages_max > 0
    }

    /// When a page that is ready at `ready` has a place, and the die whose program makes it.
    pub fn place(&mut self, ready: SimTime) -> (SimTime, Option<DieId>) {
        if self.held.len() < self.pages_max {
            return (ready, None);
        }
        self.held.retain(|held| held.until > ready);
        if self.held.len() < self.pages_max {
            return (ready, None);
        }
        let soonest = (0..self.held.len()).min_by_key(|&at| (self.held[at].until, at));
        let held = self.held.swap_remove(soonest.expect("a full buffer is not empty"));
        (held.until, Some(held.die))
    }

    /// A page is in the buffer until `die` has programmed it.
    pub fn hold(&mut self, die: DieId, until: SimTime) {
        self.held.push(Held { die, until });
    }

    /// Something came first on `die`: what would have ended after `from` ends later by `delay`.
    pub fn postpone(&mut self, die: DieId, from: SimTime, delay: SimDuration) {
        for held in self.held.iter_mut().filter(|held| held.die == die && held.until > from) {
            held.until += delay;
        }
    }

    /// When a flush is done, and the dies it waits for.
    pub fn flushed(&self, now: SimTime) -> (SimTime, impl Iterator<Item = (DieId, SimTime)> + '_) {
        let waits = !self.protected;
        let held = self.held.iter().filter(move |held| waits && held.until > now);
        let end = held.clone().map(|held| held.until).max().unwrap_or(now);
        (end, held.map(|held| (held.die, held.until)))
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&self.held);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let held: Vec<Held> = from.take()?;
        if held.len() > self.pages_max {
            return Err(StateError("the write buffer holds more than fits".to_owned()));
        }
        self.held = held;
        Ok(())
    }
}
