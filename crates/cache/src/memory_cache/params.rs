//! The parameters of a memory cache.

use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param};

pub(super) const PARAMS: &[Param] = &[
    Param::required("device", Kind::Component, "The device behind the cache"),
    Param::required("size", Kind::Bytes, "Cache size"),
    Param::with(
        "page_size",
        Kind::Bytes,
        "\"4KiB\"",
        "Cache page size: a multiple of 512 bytes, at most 32 KiB",
    )
    .formerly(&["line_size"]),
    Param::with(
        "replacement",
        Kind::Choice(&["lru", "fifo", "slru", "random", "lifo"]),
        "\"lru\"",
        "Replacement policy: which page is evicted",
    ),
    Param::with(
        "protected_share",
        Kind::Number { min: 0.0, max: 1.0 },
        "0.5",
        "With `slru`: share of the pages in the protected segment, which holds pages used again",
    )
    .needs(&[Needs::Is("replacement", &["slru"])]),
    Param::with(
        "write_scheme",
        Kind::Choice(&["back", "early", "through", "sync"]),
        "\"back\"",
        "back: a write completes in the cache; early: likewise, and its write-back starts at once; \
         through: a write completes when the device has it, and stays in the cache; sync: \
         likewise, without staying in the cache",
    ),
    Param::with(
        "allocation",
        Kind::Choice(&["clean", "strict"]),
        "\"clean\"",
        "clean: evict the first clean page in eviction order; strict: evict the first page, and \
         wait for its write-back if it is dirty",
    ),
    Param::with(
        "flush",
        Kind::Choice(&["demand", "periodic"]),
        "\"demand\"",
        "demand: write back when pages have to be evicted; periodic: also every `flush_period`",
    ),
    Param::with("flush_period", Kind::Duration, "\"30s\"", "With `flush = \"periodic\"`")
        .needs(&[Needs::Is("flush", &["periodic"])]),
    Param::optional(
        "flush_idle",
        Kind::Duration,
        "Dirty pages are also written back when no request has arrived for so long",
    ),
    Param::with(
        "flush_cluster",
        Kind::Count { min: 1, max: 4096 },
        "8",
        "Most adjacent pages written back together",
    ),
    Param::with(
        "read_prefetch",
        Kind::Choice(&["none", "front-of-line", "rest-of-line", "whole-line"]),
        "\"none\"",
        "What a read that misses fetches besides: the front of its first page, the rest of its \
         last page, or all of its pages",
    ),
    Param::with(
        "reads_wait",
        Kind::Flag,
        "false",
        "Whether a read that misses waits until its pages can be allocated, for which dirty pages \
         are written back; otherwise it is sent to the device at once",
    ),
    Param::with(
        "shared_read_locks",
        Kind::Flag,
        "true",
        "Whether reads of the same page are served concurrently",
    ),
];
