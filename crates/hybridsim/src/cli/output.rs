//! Standard output, standard error and exit codes.

use crate::scenario::diagnostic::Diagnostics;
use std::io::{self, ErrorKind, Write};

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
    /// A sweep ended, and some of its points failed.
    Points = 4,
    /// Interrupted; partial results were kept.
    Interrupted = 130,
}

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// With an exit code and a message.
    Message(Exit, String),
    /// Standard output was closed; that is how a reader says it has seen enough.
    ClosedPipe,
}

impl Failure {
    /// A usage or scenario error.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Message(Exit::Usage, message.into())
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Message(Exit::Usage, diagnostics.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Message(Exit::Run, error.to_string()),
        }
    }
}

/// Writes `text` to standard output.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

/// Writes `text` to standard error; a closed standard error is not worth failing for.
pub fn note(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Tells of `failure` and returns its exit code.
pub fn report(failure: &Failure) -> u8 {
    match failure {
        Failure::ClosedPipe => 0,
        Failure::Message(exit, message) => {
            let prefix = if message.starts_with("error") { "" } else { "error: " };
            note(&format!("{prefix}{message}"));
            *exit as u8
        }
    }
}
