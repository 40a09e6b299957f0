//! RAID level 1: every member holds everything.

use super::members::{
    FAILURES, MEMBERS, REBUILD_AFTER_IDLE, REBUILD_PARALLEL, REBUILD_RATE, SPARES,
};
use super::mirror::{READ_CHOICE, REBUILD_STEP, build as array};
use super::resync::{BITMAP_CLEAR_AFTER, BITMAP_REGION, RESYNC};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::Problem;
use hybridsim_config::registry::Description;
use hybridsim_engine::Component;

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "raid1",
        summary: "RAID 1: every member holds a copy of everything; all but one may fail",
        origin: "Patterson, Gibson and Katz 1988; read choices as in DiskSim 4",
        params: &[
            MEMBERS,
            SPARES,
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
    let (columns, _) = super::members::columns_of(input);
    array(ENTRY.description.name, input, columns.max(1), None, Vec::new())
}
