//! The native trace format, `.hst`: what `trace convert` writes and replays read fastest.
//!
//! A header, blocks of records stored by column and packed with zstd, and an end mark with the
//! totals. Every piece has its own CRC-32 and the whole file a BLAKE3 digest, so damage is found
//! and located. `docs/trace-format.md` gives the layout byte by byte.

mod block;
mod column;
mod entry;
mod read;
mod write;

pub use entry::ENTRY;
pub use read::{NativeReader, Totals};
pub use write::NativeWriter;

use hybridsim_engine::SimDuration;

/// The first eight bytes of a native trace. The high bit, the line ends and the control-Z tell a
/// binary file from text and show when a transfer "repaired" line ends.
pub const MAGIC: [u8; 8] = *b"\x89HST\r\n\x1a\n";
/// The version this program writes, and the newest it reads.
pub const VERSION: u16 = 1;
/// Marks the start of a block.
pub(crate) const BLOCK_MARK: [u8; 4] = *b"BLK1";
/// Marks the end of the file.
pub(crate) const END_MARK: [u8; 4] = *b"END1";
/// Records in a full block as written; readers accept up to [`BLOCK_RECORDS_MAX`].
pub(crate) const BLOCK_RECORDS: usize = 16_384;
/// Most records a block may hold.
pub(crate) const BLOCK_RECORDS_MAX: u32 = 65_536;
/// Most bytes of a block, unpacked: 40 a record and the names of its new volumes.
pub(crate) const BLOCK_BYTES_MAX: u32 = 8 << 20;
/// Most bytes of the header's body.
pub(crate) const HEADER_BYTES_MAX: u32 = 1 << 20;
/// Length of the header before its body: magic, version, reserved, body length.
pub(crate) const PREAMBLE_BYTES: usize = 16;
/// Length of a block's header: mark, records, unpacked bytes, packed bytes, CRC-32.
pub(crate) const BLOCK_HEADER_BYTES: usize = 20;
/// Length of the end piece.
pub(crate) const END_BYTES: usize = 68;
/// Longest name of a volume, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// What the header of a native trace says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Requests in the file, where the writer knew it beforehand.
    pub records: Option<u64>,
    /// Arrival of the last request, counted from the first, where known beforehand.
    pub span: Option<SimDuration>,
    /// Number of volumes, where known beforehand.
    pub volumes: Option<u32>,
    /// Whether the requests carry arrival times.
    pub has_times: bool,
    /// Where the trace comes from: (key, text) pairs such as `command`, `kernel`, `file-system`,
    /// `date`, `source`.
    pub notes: Vec<(String, String)>,
}

impl Default for Header {
    fn default() -> Self {
        Self { records: None, span: None, volumes: None, has_times: true, notes: Vec::new() }
    }
}

/// CRC-32 of several pieces one after the other.
pub(crate) fn checksum(pieces: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for piece in pieces {
        hasher.update(piece);
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests;
