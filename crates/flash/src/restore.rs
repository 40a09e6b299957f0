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

/// Checks that every entry of a table of numbers is below `bound`, or `u32::MAX` for none.
pub fn check_below(name: &str, table: &[u32], bound: usize) -> Result<(), StateError> {
    match table.iter().find(|number| **number != u32::MAX && **number as usize >= bound) {
        Some(number) => Err(StateError(format!("{name} contains {number}, must be below {bound}"))),
        None => Ok(()),
    }
}

/// An error unless `holds`.
pub fn check(holds: bool, message: &str) -> Result<(), StateError> {
    if holds { Ok(()) } else { Err(StateError(message.to_owned())) }
}
