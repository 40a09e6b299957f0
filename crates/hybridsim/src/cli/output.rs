//! Standard output, standard error and exit codes.

use hybridsim_config::diagnostic::{Diagnostic, Diagnostics};
use hybridsim_engine::Fault;
use hybridsim_report::json::pretty;
use hybridsim_simulation::run::RunError;
use hybridsim_simulation::state::{self, NewFile};
use serde_json::{Value, json};
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Exit codes, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The run failed, or an invariant broke.
    Run = 1,
    /// The command line or the scenario is wrong.
    Usage = 2,
    /// The trace is wrong.
    Trace = 3,
    /// Some points of a sweep failed.
    Points = 4,
    /// Interrupted; partial results were kept.
    Interrupted = 130,
}

impl Exit {
    /// The exit code of a run that `fault` ended.
    pub const fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Interrupted => Self::Interrupted,
            Fault::Workload(_) => Self::Trace,
            Fault::OutOfRange { .. } => Self::Usage,
            _ => Self::Run,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// With an exit code and a message; nothing has been printed.
    Message(Exit, String),
    /// The scenario is wrong; nothing has been printed.
    Scenario(Diagnostics),
    /// As `Message`, after partial results have been printed.
    AfterResults(Exit, String),
}

impl Failure {
    /// A usage or scenario error.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Message(Exit::Usage, message.into())
    }

    /// Marks a failure after results have been printed.
    pub fn after_results(self) -> Self {
        match self {
            Self::Message(exit, message) => Self::AfterResults(exit, message),
            other => other,
        }
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Scenario(diagnostics)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Trace(message) => Self::Message(Exit::Trace, message),
            RunError::Scenario(problems) => problems.into(),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Message(Exit::Run, error.to_string())
    }
}

/// Writes a file into `folder` atomically.
pub fn write_file(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    state::write(&folder.join(name), text.as_bytes()).map_err(|error| {
        Failure::Message(Exit::Run, format!("cannot write {name} in {}: {error}", folder.display()))
    })
}

/// Writes the file at `path` atomically.
pub fn write_path(path: &Path, text: &str) -> Result<(), Failure> {
    state::write(path, text.as_bytes()).map_err(|error| unwritable(path, error))
}

/// Checks that the file at `path` could be written, before work of which it is the result.
pub fn probe(path: &Path) -> Result<(), Failure> {
    let new = NewFile::at(path);
    // What reads from a pipe would take an opening for its end.
    if new.partial() == path && !path.is_dir() {
        return Ok(());
    }
    let tried = fs::write(new.partial(), []);
    tried.map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// Checks that the file to write at `out`, if any, replaces none of the `inputs`.
pub fn apart<'a>(
    inputs: impl IntoIterator<Item = &'a PathBuf>,
    out: Option<&PathBuf>,
) -> Result<(), Failure> {
    let Some(out) = out.filter(|out| out.is_file()) else { return Ok(()) };
    let place = fs::canonicalize(out)?;
    let is_input = |input: &PathBuf| fs::canonicalize(input).is_ok_and(|input| input == place);
    if inputs.into_iter().any(is_input) {
        let path = out.display();
        return Err(Failure::usage(format!("{path} is what is read: write into another file")));
    }
    Ok(())
}

/// A file that cannot be written.
pub fn unwritable(path: &Path, error: impl Display) -> Failure {
    Failure::Message(Exit::Run, format!("cannot write {}: {error}", path.display()))
}

/// Writes `text` to standard output. A reader that has seen enough and closes it is no failure:
/// files that are still to be written are, and the exit code is that of the work.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(end.as_bytes()));
    printed(written.and_then(|()| out.flush()))
}

/// Prints the results `text` also where their files could not be written, as `saved` says: they
/// may have taken hours.
pub fn print_beside(saved: Result<(), Failure>, text: &str) -> Result<(), Failure> {
    let printed = print(text);
    saved.map_err(Failure::after_results)?;
    printed
}

/// The outcome of writing to standard output.
pub fn printed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Message(Exit::Run, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes `text` to standard error; a closed standard error is ignored. Names of files and keys may
/// contain control characters, which terminals would execute.
pub fn note(text: &str) {
    let is_harmless = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let shown = |letter| if is_harmless(letter) { letter } else { char::REPLACEMENT_CHARACTER };
    let text: String = text.chars().map(shown).collect();
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Reports `failure` and returns its exit code. With `--json`, standard output always holds one
/// document: the failure unless results have been printed.
pub fn report(failure: &Failure, wants_json: bool) -> u8 {
    let (exit, message, problems) = match failure {
        Failure::Message(exit, message) => (*exit, message.clone(), Some(json!([]))),
        Failure::AfterResults(exit, message) => (*exit, message.clone(), None),
        Failure::Scenario(list) => (Exit::Usage, list.to_string(), Some(problems(list))),
    };
    if let Some(problems) = problems.filter(|_| wants_json) {
        document(exit, &message, problems);
    }
    let prefix = if message.starts_with("error") { "" } else { "error: " };
    note(&format!("{prefix}{message}"));
    exit as u8
}

/// Prints a failure as JSON; a closed standard output is ignored.
pub fn document(exit: Exit, message: &str, problems: Value) {
    let error = json!({
        "error": { "exit_code": exit as u8, "message": message, "problems": problems }
    });
    drop(print(&pretty(&error)));
}

/// The problems of a scenario as JSON: `key`, `message` and `help`, and `file`, `line` and `column`
/// (in characters, both counted from 1) where the problem has a position.
fn problems(list: &Diagnostics) -> Value {
    let one = |diagnostic: &Diagnostic| {
        let mut value = json!({
            "key": diagnostic.key,
            "message": diagnostic.message,
            "help": diagnostic.help,
        });
        if let Some(span) = &diagnostic.span {
            let (line, column) = list.position(span);
            value["file"] = list.sources[span.file].name.clone().into();
            value["line"] = line.into();
            value["column"] = column.into();
        }
        value
    };
    list.list.iter().map(one).collect()
}
