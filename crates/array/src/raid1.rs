//! RAID level 1: every member holds a copy of all data.

use super::mirror::{self, Parameters};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::Built;
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "raid1",
        summary: "RAID 1: every member holds a copy of all data; all but one may fail",
        origin: "Patterson, Gibson and Katz 1988; read choices as in DiskSim 4",
        params: Parameters::PARAMS,
    },
    build,
);

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    mirror::build(ENTRY.description.name, input, &Parameters::from_settings(input.settings), None)
}
