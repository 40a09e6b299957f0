//! Which writes a cache takes. One policy a file.

pub mod always;
pub mod second_touch;
pub mod sequential;
pub mod threshold;

use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::Request;

/// Decides about writes that arrive at a cache.
///
/// Whatever it answers, data stay right: the part of a refused write that is cached already is
/// written to the cache, the rest goes round it.
pub trait Admission {
    /// Whether `request`, which touches `pages` pages of which `cached` are in the cache, goes to
    /// the cache. Asked once for every write without [`hybridsim_engine::Flags::PIN`].
    fn admit(&mut self, request: &Request, pages: u64, cached: u64) -> bool;
}

/// Builds a policy from its own parameters.
pub type BuildAdmission = fn(&Settings) -> Result<Box<dyn Admission>, Vec<Problem>>;

/// A registered admission policy.
#[derive(Clone, Copy)]
pub struct AdmissionEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Builds one.
    pub build: BuildAdmission,
}

impl Entry for AdmissionEntry {
    const CATEGORY: &'static str = "admission";
    fn description(&self) -> Description {
        self.description
    }
}

/// All admission policies.
pub const ENTRIES: &[AdmissionEntry] =
    &[threshold::ENTRY, always::ENTRY, sequential::ENTRY, second_touch::ENTRY];
