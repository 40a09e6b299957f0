//! Saving the state of policies.

use hybridsim_engine::{Loader, Saver, StateError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Saving and restoring the state of a policy. A policy that can be serialised has it; others
/// implement it, or report that they cannot be saved.
pub trait PolicyState {
    /// Writes the state.
    ///
    /// # Errors
    /// If the state cannot be saved.
    fn save(&self, to: &mut Saver) -> Result<(), StateError>;

    /// Reads back what [`PolicyState::save`] wrote.
    ///
    /// # Errors
    /// If the bytes are those of another policy.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;
}

impl<T: Serialize + DeserializeOwned> PolicyState for T {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        to.put(self);
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        *self = from.take()?;
        Ok(())
    }
}
