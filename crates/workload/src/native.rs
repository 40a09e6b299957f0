//! The native trace format, `.hst`: written by `trace convert` and the fastest to replay.
//!
//! A header, blocks of records stored by column and compressed with zstd, and an end section with
//! the totals. Every section has a CRC-32 and the file a BLAKE3 digest, so damage is detected and
//! located. `docs/reference/traces.md` gives the layout byte by byte.

mod block;
mod column;
mod read;
mod write;

pub use read::{NativeReader, Totals};
pub use write::NativeWriter;

use hybridsim_engine::SimDuration;

/// The first eight bytes of a native trace. The high bit, the line ends and the control-Z
/// distinguish a binary file from text and reveal a transfer that converted line ends.
pub const MAGIC: [u8; 8] = *b"\x89HST\r\n\x1a\n";
/// The version written, and the newest that can be read.
pub const VERSION: u16 = 1;
pub(crate) const BLOCK_MARK: [u8; 4] = *b"BLK1";
pub(crate) const END_MARK: [u8; 4] = *b"END1";
/// Records in a full block as written; readers accept up to [`BLOCK_RECORDS_MAX`].
pub(crate) const BLOCK_RECORDS: usize = 16_384;
/// Maximum records of a block.
pub(crate) const BLOCK_RECORDS_MAX: u32 = 65_536;
/// Maximum bytes of a block, decompressed: 40 a record and the names of its new volumes.
pub(crate) const BLOCK_BYTES_MAX: u32 = 8 << 20;
/// Maximum bytes of the header's body.
pub(crate) const HEADER_BYTES_MAX: u32 = 1 << 20;
/// Length of the header before its body: magic, version, reserved, body length.
pub(crate) const PREAMBLE_BYTES: usize = 16;
/// Length of a block's header: mark, records, decompressed bytes, compressed bytes, CRC-32.
pub(crate) const BLOCK_HEADER_BYTES: usize = 20;
/// Length of the end section.
pub(crate) const END_BYTES: usize = 68;
/// Maximum length of a volume's name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The header of a native trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Requests in the file, where known when writing began.
    pub records: Option<u64>,
    /// Time from the first to the last arrival, where known when writing began.
    pub span: Option<SimDuration>,
    /// Number of volumes, where known when writing began.
    pub volumes: Option<u32>,
    /// Whether the requests carry arrival times.
    pub has_times: bool,
    /// Provenance of the trace: (key, text) pairs such as `command`, `kernel`, `file-system`,
    /// `date`, `source`.
    pub notes: Vec<(String, String)>,
}

impl Default for Header {
    fn default() -> Self {
        Self { records: None, span: None, volumes: None, has_times: true, notes: Vec::new() }
    }
}

/// CRC-32 of the concatenation of `parts`.
pub(crate) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests;
