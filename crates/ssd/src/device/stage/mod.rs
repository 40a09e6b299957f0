//! Stages: hardware of the controller that the pages of a request pass between host and flash.

mod encryption;

use hybridsim_config::param::{Built, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::{Loader, Saver, SimDuration, StateError};
use hybridsim_flash::ops::FlashOp;

/// A page of a request, or background work, on its way to the flash.
#[derive(Clone, Copy, Debug)]
pub struct StageInput<'a> {
    /// The flash operations of the page, in their order.
    pub operations: &'a [FlashOp],
    /// Bytes of the host's data; 0 of background work.
    pub bytes: u64,
}

/// A stage of the controller.
pub trait Stage {
    /// Controller time of a page, before its flash operations.
    fn time(&mut self, page: &StageInput<'_>) -> SimDuration;

    /// Saves what changes during a run.
    fn save(&self, _to: &mut Saver) {}

    /// Restores what [`Stage::save`] saved.
    ///
    /// # Errors
    /// When the state is of another stage.
    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Ok(())
    }
}

/// A registered stage.
#[derive(Clone, Copy)]
pub struct StageEntry {
    pub description: Description,
    pub build: fn(&Settings) -> Built<dyn Stage>,
}

hybridsim_config::entry!(StageEntry, "stage");

/// All stages.
pub const ENTRIES: &[StageEntry] = &[encryption::ENTRY];
