//! Small requests are hot: metadata and small updates are overwritten sooner than bulk data.

use super::{COLD, HOT, Placement, PlacementEntry};
use crate::geometry::Lpn;
use crate::request::Hint;
use hybridsim_config::param::{Built, Kind, Settings};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

pub const ENTRY: PlacementEntry = PlacementEntry {
    description: Description {
        name: "request-size",
        summary: "Pages of small requests are hot.",
        origin: "Chang, ASP-DAC 2008; LAST (Lee et al., SPEED 2008)",
        params: Parameters::PARAMS,
    },
    build,
};

hybridsim_config::params! {
    struct Parameters {
        pages_max: u32 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "2",
            "Requests that touch at most this many pages are hot.";
    }
}

#[derive(Serialize, Deserialize)]
struct RequestSize {
    pages_max: u32,
}

fn build(settings: &Settings) -> Built<dyn Placement> {
    Ok(Box::new(RequestSize { pages_max: Parameters::from_settings(settings).pages_max }))
}

impl Placement for RequestSize {
    fn class(&mut self, _lpn: Lpn, hint: Hint) -> u8 {
        if hint.request_pages <= self.pages_max { HOT } else { COLD }
    }
}
