//! The interface between scenarios and the builders of components.

use crate::param::{Built, Settings};
use crate::registry::{Description, Entry, Registry};
use hybridsim_engine::Component;
use hybridsim_engine::schedule::{Positioner, Scheduler};
use std::rc::Rc;

/// A child as its parent's builder sees it.
#[derive(Clone)]
pub struct ChildView {
    /// The child's name in the scenario.
    pub name: String,
    /// Capacity in sectors.
    pub capacity: u64,
    /// Its positioning estimates, if it has a moving head.
    pub positioner: Option<Rc<dyn Positioner>>,
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
    /// When the scenario was not checked: a checked choice names a registered entry.
    pub fn chosen<E: Entry>(&self, name: &str) -> (E, &Settings) {
        let choice = self.settings.entry(name);
        let entry = self.registry.find::<E>(&choice.name);
        (
            entry.unwrap_or_else(|| panic!("no {} called {}", E::CATEGORY, choice.name)),
            &choice.settings,
        )
    }
}

/// A registered kind of component.
#[derive(Clone, Copy)]
pub struct ComponentEntry {
    /// Name, summary, origin and parameters.
    pub description: Description,
    /// Builds the component, or returns all problems.
    pub build: fn(&BuildInput<'_>) -> Built<dyn Component>,
}

impl Entry for ComponentEntry {
    const CATEGORY: &'static str = "component";
    fn description(&self) -> Description {
        self.description
    }
}

/// A registered scheduler.
#[derive(Clone, Copy)]
pub struct SchedulerEntry {
    /// Name, summary, origin and parameters.
    pub description: Description,
    /// Builds one from its own parameters.
    pub build: fn(&Settings) -> Built<dyn Scheduler>,
}

impl Entry for SchedulerEntry {
    const CATEGORY: &'static str = "scheduler";
    fn description(&self) -> Description {
        self.description
    }
}
