//! Doubly linked lists of cached pages, linked by slot number: no allocation, no hashing.

use super::CachedPage;
use serde::{Deserialize, Serialize};

/// In place of a list: the slot is in none.
const UNLISTED: u8 = u8::MAX;

/// The neighbours of a slot; 8 bytes, because a list of many pages costs mostly cache misses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Link {
    before: u32,
    after: u32,
}

/// One list.
pub type SlotList = Lists<1>;

/// `N` lists, oldest first. A slot is in one of them at most.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "[usize; N]: Serialize", deserialize = "[usize; N]: Deserialize<'de>"))]
pub struct Lists<const N: usize> {
    /// The ends of each list, then the slots: a list is a ring through its ends, so that no slot
    /// is a special case.
    links: Vec<Link>,
    /// List by slot.
    lists: Vec<u8>,
    /// Page by slot, valid for listed slots.
    pages: Vec<u64>,
    /// Every page has its number as its slot.
    numbered: bool,
    counts: [usize; N],
}

impl<const N: usize> Default for Lists<N> {
    fn default() -> Self {
        let links = (0..N as u32).map(|list| Link { before: list, after: list }).collect();
        let (lists, pages) = (Vec::new(), Vec::new());
        Self { links, lists, pages, numbered: false, counts: [0; N] }
    }
}

impl<const N: usize> Lists<N> {
    /// From now on every page has its number as its slot; the lists must be empty.
    pub fn number(&mut self) {
        self.numbered = true;
    }

    /// Number of pages of a list.
    #[inline]
    pub const fn len_of(&self, list: usize) -> usize {
        self.counts[list]
    }

    /// The list of a slot.
    // Always inlined, as what follows: calls were a tenth of an access to a cache without data.
    #[inline(always)]
    pub fn list_of(&self, slot: u32) -> Option<usize> {
        let list = *self.lists.get(slot as usize)?;
        (list != UNLISTED).then_some(list as usize)
    }

    /// Whether the page is in a list.
    #[inline]
    pub fn contains(&self, page: CachedPage) -> bool {
        self.list_of(page.slot).is_some()
    }

    /// The next newer page than the one in `slot`, which must be in a list.
    #[inline]
    pub fn after(&self, slot: u32) -> Option<CachedPage> {
        self.page(self.links[slot as usize + N].after)
    }

    /// The oldest page of a list.
    #[inline(always)]
    pub fn oldest_of(&self, list: usize) -> Option<CachedPage> {
        self.page(self.links[list].after)
    }

    /// Removes the oldest page of a list.
    #[inline(always)]
    pub fn pop_of(&mut self, list: usize) -> Option<CachedPage> {
        let oldest = self.oldest_of(list)?;
        self.take(oldest.slot);
        Some(oldest)
    }

    /// Reads what moving a page of a slot reads, as [`super::Replacement::touch`].
    #[inline]
    pub fn touch(&self, slot: u32) -> u64 {
        let Some(link) = self.links.get(slot as usize + N) else { return 0 };
        let (before, after) = (self.links[link.before as usize], self.links[link.after as usize]);
        u64::from(before.after ^ after.before)
    }

    /// The page at an index of `links`, unless that is the end of a list.
    #[inline(always)]
    fn page(&self, at: u32) -> Option<CachedPage> {
        let slot = at.checked_sub(N as u32)?;
        let page = if self.numbered { u64::from(slot) } else { self.pages[slot as usize] };
        Some(CachedPage { page, slot })
    }

    /// Makes a page the newest of a list; it may be in any of them, or in none.
    #[inline(always)]
    pub fn renew_in(&mut self, list: usize, page: CachedPage) {
        let at = page.slot + N as u32;
        match self.list_of(page.slot) {
            None => self.push_to(list, page),
            Some(_) if self.links[list].before == at => {}
            Some(before) => {
                self.unlink(before, at);
                self.lists[page.slot as usize] = list as u8;
                self.link(list, at);
            }
        }
    }

    /// Adds a page as the newest of a list; it must not be in any.
    #[inline(always)]
    pub fn push_to(&mut self, list: usize, page: CachedPage) {
        let slot = page.slot as usize;
        if slot >= self.lists.len() {
            self.grow(slot + 1);
        }
        debug_assert!(self.lists[slot] == UNLISTED, "{page:?} is listed twice");
        self.lists[slot] = list as u8;
        if !self.numbered {
            self.pages[slot] = page.page;
        }
        self.link(list, page.slot + N as u32);
    }

    #[inline(always)]
    fn link(&mut self, list: usize, at: u32) {
        let newest = std::mem::replace(&mut self.links[list].before, at);
        self.links[at as usize] = Link { before: newest, after: list as u32 };
        self.links[newest as usize].after = at;
        self.counts[list] += 1;
    }

    #[inline(always)]
    fn unlink(&mut self, list: usize, at: u32) {
        let Link { before, after } = self.links[at as usize];
        self.links[before as usize].after = after;
        self.links[after as usize].before = before;
        self.counts[list] -= 1;
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        self.lists.resize(slots, UNLISTED);
        self.links.resize(slots + N, Link { before: 0, after: 0 });
        if !self.numbered {
            self.pages.resize(slots, 0);
        }
    }

    /// Removes the page of a slot; returns the list it was in.
    #[inline(always)]
    pub fn take(&mut self, slot: u32) -> Option<usize> {
        let list = self.list_of(slot)?;
        self.lists[slot as usize] = UNLISTED;
        self.unlink(list, slot + N as u32);
        Some(list)
    }

    /// Removes a page, if it is in a list.
    #[inline]
    pub fn remove(&mut self, page: CachedPage) {
        self.take(page.slot);
    }

    /// The pages of a list, oldest first.
    pub fn iter_of(&self, list: usize) -> impl Iterator<Item = CachedPage> + '_ {
        std::iter::successors(self.oldest_of(list), |page| self.after(page.slot))
    }
}

impl SlotList {
    /// Number of pages.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len_of(0)
    }

    /// Whether the list is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The oldest page.
    #[inline]
    pub fn oldest(&self) -> Option<CachedPage> {
        self.oldest_of(0)
    }

    /// Removes the oldest page.
    #[inline]
    pub fn pop(&mut self) -> Option<CachedPage> {
        self.pop_of(0)
    }

    /// Makes a page the newest, whether or not it is in the list.
    #[inline]
    pub fn renew(&mut self, page: CachedPage) {
        self.renew_in(0, page);
    }

    /// Adds a page as the newest; it must not be in the list.
    #[inline]
    pub fn push(&mut self, page: CachedPage) {
        self.push_to(0, page);
    }

    /// The pages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = CachedPage> + '_ {
        self.iter_of(0)
    }
}
