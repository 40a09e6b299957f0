//! RAID level 4: the last member holds the parity of all others.

use super::parity::layout::{Rotated, Rotation};
use super::parity::{self, CHUNK, PARAMS, Shape};
use super::rebuild::DEVICES;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Problem, joined};
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "raid4",
        summary: "RAID 4: chunks are striped over all members but the last, which holds parity",
        origin: "Patterson, Gibson and Katz 1988",
        params: &joined::<{ DEVICES.len() + 1 + PARAMS.len() }>(&[DEVICES, &[CHUNK], PARAMS]),
    },
    build,
};

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let rotation = Rotation::Fixed;
    parity::build(input, 2, |columns, _| Shape {
        kind: ENTRY.description.name,
        layout: Box::new(Rotated { columns, parities: 1, rotation, rows: 1 }),
        data: columns - 1,
        parities: 1,
    })
}
