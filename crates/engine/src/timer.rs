//! The event queue, ordered by (time, phase, sequence): a sorted list and a 4-ary heap.
//!
//! A timer that expires after all others of the list is appended to it, which takes constant time;
//! the others go to the heap. Devices of constant service time, and those with one request at a
//! time, need the list only. The sequence number makes the order total, so results do not depend on
//! where a timer is kept.

use crate::fifo::Fifo;
use crate::time::SimTime;

/// The order of events of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TimerPhase {
    /// An injected fault: before everything else.
    Fault = 0,
    /// A completion: resources become free before they are requested.
    Complete = 1,
    /// A component's own timer.
    Wake = 2,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    /// time << 64 | phase << 56 | sequence.
    key: u128,
    item: T,
}

impl<T> Entry<T> {
    #[inline]
    fn time(&self) -> SimTime {
        SimTime::from_ns((self.key >> 64) as u64)
    }
}

/// A queue of `T` by time.
#[derive(Debug)]
pub struct TimerQueue<T> {
    /// In ascending order.
    sorted: Fifo<Entry<T>>,
    heap: Vec<Entry<T>>,
    sequence: u64,
    /// The root was popped and its place not filled: most pops are followed by a push, which then
    /// fills it, so that the heap is put in order once instead of twice.
    vacant: bool,
}

impl<T: Copy> Default for TimerQueue<T> {
    fn default() -> Self {
        let (sorted, heap) = (Fifo::default(), Vec::with_capacity(64));
        Self { sorted, heap, sequence: 0, vacant: false }
    }
}

const ARITY: usize = 4;

#[inline]
fn key(time: SimTime, phase: TimerPhase, sequence: u64) -> u128 {
    u128::from(time.as_ns()) << 64 | u128::from((phase as u64) << 56 | sequence)
}

impl<T: Copy> TimerQueue<T> {
    /// Adds `item` at `time`.
    #[inline]
    pub fn push(&mut self, time: SimTime, phase: TimerPhase, item: T) {
        let key = key(time, phase, self.sequence);
        self.sequence += 1;
        self.insert(Entry { key, item });
    }

    /// Reserves the next place in the order, for [`TimerQueue::push_reserved`].
    pub fn reserve(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence - 1
    }

    /// Adds `item` at `time`, at the place that [`TimerQueue::reserve`] returned.
    pub fn push_reserved(&mut self, time: SimTime, phase: TimerPhase, reserved: u64, item: T) {
        self.insert(Entry { key: key(time, phase, reserved), item });
    }

    #[inline]
    fn insert(&mut self, entry: Entry<T>) {
        if self.sorted.back().is_none_or(|last| last.key < entry.key) {
            self.sorted.push(entry);
        } else {
            self.insert_into_heap(entry);
        }
    }

    fn insert_into_heap(&mut self, entry: Entry<T>) {
        if std::mem::take(&mut self.vacant) {
            self.sift_down(entry);
        } else {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1);
        }
    }

    #[inline]
    fn first_of_heap(&mut self) -> Option<&Entry<T>> {
        if std::mem::take(&mut self.vacant) {
            self.fill_root();
        }
        self.heap.first()
    }

    fn fill_root(&mut self) {
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(last);
        }
    }

    /// The earliest item, and whether it is in the sorted list.
    #[inline]
    fn first(&mut self) -> Option<(Entry<T>, bool)> {
        let of_heap = self.first_of_heap().copied();
        match (self.sorted.front(), of_heap) {
            (Some(first), None) => Some((first, true)),
            (Some(first), Some(other)) if first.key < other.key => Some((first, true)),
            (_, other) => other.map(|entry| (entry, false)),
        }
    }

    /// The time of the earliest item.
    pub fn first_time(&mut self) -> Option<SimTime> {
        self.first().map(|(entry, _)| entry.time())
    }

    /// Whether the earliest item precedes one that would be added at a reserved place.
    pub fn first_precedes(&mut self, time: SimTime, phase: TimerPhase, reserved: u64) -> bool {
        self.first().is_some_and(|(entry, _)| entry.key < key(time, phase, reserved))
    }

    /// Removes the earliest item.
    #[inline]
    pub fn pop(&mut self) -> Option<(SimTime, T)> {
        let (first, is_sorted) = self.first()?;
        if is_sorted {
            self.sorted.pop();
        } else {
            self.vacant = true;
        }
        Some((first.time(), first.item))
    }

    /// All pending events, earliest first.
    pub fn in_order(&self) -> Vec<(SimTime, T)> {
        let mut entries = self.heap[usize::from(self.vacant)..].to_vec();
        entries.extend(self.sorted.as_slice());
        entries.sort_unstable_by_key(|entry| entry.key);
        entries.into_iter().map(|entry| (entry.time(), entry.item)).collect()
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.sorted.clear();
        self.heap.clear();
        self.vacant = false;
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.sorted.len() + self.heap.len() - usize::from(self.vacant)
    }

    /// Whether none is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn sift_up(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].key <= entry.key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Puts `entry` in the place of the root.
    fn sift_down(&mut self, entry: Entry<T>) {
        let mut at = 0;
        while let Some(children) = self.heap.get(at * ARITY + 1..)
            && let Some(least) = least_of(children)
            && children[least].key < entry.key
        {
            let least = at * ARITY + 1 + least;
            self.heap[at] = self.heap[least];
            at = least;
        }
        self.heap[at] = entry;
    }
}

/// Which of the first [`ARITY`] entries, or of all if there are fewer, comes first.
#[inline]
fn least_of<T>(children: &[Entry<T>]) -> Option<usize> {
    let Some([a, b, c, d]) = children.first_chunk::<ARITY>() else {
        return (0..children.len()).min_by_key(|at| children[*at].key);
    };
    let (left, left_key) = if b.key < a.key { (1, b.key) } else { (0, a.key) };
    let (right, right_key) = if d.key < c.key { (3, d.key) } else { (2, c.key) };
    Some(if right_key < left_key { right } else { left })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pops_by_time_then_phase_then_insertion() {
        let mut queue = TimerQueue::default();
        let at = SimTime::from_ns;
        queue.push(at(5), TimerPhase::Wake, "wake 5 first");
        queue.push(at(5), TimerPhase::Wake, "wake 5 second");
        queue.push(at(5), TimerPhase::Complete, "complete 5");
        queue.push(at(1), TimerPhase::Wake, "wake 1");
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, item)| item).collect();
        assert_eq!(order, ["wake 1", "complete 5", "wake 5 first", "wake 5 second"]);
    }

    #[test]
    fn pushes_between_pops_keep_the_order() {
        let mut stream = crate::Stream::new(8, "event");
        let (mut queue, mut expected) = (TimerQueue::default(), std::collections::BTreeSet::new());
        for i in 0..5_000u32 {
            let grows = stream.chance(if i < 2_000 { 0.7 } else { 0.4 });
            if grows || expected.is_empty() {
                let time = stream.below(1_000);
                queue.push(SimTime::from_ns(time), TimerPhase::Wake, i);
                expected.insert((time, i));
            } else {
                let (time, item) = queue.pop().expect("one is pending");
                assert_eq!(Some((time.as_ns(), item)), expected.pop_first());
            }
            assert_eq!((queue.len(), queue.is_empty()), (expected.len(), expected.is_empty()));
            let pending: Vec<_> = queue.in_order().iter().map(|(t, i)| (t.as_ns(), *i)).collect();
            assert!(pending.into_iter().eq(expected.iter().copied()));
        }
    }

    #[test]
    fn agrees_with_a_stable_sort() {
        let mut stream = crate::Stream::new(7, "event");
        let mut queue = TimerQueue::default();
        let mut expected = Vec::new();
        for i in 0..2_000u32 {
            let time = stream.below(50);
            queue.push(SimTime::from_ns(time), TimerPhase::Wake, i);
            expected.push((time, i));
        }
        expected.sort();
        let got: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(t, i)| (t.as_ns(), i)).collect();
        assert_eq!(got, expected);
    }
}
