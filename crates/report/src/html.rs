//! A report as one self-contained HTML file.

use crate::Run;
use crate::document::Document;
use crate::figures::{Figure, figures};
use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

const DOCUMENT: Document<'_> = Document {
    template: include_str!("../assets/page.html"),
    styles: &[],
    scripts: &[
        include_str!("../assets/figure.js"),
        include_str!("../assets/lines.js"),
        include_str!("../assets/maps.js"),
        include_str!("../assets/bars.js"),
        include_str!("../assets/busy.js"),
        include_str!("../assets/devices.js"),
        include_str!("../assets/theme.js"),
        include_str!("../assets/main.js"),
    ],
};

#[derive(Serialize)]
struct Group<'a> {
    name: &'a str,
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    label: &'a str,
    unit: &'a str,
    values: &'a [String],
}

#[derive(Serialize)]
struct Source<'a> {
    name: String,
    scenario: &'a str,
    text: &'a str,
    trace: &'a str,
    seed: u64,
    fingerprint: &'a str,
    versions: Vec<String>,
    events: u64,
    event_records: u64,
    schema_version: u32,
}

#[derive(Serialize)]
struct Diagram {
    name: String,
    svg: String,
}

#[derive(Serialize)]
struct Note {
    name: String,
    text: String,
    broken: bool,
}

/// The report of one run, or of several side by side, as one HTML document.
///
/// # Panics
/// Never for any content of `runs`: the template is fixed and tested.
pub fn page(title: &str, runs: &[Run]) -> String {
    let names = names(runs);
    let results: Vec<_> = runs.iter().map(|run| &run.results).collect();
    let figures = figures(&results);
    let sources: Vec<_> = runs.iter().zip(&names).map(source).collect();
    let content = context! {
        names => names.clone(),
        groups => Value::from(Serde(groups(&figures))),
        notes => Value::from(Serde(notes(runs, &names))),
        unfinished => unfinished(runs, &names),
        diagrams => Value::from(Serde(diagrams(runs, &names))),
        sources => Value::from(Serde(sources)),
    };
    DOCUMENT.render(title, content, &data(runs, &names))
}

/// Titles of the runs, numbered where several are equal.
fn names(runs: &[Run]) -> Vec<String> {
    let label = |run: &Run| {
        let label = &run.results.label;
        let name = if label.title.is_empty() { &label.scenario } else { &label.title };
        if name.is_empty() { "run".to_owned() } else { name.clone() }
    };
    let plain: Vec<String> = runs.iter().map(label).collect();
    let unique = |at: usize| {
        let name = &plain[at];
        let same = plain.iter().filter(|other| *other == name).count();
        let before = plain[..at].iter().filter(|other| *other == name).count();
        if same > 1 { format!("{name} ({})", before + 1) } else { name.clone() }
    };
    (0..plain.len()).map(unique).collect()
}

fn groups(figures: &[Figure]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for figure in figures {
        let row = Row { label: &figure.label, unit: figure.unit, values: &figure.values };
        match groups.last_mut() {
            Some(group) if group.name == figure.group => group.rows.push(row),
            _ => groups.push(Group { name: figure.group, rows: vec![row] }),
        }
    }
    groups
}

/// The systems of the runs that have a diagram.
fn diagrams(runs: &[Run], names: &[String]) -> Vec<Diagram> {
    let drawn = runs.iter().zip(names).filter_map(|(run, name)| {
        let svg = &run.pictures.as_ref()?.diagram;
        (!svg.is_empty()).then(|| Diagram { name: name.clone(), svg: svg.clone() })
    });
    drawn.collect()
}

/// Names of the runs that stopped early.
fn unfinished(runs: &[Run], names: &[String]) -> Vec<String> {
    let stopped = runs.iter().zip(names).filter(|(run, _)| !run.results.complete);
    stopped.map(|(_, name)| name.clone()).collect()
}

fn notes(runs: &[Run], names: &[String]) -> Vec<Note> {
    let of = |(run, name): (&Run, &String)| {
        let note = |broken: bool| {
            let name = name.clone();
            move |text: &String| Note { name: name.clone(), text: text.clone(), broken }
        };
        let broken = run.results.violations.iter().map(note(true));
        broken.chain(run.results.warnings.iter().map(note(false))).collect::<Vec<_>>()
    };
    runs.iter().zip(names).flat_map(of).collect()
}

fn source<'a>((run, name): (&'a Run, &String)) -> Source<'a> {
    let (results, label) = (&run.results, &run.results.label);
    Source {
        name: name.clone(),
        scenario: &label.scenario,
        text: &run.scenario_text,
        trace: &label.trace,
        seed: label.seed,
        fingerprint: &results.fingerprint,
        versions: label.versions.iter().map(|(name, v)| format!("{name} {v}")).collect(),
        events: results.events,
        event_records: results.event_records,
        schema_version: results.schema_version,
    }
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    results: &'a hybridsim_observe::RunResults,
    pictures: Option<hybridsim_observe::Pictures>,
}

fn data<'a>(runs: &'a [Run], names: &'a [String]) -> Vec<Entry<'a>> {
    let entry = |(run, name): (&'a Run, &'a String)| {
        // The page itself has the diagram.
        let mut pictures = run.pictures.clone();
        pictures.iter_mut().for_each(|pictures| pictures.diagram.clear());
        Entry { name, results: &run.results, pictures }
    };
    runs.iter().zip(names).map(entry).collect()
}
