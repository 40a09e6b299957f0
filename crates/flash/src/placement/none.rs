//! One class.

use super::{Placement, PlacementEntry};
use crate::geometry::Lpn;
use crate::request::Hint;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: PlacementEntry = PlacementEntry {
    description: Description {
        name: "none",
        summary: "All writes of the host share blocks.",
        origin: "the baseline",
        params: &[],
    },
    build: |_| Ok(Box::new(None)),
};

#[derive(Serialize, Deserialize)]
struct None;

impl Placement for None {
    fn classes(&self) -> u8 {
        1
    }

    fn class(&mut self, _lpn: Lpn, _hint: Hint) -> u8 {
        0
    }
}
