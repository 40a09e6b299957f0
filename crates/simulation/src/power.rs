//! Checks of systems whose power fails.

use crate::build;
use crate::error::section;
use crate::scenario::Scenario;
use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_config::param::Problem;
use hybridsim_engine::ComponentTree;
use hybridsim_host::WAITS_FOR_COMPLETIONS;

const KEY: &str = "power_cut_every";

/// Refuses `run.power_cut_every` where `system` or a workload would end the run at the first
/// failure. `waits` is whether a workload waits for completions.
///
/// # Errors
/// Every component that does not model power failures, and a workload that waits.
pub fn check(
    scenario: &Scenario,
    system: &mut ComponentTree,
    waits: bool,
) -> Result<(), Diagnostics> {
    if scenario.run.power_cut_every.is_none() || scenario.run.power_cuts_max == 0 {
        return Ok(());
    }
    if waits {
        return Err(section(scenario, "run", vec![Problem::new(KEY, WAITS_FOR_COMPLETIONS)]));
    }
    let mut without = Vec::new();
    gather(system, &mut without);
    if without.is_empty() {
        return Ok(());
    }
    let paths = build::paths(scenario);
    let diagnostic = |(path, kind): (String, &str)| {
        let component = scenario.components.iter().zip(&paths).find(|(_, own)| **own == path);
        Diagnostic {
            span: component.map(|(component, _)| component.span.clone()),
            key: format!("run.{KEY}"),
            message: format!("`{path}`: a `{kind}` does not model power failures"),
            help: Some(format!("remove run.{KEY}, or this component")),
        }
    };
    let list = without.into_iter().map(diagnostic).collect();
    Err(Diagnostics { sources: scenario.sources.clone(), list })
}

/// Paths and kinds of the components that do not model power failures.
fn gather(node: &mut ComponentTree, without: &mut Vec<(String, &'static str)>) {
    if node.component.power_failure().is_none() {
        without.push((node.path.clone(), node.component.info().kind));
    }
    node.children.iter_mut().for_each(|child| gather(child, without));
}
