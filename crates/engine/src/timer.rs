//! The event queue: a 4-ary heap ordered by (time, phase, sequence).
//!
//! The sequence number makes the order total, so results do not depend on how the heap breaks ties.

use crate::time::SimTime;

/// The order of events of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TimerPhase {
    /// A completion: resources become free before they are requested.
    Complete = 0,
    /// A component's own timer.
    Wake = 1,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    /// time << 64 | phase << 56 | sequence.
    key: u128,
    item: T,
}

/// A queue of `T` by time.
#[derive(Debug)]
pub struct TimerQueue<T> {
    heap: Vec<Entry<T>>,
    sequence: u64,
}

impl<T: Copy> Default for TimerQueue<T> {
    fn default() -> Self {
        Self { heap: Vec::with_capacity(64), sequence: 0 }
    }
}

const ARITY: usize = 4;

impl<T: Copy> TimerQueue<T> {
    /// Adds `item` at `time`.
    pub fn push(&mut self, time: SimTime, phase: TimerPhase, item: T) {
        let low = (phase as u64) << 56 | self.sequence;
        self.sequence += 1;
        let key = u128::from(time.as_ns()) << 64 | u128::from(low);
        self.heap.push(Entry { key, item });
        self.sift_up(self.heap.len() - 1);
    }

    /// Removes the earliest item.
    pub fn pop(&mut self) -> Option<(SimTime, T)> {
        let first = *self.heap.first()?;
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.heap[0] = last;
            self.sift_down();
        }
        Some((SimTime::from_ns((first.key >> 64) as u64), first.item))
    }

    /// All pending events, earliest first.
    pub fn in_order(&self) -> Vec<(SimTime, T)> {
        let mut entries = self.heap.clone();
        entries.sort_unstable_by_key(|entry| entry.key);
        let time = |key: u128| SimTime::from_ns((key >> 64) as u64);
        entries.into_iter().map(|entry| (time(entry.key), entry.item)).collect()
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.heap.clear();
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
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

    fn sift_down(&mut self) {
        let entry = self.heap[0];
        let len = self.heap.len();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(len) {
                if self.heap[child].key < self.heap[least].key {
                    least = child;
                }
            }
            if self.heap[least].key >= entry.key {
                break;
            }
            self.heap[at] = self.heap[least];
            at = least;
        }
        self.heap[at] = entry;
    }
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
