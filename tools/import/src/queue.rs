//! Queues: `disksim_ioqueue`, and the schedulers by policy number.

use crate::source::Result;
use crate::syntax::{Block, Item};
use crate::table::Conversion::{Choice, Described, Unsupported, UnsupportedIf};
use crate::table::{Conversion, ImportLog, ParameterTable, TomlTable, convert, row, string};

/// A policy number, DiskSim's name, and the value of a `scheduler` key.
pub type Policy = (i64, &'static str, &'static str);

/// Policies by number (DiskSim 4.0 reference manual, queue and scheduler subcomponents).
pub const POLICIES: &[Policy] = &[
    (1, "FCFS", "\"fcfs\""),
    (2, "ELEVATOR_LBN", "\"look\""),
    (3, "CYCLE_LBN", "\"c-look\""),
    (4, "SSTF_LBN", "\"sstf\""),
    (5, "ELEVATOR_CYL", "{ kind = \"look\", by = \"cylinder\" }"),
    (6, "CYCLE_CYL", "{ kind = \"c-look\", by = \"cylinder\" }"),
    (7, "SSTF_CYL", "{ kind = \"sstf\", by = \"cylinder\" }"),
    (8, "SPTF_OPT", "\"sptf\""),
    (9, "SPCTF_OPT", "\"spctf\""),
    (10, "SATF_OPT", "\"satf\""),
    (11, "WPTF_OPT", "\"wptf\""),
    (12, "WPCTF_OPT", "\"wpctf\""),
    (13, "WATF_OPT", "\"watf\""),
    (14, "ASPTF_OPT", "\"asptf\""),
    (15, "ASPCTF_OPT", "\"aspctf\""),
    (16, "ASATF_OPT", "\"asatf\""),
    (17, "VSCAN_LBN", "\"vscan\""),
    (18, "VSCAN_CYL", "{ kind = \"vscan\", by = \"cylinder\" }"),
    (19, "PRI_VSCAN_LBN", "\"pri-vscan\""),
    (20, "PRI_ASPTF_OPT", "\"pri-asptf\""),
    (21, "PRI_ASPCTF_OPT", "\"pri-aspctf\""),
    (22, "SDF_APPROX", "{ kind = \"sdf\", distance = \"approximate\" }"),
    (23, "SDF_EXACT", "{ kind = \"sdf\", distance = \"exact\" }"),
    (24, "SPTF_ROT_OPT", "\"sptf-rot-opt\""),
    (25, "SPTF_ROT_WEIGHT", "\"sptf-rot-weight\""),
    (26, "SPTF_SEEK_WEIGHT", "\"sptf-seek-weight\""),
    (27, "TSPS", "\"tsps\""),
    (28, "BATCH_FCFS", "\"batch-fcfs\""),
];

pub(crate) const OWN_MAPPING: Conversion =
    Described("nothing: schedulers use the drive's own mapping");
const ESTIMATE_ONLY: Conversion =
    Described("nothing: DiskSim adds it to its schedulers' estimates only");
const SEE_STREAMS: Conversion = Described("nothing: see the sequential stream scheme");

/// The parameters of a queue.
pub const QUEUE: ParameterTable = ParameterTable {
    kind: "disksim_ioqueue",
    becomes: "an `io-queue` in front of a device, or the scheduler of a drive",
    rows: &[
        row("Scheduling policy", Described("`scheduler`")),
        row("Cylinder mapping strategy", OWN_MAPPING),
        row("Write initiation delay", ESTIMATE_ONLY),
        row("Read initiation delay", ESTIMATE_ONLY),
        row("Sequential stream scheme", Described("`concatenate`")),
        row("Maximum concat size", Described("`concatenate_max`")),
        row("Overlapping request scheme", Choice("overlap", OVERLAPS)),
        row(
            "Sequential stream diff maximum",
            UnsupportedIf(
                0.0,
                "requests of a stream are contiguous",
                ("Sequential stream scheme", 3.0),
            ),
        ),
        row("Scheduling timeout scheme", Choice("timeout", TIMEOUTS)),
        row("Timeout time/weight", Described("`timeout_after`")),
        row("Timeout scheduling", Described("`timeout_scheduler`")),
        row("Scheduling priority scheme", Choice("priority", PRIORITIES)),
        row("Priority scheduling", Described("`priority_scheduler`")),
    ],
};

/// The parameters of the queue of a drive with command queueing.
pub const DRIVE_QUEUE: ParameterTable = ParameterTable {
    kind: "disksim_ioqueue",
    becomes: "in a drive: its scheduler",
    rows: &[
        row("Scheduling policy", Described("`scheduler`")),
        row("Cylinder mapping strategy", OWN_MAPPING),
        row("Write initiation delay", ESTIMATE_ONLY),
        row("Read initiation delay", ESTIMATE_ONLY),
        row(
            "Sequential stream scheme",
            Unsupported(0.0, "a drive's queue does not concatenate requests; its buffer does"),
        ),
        row("Maximum concat size", SEE_STREAMS),
        row(
            "Overlapping request scheme",
            Unsupported(0.0, "commands of a drive are served one by one"),
        ),
        row("Sequential stream diff maximum", SEE_STREAMS),
        row("Scheduling timeout scheme", Unsupported(0.0, "commands of a drive have no timeout")),
        row("Timeout time/weight", Described("nothing: see the scheduling timeout scheme")),
        row("Timeout scheduling", Described("nothing: see the scheduling timeout scheme")),
        row("Scheduling priority scheme", Unsupported(0.0, "a drive has no priorities")),
        row("Priority scheduling", Described("nothing: see the scheduling priority scheme")),
    ],
};

const OVERLAPS: &[(i64, &str)] = &[(0, "independent"), (1, "completed"), (2, "queued-writes")];
const TIMEOUTS: &[(i64, &str)] = &[(0, "none"), (1, "full"), (2, "half")];
const PRIORITIES: &[(i64, &str)] = &[(0, "none"), (1, "sync")];
const CONCATENATE: &[&str] = &["none", "reads", "writes", "both"];

/// The scheduler of a drive; its other queue parameters are those of the drive.
pub(crate) fn scheduler(item: &Item, lines: &mut TomlTable, log: &mut ImportLog) -> Result<()> {
    let block = item.block()?;
    policy(block, "Scheduling policy", "scheduler", lines, log)?;
    convert(&DRIVE_QUEUE, block, lines, log)
}

fn policy(
    block: &Block,
    theirs: &str,
    ours: &str,
    lines: &mut TomlTable,
    log: &ImportLog,
) -> Result<()> {
    let item = block.need(theirs)?;
    let number = item.whole_in(1, POLICIES.len() as i64)?;
    let (_, name, value) = POLICIES[number as usize - 1];
    lines.set(ours, value, format!("{theirs} = {number} ({name}), {}", log.line(item.location)));
    Ok(())
}

/// All parameters of a queue in front of a device.
pub(crate) fn io_queue(item: &Item, lines: &mut TomlTable, log: &mut ImportLog) -> Result<()> {
    let block = item.block()?;
    policy(block, "Scheduling policy", "scheduler", lines, log)?;
    convert(&QUEUE, block, lines, log)?;
    let chosen = |key: &str| block.get(key).map_or(Ok(0), |item| item.whole_in(0, 255));
    if chosen("Scheduling timeout scheme")? > 0 {
        let after = block.need("Timeout time/weight")?;
        let seconds = after.number_in(0.0, 86_400.0)?;
        let from = ("Timeout time/weight", after);
        lines.from("timeout_after", format!("\"{seconds}s\""), from, log);
        policy(block, "Timeout scheduling", "timeout_scheduler", lines, log)?;
    }
    if chosen("Scheduling priority scheme")? > 0 {
        policy(block, "Priority scheduling", "priority_scheduler", lines, log)?;
    }
    let Some(scheme) = block.get("Sequential stream scheme") else { return Ok(()) };
    let bits = scheme.whole_in(0, 31)?;
    let from = ("Sequential stream scheme", scheme);
    if bits > 3 {
        log.warn(
            scheme.location,
            "`Sequential stream scheme`: streams are concatenated, but not scheduled together",
        );
    }
    if bits & 3 != 0 {
        lines.from("concatenate", string(CONCATENATE[(bits & 3) as usize]), from, log);
        let size = block.need("Maximum concat size")?;
        let sectors = size.whole_in(0, 1 << 22)?.max(1).to_string();
        lines.from("concatenate_max", sectors, ("Maximum concat size", size), log);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::POLICIES;

    #[test]
    fn policies_are_in_order_of_their_numbers() {
        for (at, (number, ..)) in POLICIES.iter().enumerate() {
            assert_eq!(*number, at as i64 + 1);
        }
    }
}
