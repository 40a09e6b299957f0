//! A report as one self-contained HTML file.
//!
//! The content security policy allows scripts and styles by hash only and no loading, so a string
//! that escaped the escaping could neither run nor send anything.

use crate::Run;
use crate::figures::{Figure, figures};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, context};
use serde::Serialize;
use sha2::{Digest, Sha256};

const TEMPLATE: &str = include_str!("../assets/page.html");
const STYLES: [&str; 2] =
    [include_str!("../assets/uplot-1.6.32.min.css"), include_str!("../assets/page.css")];
pub(crate) const LICENCE: &str = include_str!("../assets/uplot-LICENSE");
const SCRIPTS: [&str; 10] = [
    include_str!("../assets/uplot-1.6.32.min.js"),
    include_str!("../assets/units.js"),
    include_str!("../assets/figure.js"),
    include_str!("../assets/lines.js"),
    include_str!("../assets/maps.js"),
    include_str!("../assets/bars.js"),
    include_str!("../assets/busy.js"),
    include_str!("../assets/devices.js"),
    include_str!("../assets/theme.js"),
    include_str!("../assets/main.js"),
];

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
    let script = SCRIPTS.join("\n");
    let style = STYLES.join("\n");
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("page", TEMPLATE).expect("the template is fixed and tested");
    let template = environment.get_template("page").expect("it was just added");
    let page = template.render(context! {
        title => title,
        names => names.clone(),
        groups => Value::from(Serde(groups(&figures))),
        notes => Value::from(Serde(notes(runs, &names))),
        unfinished => unfinished(runs, &names),
        diagrams => Value::from(Serde(diagrams(runs, &names))),
        sources => Value::from(Serde(sources)),
        licence => LICENCE,
        policy => policy(&script, &style),
        script => Value::from_safe_string(script),
        style => Value::from_safe_string(style),
        data => Value::from_safe_string(data(runs, &names)),
    });
    page.expect("the template uses only what it is given")
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

/// The runs as JSON for the scripts.
fn data(runs: &[Run], names: &[String]) -> String {
    #[derive(Serialize)]
    struct Entry<'a> {
        name: &'a str,
        results: &'a hybridsim_observe::RunResults,
        pictures: Option<hybridsim_observe::Pictures>,
    }
    let entry = |(run, name)| {
        let (run, name): (&'_ Run, &'_ String) = (run, name);
        // The page itself has the diagram.
        let mut pictures = run.pictures.clone();
        pictures.iter_mut().for_each(|pictures| pictures.diagram.clear());
        Entry { name, results: &run.results, pictures }
    };
    let entries: Vec<Entry<'_>> = runs.iter().zip(names).map(entry).collect();
    embed(&entries)
}

/// `value` as JSON that is safe inside a script element: it contains no `<`.
pub(crate) fn embed(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("only plain values are shown");
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

pub(crate) fn policy(script: &str, style: &str) -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; \
         base-uri 'none'; form-action 'none'",
        base64(&Sha256::digest(script)),
        base64(&Sha256::digest(style))
    )
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_rfc_examples() {
        let check = |text: &str, expect: &str| assert_eq!(base64(text.as_bytes()), expect);
        check("", "");
        check("f", "Zg==");
        check("fo", "Zm8=");
        check("foo", "Zm9v");
        check("foobar", "Zm9vYmFy");
    }
}
