//! Small requests are hot: metadata and small updates are overwritten sooner than bulk data.

use super::{BuiltClassifier, HotColdClassifier, HotColdEntry};
use crate::ftl::Hint;
use crate::geometry::Lpn;
use hybridsim_config::param::{Kind, Param, Settings};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: HotColdEntry = HotColdEntry {
    description: Description {
        name: "request-size",
        summary: "Pages of small requests are hot.",
        origin: "Chang, ASP-DAC 2008; LAST (Lee et al., SPEED 2008)",
        params: &PARAMS,
    },
    build,
};

const PARAMS: [Param; 1] = [Param::with(
    "pages_max",
    Kind::Count { min: 1, max: u32::MAX as u64 },
    "2",
    "Requests that touch at most this many pages are hot.",
)];

#[derive(Serialize, Deserialize)]
struct RequestSize {
    pages_max: u32,
}

fn build(settings: &Settings) -> BuiltClassifier {
    Ok(Box::new(RequestSize { pages_max: settings.count("pages_max") as u32 }))
}

impl HotColdClassifier for RequestSize {
    fn is_hot(&mut self, _lpn: Lpn, hint: Hint) -> bool {
        hint.request_pages <= self.pages_max
    }

    fn ram_bytes(&self) -> u64 {
        0
    }
}
