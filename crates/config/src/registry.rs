//! What can be chosen in: components, FTLs, policies, schedulers, generators, trace formats.
//!
//! A room of the house lists its entries in a const slice; the program collects them in one
//! [`Registry`] value, to which an outside crate can add its own. The registry knows entries only
//! by what they tell of themselves, so it needs no edit when a new kind of entry appears.

use crate::param::Param;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;

/// What every entry tells of itself, for listings, checks, schema and documentation.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The name used in scenarios, lower case with dashes.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where it comes from: a paper, a datasheet, common knowledge.
    pub origin: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
}

/// Something that can be registered.
pub trait Entry: Any + Copy + Send + Sync {
    /// The kind of thing, such as `ftl`; the word used by `hybridsim list`.
    const CATEGORY: &'static str;

    /// What it tells of itself.
    fn description(&self) -> Description;
}

/// What an entry tells of itself, and the entry.
type Registered = (Description, Box<dyn Any + Send + Sync>);

/// All entries a program knows.
#[derive(Default)]
pub struct Registry {
    entries: BTreeMap<&'static str, Vec<Registered>>,
    types: BTreeMap<&'static str, TypeId>,
}

impl Registry {
    /// Adds `entry`; one of the same slot and name is replaced.
    pub fn add<E: Entry>(&mut self, entry: E) {
        let known = self.types.entry(E::CATEGORY).or_insert(TypeId::of::<E>());
        assert_eq!(*known, TypeId::of::<E>(), "slot {} holds another type", E::CATEGORY);
        let description = entry.description();
        let slot = self.entries.entry(E::CATEGORY).or_default();
        slot.retain(|(other, _)| other.name != description.name);
        slot.push((description, Box::new(entry)));
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

    /// All entries of type `E`, in the order they were added.
    pub fn iter<E: Entry>(&self) -> impl Iterator<Item = E> + '_ {
        let slot = self.entries.get(E::CATEGORY).map_or(&[][..], Vec::as_slice);
        slot.iter().filter_map(|(_, entry)| entry.downcast_ref::<E>().copied())
    }

    /// The kinds of things there are.
    pub fn categories(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.entries.keys().copied()
    }

    /// Descriptions of everything in `slot`; empty when there is no such slot.
    pub fn descriptions(&self, slot: &str) -> impl Iterator<Item = Description> + '_ {
        let entries = self.entries.get(slot).map_or(&[][..], Vec::as_slice);
        entries.iter().map(|(description, _)| *description)
    }
}
