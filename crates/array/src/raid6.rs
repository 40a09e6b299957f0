//! RAID level 6: two parities, P and Q behind it, go round the members.

use super::members::{
    FAILURES, MEMBERS, REBUILD_AFTER_IDLE, REBUILD_PARALLEL, REBUILD_RATE, SPARES,
};
use super::parity::journal::JOURNAL;
use super::parity::layout::{Rotated, Rotation};
use super::parity::{
    BREAK_POINT, CHUNK, IN_PROGRESS, SMALL_WRITE, Shape, TRIM, UNSYNCED_PARITY, WRITE_ORDER,
    build as array,
};
use super::raid5::{PARITY_ROWS, ROTATION};
use super::resync::{BITMAP_CLEAR_AFTER, BITMAP_REGION, RESYNC};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "raid6",
        summary: "RAID 6: chunks and two parities go round the members; any two may fail",
        origin: "P and Q as in H. P. Anvin, The mathematics of RAID-6; rotations as in Linux",
        params: &[
            MEMBERS,
            SPARES,
            CHUNK,
            ROTATION,
            PARITY_ROWS,
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
    let rotation = Rotation::named(input.settings.text("rotation"));
    let rows = input.settings.count("parity_rows");
    array(input, 3, |columns, _| Shape {
        kind: ENTRY.description.name,
        layout: Box::new(Rotated { columns, parities: 2, rotation, rows }),
        data: columns - 2,
        parities: 2,
    })
}
