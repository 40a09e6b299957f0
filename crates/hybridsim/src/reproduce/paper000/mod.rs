//! Paper 000: Konanki, a hybrid hard disk simulator.

mod tables5;
mod wear;

use super::Artefact;

/// Its artefacts.
pub const ARTEFACTS: &[Artefact] =
    &[tables5::VALIDATION, tables5::ANALYSIS, wear::ONE_PASS, wear::FIFTEEN_PASSES];
