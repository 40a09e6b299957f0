//! A scenario as written: a tree of values that know where they stand.
//!
//! Presets and `--set` options are laid over each other here, so that a message about a value
//! points at the text that gave it.

use crate::diagnostic::{Diagnostic, Diagnostics, SourceText, Span};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Item {
    /// The value.
    pub value: Datum,
    /// Position in the source.
    pub span: Span,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum Datum {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i128),
    /// Any other number.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A list.
    List(Vec<Item>),
    /// A table.
    Table(Table),
    /// A date or time; no parameter takes one.
    Date(String),
}

impl Datum {
    /// A noun for messages.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Date(_) => "a date",
        }
    }
}

/// A table in the order it was written.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: Vec<(String, Span, Item)>,
}

impl Table {
    /// Keys, the places of the keys, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Span, &Item)> {
        self.entries.iter().map(|(key, span, item)| (key.as_str(), span, item))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Item> {
        self.entries.iter().find(|(name, ..)| name == key).map(|(.., item)| item)
    }

    /// The table under `key`.
    pub fn table_mut(&mut self, key: &str) -> Option<&mut Self> {
        match self.entries.iter_mut().find(|(name, ..)| name == key) {
            Some((.., Item { value: Datum::Table(table), .. })) => Some(table),
            _ => None,
        }
    }

    /// Takes the value of `key` out.
    pub fn remove(&mut self, key: &str) -> Option<Item> {
        let at = self.entries.iter().position(|(name, ..)| name == key)?;
        Some(self.entries.remove(at).2)
    }

    /// Sets `key`, keeping its place in the order if it is there already.
    pub fn insert(&mut self, key: &str, key_span: Span, item: Item) {
        match self.entries.iter_mut().find(|(name, ..)| name == key) {
            Some(entry) => *entry = (key.to_owned(), key_span, item),
            None => self.entries.push((key.to_owned(), key_span, item)),
        }
    }

    /// Lays `over` on top of this table: its values win. Tables in both are merged, but a table
    /// that chooses another `kind` replaces the old one whole. A table without `kind` over a bare
    /// name keeps the name as its kind: `ftl = "page"` is short for `ftl = { kind = "page" }`.
    /// Kind and parameters may come from two options, in either order.
    pub fn overlay(&mut self, over: Self) {
        for (key, span, item) in over.entries {
            match self.entries.iter_mut().find(|(name, ..)| *name == key) {
                Some((.., old)) => old.overlay(item),
                None => self.insert(&key, span, item),
            }
        }
    }
}

impl Item {
    fn overlay(&mut self, over: Self) {
        let Datum::Table(mut new) = over.value else {
            match &mut self.value {
                // Texts are numbered, the scenario first, then options, then presets: here one
                // option names the kind of what an earlier one began.
                Datum::Table(old)
                    if matches!(over.value, Datum::Text(_))
                        && old.get("kind").is_none()
                        && (1..over.span.file).contains(&self.span.file) =>
                {
                    old.insert("kind", over.span.clone(), over);
                }
                _ => *self = over,
            }
            return;
        };
        match &mut self.value {
            Datum::Table(old) if same_kind(old, &new) => old.overlay(new),
            Datum::Text(_) if new.get("kind").is_none() => {
                let kind = Self { value: self.value.clone(), span: self.span.clone() };
                new.insert("kind", self.span.clone(), kind);
                self.value = Datum::Table(new);
            }
            _ => *self = Self { value: Datum::Table(new), span: over.span },
        }
    }
}

fn same_kind(old: &Table, new: &Table) -> bool {
    let text = |table: &Table| match table.get("kind").map(|item| &item.value) {
        Some(Datum::Text(text)) => Some(text.clone()),
        _ => None,
    };
    match (text(old), text(new)) {
        (Some(old), Some(new)) => old == new,
        _ => true,
    }
}

/// Parses `source` as text number `file`.
///
/// # Errors
/// Every syntax error in it.
pub fn parse(source: &SourceText, file: usize) -> Result<Table, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    if errors.is_empty() {
        let table = convert_table(table.into_inner(), file);
        let mut problems = Vec::new();
        check_table(&table, &mut problems);
        return if problems.is_empty() { Ok(table) } else { Err(problems) };
    }
    let diagnostics = errors.into_iter().map(|error| Diagnostic {
        span: error.span().map(|range| Span { file, range }),
        key: String::new(),
        message: error.message().to_owned(),
        help: None,
    });
    Err(diagnostics.collect())
}

/// Reports keys and strings with control characters, which terminals execute where they are
/// printed.
fn check_table(table: &Table, problems: &mut Vec<Diagnostic>) {
    for (key, span, item) in table.iter() {
        check_text(key, span, problems);
        check_item(item, problems);
    }
}

fn check_item(item: &Item, problems: &mut Vec<Diagnostic>) {
    match &item.value {
        Datum::Text(text) => check_text(text, &item.span, problems),
        Datum::List(list) => list.iter().for_each(|item| check_item(item, problems)),
        Datum::Table(table) => check_table(table, problems),
        _ => {}
    }
}

fn check_text(text: &str, span: &Span, problems: &mut Vec<Diagnostic>) {
    let is_control = |letter: &char| letter.is_control() && !matches!(letter, '\n' | '\t');
    problems.extend(text.chars().find(is_control).map(|letter| Diagnostic {
        span: Some(span.clone()),
        key: String::new(),
        message: format!("the control character U+{:04X} is not allowed", letter as u32),
        help: None,
    }));
}

fn convert_table(table: DeTable<'_>, file: usize) -> Table {
    let mut entries: Vec<(String, Span, Item)> = table
        .into_iter()
        .map(|(key, value)| {
            let span = Span { file, range: key.span() };
            (key.into_inner().into_owned(), span, convert(value, file))
        })
        .collect();
    entries.sort_by_key(|(_, span, _)| span.range.start);
    Table { entries }
}

fn convert(value: Spanned<DeValue<'_>>, file: usize) -> Item {
    let span = Span { file, range: value.span() };
    let value = match value.into_inner() {
        // Strings of several lines have the line ends of the file; Windows has its own.
        DeValue::String(text) => Datum::Text(text.replace("\r\n", "\n")),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(whole) => Datum::Integer(whole),
            Err(_) => Datum::Float(f64::INFINITY),
        },
        DeValue::Float(number) => Datum::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Datum::Flag(flag),
        DeValue::Datetime(date) => Datum::Date(date.to_string()),
        DeValue::Array(list) => {
            Datum::List(list.into_iter().map(|item| convert(item, file)).collect())
        }
        DeValue::Table(table) => Datum::Table(convert_table(table, file)),
    };
    Item { value, span }
}

/// Applies `--set key.path=value` to `root`. The value is TOML, or else a string.
///
/// # Errors
/// A sentence when the option has no `=` or no key.
pub fn apply_set(
    root: &mut Table,
    option: &str,
    sources: &mut Vec<SourceText>,
) -> Result<(), Diagnostics> {
    let Some((path, text)) = option.split_once('=') else {
        let message = format!("`--set {option}`: write it as key.path=value");
        return Err(Diagnostics::single(message));
    };
    let file = sources.len();
    let name = format!("--set {}", path.trim());
    sources.push(SourceText { name, text: text.trim().to_owned() });
    let text = &sources[file].text;
    let range = 0..text.len();
    let item = match DeValue::parse(text) {
        Ok(value) => convert(value, file),
        Err(_) => Item { value: Datum::Text(text.clone()), span: Span { file, range } },
    };
    let keys: Vec<&str> = path.split('.').map(str::trim).collect();
    if keys.iter().any(|key| key.is_empty()) {
        return Err(Diagnostics::single(format!(
            "`--set {option}`: the key path has an empty step"
        )));
    }
    let span = item.span.clone();
    let mut nested = item;
    for key in keys.iter().rev() {
        let mut table = Table::default();
        table.insert(key, span.clone(), nested);
        nested = Item { value: Datum::Table(table), span: span.clone() };
    }
    let Datum::Table(over) = nested.value else { unreachable!("at least one key") };
    root.overlay(over);
    Ok(())
}
