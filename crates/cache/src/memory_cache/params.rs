//! The parameters of a memory cache.

use hybridsim_config::param::{Kind, Param};

/// What a scenario may say of one.
pub(super) const PARAMS: &[Param] = &[
    Param::required("device", Kind::Component, "What is cached"),
    Param::required("size", Kind::Bytes, "Memory for data"),
    Param::with(
        "line_size",
        Kind::Bytes,
        "\"4KiB\"",
        "Size of a line, a multiple of 512 bytes, at most 32KiB",
    ),
    Param::with(
        "replacement",
        Kind::Choice(&["lru", "fifo", "slru", "random", "lifo"]),
        "\"lru\"",
        "Which line goes when room is needed",
    ),
    Param::with(
        "protected_share",
        Kind::Number { min: 0.0, max: 1.0 },
        "0.5",
        "With `slru`: the share of lines that are protected because they were used again",
    ),
    Param::with(
        "write_scheme",
        Kind::Choice(&["back", "early", "through", "sync"]),
        "\"back\"",
        "back: a write is complete in the cache; early: so, and it is written back at \
         once; through: when the device has it, and it stays in the cache; sync: when the \
         device has it, and it does not",
    ),
    Param::with(
        "allocation",
        Kind::Choice(&["clean", "strict"]),
        "\"clean\"",
        "clean: of the lines in the order of replacement, the first clean one makes room; \
         strict: the first one, and whoever needs the room waits until it is written back",
    ),
    Param::with(
        "flush",
        Kind::Choice(&["demand", "periodic"]),
        "\"demand\"",
        "demand: written back when room is needed; periodic: and every `flush_period`",
    ),
    Param::with("flush_period", Kind::Duration, "\"30s\"", "With `flush = \"periodic\"`"),
    Param::optional(
        "flush_idle",
        Kind::Duration,
        "Lines are also written back when nothing was asked for so long",
    ),
    Param::with(
        "flush_cluster",
        Kind::Count { min: 1, max: 4096 },
        "8",
        "Neighbouring lines written back together at most",
    ),
    Param::with(
        "read_prefetch",
        Kind::Choice(&["none", "front-of-line", "rest-of-line", "whole-line"]),
        "\"none\"",
        "What is fetched beyond what a read misses: the front of its first line, the rest \
         of its last line, or all of its lines",
    ),
    Param::with(
        "reads_wait",
        Kind::Flag,
        "false",
        "Whether a read that misses waits until there is room in the cache, dirty lines \
         being written back first; otherwise it goes to the device at once",
    ),
    Param::with(
        "shared_read_locks",
        Kind::Flag,
        "true",
        "Whether reads of one line may go on side by side",
    ),
];
