//! Parameters: declared by the component they belong to, checked in one place, read by name.
//!
//! A component declares a `&'static [Param]`, directly or with [`params!`](crate::params!). The
//! scenario reader turns text into [`Settings`] that hold every declared parameter, checked for
//! type and range. The component's builder reads them and checks only combinations.

use crate::effect::Needs;
use hybridsim_engine::SimDuration;
use std::collections::BTreeMap;
use std::fmt;

/// The values a parameter takes, and how they are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number.
    Count {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A plain number; also written as a percentage string such as `"7%"`.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A time such as `"25us"`.
    Duration,
    /// A size such as `"4KiB"`.
    Bytes,
    /// A mean size such as `"4.38KiB"`, which need not be a whole number of bytes.
    MeanBytes,
    /// A rate such as `"800MB/s"`.
    Rate,
    /// A rotation speed such as `"7200rpm"`.
    Rpm,
    /// Power such as `"1.7W"`.
    Power,
    /// Energy such as `"9.9uJ"`.
    Energy,
    /// `true` or `false`.
    Flag,
    /// Free text, such as a file name.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A registered entry of a category: `"greedy"`, or `{ kind = "greedy", ... }` with parameters.
    Entry(&'static str),
    /// Another component of the scenario, by name.
    Component,
    /// Several other components, by name.
    Components,
    /// A list of whole numbers.
    Counts,
    /// A list of numbers.
    Numbers,
    /// A list of `[number, time]` pairs, the numbers ascending.
    Curve,
    /// A table with these parameters.
    Table(&'static [Param]),
    /// A list of tables with these parameters.
    Tables(&'static [Param]),
    /// A list of registered entries of a category, each written as for [`Kind::Entry`].
    Entries(&'static str),
}

/// One parameter of a component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// The key in the scenario, `snake_case`.
    pub name: &'static str,
    /// Meaning, in one or two sentences.
    pub help: &'static str,
    /// The values it takes.
    pub kind: Kind,
    /// The default as it would be written in TOML; `None` makes the parameter required, `Some("")`
    /// makes it optional without a value.
    pub default: Option<&'static str>,
    /// Conditions on other parameters; it has an effect only where all of them are met.
    pub needs: &'static [Needs],
    /// Conditions of the groups that include it, the innermost first.
    pub group_needs: [&'static [Needs]; GROUPS_MAX],
}

/// Depth to which groups of parameters can have conditions.
pub const GROUPS_MAX: usize = 2;

impl Param {
    /// A parameter that must be given.
    pub const fn required(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, help, kind, default: None, needs: &[], group_needs: [&[]; GROUPS_MAX] }
    }

    /// A parameter with a default, written as in TOML.
    pub const fn with(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            help,
            kind,
            default: Some(default),
            needs: &[],
            group_needs: [&[]; GROUPS_MAX],
        }
    }

    /// A parameter that may be absent.
    pub const fn optional(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, help, kind, default: Some(""), needs: &[], group_needs: [&[]; GROUPS_MAX] }
    }

    /// Declares what the parameter needs of others to have an effect; all of it must be met.
    #[must_use]
    pub const fn needs(mut self, needs: &'static [Needs]) -> Self {
        self.needs = needs;
        self
    }

    /// Adds the conditions of a group that includes the parameter.
    ///
    /// # Panics
    /// If more than [`GROUPS_MAX`] groups around it have conditions; while compiling, as
    /// declarations are constants.
    #[must_use]
    pub const fn within(mut self, needs: &'static [Needs]) -> Self {
        if needs.is_empty() {
            return self;
        }
        let mut at = 0;
        while !self.group_needs[at].is_empty() {
            at += 1;
        }
        self.group_needs[at] = needs;
        self
    }

    /// All conditions of the parameter and of its groups.
    pub fn all_needs(&self) -> impl Iterator<Item = &'static Needs> + use<> {
        self.group_needs.into_iter().rev().flatten().chain(self.needs)
    }
}

/// The number of parameters in `groups`.
pub const fn total(groups: &[Group]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < groups.len() {
        count += groups[at].0.len();
        at += 1;
    }
    count
}

/// A list of parameters, and the conditions on all of them.
pub type Group = (&'static [Param], &'static [Needs]);

/// Concatenates groups of parameters.
///
/// # Panics
/// If they are not `N` together; while compiling, as all lists are constants.
pub const fn grouped<const N: usize>(groups: &[Group]) -> [Param; N] {
    let mut all = [Param::required("", Kind::Flag, ""); N];
    let (mut count, mut group) = (0, 0);
    while group < groups.len() {
        let (list, needs) = groups[group];
        let mut at = 0;
        while at < list.len() {
            all[count] = list[at].within(needs);
            (count, at) = (count + 1, at + 1);
        }
        group += 1;
    }
    assert!(count == N, "a parameter too few");
    all
}

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// [`Kind::Count`].
    Count(u64),
    /// [`Kind::Number`], [`Kind::Rpm`], [`Kind::Power`] (watts), [`Kind::Energy`] (joules),
    /// [`Kind::MeanBytes`] (bytes).
    Number(f64),
    /// [`Kind::Duration`].
    Duration(SimDuration),
    /// [`Kind::Bytes`]; bytes.
    Bytes(u64),
    /// [`Kind::Rate`]; bytes per second.
    Rate(u64),
    /// [`Kind::Flag`].
    Flag(bool),
    /// [`Kind::Text`], [`Kind::Choice`], [`Kind::Component`].
    Text(String),
    /// [`Kind::Entry`].
    Entry(EntryChoice),
    /// [`Kind::Components`].
    Texts(Vec<String>),
    /// [`Kind::Counts`].
    Counts(Vec<u64>),
    /// [`Kind::Numbers`].
    Numbers(Vec<f64>),
    /// [`Kind::Curve`].
    Curve(Vec<(f64, SimDuration)>),
    /// [`Kind::Table`].
    Table(Settings),
    /// [`Kind::Tables`].
    Tables(Vec<Settings>),
    /// [`Kind::Entries`].
    Entries(Vec<EntryChoice>),
}

impl Value {
    /// The value in one word, for conditions on it: a name, a number, `true`, the length of a list,
    /// `absent` for an empty one.
    pub fn word(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Entry(choice) => choice.name.clone(),
            Self::Flag(flag) => flag.to_string(),
            Self::Count(count) | Self::Bytes(count) | Self::Rate(count) => count.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Duration(time) => time.as_ns().to_string(),
            Self::Texts(list) => length(list),
            Self::Counts(list) => length(list),
            Self::Numbers(list) => length(list),
            Self::Curve(list) => length(list),
            Self::Tables(list) => length(list),
            Self::Entries(list) => length(list),
            Self::Table(_) => "given".to_owned(),
        }
    }
}

/// The length of a list in a word.
fn length<T>(list: &[T]) -> String {
    if list.is_empty() { "absent".to_owned() } else { list.len().to_string() }
}
/// The chosen entry of a category with its own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryChoice {
    /// The entry's name.
    pub name: String,
    /// The entry's parameters.
    pub settings: Settings,
}

/// The checked parameters of one component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    slots: BTreeMap<&'static str, Slot>,
}

/// A value and where it comes from.
#[derive(Clone, Debug)]
struct Slot {
    value: Value,
    /// The user wrote it, and it is not the default.
    given: bool,
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// A problem with a component's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The parameter to point at; empty for the component as a whole.
    pub param: &'static str,
    /// The problem and its remedy.
    pub message: String,
}

impl Problem {
    /// A problem with `param`.
    pub fn new(param: &'static str, message: impl Into<String>) -> Self {
        Self { param, message: message.into() }
    }
}

/// The result of a builder: the component, or all problems with its parameters.
pub type Built<T> = Result<Box<T>, Vec<Problem>>;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.param.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.param, self.message)
        }
    }
}

macro_rules! getter {
    (
        $(#[$doc:meta])* $name:ident, $optional:ident, $variant:ident, $type:ty,
        $value:ident => $out:expr
    ) => {
        $(#[$doc])*
        ///
        /// # Panics
        /// If the component did not declare such a parameter, or declared it as optional.
        pub fn $name(&self, name: &str) -> $type {
            self.$optional(name).unwrap_or_else(|| panic!("parameter `{name}` has no value"))
        }

        $(#[$doc])*
        /// `None` when an optional parameter was not given.
        pub fn $optional(&self, name: &str) -> Option<$type> {
            match self.value(name)? {
                Value::$variant($value) => Some($out),
                other => panic!("parameter `{name}` was declared with another kind: {other:?}"),
            }
        }
    };
}

impl Settings {
    /// Sets a value; used by the scenario reader and by tests. A path such as `ftl.gc` leads into
    /// the entry or the table that a parameter holds.
    ///
    /// # Panics
    /// If the path leads to neither.
    pub fn set(&mut self, path: &'static str, value: Value) {
        let Some((first, rest)) = path.split_once('.') else {
            self.slots.insert(path, Slot { value, given: false });
            return;
        };
        match self.slots.get_mut(first).map(|slot| &mut slot.value) {
            Some(Value::Entry(EntryChoice { settings: inner, .. }) | Value::Table(inner)) => {
                inner.set(rest, value);
            }
            other => panic!("`{path}` does not lead to a parameter: {other:?}"),
        }
    }

    /// As [`Settings::set`], for building settings in one expression.
    #[must_use]
    pub fn and(mut self, name: &'static str, value: Value) -> Self {
        self.set(name, value);
        self
    }

    /// The value of a parameter, if it has one. A path such as `ftl.gc` leads into the entry or the
    /// table that a parameter holds.
    pub fn value(&self, path: &str) -> Option<&Value> {
        let Some((first, rest)) = path.split_once('.') else {
            return self.slots.get(path).map(|slot| &slot.value);
        };
        match &self.slots.get(first)?.value {
            Value::Entry(EntryChoice { settings: inner, .. }) | Value::Table(inner) => {
                inner.value(rest)
            }
            _ => None,
        }
    }

    /// Whether the parameter has a value.
    pub fn has(&self, path: &str) -> bool {
        self.value(path).is_some()
    }

    /// All values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.slots.iter().map(|(name, slot)| (*name, &slot.value))
    }

    /// All values, by name, and whether the user gave them.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&'static str, &Value, bool)> {
        self.slots.iter().map(|(name, slot)| (*name, &slot.value, slot.given))
    }

    /// Calls `change` with the text of every parameter `name`, here and in all entries and tables
    /// that parameters hold.
    pub fn change_texts(&mut self, name: &str, change: &mut dyn FnMut(&mut String)) {
        for (key, slot) in &mut self.slots {
            match &mut slot.value {
                Value::Text(text) if *key == name => change(text),
                Value::Entry(choice) => choice.settings.change_texts(name, change),
                Value::Entries(choices) => {
                    choices.iter_mut().for_each(|it| it.settings.change_texts(name, change));
                }
                Value::Table(table) => table.change_texts(name, change),
                Value::Tables(tables) => {
                    tables.iter_mut().for_each(|table| table.change_texts(name, change));
                }
                _ => {}
            }
        }
    }

    /// Records that the user wrote the parameter `name` and that its value is not the default.
    pub fn mark_given(&mut self, name: &str) {
        if let Some(slot) = self.slots.get_mut(name) {
            slot.given = true;
        }
    }

    /// Whether [`Settings::mark_given`] was called for the parameter at `path`, such as `ftl.gc`.
    pub fn is_given(&self, path: &str) -> bool {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        self.slots.get(first).is_some_and(|slot| match (&slot.value, rest) {
            (_, "") => slot.given,
            (Value::Entry(choice), rest) => choice.settings.is_given(rest),
            (Value::Table(table), rest) => table.is_given(rest),
            _ => false,
        })
    }

    getter!(/** A whole number. */ count, count_opt, Count, u64, v => *v);
    getter!(/** A number, rpm, watts or joules. */ number, number_opt, Number, f64, v => *v);
    getter!(/** A time. */ duration, duration_opt, Duration, SimDuration, v => *v);
    getter!(/** A size in bytes. */ bytes, bytes_opt, Bytes, u64, v => *v);
    getter!(/** A rate in bytes per second. */ rate, rate_opt, Rate, u64, v => *v);
    getter!(/** A flag. */ flag, flag_opt, Flag, bool, v => *v);
    getter!(/** A text, choice or component name. */ text, text_opt, Text, &str, v => v.as_str());
    getter!(/** A chosen entry. */ entry, entry_opt, Entry, &EntryChoice, v => v);
    getter!(/** Component names. */ texts, texts_opt, Texts, &[String], v => v.as_slice());
    getter!(/** Whole numbers. */ counts, counts_opt, Counts, &[u64], v => v.as_slice());
    getter!(/** Numbers. */ numbers, numbers_opt, Numbers, &[f64], v => v.as_slice());
    getter!(/** A curve. */ curve, curve_opt, Curve, &[(f64, SimDuration)], v => v.as_slice());
    getter!(/** Tables. */ tables, tables_opt, Tables, &[Settings], v => v.as_slice());
}
