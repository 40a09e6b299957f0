//! The scenarios and presets that the program contains.

use hybridsim_data::EXAMPLES;
use hybridsim_simulation::{presets, state};
use include_dir::{Dir, File};
use serde_json::{Value, json};

/// Version, examples and presets.
pub fn catalogue() -> Value {
    let mut scenarios: Vec<&File<'_>> = Vec::new();
    files(&EXAMPLES, &mut scenarios);
    scenarios.retain(|file| file.path().extension().is_some_and(|it| it == "toml"));
    scenarios.sort_by_key(|file| file.path());
    let examples = scenarios.iter().filter_map(|file| {
        let text = file.contents_utf8()?;
        Some(json!({
            "name": file.path().with_extension("").to_string_lossy(),
            "summary": text.lines().next()?.trim_start_matches('#').trim(),
            "text": text,
        }))
    });
    let kinds = presets::kinds();
    let presets = presets::list().into_iter().map(|(name, summary)| {
        let kind = kinds.iter().find(|(of, _)| *of == name).map(|(_, kind)| kind);
        json!({ "name": name, "summary": summary, "kind": kind })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "sources": state::SOURCES,
        "examples": examples.collect::<Vec<_>>(),
        "presets": presets.collect::<Vec<_>>(),
    })
}

/// Puts the traces among the examples in memory, beside which those of `workloads` are fetched.
pub fn put_small_traces() {
    let mut all = Vec::new();
    files(&EXAMPLES, &mut all);
    for file in all.iter().filter(|file| file.path().extension().is_some_and(|it| it == "trace")) {
        let name = file.path().file_name().unwrap_or_default().to_string_lossy();
        hybridsim_workload::trace::in_memory::put(&name, file.contents().to_vec());
    }
}

fn files(folder: &'static Dir<'static>, found: &mut Vec<&'static File<'static>>) {
    found.extend(folder.files());
    folder.dirs().for_each(|inner| files(inner, found));
}
