//! Garbage collection policies written in Python.

use super::object::PythonObject;
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, StateError};
use hybridsim_flash::SavedState;
use hybridsim_flash::gc::{BuiltPolicy, GcEntry, GcInput, VictimPolicy};
use hybridsim_flash::geometry::BlockId;
use pyo3::prelude::*;
use std::collections::BTreeSet;

/// The entry of a Python class.
pub fn entry(description: Description) -> GcEntry {
    GcEntry { description, provides: &[], build }
}

fn build(input: &GcInput<'_>) -> BuiltPolicy {
    let shape = (input.blocks, input.pages_per_block, input.pools);
    let object = Python::attach(|py| PythonObject::new(py, "gc-policy", input.settings, shape))?;
    Ok(Box::new(PythonGc { object, candidates: vec![BTreeSet::new(); input.pools] }))
}

struct PythonGc {
    object: PythonObject,
    /// Blocks that `choose` may return, by pool.
    candidates: Vec<BTreeSet<BlockId>>,
}

impl PythonGc {
    fn report(&self, method: &str, pool: usize, block: BlockId, valid: Option<u32>) {
        self.object.notify(method, |py| match valid {
            Some(valid) => Ok((pool, block.0, valid).into_pyobject(py)?.unbind()),
            None => Ok((pool, block.0).into_pyobject(py)?.unbind()),
        });
    }
}

impl SavedState for PythonGc {
    fn save(&self, _to: &mut Saver) {}

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Err(self.object.cannot_be_saved())
    }
}

impl VictimPolicy for PythonGc {
    fn closed(&mut self, pool: usize, block: BlockId, valid: u32) {
        self.candidates[pool].insert(block);
        self.report("closed", pool, block, Some(valid));
    }

    fn invalidated(&mut self, pool: usize, block: BlockId, valid: u32) {
        if self.candidates[pool].contains(&block) {
            self.report("invalidated", pool, block, Some(valid));
        }
    }

    fn removed(&mut self, pool: usize, block: BlockId) {
        if self.candidates[pool].remove(&block) {
            self.report("removed", pool, block, None);
        }
    }

    fn choose(&mut self, pool: usize, _valid: &dyn Fn(BlockId) -> u32) -> Option<BlockId> {
        let chosen: Option<u32> =
            Python::attach(|py| self.object.ask(py, "choose", (pool,), |answer| answer.extract()))?;
        let chosen = BlockId(chosen?);
        if self.candidates[pool].contains(&chosen) {
            return Some(chosen);
        }
        self.object.give_up("choose", &format!("block {} is not a candidate", chosen.0));
        None
    }

    fn check_saveable(&self) -> Result<(), StateError> {
        Err(self.object.cannot_be_saved())
    }
}
