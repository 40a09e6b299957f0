//! The events of translation layers.

use hybridsim_engine::events;

events! {
    /// Events of translation layers on the host.
    pub enum LayerEvent {
        /// A write is appended to the log.
        LogWrite = 27 "log_write" {
            /// Sectors of the request.
            requested: u32 => B,
            /// Sectors of the blocks that it covers at least in part.
            written: u64 => C,
        },
        /// A summary was appended to a full segment.
        LogSummary = 28 "log_summary" {
            /// Sectors of the summary.
            sectors: u32 => B,
        },
        /// Valid blocks of a segment that is cleaned are appended to another.
        BlocksMoved = 29 "blocks_moved" {
            /// Sectors of the blocks.
            sectors: u32 => B,
        },
        /// A segment was cleaned.
        SegmentCleaned = 30 "segment_cleaned",
        /// A segment without valid blocks is free: its zone was reset, or its sectors discarded.
        SegmentFreed = 31 "segment_freed" {
            /// Segments that are free from now on.
            free: u32 => B,
        },
    }
}
