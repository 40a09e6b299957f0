//! Lists of logical blocks by recency: which mapping is cached, which chain is written to.

use hybridsim_engine::state::{StateError, same_length};
use serde::{Deserialize, Serialize};

/// No block.
pub const NONE: u32 = u32::MAX;

/// A list of numbers below a bound, the latest used first. All operations take constant time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recent {
    /// (towards the front, towards the back) of each number; the last pair is the anchor.
    links: Vec<(u32, u32)>,
    listed: u32,
}

impl Recent {
    /// An empty list for numbers below `bound`.
    pub fn new(bound: u32) -> Self {
        let mut links = vec![(NONE, NONE); bound as usize + 1];
        links[bound as usize] = (bound, bound);
        Self { links, listed: 0 }
    }

    const fn anchor(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    /// How many are listed.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.listed
    }

    /// Whether `number` is listed.
    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        self.links[number as usize].0 != NONE
    }

    /// Puts `number` in front.
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

    /// Takes `number` out, if it is in.
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

    /// The numbers, the least recently used first.
    pub fn back_to_front(&self) -> impl Iterator<Item = u32> + '_ {
        let anchor = self.anchor();
        let mut at = anchor;
        std::iter::from_fn(move || {
            at = self.links[at as usize].0;
            (at != anchor).then_some(at)
        })
    }

    /// The least recently used number.
    pub fn oldest(&self) -> Option<u32> {
        self.back_to_front().next()
    }

    /// Becomes `other`, which was put down by a list of the same numbers.
    ///
    /// # Errors
    /// When it was not, or its links do not lead round.
    pub fn replace(&mut self, other: Self) -> Result<(), StateError> {
        same_length("a list by recency", other.links.len(), self.links.len())?;
        let broken = || StateError("a list by recency does not hang together".to_owned());
        let (mut at, mut count) = (other.anchor(), 0);
        loop {
            let next = other.links[at as usize].1;
            if other.links.get(next as usize).is_none_or(|link| link.0 != at) {
                return Err(broken());
            }
            if next == other.anchor() {
                break;
            }
            (at, count) = (next, count + 1);
            if count > other.listed {
                return Err(broken());
            }
        }
        let linked = other.links.iter().filter(|link| link.0 != NONE).count() as u32;
        if (count, linked) != (other.listed, other.listed + 1) {
            return Err(broken());
        }
        *self = other;
        Ok(())
    }

    /// Empties the list.
    pub fn clear(&mut self) {
        while let Some(number) = self.oldest() {
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
        let (mut list, mut queue) = (Recent::new(9), VecDeque::new());
        for _ in 0..2_000 {
            let number = stream.below(9) as u32;
            queue.retain(|other| *other != number);
            if stream.chance(0.7) {
                list.touch(number);
                queue.push_back(number);
            } else {
                list.remove(number);
            }
            assert!(list.back_to_front().eq(queue.iter().copied()));
            assert_eq!(list.len() as usize, queue.len());
            assert_eq!(list.contains(number), queue.contains(&number));
        }
        list.clear();
        assert_eq!((list.len(), list.oldest()), (0, None));
    }
}
