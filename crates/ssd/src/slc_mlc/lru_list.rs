//! LRU lists of logical blocks and pages, with every operation in constant time.

use super::NONE;
use hybridsim_engine::state::{Loader, StateError, same_length};
use hybridsim_flash::restore;
use serde::{Deserialize, Serialize};

/// An LRU list of numbers below a bound, the most recently used first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LruList {
    /// (towards the front, towards the back) of each number; the last pair is the anchor.
    links: Vec<(u32, u32)>,
    listed: u32,
}

impl LruList {
    /// An empty list for numbers below `bound`.
    pub fn new(bound: u32) -> Self {
        let mut links = vec![(NONE, NONE); bound as usize + 1];
        links[bound as usize] = (bound, bound);
        Self { links, listed: 0 }
    }

    const fn anchor(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    #[inline]
    pub const fn len(&self) -> u32 {
        self.listed
    }

    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        self.links[number as usize].0 != NONE
    }

    /// Moves `number` to the front; inserts it if it is not listed.
    pub fn touch(&mut self, number: u32) {
        let anchor = self.anchor();
        if self.links[anchor as usize].1 == number {
            return;
        }
        self.remove(number);
        let first = self.links[anchor as usize].1;
        self.links[number as usize] = (anchor, first);
        self.links[first as usize].0 = number;
        self.links[anchor as usize].1 = number;
        self.listed += 1;
    }

    pub fn remove(&mut self, number: u32) {
        let (front, back) = self.links[number as usize];
        if front == NONE {
            return;
        }
        self.links[front as usize].1 = back;
        self.links[back as usize].0 = front;
        self.links[number as usize] = (NONE, NONE);
        self.listed -= 1;
    }

    pub fn least_recent_first(&self) -> impl Iterator<Item = u32> + '_ {
        let anchor = self.anchor();
        let mut at = anchor;
        std::iter::from_fn(move || {
            at = self.links[at as usize].0;
            (at != anchor).then_some(at)
        })
    }

    pub fn least_recent(&self) -> Option<u32> {
        self.least_recent_first().next()
    }

    /// # Errors
    /// When the saved list has another bound, or its links are inconsistent.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let saved: Self = from.take()?;
        same_length("an LRU list", saved.links.len(), self.links.len())?;
        restore::check(saved.is_consistent(), "an LRU list is inconsistent")?;
        *self = saved;
        Ok(())
    }

    fn is_consistent(&self) -> bool {
        let (mut at, mut count) = (self.anchor(), 0);
        loop {
            let next = self.links[at as usize].1;
            if self.links.get(next as usize).is_none_or(|link| link.0 != at) {
                return false;
            }
            if next == self.anchor() {
                break;
            }
            (at, count) = (next, count + 1);
            if count > self.listed {
                return false;
            }
        }
        let linked = self.links.iter().filter(|link| link.0 != NONE).count() as u32;
        (count, linked) == (self.listed, self.listed + 1)
    }

    pub fn clear(&mut self) {
        while let Some(number) = self.least_recent() {
            self.remove(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn it_agrees_with_a_queue() {
        let mut stream = hybridsim_engine::Stream::new(1, "recent");
        let (mut list, mut queue) = (LruList::new(9), VecDeque::new());
        for _ in 0..2_000 {
            let number = stream.below(9) as u32;
            queue.retain(|other| *other != number);
            if stream.chance(0.7) {
                list.touch(number);
                queue.push_back(number);
            } else {
                list.remove(number);
            }
            assert!(list.least_recent_first().eq(queue.iter().copied()));
            assert_eq!(list.len() as usize, queue.len());
            assert_eq!(list.contains(number), queue.contains(&number));
        }
        list.clear();
        assert_eq!((list.len(), list.least_recent()), (0, None));
    }
}
