//! DiskSim's own scenarios, imported and run: every parameter file of the shared data imports,
//! and the regression scenarios give the means their authors expect.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_import::search_path::SearchPath;
use hybridsim_import::{
    Conversion, Imported, MqsimRequest, POLICIES, Request, TABLES, Trace, disksim, mqsim,
};
use hybridsim_simulation::run::{Options, run};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("HYBRIDSIM_DATA").map(|data| Path::new(&data).join("disksim"));
    if folder.is_none() {
        println!("skipped: HYBRIDSIM_DATA names no folder with parameter files");
    }
    folder
}

fn import(data: &Path, file: &Path, trace: Option<Trace>) -> Imported {
    let include =
        ["specs_only/hp_c3323a_simple", "specs_only/hp_c2249a", "disks/seagate_cheetah9lp", ""];
    let mut files = SearchPath { include: include.iter().map(|name| data.join(name)).collect() };
    let file = file.to_string_lossy().into_owned();
    let request = Request { file: file.clone(), overrides: Vec::new(), trace };
    disksim(&request, &mut files).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Mean response time in milliseconds.
fn mean_ms(text: &str) -> f64 {
    let registry = hybridsim_simulation::registry::standard();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("scenario.toml");
    std::fs::write(&path, text).expect("a file");
    let scenario = Scenario::read(&path, &[], &registry).unwrap_or_else(|e| panic!("{e}"));
    let done = run(&scenario, &registry, Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(done.fault.is_none(), "{:?}", done.fault);
    done.results.latency_ns.all.mean.expect("requests were served") / 1e6
}

/// A regression scenario: its file, its trace, what DiskSim 4.0 gives (ms), and how far off this
/// may be. What its authors expect is in `hybridsim reproduce disk/regressions`. That of the memory
/// cache is not reproduced (docs/reference/import.md).
struct Regression(&'static str, Option<(&'static str, Option<&'static str>)>, f64, f64);

const REGRESSIONS: &[Regression] = &[
    Regression("synthsimpledisk", None, 13.712, 0.0005),
    Regression("synthopen", None, 10.937, 0.005),
    Regression("synthclosed", None, 87.819, 0.005),
    Regression("synthmixed", None, 22.087, 0.005),
    Regression("hplajw", Some(("ajw.1week.srt.gz", None)), 48.787, 0.005),
    Regression("ascii", Some(("ascii.trace.gz", Some("disksim"))), 13.767, 0.01),
    Regression("syntharrays", None, 34.272, 0.03),
    Regression("synthcachemem", None, 24.651, 0.06),
    Regression("synthcachedev", None, 28.939, 0.03),
];

#[test]
fn scenarios_of_mqsim_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/import/tests/mqsim");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let request = MqsimRequest {
        config: file("ssdconfig.xml"),
        workload: Some(file("workload.xml")),
        scenario: 1,
        folder: None,
    };
    let made = mqsim(&request, &mut SearchPath::default()).expect("valid files");
    // A closed loop of 8 reads and programs of 8 KiB on four dies: about two wait on each.
    let mean = mean_ms(&made.text);
    assert!((0.4..4.0).contains(&mean), "{mean} ms");
    let of_map = made.text.replace("ftl.kind = \"page\"", "ftl.kind = \"dftl\"");
    let of_map = of_map.replace("ftl.gc_pace", "# ").replace("ftl.wear", "# ");
    let of_map = of_map.replace("steady-drawn", "steady");
    let slower = mean_ms(&of_map);
    assert!(slower > mean, "{slower} ms with a mapping table in flash, {mean} ms without");
}

#[test]
fn regression_scenarios_give_what_disksim_gives() {
    let Some(data) = data() else { return };
    let mut wrong = String::new();
    for &Regression(name, trace, expected, tolerance) in REGRESSIONS {
        let file = match name {
            "synthopen" => {
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/disk/synthopen.parv")
            }
            _ => data.join(format!("configs/{name}.parv")),
        };
        let trace = trace.map(|(trace, format)| Trace {
            path: data.join("workloads").join(trace).to_string_lossy().into_owned(),
            format: format.map(str::to_owned),
        });
        let mean = mean_ms(&import(&data, &file, trace).text);
        let off = mean / expected - 1.0;
        println!("{name:<16} {mean:>8.3} ms, expected {expected:>7.3}: {:+.2} %", off * 100.0);
        if off.abs() > tolerance {
            writeln!(wrong, "{name}: {mean:.3} ms, expected {expected}").expect("text grows");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_parameter_file_becomes_a_scenario_that_builds() {
    let Some(data) = data() else { return };
    let registry = hybridsim_simulation::registry::standard();
    let mut seen = 0;
    for folder in ["configs", "disks", "specs_only"] {
        for file in parameter_files(&data.join(folder)) {
            let imported = import(&data, &file, None);
            let shown = file.display();
            let scratch = tempfile::tempdir().expect("a folder");
            let path = scratch.path().join("scenario.toml");
            std::fs::write(&path, &imported.text).expect("a file");
            let scenario = Scenario::read(&path, &[], &registry);
            let scenario = scenario.unwrap_or_else(|error| panic!("{shown}: {error}"));
            let built = hybridsim_simulation::build::system(&scenario, &registry);
            assert!(built.is_ok(), "{shown}: {}", built.err().expect("it is not built"));
            seen += 1;
        }
    }
    assert!(seen >= 15, "only {seen} parameter files");
}

fn parameter_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(parameter_files(&path));
        } else if path.extension().is_some_and(|end| end == "parv") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The tables of the page, as the importer has them.
fn tables() -> String {
    let mut out = String::new();
    for table in TABLES {
        write!(out, "\n### `{}`: {}\n\n", table.kind, table.becomes).expect("text grows");
        out += "| DiskSim | becomes |\n|---|---|\n";
        for row in table.rows {
            let becomes = match row.carry {
                Conversion::Ms(name) | Conversion::Number(name) | Conversion::Count(name) => {
                    format!("`{name}`")
                }
                Conversion::Flag(name) => format!("`{name}`"),
                Conversion::Sectors(name) => format!("`{name}`, in bytes"),
                Conversion::Choice(name, words) => {
                    let words: Vec<String> =
                        words.iter().map(|(n, word)| format!("{n} `{word}`")).collect();
                    format!("`{name}`: {}", words.join(", "))
                }
                Conversion::Described(what) => what.to_owned(),
                Conversion::OutputOnly => "nothing: results always contain everything".to_owned(),
                Conversion::Unsupported(value, why) => {
                    format!("nothing: {why}; a warning unless {value}")
                }
                Conversion::UnsupportedIf(value, why, (key, limit)) => {
                    format!(
                        "nothing: {why}; a warning unless {value} or `{key}` is at most {limit}"
                    )
                }
                Conversion::UnsupportedQueued(value, why) => {
                    format!("nothing: {why}; a warning unless {value} or `queue_depth` is 1")
                }
            };
            writeln!(out, "| {} | {becomes} |", row.key).expect("text grows");
        }
    }
    out += "\n### Scheduling policies\n\n| number | DiskSim | `scheduler` |\n|---|---|---|\n";
    for (number, theirs, ours) in POLICIES {
        writeln!(out, "| {number} | {theirs} | `{ours}` |").expect("text grows");
    }
    out
}

#[test]
fn the_page_shows_the_tables_the_importer_uses() {
    const MARK: &str = "<!-- tables -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/import.md");
    let page = std::fs::read_to_string(path).expect("docs/reference/import.md");
    let (head, shown) = page.split_once(MARK).expect("the mark before the tables");
    if std::env::var_os("HYBRIDSIM_BLESS").is_some() {
        std::fs::write(path, format!("{head}{MARK}{}", tables()))
            .expect("docs/reference/import.md");
        return;
    }
    assert!(shown == tables(), "docs/reference/import.md is old: run with HYBRIDSIM_BLESS=1");
}

/// One file, in memory.
struct Only(String);

impl hybridsim_import::FileSource for Only {
    fn read(&mut self, name: &str, _from: &str) -> Result<(String, String), String> {
        match name {
            "specimen.parv" => Ok((name.to_owned(), self.0.clone())),
            _ => Err(format!("there is no file {name}")),
        }
    }
}

/// The SSD and the MEMS store of DiskSim's extensions, on the simulator's own devices.
#[test]
fn devices_of_the_extensions_take_the_times_of_their_parameters() {
    const SOLID: &str = include_str!("../../../tools/import/tests/solid.parv");
    let mean = |text: &str| {
        let request = Request { file: "specimen.parv".to_owned(), ..Request::default() };
        let imported = disksim(&request, &mut Only(text.to_owned())).expect("it imports");
        assert_eq!(imported.warnings, [""; 0]);
        mean_ms(&imported.text)
    };
    // Command overhead, the page's read and its transfer over channel and link; few requests meet.
    let read = 0.012 + 0.025 + 4096.0 * 0.000025 + 8.0 * 0.0002384;
    let found = mean(SOLID);
    assert!((found / read - 1.0).abs() < 0.005, "{found} ms, expected {read}");
    // Published: 0.703 ms at random over the whole sled, and 0.2 ms of command overhead; the
    // generator uses a sixteenth of it.
    let found = mean(&SOLID.replace("devices = [ ssd0 ]", "devices = [ mems0 ]"));
    println!("MEMS store {found:.3} ms");
    assert!((0.5..0.9).contains(&found), "{found} ms");
}

/// Every parameter made absurd: what still imports checks, or says where it does not, and what
/// checks builds, or says why not; nothing panics.
#[test]
fn scenarios_of_absurd_parameters_are_answered() {
    const SPECIMENS: [&str; 2] = [
        include_str!("../../../tools/import/tests/specimen.parv"),
        include_str!("../../../tools/import/tests/solid.parv"),
    ];
    let registry = hybridsim_simulation::registry::standard();
    let (mut built, mut refused) = (0, 0);
    let values = SPECIMENS
        .iter()
        .flat_map(|text| text.match_indices(" = ").map(move |(at, sign)| (*text, at + sign.len())));
    for (specimen, from) in values {
        let end = from + specimen[from..].find([',', '\n', '}']).expect("a value ends");
        for absurd in ["-7", "0", "0.37", "9000000000000000000", "1e308", "1e-308"] {
            let text = format!("{}{absurd}{}", &specimen[..from], &specimen[end..]);
            let request = Request { file: "specimen.parv".to_owned(), ..Request::default() };
            let Ok(imported) = disksim(&request, &mut Only(text)) else { continue };
            let source = SourceText { name: "imported".to_owned(), text: imported.text };
            let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
            let system = Scenario::check(input, &registry).ok().and_then(|scenario| {
                hybridsim_simulation::build::system(&scenario, &registry).ok()
            });
            match system {
                Some(_) => built += 1,
                None => refused += 1,
            }
        }
    }
    println!("{built} built, {refused} refused");
    assert!(built > 400, "{built} built, {refused} refused");
}
