//! No hot/cold separation.

use super::{BuiltClassifier, HotColdClassifier, HotColdEntry};
use crate::ftl::Hint;
use crate::geometry::Lpn;
use hybridsim_config::param::Settings;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: HotColdEntry = HotColdEntry {
    description: Description {
        name: "none",
        summary: "Hot and cold writes of the host share blocks.",
        origin: "the baseline",
        params: &[],
    },
    build,
};

#[derive(Serialize, Deserialize)]
struct NoSeparation;

fn build(_settings: &Settings) -> BuiltClassifier {
    Ok(Box::new(NoSeparation))
}

impl HotColdClassifier for NoSeparation {
    fn separates(&self) -> bool {
        false
    }

    fn is_hot(&mut self, _lpn: Lpn, _hint: Hint) -> bool {
        false
    }

    fn ram_bytes(&self) -> u64 {
        0
    }
}
