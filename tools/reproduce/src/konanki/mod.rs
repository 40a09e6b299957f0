//! konanki: Konanki, a hybrid hard disk simulator.

mod applications;
mod tables5;
mod validation;
mod wear;

use super::Experiment;

pub const EXPERIMENTS: &[Experiment] = &[
    tables5::VALIDATION,
    tables5::ANALYSIS,
    validation::STICK,
    validation::ROUND_TRIP,
    wear::ONE_PASS,
    wear::FIFTEEN_PASSES,
    applications::FIREFOX,
    applications::DIA,
    applications::MP3,
    applications::UNTAR,
    applications::POSTMARK,
];
