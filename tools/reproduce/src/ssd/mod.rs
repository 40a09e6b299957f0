//! Measured SSDs beside simulated ones.

mod bundle;
mod drive;
mod fdp;
mod fit;
mod grids;
mod interference;
mod lsm;
mod median_drive;
mod offered;
mod sata;
mod saturated;
mod separating;
mod slc_cache;
mod tables;
mod wear_levelling;
mod zns;

use super::Experiment;
use hybridsim_report::study::Curve;

pub const EXPERIMENTS: &[Experiment] = &[
    saturated::EXPERIMENT,
    wear_levelling::EXPERIMENT,
    separating::P5520,
    separating::LEFT_OUT,
    offered::CM7R,
    offered::P5520,
    offered::WD,
    offered::MEDIAN,
    grids::ZN540,
    grids::S980_PRO,
    grids::NVME_A,
    grids::NVME_B,
    interference::EXPERIMENT,
    sata::EXPERIMENT,
    zns::EXPERIMENT,
    slc_cache::EXPERIMENT,
    fdp::EXPERIMENT,
    lsm::EXPERIMENT,
];

/// The largest of `errors`.
fn worst(errors: &[f64]) -> f64 {
    errors.iter().copied().fold(0.0, f64::max)
}

/// The mean distance of ratios from one, in percent.
fn percent_off(ratios: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = ratios.map(|ratio| libm::log(ratio).abs()).collect();
    100.0 * libm::expm1(logarithms.iter().sum::<f64>() / logarithms.len() as f64)
}

/// Highest over lowest, less one.
fn spread(values: impl IntoIterator<Item = f64>) -> f64 {
    let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    let (low, high) = values.into_iter().fold((f64::INFINITY, 0.0), ends);
    high / low - 1.0
}

/// Curves of a simulated and a measured drive.
fn compared(simulated: Vec<(f64, f64)>, measured: Vec<(f64, f64)>) -> [Curve; 2] {
    [Curve::ours("simulated", simulated), Curve::published("measured", measured)]
}
