//! Converts simple disks.

use crate::disk::rate;
use crate::queue::DRIVE_QUEUE;
use crate::source::Result;
use crate::syntax::Block;
use crate::table::Conversion::{Described, OutputOnly, Sectors};
use crate::table::{ImportLog, ParameterTable, TomlTable, check_names, convert, ms, row};

/// The parameters of a simple disk.
pub const SIMPLE: ParameterTable = ParameterTable {
    kind: "disksim_simpledisk",
    becomes: "a component of kind `constant-device`",
    rows: &[
        row("Block count", Sectors("capacity")),
        row("Access time", Described("`latency`")),
        row("Constant access time", Described("`latency`")),
        row("Command overhead", Described("added to `latency`")),
        row("Bus transaction latency", Described("added to `latency`")),
        row("Bulk sector transfer time", Described("`rate`, unless the bus is slower")),
        row("Never disconnect", Described("nothing: the device has its own bus")),
        row("Print stats", OutputOnly),
        row("Max queue length", Described("`queue_depth`: one request at a time")),
        row("Scheduler", Described("nothing: the host schedules")),
    ],
};

/// The keys of the simple disk `block` describes; a sector takes at least `bus_ms` on its bus.
pub(crate) fn lines(block: &Block, bus_ms: f64, log: &mut ImportLog) -> Result<TomlTable> {
    let mut lines = TomlTable::default();
    lines.set("kind", "\"constant-device\"", "");
    let time = |key: &str| block.get(key).map_or(Ok(0.0), |item| item.number_in(0.0, 1e6));
    let access = match block.get("Access time") {
        Some(item) => item.number_in(0.0, 1e6)?,
        None => time("Constant access time")?,
    };
    let whole = access + time("Command overhead")? + time("Bus transaction latency")?;
    lines.set("latency", ms(whole), "access time, command overhead and bus transaction latency");
    let sector_ms = time("Bulk sector transfer time")?.max(bus_ms);
    if sector_ms > 0.0 {
        lines.set("rate", rate(sector_ms), format!("a sector in {sector_ms} ms"));
    }
    lines.set("queue_depth", "1", "");
    convert(&SIMPLE, block, &mut lines, log)?;
    if let Some(queue) = block.get("Scheduler") {
        check_names(&DRIVE_QUEUE, queue.block()?, log);
    }
    Ok(lines)
}
