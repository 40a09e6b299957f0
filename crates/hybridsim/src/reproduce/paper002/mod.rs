//! Paper 002: FlashSim.

mod table3;

use super::Artefact;

/// Its artefacts.
pub const ARTEFACTS: &[Artefact] = &[table3::ARTEFACT];
