//! Admission policies: which writes go to the cache. One file for each policy.

pub mod always;
pub mod metadata;
pub mod second_touch;
pub mod sequential;
pub mod threshold;

use crate::policy_state::PolicyState;
use hybridsim_config::param::{Built, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::Request;

/// An admission policy.
///
/// It cannot affect data integrity: pages of a rejected write that are cached are written to the
/// cache, the others bypass it.
pub trait Admission: PolicyState {
    /// Whether `request`, which touches `pages` pages of which `cached` are in the cache, goes to
    /// the cache. Called once for every write without [`hybridsim_engine::Flags::PIN`].
    fn admit(&mut self, request: &Request, pages: u64, cached: u64) -> bool;

    /// The reason why it could not distinguish writes so far, where that is so.
    fn idle(&self) -> Option<&'static str> {
        None
    }
}

/// Builds a policy from its parameters.
pub type BuildAdmission = fn(&Settings) -> Built<dyn Admission>;

/// A registered admission policy.
#[derive(Clone, Copy)]
pub struct AdmissionEntry {
    pub description: Description,
    pub build: BuildAdmission,
}

hybridsim_config::entry!(AdmissionEntry, "admission");

/// All admission policies.
pub const ENTRIES: &[AdmissionEntry] =
    &[threshold::ENTRY, always::ENTRY, sequential::ENTRY, second_touch::ENTRY, metadata::ENTRY];
