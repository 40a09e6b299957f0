//! Properties of write requests that translation layers and their policies see.

/// Properties of the request a written page belongs to, for FTLs that place data by them (LAST and
/// the SLC/MLC chains classify writes as sequential or random by request size).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Pages the request touches.
    pub request_pages: u32,
    /// Pages from this one on whose old data are no longer needed: those of the request, less a
    /// last one that it writes in part; 0 if that is this one. Their writes follow in order, before
    /// any other call.
    pub whole_pages: u32,
    /// Placement handle of the request (NVMe FDP; the stream of multi-stream drives), or
    /// identifier where there are several reclaim groups; 0 is the default.
    pub handle: u8,
}

impl Hint {
    /// Properties of a page of a request that touches `pages`, with the default handle; the data of
    /// the pages behind it stay.
    pub const fn of_pages(pages: u32) -> Self {
        Self { request_pages: pages, whole_pages: 1, handle: 0 }
    }
}
