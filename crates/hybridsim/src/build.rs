//! From a checked scenario to a tree of layers.

use crate::scenario::Scenario;
use crate::scenario::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_engine::Node;
use hybridsim_engine::build::{BuildInput, ChildView, LayerEntry};
use hybridsim_engine::registry::Registry;

/// The system of `scenario` without the host.
///
/// # Errors
/// Every problem a part's builder reports.
pub fn system(scenario: &Scenario, registry: &Registry) -> Result<Node, Diagnostics> {
    let paths = paths(scenario);
    let mut problems = Vec::new();
    let mut built: Vec<Option<Node>> = Vec::new();
    for (at, part) in scenario.parts.iter().enumerate() {
        let children: Option<Vec<Node>> =
            part.children.iter().map(|&child| built[child].take()).collect();
        let Some(children) = children else {
            // A child failed to build; its own problems say why.
            built.push(None);
            continue;
        };
        let views: Vec<ChildView> = children.iter().map(view).collect();
        let input = BuildInput {
            settings: &part.settings,
            registry,
            seed: scenario.seed(),
            path: &paths[at],
            children: &views,
        };
        let entry = registry
            .find::<LayerEntry>(part.description.name)
            .expect("a checked part names a registered kind");
        match (entry.build)(&input) {
            Ok(layer) => built.push(Some(Node { path: paths[at].clone(), layer, children })),
            Err(list) => {
                built.push(None);
                problems.extend(list.into_iter().map(|problem| {
                    Diagnostic {
                        span: Some(part.span.clone()),
                        key: crate::scenario::check::join(
                            &format!("part.{}", part.name),
                            problem.param,
                        )
                        .trim_end_matches('.')
                        .to_owned(),
                        message: problem.message,
                        help: None,
                    }
                }));
            }
        }
    }
    match built.swap_remove(scenario.system) {
        Some(node) if problems.is_empty() => Ok(node),
        _ => Err(Diagnostics { sources: scenario.sources.clone(), list: problems }),
    }
}

fn view(node: &Node) -> ChildView {
    let name = node.path.rsplit('/').next().unwrap_or(&node.path).to_owned();
    ChildView { name, capacity: node.layer.capacity(), positioner: node.layer.positioner() }
}

/// The path of every part from the top, such as `hybrid/flash`.
pub fn paths(scenario: &Scenario) -> Vec<String> {
    let mut paths: Vec<String> = scenario.parts.iter().map(|part| part.name.clone()).collect();
    // Parents come after their children, so walking backwards finishes a parent first.
    for at in (0..scenario.parts.len()).rev() {
        for &child in &scenario.parts[at].children {
            paths[child] = format!("{}/{}", paths[at], scenario.parts[child].name);
        }
    }
    paths
}
