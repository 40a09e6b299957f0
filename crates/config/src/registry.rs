//! The registry: components, FTLs, policies, schedulers, generators and trace formats by name.
//!
//! Each module lists its entries in a const slice; the program collects them in one [`Registry`]
//! value, to which an outside crate adds its own. Everything that builds or runs a scenario takes
//! the registry as an argument, and it can be shared between threads. The registry sees only the
//! [`Description`] of an entry, so a new category of entries needs no change here.

use crate::param::{EntryChoice, Param, Settings};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use toml::{Table, Value};

/// The description of an entry, for listings, checks, schema and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The name used in scenarios, lower case with dashes.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The source: a paper, a datasheet, common knowledge.
    pub origin: &'static str,
    /// Declared parameters.
    pub params: &'static [Param],
}

/// Something that can be registered.
pub trait Entry: Any + Copy + Send + Sync {
    /// The category, such as `ftl`; the word used by `hybridsim list`.
    const CATEGORY: &'static str;

    /// Name, summary, origin and parameters.
    fn description(&self) -> Description;

    /// Capabilities that parameters of others may need ([`Needs::Provides`](crate::effect::Needs)),
    /// as nouns for a message.
    fn provides(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Implements [`Entry`] for a type with a field `description`: `entry!(SeekEntry, "seek-model")`.
/// `entry!(FtlEntry, "ftl", provides)` is for one with a field `provides` as well.
#[macro_export]
macro_rules! entry {
    ($type:ty, $category:literal $(, $provides:ident)?) => {
        impl $crate::registry::Entry for $type {
            const CATEGORY: &'static str = $category;

            fn description(&self) -> $crate::registry::Description {
                self.description
            }
            $(
                fn $provides(&self) -> &'static [&'static str] {
                    self.$provides
                }
            )?
        }
    };
}

/// An entry of a category.
#[derive(Clone)]
struct Registered {
    description: Description,
    provides: &'static [&'static str],
    entry: Arc<dyn Any + Send + Sync>,
}

/// Returns and clears the error that an entry's code raised in the current thread.
pub type PluginError = fn() -> Option<String>;

/// All entries of a program.
#[derive(Clone, Default)]
pub struct Registry {
    entries: BTreeMap<&'static str, Vec<Registered>>,
    types: BTreeMap<&'static str, TypeId>,
    plugin_error: Option<PluginError>,
    samples: BTreeMap<String, Table>,
    /// By category and name, what to do instead.
    absent: BTreeMap<(&'static str, &'static str), &'static str>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |list: &Vec<Registered>| list.iter().map(|it| it.description.name).collect();
        let all =
            self.entries.iter().map(|(category, list)| -> (_, Vec<_>) { (category, names(list)) });
        f.debug_map().entries(all).finish()
    }
}

impl Registry {
    /// Adds `entry`; it replaces one of the same category and name.
    pub fn add<E: Entry>(&mut self, entry: E) {
        let known = self.types.entry(E::CATEGORY).or_insert(TypeId::of::<E>());
        assert_eq!(*known, TypeId::of::<E>(), "category {} holds another type", E::CATEGORY);
        let description = entry.description();
        let entries = self.entries.entry(E::CATEGORY).or_default();
        entries.retain(|other| other.description.name != description.name);
        let provides = entry.provides();
        entries.push(Registered { description, provides, entry: Arc::new(entry) });
    }

    /// Adds all of `entries`.
    pub fn add_all<E: Entry>(&mut self, entries: &[E]) {
        for entry in entries {
            self.add(*entry);
        }
    }

    /// The entry of type `E` called `name`.
    pub fn find<E: Entry>(&self, name: &str) -> Option<E> {
        self.iter::<E>().find(|entry| entry.description().name == name)
    }

    /// The entry of type `E` that `choice` names, with its settings.
    ///
    /// # Panics
    /// If the choice was not checked: a checked choice names a registered entry.
    pub fn chosen<'c, E: Entry>(&self, choice: &'c EntryChoice) -> (E, &'c Settings) {
        let entry = self.find::<E>(&choice.name);
        let entry = entry.unwrap_or_else(|| panic!("no {} called {}", E::CATEGORY, choice.name));
        (entry, &choice.settings)
    }

    /// All entries of type `E`, in the order they were added.
    pub fn iter<E: Entry>(&self) -> impl Iterator<Item = E> + '_ {
        let entries = self.entries.get(E::CATEGORY).map_or(&[][..], Vec::as_slice);
        entries.iter().filter_map(|it| it.entry.downcast_ref::<E>().copied())
    }

    /// All categories.
    pub fn categories(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.entries.keys().copied()
    }

    /// Descriptions of all entries of `category`; empty when there is no such category.
    pub fn descriptions(&self, category: &str) -> impl Iterator<Item = Description> + '_ {
        let entries = self.entries.get(category).map_or(&[][..], Vec::as_slice);
        entries.iter().map(|it| it.description)
    }

    /// Capabilities of the entry `name` of `category`.
    pub fn provides(&self, category: &str, name: &str) -> &'static [&'static str] {
        let entries = self.entries.get(category).map_or(&[][..], Vec::as_slice);
        entries.iter().find(|it| it.description.name == name).map_or(&[], |it| it.provides)
    }

    /// Adds values for parameters, of which `hybridsim fuzz` draws small random systems. `text` has
    /// one TOML table for each kind of component, or for several with commas between them; a table
    /// for an entry is called `category name`, one for an inner table `owner.key`. Each key is a
    /// list of values to draw from; for children, of kinds of components or `any`, which also
    /// stands for any entry. Parameters without samples get values within their ranges, optional
    /// ones in some systems only.
    ///
    /// # Panics
    /// If `text` is not TOML of this form.
    pub fn add_samples(&mut self, text: &str) {
        let tables: Table = text.parse().unwrap_or_else(|error| panic!("samples: {error}"));
        for (kinds, keys) in tables {
            let Value::Table(keys) = keys else { panic!("samples of {kinds}: not a table") };
            for kind in kinds.split(", ") {
                self.samples.entry(kind.to_owned()).or_default().extend(keys.clone());
            }
        }
    }

    /// The samples of parameter `param` of components of `kind`; empty when there are none.
    pub fn samples(&self, kind: &str, param: &Param) -> &[Value] {
        let list = self.samples.get(kind).and_then(|keys| keys.get(param.name)?.as_array());
        list.map_or(&[], Vec::as_slice)
    }

    /// All samples: kind of component and key.
    pub fn sampled(&self) -> impl Iterator<Item = (&str, &str)> {
        self.samples.iter().flat_map(|(kind, keys)| keys.keys().map(|key| (&**kind, &**key)))
    }

    /// Notes that `category` has an entry `name` in other programs only, with `help` on them.
    pub fn add_absent(&mut self, category: &'static str, name: &'static str, help: &'static str) {
        self.absent.insert((category, name), help);
    }

    /// The help on an entry that this program does not have and others do.
    pub fn absent(&self, category: &str, name: &str) -> Option<&'static str> {
        self.absent.get(&(category, name)).copied()
    }

    /// Asks `take` for errors of entries whose interfaces cannot return one, such as policies
    /// written in another language. A run during which `take` returns an error fails with it.
    pub fn take_plugin_errors_from(&mut self, take: PluginError) {
        self.plugin_error = Some(take);
    }

    /// Whether entries may be written in another language.
    pub const fn takes_plugin_errors(&self) -> bool {
        self.plugin_error.is_some()
    }

    /// Returns and clears the error that an entry's code raised in this thread.
    pub fn take_plugin_error(&self) -> Option<String> {
        self.plugin_error.and_then(|take| take())
    }
}
