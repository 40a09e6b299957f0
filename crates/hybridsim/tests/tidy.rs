//! Habits that a compiler does not check, kept by a test.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const COLUMNS_MAX: usize = 100;
const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;
/// Share of functions that may be longer: tables and long matches read best in one piece.
const LONG_SHARE_MAX: f64 = 0.02;
/// Words that mark unfinished work. Split, so that this file passes its own check.
const UNFINISHED: &[&str] = &[
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("FIX", "ME"),
];

/// Words that need translating for a reader from the storage field. Also found as parts of
/// identifiers.
const BANNED_WORDS: &[&str] = &[
    "told", "tell", "tells", "nobody", "somebody", "whoever", "ailment", "keeper", "obey", "obeys",
    "obeyed", "pump", "pumps", "stamp", "stamps", "stamped", "plug", "plugs", "lane", "lanes",
    "shadow", "shadows", "pulse", "beat", "beats", "watch", "lab", "books", "rooms",
];
const BANNED_PHRASES: &[&str] = &[
    "goes round",
    "go round",
    "going round",
    "holds back",
    "hold back",
    "held back",
    "on its own account",
    "does not add up",
    "goes next",
    "go next",
    "is worth",
    "paper00",
];
/// Exceptions in which a banned word is the right one: the beginning of a path, and the word.
const ALLOWED: &[(&str, &str)] = &[
    // A method of Optuna.
    ("python/hybridsim/search.py", "tell"),
    // Names of DiskSim's parameters.
    ("tools/import/", "stamp"),
    ("docs/reference/import.md", "stamp"),
    // Tags of MQSim: a PCIe link has several.
    ("tools/import/", "lane"),
    ("docs/reference/words.md", "lane"),
    // A column of xperf.
    ("crates/workload/src/trace/xperf.rs", "stamp"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn sources(extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            let skip =
                name.starts_with('.') || ["target", "assets", "out", "demo-out"].contains(&name);
            if path.is_dir() && !skip {
                folders.push(path);
            } else if extensions.iter().any(|e| path.extension().is_some_and(|have| have == *e)) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 10, "the search found nearly nothing in {}", root().display());
    found
}

#[test]
fn lines_and_files_are_short_and_finished() {
    let mut complaints = Vec::new();
    for path in sources(&["rs", "py"]) {
        let text = fs::read_to_string(&path).expect("sources are text");
        let name = path.strip_prefix(root()).expect("below the root").display();
        if text.lines().count() > FILE_LINES_MAX {
            complaints.push(format!("{name}: more than {FILE_LINES_MAX} lines"));
        }
        for (number, line) in (1..).zip(text.lines()) {
            if line.chars().count() > COLUMNS_MAX {
                complaints.push(format!("{name}:{number}: more than {COLUMNS_MAX} columns"));
            }
            if let Some(word) = UNFINISHED.iter().find(|word| line.contains(**word)) {
                complaints.push(format!("{name}:{number}: {word}"));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Lines of doc comments that rustdoc would compile as code because they are indented: formulas and
/// tables belong into a fence with the word `text`.
fn indented_in_docs(text: &str) -> Vec<usize> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let Some(doc) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            fenced = false;
            continue;
        };
        fenced ^= doc.trim_start().starts_with("```");
        if !fenced && doc.starts_with("     ") {
            found.push(number);
        }
    }
    found
}

#[test]
fn doc_comments_have_no_code_by_indent() {
    assert_eq!(indented_in_docs("/// Sum:\n///\n///     a + b\n"), [3]);
    assert!(indented_in_docs("/// ```text\n///     a + b\n/// ```\nlet x = 1;\n").is_empty());
    let mut complaints = Vec::new();
    for path in sources(&["rs"]) {
        let text = fs::read_to_string(&path).expect("sources are text");
        let name = path.strip_prefix(root()).expect("below the root").display();
        complaints.extend(indented_in_docs(&text).iter().map(|line| format!("{name}:{line}")));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Lines of every function, found by rustfmt's habit of closing at the indent it opened at.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let opens =
            ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "const fn ", "pub const fn "];
        if !opens.iter().any(|open| code.starts_with(open)) {
            continue;
        }
        let indent = &line[..line.len() - code.len()];
        let close = format!("{indent}}}");
        let length = lines[start..].iter().position(|line| **line == close);
        found.push((start + 1, length.map_or(1, |length| length + 1)));
    }
    found
}

#[test]
fn functions_fit_a_screen() {
    let mut long = Vec::new();
    let mut all = 0;
    for path in sources(&["rs"]) {
        let text = fs::read_to_string(&path).expect("sources are text");
        for (line, length) in functions(&text) {
            all += 1;
            if length > FUNCTION_LINES_MAX {
                let name = path.strip_prefix(root()).expect("below the root").display();
                long.push(format!("{name}:{line}: {length} lines"));
            }
        }
    }
    let share = long.len() as f64 / f64::from(all);
    assert!(share <= LONG_SHARE_MAX, "{} of {all} are longer:\n{}", long.len(), long.join("\n"));
}

#[test]
fn the_function_finder_finds() {
    let text = concat!(
        "fn a() {\n    x();\n}\n\n",
        "impl B {\n    pub fn c() {\n        d();\n        e();\n    }\n}\n"
    );
    assert_eq!(functions(text), [(1, 3), (6, 4)]);
}

/// The words of `line` in lower case; identifiers are split at underscores and capitals.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for c in line.chars() {
        let begins = before.is_lowercase() && c.is_uppercase();
        if begins || !c.is_alphabetic() {
            words.push(String::new());
        }
        if c.is_alphabetic() {
            words.last_mut().expect("never empty").extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The banned words and phrases in `line`.
fn banned(line: &str) -> Vec<&'static str> {
    let (words, lower) = (words(line), line.to_lowercase());
    let is_word = |word: &&&str| words.iter().any(|found| found == **word);
    let is_phrase = |phrase: &&&str| lower.contains(**phrase);
    let all = BANNED_WORDS.iter().filter(is_word);
    all.chain(BANNED_PHRASES.iter().filter(is_phrase)).copied().collect()
}

/// Counts the uses of banned words in each crate or folder, with the first places.
#[test]
fn the_words_are_those_of_the_field() {
    const SHOWN: usize = 5;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources(&["rs", "md", "py", "toml"]) {
        let text = fs::read_to_string(&path).expect("sources are text");
        let name = path.strip_prefix(root()).expect("below the root").display().to_string();
        if name.ends_with("tests/tidy.rs") {
            continue;
        }
        let folder: Vec<&str> = name.split('/').take(2).collect();
        let allowed = |word: &str| {
            ALLOWED.iter().any(|(start, allowed)| name.starts_with(start) && *allowed == word)
        };
        for (number, line) in (1..).zip(text.lines()) {
            let words = banned(line).into_iter().filter(|word| !allowed(word));
            let list = found.entry(folder.join("/")).or_default();
            list.extend(words.map(|word| format!("    {name}:{number}: {word}")));
        }
    }
    found.retain(|_, list| !list.is_empty());
    let report = |(folder, list): (String, Vec<String>)| {
        let shown: Vec<String> = list.iter().take(SHOWN).cloned().collect();
        format!("{folder}: {}\n{}\n", list.len(), shown.join("\n"))
    };
    let report: String = found.into_iter().map(report).collect();
    assert!(report.is_empty(), "banned words, by folder:\n{report}");
}

#[test]
fn banned_words_are_found_in_identifiers_and_text() {
    assert_eq!(words("fn last_told(x: TellTale)"), ["fn", "last", "told", "x", "tell", "tale"]);
    assert_eq!(banned("    // nobody asks; it goes round the cache"), ["nobody", "goes round"]);
    assert_eq!(banned("struct Stamped { books: u8 }"), ["stamped", "books"]);
    assert!(banned("a plugin, a timestamp, a label, replaced").is_empty());
}
