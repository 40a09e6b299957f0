//! Source files, locations in them, and errors.

use std::fmt;

/// Provides the files that a parameter file names.
pub trait FileSource {
    /// Finds file `name`, as written in the file shown as `from` (empty for the first file);
    /// returns its name for messages and its text.
    ///
    /// # Errors
    /// A sentence with the folders searched.
    fn read(&mut self, name: &str, from: &str) -> Result<(String, String), String>;
}

/// A location in one of the files read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// Number of the file, in order of reading.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

/// An error in a parameter file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// `file:line:column`, where there is one.
    pub at: Option<String>,
    /// The error, and what was expected.
    pub message: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            Some(at) => write!(f, "{at}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ImportError {}

pub(crate) type Result<T, E = LocatedError> = std::result::Result<T, E>;

/// An error at a location whose file name is not looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocatedError {
    pub at: Option<SourceLocation>,
    pub message: String,
}

impl LocatedError {
    pub fn new(at: SourceLocation, message: impl Into<String>) -> Self {
        Self { at: Some(at), message: message.into() }
    }

    pub fn nowhere(message: impl Into<String>) -> Self {
        Self { at: None, message: message.into() }
    }

    pub fn named(self, files: &[String]) -> ImportError {
        ImportError { at: self.at.map(|at| show(at, files)), message: self.message }
    }
}

pub(crate) fn show(location: SourceLocation, files: &[String]) -> String {
    let name = files.get(location.file as usize).map_or("?", String::as_str);
    format!("{name}:{}:{}", location.line, location.column)
}

const QUOTE_CHARS_MAX: usize = 60;

/// `text` in back quotes, truncated and without control characters.
pub(crate) fn quote(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let short: String = text.chars().take(QUOTE_CHARS_MAX).map(clean).collect();
    let more = if text.chars().nth(QUOTE_CHARS_MAX).is_some() { "..." } else { "" };
    format!("`{short}{more}`")
}
