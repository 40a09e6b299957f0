//! `hybridsim explain KEY` and `hybridsim list`: the contents of the registry.

use super::{HOST, RunSettings, WORKLOAD, manual};
use crate::presets;
use hybridsim_config::check::{near, takes};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::{Description, Registry};
use std::path::Path;

/// A parameter with the thing it belongs to.
pub struct OwnedParam {
    /// `run`, `host`, `workload`, or an entry such as `hard-disk`.
    pub owner: String,
    /// Name of the crate or extension that has the owner.
    pub origin: String,
    /// The parameter.
    pub param: Param,
}

impl OwnedParam {
    /// `owner.key`.
    pub fn key(&self) -> String {
        format!("{}.{}", self.owner, self.param.name)
    }
}

/// Every parameter there is, nested tables included.
pub fn all(registry: &Registry) -> Vec<OwnedParam> {
    let mut owned = Vec::new();
    let sections = [
        ("run", &[RunSettings::PARAMS][..]),
        ("host", HOST),
        ("workload", WORKLOAD),
        ("workload.NAME", &[hybridsim_host::tenants::PARAMS][..]),
    ];
    for (owner, groups) in sections {
        for params in groups {
            gather(&mut owned, owner, "", params);
        }
    }
    for category in registry.categories() {
        for entry in registry.descriptions(category) {
            gather(&mut owned, entry.name, entry.origin, entry.params);
        }
    }
    owned
}

fn gather(owned: &mut Vec<OwnedParam>, owner: &str, origin: &str, params: &'static [Param]) {
    for param in params {
        owned.push(OwnedParam {
            owner: owner.to_owned(),
            origin: origin.to_owned(),
            param: *param,
        });
        if let Kind::Table(inner) | Kind::Tables(inner) = param.kind {
            gather(owned, &format!("{owner}.{}", param.name), origin, inner);
        }
    }
}

/// Help for `key`: a parameter (`rpm`, `hard-disk.rpm`), an entry (`hard-disk`), a category
/// (`ftl`), a preset, a key of results (`p99`), or a word of the glossary or of another tool.
///
/// # Errors
/// A sentence with the nearest key when nothing matches.
pub fn explain(registry: &Registry, key: &str) -> Result<String, String> {
    let key = key.trim().trim_start_matches('[').trim_end_matches(']');
    let found = explain_word(registry, key);
    if !found.is_empty() {
        return Ok(found);
    }
    // A path as in scenarios, messages and results: in `component.ssd.ftl.gc` the component's
    // name is the user's, and what is chosen in on the way is not known here.
    let steps: Vec<&str> = key.split('.').collect();
    let own = if steps[0] == "component" { 2 } else { 1 };
    let mut ends = (own..steps.len()).map(|from| steps[from..].join("."));
    // An option of another tool with its value: `iodepth=32`.
    let option = key.trim_start_matches('-').split('=').next().filter(|word| *word != key);
    ends.find_map(|end| Some(explain_word(registry, &end)).filter(|found| !found.is_empty()))
        .or_else(|| option.map(manual::define).filter(|found| !found.is_empty()))
        .ok_or_else(|| unknown(registry, key))
}

/// Help for the entry, category, preset or parameter `key`; empty if there is none.
fn explain_word(registry: &Registry, key: &str) -> String {
    let mut out = String::new();
    for category in registry.categories() {
        for entry in registry.descriptions(category).filter(|entry| entry.name == key) {
            out += &describe_entry(category, &entry);
        }
    }
    if out.is_empty() {
        let all = all(registry);
        let matches = all
            .iter()
            .filter(|owned| owned.key() == key || owned.param.name == key || owned.owner == key);
        matches.for_each(|owned| out += &describe(owned));
    }
    if out.is_empty() && registry.categories().any(|category| category == key) {
        out += &list(registry, Some(key)).unwrap_or_default();
    }
    if out.is_empty() && presets::list().iter().any(|(name, _)| name == key) {
        let source = presets::load(key, Path::new("")).map(|source| source.text);
        out += &format!("{key} (preset)\n\n{}", source.unwrap_or_default());
    }
    out + &manual::define(key)
}

fn unknown(registry: &Registry, key: &str) -> String {
    let mut names: Vec<String> = manual::words().collect();
    for owned in all(registry) {
        names.extend([owned.key(), owned.param.name.to_owned()]);
    }
    for category in registry.categories() {
        names.push(category.to_owned());
        names.extend(registry.descriptions(category).map(|entry| entry.name.to_owned()));
    }
    names.extend(presets::list().into_iter().map(|(name, _)| name));
    let hint = near(&key.to_lowercase(), names.iter().map(String::as_str))
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!("there is no key, entry or category called `{key}`{hint}")
}

/// An entry with the full help of its parameters.
fn describe_entry(category: &str, entry: &Description) -> String {
    let mut out = format!("{} ({category}): {}\n", entry.name, entry.summary);
    if !entry.origin.is_empty() {
        out += &format!("  from: {}\n", entry.origin);
    }
    for param in entry.params {
        out += &format!(
            "\n  {}  [{}; {}]\n      {}\n",
            param.name,
            default_of(param),
            takes(param.kind),
            param.help
        );
    }
    out
}

fn default_of(param: &Param) -> String {
    match param.default {
        None => "required".to_owned(),
        Some("") => "optional".to_owned(),
        Some(default) => format!("default {default}"),
    }
}

fn describe(owned: &OwnedParam) -> String {
    let mut out = format!("{}\n  {}\n", owned.key(), owned.param.help);
    out += &format!("  takes:   {}\n", takes(owned.param.kind));
    out += &format!("  default: {}\n", default_of(&owned.param).trim_start_matches("default "));
    if !owned.origin.is_empty() {
        out += &format!("  from:    {}\n", owned.origin);
    }
    out
}

/// All slots, or the entries of one; `preset` lists the presets.
///
/// # Errors
/// A sentence when there is no such category.
pub fn list(registry: &Registry, category: Option<&str>) -> Result<String, String> {
    let mut out = String::new();
    let Some(category) = category else {
        for category in registry.categories() {
            let names: Vec<&str> =
                registry.descriptions(category).map(|entry| entry.name).collect();
            out += &format!("{category:<14} {}\n", names.join(", "));
        }
        let presets: Vec<String> = presets::list().into_iter().map(|(name, _)| name).collect();
        out += &format!("{:<14} {}\n", "preset", presets.join(", "));
        return Ok(out);
    };
    if category == "preset" {
        for (name, summary) in presets::list() {
            out += &format!("{name:<28} {summary}\n");
        }
        return Ok(out);
    }
    for entry in registry.descriptions(category) {
        out += &format!("{:<24} {}\n", entry.name, entry.summary);
    }
    if out.is_empty() {
        let slots: Vec<&str> = registry.categories().chain(["preset"]).collect();
        let hint = near(&category.to_lowercase(), slots.iter().copied())
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(format!(
            "there is no category called `{category}`{hint}; the categories are: {}",
            slots.join(", ")
        ));
    }
    Ok(out)
}
