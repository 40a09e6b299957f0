//! The syntax tree of a parameter file.

use crate::source::{LocatedError, Result, SourceLocation, quote};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub location: SourceLocation,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Whole(i64),
    Number(f64),
    Text(Box<str>),
    List(Vec<Item>),
    Block(Box<Block>),
}

/// `kind name { key = value, ... }`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub location: SourceLocation,
    pub kind: String,
    pub name: String,
    /// The earlier block it inherits from.
    pub parent: Option<String>,
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    pub location: SourceLocation,
    pub item: Item,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TopologyNode {
    pub location: SourceLocation,
    pub kind: String,
    pub name: String,
    pub children: Vec<TopologyNode>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    Block(Block),
    Instantiate { location: SourceLocation, names: Vec<(String, SourceLocation)>, spec: String },
    Topology(TopologyNode),
}

impl Item {
    pub fn noun(&self) -> String {
        match &self.value {
            Value::Whole(n) => n.to_string(),
            Value::Number(x) => x.to_string(),
            Value::Text(text) => quote(text),
            Value::List(_) => "a list".to_owned(),
            Value::Block(block) => format!("a block {}", quote(&block.kind)),
        }
    }

    fn wrong<T>(&self, expected: &str) -> Result<T> {
        Err(LocatedError::new(self.location, format!("expected {expected}, found {}", self.noun())))
    }

    pub fn number(&self) -> Result<f64> {
        match self.value {
            Value::Whole(n) => Ok(n as f64),
            Value::Number(x) => Ok(x),
            _ => self.wrong("a number"),
        }
    }

    /// A number from `min` to `max`.
    pub fn number_in(&self, min: f64, max: f64) -> Result<f64> {
        match self.number()? {
            x if (min..=max).contains(&x) => Ok(x),
            _ => self.wrong(&format!("a number from {min} to {max}")),
        }
    }

    /// A whole number from `min` to `max`; `3.0` is one.
    pub fn whole_in(&self, min: i64, max: i64) -> Result<i64> {
        let whole = match self.value {
            Value::Whole(n) => Some(n),
            Value::Number(x) if x.fract() == 0.0 && x.abs() < 9e15 => Some(x as i64),
            _ => None,
        };
        match whole {
            Some(n) if (min..=max).contains(&n) => Ok(n),
            _ => self.wrong(&format!("a whole number from {min} to {max}")),
        }
    }

    /// Anything but 0 counts as yes, as it does in C.
    pub fn flag(&self) -> Result<bool> {
        Ok(self.whole_in(-1, 255)? != 0)
    }

    pub fn text(&self) -> Result<&str> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => self.wrong("a word"),
        }
    }

    pub fn list(&self) -> Result<&[Item]> {
        match &self.value {
            Value::List(items) => Ok(items),
            _ => self.wrong("a list such as [ a, b ]"),
        }
    }

    pub fn block(&self) -> Result<&Block> {
        match &self.value {
            Value::Block(block) => Ok(block),
            _ => self.wrong("a block such as kind { ... }"),
        }
    }

    /// The words of a list of words.
    pub fn words(&self) -> Result<Vec<(String, SourceLocation)>> {
        self.list()?.iter().map(|item| Ok((item.text()?.to_owned(), item.location))).collect()
    }
}

impl Block {
    /// The value of `key`; the last one if it is given again.
    pub fn get(&self, key: &str) -> Option<&Item> {
        self.entries.iter().rev().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    pub fn need(&self, key: &str) -> Result<&Item> {
        self.get(key).ok_or_else(|| {
            let name = if self.name.is_empty() { &self.kind } else { &self.name };
            LocatedError::new(self.location, format!("{} lacks {}", quote(name), quote(key)))
        })
    }

    /// Puts `item` in the location of what `key` was, or behind everything.
    pub fn set(&mut self, key: &str, location: SourceLocation, item: Item) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => *entry = Entry { key: key.to_owned(), location, item },
            None => self.entries.push(Entry { key: key.to_owned(), location, item }),
        }
    }

    /// This block laid over `parent`: its own keys count, the parent's fill the gaps.
    pub fn over(&self, parent: &Self) -> Self {
        let mut whole = Self {
            location: self.location,
            kind: parent.kind.clone(),
            name: self.name.clone(),
            parent: None,
            entries: parent.entries.clone(),
        };
        for entry in &self.entries {
            whole.set(&entry.key, entry.location, entry.item.clone());
        }
        whole
    }
}
