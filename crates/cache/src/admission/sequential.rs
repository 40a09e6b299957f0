//! Sequential streams go round the cache, however long their requests are.

use super::{Admission, AdmissionEntry};
use crate::streams::Streams;
use hybridsim_config::param::{Kind, Param};
use hybridsim_config::registry::Description;
use hybridsim_engine::Request;

/// The registered entry.
pub const ENTRY: AdmissionEntry = AdmissionEntry {
    description: Description {
        name: "sequential",
        summary: "writes that go on a sequential stream go round the cache",
        origin: "op-fcl (128 KB, one stream); several streams as in bcache",
        params: &[
            Param::with(
                "cutoff_sectors",
                Kind::Count { min: 1, max: u32::MAX as u64 },
                "256",
                "A stream of so many sectors of 512 bytes in a row goes round the cache",
            ),
            Param::with(
                "streams",
                Kind::Count { min: 1, max: 1024 },
                "16",
                "Streams followed at a time",
            ),
        ],
    },
    build: |settings| {
        let count = settings.count("streams") as usize;
        Ok(Box::new(Sequential(Streams::new(count, settings.count("cutoff_sectors")))))
    },
};

/// The streams lately seen.
#[derive(Debug)]
pub struct Sequential(Streams);

impl Admission for Sequential {
    fn admit(&mut self, request: &Request, _pages: u64, _cached: u64) -> bool {
        !self.0.is_sequential(request)
    }
}
