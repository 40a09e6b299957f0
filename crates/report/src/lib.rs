//! Results for people and programs: a terminal table, JSON, one self-contained HTML file, and what
//! other tools read.

pub mod chart;
pub mod diagram;
pub mod figures;
pub mod fio;
pub mod hgrm;
pub mod html;
pub mod json;
pub mod study;
pub mod terminal;
pub mod timeline;

use hybridsim_observe::{Pictures, RunResults};

/// A run as a report shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its figures.
    pub results: RunResults,
    /// What is drawn of it; without it the report has no charts of this run.
    pub pictures: Option<Pictures>,
    /// The scenario as it was resolved, in TOML.
    pub scenario_text: String,
}
