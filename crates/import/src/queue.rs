//! Queues: `disksim_ioqueue`, and which scheduler a policy number stands for.

use crate::source::Trouble;
use crate::syntax::{Block, Item};
use crate::table::{Carry, Lines, Notes, Table, carry, row, string};

/// A policy number, DiskSim's name, ours, and whether ours is the same.
pub type Policy = (i64, &'static str, &'static str, bool);

/// Policies by number (DiskSim 4.0 reference manual, queue and scheduler subcomponents).
pub const POLICIES: &[Policy] = &[
    (1, "FCFS", "fcfs", true),
    (2, "ELEVATOR_LBN", "look", true),
    (3, "CYCLE_LBN", "c-look", true),
    (4, "SSTF_LBN", "sstf", true),
    (5, "ELEVATOR_CYL", "look", false),
    (6, "CYCLE_CYL", "c-look", false),
    (7, "SSTF_CYL", "sstf", false),
    (8, "SPTF_OPT", "sptf", true),
    (9, "SPCTF_OPT", "sptf", false),
    (10, "SATF_OPT", "sptf", false),
    (11, "WPTF_OPT", "sptf", false),
    (12, "WPCTF_OPT", "sptf", false),
    (13, "WATF_OPT", "sptf", false),
    (14, "ASPTF_OPT", "sptf", false),
    (15, "ASPCTF_OPT", "sptf", false),
    (16, "ASATF_OPT", "sptf", false),
    (17, "VSCAN_LBN", "look", false),
    (18, "VSCAN_CYL", "look", false),
    (19, "PRI_VSCAN_LBN", "look", false),
    (20, "PRI_ASPTF_OPT", "sptf", false),
    (21, "PRI_ASPCTF_OPT", "sptf", false),
    (22, "SDF_APPROX", "sstf", false),
    (23, "SDF_EXACT", "sstf", false),
    (24, "SPTF_ROT_OPT", "sptf", false),
    (25, "SPTF_ROT_WEIGHT", "sptf", false),
    (26, "SPTF_SEEK_WEIGHT", "sptf", false),
    (27, "TSPS", "sptf", false),
    (28, "BATCH_FCFS", "fcfs", false),
];

/// The parameters of a queue.
pub const QUEUE: Table = Table {
    kind: "disksim_ioqueue",
    becomes: "the scheduler of the host, a controller or a drive",
    rows: &[
        row("Scheduling policy", Carry::Part("`scheduler`")),
        row(
            "Cylinder mapping strategy",
            Carry::Part("with a policy by address nothing; schedulers here ask the drive itself"),
        ),
        row(
            "Write initiation delay",
            Carry::Lost(0.0, "a queue takes no time of its own to start a write"),
        ),
        row(
            "Read initiation delay",
            Carry::Lost(0.0, "a queue takes no time of its own to start a read"),
        ),
        row("Sequential stream scheme", Carry::Part("requests are not joined in a queue")),
        row("Maximum concat size", Carry::Part("see `Sequential stream scheme`")),
        row("Overlapping request scheme", Carry::Lost(0.0, "overlapping requests stay in order")),
        row("Sequential stream diff maximum", Carry::Part("see `Sequential stream scheme`")),
        row(
            "Scheduling timeout scheme",
            Carry::Lost(0.0, "requests do not change queues with age"),
        ),
        row("Timeout time/weight", Carry::Part("see `Scheduling timeout scheme`")),
        row("Timeout scheduling", Carry::Part("see `Scheduling timeout scheme`")),
        row("Scheduling priority scheme", Carry::Lost(0.0, "there is one queue for all requests")),
        row("Priority scheduling", Carry::Part("see `Scheduling priority scheme`")),
    ],
};

/// The scheduler of a queue as the value of a `scheduler` key.
pub(crate) fn scheduler(item: &Item, lines: &mut Lines, notes: &mut Notes) -> Result<(), Trouble> {
    let block = item.block()?;
    carry(&QUEUE, block, lines, notes)?;
    let policy = block.need("Scheduling policy")?;
    let number = policy.whole_in(1, POLICIES.len() as i64)?;
    let (_, theirs, ours, same) = POLICIES[number as usize - 1];
    if !same {
        let message =
            format!("scheduling policy {number} ({theirs}) becomes `{ours}`, its nearest");
        notes.warn(policy.place, message);
    }
    concatenation(block, notes)?;
    let comment = format!("Scheduling policy = {number} ({theirs}), {}", notes.line(policy.place));
    lines.set("scheduler", string(ours), comment);
    Ok(())
}

fn concatenation(block: &Block, notes: &mut Notes) -> Result<(), Trouble> {
    let Some(scheme) = block.get("Sequential stream scheme") else { return Ok(()) };
    if scheme.whole_in(0, 31)? & 3 != 0 {
        notes.warn(
            scheme.place,
            "sequential requests are not joined in a queue (`Sequential stream scheme`)",
        );
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
