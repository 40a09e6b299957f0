//! op-fcl: OP-FCL, a flash cache that sizes its own read, write and over-provisioned space.

mod model;
mod real;
mod schemes;

use super::Experiment;

pub const EXPERIMENTS: &[Experiment] = &[
    model::MODEL,
    model::SURFACE,
    schemes::FINANCIAL,
    schemes::SEARCH,
    schemes::EXCHANGE,
    real::REAL,
];
