//! The component that a calibration starts from, and the preset at its end.

use crate::CalibrateError;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_engine::Component;
use hybridsim_simulation::presets;
use hybridsim_simulation::scenario::{Input, Scenario, ScenarioComponent, resolve};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use toml::{Table, Value as Toml};

/// A kind of component that can be calibrated, with words for messages.
#[derive(Debug)]
pub(crate) struct CalibratedKind {
    /// The kind's name in scenarios.
    pub kind: &'static str,
    /// The kind in words, such as "hard disk".
    pub words: &'static str,
    /// The advice for a start of another kind.
    pub remedy: &'static str,
}

/// A component of one kind with values for all its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Start<'r> {
    /// The name it was requested by.
    pub name: String,
    pub component: ScenarioComponent,
    /// `queue_depth` of the scenario's `[host]`, where it is written.
    pub queue_depth: Option<u64>,
    pub registry: &'r Registry,
    /// The paths of the parameters written in its source.
    written: BTreeSet<String>,
    seed: u64,
}

impl<'r> Start<'r> {
    /// The start `name`: a preset, or a file ending in `.toml` that is one or is a scenario with a
    /// single component of the kind.
    ///
    /// # Errors
    /// When it is none of these, or is wrong.
    pub fn read(
        name: &str,
        kind: &'static CalibratedKind,
        registry: &'r Registry,
    ) -> Result<Self, CalibrateError> {
        let source = presets::load(name, Path::new("")).map_err(CalibrateError::Start)?;
        // The check reports syntax errors with their position.
        let table: Table = source.text.parse().unwrap_or_default();
        if table.contains_key("component") {
            let base = Path::new(name).parent().unwrap_or(Path::new(""));
            return Self::of_scenario(name, kind, source, base, registry);
        }
        let text = format!("[component.start]\npreset = {}\n", Toml::from(name));
        let source = SourceText { name: name.to_owned(), text };
        Self::of_scenario(name, kind, source, Path::new(""), registry)
    }

    /// The only component of the kind in the scenario `source` with paths that start from `base`,
    /// to be called `name`.
    ///
    /// # Errors
    /// As [`Start::read`].
    pub fn of_scenario(
        name: &str,
        kind: &'static CalibratedKind,
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
            only(&scenario, kind).map_err(|message| wrong(format!("{name}: {message}")))?;
        let own = table.get("component").and_then(|components| components.get(&component.name));
        let written =
            keys(own.and_then(Toml::as_table), component.preset.as_deref(), &scenario.base);
        let queue_depth = table.get("host").and_then(|host| host.get("queue_depth"));
        let queue_depth = queue_depth.and_then(Toml::as_integer).and_then(|n| n.try_into().ok());
        Ok(Self {
            name: name.to_owned(),
            component: component.clone(),
            queue_depth,
            written,
            seed: scenario.seed(),
            registry,
        })
    }

    /// The component, built at `path`.
    ///
    /// # Errors
    /// When its parameters do not fit together.
    pub fn build(&self, path: &str) -> Result<Box<dyn Component>, String> {
        let registry = self.registry;
        let entry = registry.find::<ComponentEntry>(self.component.description.name);
        let entry = entry.expect("the component was checked with this registry");
        let (settings, seed) = (&self.component.settings, self.seed);
        let input = BuildInput { settings, registry, seed, path, children: &[] };
        (entry.build)(&input).map_err(|problems| {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!("{}: {}", self.name, all.join("; "))
        })
    }

    /// All its keys.
    pub fn table(&self) -> Table {
        let resolved = resolve::component(&self.component, self.registry);
        resolved.parse().expect("what is written can be read")
    }

    /// Whether the parameter at `path` is written where the component comes from.
    pub fn writes(&self, path: &str) -> bool {
        self.written.contains(path)
    }

    /// The component as a preset below the comment `head`; `source` says where a parameter's value
    /// comes from, for those that are not as in its own source. `is_fitted` are not as there.
    pub fn preset(
        &self,
        head: &str,
        is_fitted: impl Fn(&str) -> bool,
        source: impl Fn(&str) -> Option<String>,
    ) -> String {
        let mut text = String::new();
        head.lines().for_each(|line| text += &format!("# {line}\n"));
        let comment = |path: &str| {
            source(path).or_else(|| {
                let own = self.writes(path) && !is_fitted(path);
                (own || path == KIND).then(|| format!("from {}", self.name))
            })
        };
        let (own, sections) = sections("", &self.table(), &comment);
        text + &own + &sections
    }
}

/// The key of a component's kind, and of an entry's.
const KIND: &str = "kind";

/// The keys of the table at `path` that have a comment, and the sections of the tables in it. The
/// kind of an entry has the comment of the parameter that chooses it.
fn sections(
    path: &str,
    table: &Table,
    comment: &dyn Fn(&str) -> Option<String>,
) -> (String, String) {
    let (mut own, mut below) = (String::new(), String::new());
    for (key, value) in table {
        let at = match path {
            "" => key.clone(),
            _ if key == KIND => path.to_owned(),
            _ => format!("{path}.{key}"),
        };
        let (mut line, mut section) = (None, None);
        match value {
            Toml::Table(inner) => {
                let (keys, sections) = sections(&at, inner, comment);
                let is_kind_only = keys.starts_with("kind = ") && keys.lines().count() == 1;
                if is_kind_only && sections.is_empty() {
                    line = Some(&inner[KIND]);
                } else if !keys.is_empty() || !sections.is_empty() {
                    section = Some(format!("\n[{at}]\n{keys}{sections}"));
                }
            }
            value => line = Some(value),
        }
        if let Some((value, comment)) = line.zip(comment(&at)) {
            let _ = writeln!(own, "{key} = {}  # {comment}", pretty(value, 0));
        }
        below.extend(section);
    }
    (own, below)
}

/// The scenario's component of the kind, if there is one and only one.
fn only<'a>(
    scenario: &'a Scenario,
    kind: &'static CalibratedKind,
) -> Result<&'a ScenarioComponent, String> {
    let CalibratedKind { words, remedy, .. } = kind;
    let components = &scenario.components;
    let found: Vec<&ScenarioComponent> =
        components.iter().filter(|component| component.description.name == kind.kind).collect();
    match found.as_slice() {
        [only] => Ok(only),
        [] => {
            let kinds: Vec<&str> =
                components.iter().map(|component| component.description.name).collect();
            Err(format!("is no {words} ({}); {remedy}", kinds.join(", ")))
        }
        several => {
            let names: Vec<&str> =
                several.iter().map(|component| component.name.as_str()).collect();
            let names = names.join(", ");
            Err(format!("has {} {words}s ({names}); keep only one", several.len()))
        }
    }
}

/// The paths of the keys that `own` and the preset below it have.
fn keys(own: Option<&Table>, preset: Option<&str>, base: &Path) -> BTreeSet<String> {
    let below = preset.and_then(|preset| presets::load(preset, base).ok());
    let below: Table = below.and_then(|source| source.text.parse().ok()).unwrap_or_default();
    let mut found = BTreeSet::new();
    own.into_iter().chain([&below]).for_each(|table| paths("", table, &mut found));
    found
}

/// Adds the paths of the keys of `table`, which is at `path`, and of the tables in it.
fn paths(path: &str, table: &Table, found: &mut BTreeSet<String>) {
    for (key, value) in table {
        let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if let Toml::Table(inner) = value {
            paths(&at, inner, found);
        }
        found.insert(at);
    }
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
