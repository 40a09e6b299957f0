//! RAID level 5: parity goes round the members.

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
use hybridsim_config::param::{Kind, Param, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "raid5",
        summary: "RAID 5: chunks and parity go round the members; one may fail",
        origin: "Patterson, Gibson and Katz 1988; rotations as named by Lee and Katz 1993",
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

/// How parity goes round.
pub const ROTATION: Param = Param::with(
    "rotation",
    Kind::Choice(Rotation::NAMES),
    "\"left-symmetric\"",
    "How parity goes round the members: left from the last, right from the first; symmetric: data \
     starts behind parity; asymmetric: at the first member",
);

/// How long parity stays.
pub const PARITY_ROWS: Param = Param::with(
    "parity_rows",
    Kind::Count { min: 1, max: 1 << 30 },
    "1",
    "Stripes after which parity goes on to the next member (DiskSim's parity stripe unit, in \
     stripe units)",
);

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    let rotation = Rotation::named(input.settings.text("rotation"));
    let rows = input.settings.count("parity_rows");
    array(input, 2, |columns, _| Shape {
        kind: ENTRY.description.name,
        layout: Box::new(Rotated { columns, parities: 1, rotation, rows }),
        data: columns - 1,
        parities: 1,
    })
}
