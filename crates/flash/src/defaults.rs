//! Settings from declared defaults, for tests, benches and the conformance suite, which have no
//! scenario.

use hybridsim_config::check;
use hybridsim_config::param::{EntryChoice, Param, Settings, Value};
use hybridsim_config::registry::Registry;

/// All FTLs, policies and devices of this crate.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    crate::register(&mut registry);
    registry
}

/// The defaults of `params`; parameters without a default are omitted. `registry` provides the
/// defaults of entries.
pub fn settings(params: &[Param], registry: &Registry) -> Settings {
    check::defaults(params, registry)
}

/// The entry of `category` called `name` with its own defaults.
pub fn entry(category: &str, name: &str, registry: &Registry) -> Value {
    let found = registry.descriptions(category).find(|entry| entry.name == name);
    let params = found.map_or(&[][..], |entry| entry.params);
    Value::Entry(EntryChoice { name: name.to_owned(), settings: settings(params, registry) })
}
