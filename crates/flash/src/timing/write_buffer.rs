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
    /// Most time that writes wait for a full buffer in a pause; `None` for its whole length.
    pub full_max: Option<SimDuration>,
}

/// A pause that ends before its interval does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ShortPause {
    interval_end: SimTime,
    end: SimTime,
}

impl BufferPauses {
    pub const NONE: Self =
        Self { interval: SimDuration::ZERO, length: SimDuration::ZERO, full_max: None };

    /// The end of the interval of the pause in which `at` is.
    #[inline]
    fn interval_end(&self, at: SimTime) -> Option<SimTime> {
        if self.length.is_zero() {
            return None;
        }
        let left = self.interval.as_ns() - at.as_ns() % self.interval.as_ns();
        (left <= self.length.as_ns()).then(|| at + SimDuration::from_ns(left))
    }

    /// Time at which an entry is freed whose page is programmed at `at`; some pauses are `short`.
    #[inline]
    fn freed(&self, at: SimTime, short: &VecDeque<ShortPause>) -> SimTime {
        let Some(end) = self.interval_end(at) else { return at };
        let short = short.iter().find(|pause| pause.interval_end == end);
        short.map_or(end, |pause| pause.end.max(at))
    }
}

#[derive(Debug)]
pub struct WriteBuffer {
    pages_max: usize,
    /// The buffer survives a power failure, so a flush need not wait.
    protected: bool,
    pauses: BufferPauses,
    /// Pauses that end early because the buffer is full; past ones are removed.
    short: VecDeque<ShortPause>,
    /// Pages in the buffer; those that have left it since are counted until it is full.
    pages: usize,
    /// By die, in the order in which they are programmed.
    dies: Vec<VecDeque<BufferedPages>>,
}

impl WriteBuffer {
    /// A buffer of `pages_max` pages for so many dies; 0 pages for no buffer.
    pub fn new(pages_max: usize, dies: u32, protected: bool) -> Self {
        let dies = vec![VecDeque::new(); if pages_max > 0 { dies as usize } else { 0 }];
        let (pauses, short) = (BufferPauses::NONE, VecDeque::new());
        Self { pages_max, protected, pauses, short, pages: 0, dies }
    }

    #[must_use]
    pub fn with_pauses(self, pauses: BufferPauses) -> Self {
        Self { pauses, ..self }
    }

    pub const fn exists(&self) -> bool {
        self.pages_max > 0
    }

    /// Time at which a page that needs an entry at `ready` and waits `since` gets one, as far as it
    /// is known: reads may still delay the program that frees it. `None` if one is free.
    #[inline]
    pub fn wait_for_entry(&mut self, ready: SimTime, since: SimTime) -> Option<SimTime> {
        if self.pages < self.pages_max {
            return None;
        }
        self.wait_if_full(ready, since)
    }

    fn wait_if_full(&mut self, ready: SimTime, since: SimTime) -> Option<SimTime> {
        let mut first: Option<SimTime> = None;
        for queue in &mut self.dies {
            while let Some(pages) = queue.front() {
                if self.pauses.freed(pages.until, &self.short) > ready {
                    first = Some(first.map_or(pages.until, |until| until.min(pages.until)));
                    break;
                }
                self.pages -= pages.count;
                queue.pop_front();
            }
        }
        let until = first.filter(|_| self.pages >= self.pages_max)?;
        self.shorten(since, until);
        Some(self.pauses.freed(until, &self.short))
    }

    /// A write waits from `since` on for a page that is programmed at `until`: a pause that it
    /// waits for ends early.
    fn shorten(&mut self, since: SimTime, until: SimTime) {
        let Some(full_max) = self.pauses.full_max else { return };
        let Some(interval_end) = self.pauses.interval_end(until) else { return };
        if self.short.iter().any(|pause| pause.interval_end == interval_end) {
            return;
        }
        while self.short.front().is_some_and(|pause| pause.interval_end <= since) {
            self.short.pop_front();
        }
        let begin = SimTime::from_ns(interval_end.as_ns() - self.pauses.length.as_ns());
        let end = (since.max(begin) + full_max).min(interval_end);
        self.short.push_back(ShortPause { interval_end, end });
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

    /// Completion of a flush, and the programs it waits for.
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
        to.put(&self.short);
    }

    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        restore::table(from, "the write buffer", &mut self.dies)?;
        self.short = from.take()?;
        let ends = self.short.iter().all(|pause| pause.end <= pause.interval_end);
        let ascend = self.short.iter().is_sorted_by_key(|pause| pause.interval_end);
        restore::check(ends && ascend, "the pauses of the write buffer are out of order")?;
        let sorted = |queue: &VecDeque<BufferedPages>| {
            queue.iter().is_sorted_by_key(|it: &BufferedPages| it.until)
        };
        let are_sorted = self.dies.iter().all(sorted);
        restore::check(are_sorted, "the programs of the write buffer are out of order")?;
        let counts = || self.dies.iter().flatten().map(|pages| pages.count);
        restore::check(counts().all(|count| count > 0), "the write buffer holds empty programs")?;
        self.pages = counts().fold(0, usize::saturating_add);
        restore::check(self.pages <= self.pages_max, "the write buffer is too full")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_ends_early_does_so_after_a_restore() {
        let us = |us: u64| SimTime::from_ns(1_000 * us);
        let length = SimDuration::from_us;
        let pauses = BufferPauses {
            interval: length(1_000),
            length: length(600),
            full_max: Some(length(100)),
        };
        let new = || WriteBuffer::new(2, 1, false).with_pauses(pauses);
        let mut buffer = new();
        for until in [500, 530] {
            buffer.insert(DieId(0), us(until));
        }
        // Both are programmed in the pause from 400 to 1,000, and a write waits from 450 on.
        assert_eq!(buffer.wait_for_entry(us(450), us(450)), Some(us(550)));
        let mut saver = Saver::default();
        buffer.save(&mut saver);
        let bytes = saver.into_bytes();
        let mut restored = new();
        restored.restore(&mut Loader::new(&bytes)).expect("just saved");
        for buffer in [&mut buffer, &mut restored] {
            assert_eq!(buffer.wait_for_entry(us(549), us(545)), Some(us(550)));
            assert_eq!(buffer.wait_for_entry(us(550), us(450)), None);
            assert_eq!(buffer.pages, 0, "both programs ended before the pause");
        }
    }
}
