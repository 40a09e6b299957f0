//! Cache replacement policies written in Python.

use super::object::PythonObject;
use crate::failure;
use hybridsim_cache::policy_state::PolicyState;
use hybridsim_cache::replacement::{Access, CachedPage, Replacement, ReplacementEntry};
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, StateError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// The entry of a Python class.
pub fn entry(description: Description) -> ReplacementEntry {
    ReplacementEntry { description, build }
}

fn build(settings: &Settings, pages: u32) -> Result<Box<dyn Replacement>, Vec<Problem>> {
    let object = Python::attach(|py| PythonObject::new(py, "replacement", settings, (pages,)))?;
    let slots = FxHashMap::default();
    Ok(Box::new(PythonReplacement { object, slots, chosen: FxHashSet::default() }))
}

/// A policy that asks a Python object, which knows pages by their number alone.
struct PythonReplacement {
    object: PythonObject,
    /// Slots of the pages that may be evicted; pages named by Python are checked against it.
    slots: FxHashMap<u64, u32>,
    /// Reused to find pages named twice.
    chosen: FxHashSet<u64>,
}

impl PythonReplacement {
    /// Takes pages from what `victims` returned until there are `count`.
    fn choose(
        &mut self,
        named: &Bound<'_, PyAny>,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) -> PyResult<()> {
        self.chosen.clear();
        let mut left = count;
        let mut pages = named.try_iter()?;
        while left > 0 {
            let Some(page) = pages.next() else { break };
            let page: u64 = page?.extract()?;
            let Some(&slot) = self.slots.get(&page) else {
                let message = format!("victims() named page {page}, which is not in the cache");
                return Err(PyValueError::new_err(message));
            };
            if !self.chosen.insert(page) {
                let message = format!("victims() named page {page} twice");
                return Err(PyValueError::new_err(message));
            }
            let page = CachedPage { page, slot };
            if eligible(page) {
                out.push(page);
                left -= 1;
            }
        }
        Ok(())
    }
}

impl PolicyState for PythonReplacement {
    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Err(self.object.cannot_be_saved())
    }

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Err(self.object.cannot_be_saved())
    }
}

impl Replacement for PythonReplacement {
    fn update(&mut self, page: CachedPage, access: Access) {
        self.slots.insert(page.page, page.slot);
        let access = match access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Add => "add",
        };
        self.object.notify("update", |py| Ok((page.page, access).into_pyobject(py)?.unbind()));
    }

    fn remove(&mut self, page: CachedPage) {
        if self.slots.remove(&page.page).is_some() {
            self.object.notify("remove", |py| Ok((page.page,).into_pyobject(py)?.unbind()));
        }
    }

    fn victims(
        &mut self,
        count: usize,
        eligible: &dyn Fn(CachedPage) -> bool,
        out: &mut Vec<CachedPage>,
    ) {
        let before = out.len();
        Python::attach(|py| {
            let named = self.object.ask(py, "victims", (), |named| Ok(named.clone()));
            if let Some(named) = named
                && let Err(error) = self.choose(&named, count, eligible, out)
            {
                failure::keep(error);
            }
        });
        if failure::is_pending() {
            // The run is about to end; until then the cache must be able to go on.
            out.truncate(before);
            // In any order: these figures are never shown.
            let pages = self.slots.iter().map(|(&page, &slot)| CachedPage { page, slot });
            out.extend(pages.filter(|page| eligible(*page)).take(count));
        }
    }
}
