//! Dynamic density control (Kgil, Roberts, Mudge, ISCA 2008) as chang-slc-mlc, sections 5.1 and
//! 5.3.1, compares with: there is no SLC flash, but often used logical blocks are kept with one
//! bit to the cell. They are as fast as SLC flash by the byte and take twice the space.
//!
//! The paper gives no more. Assumed: accesses by logical block are counted and halved every so
//! often; a block of which enough are counted changes its mode while there is space, or for one
//! that is used little by now.

use super::recent::Recent;
use super::store::Store;
use crate::ftl::FtlError;
use hybridsim_engine::state::{Loader, Saver, StateError, same_length};

/// The policy.
#[derive(Clone, Debug)]
pub struct Density {
    counts: Vec<u16>,
    /// Logical blocks with one bit to the cell, by last use.
    dense: Recent,
    /// Most of them.
    budget: u32,
    /// Accesses that make a block change.
    up: u16,
    accesses: u64,
    /// Counts are halved after so many accesses.
    halve_every: u64,
}

impl Density {
    /// Lets up to `budget` of `logical_blocks` have one bit to the cell.
    pub fn new(logical_blocks: u32, budget: u32, up: u16, halve_every: u64) -> Self {
        Self {
            counts: vec![0; logical_blocks as usize],
            dense: Recent::new(logical_blocks),
            budget,
            up: up.max(1),
            accesses: 0,
            halve_every: halve_every.max(1),
        }
    }

    /// `logical` of `store` is read or written.
    ///
    /// # Errors
    /// When the flash is worn out.
    pub fn touch(&mut self, logical: u32, store: &mut Store) -> Result<(), FtlError> {
        self.accesses += 1;
        if self.accesses.is_multiple_of(self.halve_every) {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
        let count = &mut self.counts[logical as usize];
        *count = count.saturating_add(1);
        let count = *count;
        if self.dense.contains(logical) {
            self.dense.touch(logical);
            return Ok(());
        }
        if count < self.up || self.budget == 0 {
            return Ok(());
        }
        if self.dense.len() >= self.budget {
            let Some(coldest) = self.dense.oldest() else { return Ok(()) };
            if self.counts[coldest as usize] >= self.up / 2 {
                return Ok(());
            }
            self.dense.remove(coldest);
            self.set(coldest, false, store)?;
        }
        self.dense.touch(logical);
        self.set(logical, true, store)
    }

    /// Puts down what it has counted.
    pub(super) fn save(&self, to: &mut Saver) {
        to.put(&(&self.counts, &self.dense, self.accesses));
    }

    /// Takes back what [`Density::save`] put down.
    ///
    /// # Errors
    /// When it is of another device.
    pub(super) fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (counts, dense): (Vec<u16>, Recent);
        (counts, dense, self.accesses) = from.take()?;
        same_length("the count of accesses", counts.len(), self.counts.len())?;
        self.counts = counts;
        self.dense.replace(dense)
    }

    /// Changes the mode of `logical`: its data is copied.
    fn set(&self, logical: u32, dense: bool, store: &mut Store) -> Result<(), FtlError> {
        store.mlc.dense[logical as usize] = dense;
        let done = store.fold(logical);
        store.mlc.dense_count = self.dense.len();
        let number = super::work::Number::Dense;
        store.work.tell(number, u64::from(store.mlc.dense_count));
        done
    }
}
