//! Contents in a file that cannot be written: requests fail, and the device continues.

#![cfg(unix)]

use hybridsim_config::diagnostic::SourceText;
use hybridsim_engine::Flags;
use hybridsim_serve::contents::{Contents, Data, History, Store};
use hybridsim_serve::{Clock, Drive, Job, Kind};
use hybridsim_simulation::registry::standard;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{Options, Session};
use std::fs::File;
use std::path::PathBuf;
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
