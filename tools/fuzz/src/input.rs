//! What must hold for any file that the program reads. Each function panics where it does not;
//! coverage-guided fuzzing (`fuzz/`) looks for such bytes.

use crate::drawn;
use hybridsim_calibrate::counters::{CounterLog, CounterSeries};
use hybridsim_calibrate::{disk, ssd};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use hybridsim_engine::{Lba, Loader, Op, Request, SimTime};
use hybridsim_import::{FileSource, MqsimRequest, disksim, mqsim};
use hybridsim_kv::model::ModelShape;
use hybridsim_kv_plan::{Drives, LayoutChoice, write_mode};
use hybridsim_plan::Prices;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_simulation::session::{self, Session};
use hybridsim_simulation::state;
use hybridsim_sweep::{Sampling, Vary};
use hybridsim_workload::record::RecordReader;
use hybridsim_workload::trace::{self, ENTRIES, OpenOptions};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Longer inputs only take longer.
const SCENARIO_BYTES_MAX: usize = 4096;
/// A trace with more requests does not end.
const REQUESTS_MAX: usize = 10_000_000;

pub(crate) fn scenario_of(text: &str) -> Input {
    let source = SourceText { name: "input".to_owned(), text: text.to_owned() };
    Input { source, base: PathBuf::new(), sets: Vec::new(), trace: None }
}

/// A scenario is valid, or has problems with messages.
///
/// # Panics
/// Panics when that does not hold.
pub fn scenario(registry: &Registry, bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.len() > SCENARIO_BYTES_MAX {
        return;
    }
    if let Err(problems) = Scenario::check(scenario_of(text), registry) {
        assert!(!problems.to_string().is_empty());
    }
}

/// A file with `bytes`.
fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("a temporary file");
    file
}

/// A refusal has a message.
fn has_message<T, E: ToString>(outcome: Result<T, E>) -> Option<T> {
    outcome.map_err(|error| assert!(!error.to_string().is_empty())).ok()
}

/// A trace is refused with a message, or read to an error or its end, in order of time and within
/// the address space. The first byte chooses the format, or to detect it.
///
/// # Panics
/// Panics when that does not hold.
pub fn trace(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let file = file(bytes);
    let format = ENTRIES.get(usize::from(choice) >> 1).map(|it| it.description.name.to_owned());
    let options = OpenOptions { format, skip_bad_lines: choice & 1 != 0, ..OpenOptions::default() };
    let mut reader = match trace::open(file.path(), &options) {
        Ok(reader) => reader,
        Err(error) => return assert!(!error.message.is_empty()),
    };
    let mut last = SimTime::ZERO;
    for _ in 0..REQUESTS_MAX {
        match reader.next() {
            Ok(Some(record)) => {
                assert!(record.at >= last, "{} after {last}", record.at);
                assert!(record.request.end().0 <= 1 << 55, "beyond any device");
                assert!((record.request.volume as usize) < reader.volumes().len());
                last = record.at;
            }
            Ok(None) => return,
            Err(error) => return assert!(!error.message.is_empty()),
        }
    }
    panic!("the trace does not end");
}

/// Two texts that name each other as they like.
struct Texts<'a>([&'a str; 2]);

impl FileSource for Texts<'_> {
    fn read(&mut self, name: &str, _from: &str) -> Result<(String, String), String> {
        let at = ["first", "second"].iter().position(|known| *known == name);
        let at = at.ok_or_else(|| format!("there is no file {name}"))?;
        Ok((name.to_owned(), self.0[at].to_owned()))
    }
}

/// Separates the files of an input.
pub(crate) const NEXT_FILE: &str = "\x1c";

/// Parameters of DiskSim and MQSim are refused with a message, or become a scenario that is one in
/// form. The first byte chooses the tool.
///
/// # Panics
/// Panics when that does not hold.
pub fn import(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (first, second) = text.split_once(NEXT_FILE).unwrap_or((text, ""));
    let mut files = Texts([first, second]);
    let imported = match choice & 1 {
        0 => {
            let file = "first".to_owned();
            disksim(&hybridsim_import::Request { file, ..Default::default() }, &mut files)
        }
        _ => {
            let workload = (!second.is_empty()).then(|| "second".to_owned());
            let config = "first".to_owned();
            mqsim(&MqsimRequest { config, workload, scenario: 1, folder: None }, &mut files)
        }
    };
    if let Some(imported) = has_message(imported) {
        let parsed: Result<toml::Table, _> = imported.text.parse();
        assert!(parsed.is_ok(), "{parsed:?} in {}", imported.text);
    }
}

/// Measurements that constants are fitted to are read or refused with a message. The first byte
/// chooses their kind.
///
/// # Panics
/// Panics when that does not hold.
pub fn measurements(registry: &Registry, bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    match choice % 5 {
        0 => {
            let read = hybridsim_calibrate::read(file(bytes).path());
            if let Some((_, readings)) = has_message(read) {
                assert!(!readings.is_empty());
            }
        }
        1 => drop(has_message(ssd::parse("input", &text))),
        2 => {
            let log = has_message(CounterLog::parse(&text));
            log.and_then(|log| has_message(log.window()));
        }
        3 => drop(has_message(CounterSeries::read(file(bytes).path()))),
        _ => drop(has_message(disk::Log::read(file(bytes).path(), None, registry))),
    }
}

/// Tables and options are read or refused with a message, and what is written of one is read as
/// itself. The first byte chooses their kind.
///
/// # Panics
/// Panics when that does not hold.
pub fn tables(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match choice % 10 {
        0 => drop(has_message(Drives::parse(text))),
        1 => drop(has_message(Prices::parse(text, Path::new("")))),
        2 => drop(has_message(ModelShape::parse(text))),
        3 => drop(has_message(LayoutChoice::parse(text))),
        4 => drop(has_message(write_mode(text))),
        5 => drop(has_message(Vary::parse(text))),
        6 => drop(has_message(Sampling::parse(text))),
        7 => {
            if let Some(bytes) = has_message(units::bytes(text)) {
                assert_eq!(units::bytes(&units::write_bytes(bytes)), Ok(bytes));
            }
        }
        8 => {
            if let Some(time) = has_message(units::duration(text)) {
                assert_eq!(units::duration(&units::write_duration(time)), Ok(time));
            }
        }
        _ => {
            has_message(units::rate(text));
            has_message(units::rpm(text));
            has_message(units::power(text));
            has_message(units::energy(text));
            has_message(units::percent(text));
            has_message(units::mean_bytes(text));
        }
    }
}

/// Requests served before a state is saved.
const REQUESTS_BEFORE: u64 = 64;
/// Bytes of a saved state before its header: a magic number and a checksum.
const BEFORE_HEADER: usize = 48;

/// A random system with its saved state.
type SavedSystem = Rc<(Scenario, Vec<u8>)>;

thread_local! {
    /// Random systems by number; `None` where a state cannot be saved.
    static SAVED: RefCell<HashMap<u8, Option<SavedSystem>>> = RefCell::default();
}

/// A state with changes, but with a checksum that fits, is refused with a message or restored. The
/// first byte chooses a random system; each four after it a place and two bytes there.
///
/// # Panics
/// Panics when that does not hold.
pub fn saved_state(registry: &Registry, bytes: &[u8]) {
    let Some((&number, changes)) = bytes.split_first() else { return };
    let system = SAVED.with_borrow_mut(|saved| {
        saved.entry(number).or_insert_with(|| numbered(registry, number).map(Rc::new)).clone()
    });
    let Some(system) = system else { return };
    let (scenario, packed) = &*system;
    let mut head = Loader::new(&packed[BEFORE_HEADER..]);
    let head = head.take::<(u32, String, String, u64)>().expect("a header");
    let mut state = state::unpack(packed, &head.2).expect("it was packed");
    if state.is_empty() {
        return;
    }
    for change in changes.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % state.len();
        let end = state.len().min(at + 2);
        state[at..end].iter_mut().zip(&change[2..]).for_each(|(byte, change)| *byte ^= change);
    }
    let options = session::Options {
        state: Some(state::pack(&head.2, &state)),
        ..session::Options::default()
    };
    has_message(Session::open(scenario, registry, options));
}

/// Random system `number` with its saved state.
pub(crate) fn numbered(registry: &Registry, number: u8) -> Option<(Scenario, Vec<u8>)> {
    let text = drawn(registry, number.into()).0;
    let scenario = Scenario::check(scenario_of(&text), registry).ok()?;
    let state = saved(registry, &scenario)?;
    Some((scenario, state))
}

/// The state of the system of `scenario` after some requests; `None` where it has none.
fn saved(registry: &Registry, scenario: &Scenario) -> Option<Vec<u8>> {
    let options = session::Options { save_state: true, ..session::Options::default() };
    let mut session = Session::open(scenario, registry, options).ok()?;
    let places = (session.capacity() / 8).max(1);
    for number in 0..REQUESTS_BEFORE {
        let op = if number % 3 == 0 { Op::Read } else { Op::Write };
        let request = Request::new(op, Lba(number * 7 % places * 8), 8);
        session.submit(request, SimTime::ZERO).ok()?;
    }
    while session.next_completion().ok()?.is_some() {}
    session.finish(registry, None, Vec::new()).ok()?.state
}
