//! Doubly linked lists over numbered items (blocks, slots, logical blocks).

use crate::restore;
use hybridsim_engine::state::{Loader, StateError, same_length};
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

/// An item's neighbours, and the list it is in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Link {
    previous: u32,
    next: u32,
    list: u32,
}

/// Linked lists over items `0..items`, of which each is in at most one list. Every operation takes
/// constant time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Lists {
    heads: Vec<u32>,
    tails: Vec<u32>,
    links: Vec<Link>,
}

#[inline]
fn some(item: u32) -> Option<u32> {
    if item == NONE { None } else { Some(item) }
}

impl Lists {
    pub(crate) fn new(lists: usize, items: usize) -> Self {
        Self {
            heads: vec![NONE; lists],
            tails: vec![NONE; lists],
            links: vec![Link { previous: NONE, next: NONE, list: NONE }; items],
        }
    }

    #[inline]
    pub(crate) fn list_of(&self, item: u32) -> Option<usize> {
        some(self.links[item as usize].list).map(|list| list as usize)
    }

    /// The head of `list`, which has been in it longest.
    #[inline]
    pub(crate) fn first(&self, list: usize) -> Option<u32> {
        some(self.heads[list])
    }

    /// The item behind `item` in its list.
    #[inline]
    pub(crate) fn next(&self, item: u32) -> Option<u32> {
        some(self.links[item as usize].next)
    }

    /// The items of `list`, from head to tail.
    pub(crate) fn iter(&self, list: usize) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.first(list), |item| self.next(*item))
    }

    /// Appends `item`, which is in no list.
    #[inline]
    pub(crate) fn push(&mut self, list: usize, item: u32) {
        debug_assert_eq!(self.links[item as usize].list, NONE, "already in a list");
        let tail = self.tails[list];
        self.links[item as usize] = Link { previous: tail, next: NONE, list: list as u32 };
        self.tails[list] = item;
        if tail == NONE {
            self.heads[list] = item;
        } else {
            self.links[tail as usize].next = item;
        }
    }

    /// Removes `item` from its list; does nothing if it is in none.
    #[inline]
    pub(crate) fn remove(&mut self, item: u32) {
        let Link { previous, next, list } = self.links[item as usize];
        if list == NONE {
            return;
        }
        let list = list as usize;
        if previous == NONE {
            self.heads[list] = next;
        } else {
            self.links[previous as usize].next = next;
        }
        if next == NONE {
            self.tails[list] = previous;
        } else {
            self.links[next as usize].previous = previous;
        }
        self.links[item as usize].list = NONE;
    }

    /// Moves `item`, which may be in a list already, to the tail of `list`.
    pub(crate) fn move_to(&mut self, list: usize, item: u32) {
        self.remove(item);
        self.push(list, item);
    }
}

/// Numbered items in the order of their last use. Every operation takes constant time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LruList {
    lists: Lists,
    len: u32,
}

impl LruList {
    /// An empty list for items `0..items`.
    pub fn new(items: u32) -> Self {
        Self { lists: Lists::new(1, items as usize), len: 0 }
    }

    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn contains(&self, item: u32) -> bool {
        self.lists.list_of(item).is_some()
    }

    /// Makes `item` the most recently used; inserts it if it is not listed.
    #[inline]
    pub fn touch(&mut self, item: u32) {
        self.len += u32::from(!self.contains(item));
        self.lists.move_to(0, item);
    }

    pub fn remove(&mut self, item: u32) {
        self.len -= u32::from(self.contains(item));
        self.lists.remove(item);
    }

    #[inline]
    pub fn least_recent(&self) -> Option<u32> {
        self.lists.first(0)
    }

    /// The items, the least recently used first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.lists.iter(0)
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.lists.links.len() as u32);
    }

    /// Restores a list of as many items.
    ///
    /// # Errors
    /// If the saved list is for another number of items, or its links are inconsistent.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let saved: Self = from.take()?;
        same_length("an LRU list", saved.lists.links.len(), self.lists.links.len())?;
        restore::check(saved.is_consistent(), "an LRU list is inconsistent")?;
        *self = saved;
        Ok(())
    }

    fn is_consistent(&self) -> bool {
        let Lists { heads, tails, links } = &self.lists;
        let ([head], [tail]) = (&heads[..], &tails[..]) else { return false };
        let (mut at, mut previous, mut count) = (*head, NONE, 0);
        while let Some(link) = links.get(at as usize)
            && (link.list, link.previous) == (0, previous)
            && count < self.len
        {
            (previous, at, count) = (at, link.next, count + 1);
        }
        let listed = links.iter().filter(|link| link.list != NONE).count();
        (at, previous, count, listed) == (NONE, *tail, self.len, self.len as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_leave_in_the_order_they_came() {
        let mut lists = Lists::new(2, 6);
        for item in [3, 1, 5, 2] {
            lists.push(0, item);
        }
        lists.move_to(1, 1);
        lists.remove(2);
        lists.remove(2);
        lists.push(0, 4);
        assert!(lists.iter(0).eq([3, 5, 4]) && lists.iter(1).eq([1]));
        assert_eq!((lists.list_of(1), lists.list_of(2)), (Some(1), None));
        for item in [5, 3, 4] {
            lists.remove(item);
        }
        assert_eq!((lists.first(0), lists.tails[0]), (None, NONE));
    }

    #[test]
    fn an_lru_list_agrees_with_a_queue() {
        let mut stream = hybridsim_engine::Stream::new(1, "recent");
        let (mut list, mut queue) = (LruList::new(9), std::collections::VecDeque::new());
        for _ in 0..2_000 {
            let item = stream.below(9) as u32;
            queue.retain(|other| *other != item);
            if stream.chance(0.7) {
                list.touch(item);
                queue.push_back(item);
            } else {
                list.remove(item);
            }
            assert!(list.iter().eq(queue.iter().copied()) && list.is_consistent());
            assert_eq!(list.len() as usize, queue.len());
            assert_eq!(list.contains(item), queue.contains(&item));
        }
        list.lists.links[4].previous = 4;
        assert!(!list.is_consistent());
        list.clear();
        assert_eq!((list.len(), list.least_recent()), (0, None));
    }
}
