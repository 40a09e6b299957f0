//! Dynamic density control (Kgil, Roberts, Mudge, ISCA 2008), with which chang-slc-mlc compares
//! (sections 5.1 and 5.3.1): there is no SLC flash, but frequently accessed logical blocks are
//! stored with one bit per cell. They are as fast as SLC flash per byte and take twice the space.
//!
//! The paper gives no further detail. Assumed: accesses per logical block are counted and halved
//! periodically; a block with enough accesses is converted while there is space, or in exchange for
//! one that is rarely accessed by now.

use hybridsim_engine::state::{Loader, Saver, StateError};
use hybridsim_flash::LruList;
use hybridsim_flash::restore;

#[derive(Clone, Debug)]
pub struct DensityControl {
    accesses_of: Vec<u16>,
    /// Logical blocks with one bit per cell.
    dense: LruList,
    /// Maximum length of `dense`.
    dense_max: u32,
    /// Accesses after which a block is converted.
    threshold: u16,
    accesses: u64,
    /// Counters are halved after this many accesses.
    halve_every: u64,
}

/// Logical blocks to convert: first one back to several bits per cell, then one to one bit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conversion {
    pub to_mlc: Option<u32>,
    pub to_dense: Option<u32>,
}

impl DensityControl {
    pub fn new(logical_blocks: u32, dense_max: u32, threshold: u16, halve_every: u64) -> Self {
        Self {
            accesses_of: vec![0; logical_blocks as usize],
            dense: LruList::new(logical_blocks),
            dense_max,
            threshold: threshold.max(1),
            accesses: 0,
            halve_every: halve_every.max(1),
        }
    }

    /// Counts an access to `logical`. Returns what to convert.
    pub fn access(&mut self, logical: u32) -> Conversion {
        self.accesses += 1;
        if self.accesses.is_multiple_of(self.halve_every) {
            self.accesses_of.iter_mut().for_each(|count| *count /= 2);
        }
        let count = &mut self.accesses_of[logical as usize];
        *count = count.saturating_add(1);
        let count = *count;
        if self.dense.contains(logical) {
            self.dense.touch(logical);
            return Conversion::default();
        }
        if count < self.threshold || self.dense_max == 0 {
            return Conversion::default();
        }
        let mut to_mlc = None;
        if self.dense.len() >= self.dense_max {
            let Some(coldest) = self.dense.least_recent() else { return Conversion::default() };
            if self.accesses_of[coldest as usize] >= self.threshold / 2 {
                return Conversion::default();
            }
            self.dense.remove(coldest);
            to_mlc = Some(coldest);
        }
        self.dense.touch(logical);
        Conversion { to_mlc, to_dense: Some(logical) }
    }

    pub fn save(&self, to: &mut Saver) {
        to.put(&(&self.accesses_of, &self.dense, self.accesses));
    }

    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        restore::table(from, "the access counters", &mut self.accesses_of)?;
        self.dense.restore(from)?;
        self.accesses = from.take()?;
        Ok(())
    }
}
