//! The controller's write buffer: a write completes when its data are in the buffer. A buffered
//! page occupies its entry until it is programmed, and until the end of the pause in which it was.

use crate::geometry::DieId;
use crate::restore;
use hybridsim_engine::{Loader, Saver, SimDuration, SimTime, StateError};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Buffered pages whose programs end at the same time, as those of one program do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct BufferedPages {
    until: SimTime,
    count: usize,
}

/// The last part of every interval, in which the buffer frees no entry.
#[derive(Clone, Copy, Debug)]
pub struct BufferPauses {
    pub interval: SimDuration,
    /// Shorter than the interval; zero for no pauses.
    pub length: SimDuration,
}

impl BufferPauses {
    pub const NONE: Self = Self { interval: SimDuration::ZERO, length: SimDuration::ZERO };

    /// When an entry is free whose page is programmed at `at`.
    #[inline]
    fn freed(&self, at: SimTime) -> SimTime {
        if self.length.is_zero() {
            return at;
        }
        let left = self.interval.as_ns() - at.as_ns() % self.interval.as_ns();
        if left <= self.length.as_ns() { at + SimDuration::from_ns(left) } else { at }
    }
}

#[derive(Debug)]
pub struct WriteBuffer {
    pages_max: usize,
    /// The buffer survives a power failure, so a flush need not wait.
    protected: bool,
    pauses: BufferPauses,
    /// Pages in the buffer; those that have left it since are counted until it is full.
    pages: usize,
    /// By die, in the order in which they are programmed.
    dies: Vec<VecDeque<BufferedPages>>,
}

impl WriteBuffer {
    /// A buffer of `pages_max` pages for so many dies; 0 pages for no buffer.
    pub fn new(pages_max: usize, dies: u32, protected: bool) -> Self {
        let dies = vec![VecDeque::new(); if pages_max > 0 { dies as usize } else { 0 }];
        Self { pages_max, protected, pauses: BufferPauses::NONE, pages: 0, dies }
    }

    /// The buffer with pauses.
    #[must_use]
    pub fn with_pauses(self, pauses: BufferPauses) -> Self {
        Self { pauses, ..self }
    }

    pub const fn exists(&self) -> bool {
        self.pages_max > 0
    }

    /// When a page that arrives at `ready` gets an entry, and the program that frees it.
    #[inline]
    pub fn admit(&mut self, ready: SimTime) -> (SimTime, Option<(DieId, SimTime)>) {
        if self.pages < self.pages_max {
            return (ready, None);
        }
        let mut first: Option<(SimTime, usize)> = None;
        for (die, queue) in self.dies.iter_mut().enumerate() {
            while let Some(pages) = queue.front() {
                if self.pauses.freed(pages.until) > ready {
                    if first.is_none_or(|(until, _)| pages.until < until) {
                        first = Some((pages.until, die));
                    }
                    break;
                }
                self.pages -= pages.count;
                queue.pop_front();
            }
        }
        let Some((until, die)) = first.filter(|_| self.pages >= self.pages_max) else {
            return (ready, None);
        };
        self.pages -= 1;
        let pages = self.dies[die].front_mut().expect("its first pages were found");
        pages.count -= 1;
        if pages.count == 0 {
            self.dies[die].pop_front();
        }
        (self.pauses.freed(until), Some((DieId(die as u16), until)))
    }

    /// Buffers a page until `die` has programmed it.
    #[inline]
    pub fn insert(&mut self, die: DieId, until: SimTime) {
        self.pages += 1;
        let queue = &mut self.dies[usize::from(die.0)];
        let mut at = queue.len();
        while at > 0 && queue[at - 1].until > until {
            at -= 1;
        }
        match at.checked_sub(1).and_then(|before| queue.get_mut(before)) {
            Some(pages) if pages.until == until => pages.count += 1,
            _ => queue.insert(at, BufferedPages { until, count: 1 }),
        }
    }

    /// Delays programs of `die` that would end after `from`, since a read precedes them.
    pub fn postpone(&mut self, die: DieId, from: SimTime, delay: SimDuration) {
        let Some(queue) = self.dies.get_mut(usize::from(die.0)) else { return };
        for pages in queue.iter_mut().rev().take_while(|pages| pages.until > from) {
            pages.until += delay;
        }
    }

    /// When a flush completes, and the programs it waits for.
    pub fn flush(&self, now: SimTime) -> (SimTime, impl Iterator<Item = (DieId, SimTime)> + '_) {
        let waits = !self.protected;
        let last = |queue: &VecDeque<BufferedPages>| queue.back().map(|pages| pages.until);
        let ends = self.dies.iter().enumerate().filter_map(move |(die, queue)| {
            let until = last(queue).filter(|until| waits && *until > now)?;
            Some((DieId(die as u16), until))
        });
        let end = ends.clone().map(|(_, until)| until).max().unwrap_or(now);
        (end, ends)
    }

    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&self.dies);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        restore::table(from, "the write buffer", &mut self.dies)?;
        let counts = || self.dies.iter().flatten().map(|pages| pages.count);
        restore::check(counts().all(|count| count > 0), "the write buffer holds empty programs")?;
        self.pages = counts().fold(0, usize::saturating_add);
        restore::check(self.pages <= self.pages_max, "the write buffer is too full")
    }
}
