//! RAID level 4: one member holds all parity.

use super::members::{
    FAILURES, MEMBERS, REBUILD_AFTER_IDLE, REBUILD_PARALLEL, REBUILD_RATE, SPARES,
};
use super::parity::journal::JOURNAL;
use super::parity::layout::{Rotated, Rotation};
use super::parity::{
    BREAK_POINT, CHUNK, IN_PROGRESS, SMALL_WRITE, Shape, TRIM, UNSYNCED_PARITY, WRITE_ORDER,
    build as array,
};
use super::resync::{BITMAP_CLEAR_AFTER, BITMAP_REGION, RESYNC};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "raid4",
        summary: "RAID 4: chunks go round all members but the last, which holds parity",
        origin: "Patterson, Gibson and Katz 1988",
        params: &[
            MEMBERS,
            SPARES,
            CHUNK,
            SMALL_WRITE,
            BREAK_POINT,
            WRITE_ORDER,
            TRIM,
            IN_PROGRESS,
            FAILURES,
            REBUILD_RATE,
            REBUILD_PARALLEL,
            REBUILD_AFTER_IDLE,
            RESYNC,
            BITMAP_REGION,
            BITMAP_CLEAR_AFTER,
            UNSYNCED_PARITY,
            JOURNAL,
        ],
    },
    build,
};

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let rotation = Rotation::Fixed;
    array(input, 2, |columns, _| Shape {
        kind: ENTRY.description.name,
        layout: Box::new(Rotated { columns, parities: 1, rotation, rows: 1 }),
        data: columns - 1,
        parities: 1,
    })
}
