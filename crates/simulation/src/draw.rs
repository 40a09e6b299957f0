//! A scenario's system as a diagram.

use crate::scenario::{Scenario, ScenarioComponent};
use hybridsim_config::param::Value;
use hybridsim_config::units::write_bytes;
use hybridsim_engine::{ComponentTree, SECTOR_BYTES};
use hybridsim_report::diagram::{self, Item, Shape};
use std::collections::BTreeMap;

/// The diagram of `scenario`, whose components were built into `system`, as SVG.
pub fn svg(scenario: &Scenario, system: &ComponentTree) -> String {
    diagram::svg(&scenario.title, &host(scenario, system))
}

/// The diagram as part of a report.
pub fn inline(scenario: &Scenario, system: &ComponentTree) -> String {
    diagram::inline(&scenario.title, &host(scenario, system))
}

/// The host, with the system below it.
fn host(scenario: &Scenario, system: &ComponentTree) -> Item {
    let mut capacities = BTreeMap::new();
    gather(system, &mut capacities);
    let depth = format!("depth {}", scenario.host_word("queue_depth"));
    let lines = match scenario.tenants.len() {
        0 if is_replayed_one_by_one(scenario) => {
            vec!["one request at a time".to_owned(), scenario.host_word("scheduler")]
        }
        0 => {
            let mode = format!("{} loop", scenario.host_word("mode"));
            vec![mode, depth, scenario.host_word("scheduler")]
        }
        count => {
            let arbitration = match scenario.host.has("arbitration") {
                true => scenario.host_word("arbitration"),
                false => "round-robin".to_owned(),
            };
            vec![format!("{count} workloads"), depth, arbitration]
        }
    };
    let below = vec![item(scenario, &scenario.components[scenario.system], &capacities)];
    Item { name: "host".to_owned(), lines, shape: Shape::Box, copies: 1, children: below }
}

/// Whether each request of the trace follows the completion of the one before, so that mode and
/// queue depth of the host say nothing about it.
fn is_replayed_one_by_one(scenario: &Scenario) -> bool {
    let times = scenario.workload.value("times").map(Value::word);
    scenario.source.trace.is_some() && times.as_deref() == Some("after-completions")
}

/// Capacities in sectors by part name.
fn gather(node: &ComponentTree, capacities: &mut BTreeMap<String, u64>) {
    let name = node.path.rsplit('/').next().unwrap_or(&node.path);
    capacities.insert(name.to_owned(), node.component.capacity());
    node.children.iter().for_each(|child| gather(child, capacities));
}

fn item(
    scenario: &Scenario,
    component: &ScenarioComponent,
    capacities: &BTreeMap<String, u64>,
) -> Item {
    let kind = component.description.name;
    let mut lines = vec![component.preset.clone().unwrap_or_else(|| kind.to_owned())];
    if component.preset.is_some() {
        lines.push(kind.to_owned());
    }
    if let Some(sectors) = capacities.get(&component.name) {
        lines.push(size(*sectors));
    }
    let policy = |(name, value): (&'static str, &Value)| match value {
        Value::Entry(choice) if choice.name != "none" => Some(format!("{name}: {}", choice.name)),
        _ => None,
    };
    lines.extend(component.settings.iter().filter_map(policy).take(4));
    let children = component.children.iter();
    let children =
        children.map(|&at| item(scenario, &scenario.components[at], capacities)).collect();
    let children = diagram::folded(children);
    Item { name: component.name.clone(), lines, shape: shape(kind), copies: 1, children }
}

/// Three digits are enough in a picture.
fn size(sectors: u64) -> String {
    let bytes = sectors.saturating_mul(SECTOR_BYTES);
    for (unit, one) in [("TB", 1e12), ("GB", 1e9), ("MB", 1e6)] {
        if bytes as f64 >= one {
            return format!("{:.3} {unit}", bytes as f64 / one);
        }
    }
    write_bytes(bytes)
}

fn shape(kind: &str) -> Shape {
    match kind {
        "hard-disk" | "smr-disk" | "curve-disk" => Shape::Disk,
        "bus" => Shape::Bar,
        _ if kind.contains("ssd") => Shape::Chip,
        _ => Shape::Box,
    }
}
