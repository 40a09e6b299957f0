//! Keys without effect: parameters that the user gave and that cannot change the run, by the
//! conditions that they and their groups declare ([`Param::needs`], [`Param::within`]); and the
//! entries that the other keys choose.

use crate::check::join;
use crate::effect::Needs;
use crate::param::{EntryChoice, Kind, Param, Settings, Value};
use crate::registry::Registry;

/// A table of settings with its declarations.
#[derive(Clone, Copy)]
struct Declared<'a> {
    settings: &'a Settings,
    params: &'a [Param],
    registry: &'a Registry,
    /// The table around this one.
    parent: Option<&'a Declared<'a>>,
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

    /// Whether this table meets the condition `need`.
    fn meets(&self, need: &Needs) -> bool {
        let has = |name: &str, words: &[&str]| {
            words.contains(&self.word(name).as_deref().unwrap_or("absent"))
        };
        match *need {
            Needs::Is(name, words) => has(name, words),
            Needs::Not(name, words) => !has(name, words),
            Needs::Provides(name, capability) => self.provides(name, capability),
            Needs::Any(needs) => needs.iter().any(|need| self.meets(need)),
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
    let table = Declared { settings, params, registry, parent: None };
    walk(&table, path, &mut |it| {
        // A required parameter cannot be left out.
        let unmet = it.unmet.filter(|_| it.is_given && it.param.default.is_some());
        found.extend(unmet.map(|unmet| (it.key.clone(), unmet.to_string())));
        unmet.is_none()
    });
    found
}

/// The entries that `settings`, a table of `params`, chooses, with their categories: those of
/// parameters that have an effect.
pub fn chosen_entries(
    settings: &Settings,
    params: &[Param],
    registry: &Registry,
) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let table = Declared { settings, params, registry, parent: None };
    walk(&table, "", &mut |it| {
        match (it.value, it.param.kind) {
            _ if it.unmet.is_some() => {}
            (Value::Entry(choice), Kind::Entry(category)) => {
                found.push((category, choice.name.clone()));
            }
            (Value::Entries(choices), Kind::Entries(category)) => {
                found.extend(choices.iter().map(|choice| (category, choice.name.clone())));
            }
            _ => {}
        }
        it.unmet.is_none()
    });
    found
}

/// A parameter with its value.
struct Walked<'a> {
    key: String,
    param: &'a Param,
    value: &'a Value,
    /// Whether the user gave it.
    is_given: bool,
    /// The first of its conditions that is not met.
    unmet: Option<&'static Needs>,
}

/// Calls `visit` with each value of `table`, at `path`, and with those of tables and entries
/// within a value for which it returns `true`.
fn walk(table: &Declared<'_>, path: &str, visit: &mut dyn FnMut(&Walked<'_>) -> bool) {
    let registry = table.registry;
    for (name, value, is_given) in table.settings.values() {
        let Some(param) = table.param(name) else { continue };
        let key = join(path, name);
        let unmet = param.all_needs().find(|need| !table.meets(need));
        let walked = Walked { key, param, value, is_given, unmet };
        if !visit(&walked) {
            continue;
        }
        let key = walked.key;
        let mut within = |settings, params, key: &str| {
            walk(&Declared { settings, params, registry, parent: Some(table) }, key, visit);
        };
        let entry = |category, choice: &EntryChoice| params_of(registry, category, &choice.name);
        match (value, param.kind) {
            (Value::Entry(choice), Kind::Entry(category)) => {
                within(&choice.settings, entry(category, choice), &key);
            }
            (Value::Entries(choices), Kind::Entries(category)) => {
                for (at, choice) in choices.iter().enumerate() {
                    within(&choice.settings, entry(category, choice), &format!("{key}[{at}]"));
                }
            }
            (Value::Table(inner), Kind::Table(params)) => within(inner, params, &key),
            (Value::Tables(tables), Kind::Tables(params)) => {
                for (at, inner) in tables.iter().enumerate() {
                    within(inner, params, &format!("{key}[{at}]"));
                }
            }
            _ => {}
        }
    }
}
