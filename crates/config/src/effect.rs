//! Keys without effect: parameters that the user gave and that cannot change the run.
//!
//! A parameter has no effect when a condition it declares ([`Param::needs`]) is not met, or when
//! nothing has read it by the time the system is built.

use crate::check::join;
use crate::param::{Kind, Param, Settings, Value};
use crate::registry::Registry;
use std::fmt;

/// A condition on another parameter of the same table, by the words of [`Value::word`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Needs {
    /// The parameter has one of these values.
    Is(&'static str, &'static [&'static str]),
    /// The parameter has none of these values.
    Not(&'static str, &'static [&'static str]),
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

    /// Whether `settings` meet the condition.
    pub fn is_met(&self, settings: &Settings) -> bool {
        let (name, words, wanted) = match *self {
            Self::Is(name, words) => (name, words, true),
            Self::Not(name, words) => (name, words, false),
        };
        let value = settings.slots.get(name).map(|slot| slot.value.word());
        words.contains(&value.as_deref().unwrap_or("absent")) == wanted
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Is(name, words) => {
                write!(f, "has an effect only with `{name} = {}`", words.join("` or `"))
            }
            Self::Not(name, &["absent"]) => write!(f, "has an effect only with `{name}`"),
            Self::Not(name, words) if words.contains(&"0") => {
                write!(f, "has an effect only with `{name}` above 0")
            }
            Self::Not(name, words) => {
                write!(f, "has no effect with `{name} = {}`", words.join("` or `"))
            }
        }
    }
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
    for (name, slot) in &settings.slots {
        let Some(param) = params.iter().find(|param| param.name == *name) else { continue };
        let key = join(path, name);
        let unmet = param.needs.iter().find(|need| !need.is_met(settings));
        if slot.given
            && let Some(unmet) = unmet
        {
            found.push((key, unmet.to_string()));
            continue;
        }
        if slot.given && !slot.is_read() {
            found.push((key, "has no effect beside the other keys".to_owned()));
            continue;
        }
        match (&slot.value, param.kind) {
            (Value::Entry(choice), Kind::Entry(category)) => {
                let entry = registry.descriptions(category).find(|it| it.name == choice.name);
                let params = entry.map_or(&[][..], |entry| entry.params);
                found.extend(without_effect(&choice.settings, params, registry, &key));
            }
            (Value::Tables(tables), Kind::Tables(params)) => {
                for (at, table) in tables.iter().enumerate() {
                    found.extend(without_effect(table, params, registry, &format!("{key}[{at}]")));
                }
            }
            _ => {}
        }
    }
    found
}
