//! Large writes bypass the cache (konanki, section 3.3).
//!
//! Sequential streams arrive as requests of the maximum size; a threshold just below it detects
//! them. A large write with any cached page goes to the cache as a whole, which keeps the newest
//! data there.

use super::{Admission, AdmissionEntry};
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::Request;
use serde::{Deserialize, Serialize};

hybridsim_config::params! {
    struct Parameters {
        threshold_sectors: u32 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "255",
            "Longest write, in sectors of 512 bytes, that always goes to the cache; slightly less \
             than the largest request, which is 256 sectors on most systems.";
    }
}

pub const ENTRY: AdmissionEntry = AdmissionEntry {
    description: Description {
        name: "threshold",
        summary: "writes longer than a threshold bypass the cache unless part of them is cached",
        origin: "konanki, section 3.3 and figure 4.9",
        params: Parameters::PARAMS,
    },
    build: |settings| {
        let sectors = Parameters::from_settings(settings).threshold_sectors;
        Ok(Box::new(Threshold { sectors }))
    },
};

/// The longest write admitted.
#[derive(Debug, Serialize, Deserialize)]
pub struct Threshold {
    sectors: u32,
}

impl Admission for Threshold {
    fn admit(&mut self, request: &Request, _pages: u64, cached: u64) -> bool {
        request.sectors <= self.sectors || cached > 0
    }
}
