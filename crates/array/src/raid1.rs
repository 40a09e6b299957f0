//! RAID level 1: every member holds a copy of all data.

use super::mirror::{self, PARAMS};
use super::rebuild::{self, DEVICES};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Problem, joined};
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "raid1",
        summary: "RAID 1: every member holds a copy of all data; all but one may fail",
        origin: "Patterson, Gibson and Katz 1988; read choices as in DiskSim 4",
        params: &joined::<{ DEVICES.len() + PARAMS.len() }>(&[DEVICES, PARAMS]),
    },
    build,
};

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let (columns, _) = rebuild::columns_of(input);
    mirror::build(ENTRY.description.name, input, columns.max(1), None, Vec::new())
}
