//! Placement of host writes: classes of data get blocks of their own, so that pages that will be
//! overwritten at about the same time become invalid together. One file per policy, listed in
//! [`ENTRIES`].

mod handles;
mod none;
mod request_size;
mod write_count;

use crate::geometry::Lpn;
use crate::request::Hint;
use crate::state::SavedState;
use hybridsim_config::param::{Built, Settings};
use hybridsim_config::registry::Description;

/// Classes of the policies that separate hot from cold data.
const COLD: u8 = 0;
const HOT: u8 = 1;

/// Assigns writes to classes. Passive: called once for each page the host writes.
pub trait Placement: SavedState {
    /// Number of classes; each has an open block in every plane.
    fn classes(&self) -> u8 {
        HOT + 1
    }

    /// Number of reclaim groups: equal parts of the dies, each with open blocks of its own, that
    /// copies never leave.
    fn groups(&self) -> u8 {
        1
    }

    /// Whether copies keep the classes apart too.
    fn isolates_copies(&self) -> bool {
        false
    }

    /// The class of this write of `lpn`; records the write. Called with two classes or more.
    fn class(&mut self, lpn: Lpn, hint: Hint) -> u8;

    /// The reclaim group and class that the host names by a placement handle; `None` if the policy
    /// does not place by handle, or lacks this one.
    fn place_of(&self, _handle: u8) -> Option<(u8, u8)> {
        None
    }

    /// Controller memory it needs, in bytes.
    fn ram_bytes(&self) -> u64 {
        0
    }
}

/// A registered placement policy.
#[derive(Clone, Copy)]
pub struct PlacementEntry {
    pub description: Description,
    pub build: fn(&Settings) -> Built<dyn Placement>,
}

hybridsim_config::entry!(PlacementEntry, "placement");

/// All placement policies.
pub const ENTRIES: &[PlacementEntry] =
    &[none::ENTRY, request_size::ENTRY, write_count::ENTRY, handles::ENTRY];
