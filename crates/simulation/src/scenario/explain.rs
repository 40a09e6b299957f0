//! `hybridsim explain KEY` and `hybridsim list`: the contents of the registry.

use super::{HOST, RunSettings, WORKLOAD, manual};
use crate::presets;
use hybridsim_config::check::{near, takes};
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::{Description, Registry};
use std::path::Path;

/// A parameter with the thing it belongs to.
pub struct Known {
    /// `run`, `host`, `workload`, or an entry such as `hard-disk`.
    pub owner: String,
    /// Where the owner comes from.
    pub origin: String,
    /// The parameter.
    pub param: Param,
}

impl Known {
    /// `owner.key`.
    pub fn key(&self) -> String {
        format!("{}.{}", self.owner, self.param.name)
    }
}

/// Every parameter there is, nested tables included.
pub fn all(registry: &Registry) -> Vec<Known> {
    let mut known = Vec::new();
    let sections = [
        ("run", &[RunSettings::PARAMS][..]),
        ("host", HOST),
        ("workload", WORKLOAD),
        ("workload.NAME", &[hybridsim_host::tenants::PARAMS][..]),
    ];
    for (owner, groups) in sections {
        for params in groups {
            gather(&mut known, owner, "", params);
        }
    }
    for slot in registry.categories() {
        for entry in registry.descriptions(slot) {
            gather(&mut known, entry.name, entry.origin, entry.params);
        }
    }
    known
}

fn gather(known: &mut Vec<Known>, owner: &str, origin: &str, params: &'static [Param]) {
    for param in params {
        known.push(Known { owner: owner.to_owned(), origin: origin.to_owned(), param: *param });
        if let Kind::Table(inner) | Kind::Tables(inner) = param.kind {
            gather(known, &format!("{owner}.{}", param.name), origin, inner);
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

/// What stands under `key`; empty if nothing.
fn explain_word(registry: &Registry, key: &str) -> String {
    let mut out = String::new();
    for slot in registry.categories() {
        for entry in registry.descriptions(slot).filter(|entry| entry.name == key) {
            out += &describe_entry(slot, &entry);
        }
    }
    if out.is_empty() {
        let all = all(registry);
        let matches = all
            .iter()
            .filter(|known| known.key() == key || known.param.name == key || known.owner == key);
        matches.for_each(|known| out += &describe(known));
    }
    if out.is_empty() && registry.categories().any(|slot| slot == key) {
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
    for known in all(registry) {
        names.extend([known.key(), known.param.name.to_owned()]);
    }
    for slot in registry.categories() {
        names.push(slot.to_owned());
        names.extend(registry.descriptions(slot).map(|entry| entry.name.to_owned()));
    }
    names.extend(presets::list().into_iter().map(|(name, _)| name));
    let hint = near(&key.to_lowercase(), names.iter().map(String::as_str))
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!("there is no key, entry or category called `{key}`{hint}")
}

/// An entry with the full help of its parameters.
fn describe_entry(slot: &str, entry: &Description) -> String {
    let mut out = format!("{} ({slot}): {}\n", entry.name, entry.summary);
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

fn describe(known: &Known) -> String {
    let mut out = format!("{}\n  {}\n", known.key(), known.param.help);
    out += &format!("  takes:   {}\n", takes(known.param.kind));
    out += &format!("  default: {}\n", default_of(&known.param).trim_start_matches("default "));
    if !known.origin.is_empty() {
        out += &format!("  from:    {}\n", known.origin);
    }
    out
}

/// All slots, or the entries of one; `preset` lists the presets.
///
/// # Errors
/// A sentence when there is no such slot.
pub fn list(registry: &Registry, slot: Option<&str>) -> Result<String, String> {
    let mut out = String::new();
    let Some(slot) = slot else {
        for slot in registry.categories() {
            let names: Vec<&str> = registry.descriptions(slot).map(|entry| entry.name).collect();
            out += &format!("{slot:<14} {}\n", names.join(", "));
        }
        let presets: Vec<String> = presets::list().into_iter().map(|(name, _)| name).collect();
        out += &format!("{:<14} {}\n", "preset", presets.join(", "));
        return Ok(out);
    };
    if slot == "preset" {
        for (name, summary) in presets::list() {
            out += &format!("{name:<28} {summary}\n");
        }
        return Ok(out);
    }
    for entry in registry.descriptions(slot) {
        out += &format!("{:<24} {}\n", entry.name, entry.summary);
    }
    if out.is_empty() {
        let slots: Vec<&str> = registry.categories().chain(["preset"]).collect();
        let hint = near(&slot.to_lowercase(), slots.iter().copied())
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(format!(
            "there is no category called `{slot}`{hint}; the categories are: {}",
            slots.join(", ")
        ));
    }
    Ok(out)
}
