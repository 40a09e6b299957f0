//! I/O schedulers: which waiting request goes to the device next. One file each.
//!
//! All break ties by order of arrival. Each file says what its policy can starve.
//!
//! | DiskSim's number | here |
//! |---|---|
//! | 1 | `fcfs` |
//! | 2, 5 ELEVATOR | `look`, `by = "lbn"` or `"cylinder"` |
//! | 3, 6 CYCLE | `c-look` |
//! | 4, 7 SSTF | `sstf` |
//! | 8, 9, 10 | `sptf`, `spctf`, `satf` |
//! | 11, 12, 13 | `wptf`, `wpctf`, `watf` |
//! | 14, 15, 16 | `asptf`, `aspctf`, `asatf` |
//! | 17, 18 VSCAN; 19 | `vscan`; `pri-vscan` |
//! | 20, 21 | `pri-asptf`, `pri-aspctf` |
//! | 22, 23 SDF | `sdf`, `distance = "approximate"` or `"exact"` |
//! | 24, 25, 26 | `sptf-rot-opt`, `sptf-rot-weight`, `sptf-seek-weight` |
//! | 27, 28 | `tsps`, `batch-fcfs` |

pub mod aged;
pub mod anticipatory;
pub mod batch;
pub mod clook;
pub mod deadline;
pub mod fcfs;
pub mod least;
pub mod look;
pub mod position;
pub mod priority;
pub mod scan;
pub mod sdf;
pub mod sptf;
pub mod sptf_weight;
pub mod sstf;
#[cfg(test)]
mod tests;
pub mod tsps;
pub mod vscan;
pub mod weighted;

use hybridsim_config::build::SchedulerEntry;

/// All schedulers.
pub const ENTRIES: &[SchedulerEntry] = &[
    fcfs::ENTRY,
    sstf::ENTRY,
    look::ENTRY,
    clook::ENTRY,
    scan::SCAN,
    scan::C_SCAN,
    vscan::ENTRY,
    sdf::ENTRY,
    sptf::SPTF,
    sptf::SPCTF,
    sptf::SATF,
    weighted::WPTF,
    weighted::WPCTF,
    weighted::WATF,
    aged::ASPTF,
    aged::ASPCTF,
    aged::ASATF,
    priority::PRI_VSCAN,
    priority::PRI_ASPTF,
    priority::PRI_ASPCTF,
    sptf_weight::ROT_OPT,
    sptf_weight::ROT_WEIGHT,
    sptf_weight::SEEK_WEIGHT,
    tsps::ENTRY,
    batch::ENTRY,
    deadline::ENTRY,
    anticipatory::ENTRY,
];
