//! RAID level 5: one parity unit per stripe, rotated over the members.

use super::parity::layout::{Rotated, Rotation};
use super::parity::{self, Shape};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Kind};
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "raid5",
        summary: "RAID 5: chunks and rotated parity over all members; one may fail",
        origin: "Patterson, Gibson and Katz 1988; rotations as named by Lee and Katz 1993",
        params: Parameters::PARAMS,
    },
    build,
);

hybridsim_config::params! {
    pub(super) struct Parameters includes { parity: parity::Parameters } {
        rotation: Rotation = Kind::Choice(Rotation::NAMES), default "\"left-symmetric\"",
            "How parity rotates over the members: left from the last, right from the first; \
             symmetric: data start behind parity; asymmetric: at the first member";
        parity_rows: u64 = Kind::Count { min: 1, max: 1 << 30 }, default "1",
            "Stripes after which parity rotates to the next member (DiskSim's parity stripe unit, \
             in stripe units)";
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    rotated(ENTRY.description.name, input, 1)
}

/// An array with `parities` rotated parity units per stripe.
pub(super) fn rotated(
    kind: &'static str,
    input: &BuildInput<'_>,
    parities: usize,
) -> Built<dyn Component> {
    let params = Parameters::from_settings(input.settings);
    let (rotation, rows) = (Some(params.rotation), params.parity_rows);
    parity::build(input, &params.parity, parities + 1, |columns, _| Shape {
        kind,
        layout: Box::new(Rotated { columns, parities, rotation, rows }),
        data: columns - parities,
        parities,
    })
}
