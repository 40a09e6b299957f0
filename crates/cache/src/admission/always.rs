//! Every write goes to the cache.

use super::{Admission, AdmissionEntry};
use hybridsim_config::registry::Description;
use hybridsim_engine::Request;
use serde::{Deserialize, Serialize};

pub const ENTRY: AdmissionEntry = AdmissionEntry {
    description: Description {
        name: "always",
        summary: "every write goes to the cache",
        origin: "common knowledge (write-back cache)",
        params: &[],
    },
    build: |_| Ok(Box::new(Always)),
};

/// Admits everything.
#[derive(Debug, Serialize, Deserialize)]
pub struct Always;

impl Admission for Always {
    fn admit(&mut self, _request: &Request, _pages: u64, _cached: u64) -> bool {
        true
    }
}
