//! The host says where data go, by the placement handle of a write: Flexible Data Placement (FDP,
//! NVMe 2.1) with one reclaim group, or the streams of multi-stream drives. Each handle has an open
//! reclaim unit: one block in every plane.

use super::{Placement, PlacementEntry};
use crate::geometry::Lpn;
use crate::request::Hint;
use hybridsim_config::param::{Built, Kind, Settings};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: PlacementEntry = PlacementEntry {
    description: Description {
        name: "handles",
        summary: "Writes go to blocks of their placement handle (FDP, multi-stream).",
        origin: "NVM Express Base Specification 2.1, flexible data placement",
        params: Parameters::PARAMS,
    },
    build,
};

hybridsim_config::choices! {
    /// Blocks that garbage collection copies the data of a handle to.
    #[derive(Serialize, Deserialize)]
    enum Isolation { Initially = "initially", Persistently = "persistently" }
}

hybridsim_config::params! {
    struct Parameters {
        handles: u8 = Kind::Count { min: 2, max: 128 }, default "2",
            "Reclaim unit handles. A write with a greater handle is placed as with handle 0, the \
             default.";
        isolation: Isolation = Kind::Choice(Isolation::NAMES), default "\"initially\"",
            "`initially`: garbage collection copies the data of all handles to common blocks \
             (without `gc_separate` to those of handle 0); `persistently`: to blocks of each \
             handle.";
    }
}

#[derive(Serialize, Deserialize)]
struct Handles {
    handles: u8,
    isolation: Isolation,
}

fn build(settings: &Settings) -> Built<dyn Placement> {
    let Parameters { handles, isolation } = Parameters::from_settings(settings);
    Ok(Box::new(Handles { handles, isolation }))
}

impl Placement for Handles {
    fn classes(&self) -> u8 {
        self.handles
    }

    fn isolates_copies(&self) -> bool {
        self.isolation == Isolation::Persistently
    }

    fn class(&mut self, _lpn: Lpn, hint: Hint) -> u8 {
        self.class_of(hint.handle).unwrap_or(0)
    }

    fn class_of(&self, handle: u8) -> Option<u8> {
        (handle < self.handles).then_some(handle)
    }
}
