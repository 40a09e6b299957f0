//! What must hold for any scenario and any trace. Each function panics where it does not;
//! coverage-guided fuzzing (`fuzz/`) looks for such bytes.

use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_engine::SimTime;
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_workload::record::RecordReader;
use hybridsim_workload::trace::{self, ENTRIES, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

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

/// A trace is refused with a message, or read to an error or its end, in order of time and within
/// the address space. The first byte chooses the format, or to detect it.
///
/// # Panics
/// Panics when that does not hold.
pub fn trace(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("a temporary file");
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
