//! I/O schedulers: each selects the next request to dispatch from a queue.
//!
//! All break ties in order of arrival. The description of each says which requests it can starve.
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

pub mod anticipatory;
pub mod batch;
pub mod deadline;
pub mod elevator;
pub mod fcfs;
pub mod foreground_first;
pub mod mimicked;
pub mod nearest;
pub mod position;
pub mod shortest_first;
#[cfg(test)]
mod tests;
pub mod tsps;

use hybridsim_config::build::SchedulerEntry;
use hybridsim_config::param::{Built, Param, Settings};
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::Scheduler;

/// All schedulers.
pub const ENTRIES: &[SchedulerEntry] = &[
    fcfs::ENTRY,
    nearest::SSTF,
    elevator::LOOK,
    elevator::C_LOOK,
    elevator::SCAN,
    elevator::C_SCAN,
    nearest::VSCAN,
    shortest_first::SDF,
    shortest_first::SPTF,
    shortest_first::SPCTF,
    shortest_first::SATF,
    shortest_first::WPTF,
    shortest_first::WPCTF,
    shortest_first::WATF,
    shortest_first::ASPTF,
    shortest_first::ASPCTF,
    shortest_first::ASATF,
    foreground_first::PRI_VSCAN,
    foreground_first::PRI_ASPTF,
    foreground_first::PRI_ASPCTF,
    shortest_first::ROT_OPT,
    shortest_first::ROT_WEIGHT,
    shortest_first::SEEK_WEIGHT,
    tsps::ENTRY,
    batch::ENTRY,
    deadline::ENTRY,
    anticipatory::ENTRY,
    mimicked::ENTRY,
];

/// An entry of the families that one file implements.
const fn entry(
    name: &'static str,
    summary: &'static str,
    origin: &'static str,
    params: &'static [Param],
    build: fn(&Settings) -> Built<dyn Scheduler>,
) -> SchedulerEntry {
    SchedulerEntry { description: Description { name, summary, origin, params }, build }
}
