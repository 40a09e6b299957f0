//! RAID level 6: two parity units per stripe, P and Q, rotated over the members.

use super::raid5::{Parameters, rotated};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::Built;
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "raid6",
        summary: "RAID 6: chunks and two rotated parities over all members; any two may fail",
        origin: "P and Q as in H. P. Anvin, The mathematics of RAID-6; rotations as in Linux",
        params: Parameters::PARAMS,
    },
    build,
);

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    rotated(ENTRY.description.name, input, 2)
}
