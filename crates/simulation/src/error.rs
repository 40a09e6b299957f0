//! Why a run does not begin, and errors of a user's code that end one.

use crate::scenario::Scenario;
use hybridsim_config::check::join;
use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Registry;
use hybridsim_engine::Fault;
use std::fmt;

/// Why a run did not begin.
#[derive(Debug)]
pub enum RunError {
    /// The scenario's components do not fit together.
    Scenario(Diagnostics),
    /// The trace cannot be opened, or does not fit the device.
    Trace(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(diagnostics) => diagnostics.fmt(f),
            Self::Trace(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for RunError {}

impl From<Diagnostics> for RunError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Scenario(diagnostics)
    }
}

/// Returns and clears the error that code of an entry raised in this thread, such as a policy
/// written in Python.
pub(crate) fn plugin_fault(registry: &Registry) -> Option<Fault> {
    registry.take_plugin_error().map(Fault::Plugin)
}

/// The problems `list` of one of the scenario's own tables.
pub(crate) fn section(scenario: &Scenario, key: &str, list: Vec<Problem>) -> Diagnostics {
    let diagnostic = |problem: Problem| Diagnostic {
        span: None,
        key: join(key, problem.param),
        message: problem.message,
        help: None,
    };
    Diagnostics {
        sources: scenario.sources.clone(),
        list: list.into_iter().map(diagnostic).collect(),
    }
}
