//! The components of the scenario, as far as they have been converted.

use crate::table::TomlTable;
use std::collections::BTreeMap;

/// A part of the scenario.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    pub name: String,
    pub lines: TomlTable,
}

/// A device or volume that requests are addressed to.
#[derive(Clone, Debug)]
pub(crate) struct RequestTarget {
    pub name: String,
    pub sectors: u64,
}

/// The components of the system, and the targets of the workload.
#[derive(Debug, Default)]
pub(crate) struct System {
    pub parts: Vec<Component>,
    /// In the order of their addresses.
    pub targets: Vec<RequestTarget>,
    /// Name of a device or organisation to the number of its target.
    pub numbers: BTreeMap<String, usize>,
    pub top: String,
    pub host: TomlTable,
    pub devices: BTreeMap<String, RequestTarget>,
    pub order: Vec<String>,
    /// Devices on shared buses; the queues of such devices are one component.
    pub shared: Vec<SharedBus>,
    /// Devices behind a controller with a queue, and the maximum requests outstanding at it.
    pub depths: BTreeMap<String, i64>,
    pub used: BTreeMap<String, usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct SharedBus {
    /// The bus, or the component in front of it.
    pub name: String,
    /// In the order of their addresses.
    pub devices: Vec<String>,
}

impl System {
    /// Adds a component called `wish`, or similarly if that is taken. Returns its name.
    pub fn add(&mut self, wish: &str, lines: TomlTable) -> String {
        let mut name = wish.to_owned();
        while self.parts.iter().any(|part| part.name == name) {
            name.push('_');
        }
        self.parts.push(Component { name: name.clone(), lines });
        name
    }
}

/// A name that is a bare key in TOML.
pub(crate) fn bare(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().map(fit).take(100).collect();
    if name.is_empty() { "component".to_owned() } else { name }
}
