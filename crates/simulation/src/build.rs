//! Builds the tree of components of a checked scenario.

use crate::scenario::{Scenario, ScenarioComponent};
use crate::zones;
use hybridsim_config::build::{BuildInput, ChildView, ComponentEntry};
use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_config::param::{Kind, Param, Value};
use hybridsim_config::registry::Registry;
use hybridsim_engine::{ComponentTree, Target, ZoneLayout};
use hybridsim_ssd::device::{SSD_KIND, Ssd, build_ssd};

/// The system of `scenario` without the host.
///
/// # Errors
/// Every problem a component's builder reports.
pub fn system(scenario: &Scenario, registry: &Registry) -> Result<ComponentTree, Diagnostics> {
    let paths = paths(scenario);
    let mut problems = topology(scenario);
    let mut built: Vec<Option<ComponentTree>> = Vec::new();
    for (at, component) in scenario.components.iter().enumerate() {
        let children: Option<Vec<ComponentTree>> =
            component.children.iter().map(|&child| built[child].take()).collect();
        let Some(children) = children else {
            // A child failed to build and has reported its problems.
            built.push(None);
            continue;
        };
        let views: Vec<ChildView> = children.iter().flat_map(views).collect();
        problems.extend(targets_of_single_children(component, &children));
        let input = BuildInput {
            settings: &component.settings,
            registry,
            seed: scenario.seed(),
            path: &paths[at],
            children: &views,
        };
        let entry = registry
            .find::<ComponentEntry>(component.description.name)
            .expect("a checked component names a registered kind");
        match (entry.build)(&input) {
            Ok(built_component) => {
                let path = paths[at].clone();
                let node = ComponentTree { path, component: built_component, children };
                problems.extend(zones::children(scenario, component, &node));
                built.push(Some(node));
            }
            Err(list) => {
                built.push(None);
                problems.extend(
                    list.into_iter().map(|it| component.problem(it.param, it.message, None)),
                );
            }
        }
    }
    if let Some(Some(node)) = built.get(scenario.system)
        && node.component.targets().len() > 1
    {
        let component = &scenario.components[scenario.system];
        let message = format!("gives access to {} devices", node.component.targets().len());
        problems.push(several_targets(component, "", message, "the host takes one device"));
    }
    if let Some(Some(node)) = built.get(scenario.system) {
        problems.extend(zones::load(scenario, node));
    }
    match built.swap_remove(scenario.system) {
        Some(node) if problems.is_empty() => Ok(node),
        _ => Err(Diagnostics { sources: scenario.sources.clone(), list: problems }),
    }
}

/// The SSD that is the whole system of `scenario`, with its path.
///
/// # Errors
/// Another system, and every problem its builder reports.
pub fn only_ssd(scenario: &Scenario, registry: &Registry) -> Result<(String, Ssd), Diagnostics> {
    let failed = |list| Diagnostics { sources: scenario.sources.clone(), list };
    let component = &scenario.components[scenario.system];
    if component.description.name != SSD_KIND {
        let message = format!(
            "is a `{}`; flash operations are counted of a system that is one `{SSD_KIND}`",
            component.description.name
        );
        let help = "name the SSD (`system = \"NAME\"`, or --set), or simulate the system \
                    (`hybridsim run`)";
        return Err(failed(vec![component.problem("", message, Some(help))]));
    }
    let path = paths(scenario).swap_remove(scenario.system);
    let (settings, seed) = (&component.settings, scenario.seed());
    let input = BuildInput { settings, registry, seed, path: &path, children: &[] };
    match build_ssd(&input) {
        Ok(ssd) => Ok((path, ssd)),
        Err(list) => {
            let list = list.into_iter().map(|it| component.problem(it.param, it.message, None));
            Err(failed(list.collect()))
        }
    }
}

/// Between a controller and its devices there is a bus (konanki, section 2.3).
fn topology(scenario: &Scenario) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for component in &scenario.components {
        let Some(Value::Texts(buses)) = component.settings.value("buses") else { continue };
        for name in buses {
            let child = scenario.components.iter().find(|child| child.name == *name);
            let kind = child.map_or("", |child| child.description.name);
            if kind != "bus" {
                let message = format!(
                    "`{name}` is a {kind}, and a controller connects to its devices by buses"
                );
                let help = format!("put it on one: kind = \"bus\", devices = [\"{name}\"]");
                problems.push(component.problem("buses", message, Some(&help)));
            }
        }
    }
    problems
}

/// The devices that a parent sees in a child: itself, or those it gives access to.
fn views(node: &ComponentTree) -> Vec<ChildView> {
    let name = node.path.rsplit('/').next().unwrap_or(&node.path);
    let mut targets = node.component.targets();
    if targets.is_empty() {
        let (sectors, positioner) = (node.component.capacity(), node.component.positioner());
        targets.push(Target { sectors, positioner });
    }
    let constants = node.component.info().constants;
    let (zones, loses_writes) = (node.zone_layout(), node.loses_writes());
    let view = |target: Target| ChildView {
        name: name.to_owned(),
        capacity: target.sectors,
        positioner: target.positioner,
        constants: constants.clone(),
        zones: zones.map(|it| ZoneLayout { zones: target.sectors / it.size, ..it }),
        loses_writes,
    };
    targets.into_iter().map(view).collect()
}

/// A parameter that takes one device cannot take a bus with several.
fn targets_of_single_children(
    component: &ScenarioComponent,
    children: &[ComponentTree],
) -> Vec<Diagnostic> {
    let singles = component.description.params.iter().filter(|param| param.kind == Kind::Component);
    let single = |param: &Param| {
        let name = component.settings.text_opt(param.name)?;
        let node = children.iter().find(|child| child.path.rsplit('/').next() == Some(name))?;
        let targets = node.component.targets().len();
        let message = format!("`{name}` gives access to {targets} devices");
        (targets > 1)
            .then(|| several_targets(component, param.name, message, "this takes one device"))
    };
    singles.filter_map(single).collect()
}

fn several_targets(
    component: &ScenarioComponent,
    param: &str,
    message: String,
    wanted: &str,
) -> Diagnostic {
    let help = "combine them into one device, such as a `concat`, `stripe` or `raid5`";
    component.problem(param, format!("{message}, and {wanted}"), Some(help))
}

/// The path of every component from the top, such as `hybrid/flash`.
pub fn paths(scenario: &Scenario) -> Vec<String> {
    let mut paths: Vec<String> =
        scenario.components.iter().map(|component| component.name.clone()).collect();
    // Parents come after their children, so walking backwards finishes a parent first.
    for at in (0..scenario.components.len()).rev() {
        for &child in &scenario.components[at].children {
            paths[child] = format!("{}/{}", paths[at], scenario.components[child].name);
        }
    }
    paths
}
