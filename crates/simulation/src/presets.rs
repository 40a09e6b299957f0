//! Named parts: disks, flash chips and whole devices that ship with the program.
//!
//! A preset is a TOML file with the keys of a component. The files are embedded, so an installed
//! program needs no data directory; a path ending in `.toml` names one of the user's own.

use crate::text;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_data::PRESETS;
use include_dir::Dir;
use std::path::Path;

/// Names of all embedded presets with the first comment line of each, sorted by name.
pub fn list() -> Vec<(String, String)> {
    let mut all = Vec::new();
    walk(&PRESETS, &mut |name, text| {
        let summary = text.lines().next().unwrap_or("").trim_start_matches('#').trim();
        all.push((name.to_owned(), summary.to_owned()));
    });
    all.sort();
    all
}

/// Names of all embedded presets, each with the kind of component it describes.
pub fn kinds() -> Vec<(String, String)> {
    let mut all = Vec::new();
    walk(&PRESETS, &mut |name, text| {
        let table: toml::Table = text.parse().expect("presets are checked by a test");
        let kind = table.get("kind").and_then(toml::Value::as_str).unwrap_or_default();
        all.push((name.to_owned(), kind.to_owned()));
    });
    all.sort();
    all
}

/// The text of preset `name`: embedded, or a file if it ends in `.toml`.
///
/// # Errors
/// A sentence when there is no such preset or the file cannot be read.
pub fn load(name: &str, base: &Path) -> Result<SourceText, String> {
    if name.ends_with(".toml") {
        let path = base.join(name);
        return text::read(&path, text::SCENARIO_BYTES_MAX)
            .map(|text| SourceText { name: path.display().to_string(), text })
            .map_err(|error| format!("cannot read preset {}: {error}", path.display()));
    }
    let mut found = None;
    walk(&PRESETS, &mut |preset, text| {
        if preset == name {
            found = Some(SourceText { name: format!("preset {name}"), text: text.to_owned() });
        }
    });
    found.ok_or_else(|| {
        let all = list();
        let hint = hybridsim_config::check::near(name, all.iter().map(|(name, _)| name.as_str()));
        match hint {
            Some(near) => format!("there is no preset `{name}`; did you mean `{near}`?"),
            None => format!("there is no preset `{name}`; see `hybridsim list preset`"),
        }
    })
}

fn walk(dir: &Dir<'static>, visit: &mut dyn FnMut(&str, &str)) {
    for file in dir.files() {
        let stem = file.path().file_stem().and_then(|stem| stem.to_str());
        let is_toml = file.path().extension().is_some_and(|extension| extension == "toml");
        if let (Some(stem), Some(text), true) = (stem, file.contents_utf8(), is_toml) {
            visit(stem, text);
        }
    }
    for inner in dir.dirs() {
        walk(inner, visit);
    }
}
