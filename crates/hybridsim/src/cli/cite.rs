//! The command that prints what to cite.

use super::output::{Failure, print};
use hybridsim_artefact::Citations;
use hybridsim_config::registry::Registry;
use hybridsim_simulation::scenario::Scenario;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct CiteArgs {
    /// The scenarios of the study; without one, only the program is cited
    scenarios: Vec<PathBuf>,
    /// The form in which it is printed
    #[arg(long, value_enum, default_value_t = Format::Bibtex)]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// A BibTeX file; sources that are no papers reproduced here are comments
    Bibtex,
    /// One source in each line
    Text,
}

pub fn cite(registry: &Registry, args: &CiteArgs) -> Result<(), Failure> {
    let mut citations = Citations::default();
    for path in &args.scenarios {
        citations.add(&Scenario::read(path, &[], registry)?, registry);
    }
    print(&match args.format {
        Format::Bibtex => citations.bibtex(),
        Format::Text => citations.text(),
    })
}
