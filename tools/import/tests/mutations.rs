//! Broken parameter files: every parameter dropped, given twice, misspelled, of
//! another type, nested or absurd; files cut short; files that source themselves. The answer is
//! one located error, or a scenario that says what it left out; never a panic, a hang or a silent
//! change.
//!
//! Specimens of our own are always broken; with `HYBRIDSIM_DATA` DiskSim's own files are, too.

use hybridsim_import::{
    Conversion, FileSource, ImportError, Imported, ParameterRow, ParameterTable, Request, TABLES,
    Trace, disksim,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Parameter files of our own: disks, and the SSDs and MEMS stores of DiskSim's extensions.
const SPECIMENS: &[(&str, &str)] =
    &[("specimen.parv", include_str!("specimen.parv")), ("solid.parv", include_str!("solid.parv"))];

/// FileSource in memory, read from folders when they are first asked for.
#[derive(Clone, Default)]
struct Shelf {
    texts: BTreeMap<String, String>,
    folders: Vec<PathBuf>,
}

impl Shelf {
    fn specimen(name: &str, text: &str) -> Self {
        let texts = [(name.to_owned(), text.to_owned())].into();
        Self { texts, folders: Vec::new() }
    }
}

impl FileSource for Shelf {
    fn read(&mut self, name: &str, _from: &str) -> Result<(String, String), String> {
        if let Some(text) = self.texts.get(name) {
            return Ok((name.to_owned(), text.clone()));
        }
        let found = self.folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        let path = found.ok_or_else(|| format!("there is no file {name}"))?;
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        self.texts.insert(name.to_owned(), text.clone());
        Ok((name.to_owned(), text))
    }
}

/// Imported with a trace, which takes the place of these blocks.
const TRACED: &str = "ascii.parv";
const GENERATOR: [&str; 3] = ["disksim_pf", "disksim_synthio", "disksim_synthgen"];

/// Longer than any import takes, by far.
const PATIENCE: Duration = Duration::from_secs(20);

fn import(main: &str, shelf: &mut Shelf) -> Result<Imported, ImportError> {
    let began = Instant::now();
    let mut request = Request { file: main.to_owned(), ..Request::default() };
    if main == TRACED {
        request.trace = Some(Trace { path: "ascii.trace".to_owned(), format: None });
    }
    let answer = disksim(&request, shelf);
    assert!(began.elapsed() < PATIENCE, "{main} takes {:?}", began.elapsed());
    answer
}

/// A parameter in a file: where its name and its value are.
#[derive(Clone, Debug)]
struct Found {
    name: std::ops::Range<usize>,
    value: std::ops::Range<usize>,
}

/// Every `name = value` of a text, inner ones as well.
fn parameters(text: &str) -> Vec<Found> {
    let bytes = text.as_bytes();
    let (mut found, mut start, mut comment) = (Vec::new(), 0, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => comment = false,
            _ if comment => {}
            b'#' => comment = true,
            b'{' | b'}' | b'[' | b']' | b',' => start = at + 1,
            b'=' => {
                let name = text[start..at].trim_start();
                let name = name.rsplit('\n').next().unwrap_or(name).trim_start();
                let from = at - name.len();
                found.push(Found {
                    name: from..from + name.trim_end().len(),
                    value: at + 1..at + 1,
                });
                let end = value_end(bytes, at + 1);
                found.last_mut().expect("just pushed").value = at + 1..end;
            }
            _ => {}
        }
    }
    found.retain(|it| !it.name.is_empty());
    found
}

/// End of the value that begins at `from`: a comma or brace outside brackets of its own.
fn value_end(bytes: &[u8], from: usize) -> usize {
    let (mut depth, mut comment) = (0, false);
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'\n' => comment = false,
            _ if comment => {}
            b'#' => comment = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// The rows of parameters of this name; what is printed has none.
fn rows(name: &str) -> impl Iterator<Item = &'static ParameterRow> {
    let rows = TABLES.iter().flat_map(|table| table.rows);
    rows.filter(move |row| row.key == name)
}

fn is_known(name: &str) -> bool {
    rows(name).next().is_some()
}

/// Whether a parameter of this name may be nonsense without a message: it stands for nothing here,
/// or the file has others that leave it without meaning.
fn may_be_silent(name: &str, is_specimen: bool) -> bool {
    let queues = TABLES.iter().filter(|table| table.kind == "disksim_ioqueue");
    let in_queue = queues.flat_map(|table| table.rows).any(|row| row.key == name);
    let idle = |row: &ParameterRow| match row.carry {
        Conversion::OutputOnly
        | Conversion::UnsupportedIf(..)
        | Conversion::UnsupportedQueued(..) => true,
        // Most drives have one command at a time, and no queue.
        _ if !is_specimen && in_queue => true,
        Conversion::Described(what) => !is_specimen || what.starts_with("nothing"),
        _ => false,
    };
    !is_known(name) || rows(name).any(idle) || (is_specimen && ELSEWHERE.contains(&name))
}

/// Parameters that are looked at only where another one of the specimen says so, which it does not
/// everywhere: the time of a timeout that is off, the queue of a controller that has none.
const ELSEWHERE: &[&str] = &[
    "Arbitration type",
    "Average seek time",
    "Constant seek time",
    "Copy choice on read",
    "Full seek curve",
    "Maximum concat size",
    "Maximum queue length",
    "Number of copies",
    "Priority scheduling",
    "Think time from call to request",
    "Think time from request to return",
    "Timeout scheduling",
    "Timeout time/weight",
];

/// A change of a parameter: replaces its name and value.
type Change = fn(&str, &str) -> String;

const CHANGES: &[(&str, Change)] = &[
    ("dropped", |_, _| String::new()),
    ("twice", |name, value| format!("{name} = {value},\n {name} = {value}")),
    ("misspelled", |name, value| format!("{name}x = {value}")),
    ("a word", |name, _| format!("{name} = banana")),
    ("a list", |name, value| format!("{name} = [ {value} ]")),
    ("an empty list", |name, _| format!("{name} = []")),
    ("a block", |name, value| format!("{name} = banana {{ {name} = {value} }}")),
    ("negative", |name, _| format!("{name} = -7")),
    ("a fraction", |name, _| format!("{name} = 0.37")),
    ("huge", |name, _| format!("{name} = 9000000000000000000")),
    ("beyond numbers", |name, _| format!("{name} = 1e308")),
    ("nothing", |name, _| format!("{name} = ")),
    ("circular", |name, _| format!("{name} = source again")),
];

/// Breaks every parameter of `file`, `every` so many of them, in every way. Answers the changes
/// went unnoticed.
fn break_parameters(main: &str, file: &str, shelf: &Shelf, every: usize) -> Vec<String> {
    let text = &shelf.texts[file];
    let whole = import(main, &mut shelf.clone()).expect("it imports before it is broken");
    let is_specimen = SPECIMENS.iter().any(|(name, _)| *name == file);
    let mut silent = Vec::new();
    for found in parameters(text).into_iter().step_by(every) {
        let (name, value) = (&text[found.name.clone()], text[found.value.clone()].trim());
        let of = |table: &&ParameterTable| table.rows.iter().any(|row| row.key == name);
        let generates = |table: &ParameterTable| GENERATOR.contains(&table.kind);
        if main == TRACED && TABLES.iter().filter(of).any(generates) {
            continue;
        }
        for (what, change) in CHANGES {
            let mut end = found.value.end;
            let new = change(name, value);
            if new.is_empty() && text[end..].starts_with(',') {
                end += 1;
            }
            let broken = format!("{}{new}{}", &text[..found.name.start], &text[end..]);
            let mut shelf = shelf.clone();
            shelf.texts.insert(file.to_owned(), broken);
            shelf.texts.insert("again".to_owned(), "source again".to_owned());
            let answer = import(main, &mut shelf);
            check_answer(&format!("{file}: {name} {what}"), &answer);
            let Ok(answer) = answer else { continue };
            // An empty list again, a word again: the same as before.
            let same = value
                .split_whitespace()
                .eq(new.split_whitespace().skip_while(|it| *it != "=").skip(1));
            let changed =
                same || body(&answer) != body(&whole) || answer.warnings != whole.warnings;
            // What DiskSim asks for and we have a default for may be left out.
            if !changed && *what != "dropped" && !may_be_silent(name, is_specimen) {
                silent.push(format!("{file}: {name} = {value} {what}"));
            }
            let reported = answer.warnings.iter().any(|warning| warning.contains(name));
            if ["twice", "misspelled"].contains(what) && !reported && is_known(name) {
                silent.push(format!("{file}: {name} {what} is not reported"));
            }
        }
    }
    silent
}

/// The scenario without its comments.
fn body(imported: &Imported) -> String {
    let lines = imported.text.lines().map(|line| line.split("  #").next().unwrap_or(line));
    lines.filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

/// One sentence, with a place.
fn check_answer(what: &str, answer: &Result<Imported, ImportError>) {
    match answer {
        Ok(imported) => assert!(!imported.text.contains("NaN"), "{what}: {}", imported.text),
        Err(error) => {
            assert!(error.at.is_some(), "{what}: nowhere: {}", error.message);
            assert!(error.message.len() > 8 && !error.message.contains('\n'), "{what}: {error}");
        }
    }
}

fn cut_short(main: &str, file: &str, shelf: &Shelf, every: usize) {
    let text = &shelf.texts[file];
    for end in (0..text.len()).step_by(every).filter(|end| text.is_char_boundary(*end)) {
        let mut shelf = shelf.clone();
        shelf.texts.insert(file.to_owned(), text[..end].to_owned());
        if let Err(error) = import(main, &mut shelf) {
            // An empty file has no place to point at.
            assert!(error.at.is_some() || end < 64, "cut at {end}: {error}");
        }
    }
}

#[test]
fn a_broken_specimen_is_reported() {
    for (name, text) in SPECIMENS {
        let shelf = Shelf::specimen(name, text);
        assert_eq!(parameters(text).len(), text.matches(" = ").count());
        let silent = break_parameters(name, name, &shelf, 1);
        assert_eq!(silent, [""; 0]);
        cut_short(name, name, &shelf, 1);
    }
}

/// The files of the shared data, each with all it reads.
fn shelves() -> Vec<(String, Shelf)> {
    let Some(data) = std::env::var_os("HYBRIDSIM_DATA") else {
        println!("skipped: HYBRIDSIM_DATA names no folder with parameter files");
        return Vec::new();
    };
    let data = PathBuf::from(data).join("disksim");
    let names = |folder: &PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.expect("readable").path()).collect();
        paths.sort();
        paths
    };
    let mut folders = vec![data.join("configs"), data.clone()];
    for below in ["disks", "specs_only"] {
        folders.extend(names(&data.join(below)).into_iter().filter(|path| path.is_dir()));
    }
    let mut shelves = Vec::new();
    for path in folders.iter().flat_map(names) {
        let is_main = path.extension().is_some_and(|it| it == "parv" || it == "diskspecs");
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let own = path.parent().expect("a folder").to_path_buf();
        let around = std::iter::once(own).chain(folders.iter().cloned()).collect();
        let mut shelf = Shelf { folders: around, ..Shelf::default() };
        if is_main && import(&name, &mut shelf).is_ok() {
            shelves.push((name, shelf));
        }
    }
    assert!(shelves.len() > 15, "{} files import", shelves.len());
    shelves
}

/// Every file with parameters, once each: many drives are read by several machines.
#[test]
fn broken_files_of_disksim_are_reported() {
    let mut seen = std::collections::BTreeSet::new();
    let mut silent = Vec::new();
    for (main, shelf) in shelves() {
        for (file, text) in shelf.texts.iter().filter(|(_, text)| text.len() < 200_000) {
            if !seen.insert((file.clone(), text.len())) {
                continue;
            }
            let every = 1 + parameters(text).len() / 40;
            silent.extend(break_parameters(&main, file, &shelf, every));
            cut_short(&main, file, &shelf, 50.max(text.len() / 200));
        }
    }
    assert_eq!(silent, [""; 0]);
}
