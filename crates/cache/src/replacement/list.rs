//! A doubly linked list of cached pages, linked by slot number: no allocation, no hashing.

use super::CachedPage;
use serde::{Deserialize, Serialize};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Link {
    page: u64,
    before: u32,
    after: u32,
    listed: bool,
}

const UNLINKED: Link = Link { page: 0, before: NONE, after: NONE, listed: false };

/// The list, oldest first.
#[derive(Debug, Serialize, Deserialize)]
pub struct SlotList {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
    count: usize,
}

impl Default for SlotList {
    fn default() -> Self {
        Self { links: Vec::new(), oldest: NONE, newest: NONE, count: 0 }
    }
}

impl SlotList {
    /// Number of pages.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The next newer page than the one in `slot`, which must be in the list.
    pub fn after(&self, slot: u32) -> Option<CachedPage> {
        let slot = self.links.get(slot as usize).filter(|link| link.listed)?.after;
        let link = self.links.get(slot as usize)?;
        Some(CachedPage { page: link.page, slot })
    }

    /// The oldest page.
    pub fn oldest(&self) -> Option<CachedPage> {
        self.iter().next()
    }

    /// Makes a page the newest; it must be in the list.
    pub fn renew(&mut self, page: CachedPage) {
        self.remove(page);
        self.push(page);
    }

    /// Whether the page is in the list.
    pub fn contains(&self, page: CachedPage) -> bool {
        self.links.get(page.slot as usize).is_some_and(|link| link.listed)
    }

    /// Adds a page as the newest; it must not be in the list.
    pub fn push(&mut self, page: CachedPage) {
        let slot = page.slot as usize;
        if slot >= self.links.len() {
            self.links.resize(slot + 1, UNLINKED);
        }
        debug_assert!(!self.links[slot].listed, "{page:?} is listed twice");
        let link = Link { page: page.page, before: self.newest, after: NONE, listed: true };
        self.links[slot] = link;
        match self.newest {
            NONE => self.oldest = page.slot,
            newest => self.links[newest as usize].after = page.slot,
        }
        self.newest = page.slot;
        self.count += 1;
    }

    /// Removes a page, if it is in the list.
    pub fn remove(&mut self, page: CachedPage) {
        if !self.contains(page) {
            return;
        }
        let Link { before, after, .. } = self.links[page.slot as usize];
        match before {
            NONE => self.oldest = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.newest = before,
            after => self.links[after as usize].before = before,
        }
        self.links[page.slot as usize].listed = false;
        self.count -= 1;
    }

    /// The pages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = CachedPage> + '_ {
        let mut at = self.oldest;
        std::iter::from_fn(move || {
            let link = self.links.get(at as usize)?;
            let page = CachedPage { page: link.page, slot: at };
            at = link.after;
            Some(page)
        })
    }
}
