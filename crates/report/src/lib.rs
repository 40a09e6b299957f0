//! Results as a terminal table, JSON, a self-contained HTML file, and files for other tools.

pub mod chart;
pub mod column;
pub mod diagram;
mod document;
pub mod figures;
pub mod fio;
pub mod hgrm;
pub mod html;
pub mod json;
pub mod series;
pub mod study;
pub mod sweep;
pub mod terminal;
pub mod timeline;

use hybridsim_observe::{Pictures, RunResults};

/// A run as shown in a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub results: RunResults,
    /// Data of the charts; without them the report has no charts of this run.
    pub pictures: Option<Pictures>,
    /// The resolved scenario, in TOML.
    pub scenario_text: String,
}
