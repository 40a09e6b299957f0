//! The commands that look at traces: info and convert.
use super::output::Failure;
use hybridsim_engine::registry::Registry;
#[derive(clap::Args)]
pub struct InfoArgs {}
#[derive(clap::Args)]
pub struct ConvertArgs {}
pub fn info(_r: &Registry, _a: &InfoArgs) -> Result<(), Failure> {
    Ok(())
}
pub fn convert(_r: &Registry, _a: &ConvertArgs) -> Result<(), Failure> {
    Ok(())
}
