//! What devices hold, for verified runs: one version per sector instead of 512 bytes.
//!
//! A version is the number of the write that produced the sector's data; 0 means "never written".
//! Versions travel with requests exactly as data would: a write's versions are copied to the
//! medium, a read's are copied back, a garbage collector moves them from page to page.

use crate::pages::{PAGE_SECTORS, PagePart, PageTable, parts};
use slab::Slab;

/// A slice of versions in the [`DataPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSlice {
    buffer: u32,
    offset: u32,
}

impl DataSlice {
    /// No data: the simulation is not verified, or the request carries none.
    pub const NONE: Self = Self { buffer: u32::MAX, offset: 0 };

    /// Whether there is no data.
    pub const fn is_none(self) -> bool {
        self.buffer == u32::MAX
    }

    /// The data `sectors` further on. A part of no data is no data.
    pub const fn skip(self, sectors: u32) -> Self {
        if self.is_none() {
            return Self::NONE;
        }
        Self { buffer: self.buffer, offset: self.offset.wrapping_add(sectors) }
    }
}

/// The version buffers of all requests in flight.
#[derive(Debug, Default)]
pub struct DataPool {
    buffers: Vec<Vec<u64>>,
    free: Vec<u32>,
    enabled: bool,
}

impl DataPool {
    /// A pool that hands out buffers only when `enabled`.
    pub fn new(enabled: bool) -> Self {
        Self { enabled, ..Self::default() }
    }

    /// Whether the run is verified.
    pub const fn enabled(&self) -> bool {
        self.enabled
    }

    /// A zeroed buffer of `sectors` versions, or [`DataSlice::NONE`] when not verifying.
    pub fn take(&mut self, sectors: u32) -> DataSlice {
        if !self.enabled {
            return DataSlice::NONE;
        }
        let buffer = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            self.buffers.len() as u32 - 1
        });
        let versions = &mut self.buffers[buffer as usize];
        versions.clear();
        versions.resize(sectors as usize, 0);
        DataSlice { buffer, offset: 0 }
    }

    /// Returns a buffer got from [`DataPool::take`].
    pub fn give_back(&mut self, slice: DataSlice) {
        if !slice.is_none() {
            debug_assert!(!self.free.contains(&slice.buffer), "buffer returned twice");
            self.free.push(slice.buffer);
        }
    }

    /// Takes all buffers back, whichever component holds them.
    pub(crate) fn reset(&mut self) {
        self.free.clear();
        self.free.extend(0..self.buffers.len() as u32);
    }

    /// The `sectors` versions of `slice`; empty when there is no data.
    pub fn versions(&self, slice: DataSlice, sectors: u32) -> &[u64] {
        if slice.is_none() {
            return &[];
        }
        let start = slice.offset as usize;
        &self.buffers[slice.buffer as usize][start..start + sectors as usize]
    }

    /// As [`DataPool::versions`], to write into.
    pub fn versions_mut(&mut self, slice: DataSlice, sectors: u32) -> &mut [u64] {
        if slice.is_none() {
            return &mut [];
        }
        let start = slice.offset as usize;
        &mut self.buffers[slice.buffer as usize][start..start + sectors as usize]
    }
}

/// The versions of the sectors of a page.
#[derive(Clone, Copy, Debug)]
enum Page {
    /// All the same.
    Same(u64),
    /// By sector, in [`Contents::mixed`].
    Mixed(usize),
}

impl Default for Page {
    fn default() -> Self {
        Self::Same(0)
    }
}

/// A medium's versions by sector address, sparse.
#[derive(Debug, Default, Clone)]
pub struct Contents {
    pages: PageTable<Page>,
    mixed: Slab<[u64; PAGE_SECTORS]>,
}

impl Contents {
    /// Stores `versions` from sector `at` on.
    pub fn write(&mut self, at: u64, versions: &[u64]) {
        for part in parts(at, versions.len() as u64) {
            self.write_part(&part, &versions[part.within.clone()]);
        }
    }

    fn write_part(&mut self, part: &PagePart, versions: &[u64]) {
        let page = self.pages.entry(part.page);
        let same = versions.iter().all(|version| *version == versions[0]);
        if matches!(*page, Page::Same(version) if same && version == versions[0]) {
            return;
        }
        if part.is_whole() && same {
            if let Page::Mixed(slot) = std::mem::replace(page, Page::Same(versions[0])) {
                self.mixed.remove(slot);
            }
            return;
        }
        let slot = match *page {
            Page::Mixed(slot) => slot,
            Page::Same(version) => self.mixed.insert([version; PAGE_SECTORS]),
        };
        *page = Page::Mixed(slot);
        self.mixed[slot][part.sectors.clone()].copy_from_slice(versions);
    }

    /// Fills `versions` from sector `at` on; 0 where nothing was written.
    pub fn read(&self, at: u64, versions: &mut [u64]) {
        for part in parts(at, versions.len() as u64) {
            let into = &mut versions[part.within];
            match self.pages.get(part.page).unwrap_or_default() {
                Page::Same(version) => into.fill(version),
                Page::Mixed(slot) => into.copy_from_slice(&self.mixed[slot][part.sectors]),
            }
        }
    }

    /// Copies the versions of `sectors` sectors from `from` on to those from `to` on, which are
    /// others.
    pub fn copy(&mut self, from: u64, to: u64, sectors: u64) {
        let mut buffer = [0; PAGE_SECTORS];
        for part in parts(to, sectors) {
            let versions = &mut buffer[part.sectors.clone()];
            self.read(from + part.within.start as u64, versions);
            // What was never written is not stored.
            if self.pages.get(part.page).is_some() || versions.iter().any(|version| *version != 0) {
                self.write_part(&part, versions);
            }
        }
    }

    /// One sector's version.
    pub fn get(&self, sector: u64) -> u64 {
        let mut version = [0];
        self.read(sector, &mut version);
        version[0]
    }

    /// Clears `sectors` sectors from `at` on.
    pub fn clear(&mut self, at: u64, sectors: u64) {
        for part in self.pages.present(at, sectors) {
            self.write_part(&part, &[0; PAGE_SECTORS][part.sectors.clone()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    #[test]
    fn contents_agree_with_a_plain_list() {
        let mut stream = Stream::new(1, "contents");
        let (mut contents, mut plain) = (Contents::default(), vec![0; 3_000]);
        for version in 1..4_000 {
            let most = if stream.chance(0.1) { 900 } else { 20 };
            let length = 1 + stream.below(most) as usize;
            let mut at = stream.below((plain.len() - length) as u64) as usize;
            let mut length = if stream.chance(0.5) {
                at -= at % PAGE_SECTORS;
                PAGE_SECTORS
            } else {
                length
            };
            if stream.chance(0.1) {
                let from = stream.below(1_000) as usize;
                (at, length) = (at.max(2_000).min(3_000 - length), length.min(1_000));
                contents.copy(from as u64, at as u64, length as u64);
                plain.copy_within(from..from + length, at);
            } else if stream.chance(0.1) {
                contents.clear(at as u64, length as u64);
                plain[at..at + length].fill(0);
            } else {
                let spread = stream.below(2);
                let versions: Vec<u64> =
                    (0..length as u64).map(|sector| version + sector * spread).collect();
                contents.write(at as u64, &versions);
                plain[at..at + length].copy_from_slice(&versions);
            }
            let mut read = vec![u64::MAX; length + 9];
            contents.read(at as u64, &mut read);
            let known = plain[at..].iter().copied().chain(std::iter::repeat(0));
            assert!(read.into_iter().eq(known.take(length + 9)));
        }
        contents.clear(0, u64::MAX);
        assert!((0..3_000).all(|sector| contents.get(sector) == 0));
        assert!(contents.mixed.is_empty(), "whole pages take no list of sectors");
    }
}
