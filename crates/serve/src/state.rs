//! The state of a served device: that of the simulated system and the contents, in one file.

use hybridsim_simulation::state;

/// What a file of this kind belongs to.
fn owner(system: &str) -> String {
    format!("served contents\n{system}")
}

/// The file's bytes: `machine` is the state of `system`, `contents` what the device holds.
pub fn pack(system: &str, machine: &[u8], contents: &[u8]) -> Vec<u8> {
    let length = (machine.len() as u64).to_le_bytes();
    state::pack(&owner(system), &[&length[..], machine, contents].concat())
}

/// The state of the system and the contents.
///
/// # Errors
/// When `bytes` are something else, damaged, or of another program or system.
pub fn unpack(bytes: &[u8], system: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    let both = state::unpack(bytes, &owner(system)).map_err(|error| error.to_string())?;
    let parts = both.split_at_checked(8).and_then(|(length, rest)| {
        let length = u64::from_le_bytes(length.try_into().ok()?);
        rest.split_at_checked(usize::try_from(length).ok()?)
    });
    let (machine, contents) = parts.ok_or("it is damaged")?;
    Ok((machine.to_vec(), contents.to_vec()))
}
