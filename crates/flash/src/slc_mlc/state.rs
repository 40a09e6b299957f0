//! What the device remembers from one run to the next: everything but stamps of verified runs.
//!
//! Parts with fields of their own put themselves down; here is what the tables of both media and
//! the device add. Bytes that are of another device, or whose books do not add up, are refused.

use super::device::SlcMlcSsd;
use super::mlc::{Label, Mlc, NONE};
use super::store::{Cache, Store};
use hybridsim_engine::state::{Loader, Saver, StateError, same_length};

/// Checks that all of `numbers` are below `bound`, or [`NONE`].
pub(super) fn below(what: &str, numbers: &[u32], bound: usize) -> Result<(), StateError> {
    match numbers.iter().find(|number| **number != NONE && **number as usize >= bound) {
        Some(number) => Err(StateError(format!("{what} names {number}, of {bound}"))),
        None => Ok(()),
    }
}

impl Mlc {
    fn save(&self, to: &mut Saver) {
        self.array.save(to);
        to.put(&(&self.map, &self.l2p, &self.next, &self.last, &self.in_order, &self.dense));
        let labels: Vec<(u64, bool)> =
            self.labels.iter().map(|label| (label.opened, label.is_data)).collect();
        to.put(&(labels, &self.written));
        to.put(&self.spares);
        self.trims.save(to);
        self.wear.save(to);
        to.put(&(&self.chains, &self.cached, self.erases, self.opened, self.dense_count));
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.array.restore(from)?;
        type Maps = (Vec<u32>, Vec<u32>, Vec<u32>, Vec<u32>, Vec<bool>, Vec<bool>);
        let (map, l2p, next, last, in_order, dense): Maps = from.take()?;
        let (blocks, logical) = (self.next.len(), self.l2p.len());
        same_length("the page map", map.len(), self.map.len())?;
        same_length("the L2P table", l2p.len(), logical)?;
        same_length("the LB table", next.len(), blocks)?;
        same_length("the table of logs", last.len(), logical)?;
        same_length("the table of orders", in_order.len(), blocks)?;
        same_length("the table of modes", dense.len(), logical)?;
        below("the page map", &map, self.written.len())?;
        for (what, table) in [("L2P", &l2p), ("LB", &next), ("log", &last)] {
            below(&format!("the {what} table"), table, blocks)?;
        }
        (self.map, self.l2p, self.next, self.last) = (map, l2p, next, last);
        (self.in_order, self.dense) = (in_order, dense);
        type Spare = (Vec<(u64, bool)>, Vec<u64>);
        let (labels, written): Spare = from.take()?;
        let spares = from.take()?;
        self.trims.restore(from)?;
        same_length("the list of spare areas", labels.len(), blocks)?;
        same_length("the list of ages", written.len(), self.written.len())?;
        let label = |(opened, is_data)| Label { opened, is_data };
        self.labels = labels.into_iter().map(label).collect();
        (self.written, self.spares) = (written, spares);
        self.wear.restore(from)?;
        let (chains, cached);
        (chains, cached, self.erases, self.opened, self.dense_count) = from.take()?;
        self.chains.replace(chains)?;
        self.cached.replace(cached)?;
        // A chain that goes in a circle would never be followed to its end.
        let mut left = blocks;
        for logical in 0..logical as u32 {
            let length = self.chain(logical).take(left + 1).count();
            left = left.checked_sub(length).ok_or_else(|| circle(logical))?;
        }
        Ok(())
    }
}

fn circle(logical: u32) -> StateError {
    StateError(format!("the chain of logical block {logical} does not end"))
}

impl Cache {
    fn save(&self, to: &mut Saver) {
        self.log.save(to);
        self.filter.save(to);
        self.throttle.save(to);
        self.write_back.save(to);
        to.put(&self.sectors_of);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.log.restore(from)?;
        self.filter.restore(from)?;
        self.throttle.restore(from)?;
        self.write_back.restore(from)?;
        let sectors_of: Vec<u32> = from.take()?;
        same_length("the count by logical block", sectors_of.len(), self.sectors_of.len())?;
        self.sectors_of = sectors_of;
        Ok(())
    }
}

impl Store {
    fn save(&self, to: &mut Saver) {
        self.mlc.save(to);
        to.put(&self.writes);
        if let Some(cache) = &self.cache {
            cache.save(to);
        }
        if let Some(density) = &self.density {
            density.save(to);
        }
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.mlc.restore(from)?;
        self.writes = from.take()?;
        if let Some(cache) = &mut self.cache {
            cache.restore(from)?;
            let sectors = self.mlc.map.len() as u64 * u64::from(self.mlc.sectors);
            if cache.log.hash.entries().last().is_some_and(|last| u64::from(last.0) >= sectors) {
                return Err(StateError("the hash table names a sector beyond the end".to_owned()));
            }
        }
        if let Some(density) = &mut self.density {
            density.restore(from)?;
        }
        self.audit().map_err(StateError)
    }
}

impl SlcMlcSsd {
    pub(super) fn put_down(&self, to: &mut Saver) {
        let (store, buffer) = self.remembered();
        store.save(to);
        if let Some(buffer) = buffer {
            buffer.save(to);
        }
    }

    pub(super) fn take_back(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let (store, buffer) = self.remembered_mut();
        store.restore(from)?;
        buffer.map_or(Ok(()), |buffer| buffer.restore(from))
    }
}
