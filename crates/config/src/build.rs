//! How a scenario's component becomes a component.

use crate::param::{Built, Settings};
use crate::registry::{Description, Entry, Registry};
use hybridsim_engine::Component;
use hybridsim_engine::schedule::{Positioner, Scheduler};
use std::rc::Rc;

/// What a component's builder may know of a child.
#[derive(Clone)]
pub struct ChildView {
    /// The child's name in the scenario.
    pub name: String,
    /// Sectors it offers.
    pub capacity: u64,
    /// Its positioning estimates, if it has a moving head.
    pub positioner: Option<Rc<dyn Positioner>>,
}

/// Everything a component's builder gets.
pub struct BuildInput<'a> {
    /// The part's own checked parameters.
    pub settings: &'a Settings,
    /// Where chosen-in policies are found.
    pub registry: &'a Registry,
    /// The run's seed; draw from [`hybridsim_engine::Stream::new`]`(seed, path)`.
    pub seed: u64,
    /// The part's path in the system.
    pub path: &'a str,
    /// The children: first those of `Part` and `Parts` parameters, in order of declaration.
    pub children: &'a [ChildView],
}

impl BuildInput<'_> {
    /// The registered entry chosen by plug parameter `name`, with that plug's settings.
    ///
    /// # Panics
    /// When the scenario was not checked: plugs always name a registered entry.
    pub fn chosen<E: Entry>(&self, name: &str) -> (E, &Settings) {
        let plug = self.settings.entry(name);
        let entry = self.registry.find::<E>(&plug.name);
        (entry.unwrap_or_else(|| panic!("no {} called {}", E::CATEGORY, plug.name)), &plug.settings)
    }
}

/// A registered kind of component.
#[derive(Clone, Copy)]
pub struct ComponentEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Builds the component, or says everything that is wrong.
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
    /// What it tells of itself.
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
