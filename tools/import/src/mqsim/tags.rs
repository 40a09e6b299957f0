//! Tags of an XML file, and what is wrong in it.

use crate::source::{ImportError, quote};
use crate::table::TomlTable;
use roxmltree::{Document, Node};
use std::fmt::Display;
use std::str::FromStr;

/// Tags without an effect on results, but for random numbers.
const NO_EFFECT: &[&str] = &[
    "Enable_ResponseTime_Logging",
    "ResponseTime_Logging_Period_Length",
    "Memory_Type",
    "Flash_Comm_Protocol",
    "Caching_Mechanism",
    "Seed",
];

/// Tags without a counterpart: how they begin, the value for which that makes no difference, and
/// what happens instead.
const NO_COUNTERPART: &[(&str, &str, &str)] = &[
    ("Data_Cache_DRAM_", "", "accesses to the DRAM take no time"),
    ("Data_Cache_Sharing_Mode", "SHARED", "the write buffer is shared"),
    ("CMT_Sharing_Mode", "SHARED", "the cached mapping table is shared"),
    ("Plane_Allocation_Scheme", "CWDP", "writes go to channels, dies and planes in turn"),
    ("GC_Hard_Threshold", "", "garbage collection has one threshold"),
    ("Preferred_suspend_", "", "a read suspends at once, a write never does"),
];

pub fn parsed<'a>(
    (name, text): &'a (String, String),
    root: &str,
) -> Result<Document<'a>, ImportError> {
    let document = Document::parse(text).map_err(|error| {
        let at = error.pos();
        let at = Some(format!("{name}:{}:{}", at.row, at.col));
        ImportError { at, message: format!("not XML: {error}") }
    })?;
    let element = document.root_element();
    let found = element.tag_name().name();
    if found == root {
        return Ok(document);
    }
    let message = format!("expected {}, found {}", quote(root), quote(found));
    Err(ImportError { at: Some(located(name, element)), message })
}

pub fn located(file: &str, node: Node<'_, '_>) -> String {
    let at = node.document().text_pos_at(node.range().start);
    format!("{file}:{}:{}", at.row, at.col)
}

/// A tag with its value.
#[derive(Clone, Debug)]
pub struct Tag {
    pub name: String,
    pub value: String,
    /// `file:line:column`.
    pub at: String,
}

impl Tag {
    pub fn error(&self, message: impl Display) -> ImportError {
        let message = format!("{} {message}", quote(&self.name));
        ImportError { at: Some(self.at.clone()), message }
    }

    pub fn is(&self, found: impl Display) -> ImportError {
        self.error(format_args!("is {}; {found}", quote(&self.value)))
    }

    /// A whole number.
    pub fn whole(&self) -> Result<u64, ImportError> {
        self.value.parse().map_err(|_| self.is("expected a whole number"))
    }

    /// A whole number, at least 1.
    pub fn count(&self) -> Result<u64, ImportError> {
        match self.whole()? {
            0 => Err(self.is("expected at least 1")),
            count => Ok(count),
        }
    }

    /// A finite number.
    pub fn number(&self) -> Result<f64, ImportError> {
        let number = f64::from_str(&self.value).ok().filter(|number| number.is_finite());
        number.ok_or_else(|| self.is("expected a number"))
    }

    pub fn flag(&self) -> Result<bool, ImportError> {
        self.choice(&[("true", true), ("false", false)])
    }

    /// The value that `words` gives.
    pub fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, ImportError> {
        let found = words.iter().find(|(word, _)| self.value.eq_ignore_ascii_case(word));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.is(format_args!("expected {}", known.join(", ")))
        })
    }

    /// A fraction of 1, from one of `whole`.
    pub fn share(&self, whole: f64) -> Result<f64, ImportError> {
        match self.number()? {
            value if (0.0..=whole).contains(&value) => Ok(value / whole),
            _ => Err(self.is(format_args!("expected 0 to {whole}"))),
        }
    }

    pub fn comment(&self) -> String {
        let line = self.at.rsplit('/').next().unwrap_or(&self.at);
        let line = line.rsplit_once(':').map_or(line, |(line, _)| line);
        format!("{} = {}, {line}", self.name, self.value)
    }
}

/// The tags of an element that have not been converted.
#[derive(Debug)]
pub struct Tags {
    /// `file:line:column` of the element.
    pub at: String,
    pub tags: Vec<Tag>,
    pub taken: Vec<String>,
    pub warnings: Vec<String>,
}

impl Tags {
    pub fn new(file: &str, element: Node<'_, '_>) -> Self {
        let is_leaf = |node: &Node<'_, '_>| {
            node.is_element() && !node.children().any(|child| child.is_element())
        };
        let text = |node: Node<'_, '_>| -> String {
            node.children().filter_map(|child| child.text().filter(|_| child.is_text())).collect()
        };
        let tags = element.descendants().filter(is_leaf).map(|node| Tag {
            name: node.tag_name().name().to_owned(),
            value: text(node).trim().to_owned(),
            at: located(file, node),
        });
        let at = located(file, element);
        Self { at, tags: tags.collect(), taken: Vec::new(), warnings: Vec::new() }
    }

    /// The last tag called `name`, as MQSim reads it.
    pub fn take(&mut self, name: &str) -> Option<Tag> {
        let at = self.tags.iter().rposition(|tag| tag.name == name)?;
        self.taken.push(name.to_owned());
        Some(self.tags.remove(at))
    }

    pub fn need(&mut self, name: &str) -> Result<Tag, ImportError> {
        self.take(name).ok_or_else(|| {
            let message = format!("{} is missing", quote(name));
            ImportError { at: Some(self.at.clone()), message }
        })
    }

    /// A switch, which is on unless it is given.
    pub fn flag(&mut self, name: &str) -> Result<bool, ImportError> {
        self.take(name).map_or(Ok(true), |tag| tag.flag())
    }

    /// Sets `key` to a tag's whole number, with its unit.
    pub fn set(
        &mut self,
        name: &str,
        key: &str,
        unit: &str,
        lines: &mut TomlTable,
    ) -> Result<(), ImportError> {
        let tag = self.need(name)?;
        lines.set(key, format!("\"{}{unit}\"", tag.whole()?), tag.comment());
        Ok(())
    }

    pub fn warn(&mut self, tag: &Tag, why: impl Display) {
        self.warnings.push(format!("{}: {} {why}", tag.at, quote(&tag.name)));
    }

    /// Warns of the tags that are left.
    pub fn rest(&mut self) {
        for tag in std::mem::take(&mut self.tags) {
            let known = NO_COUNTERPART.iter().find(|(start, ..)| tag.name.starts_with(start));
            match known {
                _ if self.taken.contains(&tag.name) => {
                    self.warn(&tag, "is given again; the last value is used");
                }
                _ if NO_EFFECT.contains(&&*tag.name) => {}
                Some((_, neutral, _)) if tag.value.eq_ignore_ascii_case(neutral) => {}
                Some((.., why)) => self.warn(&tag, format_args!("is left out: {why}")),
                None => self.warn(&tag, "is left out: it is not known"),
            }
        }
    }
}
