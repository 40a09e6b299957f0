//! No wear levelling; free blocks are used in turn.

use super::{WearEntry, WearPolicy};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: WearEntry = WearEntry {
    description: Description {
        name: "none",
        summary: "Free blocks are used in the order they became free; no data are relocated.",
        origin: "the baseline of the papers",
        params: &[],
    },
    build: |_| Ok(Box::new(NoLevelling)),
};

#[derive(Serialize, Deserialize)]
struct NoLevelling;

impl WearPolicy for NoLevelling {}
