//! The reference of the manual, in Markdown: commands, the sections of a scenario, every category
//! of entries, and presets. Generated from the command line's definition and the registry.

use clap::Command;
use hybridsim_config::check::takes;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::{Description, Registry};
use hybridsim_simulation::presets;
use hybridsim_simulation::scenario::explain;
use std::fmt::Write;
use std::path::Path;

/// Titles of the pages of categories, where the category's name alone says little.
const TITLES: [(&str, &str); 21] = [
    ("admission", "Cache admission policies"),
    ("cleanup", "Cache cleanup policies"),
    ("compaction", "Compaction styles"),
    ("component", "Components"),
    ("distribution", "Distributions"),
    ("errors", "Error models of flash"),
    ("ftl", "Flash translation layers"),
    ("gc-policy", "Garbage collection policies"),
    ("generator", "Workload generators"),
    ("placement", "Placement policies"),
    ("replacement", "Cache replacement policies"),
    ("scheduler", "I/O schedulers"),
    ("seek-model", "Seek models"),
    ("smr-management", "Management of shingled disks"),
    ("serving-format", "Formats of serving traces"),
    ("stage", "Stages of SSD controllers"),
    ("throttle", "Throttles of SSDs"),
    ("timing", "Timing models of flash"),
    ("trace-format", "Trace formats to read"),
    ("wear-levelling", "Wear levelling policies"),
    ("trace-writer", "Trace formats to write"),
];

/// All pages: file name and text.
pub fn pages(registry: &Registry, program: Command) -> Vec<(String, String)> {
    let mut pages = vec![
        ("command-line.md".to_owned(), commands(program)),
        ("scenario.md".to_owned(), scenario(registry)),
        ("presets.md".to_owned(), preset_page()),
    ];
    for slot in registry.categories() {
        pages.push((format!("{slot}.md"), category(registry, slot)));
    }
    pages
}

/// The help of the program and of each command.
fn commands(mut program: Command) -> String {
    program.build();
    let mut out = "# Command line\n\n    hybridsim --help\n\n\
                   The help of every command, as the program prints it.\n"
        .to_owned();
    command(&mut out, program);
    out
}

fn command(out: &mut String, command: Command) {
    let mut shown = command.clone().term_width(90);
    let name = shown.get_bin_name().unwrap_or("hybridsim").to_owned();
    let help = shown.render_long_help().to_string();
    write!(out, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end()).expect("text grows");
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        self::command(out, inner.clone());
    }
}

/// The sections of a scenario that are no components.
fn scenario(registry: &Registry) -> String {
    let mut out = "# Scenario files\n\n    hybridsim new mine.toml --system hybrid\n    \
                   hybridsim check mine.toml --resolved\n\n\
                   A scenario is a TOML file with a workload, a host, and one table \
                   `[component.NAME]` for each [component](component.md) of the system, which has \
                   a `kind` or a [preset](presets.md). `title` names the run and `system` the top \
                   component where several have no parent.\n"
        .to_owned();
    let known = explain::all(registry);
    for section in ["workload", "host", "run"] {
        write!(out, "\n## `[{section}]`\n\n").expect("text grows");
        let params: Vec<Param> =
            known.iter().filter(|known| known.owner == section).map(|known| known.param).collect();
        table(&mut out, &params);
    }
    out
}

fn category(registry: &Registry, slot: &str) -> String {
    let title = TITLES.iter().find(|(name, _)| *name == slot).map_or(slot, |(_, title)| title);
    let mut out = format!("# {title}\n\n    hybridsim list {slot}\n\n| `{slot}` | |\n|---|---|\n");
    let entries: Vec<Description> = registry.descriptions(slot).collect();
    for entry in &entries {
        writeln!(out, "| [`{0}`](#{0}) | {1} |", entry.name, sentence(entry.summary))
            .expect("text grows");
    }
    for entry in &entries {
        write!(out, "\n## {}\n\n{}\n", entry.name, sentence(entry.summary)).expect("text grows");
        if !entry.origin.is_empty() {
            write!(out, "\n*Source:* {}.\n", entry.origin.trim_end_matches('.'))
                .expect("text grows");
        }
        if !entry.params.is_empty() {
            out.push('\n');
            table(&mut out, entry.params);
        }
    }
    out
}

fn table(out: &mut String, params: &[Param]) {
    out.push_str("| key | takes | default | meaning |\n|---|---|---|---|\n");
    for param in params {
        let default = match param.default {
            None => "**required**".to_owned(),
            Some("") => String::new(),
            Some(default) => format!("`{default}`"),
        };
        let (takes, help) = (takes_cell(param.kind), cell(param.help));
        writeln!(out, "| `{}` | {takes} | {default} | {help} |", param.name).expect("text grows");
    }
    let inner = params.iter().filter_map(|param| match param.kind {
        Kind::Table(inner) | Kind::Tables(inner) => Some((param.name, inner)),
        _ => None,
    });
    for (name, inner) in inner {
        write!(out, "\nKeys of `{name}`:\n\n").expect("text grows");
        table(out, inner);
    }
}

/// The values that a parameter takes, with links to the pages of categories.
fn takes_cell(kind: Kind) -> String {
    match kind {
        Kind::Entry(slot) => format!("a [{slot}]({slot}.md)"),
        Kind::Entries(slot) => format!("a list of [{slot}]({slot}.md)"),
        Kind::Table(_) => "a table, see below".to_owned(),
        kind => cell(&takes(kind)),
    }
}

/// A summary as a sentence of a page.
fn sentence(summary: &str) -> String {
    let mut letters = summary.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let text: String = first.chain(letters).collect();
    format!("{}.", cell(text.trim_end_matches('.')))
}

/// Text that keeps to its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn preset_page() -> String {
    let mut out = "# Presets\n\n    hybridsim list preset\n    hybridsim explain sata-ssd\n\n\
                   A preset is a set of parameters of one component, each with its source or \
                   marked `assumed`. `preset = \"NAME\"` in a component's table uses it; other \
                   keys of the table override it. A file of your own serves as well: \
                   `preset = \"mine.toml\"`.\n\n| preset | component | |\n|---|---|---|\n"
        .to_owned();
    let kinds = presets::kinds();
    for ((name, summary), (_, kind)) in presets::list().iter().zip(&kinds) {
        let row = format!("| [`{name}`](#{name}) | [`{kind}`](component.md#{kind})");
        writeln!(out, "{row} | {} |", cell(summary)).expect("text grows");
    }
    for (name, _) in &kinds {
        let text = presets::load(name, Path::new("")).map(|source| source.text);
        let text = text.unwrap_or_default();
        write!(out, "\n## {name}\n\n```toml\n{}\n```\n", text.trim_end()).expect("text grows");
    }
    out
}
