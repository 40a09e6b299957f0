//! A checked scenario written back as TOML with every value spelt out, so that a result can be
//! run again from itself.

use super::{RUN, Scenario, ScenarioComponent, WORKLOAD};
use hybridsim_config::param::{Kind, Param, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use toml::{Table, Value as Toml};

/// The resolved scenario. Plugs carry their own parameters, presets are expanded.
pub fn resolve(scenario: &Scenario, registry: &Registry) -> String {
    let mut root = Table::new();
    root.insert("title".into(), scenario.title.clone().into());
    root.insert("system".into(), scenario.components[scenario.system].name.clone().into());
    let mut run = write(&scenario.run, &[RUN], registry);
    if let Some(state) = scenario.run.text_opt("state") {
        let path = scenario.base.join(state);
        let path = std::path::absolute(&path).unwrap_or(path);
        run.insert("state".into(), path.to_string_lossy().into_owned().into());
    }
    root.insert("run".into(), run.into());
    let mut workload =
        write(&scenario.workload, &[WORKLOAD, hybridsim_workload::shape::PARAMS], registry);
    if workload.contains_key("trace") {
        // Absolute, so that the resolved scenario means the same wherever it is kept.
        let path = crate::workload::trace_path(scenario);
        let path = std::path::absolute(&path).unwrap_or(path);
        workload.insert("trace".into(), path.to_string_lossy().into_owned().into());
    }
    root.insert("workload".into(), workload.into());
    root.insert(
        "host".into(),
        write(&scenario.host, &[hybridsim_host::driver::PARAMS], registry).into(),
    );
    let components = scenario.components.iter();
    let components = components
        .map(|component| (component.name.clone(), Toml::from(write_part(component, registry))));
    root.insert("component".into(), Toml::Table(components.collect()));
    text(&root)
}

/// The part of a resolved scenario that a saved state belongs to: the system, and neither what
/// was done to it nor the seed.
pub fn system(scenario: &Scenario, registry: &Registry) -> String {
    let mut root = Table::new();
    root.insert("system".into(), scenario.components[scenario.system].name.clone().into());
    let components = scenario.components.iter();
    let components = components
        .map(|component| (component.name.clone(), Toml::from(write_part(component, registry))));
    root.insert("component".into(), Toml::Table(components.collect()));
    text(&root)
}

/// One part, resolved.
pub fn component(component: &ScenarioComponent, registry: &Registry) -> String {
    text(&write_part(component, registry))
}

fn text(root: &Table) -> String {
    toml::to_string(root).expect("tables of plain values are TOML")
}

fn write_part(component: &ScenarioComponent, registry: &Registry) -> Table {
    let mut table = Table::new();
    table.insert("kind".into(), component.description.name.into());
    table.extend(write(&component.settings, &[component.description.params], registry));
    table
}

fn write(settings: &Settings, groups: &[&'static [Param]], registry: &Registry) -> Table {
    let mut table = Table::new();
    for param in groups.iter().copied().flatten() {
        let value = settings.iter().find(|(name, _)| *name == param.name);
        if let Some((_, value)) = value {
            table.insert(param.name.into(), write_value(value, param.kind, registry));
        }
    }
    table
}

fn write_value(value: &Value, kind: Kind, registry: &Registry) -> Toml {
    match value {
        // TOML integers are 64-bit signed; larger counts do not occur but must not wrap.
        Value::Count(count) => Toml::Integer(i64::try_from(*count).unwrap_or(i64::MAX)),
        Value::Number(number) => write_number(*number, kind),
        Value::Duration(time) => units::write_duration(*time).into(),
        Value::Bytes(bytes) => units::write_bytes(*bytes).into(),
        Value::Rate(rate) => format!("{}/s", units::write_bytes(*rate)).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::Text(text) => text.clone().into(),
        Value::Texts(texts) => list(texts.iter().cloned()),
        Value::Counts(counts) => {
            list(counts.iter().map(|&n| Toml::Integer(i64::try_from(n).unwrap_or(i64::MAX))))
        }
        Value::Numbers(numbers) => list(numbers.iter().copied()),
        Value::Curve(points) => {
            let pair = |(at, time): &(f64, _)| {
                Toml::Array(vec![(*at).into(), units::write_duration(*time).into()])
            };
            list(points.iter().map(pair))
        }
        Value::Entry(plug) => {
            let Kind::Entry(slot) = kind else { unreachable!("a plug is declared as one") };
            let description = registry.descriptions(slot).find(|d| d.name == plug.name);
            let params = description.map_or(&[][..], |description| description.params);
            let mut table = Table::new();
            table.insert("kind".into(), plug.name.clone().into());
            table.extend(write(&plug.settings, &[params], registry));
            table.into()
        }
        Value::Tables(tables) => {
            let Kind::Tables(params) = kind else { unreachable!("tables are declared so") };
            list(tables.iter().map(|table| write(table, &[params], registry)))
        }
    }
}

fn list(items: impl Iterator<Item = impl Into<Toml>>) -> Toml {
    Toml::Array(items.map(Into::into).collect())
}

fn write_number(number: f64, kind: Kind) -> Toml {
    match kind {
        Kind::Rpm => format!("{number}rpm").into(),
        Kind::Power => format!("{number}W").into(),
        Kind::Energy => format!("{}pJ", number * 1e12).into(),
        _ => number.into(),
    }
}
