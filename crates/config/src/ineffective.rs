//! Keys without effect: parameters that the user gave and that cannot change the run, by the
//! conditions that they and their groups declare ([`Param::needs`], [`Param::within`]).

use crate::check::join;
use crate::effect::Needs;
use crate::param::{Kind, Param, Settings, Value};
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
        let unmet = param.all_needs().find(|need| !table.meets(need));
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
