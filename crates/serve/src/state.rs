//! The state of a served device: that of the simulated system and the contents, in one file.

use hybridsim_simulation::state;
use std::io;
use std::path::Path;

/// The description of the system that a file of this kind belongs to.
fn owner(system: &str) -> String {
    format!("served contents\n{system}")
}

/// Writes the file at `path`: `machine` is the state of `system`, `contents` what the device holds.
///
/// # Errors
/// Fails when it cannot be written; an older file is kept.
pub fn save(path: &Path, system: &str, machine: &[u8], contents: &[u8]) -> io::Result<()> {
    let length = (machine.len() as u64).to_le_bytes();
    state::write_packed(path, &owner(system), &[&length[..], machine, contents])
}

/// The state of the system and the contents.
///
/// # Errors
/// Fails when `bytes` are something else, damaged, or of another program or system.
pub fn unpack(bytes: &[u8], system: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    let both = state::unpack(bytes, &owner(system)).map_err(|error| error.to_string())?;
    let parts = both.split_at_checked(8).and_then(|(length, rest)| {
        let length = u64::from_le_bytes(length.try_into().ok()?);
        rest.split_at_checked(usize::try_from(length).ok()?)
    });
    let (machine, contents) = parts.ok_or("it is damaged")?;
    Ok((machine.to_vec(), contents.to_vec()))
}
