//! What a parameter file says, before anybody asks what it means.

use crate::source::{Place, Trouble, quote};

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub place: Place,
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
    pub place: Place,
    pub kind: String,
    pub name: String,
    /// The earlier block it starts from.
    pub parent: Option<String>,
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    pub place: Place,
    pub item: Item,
}

/// A component and what hangs below it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub place: Place,
    pub kind: String,
    pub name: String,
    pub children: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    Block(Block),
    Instantiate { place: Place, names: Vec<(String, Place)>, spec: String },
    Topology(Node),
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

    fn wrong<T>(&self, expected: &str) -> Result<T, Trouble> {
        Err(Trouble::new(self.place, format!("expected {expected}, found {}", self.noun())))
    }

    pub fn number(&self) -> Result<f64, Trouble> {
        match self.value {
            Value::Whole(n) => Ok(n as f64),
            Value::Number(x) => Ok(x),
            _ => self.wrong("a number"),
        }
    }

    /// A number from `min` to `max`.
    pub fn number_in(&self, min: f64, max: f64) -> Result<f64, Trouble> {
        match self.number()? {
            x if (min..=max).contains(&x) => Ok(x),
            _ => self.wrong(&format!("a number from {min} to {max}")),
        }
    }

    /// A whole number from `min` to `max`; `3.0` is one.
    pub fn whole_in(&self, min: i64, max: i64) -> Result<i64, Trouble> {
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
    pub fn flag(&self) -> Result<bool, Trouble> {
        Ok(self.whole_in(-1, 255)? != 0)
    }

    pub fn text(&self) -> Result<&str, Trouble> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => self.wrong("a word"),
        }
    }

    pub fn list(&self) -> Result<&[Item], Trouble> {
        match &self.value {
            Value::List(items) => Ok(items),
            _ => self.wrong("a list such as [ a, b ]"),
        }
    }

    pub fn block(&self) -> Result<&Block, Trouble> {
        match &self.value {
            Value::Block(block) => Ok(block),
            _ => self.wrong("a block such as kind { ... }"),
        }
    }

    /// The words of a list of words.
    pub fn words(&self) -> Result<Vec<(String, Place)>, Trouble> {
        self.list()?.iter().map(|item| Ok((item.text()?.to_owned(), item.place))).collect()
    }
}

impl Block {
    /// The value of `key`; the last one if it is given again.
    pub fn get(&self, key: &str) -> Option<&Item> {
        self.entries.iter().rev().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    pub fn need(&self, key: &str) -> Result<&Item, Trouble> {
        self.get(key).ok_or_else(|| {
            let name = if self.name.is_empty() { &self.kind } else { &self.name };
            Trouble::new(self.place, format!("{} lacks {}", quote(name), quote(key)))
        })
    }

    /// Puts `item` in the place of what `key` was, or behind everything.
    pub fn set(&mut self, key: &str, place: Place, item: Item) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => *entry = Entry { key: key.to_owned(), place, item },
            None => self.entries.push(Entry { key: key.to_owned(), place, item }),
        }
    }

    /// This block laid over `parent`: its own keys count, the parent's fill the gaps.
    pub fn over(&self, parent: &Self) -> Self {
        let mut whole = Self {
            place: self.place,
            kind: parent.kind.clone(),
            name: self.name.clone(),
            parent: None,
            entries: parent.entries.clone(),
        };
        for entry in &self.entries {
            whole.set(&entry.key, entry.place, entry.item.clone());
        }
        whole
    }
}
