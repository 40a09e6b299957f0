//! konanki: Konanki, a hybrid hard disk simulator.

mod applications;
mod sections;
mod tables5;
mod validation;
mod wear;

use super::Experiment;

pub const EXPERIMENTS: &[Experiment] = &[
    tables5::VALIDATION,
    tables5::ANALYSIS,
    sections::EXTRACTION,
    sections::CLEANUP,
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

/// Seeds at which the claims of `row` are run.
fn seeds(row: &str) -> u32 {
    crate::seeds("konanki", &[row])
}
