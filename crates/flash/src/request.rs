//! Properties of write requests that translation layers and their policies see.

use crate::geometry::Lpn;

/// Properties of the request a written page belongs to, for FTLs that place data by them (LAST and
/// the SLC/MLC chains classify writes as sequential or random by request size).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Pages the request touches.
    pub request_pages: u32,
    /// Placement handle of the request (NVMe FDP; the stream of multi-stream drives), or
    /// identifier where there are several reclaim groups; 0 is the default.
    pub handle: u8,
}

impl Hint {
    /// Properties of a request that touches `pages` and has the default handle.
    pub const fn of_pages(pages: u32) -> Self {
        Self { request_pages: pages, handle: 0 }
    }
}

/// The pages of a write request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRun {
    pub first: Lpn,
    /// Number of consecutive pages, at least 1.
    pub pages: u32,
    /// Whether the last page is written in full; if not, its old data are read before the write.
    pub last_whole: bool,
}
