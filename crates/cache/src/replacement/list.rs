//! A doubly linked list of cached pages, linked by slot number: no allocation, no hashing.

use super::CachedPage;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;
/// As `before`: the slot is not in the list.
const UNLISTED: u32 = u32::MAX - 1;

/// The neighbours of a slot; 8 bytes, because a list of many pages costs mostly cache misses.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Link {
    before: u32,
    after: u32,
}

const UNLINKED: Link = Link { before: UNLISTED, after: NONE };

/// The list, oldest first.
#[derive(Debug, Serialize, Deserialize)]
pub struct SlotList {
    links: Vec<Link>,
    /// Page by slot, valid for listed slots.
    pages: Vec<u64>,
    oldest: u32,
    newest: u32,
    count: usize,
}

impl Default for SlotList {
    fn default() -> Self {
        Self { links: Vec::new(), pages: Vec::new(), oldest: NONE, newest: NONE, count: 0 }
    }
}

impl SlotList {
    /// Number of pages.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The next newer page than the one in `slot`, which must be in the list.
    #[inline]
    pub fn after(&self, slot: u32) -> Option<CachedPage> {
        let link = self.links.get(slot as usize).filter(|link| link.before != UNLISTED)?;
        self.page(link.after)
    }

    /// The oldest page.
    #[inline]
    pub fn oldest(&self) -> Option<CachedPage> {
        self.page(self.oldest)
    }

    /// Removes the oldest page.
    #[inline]
    pub fn pop(&mut self) -> Option<CachedPage> {
        let oldest = self.oldest()?;
        self.remove(oldest);
        Some(oldest)
    }

    /// Reads the neighbours of a slot, as [`super::Replacement::touch`].
    #[inline]
    pub fn touch(&self, slot: u32) -> u64 {
        self.links.get(slot as usize).map_or(0, |link| u64::from(link.before))
    }

    #[inline]
    fn page(&self, slot: u32) -> Option<CachedPage> {
        Some(CachedPage { page: *self.pages.get(slot as usize)?, slot })
    }

    /// Makes a page the newest; it must be in the list.
    #[inline]
    pub fn renew(&mut self, page: CachedPage) {
        if page.slot != self.newest {
            self.remove(page);
            self.push(page);
        }
    }

    /// Whether the page is in the list.
    #[inline]
    pub fn contains(&self, page: CachedPage) -> bool {
        self.links.get(page.slot as usize).is_some_and(|link| link.before != UNLISTED)
    }

    /// Adds a page as the newest; it must not be in the list.
    #[inline]
    pub fn push(&mut self, page: CachedPage) {
        let slot = page.slot as usize;
        if slot >= self.links.len() {
            self.grow(slot + 1);
        }
        debug_assert!(self.links[slot].before == UNLISTED, "{page:?} is listed twice");
        self.links[slot] = Link { before: self.newest, after: NONE };
        self.pages[slot] = page.page;
        match self.newest {
            NONE => self.oldest = page.slot,
            newest => self.links[newest as usize].after = page.slot,
        }
        self.newest = page.slot;
        self.count += 1;
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        self.links.resize(slots, UNLINKED);
        self.pages.resize(slots, 0);
    }

    /// Removes a page, if it is in the list.
    #[inline]
    pub fn remove(&mut self, page: CachedPage) {
        let Some(link) = self.links.get_mut(page.slot as usize) else { return };
        let Link { before, after } = *link;
        if before == UNLISTED {
            return;
        }
        link.before = UNLISTED;
        match before {
            NONE => self.oldest = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.newest = before,
            after => self.links[after as usize].before = before,
        }
        self.count -= 1;
    }

    /// The pages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = CachedPage> + '_ {
        let mut at = self.oldest;
        std::iter::from_fn(move || {
            let link = self.links.get(at as usize)?;
            let page = CachedPage { page: self.pages[at as usize], slot: at };
            at = link.after;
            Some(page)
        })
    }
}
