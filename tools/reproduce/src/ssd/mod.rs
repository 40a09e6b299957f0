//! Measured SSDs beside simulated ones.

mod bundle;
mod drive;
mod fit;
mod grids;
mod interference;
mod offered;
mod sata;
mod saturated;
mod separating;
mod tables;

use super::Experiment;

pub const EXPERIMENTS: &[Experiment] = &[
    saturated::EXPERIMENT,
    separating::P5520,
    separating::LEFT_OUT,
    offered::CM7R,
    offered::P5520,
    grids::ZN540,
    grids::S980_PRO,
    grids::NVME_A,
    grids::NVME_B,
    interference::EXPERIMENT,
    sata::EXPERIMENT,
];

/// The largest of `errors`.
fn worst(errors: &[f64]) -> f64 {
    errors.iter().copied().fold(0.0, f64::max)
}
