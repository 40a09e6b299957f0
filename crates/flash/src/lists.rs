//! Doubly linked lists over numbered items (blocks, slots, logical blocks).

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
    /// `lists` empty lists.
    pub(crate) fn new(lists: usize, items: usize) -> Self {
        Self {
            heads: vec![NONE; lists],
            tails: vec![NONE; lists],
            links: vec![Link { previous: NONE, next: NONE, list: NONE }; items],
        }
    }

    /// Number of lists.
    pub(crate) const fn count(&self) -> usize {
        self.heads.len()
    }

    /// Number of items that can be in a list.
    pub(crate) const fn items(&self) -> usize {
        self.links.len()
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
}
