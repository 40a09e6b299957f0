//! Keys without effect: parameters that the user gave and that cannot change the run, by the
//! conditions that they and their groups declare ([`Param::needs`], [`Param::within`]).

use crate::check::join;
use crate::param::{Kind, Param, Settings, Value};
use crate::registry::Registry;
use std::fmt;

/// A condition on another parameter, by the words of [`Value::word`]. A path such as `ftl.gc` leads
/// into the entry that a parameter of the same table chooses, or into its table; `^.timing` names a
/// parameter of the table around this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Needs {
    /// The parameter has one of these values.
    Is(&'static str, &'static [&'static str]),
    /// The parameter has none of these values.
    Not(&'static str, &'static [&'static str]),
    /// The entry that the parameter chooses provides a capability
    /// ([`Entry::provides`](crate::registry::Entry::provides)).
    Provides(&'static str, &'static str),
    /// One of these conditions is met at least.
    Any(&'static [Needs]),
}

/// A table of settings with its declarations.
#[derive(Clone, Copy)]
pub struct Declared<'a> {
    /// The values.
    pub settings: &'a Settings,
    /// The parameters of the table.
    pub params: &'a [Param],
    /// The entries that its parameters choose from.
    pub registry: &'a Registry,
    /// The table around it.
    pub parent: Option<&'a Declared<'a>>,
}

impl<'a> Declared<'a> {
    fn param(&self, name: &str) -> Option<&'a Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// The table of the entry that parameter `name` chooses, or that is its value.
    fn inner(&self, name: &str) -> Option<(&'a Settings, &'a [Param])> {
        match (self.settings.value(name)?, self.param(name)?.kind) {
            (Value::Entry(choice), Kind::Entry(category)) => {
                Some((&choice.settings, params_of(self.registry, category, &choice.name)))
            }
            (Value::Table(table), Kind::Table(params)) => Some((table, params)),
            _ => None,
        }
    }

    /// The table that holds the last name of `path`, and that name.
    fn follow(self, path: &str) -> Option<(Self, &str)> {
        match path.split_once('.') {
            None => Some((self, path)),
            Some(("^", rest)) => self.parent?.follow(rest),
            Some((first, rest)) => {
                let (settings, params) = self.inner(first)?;
                Self { settings, params, registry: self.registry, parent: None }.follow(rest)
            }
        }
    }

    fn word(&self, path: &str) -> Option<String> {
        let (table, name) = self.follow(path)?;
        table.settings.value(name).map(Value::word)
    }

    fn provides(&self, path: &str, capability: &str) -> bool {
        let Some((table, name)) = self.follow(path) else { return false };
        let (Some(Value::Entry(choice)), Some(param)) =
            (table.settings.value(name), table.param(name))
        else {
            return false;
        };
        let Kind::Entry(category) = param.kind else { return false };
        self.registry.provides(category, &choice.name).contains(&capability)
    }
}

impl Needs {
    /// The parameter has a value.
    pub const fn given(name: &'static str) -> Self {
        Self::Not(name, &["absent"])
    }

    /// The parameter has a value and is not zero.
    pub const fn above_zero(name: &'static str) -> Self {
        Self::Not(name, &["absent", "0"])
    }

    /// The parameter has no value.
    pub const fn absent(name: &'static str) -> Self {
        Self::Is(name, &["absent"])
    }

    /// Whether `table` meets the condition.
    pub fn is_met(&self, table: &Declared<'_>) -> bool {
        let has = |name: &str, words: &[&str]| {
            words.contains(&table.word(name).as_deref().unwrap_or("absent"))
        };
        match *self {
            Self::Is(name, words) => has(name, words),
            Self::Not(name, words) => !has(name, words),
            Self::Provides(name, capability) => table.provides(name, capability),
            Self::Any(needs) => needs.iter().any(|need| need.is_met(table)),
        }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Not(name, words) if !words.contains(&"absent") && !words.contains(&"0") => {
                write!(f, "has no effect with `{name} = {}`", listed(words))
            }
            _ => {
                write!(f, "has an effect only with ")?;
                self.write_condition(f)
            }
        }
    }
}

/// Values as a list, `""` for an empty text.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|it| if it.is_empty() { "\"\"" } else { it }).collect();
    quoted.join("` or `")
}

impl Needs {
    fn write_condition(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Is(name, &["absent"]) => write!(f, "no `{name}`"),
            Self::Is(name, words) => write!(f, "`{name} = {}`", listed(words)),
            Self::Not(name, &["absent"]) => write!(f, "`{name}`"),
            Self::Not(name, words) if words.contains(&"0") => write!(f, "`{name}` above 0"),
            Self::Not(name, words) => {
                write!(f, "`{name}` other than `{}`", listed(words))
            }
            Self::Provides(name, capability) => write!(f, "a `{name}` that has {capability}"),
            Self::Any(needs) => {
                for (at, need) in needs.iter().enumerate() {
                    if at > 0 {
                        write!(f, " or ")?;
                    }
                    need.write_condition(f)?;
                }
                Ok(())
            }
        }
    }
}

/// The parameters of entry `name` of `category`.
fn params_of<'a>(registry: &Registry, category: &str, name: &str) -> &'a [Param] {
    let entry = registry.descriptions(category).find(|it| it.name == name);
    entry.map_or(&[][..], |entry| entry.params)
}

/// The keys of `settings`, a table of `params` at `path`, that the user gave and that have no
/// effect. Each with the reason, as the end of a sentence.
pub fn without_effect(
    settings: &Settings,
    params: &[Param],
    registry: &Registry,
    path: &str,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    collect(&Declared { settings, params, registry, parent: None }, path, &mut found);
    found
}

fn collect(table: &Declared<'_>, path: &str, found: &mut Vec<(String, String)>) {
    let registry = table.registry;
    let within = |settings, params| Declared { settings, params, registry, parent: Some(table) };
    for (name, value, given) in table.settings.values() {
        let Some(param) = table.param(name) else { continue };
        let key = join(path, name);
        // A required parameter cannot be left out.
        let unmet = param.all_needs().find(|need| !need.is_met(table));
        if let Some(unmet) = unmet.filter(|_| given && param.default.is_some()) {
            found.push((key, unmet.to_string()));
            continue;
        }
        match (value, param.kind) {
            (Value::Entry(choice), Kind::Entry(category)) => {
                let params = params_of(registry, category, &choice.name);
                collect(&within(&choice.settings, params), &key, found);
            }
            (Value::Entries(choices), Kind::Entries(category)) => {
                for (at, choice) in choices.iter().enumerate() {
                    let params = params_of(registry, category, &choice.name);
                    collect(&within(&choice.settings, params), &format!("{key}[{at}]"), found);
                }
            }
            (Value::Table(inner), Kind::Table(params)) => {
                collect(&within(inner, params), &key, found);
            }
            (Value::Tables(tables), Kind::Tables(params)) => {
                for (at, inner) in tables.iter().enumerate() {
                    collect(&within(inner, params), &format!("{key}[{at}]"), found);
                }
            }
            _ => {}
        }
    }
}
