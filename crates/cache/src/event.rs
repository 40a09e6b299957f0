//! The events of caches, shared by the controllers of hybrid systems.

use hybridsim_engine::{Op, events};

events! {
    /// Events of caches.
    pub enum CacheEvent {
        /// A host read or write looked up its pages; caches without pages count sectors.
        CacheLookup = 14 "cache_lookup" {
            /// Operation of the request.
            op: Op => A,
            /// Pages found: of a read those whose requested sectors are all cached, of a write
            /// those that were cached before it.
            hits: u32 => B,
            /// Pages not found.
            misses: u32 => C,
        },
        /// A request bypassed the cache.
        Bypassed = 15 "bypassed" {
            /// Operation.
            op: Op => A,
            /// Length in sectors.
            sectors: u32 => B,
        },
        /// Dirty data were written back to the medium below.
        Destaged = 16 "destaged" {
            /// Sectors written.
            sectors: u32 => B,
        },
        /// A cleanup started.
        CleanupStarted = 17 "cleanup_started",
        /// The cleanup ended.
        CleanupEnded = 18 "cleanup_ended" {
            /// Pages freed.
            pages: u32 => B,
        },
        /// The number of dirty pages changed.
        DirtyPages = 19 "dirty_pages" {
            /// Dirty pages.
            pages: u32 => B,
        },
    }
}
