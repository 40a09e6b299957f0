//! op-fcl: OP-FCL, a flash cache that sizes its own read, write and over-provisioned space.

mod model;
mod real;
mod schemes;

use super::Artefact;

/// Its artefacts.
pub const ARTEFACTS: &[Artefact] = &[
    model::MODEL,
    model::SURFACE,
    schemes::FINANCIAL,
    schemes::SEARCH,
    schemes::EXCHANGE,
    real::REAL,
];
