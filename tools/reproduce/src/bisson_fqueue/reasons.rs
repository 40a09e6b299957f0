//! The numbers of the runs in the reasons why rows about the FQueue's size differ.

use super::fqueue::{
    ALL_CACHED, BLOCK_BYTES, DISK_WRITES, ERASES, LARGEST, NO_IDLE, PLAIN, SIZES, SMALLEST,
    WEEKS_PER_YEAR, access, base, disk_writes, flushed, synchronised,
};
use super::{count, largest, sum};
use crate::JobOutput;

/// Megabytes the FQueue holds at most in job `at`.
pub fn level(ran: &[JobOutput], at: usize) -> f64 {
    largest(&ran[at], "fqueue_sectors") * 512e-6
}

/// Numbers of the jobs of a week, by the names in the texts of claims.
pub fn figures(ran: &[JobOutput]) -> [(&'static str, f64); 26] {
    let writes = count(&ran[PLAIN], "disk_write_ns");
    let redirected = |at: usize| count(&ran[at], "redirected_sectors") / writes;
    let overwrites = |at: usize| count(&ran[at], "overwritten_sectors");
    let response_ms = |at: usize| ran[at].results.latency_ns.write.mean.unwrap_or(f64::NAN) / 1e6;
    let mean_ms = |at: usize, names: &[&str]| {
        let all = |of: fn(&JobOutput, &str) -> f64| -> f64 {
            names.iter().map(|name| of(&ran[at], name)).sum()
        };
        all(sum) / all(count) / 1e6
    };
    let redirected_writes = count(&ran[LARGEST], "redirected_sectors");
    let sectors = sum(&ran[LARGEST], "redirected_sectors");
    let (bytes, times) = (SIZES[LARGEST - 1] * 1e6, ERASES / (10.0 * WEEKS_PER_YEAR));
    [
        ("level_10", level(ran, SMALLEST)),
        ("level_100", level(ran, LARGEST)),
        ("redirected_10", redirected(SMALLEST)),
        ("redirected_100", redirected(LARGEST)),
        ("redirected_all", redirected(ALL_CACHED)),
        ("synchronised_10", synchronised(ran, SMALLEST)),
        ("synchronised_100", synchronised(ran, LARGEST)),
        ("flushed_10", flushed(ran, SMALLEST)),
        ("access_100", access(ran, LARGEST)),
        ("disk_writes_100", disk_writes(ran, LARGEST)),
        ("response_ms", response_ms(PLAIN)),
        ("response_ms_100", response_ms(LARGEST)),
        ("access_ms", base(ran) / writes / 1e6),
        ("redirected_writes", redirected_writes),
        ("redirected_kb", sectors / redirected_writes * 0.512),
        ("fills", sectors * 512.0 / bytes),
        ("fills_allowed", times),
        ("erases_allowed", bytes / BLOCK_BYTES * times),
        ("writes", writes),
        ("overwrites_100", overwrites(LARGEST)),
        ("overwrites_all", overwrites(ALL_CACHED)),
        ("overwrites_no_idle", overwrites(NO_IDLE)),
        ("disk_write_ms", mean_ms(PLAIN, DISK_WRITES)),
        ("disk_write_ms_100", mean_ms(LARGEST, DISK_WRITES)),
        ("disk_read_ms", mean_ms(PLAIN, &["disk_read_ns"])),
        ("disk_read_ms_100", mean_ms(LARGEST, &["disk_read_ns"])),
    ]
}
