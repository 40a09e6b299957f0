//! Properties of write requests that translation layers and their policies see.

/// Properties of the request a written page belongs to, for FTLs that place data by them (LAST and
/// the SLC/MLC chains classify writes as sequential or random by request size).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Pages the request touches.
    pub request_pages: u32,
    /// Pages from this one on that the request writes in full.
    pub whole_pages: u32,
    /// Placement handle of the request (NVMe FDP; the stream of multi-stream drives), or
    /// identifier where there are several reclaim groups; 0 is the default.
    pub handle: u8,
}

impl Hint {
    /// Properties of the last page of a request that touches `pages` and has the default handle.
    pub const fn of_pages(pages: u32) -> Self {
        Self { request_pages: pages, whole_pages: 1, handle: 0 }
    }
}
