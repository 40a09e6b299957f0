//! Text files, as far as they are of a size that makes sense: a device never ends.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A scenario or a preset that is larger is none.
pub const SCENARIO_BYTES_MAX: u64 = 64 << 20;
/// Measured latencies may be millions of lines.
pub const READINGS_BYTES_MAX: u64 = 1 << 30;

/// The text of the file at `path`, of at most so many bytes.
///
/// # Errors
/// Fails when it cannot be read, is longer, or is no UTF-8.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<String> {
    read_from(File::open(path)?, bytes_max)
}

/// As [`read`], from something open.
///
/// # Errors
/// As [`read`].
pub fn read_from(from: impl Read, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("it has more than {} MiB; is it the right file?", bytes_max >> 20);
        return Err(io::Error::other(message));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text (UTF-8)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused() {
        let refused = |error: io::Error| error.to_string();
        assert_eq!(read_from(&b"abc"[..], 3).map_err(refused), Ok("abc".to_owned()));
        let long = read_from(io::repeat(b'x'), 1 << 20).map_err(refused);
        assert!(long.is_err_and(|error| error.contains("more than 1 MiB")));
        let odd = read_from(&[0xff][..], 3).map_err(refused);
        assert!(odd.is_err_and(|error| error.contains("no text")));
    }
}
