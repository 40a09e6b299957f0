//! A first-in, first-out queue in a vector, for short queues with a high turnover.

/// From this many on, removed entries are discarded once they are half of the vector; all are when
/// the queue is empty.
const REMOVED_MAX: usize = 1024;

#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    items: Vec<T>,
    /// Those before it have been removed.
    next: usize,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { items: Vec::with_capacity(64), next: 0 }
    }
}

impl<T: Copy> Fifo<T> {
    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Removes the first entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.front()?;
        self.next += 1;
        if self.is_empty() {
            self.clear();
        } else if self.next >= REMOVED_MAX {
            self.discard_removed();
        }
        Some(item)
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<T> {
        self.items.get(self.next).copied()
    }

    #[inline]
    pub(crate) fn back(&self) -> Option<T> {
        if self.is_empty() { None } else { self.items.last().copied() }
    }

    /// The entries, first to last.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        &self.items[self.next..]
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.next
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.items.len()
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.next = 0;
    }

    /// Moves those left only if they are no more than those removed.
    #[cold]
    fn discard_removed(&mut self) {
        if 2 * self.next >= self.items.len() {
            self.items.drain(..self.next);
            self.next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use std::collections::VecDeque;

    #[test]
    fn it_behaves_as_a_deque() {
        let (mut fifo, mut deque) = (Fifo::default(), VecDeque::new());
        let mut stream = Stream::new(1, "fifo");
        for number in 0..50_000u32 {
            // It grows for a while and shrinks again.
            if stream.chance(if number / 5_000 % 2 == 0 { 0.7 } else { 0.3 }) {
                fifo.push(number);
                deque.push_back(number);
            } else {
                assert_eq!(fifo.pop(), deque.pop_front());
            }
            assert_eq!(
                (fifo.front(), fifo.back()),
                (deque.front().copied(), deque.back().copied())
            );
            assert_eq!((fifo.len(), fifo.is_empty()), (deque.len(), deque.is_empty()));
        }
        assert!(fifo.as_slice().iter().eq(&deque));
        assert!(fifo.items.len() <= 2 * deque.len() + 2 * REMOVED_MAX, "{}", fifo.items.len());
    }
}
