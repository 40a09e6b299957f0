//! `hybridsim artefact`: its archives run again from their own files alone, and every difference is
//! reported. `hybridsim cite`: what is cited, and that it is BibTeX.
#![cfg(unix)]

#[path = "common/command.rs"]
mod command;

use command::{TOY, call, fails, root, scenario, text};
use hybridsim_artefact::Archive;
use hybridsim_cache::replacement::ReplacementEntry;
use hybridsim_simulation::registry::standard;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn path(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().expect("UTF-8").to_owned()
}

/// A trace of 60 requests below 8 MiB.
fn trace(folder: &TempDir, name: &str) -> String {
    let mut rows = String::new();
    for at in 0..60_u64 {
        let (time, op) = (128_166_372_003_061_629 + at * 900, ["Read", "Write"][at as usize % 2]);
        let offset = at * 7919 % 2000 * 4096;
        writeln!(rows, "{time},hm,0,{op},{offset},4096,413").expect("a string grows");
    }
    scenario(folder, name, &rows)
}

/// Runs `args`, which succeed.
fn succeeds(args: &[&str]) -> String {
    let output = call(args);
    assert!(output.status.success(), "{args:?}\n{}", text(&output.stderr));
    text(&output.stdout)
}

/// An archive of `folders`, unpacked into a folder of its own.
struct Unpacked(TempDir);

impl Unpacked {
    fn new(work: &TempDir, folders: &[&str], options: &[&str]) -> Self {
        let archive = path(work, "study.tar.gz");
        let pack = [&["artefact"], folders, &["--force", "--out", &archive], options].concat();
        succeeds(&pack);
        let bytes = fs::read(&archive).expect("the archive");
        succeeds(&pack);
        assert!(bytes == fs::read(&archive).expect("the archive"), "not the same bytes twice");
        let to = folder();
        let tar = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(to.path()).status();
        assert!(tar.expect("tar").success());
        Self(to)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join("artefact").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs everything again with `program`, from another folder.
    fn rerun_with(&self, program: &Path, folders: &[&str]) -> Output {
        Command::new("sh")
            .arg(self.at("rerun.sh"))
            .args(folders)
            .env("HYBRIDSIM", program)
            .current_dir(self.0.path())
            .output()
            .expect("a shell")
    }

    /// The output of a rerun with the program of this build, which exits with `code`.
    fn rerun(&self, code: i32) -> String {
        let output = self.rerun_with(Path::new(env!("CARGO_BIN_EXE_hybridsim")), &[]);
        let printed = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{printed}");
        printed
    }

    /// Replaces `old` by `new` in a file while `check` runs.
    fn damaged(&self, name: &str, old: &str, new: &str, check: impl Fn(String)) {
        let before = self.read(name);
        assert!(before.contains(old), "{name} has no {old}");
        fs::write(self.at(name), before.replacen(old, new, 1)).expect("a writable file");
        check(self.rerun(1));
        fs::write(self.at(name), before).expect("a writable file");
    }
}

fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part} in\n{text}"));
}

#[test]
fn a_run_is_equal_until_a_result_or_its_trace_is_damaged() {
    let work = folder();
    let (toy, hm) = (scenario(&work, "toy.toml", TOY), trace(&work, "hm trace.csv"));
    let out = path(&work, "out");
    let sets = ["--set", "component.device.jitter=\"50us\"", "--set", "workload.fit=true"];
    succeeds(&[&["run", &toy, "--trace", &hm, "--out", &out][..], &sets].concat());
    let unpacked = Unpacked::new(&work, &[&out], &[]);
    fs::remove_file(&hm).expect("the trace is there");
    fs::remove_dir_all(&out).expect("the results are there");

    has(&unpacked.rerun(0), &["runs/out: equal: fingerprint ", "\neverything is equal"]);
    has(&unpacked.read("README.md"), &["| `runs/out` | a run: Toy <b>&</b> |", "@misc{hybridsim,"]);
    let mode = fs::metadata(unpacked.at("rerun.sh")).expect("the script").permissions().mode();
    assert_eq!(mode & 0o777, 0o755);

    unpacked.damaged("runs/out/results.json", "\"requests\": 60", "\"requests\": 61", |printed| {
        let damaged = "runs/out/results.json: damaged";
        let differs = "runs/out: differs: stored <, new >: <\"requests\": 61, >\"requests\": 60,";
        has(&printed, &[damaged, differs, "2 differ or are absent"]);
    });
    unpacked.damaged("traces/hm_trace.csv", ",4096,413", ",8192,413", |printed| {
        has(&printed, &["traces/hm_trace.csv: damaged", "runs/out: differs", "fingerprint"]);
    });
    unpacked.damaged("runs/out/scenario.toml", "50us", "51us", |printed| {
        has(&printed, &["runs/out: differs"]);
    });
    unpacked.damaged("runs/out/scenario.toml", "kind", "kinds", |printed| {
        has(&printed, &["runs/out: no results: error"]);
    });
    fs::remove_file(unpacked.at("traces/hm_trace.csv")).expect("the trace is there");
    has(&unpacked.rerun(1), &["traces/hm_trace.csv: absent", "runs/out: no results: error"]);
}

#[test]
fn another_version_is_a_warning_and_no_program_an_error() {
    let work = folder();
    let (toy, out) = (scenario(&work, "toy.toml", TOY), path(&work, "out"));
    succeeds(&["run", &toy, "--out", &out]);
    let unpacked = Unpacked::new(&work, &[&out], &[]);
    let program = env!("CARGO_BIN_EXE_hybridsim");
    let other = scenario(
        &work,
        "other",
        &format!(
            "#!/bin/sh\n[ \"$1\" != --version ] || {{ echo hybridsim 0.0.1; exit; }}\n\
             {program} \"$@\" | sed 's/\"sources\": \"/&0/'\n"
        ),
    );
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).expect("a file of its own");
    let output = unpacked.rerun_with(Path::new(&other), &["runs/out"]);
    let warnings = text(&output.stderr);
    assert!(output.status.success(), "{warnings}");
    has(
        &warnings,
        &["warning: this is hybridsim 0.0.1", "warning: the program is built from other"],
    );
    let output = unpacked.rerun_with(Path::new("/nonexistent/hybridsim"), &[]);
    assert_eq!(output.status.code(), Some(2));
    has(&text(&output.stderr), &["there is no program /nonexistent/hybridsim"]);
}

#[test]
fn every_point_of_a_sweep_is_compared_and_so_are_those_that_fail() {
    let work = folder();
    let (toy, hm) = (scenario(&work, "toy.toml", TOY), trace(&work, "hm.csv"));
    let out = path(&work, "study/out");
    let vary = ["--vary", "component.device.capacity=1MiB,16MiB", "--seeds", "2"];
    let sweep = ["sweep", &toy, "--trace", &hm, "--set", "component.device.jitter=\"50us\""];
    fails(4, &[&sweep[..], &vary, &["--out", &out]].concat());
    let run = path(&work, "out");
    succeeds(&["run", &toy, "--trace", &hm, "--out", &run]);
    let again = path(&work, "again/out");
    succeeds(&["run", &toy, "--out", &again]);
    let unpacked = Unpacked::new(&work, &[&out, &run, &again], &[]);
    fs::remove_file(&hm).expect("the trace is there");

    let printed = unpacked.rerun(0);
    let points = ["1: equal: fails", "2: equal: fails", "3: equal: finger", "4: equal: finger"];
    has(
        &printed,
        &points.map(|point| format!("sweeps/out/points/{point}")).each_ref().map(|it| &**it),
    );
    has(&printed, &["runs/2-out: equal", "runs/3-out: equal"]);
    has(
        &unpacked.read("sweeps/out/points/3/scenario.toml"),
        &["# component.device.capacity=16MiB seed 1\n"],
    );
    has(&unpacked.read("sweeps/out/sweep.csv"), &["component.device.capacity"]);
    let results = "sweeps/out/points/4/results.json";
    unpacked.damaged(results, "\"mean\": ", "\"mean\": 1", |printed| {
        has(&printed, &["sweeps/out/points/4: differs"]);
    });
    let keys = ["capacity = \"1MiB\"", "capacity = \"16MiB\""];
    unpacked.damaged("sweeps/out/points/1/scenario.toml", keys[0], keys[1], |printed| {
        has(&printed, &["sweeps/out/points/1: differs: stored:"]);
    });

    // An unfinished sweep lacks the file of a point.
    let points = fs::read_dir(format!("{out}/points")).expect("the store");
    let point = points.flatten().next().expect("a point").path();
    fs::remove_file(point).expect("a file of the store");
    let message = fails(2, &["artefact", &out, "--out", &path(&work, "none.tar.gz")]);
    has(&message, &["study/out: 1 of 4 points of the sweep are unfinished"]);
}

#[test]
fn saved_states_and_several_workloads_run_again() {
    let work = folder();
    let (toy, state) = (scenario(&work, "toy.toml", TOY), path(&work, "state"));
    let outs = ["first", "second", "shared"].map(|name| path(&work, name));
    succeeds(&["run", &toy, "--save-state", &state, "--out", &outs[0]]);
    succeeds(&["run", &toy, "--load-state", &state, "--out", &outs[1], "--verify"]);
    let hm = trace(&work, "hm.csv");
    let (head, tail) = TOY.split_once("[host]").expect("a host");
    let (_, generator) = head.split_once("[workload]").expect("a workload");
    let shared = tail.replace("mode = \"closed\"\n", "");
    let shared = format!("[workload.a]{generator}[workload.b]\ntrace = \"{hm}\"\n[host]{shared}");
    let shared = scenario(&work, "shared.toml", &shared);
    succeeds(&["run", &shared, "--slowdown", "--out", &outs[2]]);
    let unpacked = Unpacked::new(&work, &outs.each_ref().map(|it| &**it), &["--traces-up-to", "0"]);
    fs::remove_file(&state).expect("the state is there");

    has(&unpacked.read("README.md"), &["| hm.csv | `traces/hm.csv` |", "saved states"]);
    let printed = unpacked.rerun(1);
    has(
        &printed,
        &["traces/hm.csv: absent: it has ", "runs/second: equal", "runs/shared: no results"],
    );
    fs::create_dir(unpacked.at("traces")).expect("the archive has no traces");
    fs::rename(&hm, unpacked.at("traces/hm.csv")).expect("a trace put in its place");
    has(&unpacked.rerun(0), &["runs/shared: equal"]);
}

#[test]
fn what_cannot_be_run_again_is_refused() {
    let work = folder();
    let (toy, hm) = (scenario(&work, "toy.toml", TOY), trace(&work, "sda.blktrace.0"));
    let (out, archive) = (path(&work, "out"), path(&work, "study.tar.gz"));
    let pack = ["artefact", &out, "--out", &archive];
    let refused = |part: &str| {
        has(&fails(2, &pack), &[part]);
        assert!(!Path::new(&archive).exists(), "{part}");
    };
    refused("out: no results of `hybridsim run --out` or `hybridsim sweep --out` are there");
    succeeds(&["run", &toy, "--trace", &hm, "--format", "msr", "--out", &out]);
    let other = scenario(&work, "sda.blktrace.1", "");
    refused("sda.blktrace.1: make it one file with `hybridsim trace convert`");
    fs::remove_file(other).expect("a file of its own");
    let results = path(&work, "out/results.json");
    let before = fs::read_to_string(&results).expect("results");
    let unfinished = before.replace("\"complete\": true", "\"complete\": false");
    fs::write(&results, unfinished).expect("a writable file");
    refused("out: its run ended early");
    fs::write(&results, &before[1..]).expect("a writable file");
    refused("out: results.json: ");
    fs::write(&results, &before).expect("a writable file");
    fs::rename(&hm, path(&work, "elsewhere")).expect("a file of its own");
    refused("sda.blktrace.0: No such file");
    fs::rename(path(&work, "elsewhere"), &hm).expect("a file of its own");
    succeeds(&pack);
    has(&fails(2, &pack), &["study.tar.gz exists; add --force"]);
}

#[test]
fn a_scenario_with_a_python_class_is_refused() {
    let work = folder();
    let cache = "[workload]\ngenerator = { kind = \"uniform\", requests = 9 }\n\
                 [host]\nmode = \"closed\"\nqueue_depth = 1\n\
                 [component.cache]\nkind = \"hybrid-disk\"\nflash = \"flash\"\ndisk = \"disk\"\n\
                 [component.flash]\nkind = \"constant-device\"\ncapacity = \"1MiB\"\n\
                 latency = \"1us\"\n\
                 [component.disk]\nkind = \"constant-device\"\ncapacity = \"9MiB\"\n\
                 latency = \"1ms\"\n";
    let (cache, out) = (scenario(&work, "cache.toml", cache), path(&work, "out"));
    succeeds(&["run", &cache, "--out", &out]);
    let mut registry = standard();
    assert!(Archive::new(&[PathBuf::from(&out)], 0, &registry).is_ok());
    let mut entry = registry.find::<ReplacementEntry>("lru").expect("a built-in policy");
    entry.description.name = "python";
    registry.add(entry);
    let stored = path(&work, "out/scenario.toml");
    let text = fs::read_to_string(&stored).expect("a scenario");
    assert!(text.contains("kind = \"lru\""), "{text}");
    fs::write(&stored, text.replace("kind = \"lru\"", "kind = \"python\"")).expect("writable");
    let refused = Archive::new(&[PathBuf::from(&out)], 0, &registry).err().expect("refused");
    has(&refused, &["out/scenario.toml: its replacement is a Python class"]);
}

/// The entries of a BibTeX file by key, after a check of its structure.
fn entries(bibtex: &str) -> Vec<&str> {
    let entries = bibtex.lines().filter(|line| !line.starts_with('%')).collect::<Vec<_>>();
    let mut keys = Vec::new();
    let mut depth = 0_i32;
    for line in entries {
        if depth == 0 && !line.is_empty() {
            let (kind, key) = line.split_once('{').expect("an entry begins with its kind");
            assert!(kind.starts_with('@') && kind[1..].chars().all(|c| c.is_ascii_lowercase()));
            keys.push(key.strip_suffix(',').expect("a key and a comma"));
        } else if depth == 1 && line != "}" {
            let (name, value) = line.trim_start().split_once(" = {").expect("a field");
            assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{line}");
            let value = value.strip_suffix("},").expect("a value in braces");
            assert!(!value.replace("\\&", "").contains(['&', '%', '#', '_', '$']), "{line}");
        }
        let line = line.replace("\\{", "").replace("\\}", "");
        depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
        assert!(depth >= 0, "{line}");
    }
    assert_eq!(depth, 0, "{bibtex}");
    keys
}

#[test]
fn papers_and_other_origins_are_cited_and_remarks_are_not() {
    let version = succeeds(&["--version"]).trim().replace("hybridsim ", "Software, version ");
    let alone = succeeds(&["cite"]);
    assert_eq!(entries(&alone), ["hybridsim"]);
    has(&alone, &["author = {{The hybridsim maintainers}}", &version]);

    let work = folder();
    let hm = trace(&work, "hm.csv");
    let hybrid = format!(
        "[workload]\ntrace = \"{hm}\"\n[host]\nscheduler = \"look\"\n\
         [component.cache]\nkind = \"hybrid-disk\"\nflash = \"flash\"\ndisk = \"disk\"\n\
         replacement = \"sieve\"\n\
         [component.flash]\npreset = \"samsung-k9f2g08-slc\"\nftl = {{ kind = \"dftl\" }}\n\
         [component.disk]\nkind = \"constant-device\"\ncapacity = \"16GiB\"\nlatency = \"1ms\"\n"
    );
    let hybrid = scenario(&work, "hybrid.toml", &hybrid);
    let bibtex = succeeds(&["cite", &hybrid]);
    assert_eq!(entries(&bibtex), ["hybridsim", "konanki", "flashsim", "chang-slc-mlc"]);
    let cited = [
        "@mastersthesis{konanki,\n  author = {Konanki, P.},\n  title = {{An Exploration of",
        "\n% replacement sieve: Zhang et al., NSDI 2024 (SIEVE)\n",
        "\n% ftl dftl: Gupta, Kim, Urgaonkar, ASPLOS 2009; flashsim, section 4.",
        "\n% component hybrid-disk: konanki, ",
        "\n% trace-format msr: MSR Cambridge traces",
        "\n% preset samsung-k9f2g08-slc: Samsung K9F2G08U0A",
    ];
    has(&bibtex, &cited);
    assert!(
        !bibtex.contains("common knowledge") && !bibtex.contains("constant-device"),
        "{bibtex}"
    );
    assert_eq!(bibtex, succeeds(&["cite", &hybrid, &hybrid]));
    let plain = succeeds(&["cite", &hybrid, "--format", "text"]);
    has(
        &plain,
        &["Konanki, P.: An Exploration", "\nreplacement sieve: Zhang et al.", "doi:10.1109"],
    );
    assert!(!plain.contains(['@', '%', '{']), "{plain}");

    let wrong = scenario(&work, "wrong.toml", &TOY.replace("latency", "latencies"));
    has(&fails(2, &["cite", &wrong]), &["wrong.toml:", "latencies"]);
}

#[test]
fn citations_of_every_example_are_bibtex() {
    let mut examples: Vec<String> = fs::read_dir(root().join("examples"))
        .expect("examples")
        .flatten()
        .map(|file| file.path().display().to_string())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    examples.sort();
    assert!(examples.len() > 5, "{examples:?}");
    let args: Vec<&str> = ["cite"].into_iter().chain(examples.iter().map(|it| &**it)).collect();
    let keys = succeeds(&args);
    assert!(entries(&keys).len() > 3, "{keys}");
}
