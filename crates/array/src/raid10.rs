//! RAID level 10: chunks are striped over groups of members that hold copies of the same data.

use super::mirror::{self, PARAMS};
use super::parity::{CHUNK, chunk_of};
use super::rebuild::{self, DEVICES};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem, joined};
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "raid10",
        summary: "RAID 10: chunks are striped over groups of members that mirror each other",
        origin: "common knowledge (stripe of mirrors); read choices as in DiskSim 4",
        params: &joined::<{ DEVICES.len() + GROUPS.len() + PARAMS.len() }>(&[
            DEVICES, GROUPS, PARAMS,
        ]),
    },
    build,
};

const GROUPS: &[Param] = &[
    Param::with(
        "copies",
        Kind::Count { min: 1, max: 64 },
        "2",
        "Members in a group: neighbours in `members`, whose number must be a multiple of it",
    ),
    CHUNK,
];

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let (_, smallest) = rebuild::columns_of(input);
    let mut problems = Vec::new();
    let chunk = chunk_of(input.settings.bytes("chunk"), smallest, &mut problems);
    let copies = input.settings.count("copies") as usize;
    mirror::build(ENTRY.description.name, input, copies, Some(chunk), problems)
}
