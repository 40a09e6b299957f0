//! What devices hold, for verified runs: one version per sector instead of 512 bytes.
//!
//! A version is the number of the write that produced the sector's data; 0 means "never written".
//! Versions travel with requests exactly as data would: a write's versions are copied to the
//! medium, a read's are copied back, a garbage collector moves them from page to page.

use rustc_hash::FxHashMap;

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

    /// The same data, `sectors` further on. A part of no data is no data.
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

const CHUNK: u64 = 64;

/// A medium's versions by sector address, sparse.
#[derive(Debug, Default, Clone)]
pub struct Contents {
    chunks: FxHashMap<u64, Box<[u64; CHUNK as usize]>>,
}

impl Contents {
    /// Stores `versions` from sector `at` on.
    pub fn write(&mut self, at: u64, versions: &[u64]) {
        for (sector, &version) in (at..).zip(versions) {
            let chunk = self.chunks.entry(sector / CHUNK).or_insert_with(|| Box::new([0; 64]));
            chunk[(sector % CHUNK) as usize] = version;
        }
    }

    /// Fills `versions` from sector `at` on; 0 where nothing was written.
    pub fn read(&self, at: u64, versions: &mut [u64]) {
        for (sector, version) in (at..).zip(versions) {
            *version = self.get(sector);
        }
    }

    /// One sector's version.
    pub fn get(&self, sector: u64) -> u64 {
        self.chunks.get(&(sector / CHUNK)).map_or(0, |chunk| chunk[(sector % CHUNK) as usize])
    }

    /// Clears `sectors` sectors from `at` on.
    pub fn clear(&mut self, at: u64, sectors: u64) {
        for sector in at..at + sectors {
            if let Some(chunk) = self.chunks.get_mut(&(sector / CHUNK)) {
                chunk[(sector % CHUNK) as usize] = 0;
            }
        }
    }
}
