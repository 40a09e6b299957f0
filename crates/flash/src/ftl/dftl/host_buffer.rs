//! The part of the cached map that is in the memory of the host (NVMe host memory buffer).
//!
//! It holds whole translation pages and evicts the least recently used. An entry that the
//! controller evicts is written to its page there instead of to flash; a page that differs from its
//! copy in flash is dirty, and is programmed when it is evicted.

use crate::geometry::Lpn;
use crate::lists::LruList;
use serde::{Deserialize, Serialize};

/// Entries that one access brings: 64 bytes of 4 each.
const ENTRIES_PER_ACCESS: u32 = 16;

/// Translation pages in the memory of the host.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostBuffer {
    held: LruList,
    /// Pages it holds at most; at least one.
    capacity: u32,
    /// By translation page.
    is_dirty: Vec<bool>,
    /// The entries that the last access brought, by number; those of earlier ones are not kept.
    brought: Option<u32>,
}

impl HostBuffer {
    /// A buffer for `capacity` of `pages` translation pages.
    pub fn new(capacity: u32, pages: u32) -> Self {
        Self {
            held: LruList::new(pages),
            capacity,
            is_dirty: vec![false; pages as usize],
            brought: None,
        }
    }

    #[inline]
    pub fn holds(&self, page: u32) -> bool {
        self.held.contains(page)
    }

    #[inline]
    pub fn is_dirty(&self, page: u32) -> bool {
        self.is_dirty[page as usize]
    }

    /// Reads the entry of `lpn` in `page`, which it holds. Returns whether that takes an access:
    /// the last one may have brought it.
    #[inline]
    pub fn access(&mut self, page: u32, lpn: Lpn) -> bool {
        self.held.touch(page);
        let entries = lpn.0 / ENTRIES_PER_ACCESS;
        self.brought.replace(entries) != Some(entries)
    }

    /// Writes entries of `page`, which it holds.
    #[inline]
    pub fn update(&mut self, page: u32) {
        self.held.touch(page);
        self.is_dirty[page as usize] = true;
    }

    /// The page that is evicted before another is inserted.
    pub fn victim(&self) -> Option<u32> {
        if self.held.len() < self.capacity { None } else { self.held.least_recent() }
    }

    /// Inserts `page`, as it is in flash, into a buffer that is not full.
    pub fn insert(&mut self, page: u32) {
        debug_assert!(self.held.len() < self.capacity && !self.holds(page), "no place for it");
        self.held.touch(page);
    }

    #[inline]
    pub fn clean(&mut self, page: u32) {
        self.is_dirty[page as usize] = false;
    }

    pub fn remove(&mut self, page: u32) {
        debug_assert!(!self.is_dirty(page), "a dirty page would be lost");
        self.held.remove(page);
    }

    /// The power failed: the memory of the host is lost. Entries that flash does not have are
    /// rebuilt from the spare areas of the data, with those of the controller's memory, and are in
    /// the buffer again after the recovery.
    pub fn power_lost(&mut self) {
        let held: Vec<u32> = self.held.iter().filter(|page| !self.is_dirty(*page)).collect();
        held.into_iter().for_each(|page| self.remove(page));
        self.brought = None;
    }

    pub fn audit(&self) -> Result<(), String> {
        if self.held.len() > self.capacity {
            return Err(format!("{} pages in the host's memory", self.held.len()));
        }
        let lost = (0..).zip(&self.is_dirty).find(|(page, dirty)| **dirty && !self.holds(*page));
        match lost {
            Some((page, _)) => Err(format!("page {page} is dirty but not in the host buffer")),
            None => Ok(()),
        }
    }
}
