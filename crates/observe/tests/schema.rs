//! The reference of results (`docs/reference/results.md`) and the Python classes that hold them
//! (`python/hybridsim/_schema.py`) are generated from the comments of the serialized structs, in
//! `src/results.rs` and `src/metrics`. After a change there, run this test with
//! `HYBRIDSIM_BLESS=1`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- generated: begin -->\n";
const END: &str = "<!-- generated: end -->\n";
/// Python names of the structs that become classes, in order of definition.
const CLASSES: [(&str, &str); 20] = [
    ("WarmupResult", "Warmup"),
    ("LatencyResult", "Latency"),
    ("ByKind", "Latencies"),
    ("Throughput", "Throughput"),
    ("Interval", "Interval"),
    ("SteadyState", "SteadyState"),
    ("SlowestResult", "Slowest"),
    ("BreakdownResult", "Breakdown"),
    ("Totals", "Totals"),
    ("BufferResult", "Buffer"),
    ("BitErrors", "BitErrors"),
    ("EraseCount", "EraseCount"),
    ("EraseSpread", "EraseSpread"),
    ("Lifetime", "Lifetime"),
    ("CustomResult", "Custom"),
    ("Component", "Component"),
    ("Application", "Application"),
    ("RunResults", "Document"),
    ("Tenants", "Tenants"),
    ("TenantResult", "Tenant"),
];
const LINE_MAX: usize = 100;

#[derive(Clone, Default)]
struct Field {
    doc: String,
    attributes: String,
    name: String,
    kind: String,
}

struct Struct {
    doc: String,
    name: String,
    fields: Vec<Field>,
}

impl Field {
    fn is_flattened(&self) -> bool {
        self.attributes.contains("flatten")
    }

    fn mentions(&self, name: &str) -> bool {
        self.kind.split(|c: char| !c.is_alphanumeric()).any(|word| word == name)
    }
}

/// The text of the files that declare results.
fn source() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![folder.join("results.rs")];
    for entry in fs::read_dir(folder.join("metrics")).into_iter().flatten() {
        files.push(entry.expect("a readable entry").path());
    }
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).expect("sources are text")).collect()
}

/// The serialized structs that results consist of, from the run downwards.
fn structs() -> Vec<Struct> {
    let mut all = parsed(&source());
    let mut ordered = Vec::new();
    let mut wanted = vec!["RunResults".to_owned()];
    while let Some(name) = wanted.pop() {
        let Some(at) = all.iter().position(|one| one.name == name) else { continue };
        let one = all.remove(at);
        let words =
            one.fields.iter().flat_map(|field| field.kind.split(|c: char| !c.is_alphanumeric()));
        let mut next: Vec<String> = words.map(str::to_owned).collect();
        next.reverse();
        wanted.extend(next);
        ordered.push(one);
    }
    ordered
}

fn parsed(source: &str) -> Vec<Struct> {
    let mut found: Vec<Struct> = Vec::new();
    let (mut doc, mut attributes) = (String::new(), String::new());
    let mut is_serialized = false;
    for line in source.lines() {
        let text = line.trim();
        if let Some(words) = text.strip_prefix("///") {
            if !doc.is_empty() {
                doc.push(' ');
            }
            doc += words.trim();
            continue;
        }
        if text.starts_with("#[") {
            attributes += text;
            continue;
        }
        is_serialized &= line != "}";
        let (doc, attributes) = (std::mem::take(&mut doc), std::mem::take(&mut attributes));
        if let Some(rest) = line.strip_prefix("pub struct ") {
            is_serialized = attributes.contains("Serialize");
            if is_serialized {
                let name = rest.split(['<', ' ']).next().expect("a name").to_owned();
                found.push(Struct { doc, name, fields: Vec::new() });
            }
        } else if let Some((name, kind)) = line
            .strip_prefix("    pub ")
            .filter(|rest| rest.ends_with(',') && !rest.contains('('))
            .and_then(|rest| rest.split_once(": "))
            && is_serialized
        {
            let field = Field {
                doc,
                attributes,
                name: name.to_owned(),
                kind: kind.trim_end_matches(',').to_owned(),
            };
            found.last_mut().expect("fields follow a struct").fields.push(field);
        }
    }
    found.retain(|one| !one.fields.is_empty());
    found
}

fn find<'s>(structs: &'s [Struct], name: &str) -> &'s Struct {
    structs.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no struct {name}"))
}

/// One table per struct, the run first.
fn reference(structs: &[Struct]) -> String {
    let mut out = String::new();
    let run = find(structs, "RunResults");
    let label = find(structs, "Label");
    out += "## The run\n\n| key | meaning |\n|---|---|\n";
    for field in label.fields.iter().chain(&run.fields).filter(|field| !field.is_flattened()) {
        writeln!(out, "| `{}` | {} |", field.name, field.doc).expect("text grows");
    }
    for one in structs.iter().filter(|one| !["RunResults", "Label"].contains(&&*one.name)) {
        let fields = structs.iter().flat_map(|other| &other.fields);
        let holders = fields.filter(|field| field.mentions(&one.name) && !field.is_flattened());
        let mut keys: Vec<String> = holders.map(|field| format!("`{}`", field.name)).collect();
        keys.dedup();
        let title = one.doc.trim_end_matches('.').split(['.', ';', ':']).next();
        let title = title.expect("a first part");
        match keys.is_empty() {
            true => writeln!(out, "\n### {title} (part of a component)\n"),
            false => writeln!(out, "\n### {}: {}\n", keys.join(", "), lower(title)),
        }
        .expect("text grows");
        if one.doc.trim_end_matches('.') != title {
            writeln!(out, "{}\n", one.doc).expect("text grows");
        }
        out += "| key | meaning |\n|---|---|\n";
        for field in one.fields.iter().filter(|field| !field.is_flattened()) {
            writeln!(out, "| `{}` | {} |", field.name, field.doc).expect("text grows");
        }
    }
    out
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect::<String>())
}

/// The Python type of a Rust one.
fn python_type(kind: &str) -> String {
    let inner = |prefix: &str| kind.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    if let Some(item) = inner("Option<") {
        return format!("{} | None", python_type(item));
    }
    if let Some(item) = inner("BTreeMap<String, ") {
        return format!("Mapping[str, {}]", python_type(item));
    }
    if let Some(item) = inner("Vec<") {
        return format!("tuple[{}, ...]", python_type(item));
    }
    let class = CLASSES.iter().find(|(rust, _)| kind.split('<').next() == Some(rust));
    match kind {
        "u64" | "u32" => "int".to_owned(),
        "f64" => "float".to_owned(),
        "String" => "str".to_owned(),
        "bool" => "bool".to_owned(),
        "T" => "Latency".to_owned(),
        "PartTimes" => "Mapping[str, float]".to_owned(),
        "Utilisation" => "Mapping[str, Any]".to_owned(),
        _ => class.unwrap_or_else(|| panic!("no Python type for {kind}")).1.to_owned(),
    }
}

/// The value of a field when the document lacks its key; empty where it must not.
fn python_default(kind: &str, may_lack: bool) -> String {
    match kind {
        _ if kind.ends_with("| None") => "None".to_owned(),
        _ if !may_lack => String::new(),
        _ if kind.starts_with("Mapping") => "field(default_factory=dict)".to_owned(),
        _ => panic!("no default for {kind}"),
    }
}

fn python_field(out: &mut String, field: &Field, group: Option<&str>) {
    let mut kind = python_type(&field.kind);
    if group.is_some() && !kind.ends_with("None") && !kind.starts_with("Mapping") {
        kind += " | None";
    }
    let may_lack = group.is_some() || field.attributes.contains("default");
    let default = python_default(&kind, may_lack);
    let sign = if default.is_empty() { "" } else { " = " };
    let doc = match group {
        Some(group) => format!("{group}: {}", lower(&field.doc)),
        None => field.doc.clone(),
    };
    let text = wrapped(&doc.replace("`null`", "``None``"), 4);
    writeln!(out, "    {}: {kind}{sign}{default}\n{text}", field.name).expect("text grows");
}

/// A docstring, broken into lines where it is too long for one.
fn wrapped(text: &str, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let mut lines = vec![format!("{pad}\"\"\"")];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.chars().count() + word.chars().count() + 4 > LINE_MAX {
            lines.push(format!("{pad}{word}"));
            continue;
        }
        if !line.ends_with('"') {
            line.push(' ');
        }
        *line += word;
    }
    match lines.len() {
        1 => lines[0] += "\"\"\"",
        _ => lines.push(format!("{pad}\"\"\"")),
    }
    lines.join("\n")
}

fn python(structs: &[Struct]) -> String {
    let mut out = String::from(
        "\"\"\"Classes for the results of a run.\n\n\
         Generated from crates/observe/src/results.rs by\n\
         ``HYBRIDSIM_BLESS=1 cargo test -p hybridsim-observe --test schema``.\n\"\"\"\n\n\
         from __future__ import annotations\n\n\
         from collections.abc import Mapping\n\
         from dataclasses import dataclass, field\n\
         from typing import Any\n",
    );
    for (rust, class) in CLASSES {
        let one = find(structs, rust);
        let slots = if class == "Document" { "" } else { "slots=True, " };
        write!(
            out,
            "\n\n@dataclass(frozen=True, {slots}kw_only=True)\nclass {class}:\n{}\n\n",
            wrapped(&one.doc, 4)
        )
        .expect("text grows");
        for field in &one.fields {
            if !field.is_flattened() {
                python_field(&mut out, field, None);
                continue;
            }
            let inner = field.kind.trim_start_matches("Option<").trim_end_matches('>');
            let group = (inner != "Label").then_some(inner);
            for field in &find(structs, inner).fields {
                python_field(&mut out, field, group);
            }
        }
    }
    out
}

/// Compares `text` with the file at `path` below the repository, or writes it there.
fn check(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("HYBRIDSIM_BLESS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    }
    let stored = fs::read_to_string(&path).expect("the file is there");
    assert!(stored == text, "{} is out of date: run with HYBRIDSIM_BLESS=1", path.display());
}

#[test]
fn the_reference_of_results_is_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/results.md");
    let page = fs::read_to_string(path).expect("docs/reference/results.md");
    let (head, rest) = page.split_once(BEGIN).expect("the mark before the tables");
    let (_, foot) = rest.split_once(END).expect("the mark behind the tables");
    let tables = reference(&structs());
    assert!(tables.matches("\n| `").count() > 120, "{tables}");
    check("docs/reference/results.md", &format!("{head}{BEGIN}\n{tables}\n{END}{foot}"));
}

#[test]
fn the_python_classes_are_generated() {
    let text = python(&structs());
    let long = text.lines().find(|line| line.chars().count() > LINE_MAX);
    assert_eq!(long, None);
    check("python/hybridsim/_schema.py", &text);
}
