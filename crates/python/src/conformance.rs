//! The conformance suites of policies, for those written in Python.

use crate::failure;
use crate::plugin;
use hybridsim_cache::conformance as cache;
use hybridsim_cache::replacement::ReplacementEntry;
use hybridsim_config::param::{Settings, Value};
use hybridsim_flash::array::ProgramOrder;
use hybridsim_flash::conformance::{Subject, check};
use hybridsim_flash::ftl::FtlEntry;
use pyo3::prelude::*;
use serde_json::json;

/// Runs `cases` random cases over the translation layer registered as `name`; returns what they
/// covered as JSON.
#[pyfunction]
pub fn check_ftl(py: Python<'_>, name: &str, cases: u32, seed: u64) -> PyResult<String> {
    failure::guarded(|| {
        let registry = plugin::registry();
        let entry = registry.find::<FtlEntry>(name).ok_or_else(|| {
            failure::raise(py, "Error", format!("no translation layer is called {name:?}"))
        })?;
        let settings = Settings::default().and("class", Value::Text(name.to_owned()));
        let subject = Subject {
            entry,
            settings: &settings,
            registry: &registry,
            order: ProgramOrder::Sequential,
            // Python objects are not saved; asking to is refused with a clear word.
            saves: false,
        };
        let (result, raised) = failure::gather(|| check(&subject, cases, seed));
        let failed = |message: String| {
            let error = failure::raise(py, "ConformanceFailure", message);
            error.set_cause(py, raised.as_ref().map(|raised| raised.clone_ref(py)));
            error
        };
        match result {
            Err(failure) => Err(failed(failure.to_string())),
            Ok(coverage) if coverage.ran == 0 => {
                let message = format!(
                    "none of {} devices was accepted, so nothing was checked",
                    coverage.refused
                );
                Err(failed(message))
            }
            Ok(coverage) => Ok(json!({
                "ran": coverage.ran,
                "refused": coverage.refused,
                "worn_out": coverage.worn_out,
                "writes": coverage.writes,
                "erases": coverage.erases,
            })
            .to_string()),
        }
    })
}

/// Runs `cases` random cases over the replacement policy registered as `name`; returns what they
/// covered as JSON.
#[pyfunction]
pub fn check_replacement(py: Python<'_>, name: &str, cases: u32, seed: u64) -> PyResult<String> {
    failure::guarded(|| {
        let mut registry = plugin::registry();
        registry.take_plugin_errors_from(failure::take_message);
        let entry = registry.find::<ReplacementEntry>(name).ok_or_else(|| {
            failure::raise(py, "Error", format!("no replacement policy is called {name:?}"))
        })?;
        let settings = Settings::default().and("class", Value::Text(name.to_owned()));
        let (result, raised) =
            failure::gather(|| cache::check(&entry, &settings, &registry, cases, seed));
        let failed = |violation: cache::Violation| {
            let error = failure::raise(py, "ConformanceFailure", violation.to_string());
            error.set_cause(py, raised.as_ref().map(|raised| raised.clone_ref(py)));
            error
        };
        let coverage = result.map_err(failed)?;
        Ok(json!({
            "ran": coverage.ran,
            "accesses": coverage.accesses,
            "victims": coverage.victims,
        })
        .to_string())
    })
}
