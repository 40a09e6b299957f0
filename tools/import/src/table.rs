//! One table per DiskSim block maps its parameters. `docs/reference/import.md` has the same tables,
//! and a test keeps them equal.

use crate::source::{LocatedError, Result, SourceLocation, quote, show};
use crate::syntax::{Block, Entry, Item, Value};

/// The conversion of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Conversion {
    /// Milliseconds become this parameter.
    Ms(&'static str),
    /// A number becomes this parameter as it is.
    Number(&'static str),
    /// A whole number becomes this parameter as it is.
    Count(&'static str),
    /// 0 or 1 become `false` or `true`.
    Flag(&'static str),
    /// Sectors of 512 bytes become this parameter in bytes.
    Sectors(&'static str),
    /// Numbers become words.
    Choice(&'static str, &'static [(i64, &'static str)]),
    /// Converted together with other parameters, as the text says.
    Described(&'static str),
    /// Affects DiskSim's output only.
    OutputOnly,
    /// Not supported. With this value it has no effect; with others there is a warning.
    Unsupported(f64, &'static str),
    /// Not supported, but it has an effect only where another parameter of the block exceeds a
    /// limit.
    UnsupportedIf(f64, &'static str, (&'static str, f64)),
    /// Not supported, but it has an effect only in drives with command queueing.
    UnsupportedQueued(f64, &'static str),
}

impl Conversion {
    fn in_block(self, block: &Block) -> Result<Self> {
        let several = |item: &Item| Ok(item.whole_in(0, i64::MAX)? > 1);
        let no_effect = Self::Described("nothing: the drive has one command at a time");
        Ok(match self {
            Self::UnsupportedIf(neutral, why, (key, limit)) => {
                match block.get(key).map_or(Ok(0.0), Item::number)? {
                    value if value > limit => Self::Unsupported(neutral, why),
                    _ => Self::Described("nothing: it has no effect here"),
                }
            }
            Self::UnsupportedQueued(..)
                if block.get("Max queue length").map_or(Ok(true), several)? =>
            {
                self
            }
            Self::UnsupportedQueued(..) => no_effect,
            _ => self,
        })
    }
}

/// A parameter of a block.
#[derive(Clone, Copy, Debug)]
pub struct ParameterRow {
    /// The name in DiskSim.
    pub key: &'static str,
    pub carry: Conversion,
}

/// The parameters of one kind of block.
#[derive(Clone, Copy, Debug)]
pub struct ParameterTable {
    /// The kind of block, such as `disksim_disk`.
    pub kind: &'static str,
    /// The corresponding part of a scenario.
    pub becomes: &'static str,
    pub rows: &'static [ParameterRow],
}

pub(crate) const fn row(key: &'static str, carry: Conversion) -> ParameterRow {
    ParameterRow { key, carry }
}

/// The warnings of an import, in order, and the names of the files for locations.
#[derive(Debug, Default)]
pub(crate) struct ImportLog {
    pub warnings: Vec<String>,
    pub files: Vec<String>,
}

impl ImportLog {
    pub fn warn(&mut self, at: SourceLocation, message: impl AsRef<str>) {
        let line = format!("{}: {}", show(at, &self.files), message.as_ref());
        // A block instantiated several times causes the same warnings each time.
        if !self.warnings.contains(&line) {
            self.warnings.push(line);
        }
    }

    /// `file:line` of `place`, for comments.
    pub fn line(&self, location: SourceLocation) -> String {
        let name = self.files.get(location.file as usize).map_or("?", String::as_str);
        let name = name.rsplit('/').next().unwrap_or(name);
        format!("{name}:{}", location.line)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TomlTable(Vec<(String, String)>);

impl TomlTable {
    /// `key = value  # comment`.
    pub fn set(&mut self, key: &str, value: impl AsRef<str>, comment: impl Into<String>) {
        self.0.push((format!("{key} = {}", value.as_ref()), comment.into()));
    }

    /// As `set`, with the location of `item` as comment.
    pub fn from(&mut self, key: &str, value: impl AsRef<str>, at: (&str, &Item), log: &ImportLog) {
        let (name, item) = at;
        let raw = match &item.value {
            Value::List(_) | Value::Block(_) => String::new(),
            _ => format!(" = {}", item.noun()),
        };
        self.set(key, value, format!("{name}{raw}, {}", log.line(item.location)));
    }

    pub fn comment(&mut self, text: impl AsRef<str>) {
        for line in wrap(text.as_ref(), 96) {
            self.0.push((String::new(), line));
        }
    }

    /// Whether the table is a component of `kind`.
    pub fn is_of(&self, kind: &str) -> bool {
        self.0.iter().any(|(line, _)| *line == format!("kind = {}", string(kind)))
    }

    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn render(&self, out: &mut String) {
        for (line, comment) in &self.0 {
            let comment = comment.replace(char::is_control, " ");
            match (line.is_empty(), comment.is_empty()) {
                (true, _) => out.push_str(&format!("# {comment}\n")),
                (_, true) => out.push_str(&format!("{line}\n")),
                _ => out.push_str(&format!("{line}  # {comment}\n")),
            }
        }
    }
}

pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// A day; a longer time in a parameter file is a mistaken unit.
pub(crate) const MS_MAX: f64 = 86_400_000.0;

/// Milliseconds as a TOML duration.
pub(crate) fn ms(ms: f64) -> String {
    format!("\"{ms}ms\"")
}

pub(crate) fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out + "\""
}

pub(crate) fn strings<S: AsRef<str>>(texts: &[S]) -> String {
    let all: Vec<String> = texts.iter().map(|text| string(text.as_ref())).collect();
    format!("[{}]", all.join(", "))
}

/// A TOML number; whole ones beyond 64 bits are no integers of TOML.
pub(crate) fn number(x: f64) -> String {
    if x.abs() < 1e18 { format!("{x}") } else { format!("{x:e}") }
}

/// A time in milliseconds, at most a day.
pub(crate) fn ms_of(item: &Item) -> Result<f64> {
    item.number_in(0.0, MS_MAX)
}

/// Warns of parameters of `block` that are repeated or not in `table`.
pub(crate) fn check_names(table: &ParameterTable, block: &Block, log: &mut ImportLog) {
    for (at, entry) in block.entries.iter().enumerate() {
        let key = quote(&entry.key);
        if block.entries[at + 1..].iter().any(|later| later.key == entry.key) {
            log.warn(entry.location, format!("{key} is given again; the last value is used"));
        } else if !table.rows.iter().any(|row| row.key == entry.key) {
            let message =
                format!("{key} is not a known parameter of {}; it is left out", table.kind);
            log.warn(entry.location, message);
        }
    }
}

pub(crate) fn convert(
    table: &ParameterTable,
    block: &Block,
    lines: &mut TomlTable,
    log: &mut ImportLog,
) -> Result<()> {
    check_names(table, block, log);
    for (at, entry) in block.entries.iter().enumerate() {
        let last = !block.entries[at + 1..].iter().any(|later| later.key == entry.key);
        if let Some(row) = table.rows.iter().find(|row| row.key == entry.key && last) {
            convert_one(row.carry.in_block(block)?, entry, lines, log)?;
        }
    }
    Ok(())
}

fn convert_one(
    carry: Conversion,
    entry: &Entry,
    lines: &mut TomlTable,
    log: &mut ImportLog,
) -> Result<()> {
    let item = &entry.item;
    let (key, value) = match carry {
        Conversion::Described(_) | Conversion::OutputOnly | Conversion::UnsupportedIf(..) => {
            return Ok(());
        }
        Conversion::Ms(key) => (key, ms(ms_of(item)?)),
        Conversion::Number(key) => (key, number(item.number()?)),
        Conversion::Count(key) => (key, item.whole_in(0, i64::MAX)?.to_string()),
        Conversion::Flag(key) => (key, item.flag()?.to_string()),
        Conversion::Sectors(key) => (key, format!("\"{}B\"", item.whole_in(0, 1 << 50)? * 512)),
        Conversion::Choice(key, words) => {
            let n = item.whole_in(i64::MIN, i64::MAX)?;
            match words.iter().find(|(number, _)| *number == n) {
                Some((_, word)) => (key, string(word)),
                None => {
                    let known: Vec<String> = words.iter().map(|(n, _)| n.to_string()).collect();
                    let message = format!("expected one of {}, found {n}", known.join(", "));
                    return Err(LocatedError::new(item.location, message));
                }
            }
        }
        Conversion::Unsupported(neutral, why) | Conversion::UnsupportedQueued(neutral, why) => {
            if item.number().ok() != Some(neutral) {
                let message = format!("`{} = {}` is not supported: {why}", entry.key, item.noun());
                log.warn(entry.location, &message);
                lines.comment(format!("not supported: {} = {} ({why})", entry.key, item.noun()));
            }
            return Ok(());
        }
    };
    lines.from(key, value, (&entry.key, item), log);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_can_be_read_again() {
        for x in [0.0, -2.5, 1e-9, 7000.0, 9.9e17, 1e18, 1e19, 7.000_666e99, f64::MAX, -f64::MAX] {
            let text = number(x);
            assert_eq!(text.parse(), Ok(x), "{text}");
            // Without a point or an exponent it is an integer of TOML, of 64 bits.
            assert!(text.contains(['.', 'e']) || text.parse::<i64>().is_ok(), "{text}");
        }
    }
}
