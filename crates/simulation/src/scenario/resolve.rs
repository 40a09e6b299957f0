//! A checked scenario written back as TOML with every value spelt out, so that a result can be
//! run again from itself.

use super::tenants::TENANT;
use super::{HOST, RunSettings, Scenario, ScenarioComponent, WORKLOAD};
use hybridsim_config::param::{EntryChoice, Kind, Param, Settings, Value};
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use std::path::Path;
use toml::{Table, Value as Toml};

/// A scenario with every value spelt out: presets expanded, chosen entries with their parameters.
pub struct Resolved {
    root: Table,
}

impl Resolved {
    /// Resolves `scenario`.
    pub fn new(scenario: &Scenario, registry: &Registry) -> Self {
        let mut root = Table::new();
        root.insert("title".into(), scenario.title.clone().into());
        root.insert("system".into(), scenario.components[scenario.system].name.clone().into());
        let mut run = write(&scenario.run_keys, &[RunSettings::PARAMS], registry);
        if let Some(state) = &scenario.run.state {
            run.insert("state".into(), absolute(&scenario.base.join(state)));
        }
        root.insert("run".into(), run.into());
        let mut workload = write(&scenario.workload, WORKLOAD, registry);
        if workload.contains_key("trace") {
            workload.insert("trace".into(), absolute(&scenario.trace_path()));
        }
        for tenant in &scenario.tenants {
            let mut table = write(&tenant.settings, TENANT, registry);
            if let Some(trace) = &tenant.source.trace {
                table.insert("trace".into(), absolute(&scenario.base.join(trace)));
            }
            workload.insert(tenant.name.clone(), table.into());
        }
        root.insert("workload".into(), workload.into());
        let host = write(&scenario.host, HOST, registry);
        root.insert("host".into(), host.into());
        let components = scenario.components.iter();
        let components =
            components.map(|component| (component.name.clone(), keys(component, registry).into()));
        root.insert("component".into(), Toml::Table(components.collect()));
        Self { root }
    }

    /// The whole scenario.
    pub fn text(&self) -> String {
        text(&self.root)
    }

    /// The whole scenario with `contents` of its files in place of their paths.
    pub fn with_files(
        &self,
        scenario: &Scenario,
        mut contents: impl FnMut(&Path) -> String,
    ) -> String {
        let mut root = self.root.clone();
        let mut replace = |section: &str, key: &str, path: &Path| {
            if let Some(Toml::Table(table)) = root.get_mut(section)
                && let Some(value) = table.get_mut(key)
            {
                *value = contents(path).into();
            }
        };
        replace("workload", "trace", &scenario.trace_path());
        if let Some(state) = &scenario.run.state {
            replace("run", "state", &scenario.base.join(state));
        }
        for tenant in &scenario.tenants {
            if let Some(trace) = &tenant.source.trace
                && let Some(Toml::Table(workload)) = root.get_mut("workload")
                && let Some(Toml::Table(table)) = workload.get_mut(&tenant.name)
            {
                table.insert("trace".into(), contents(&scenario.base.join(trace)).into());
            }
        }
        root.iter_mut().for_each(|(_, value)| replace_classes(value, &mut contents));
        text(&root)
    }

    /// The part that a saved state belongs to: the system, without workload and seed.
    pub fn system(&self) -> String {
        let keys = ["system", "component"].map(|key| (key.to_owned(), self.root[key].clone()));
        text(&Table::from_iter(keys))
    }
}

/// Replaces the files of Python classes (`"file.py:Class"`) in `value` by their `contents`.
fn replace_classes(value: &mut Toml, contents: &mut impl FnMut(&Path) -> String) {
    match value {
        Toml::Table(table) => {
            for (key, value) in table.iter_mut() {
                match value {
                    Toml::String(class) if key == "class" => {
                        if let Some((file, name)) = class.rsplit_once(':')
                            && file.ends_with(".py")
                        {
                            *class = format!("{}:{name}", contents(Path::new(file)));
                        }
                    }
                    _ => replace_classes(value, contents),
                }
            }
        }
        Toml::Array(list) => list.iter_mut().for_each(|value| replace_classes(value, contents)),
        _ => {}
    }
}

/// The text of the resolved scenario.
pub fn resolve(scenario: &Scenario, registry: &Registry) -> String {
    Resolved::new(scenario, registry).text()
}

/// One component, resolved.
pub fn component(component: &ScenarioComponent, registry: &Registry) -> String {
    text(&keys(component, registry))
}

/// The scheduler of the host with all its settings.
pub fn scheduler(scenario: &Scenario, registry: &Registry) -> String {
    let host = write(&scenario.host, HOST, registry);
    host.get("scheduler").map_or_else(String::new, Toml::to_string)
}

/// An absolute path, so that the resolved scenario means the same in any folder.
fn absolute(path: &Path) -> Toml {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned().into()
}

fn text(root: &Table) -> String {
    toml::to_string(root).expect("tables of plain values are TOML")
}

fn keys(component: &ScenarioComponent, registry: &Registry) -> Table {
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
        Value::Entry(choice) => {
            let Kind::Entry(category) = kind else { unreachable!("an entry is declared so") };
            write_entry(choice, category, registry)
        }
        Value::Entries(choices) => {
            let Kind::Entries(category) = kind else { unreachable!("entries are declared so") };
            list(choices.iter().map(|choice| write_entry(choice, category, registry)))
        }
        Value::Table(table) => {
            let Kind::Table(params) = kind else { unreachable!("a table is declared so") };
            write(table, &[params], registry).into()
        }
        Value::Tables(tables) => {
            let Kind::Tables(params) = kind else { unreachable!("tables are declared so") };
            list(tables.iter().map(|table| write(table, &[params], registry)))
        }
    }
}

fn write_entry(choice: &EntryChoice, category: &str, registry: &Registry) -> Toml {
    let description = registry.descriptions(category).find(|d| d.name == choice.name);
    let params = description.map_or(&[][..], |description| description.params);
    let mut table = Table::new();
    table.insert("kind".into(), choice.name.clone().into());
    table.extend(write(&choice.settings, &[params], registry));
    table.into()
}

fn list(items: impl Iterator<Item = impl Into<Toml>>) -> Toml {
    Toml::Array(items.map(Into::into).collect())
}

fn write_number(number: f64, kind: Kind) -> Toml {
    match kind {
        Kind::MeanBytes => format!("{number}B").into(),
        Kind::Rpm => format!("{number}rpm").into(),
        Kind::Power => format!("{number}W").into(),
        Kind::Energy => format!("{}pJ", number * 1e12).into(),
        _ => number.into(),
    }
}
