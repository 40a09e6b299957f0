//! Archives of studies for artefact evaluations, and what a publication should cite.
//!
//! [`Archive`] collects what `run --out` and `sweep --out` wrote with the traces of their
//! scenarios, in which paths become relative, and a script that runs all of it again. It knows the
//! files of results and nothing of models; [`Citations`] knows the origins of registered entries.

mod archive;
mod cite;
mod inputs;
mod readme;
mod study;

pub use archive::Archive;
pub use cite::Citations;
