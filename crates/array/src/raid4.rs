//! RAID level 4: the last member holds the parity of all others.

use super::parity::layout::Rotated;
use super::parity::{self, Parameters, Shape};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::Built;
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "raid4",
        summary: "RAID 4: chunks are striped over all members but the last, which holds parity",
        origin: "Patterson, Gibson and Katz 1988",
        params: Parameters::PARAMS,
    },
    build,
);

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    parity::build(input, &params, 2, |columns, _| Shape {
        kind: ENTRY.description.name,
        layout: Box::new(Rotated { columns, parities: 1, rotation: None, rows: 1 }),
        data: columns - 1,
        parities: 1,
    })
}
