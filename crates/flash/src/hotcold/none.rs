//! No hot/cold separation.

use super::{HotColdClassifier, HotColdEntry};
use crate::geometry::Lpn;
use crate::request::Hint;
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: HotColdEntry = HotColdEntry {
    description: Description {
        name: "none",
        summary: "Hot and cold writes of the host share blocks.",
        origin: "the baseline",
        params: &[],
    },
    build: |_| Ok(Box::new(NoSeparation)),
};

#[derive(Serialize, Deserialize)]
struct NoSeparation;

impl HotColdClassifier for NoSeparation {
    fn separates(&self) -> bool {
        false
    }

    fn is_hot(&mut self, _lpn: Lpn, _hint: Hint) -> bool {
        false
    }
}
