//! RAID level 10: chunks go round groups of copies.

use super::members::{
    FAILURES, MEMBERS, REBUILD_AFTER_IDLE, REBUILD_PARALLEL, REBUILD_RATE, SPARES,
};
use super::mirror::{READ_CHOICE, REBUILD_STEP, build as array};
use super::parity::{CHUNK, chunk_of};
use super::resync::{BITMAP_CLEAR_AFTER, BITMAP_REGION, RESYNC};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "raid10",
        summary: "RAID 10: chunks go round groups of members that hold the same",
        origin: "common knowledge (stripe of mirrors); read choices as in DiskSim 4",
        params: &[
            MEMBERS,
            SPARES,
            Param::with(
                "copies",
                Kind::Count { min: 1, max: 64 },
                "2",
                "Members of a group: neighbours in `members`, whose number is a multiple of it",
            ),
            CHUNK,
            READ_CHOICE,
            FAILURES,
            REBUILD_STEP,
            REBUILD_RATE,
            REBUILD_PARALLEL,
            REBUILD_AFTER_IDLE,
            RESYNC,
            BITMAP_REGION,
            BITMAP_CLEAR_AFTER,
        ],
    },
    build,
};

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let (_, smallest) = super::members::columns_of(input);
    let mut problems = Vec::new();
    let chunk = chunk_of(input.settings.bytes("chunk"), smallest, &mut problems);
    let copies = input.settings.count("copies") as usize;
    array(ENTRY.description.name, input, copies, Some(chunk), problems)
}
