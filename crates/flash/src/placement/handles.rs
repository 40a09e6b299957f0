//! The host says where data go, by the placement handle of a write: Flexible Data Placement (FDP,
//! NVMe 2.1), or the streams of multi-stream drives. Each handle has an open reclaim unit in each
//! reclaim group: one block in every plane of the group.

use super::{Placement, PlacementEntry};
use crate::geometry::Lpn;
use crate::request::Hint;
use crate::state::SavedState;
use hybridsim_config::param::{Built, Kind, Problem, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Placements, Saver, StateError};

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
    /// Blocks that the data of a handle are copied to.
    enum Isolation { Initially = "initially", Persistently = "persistently" }
}

hybridsim_config::params! {
    struct Parameters {
        handles: u8 = Kind::Count { min: 2, max: 128 }, default "2",
            "Reclaim unit handles of each reclaim group, counted from 0. A write that names \
             another, or another group, is placed as with handle 0 of the first group, the \
             default.";
        reclaim_groups: u8 = Kind::Count { min: 1, max: 128 }, default "1",
            "Reclaim groups: equal parts of the dies, each with open units of its own. The upper \
             bits of a handle, of 8 in all, then name the group. Copies stay within the group; a \
             write goes to the next group while the one named holds all the data it can, so \
             writes without a handle, and preconditioning, fill the first group first.";
        isolation: Isolation = Kind::Choice(Isolation::NAMES), default "\"initially\"",
            "`initially`: data of all handles are copied to common blocks (without `gc_separate` \
             by garbage collection to those of handle 0); `persistently`: to blocks of each \
             handle, which are over-provisioned.";
    }
}

struct Handles {
    placements: Placements,
    isolation: Isolation,
}

fn build(settings: &Settings) -> Built<dyn Placement> {
    let Parameters { handles, reclaim_groups: groups, isolation } =
        Parameters::from_settings(settings);
    let placements = Placements { groups, handles };
    if !placements.fit() {
        let message = format!(
            "{handles} handles in each of {groups} reclaim groups do not fit identifiers of 8 \
             bits; use fewer"
        );
        return Err(vec![Problem::new("placement.handles", message)]);
    }
    Ok(Box::new(Handles { placements, isolation }))
}

/// Nothing changes during a run.
impl SavedState for Handles {
    fn save(&self, _to: &mut Saver) {}

    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}

impl Placement for Handles {
    fn classes(&self) -> u8 {
        self.placements.handles
    }

    fn groups(&self) -> u8 {
        self.placements.groups
    }

    fn isolates_copies(&self) -> bool {
        self.isolation == Isolation::Persistently
    }

    fn class(&mut self, _lpn: Lpn, hint: Hint) -> u8 {
        self.place_of(hint.handle).map_or(0, |(_, class)| class)
    }

    fn place_of(&self, handle: u8) -> Option<(u8, u8)> {
        self.placements.find(handle.into(), u8::BITS)
    }
}
