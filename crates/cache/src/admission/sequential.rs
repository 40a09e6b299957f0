//! Sequential streams bypass the cache, whatever their request size.

use super::{Admission, AdmissionEntry};
use crate::streams::Streams;
use hybridsim_config::param::Kind;
use hybridsim_config::registry::Description;
use hybridsim_engine::Request;
use serde::{Deserialize, Serialize};

hybridsim_config::params! {
    struct Parameters {
        cutoff_sectors: u64 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "256",
            "A sequential stream bypasses the cache after this many sectors of 512 bytes.";
        streams: usize = Kind::Count { min: 1, max: 1024 }, default "16",
            "Streams tracked at once.";
    }
}

pub const ENTRY: AdmissionEntry = AdmissionEntry {
    description: Description {
        name: "sequential",
        summary: "writes of sequential streams bypass the cache",
        origin: "op-fcl (128 KB, one stream); several streams as in bcache",
        params: Parameters::PARAMS,
    },
    build: |settings| {
        let params = Parameters::from_settings(settings);
        Ok(Box::new(Sequential(Streams::new(params.streams, params.cutoff_sectors))))
    },
};

/// The recent streams.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sequential(Streams);

impl Admission for Sequential {
    fn admit(&mut self, request: &Request, _pages: u64, _cached: u64) -> bool {
        !self.0.is_sequential(request)
    }
}
