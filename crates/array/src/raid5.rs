//! RAID level 5: one parity unit per stripe, rotated over the members.

use super::parity::layout::{Rotated, Rotation};
use super::parity::{self, CHUNK, PARAMS, Shape};
use super::rebuild::DEVICES;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem, joined};
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "raid5",
        summary: "RAID 5: chunks and rotated parity over all members; one may fail",
        origin: "Patterson, Gibson and Katz 1988; rotations as named by Lee and Katz 1993",
        params: &joined::<{ DEVICES.len() + ROTATED.len() + PARAMS.len() }>(&[
            DEVICES, ROTATED, PARAMS,
        ]),
    },
    build,
};

/// The stripes of RAID levels 5 and 6.
pub(super) const ROTATED: &[Param] = &[
    CHUNK,
    Param::with(
        "rotation",
        Kind::Choice(Rotation::NAMES),
        "\"left-symmetric\"",
        "How parity rotates over the members: left from the last, right from the first; symmetric: \
         data start behind parity; asymmetric: at the first member",
    ),
    Param::with(
        "parity_rows",
        Kind::Count { min: 1, max: 1 << 30 },
        "1",
        "Stripes after which parity rotates to the next member (DiskSim's parity stripe unit, in \
         stripe units)",
    ),
];

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    rotated(ENTRY.description.name, input, 1)
}

/// An array with `parities` rotated parity units per stripe.
pub(super) fn rotated(
    kind: &'static str,
    input: &BuildInput<'_>,
    parities: usize,
) -> Result<Box<dyn Component>, Vec<Problem>> {
    let rotation = Rotation::named(input.settings.text("rotation"));
    let rows = input.settings.count("parity_rows");
    parity::build(input, parities + 1, |columns, _| Shape {
        kind,
        layout: Box::new(Rotated { columns, parities, rotation, rows }),
        data: columns - parities,
        parities,
    })
}
