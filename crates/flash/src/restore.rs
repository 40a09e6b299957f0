//! Tables read back from a checkpoint.

use hybridsim_engine::state::{Loader, StateError, same_length};
use serde::de::DeserializeOwned;

/// Replaces `table` by the saved one, which must have the same length.
pub fn table<T: DeserializeOwned>(
    from: &mut Loader<'_>,
    name: &str,
    table: &mut Vec<T>,
) -> Result<(), StateError> {
    let saved: Vec<T> = from.take()?;
    same_length(name, saved.len(), table.len())?;
    *table = saved;
    Ok(())
}

/// An error unless `holds`.
pub fn check(holds: bool, message: &str) -> Result<(), StateError> {
    if holds { Ok(()) } else { Err(StateError(message.to_owned())) }
}
