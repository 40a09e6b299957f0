//! Checks between a zoned device and what is above it: other components, and generators of zoned
//! loads, which have to know its zones.

use crate::scenario::{Scenario, ScenarioComponent};
use hybridsim_config::diagnostic::Diagnostic;
use hybridsim_config::param::{EntryChoice, Settings};
use hybridsim_config::units::write_bytes;
use hybridsim_flash::capacity_bytes;
use hybridsim_flash::zns::{ZNS_KIND, is_status};
use hybridsim_observe::RunResults;
use hybridsim_observe::results::{Component, CustomResult};
use hybridsim_workload::synthetic::zones::{ZONES, zones_active};

/// Zoned devices below a component: none writes zones in order or resets them.
pub fn children(scenario: &Scenario, component: &ScenarioComponent) -> Vec<Diagnostic> {
    let children = component.children.iter().map(|&child| &scenario.components[child]);
    let zoned = children.filter(|child| child.description.name == ZNS_KIND);
    let diagnostic = |child: &ScenarioComponent| Diagnostic {
        span: Some(component.span.clone()),
        key: format!("component.{}", component.name),
        message: format!(
            "`{}` is a `{ZNS_KIND}`, whose zones a `{}` neither writes in order nor resets",
            child.name, component.description.name
        ),
        help: Some(format!("use it as the whole system: system = \"{}\"", child.name)),
    };
    zoned.map(diagnostic).collect()
}

/// What zoned devices refused, by status, to be added to a warning; empty if nothing.
pub fn refusals(results: &RunResults) -> String {
    let zoned = results.components.iter().filter(|(_, it)| it.kind == ZNS_KIND);
    let refused = |(path, it): (&String, &Component)| {
        let statuses = it.custom.iter().filter(|(name, _)| is_status(name));
        let of = |(name, it): (&String, &CustomResult)| {
            format!("{path} refused {} with {name}", it.count)
        };
        statuses.map(of).collect::<Vec<_>>()
    };
    let all: Vec<String> = zoned.flat_map(refused).collect();
    if all.is_empty() {
        return String::new();
    }
    format!(
        "; {}: a zone is written from its write pointer on, as the generator `zones` does",
        all.join(", ")
    )
}

/// Generators of zoned loads over a zoned device: their zones have to be its zones, and within its
/// limits.
pub fn load(scenario: &Scenario) -> Vec<Diagnostic> {
    let device = &scenario.components[scenario.system];
    if device.description.name != ZNS_KIND {
        return Vec::new();
    }
    let alone = scenario.source.generator.iter().map(|it| ("workload.generator".to_owned(), it));
    let tenants = scenario.tenants.iter().filter_map(|tenant| {
        let key = format!("workload.{}.generator", tenant.name);
        tenant.source.generator.as_ref().map(|it| (key, it))
    });
    let loads: Vec<(String, &EntryChoice)> =
        alone.chain(tenants).filter(|(_, choice)| choice.name == ZONES).collect();
    let mut problems = Vec::new();
    for (key, choice) in &loads {
        problems.extend(sizes(key, &choice.settings, &device.settings));
    }
    problems.extend(limits(&loads, device));
    problems
}

/// Sizes of zones that are not the device's.
fn sizes(key: &str, load: &Settings, device: &Settings) -> Vec<Diagnostic> {
    let capacity = device.bytes("zone_capacity");
    let size = device.bytes_opt("zone_size").unwrap_or(capacity);
    let ours = load.bytes("zone_size");
    let of_load = [ours, load.bytes_opt("zone_capacity").unwrap_or(ours)];
    let differs = |(name, (ours, theirs)): (&str, (u64, u64))| Diagnostic {
        span: None,
        key: format!("{key}.{name}"),
        message: format!(
            "{} is not the {} of the device's zones",
            write_bytes(ours),
            write_bytes(theirs)
        ),
        help: Some(format!("set {name} = \"{}\"", write_bytes(theirs))),
    };
    let pairs = of_load.into_iter().zip([size, capacity]);
    let both = ["zone_size", "zone_capacity"].into_iter().zip(pairs);
    both.filter(|(_, (ours, theirs))| ours != theirs).map(differs).collect()
}

/// More zones than the device has active, or explicitly open, at a time.
fn limits(loads: &[(String, &EntryChoice)], device: &ScenarioComponent) -> Vec<Diagnostic> {
    let Some((key, first)) = loads.first() else { return Vec::new() };
    let capacity = capacity_bytes(ZNS_KIND, &device.settings).unwrap_or(0);
    let all = |only_open: bool| -> u64 {
        let counted = loads.iter().filter(|(_, it)| !only_open || it.settings.flag("open"));
        counted
            .map(|(_, it)| match only_open {
                true => it.settings.count("active"),
                false => zones_active(&it.settings, capacity),
            })
            .sum()
    };
    let partly = first.settings.number("fill") < 1.0 && !first.settings.flag("finish");
    let checks = [
        ("max_active_zones", all(false), "active", "finish zones, or lower `active`"),
        ("max_open_zones", all(true), "explicitly open", "lower `active`, or do without `open`"),
    ];
    let beyond = |(limit, count, what, help): (&str, u64, &str, &str)| {
        let max = device.settings.count_opt(limit).filter(|max| count > *max)?;
        let why = if partly { "; zones left with `fill` below 1 stay active" } else { "" };
        Some(Diagnostic {
            span: None,
            key: format!("{key}.active"),
            message: format!(
                "up to {count} zones are {what} at a time, and `{limit}` of the device is \
                 {max}{why}"
            ),
            help: Some(help.to_owned()),
        })
    };
    checks.into_iter().filter_map(beyond).collect()
}
