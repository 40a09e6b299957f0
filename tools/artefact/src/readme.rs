//! The page in the archive: the appendix that an artefact evaluation asks for.

use crate::archive::Programs;
use crate::cite::Citations;
use crate::inputs::Inputs;
use crate::study::{Simulation, Study};
use hybridsim_config::registry::Registry;
use hybridsim_sweep::Outcome;
use std::collections::BTreeMap;

/// The page.
pub fn text(study: &Study, inputs: &Inputs, programs: &Programs, registry: &Registry) -> String {
    let mut citations = Citations::default();
    study.simulations.iter().for_each(|it| citations.add(&it.scenario, registry));
    let list = |items: &mut dyn Iterator<Item = &String>| {
        items.map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
    };
    let names = list(&mut programs.iter().map(|(name, _)| name));
    let codes = list(&mut programs.iter().map(|(_, code)| code));
    let folders = [("runs/", "runs/*"), ("sweeps/", "sweeps/*/points/*")].map(|(start, glob)| {
        let is_there = study.simulations.iter().any(|it| it.folder.starts_with(start));
        if is_there { glob } else { "" }
    });
    format!(
        include_str!("readme.md"),
        contents = contents(study),
        names = names,
        codes = codes,
        memory = memory(study),
        states = states(inputs),
        absent = absent(inputs),
        count = study.simulations.len(),
        time = time(study),
        folders = folders.join(" ").trim(),
        citations = citations.bibtex(),
    )
}

fn results(study: &Study) -> impl Iterator<Item = &hybridsim_observe::RunResults> {
    study.simulations.iter().filter_map(Simulation::results)
}

/// Rows of a table: each run, each sweep.
fn contents(study: &Study) -> String {
    let mut sweeps: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut rows = Vec::new();
    for it in &study.simulations {
        if let Some((sweep, _)) = it.folder.split_once("/points/") {
            let (points, failed) = sweeps.entry(sweep).or_default();
            *points += 1;
            *failed += usize::from(matches!(it.outcome, Outcome::Failed(_)));
        } else {
            let title = it.scenario.title.replace(['|', '\n'], " ");
            rows.push(format!("| `{}` | a run: {title} |\n", it.folder));
        }
    }
    rows.extend(sweeps.into_iter().map(|(sweep, (points, failed))| {
        let failed = if failed > 0 { format!(", of which {failed} fail") } else { String::new() };
        format!(
            "| `{sweep}` | a sweep: `sweep.csv`, and in `points` its {points} points{failed} |\n"
        )
    }));
    rows.concat()
}

fn memory(study: &Study) -> String {
    match results(study).filter_map(|it| it.peak_rss_bytes).max() {
        Some(bytes) => {
            format!(" The program took up to {} MiB of memory.", bytes.div_ceil(1 << 20))
        }
        None => String::new(),
    }
}

fn states(inputs: &Inputs) -> &'static str {
    match inputs.files.keys().any(|at| at.starts_with("states/")) {
        true => "\n- The saved states in `states` need a program built from the same code.",
        false => "",
    }
}

fn absent(inputs: &Inputs) -> String {
    let rows: String = inputs
        .files
        .iter()
        .filter(|(_, input)| !input.is_kept)
        .map(|(at, it)| {
            let name = it.source.file_name().unwrap_or_default().to_string_lossy();
            format!("| {name} | `{at}` | {} | `{}` |\n", it.sum.bytes, it.sum.hash)
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "## Traces to obtain\n\nTODO: where these traces can be obtained.\n\n\
         | file | put it at | bytes | SHA-256 |\n|---|---|--:|---|\n{rows}\n"
    )
}

fn time(study: &Study) -> String {
    let seconds: f64 = results(study).map(|it| it.wall_s).sum();
    match seconds {
        ..1.0 => "less than a second".to_owned(),
        ..100.0 => format!("{seconds:.0} s"),
        ..6000.0 => format!("{:.0} minutes", seconds / 60.0),
        _ => format!("{:.1} hours", seconds / 3600.0),
    }
}
