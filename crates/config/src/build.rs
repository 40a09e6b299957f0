//! The interface between scenarios and the builders of components.

use crate::param::{Built, Settings};
use crate::registry::{Description, Entry, Registry};
use hybridsim_engine::schedule::{Positioner, Scheduler};
use hybridsim_engine::{Component, ZoneLayout};
use std::rc::Rc;

/// A child as its parent's builder sees it.
#[derive(Clone, Default)]
pub struct ChildView {
    /// The child's name in the scenario.
    pub name: String,
    /// Capacity in sectors.
    pub capacity: u64,
    /// Positioning estimates, where there is a moving head.
    pub positioner: Option<Rc<dyn Positioner>>,
    /// [`ComponentInfo::constants`](hybridsim_engine::ComponentInfo) of the child.
    pub constants: Vec<(&'static str, f64)>,
    /// The zones that can be reached through the child, if they are alike.
    pub zones: Option<ZoneLayout>,
    /// Whether a power failure may lose writes it has acknowledged.
    pub loses_writes: bool,
}

impl ChildView {
    /// The constant `name` of the child.
    pub fn constant(&self, name: &str) -> Option<f64> {
        self.constants.iter().find(|(it, _)| *it == name).map(|&(_, value)| value)
    }
}

/// The input of a component's builder.
pub struct BuildInput<'a> {
    /// The component's checked parameters.
    pub settings: &'a Settings,
    /// The entries to choose policies from.
    pub registry: &'a Registry,
    /// The run's seed; draw from [`hybridsim_engine::Stream::new`]`(seed, path)`.
    pub seed: u64,
    /// The component's path in the system.
    pub path: &'a str,
    /// The children, in the order in which their parameters are declared.
    pub children: &'a [ChildView],
}

impl BuildInput<'_> {
    /// The entry that parameter `name` chooses, with its settings.
    ///
    /// # Panics
    /// If the scenario was not checked: a checked choice names a registered entry.
    pub fn chosen<E: Entry>(&self, name: &str) -> (E, &Settings) {
        self.registry.chosen(self.settings.entry(name))
    }
}

/// A registered kind of component.
#[derive(Clone, Copy)]
pub struct ComponentEntry {
    /// Name, summary, origin and parameters.
    pub description: Description,
    /// Builds the component, or returns all problems.
    pub build: fn(&BuildInput<'_>) -> Built<dyn Component>,
    /// See [`ComponentEntry::with_memory`].
    pub memory: Option<Memory>,
    /// See [`ComponentEntry::with_capacity`].
    pub capacity: Option<fn(&Settings) -> u64>,
    /// Whether the child is a device with zones.
    pub has_zones: bool,
}

/// The bytes that the tables of a component with some settings take, where a function gives the
/// exported bytes of another component by its name, 0 if they are not known.
pub type Memory = fn(&Settings, &dyn Fn(&str) -> u64) -> u64;

impl ComponentEntry {
    /// A kind without tables to speak of, whose capacity is known once it is built.
    pub const fn new(
        description: Description,
        build: fn(&BuildInput<'_>) -> Built<dyn Component>,
    ) -> Self {
        Self { description, build, memory: None, capacity: None, has_zones: false }
    }

    /// With an estimate, before it is built, of the memory that its tables take when they are full.
    #[must_use]
    pub const fn with_memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// With an estimate, before it is built, of the bytes that it exports.
    #[must_use]
    pub const fn with_capacity(mut self, capacity: fn(&Settings) -> u64) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// As a device with zones, which zone commands and sequential writes are for.
    #[must_use]
    pub const fn with_zones(mut self) -> Self {
        self.has_zones = true;
        self
    }
}

crate::entry!(ComponentEntry, "component");

/// A registered scheduler.
#[derive(Clone, Copy)]
pub struct SchedulerEntry {
    /// Name, summary, origin and parameters.
    pub description: Description,
    /// Builds one from its own parameters.
    pub build: fn(&Settings) -> Built<dyn Scheduler>,
}

crate::entry!(SchedulerEntry, "scheduler");
