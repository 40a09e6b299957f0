//! Files as the importer sees them, places in them, and what can be wrong there.

use std::fmt;

/// Gives the importer the files that a parameter file names.
pub trait Files {
    /// Finds file `name`, as written in the file shown as `from` (empty for the first file);
    /// returns the name to show for it and its text.
    ///
    /// # Errors
    /// A sentence that says where it was looked for.
    fn read(&mut self, name: &str, from: &str) -> Result<(String, String), String>;
}

/// A place in one of the files read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the file, in order of reading.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

/// Why a file cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// `file:line:column`, where there is one.
    pub at: Option<String>,
    /// What is wrong, and what was expected.
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

/// A problem at a place whose file name is not looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub at: Option<Place>,
    pub message: String,
}

impl Trouble {
    pub fn new(at: Place, message: impl Into<String>) -> Self {
        Self { at: Some(at), message: message.into() }
    }

    pub fn nowhere(message: impl Into<String>) -> Self {
        Self { at: None, message: message.into() }
    }

    pub fn named(self, files: &[String]) -> ImportError {
        ImportError { at: self.at.map(|at| show(at, files)), message: self.message }
    }
}

/// `place` as `file:line:column`.
pub(crate) fn show(place: Place, files: &[String]) -> String {
    let name = files.get(place.file as usize).map_or("?", String::as_str);
    format!("{name}:{}:{}", place.line, place.column)
}

/// At most this much of a hostile word is quoted.
const QUOTE_CHARS_MAX: usize = 60;

/// `text` in back quotes, cut and without control characters.
pub(crate) fn quote(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let short: String = text.chars().take(QUOTE_CHARS_MAX).map(clean).collect();
    let more = if text.chars().nth(QUOTE_CHARS_MAX).is_some() { "..." } else { "" };
    format!("`{short}{more}`")
}
