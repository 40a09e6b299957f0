//! The drive at the start of a calibration, and the preset at its end.

use super::constants::{CONSTANTS, Constant};
use crate::CalibrateError;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_engine::{Component, SimDuration};
use hybridsim_simulation::presets;
use hybridsim_simulation::scenario::{Input, Scenario, ScenarioComponent, resolve};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use toml::{Table, Value as Toml};

const KIND: &str = "hard-disk";

/// A `hard-disk` with values for all its parameters.
#[derive(Clone, Debug)]
pub struct Drive<'r> {
    /// The name it was requested by.
    pub name: String,
    component: ScenarioComponent,
    /// The parameters written in its source.
    written: BTreeSet<String>,
    seed: u64,
    registry: &'r Registry,
}

impl<'r> Drive<'r> {
    /// The drive `name` stands for: a preset, or a file ending in `.toml` that is one or is a
    /// scenario with a single hard disk, such as the importer writes.
    ///
    /// # Errors
    /// When it is none of these, or is wrong.
    pub fn read(name: &str, registry: &'r Registry) -> Result<Self, CalibrateError> {
        let source = presets::load(name, Path::new("")).map_err(CalibrateError::Start)?;
        // The check reports syntax errors with their position.
        let table: Table = source.text.parse().unwrap_or_default();
        if table.contains_key("component") {
            return Self::of_scenario(
                name,
                source,
                Path::new(name).parent().unwrap_or(Path::new("")),
                registry,
            );
        }
        let text = format!("[component.disk]\npreset = {}\n", Toml::from(name));
        let source = SourceText { name: name.to_owned(), text };
        Self::of_scenario(name, source, Path::new(""), registry)
    }

    /// The only hard disk of the scenario `source` with paths that start from `base`, to be called
    /// `name`.
    ///
    /// # Errors
    /// As [`Drive::read`].
    pub fn of_scenario(
        name: &str,
        source: SourceText,
        base: &Path,
        registry: &'r Registry,
    ) -> Result<Self, CalibrateError> {
        let wrong = |message: String| CalibrateError::Start(message);
        let table: Table = source.text.parse().unwrap_or_default();
        // Its own workload is ignored.
        let trace = Some("-".into());
        let input = Input { source, base: base.to_owned(), sets: Vec::new(), trace };
        let scenario = Scenario::check(input, registry).map_err(|all| wrong(all.to_string()))?;
        let component =
            only_disk(&scenario).map_err(|message| wrong(format!("{name}: {message}")))?;
        let own = table.get("component").and_then(|components| components.get(&component.name));
        let written =
            keys(own.and_then(Toml::as_table), component.preset.as_deref(), &scenario.base);
        Ok(Self {
            name: name.to_owned(),
            component: component.clone(),
            written,
            seed: scenario.seed(),
            registry,
        })
    }

    /// The built drive.
    ///
    /// # Errors
    /// When its parameters do not fit together.
    pub fn build(&self) -> Result<Box<dyn Component>, String> {
        let registry = self.registry;
        let entry = registry.find::<ComponentEntry>(KIND);
        let entry = entry.expect("the drive was checked with this registry");
        let (settings, seed, path) = (&self.component.settings, self.seed, "disk");
        let input = BuildInput { settings, registry, seed, path, children: &[] };
        (entry.build)(&input).map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!("{}: {}", self.name, all.join("; "))
        })
    }

    /// Values of the constants; `None` where the drive has none.
    pub(super) fn constants(&self) -> Vec<Option<f64>> {
        CONSTANTS.iter().map(|constant| constant.read(&self.component.settings)).collect()
    }

    /// Whether response times identify a constant. With a write cache they do not include the
    /// settle time of writes: requests arrive one at a time, so the cache always has space.
    pub(super) fn shows(&self, constant: &Constant) -> bool {
        constant.name != "write_settle" || !self.component.settings.flag("write_cache")
    }

    /// The drive with other values of some constants.
    #[must_use]
    pub(super) fn with(&self, values: impl Iterator<Item = (Constant, f64)>) -> Self {
        let mut other = self.clone();
        for (constant, value) in values {
            constant.write(&mut other.component.settings, value);
        }
        other
    }

    /// A turn of its platters.
    pub(super) fn turn(&self) -> SimDuration {
        SimDuration::from_ns_f64(60e9 / self.component.settings.number("rpm"))
    }

    /// Whether parameter `key` is written where the drive comes from.
    pub(super) fn writes(&self, key: &str) -> bool {
        self.written.contains(key)
    }

    /// The drive as a preset below the comment `head`; `source` says where a parameter's value
    /// comes from, for those that are not as in the drive's own source.
    pub(super) fn preset(&self, head: &str, source: impl Fn(&str) -> Option<String>) -> String {
        let mut text = String::new();
        head.lines().for_each(|line| text += &format!("# {line}\n"));
        let resolved = resolve::component(&self.component, self.registry);
        let table: Table = resolved.parse().expect("what is written can be read");
        for (key, value) in &table {
            let comment = source(key).or_else(|| {
                let own = self.writes(key) && !CONSTANTS.iter().any(|it| it.name == key);
                (own || key == "kind").then(|| format!("from {}", self.name))
            });
            if let Some(comment) = comment {
                let _ = writeln!(text, "{key} = {}  # {comment}", pretty(value, 0));
            }
        }
        text
    }
}

/// The scenario's hard disk, if there is one and only one.
fn only_disk(scenario: &Scenario) -> Result<&ScenarioComponent, String> {
    let components = &scenario.components;
    let disks: Vec<&ScenarioComponent> =
        components.iter().filter(|component| component.description.name == KIND).collect();
    match disks.as_slice() {
        [only] => Ok(only),
        [] => {
            let kinds: Vec<&str> =
                components.iter().map(|component| component.description.name).collect();
            Err(format!(
                "is no hard disk ({}); name a preset of `hybridsim list preset` that is one, or \
                 a file of `hybridsim import disksim`; for a flash device omit --disk",
                kinds.join(", ")
            ))
        }
        several => {
            let names: Vec<&str> =
                several.iter().map(|component| component.name.as_str()).collect();
            Err(format!("has {} hard disks ({}); keep only one", several.len(), names.join(", ")))
        }
    }
}

/// The keys `own` and the preset below it have.
fn keys(own: Option<&Table>, preset: Option<&str>, base: &Path) -> BTreeSet<String> {
    let below = preset.and_then(|preset| presets::load(preset, base).ok());
    let below: Table = below.and_then(|source| source.text.parse().ok()).unwrap_or_default();
    own.into_iter().chain([&below]).flat_map(Table::keys).cloned().collect()
}

/// `value` as TOML, long lists broken into lines of at most about a hundred characters.
fn pretty(value: &Toml, depth: usize) -> String {
    const WIDTH: usize = 96;
    let inline = value.to_string();
    if inline.len() <= WIDTH / 2 || depth > 4 {
        return inline;
    }
    match value {
        Toml::Array(items) => {
            let indent = "    ".repeat(depth + 1);
            let (mut text, mut line) = ("[\n".to_owned(), indent.clone());
            for item in items {
                let item = pretty(item, depth + 1);
                if line.len() > indent.len() && line.len() + item.len() > WIDTH {
                    text += &format!("{}\n", line.trim_end());
                    line.clone_from(&indent);
                }
                line += &format!("{item}, ");
            }
            format!("{text}{}\n{}]", line.trim_end(), "    ".repeat(depth))
        }
        Toml::Table(table) => {
            let pair = |(key, value): (&String, &Toml)| format!("{key} = {}", pretty(value, depth));
            format!("{{ {} }}", table.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        _ => inline,
    }
}
