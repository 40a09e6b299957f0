//! Segments: contiguous ranges of sectors in the buffer, replaced in LRU order.
//!
//! No sector is dirty in two segments, except that a segment being destaged keeps its old data
//! while newer data of the same sectors are in another; the old segment is invalidated at the end.

use super::coverage::Coverage;
use super::order::Order;
use hybridsim_engine::{SimTime, StateError};
use serde::{Deserialize, Serialize};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// Nothing.
    Free,
    /// Data that the medium has as well.
    Clean,
    /// Data not yet on the medium; number of its first buffered write.
    Dirty(u64),
    /// Being destaged; number of its first buffered write, and whether newer data have arrived.
    Destaging(u64, bool),
}

/// A contiguous range of sectors in the buffer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Segment {
    start: u64,
    end: u64,
    /// Time at which all of it is in the buffer.
    ready: SimTime,
    used: u64,
    state: State,
    /// Whether the host wrote it.
    written: bool,
}

impl Segment {
    /// Whether sector `lba` is in it: one comparison, as lower sectors wrap to huge distances.
    #[inline]
    fn holds(&self, lba: u64) -> bool {
        lba.wrapping_sub(self.start) < self.end - self.start
    }
}

/// The division of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentsSpec {
    /// Number of segments; 0 for no buffer.
    pub count: usize,
    pub sectors: u64,
    /// Most segments that may hold data for the medium.
    pub write_max: usize,
    /// Whether writes that follow each other share a segment.
    pub combine: bool,
    /// Whether the first segment takes all writes and no reads.
    pub dedicated: bool,
    /// Whether what the host wrote may be read from the buffer.
    pub read_written: bool,
}

/// The buffer.
#[derive(Debug, Serialize, Deserialize)]
pub struct Segments {
    spec: SegmentsSpec,
    segments: Vec<Segment>,
    tick: u64,
    writes: u64,
    write_end: u64,
    /// Segments with data the medium does not have.
    unwritten: usize,
    /// Segments without data.
    #[serde(skip)]
    free: usize,
    /// The segments by last use.
    #[serde(skip)]
    order: Order,
    /// Approximate contents of the segments.
    #[serde(skip)]
    coverage: Coverage,
}

/// A segment that holds the beginning of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Index of the segment.
    pub segment: usize,
    /// The first sector it does not hold.
    pub until: u64,
    /// Time at which all it holds is in the buffer.
    pub ready: SimTime,
}

/// A write accepted into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferedWrite {
    /// Index of the segment.
    pub segment: usize,
    /// Whether the write joined data already waiting there.
    pub joined: bool,
}

impl Segments {
    /// An empty buffer.
    pub fn new(spec: SegmentsSpec) -> Self {
        let empty = Segment {
            start: 0,
            end: 0,
            ready: SimTime::ZERO,
            used: 0,
            state: State::Free,
            written: false,
        };
        Self {
            spec,
            segments: vec![empty; spec.count],
            tick: 0,
            writes: 0,
            write_end: 0,
            unwritten: 0,
            free: spec.count,
            order: Order::new(0..spec.count as u32),
            coverage: Coverage::new(spec.count, spec.sectors),
        }
    }

    /// Derives what is not in a saved state from what is.
    ///
    /// # Errors
    /// If the state is of a buffer that is divided differently.
    pub fn restored(mut self, spec: &SegmentsSpec) -> Result<Self, StateError> {
        let fits = |s: &Segment| s.start <= s.end && s.end - s.start <= spec.sectors;
        if self.spec != *spec
            || self.segments.len() != spec.count
            || !self.segments.iter().all(fits)
        {
            return Err(StateError(
                "its buffer is divided differently, or its segments are damaged".to_owned(),
            ));
        }
        let mut by_use: Vec<u32> = (0..spec.count as u32).collect();
        by_use.sort_by_key(|segment| self.segments[*segment as usize].used);
        self.order = Order::new(by_use.into_iter());
        self.free = self.segments.iter().filter(|s| s.state == State::Free).count();
        self.coverage = Coverage::new(spec.count, spec.sectors);
        self.segments.iter().for_each(|s| self.coverage.replace((0, 0), (s.start, s.end)));
        Ok(self)
    }

    pub fn spec(&self) -> &SegmentsSpec {
        &self.spec
    }

    /// The segment that holds sector `lba` and the most after it.
    #[inline]
    pub fn find(&self, lba: u64) -> Option<Hit> {
        if self.coverage.may_hold(lba) { self.search(lba) } else { None }
    }

    fn search(&self, lba: u64) -> Option<Hit> {
        let mut best: Option<Hit> = None;
        for (segment, s) in self.segments.iter().enumerate() {
            if !s.holds(lba) || (s.written && !self.spec.read_written) {
                continue;
            }
            if best.is_none_or(|found| s.end > found.until) {
                best = Some(Hit { segment, until: s.end, ready: s.ready });
            }
        }
        best
    }

    /// As [`Segments::find`], when only `segment` can hold it.
    #[inline]
    pub fn find_in(&self, segment: usize, lba: u64) -> Option<Hit> {
        let s = &self.segments[segment];
        let readable = self.spec.read_written || !s.written;
        (s.holds(lba) && readable).then_some(Hit { segment, until: s.end, ready: s.ready })
    }

    /// Whether any segment holds sector `a` or sector `b`.
    #[inline]
    pub fn holds_either(&self, a: u64, b: u64) -> bool {
        let may_hold = self.coverage.may_hold(a) || self.coverage.may_hold(b);
        may_hold && self.segments.iter().any(|s| s.holds(a) || s.holds(b))
    }

    /// Notes that `segment` was used.
    #[inline]
    pub fn touch(&mut self, segment: usize) {
        self.tick += 1;
        self.segments[segment].used = self.tick;
        self.order.move_last(segment as u32);
    }

    /// A segment for data read, the least recently used clean one; it is emptied.
    pub fn allocate(&mut self) -> Option<usize> {
        self.allocate_from(usize::from(self.spec.dedicated)..self.segments.len())
    }

    fn allocate_from(&mut self, segments: Range<usize>) -> Option<usize> {
        let segment = match self.first_free(&segments) {
            Some(free) => free,
            None => self.order.iter().map(|segment| segment as usize).find(|segment| {
                self.segments[*segment].state == State::Clean && segments.contains(segment)
            })?,
        };
        self.drop_data(segment);
        self.touch(segment);
        Some(segment)
    }

    #[inline]
    fn first_free(&self, segments: &Range<usize>) -> Option<usize> {
        let is_free = |s: &Segment| s.state == State::Free;
        // A dedicated segment may be free when no other is.
        let others = self.segments[..segments.start].iter().filter(|s| is_free(s)).count();
        if self.free == others {
            return None;
        }
        let at = self.segments[segments.clone()].iter().position(is_free)?;
        Some(segments.start + at)
    }

    /// Sets the sectors `segment` holds.
    #[inline]
    fn set_range(&mut self, segment: usize, start: u64, end: u64) {
        let s = &mut self.segments[segment];
        self.coverage.replace((s.start, s.end), (start, end));
        (s.start, s.end) = (start, end);
    }

    #[inline]
    fn set_state(&mut self, segment: usize, state: State) {
        let s = &mut self.segments[segment];
        self.free -= usize::from(s.state == State::Free);
        self.free += usize::from(state == State::Free);
        s.state = state;
    }

    /// `segment` holds the medium's sectors `start..end`, the last of it from `ready` on; of more
    /// than fits, the end is kept.
    pub fn fill(&mut self, segment: usize, start: u64, end: u64, ready: SimTime) {
        self.set_state(segment, State::Clean);
        self.set_range(segment, start.max(end.saturating_sub(self.spec.sectors)), end);
        let s = &mut self.segments[segment];
        (s.written, s.ready) = (false, ready);
    }

    /// The first sector `segment` holds.
    pub fn start_of(&self, segment: usize) -> u64 {
        self.segments[segment].start
    }

    /// The data of `segment` is complete at `ready`, or later if that was known already.
    pub fn set_ready(&mut self, segment: usize, ready: SimTime) {
        let s = &mut self.segments[segment];
        s.ready = s.ready.max(ready);
    }

    /// Accepts a write of `start..end` into the buffer; `None` if there is no space until a segment
    /// is destaged, or ever.
    pub fn buffer(&mut self, start: u64, end: u64) -> Option<BufferedWrite> {
        if !self.fits(end - start) {
            return None;
        }
        if let Some(segment) = self.joinable(start, end) {
            self.overwrite(start, end, Some(segment));
            let s = &self.segments[segment];
            self.set_range(segment, s.start.min(start), s.end.max(end));
            self.writes += 1;
            self.write_end = end;
            self.touch(segment);
            return Some(BufferedWrite { segment, joined: true });
        }
        if self.dirty() >= self.spec.write_max {
            return None;
        }
        let own = if self.spec.dedicated { 1 } else { self.segments.len() };
        let segment = self.allocate_from(0..own)?;
        self.overwrite(start, end, Some(segment));
        self.writes += 1;
        self.write_end = end;
        self.unwritten += 1;
        self.set_state(segment, State::Dirty(self.writes));
        self.set_range(segment, start, end);
        let s = &mut self.segments[segment];
        (s.written, s.ready) = (true, SimTime::ZERO);
        Some(BufferedWrite { segment, joined: false })
    }

    /// Whether [`Segments::buffer`] would accept a write of `start..end` now.
    pub fn takes(&self, start: u64, end: u64) -> bool {
        let own = if self.spec.dedicated { 1 } else { self.segments.len() };
        let mut own = self.segments.iter().take(own);
        let room = self.dirty() < self.spec.write_max
            && own.any(|s| matches!(s.state, State::Free | State::Clean));
        self.fits(end - start) && (room || self.joinable(start, end).is_some())
    }

    /// Whether a write of so many sectors can ever be buffered.
    pub fn fits(&self, sectors: u64) -> bool {
        self.spec.write_max > 0 && self.spec.count > 0 && sectors <= self.spec.sectors
    }

    fn joinable(&self, start: u64, end: u64) -> Option<usize> {
        self.unwritten().iter().position(|s| {
            let dirty = matches!(s.state, State::Dirty(_));
            let inside = s.start <= start && end <= s.end;
            let follows = self.spec.combine && (s.end == start || s.start == end);
            let length = s.end.max(end) - s.start.min(start);
            dirty && (inside || follows && length <= self.spec.sectors)
        })
    }

    /// Newer data of `start..end` exist elsewhere: invalidates these sectors, except in `keep`.
    pub fn overwrite(&mut self, start: u64, end: u64, keep: Option<usize>) {
        if !self.coverage.may_hold_any(start, end) {
            return;
        }
        for segment in 0..self.segments.len() {
            let s = &mut self.segments[segment];
            if Some(segment) == keep || s.start >= end || start >= s.end {
                continue;
            }
            match s.state {
                State::Destaging(first, _) => s.state = State::Destaging(first, true),
                // The newer data replaces the old in place; it will be written again.
                State::Dirty(_) if s.start < start && end < s.end => {}
                State::Free | State::Clean | State::Dirty(_) => {
                    let kept = if start <= s.start { (end, s.end) } else { (s.start, start) };
                    if kept.0 < kept.1 {
                        self.set_range(segment, kept.0, kept.1);
                    } else {
                        self.drop_data(segment);
                    }
                }
            }
        }
    }

    /// Whether `segment` holds what the medium holds too.
    pub fn is_clean(&self, segment: usize) -> bool {
        self.segments[segment].state == State::Clean
    }

    /// Whether `segment` holds what was read from the medium, and no more sectors than that.
    pub fn is_read(&self, segment: usize) -> bool {
        self.is_clean(segment) && !self.segments[segment].written
    }

    fn drop_data(&mut self, segment: usize) {
        if matches!(self.segments[segment].state, State::Dirty(_) | State::Destaging(..)) {
            self.unwritten -= 1;
        }
        self.set_state(segment, State::Free);
        self.set_range(segment, 0, 0);
    }

    /// Segments with data the medium does not have.
    pub fn dirty(&self) -> usize {
        self.unwritten
    }

    /// The segments to search for dirty ones; empty if there are none.
    fn unwritten(&self) -> &[Segment] {
        if self.unwritten == 0 { &[] } else { &self.segments }
    }

    /// Segments waiting to be destaged that hold a write numbered up to `until`: which, its first
    /// sector, its length, and when it is ready.
    pub fn waiting(&self, until: u64) -> impl Iterator<Item = (usize, u64, u32, SimTime)> + '_ {
        self.unwritten().iter().enumerate().filter_map(move |(i, s)| match s.state {
            State::Dirty(first) if first <= until => {
                Some((i, s.start, (s.end - s.start) as u32, s.ready))
            }
            _ => None,
        })
    }

    /// The sector after the last write buffered.
    pub fn last_write_end(&self) -> u64 {
        self.write_end
    }

    /// The number of the last write buffered.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// The lowest number of a write not yet on the medium.
    pub fn oldest_write(&self) -> Option<u64> {
        let first = |s: &Segment| match s.state {
            State::Dirty(first) | State::Destaging(first, _) => Some(first),
            State::Free | State::Clean => None,
        };
        self.unwritten().iter().filter_map(first).min()
    }

    /// `segment` begins to be written to the medium.
    pub fn begin_destage(&mut self, segment: usize) {
        let s = &mut self.segments[segment];
        if let State::Dirty(first) = s.state {
            s.state = State::Destaging(first, false);
        }
    }

    /// `segment` is on the medium.
    pub fn end_destage(&mut self, segment: usize) {
        match self.segments[segment].state {
            State::Destaging(_, true) => self.drop_data(segment),
            State::Destaging(_, false) => {
                self.segments[segment].state = State::Clean;
                self.unwritten -= 1;
            }
            State::Free | State::Clean | State::Dirty(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(count: usize, sectors: u64, write_max: usize) -> Segments {
        Segments::new(SegmentsSpec {
            count,
            sectors,
            write_max,
            combine: true,
            dedicated: false,
            read_written: true,
        })
    }

    const NOW: SimTime = SimTime::ZERO;

    #[test]
    fn the_least_recently_used_clean_segment_goes_first() {
        let mut buffer = segments(2, 100, 2);
        for start in [0, 200] {
            let segment = buffer.allocate().unwrap();
            buffer.fill(segment, start, start + 10, NOW);
        }
        let first = buffer.find(5).unwrap();
        buffer.touch(first.segment);
        let next = buffer.allocate().unwrap();
        assert_ne!(next, first.segment);
        assert!(buffer.find(205).is_none());
        assert_eq!(buffer.find(5).unwrap().until, 10);
    }

    #[test]
    fn sequential_writes_share_a_segment_until_it_is_full() {
        let mut buffer = segments(4, 20, 2);
        let mut write = |start, end| {
            let takes = buffer.takes(start, end);
            let taken = buffer.buffer(start, end);
            assert_eq!(taken.is_some(), takes);
            taken.map(|taken| taken.joined)
        };
        assert_eq!(write(100, 108), Some(false));
        assert_eq!(write(108, 116), Some(true));
        assert_eq!(write(96, 100), Some(true), "in front");
        assert_eq!(write(116, 120), Some(false), "full");
        assert_eq!(write(500, 501), None, "no write segment left");
        assert_eq!(write(98, 110), Some(true), "rewritten in place");
        assert_eq!(write(0, 21), None, "longer than a segment");
        assert_eq!(buffer.dirty(), 2);
    }

    #[test]
    fn a_restored_buffer_finds_and_replaces_as_the_one_saved() {
        let mut buffer = segments(3, 100, 3);
        for start in [0, 200, 400] {
            let segment = buffer.allocate().unwrap();
            buffer.fill(segment, start, start + 10, NOW);
        }
        buffer.touch(buffer.find(5).unwrap().segment);
        let mut saver = hybridsim_engine::Saver::default();
        saver.put(&buffer);
        let bytes = saver.into_bytes();
        let load = || hybridsim_engine::Loader::new(&bytes).take::<Segments>().unwrap();
        let mut restored = load().restored(buffer.spec()).unwrap();
        for lba in [5, 205, 405, 600] {
            assert_eq!(restored.find(lba), buffer.find(lba));
        }
        assert_eq!(restored.allocate(), buffer.allocate());
        assert!(restored.find(205).is_none() && restored.find(405).is_some());
        let smaller = SegmentsSpec { sectors: 5, ..*buffer.spec() };
        assert!(load().restored(&smaller).is_err());
    }

    #[test]
    fn newer_data_is_never_hidden_by_older() {
        let mut buffer = segments(3, 20, 3);
        let old = buffer.buffer(100, 110).unwrap().segment;
        buffer.begin_destage(old);
        let new = buffer.buffer(105, 115).unwrap().segment;
        assert_ne!(old, new);
        assert_eq!(buffer.oldest_write(), Some(1));
        buffer.end_destage(old);
        assert!(buffer.find(102).is_none(), "the old one is dropped");
        assert_eq!(buffer.find(106).unwrap().segment, new);
        assert_eq!(buffer.oldest_write(), Some(2));
        buffer.overwrite(100, 107, None);
        assert!(buffer.find(106).is_none());
        assert_eq!(buffer.find(107).unwrap().until, 115);
        buffer.overwrite(100, 200, None);
        assert_eq!((buffer.dirty(), buffer.oldest_write()), (0, None));
    }
}
