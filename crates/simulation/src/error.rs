//! Why a run does not begin, and errors of a user's code that end one.

use crate::scenario::Scenario;
use hybridsim_config::check::join;
use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Registry;
use hybridsim_engine::Fault;

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario's components do not fit together.
    #[error("{0}")]
    Scenario(#[from] Diagnostics),
    /// The trace cannot be opened, or does not fit the device.
    #[error("{0}")]
    Trace(String),
}

/// Errors that code of entries raises in this thread, such as a policy written in Python. The first
/// one ends a run.
pub(crate) struct PluginFaults<'r> {
    registry: &'r Registry,
    first: Option<Fault>,
}

impl<'r> PluginFaults<'r> {
    /// The errors of a run that begins. One of an earlier run in this thread does not concern it.
    pub fn begin(registry: &'r Registry) -> Self {
        drop(registry.take_plugin_error());
        Self::pending(registry)
    }

    /// The errors of a run that has begun.
    pub fn pending(registry: &'r Registry) -> Self {
        Self { registry, first: None }
    }

    /// Whether there is one.
    pub fn raised(&mut self) -> bool {
        self.first =
            self.first.take().or_else(|| self.registry.take_plugin_error().map(Fault::Plugin));
        self.first.is_some()
    }

    /// The end of a run that has `ended` otherwise.
    pub fn or<T>(mut self, ended: Result<T, Fault>) -> Result<T, Fault> {
        self.raised();
        self.first.map_or(ended, Err)
    }
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
