//! Saving and restoring FTLs and policies.

use hybridsim_engine::{Loader, Saver, StateError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// State that is saved with a device and restored into a device built from the same scenario.
///
/// Deriving [`Serialize`] and `Deserialize` is enough; implement the trait by hand only for types
/// that hold trait objects.
pub trait SavedState {
    /// Writes maps, lists, counters and random streams.
    fn save(&self, to: &mut Saver);

    /// Reads what [`SavedState::save`] wrote.
    ///
    /// # Errors
    /// When the bytes are not such a state.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;
}

impl<T: Serialize + DeserializeOwned> SavedState for T {
    fn save(&self, to: &mut Saver) {
        to.put(self);
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        *self = from.take()?;
        Ok(())
    }
}
