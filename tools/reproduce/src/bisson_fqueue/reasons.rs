//! Reasons why rows about the FQueue's size differ, in the numbers of the runs themselves.

use super::fqueue::{
    ALL_CACHED, BLOCK_BYTES, ERASES, LARGEST, NO_IDLE, PLAIN, SIZES, SMALLEST, WEEKS_PER_YEAR,
    access, base, disk_writes, flushed, synchronised,
};
use super::{count, largest, sum};
use crate::JobOutput;

const MB_PER_SECTOR: f64 = 512e-6;

/// Megabytes the FQueue holds at most in job `at`.
pub fn level(ran: &[JobOutput], at: usize) -> f64 {
    largest(&ran[at], "fqueue_sectors") * MB_PER_SECTOR
}

/// Share of the writes that job `at` redirects.
fn redirected(ran: &[JobOutput], at: usize) -> f64 {
    count(&ran[at], "redirected_sectors") / count(&ran[PLAIN], "disk_write_ns")
}

/// The size has no effect.
pub fn size(ran: &[JobOutput]) -> String {
    format!(
        "idle time empties the FQueue: one of 10 MB holds at most {:.2} MB, one of 100 MB {:.2} MB",
        level(ran, SMALLEST),
        level(ran, LARGEST)
    )
}

/// Idle synchronisation is too small.
pub fn idle_work(ran: &[JobOutput]) -> String {
    format!(
        "{:.2} of the writes are redirected to 10 MB, and idle time destages them in {:.2} of the \
         write access time without",
        redirected(ran, SMALLEST),
        synchronised(ran, SMALLEST)
    )
}

/// Nothing, or the same, is flushed back at all sizes.
pub fn flushing(ran: &[JobOutput]) -> String {
    format!(
        "an FQueue of 10 MB holds at most {:.2} MB: {:.2} of I/O is flushed back",
        level(ran, SMALLEST),
        flushed(ran, SMALLEST)
    )
}

/// Figure 9 by access times: what idle time writes back costs as much as it saves.
pub fn idle_counted(ran: &[JobOutput]) -> String {
    format!(
        "foreground writes take {:.2}, and writing back in idle time {:.2} of the time without: \
         data leave the FQueue too early to be overwritten or merged, so {:.2} of the disk writes \
         remain. Flash that took no time could not bring it below {1:.2}",
        access(ran, LARGEST),
        synchronised(ran, LARGEST),
        disk_writes(ran, LARGEST)
    )
}

/// Figure 9 by response times.
pub fn responses(ran: &[JobOutput]) -> String {
    let mean = |at: usize| ran[at].results.latency_ns.write.mean.unwrap_or(f64::NAN) / 1e6;
    let access_ms = base(ran) / count(&ran[PLAIN], "disk_write_ns") / 1e6;
    format!(
        "a write takes {:.1} ms without an FQueue, of which {access_ms:.1} ms are access and the \
         rest waiting in bursts (assumed for the generators), and {:.1} ms with one",
        mean(PLAIN),
        mean(LARGEST)
    )
}

/// The largest FQueue redirects more or less than ten times the smallest.
pub fn linearity(ran: &[JobOutput]) -> String {
    format!(
        "the share of writes redirected is {:.2} at 10 MB and {:.2} at 100 MB",
        redirected(ran, SMALLEST),
        redirected(ran, LARGEST)
    )
}

/// Years of endurance.
pub fn years(ran: &[JobOutput]) -> String {
    let (writes, sectors) =
        (count(&ran[LARGEST], "redirected_sectors"), sum(&ran[LARGEST], "redirected_sectors"));
    let (bytes, times) = (SIZES[LARGEST - 1] * 1e6, ERASES / (10.0 * WEEKS_PER_YEAR));
    format!(
        "the week redirects {writes:.0} writes of {:.1} KB on average, {:.1} times the FQueue of \
         100 MB. Ten years allow {:.0} erases of 128 KiB, or {times:.0} times the FQueue, a week",
        sectors / writes * 0.512,
        sectors * 512.0 / bytes,
        bytes / BLOCK_BYTES * times
    )
}

/// Overwrites in memory.
pub fn overwrites(ran: &[JobOutput]) -> String {
    let of = |at: usize| count(&ran[at], "overwritten_sectors");
    format!(
        "of {:.0} writes, {:.0} overwrite data of the FQueue if the rule chooses ({:.2} \
         redirected), {:.0} if all are redirected ({:.2}), and {:.0} without idle processing",
        count(&ran[PLAIN], "disk_write_ns"),
        of(LARGEST),
        redirected(ran, LARGEST),
        of(ALL_CACHED),
        redirected(ran, ALL_CACHED),
        of(NO_IDLE)
    )
}

/// Figure 13: time and number of disk writes.
pub fn disk(ran: &[JobOutput], names: &[&str]) -> String {
    let mean = |at: usize| {
        let time: f64 = names.iter().map(|name| sum(&ran[at], name)).sum();
        time / names.iter().map(|name| count(&ran[at], name)).sum::<f64>() / 1e6
    };
    let reads = |at: usize| sum(&ran[at], "disk_read_ns") / count(&ran[at], "disk_read_ns") / 1e6;
    format!(
        "{:.2} of the disk writes remain and take {:.1} ms each instead of {:.1}, as they are \
         written apart from their neighbours; a read takes {:.1} ms instead of {:.1}",
        disk_writes(ran, LARGEST),
        mean(LARGEST),
        mean(PLAIN),
        reads(LARGEST),
        reads(PLAIN)
    )
}
