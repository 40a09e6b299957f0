//! One table per DiskSim block says where each of its parameters goes. `docs/import.md` shows the
//! same tables, and a test keeps them equal.

use crate::source::{Place, Trouble, quote, show};
use crate::syntax::{Block, Entry, Item, Value};

/// What becomes of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Carry {
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
    /// Numbers stand for words.
    Choice(&'static str, &'static [(i64, &'static str)]),
    /// Takes part in something larger, as the text says.
    Part(&'static str),
    /// Concerns output or bookkeeping only; nothing is lost without it.
    Report,
    /// Cannot be carried over. Nothing is lost if it has this value; otherwise a warning tells.
    Lost(f64, &'static str),
    /// The same, but it has an effect only where another parameter of the block is larger than
    /// that.
    Beyond(f64, &'static str, (&'static str, f64)),
    /// The same for a drive that takes several commands; for others it means nothing.
    Several(f64, &'static str),
}

impl Carry {
    /// What this means in `block`.
    fn in_block(self, block: &Block) -> Result<Self, Trouble> {
        let several = |item: &Item| Ok(item.whole_in(0, i64::MAX)? > 1);
        let meaningless = Self::Part("nothing: the drive has one command at a time");
        Ok(match self {
            Self::Beyond(neutral, why, (key, limit)) => {
                match block.get(key).map_or(Ok(0.0), Item::number)? {
                    value if value > limit => Self::Lost(neutral, why),
                    _ => Self::Part("nothing: what it is about does not happen"),
                }
            }
            Self::Several(..) if block.get("Max queue length").map_or(Ok(true), several)? => self,
            Self::Several(..) => meaningless,
            _ => self,
        })
    }
}

/// A parameter of a block.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name in DiskSim.
    pub key: &'static str,
    /// What becomes of it.
    pub carry: Carry,
}

/// The parameters of one kind of block.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The kind, such as `disksim_disk`.
    pub kind: &'static str,
    /// What the block becomes.
    pub becomes: &'static str,
    /// Its parameters.
    pub rows: &'static [Row],
}

pub(crate) const fn row(key: &'static str, carry: Carry) -> Row {
    Row { key, carry }
}

/// What cannot be carried over, and other remarks, in order.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub warnings: Vec<String>,
    pub files: Vec<String>,
}

impl Notes {
    pub fn warn(&mut self, at: Place, message: impl AsRef<str>) {
        let line = format!("{}: {}", show(at, &self.files), message.as_ref());
        // A block used for many components says the same of each.
        if !self.warnings.contains(&line) {
            self.warnings.push(line);
        }
    }

    /// `file:line` of `place`, for comments.
    pub fn line(&self, place: Place) -> String {
        let name = self.files.get(place.file as usize).map_or("?", String::as_str);
        let name = name.rsplit('/').next().unwrap_or(name);
        format!("{name}:{}", place.line)
    }
}

/// Lines of a TOML table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Vec<(String, String)>);

impl Lines {
    /// `key = value  # comment`.
    pub fn set(&mut self, key: &str, value: impl AsRef<str>, comment: impl Into<String>) {
        self.0.push((format!("{key} = {}", value.as_ref()), comment.into()));
    }

    /// As `set`, with where `item` was read as comment.
    pub fn from(&mut self, key: &str, value: impl AsRef<str>, at: (&str, &Item), notes: &Notes) {
        let (name, item) = at;
        let raw = match &item.value {
            Value::List(_) | Value::Block(_) => String::new(),
            _ => format!(" = {}", item.noun()),
        };
        self.set(key, value, format!("{name}{raw}, {}", notes.line(item.place)));
    }

    pub fn comment(&mut self, text: impl AsRef<str>) {
        for line in wrap(text.as_ref(), 96) {
            self.0.push((String::new(), line));
        }
    }

    /// Whether the lines describe a part of `kind`.
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

/// `text` in lines of at most `columns`.
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

/// A day; a longer time in a parameter file is a slip of the unit.
const MS_MAX: f64 = 86_400_000.0;

/// Milliseconds as a TOML duration.
pub(crate) fn ms(ms: f64) -> String {
    format!("\"{ms}ms\"")
}

/// Text as a TOML string.
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

/// A list of strings.
pub(crate) fn strings<S: AsRef<str>>(texts: &[S]) -> String {
    let all: Vec<String> = texts.iter().map(|text| string(text.as_ref())).collect();
    format!("[{}]", all.join(", "))
}

/// A number that TOML takes for what it is.
pub(crate) fn number(x: f64) -> String {
    format!("{x}")
}

/// Milliseconds that make sense.
pub(crate) fn ms_of(item: &Item) -> Result<f64, Trouble> {
    item.number_in(0.0, MS_MAX)
}

/// Tells of parameters of `block` that are given again or that `table` does not know.
pub(crate) fn odd_names(table: &Table, block: &Block, notes: &mut Notes) {
    for (at, entry) in block.entries.iter().enumerate() {
        let key = quote(&entry.key);
        if block.entries[at + 1..].iter().any(|later| later.key == entry.key) {
            notes.warn(entry.place, format!("{key} is given again; the last counts"));
        } else if !table.rows.iter().any(|row| row.key == entry.key) {
            let message = format!("{key} is no known parameter of {}; it is left out", table.kind);
            notes.warn(entry.place, message);
        }
    }
}

/// Carries over everything of `block` that `table` gives a place of its own.
pub(crate) fn carry(
    table: &Table,
    block: &Block,
    lines: &mut Lines,
    notes: &mut Notes,
) -> Result<(), Trouble> {
    odd_names(table, block, notes);
    for (at, entry) in block.entries.iter().enumerate() {
        let last = !block.entries[at + 1..].iter().any(|later| later.key == entry.key);
        if let Some(row) = table.rows.iter().find(|row| row.key == entry.key && last) {
            carry_one(row.carry.in_block(block)?, entry, lines, notes)?;
        }
    }
    Ok(())
}

fn carry_one(
    carry: Carry,
    entry: &Entry,
    lines: &mut Lines,
    notes: &mut Notes,
) -> Result<(), Trouble> {
    let item = &entry.item;
    let (key, value) = match carry {
        Carry::Part(_) | Carry::Report | Carry::Beyond(..) => return Ok(()),
        Carry::Ms(key) => (key, ms(ms_of(item)?)),
        Carry::Number(key) => (key, number(item.number()?)),
        Carry::Count(key) => (key, item.whole_in(0, i64::MAX)?.to_string()),
        Carry::Flag(key) => (key, item.flag()?.to_string()),
        Carry::Sectors(key) => (key, format!("\"{}B\"", item.whole_in(0, 1 << 50)? * 512)),
        Carry::Choice(key, words) => {
            let n = item.whole_in(i64::MIN, i64::MAX)?;
            match words.iter().find(|(number, _)| *number == n) {
                Some((_, word)) => (key, string(word)),
                None => {
                    let known: Vec<String> = words.iter().map(|(n, _)| n.to_string()).collect();
                    let message = format!("expected one of {}, found {n}", known.join(", "));
                    return Err(Trouble::new(item.place, message));
                }
            }
        }
        Carry::Lost(neutral, why) | Carry::Several(neutral, why) => {
            if item.number().ok() != Some(neutral) {
                let message =
                    format!("`{} = {}` is not carried over: {why}", entry.key, item.noun());
                notes.warn(entry.place, &message);
                lines.comment(format!("not carried over: {} = {} ({why})", entry.key, item.noun()));
            }
            return Ok(());
        }
    };
    lines.from(key, value, (&entry.key, item), notes);
    Ok(())
}
