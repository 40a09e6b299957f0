//! From a checked scenario to a tree of layers.

use crate::scenario::{Part, Scenario};
use hybridsim_config::build::{BuildInput, ChildView, LayerEntry};
use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Lane, Node};

/// The system of `scenario` without the host.
///
/// # Errors
/// Every problem a part's builder reports.
pub fn system(scenario: &Scenario, registry: &Registry) -> Result<Node, Diagnostics> {
    let paths = paths(scenario);
    let mut problems = topology(scenario);
    let mut built: Vec<Option<Node>> = Vec::new();
    for (at, part) in scenario.parts.iter().enumerate() {
        let children: Option<Vec<Node>> =
            part.children.iter().map(|&child| built[child].take()).collect();
        let Some(children) = children else {
            // A child failed to build; its own problems say why.
            built.push(None);
            continue;
        };
        let views: Vec<ChildView> = children.iter().flat_map(views).collect();
        problems.extend(lanes_of_single_children(part, &children));
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
                        key: hybridsim_config::check::join(
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
    if let Some(Some(node)) = built.get(scenario.system)
        && node.layer.lanes().len() > 1
    {
        let part = &scenario.parts[scenario.system];
        let message = format!("gives access to {} devices", node.layer.lanes().len());
        problems.push(several_lanes(part, String::new(), message, "the host takes one device"));
    }
    match built.swap_remove(scenario.system) {
        Some(node) if problems.is_empty() => Ok(node),
        _ => Err(Diagnostics { sources: scenario.sources.clone(), list: problems }),
    }
}

/// Between a controller and its devices there is a bus (paper 000, section 2.3).
fn topology(scenario: &Scenario) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for part in &scenario.parts {
        for name in part.settings.texts_opt("buses").unwrap_or(&[]) {
            let child = scenario.parts.iter().find(|child| child.name == *name);
            let kind = child.map_or("", |child| child.description.name);
            if kind != "bus" {
                problems.push(Diagnostic {
                    span: Some(part.span.clone()),
                    key: format!("part.{}.buses", part.name),
                    message: format!(
                        "`{name}` is a {kind}, and a controller reaches its devices by buses"
                    ),
                    help: Some(format!("put it on one: kind = \"bus\", devices = [\"{name}\"]")),
                });
            }
        }
    }
    problems
}

/// What a parent sees of a child: one device, or those it gives access to.
fn views(node: &Node) -> Vec<ChildView> {
    let name = node.path.rsplit('/').next().unwrap_or(&node.path);
    let mut lanes = node.layer.lanes();
    if lanes.is_empty() {
        let (sectors, positioner) = (node.layer.capacity(), node.layer.positioner());
        lanes.push(Lane { sectors, positioner });
    }
    let view = |lane: Lane| ChildView {
        name: name.to_owned(),
        capacity: lane.sectors,
        positioner: lane.positioner,
    };
    lanes.into_iter().map(view).collect()
}

/// A parameter that takes one device cannot take a bus with several.
fn lanes_of_single_children(part: &Part, children: &[Node]) -> Vec<Diagnostic> {
    let singles = part.description.params.iter().filter(|param| param.kind == Kind::Part);
    let single = |param: &Param| {
        let name = part.settings.text_opt(param.name)?;
        let node = children.iter().find(|child| child.path.rsplit('/').next() == Some(name))?;
        let lanes = node.layer.lanes().len();
        let message = format!("`{name}` gives access to {lanes} devices");
        (lanes > 1)
            .then(|| several_lanes(part, param.name.to_owned(), message, "this takes one device"))
    };
    singles.filter_map(single).collect()
}

fn several_lanes(part: &Part, param: String, message: String, wanted: &str) -> Diagnostic {
    let key = hybridsim_config::check::join(&format!("part.{}", part.name), &param);
    Diagnostic {
        span: Some(part.span.clone()),
        key: key.trim_end_matches('.').to_owned(),
        message: format!("{message}, and {wanted}"),
        help: Some("make one of them first: put it into a `concat`, `stripe` or `raid5`".into()),
    }
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
