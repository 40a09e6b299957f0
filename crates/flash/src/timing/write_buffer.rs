//! The controller's write buffer: a write completes when its data are in the buffer. A buffered
//! page occupies its entry until it is programmed.

use crate::geometry::DieId;
use crate::restore;
use hybridsim_engine::{Loader, Saver, SimDuration, SimTime, StateError};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct BufferedPage {
    die: DieId,
    /// End of its program.
    until: SimTime,
}

#[derive(Debug)]
pub struct WriteBuffer {
    pages_max: usize,
    /// The buffer survives a power failure, so a flush need not wait.
    protected: bool,
    pages: Vec<BufferedPage>,
}

impl WriteBuffer {
    /// A buffer of `pages_max` pages; 0 for no buffer.
    pub fn new(pages_max: usize, protected: bool) -> Self {
        Self { pages_max, protected, pages: Vec::with_capacity(pages_max.min(1 << 16)) }
    }

    pub const fn exists(&self) -> bool {
        self.pages_max > 0
    }

    /// When a page that arrives at `ready` gets an entry, and the die whose program frees it.
    pub fn admit(&mut self, ready: SimTime) -> (SimTime, Option<DieId>) {
        if self.pages.len() < self.pages_max {
            return (ready, None);
        }
        self.pages.retain(|page| page.until > ready);
        if self.pages.len() < self.pages_max {
            return (ready, None);
        }
        let first = (0..self.pages.len()).min_by_key(|&at| (self.pages[at].until, at));
        let page = self.pages.swap_remove(first.expect("a full buffer is not empty"));
        (page.until, Some(page.die))
    }

    /// Buffers a page until `die` has programmed it.
    pub fn insert(&mut self, die: DieId, until: SimTime) {
        self.pages.push(BufferedPage { die, until });
    }

    /// Delays programs of `die` that would end after `from`, since a read precedes them.
    pub fn postpone(&mut self, die: DieId, from: SimTime, delay: SimDuration) {
        for page in self.pages.iter_mut().filter(|page| page.die == die && page.until > from) {
            page.until += delay;
        }
    }

    /// When a flush completes, and the programs it waits for.
    pub fn flush(&self, now: SimTime) -> (SimTime, impl Iterator<Item = (DieId, SimTime)> + '_) {
        let waits = !self.protected;
        let pages = self.pages.iter().filter(move |page| waits && page.until > now);
        let end = pages.clone().map(|page| page.until).max().unwrap_or(now);
        (end, pages.map(|page| (page.die, page.until)))
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&self.pages);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.pages = from.take()?;
        restore::check(self.pages.len() <= self.pages_max, "the write buffer is too full")
    }
}
