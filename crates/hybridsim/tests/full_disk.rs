//! Files that cannot be written: outputs of commands are whole or as they were; requests to
//! contents that are served fail, and the device continues.

#![cfg(unix)]

#[path = "common/command.rs"]
mod command;

use command::{TOY, root, scenario, text};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::Flags;
use hybridsim_serve::contents::{Contents, Data, History, Store};
use hybridsim_serve::{Clock, Drive, Job, Kind};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{Options, Session};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

const BYTES: u64 = 1 << 20;

/// A device whose contents are in a file that is open for reading alone.
fn drive(power_may_fail: bool) -> Drive {
    let text = "[component.d]\nkind = \"constant-device\"\ncapacity = \"1MiB\"\n".to_owned();
    let source = SourceText { name: "test".to_owned(), text };
    let input = Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None };
    let scenario = Scenario::check_system(input, &standard()).expect("a system");
    let options = Options { versions: power_may_fail, power_may_fail, ..Options::default() };
    let session = Session::open(&scenario, &standard(), options).expect("it opens");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("contents");
    File::create(&path).and_then(|file| file.set_len(BYTES)).expect("one's own folder");
    let store = Store::file(File::open(&path).expect("it is there"), BYTES).expect("a file");
    let contents = match power_may_fail {
        true => Contents::History(Box::new(History::new(store))),
        false => Contents::Plain(store),
    };
    Drive::new(session, contents, Clock::virtual_time(0.0), None)
}

/// Serves one request; returns whether it succeeded, and the first byte of what it read.
fn serve(drive: &mut Drive, kind: Kind, fua: bool) -> (bool, Option<u8>) {
    let sectors = if kind == Kind::Flush { 0 } else { 8 };
    let flags = if fua { Flags::FUA } else { Flags::NONE };
    drive.receive(Job { client: 0, number: 0, kind, first: 8, sectors, flags }, Instant::now());
    while drive.outstanding() > 0 {
        drive.advance();
    }
    let finished = drive.take_finished().pop().expect("a reply");
    (finished.outcome.is_ok(), finished.outcome.ok().and_then(|bytes| bytes.first().copied()))
}

fn data() -> Kind {
    Kind::Write(Data::Bytes(vec![7; 8 * 512]))
}

#[test]
fn a_write_that_cannot_be_stored_fails_and_reads_continue() {
    let mut drive = drive(false);
    assert_eq!(serve(&mut drive, data(), false), (false, None));
    assert_eq!(serve(&mut drive, Kind::Read, false), (true, Some(0)));
    assert!(drive.fault().is_none());
    let ended = drive.finish(&standard(), false).expect("results");
    assert_eq!((ended.output.fault, ended.served.errors), (None, 1));
    let warnings = &ended.output.results.warnings;
    assert!(warnings.iter().any(|it| it.contains("contents cannot be read or written")));
    assert!(ended.contents.is_ok());
}

#[test]
fn with_power_failures_what_a_flush_cannot_store_is_kept() {
    let mut drive = drive(true);
    assert_eq!(serve(&mut drive, data(), false), (true, None), "it is in memory");
    assert_eq!(serve(&mut drive, Kind::Flush, false), (false, None));
    assert_eq!(serve(&mut drive, Kind::Read, false), (true, Some(7)));
    assert_eq!(serve(&mut drive, data(), true), (false, None), "a forced write");
    assert_eq!(serve(&mut drive, Kind::Read, false), (true, Some(7)));
    assert!(drive.fault().is_none());
    let ended = drive.finish(&standard(), false).expect("results");
    assert_eq!(ended.output.fault, None);
    assert!(ended.contents.is_err(), "it is reported");
}

/// Runs the program where no file can grow, as on a full disk; pipes can.
fn without_room(words: &[&str]) -> Output {
    // Writes beyond the limit fail where the signal is ignored.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_hybridsim")])
        .args(words)
        .current_dir(root())
        .output()
        .expect("sh starts")
}

/// Files in `folder` and in folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn without_room_outputs_stay_as_they_were_and_results_are_shown() {
    let inputs = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&inputs, "toy.toml", TOY);
    let readings = "op,bytes,latency_ns\nread,2048,150000\nread,4096,200000\nread,8192,300000\n";
    let readings = scenario(&inputs, "readings.csv", readings);
    let (trace, served) = ("workloads/browser.hst", "examples/studies/sessions.jsonl");
    let few = ["--requests", "1000", "--validation", "3", "--knots", "20", "--sizes", "4KiB"];
    let surrogate = [&["surrogate", &toy, "--force", "--out"], &few[..]].concat();
    let kv = ["kv", "plan", served, "--sizes", "20GB", "--policies", "lru"];
    let kv = [&kv[..], &["--model", "llama-3-8b", "--only", "tlc-7.68tb", "--out"]].concat();
    // The output is named last, or after `--out`.
    let rows: &[(&[&str], i32, &str)] = &[
        (&["new", "--force"], 2, ""),
        (&["draw", &toy, "--out"], 1, ""),
        (&["trace", "convert", trace, "--to", "csv", "--force"], 1, ""),
        (&["kv", "generate", served, "--force"], 1, ""),
        (&["trace", "mrc", trace, "--out"], 1, "miss ratio"),
        (&["calibrate", &readings, "--force", "--out"], 1, "per 2048 B page"),
        (&surrogate, 1, "errors on loads"),
        (&["run", &toy, "--save-state"], 1, "Simulated time"),
        (&["examples"], 2, ""),
        (&["run", &toy, "--out"], 1, "Simulated time"),
        (&["compare", &toy, &toy, "--seeds", "2", "--out"], 1, "toy-2"),
        (&["sweep", &toy, "--vary", "run.seed=1,2", "--out"], 1, ""),
        (&kv, 1, "hit"),
    ];
    for (words, code, shows) in rows {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let is_folder = ["examples", "sweep", "compare"].contains(&words[0])
            || words[..2] == ["kv", "plan"]
            || (words[0] == "run" && words.ends_with(&["--out"]));
        let out = folder.path().join("out");
        match is_folder || words.ends_with(&["--save-state"]) {
            true => {}
            false => std::fs::write(&out, "before").expect("one's own folder"),
        }
        let before = files(folder.path());
        let shown = out.display().to_string();
        let at = words.iter().position(|word| *word == "--out").map_or(words.len(), |at| at + 1);
        let words = [&words[..at], &[&shown], &words[at..]].concat();
        let output = without_room(&words);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{words:?}\n{message}");
        assert!(message.contains("cannot write"), "{words:?}\n{message}");
        assert!(text(&output.stdout).contains(shows), "{words:?}\n{}", text(&output.stdout));
        assert_eq!(files(folder.path()), before, "{words:?}");
        for path in before {
            assert_eq!(std::fs::read_to_string(path).expect("it stays"), "before", "{words:?}");
        }
    }
}

#[test]
fn points_that_cannot_be_stored_are_in_the_table() {
    let inputs = tempfile::tempdir().expect("a temporary folder");
    let toy = scenario(&inputs, "toy.toml", TOY);
    let out = inputs.path().join("out");
    let sweep = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hybridsim"));
        command.args(["sweep", &toy, "--vary", "run.seed=1,2", "--out"]).arg(&out);
        command.output().expect("the program starts")
    };
    let wanted = sweep();
    assert!(wanted.status.success(), "{}", text(&wanted.stderr));
    for path in files(&out.join("points")) {
        std::fs::remove_file(&path).expect("one's own file");
        std::fs::create_dir(&path).expect("one's own folder");
    }
    let output = sweep();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write to"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), text(&wanted.stdout));
}
