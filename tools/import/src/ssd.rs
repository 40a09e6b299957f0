//! SSDs of DiskSim's SSD extension: `ssdmodel_ssd`.

use crate::disk::Link;
use crate::queue;
use crate::source::{LocatedError, Result};
use crate::syntax::Block;
use crate::table::Conversion::{Choice, Described, Ms, OutputOnly, Unsupported};
use crate::table::{ImportLog, ParameterTable, TomlTable, check_names, convert, ms, ms_of, row};

/// The parameters of an SSD.
pub const SSD: ParameterTable = ParameterTable {
    kind: "ssdmodel_ssd",
    becomes: "a component of kind `ssd` with a page map",
    rows: &[
        row("Scheduler", Described("nothing: commands are served in order; other policies warn")),
        row(
            "Max queue length",
            Described(
                "`device_queue_depth` of the driver's queue, with `Use queueing in subsystem`",
            ),
        ),
        row("Block count", Described("nothing: the geometry decides")),
        row("Bus transaction latency", Described("added to the overheads of `controller`")),
        row(
            "Bulk sector transfer time",
            Described("`controller.host_rate`, unless the bus is slower"),
        ),
        row("Never disconnect", Described("nothing: the SSD has its own link")),
        row("Print stats", OutputOnly),
        row(
            "Command overhead",
            Described("`controller.read_overhead`, `controller.write_overhead`"),
        ),
        row("Timing model", Described("nothing: channels, dies and planes work in parallel")),
        row("Flash chip elements", Described("`channels`, with `Elements per gang`")),
        row("Page size", Described("`page_size`, in bytes")),
        row(
            "Pages per block",
            Described("`pages_per_block`, without the page that holds the block's summary"),
        ),
        row("Blocks per element", Described("nothing: planes and blocks per plane give it")),
        row(
            "Element stride pages",
            Described("nothing: pages are written to channels, dies and planes in turn"),
        ),
        row("Chip xfer latency", Described("`channel_rate`: milliseconds per byte")),
        row("Page read latency", Ms("read_time")),
        row("Page write latency", Ms("program_time")),
        row("Block erase latency", Ms("erase_time")),
        row("Write policy", Unsupported(2.0, "pages are always written out of place")),
        row("Reserve pages percentage", Described("`over_provisioning`, whole blocks of a plane")),
        row("Minimum free blocks percentage", Described("`gc_free_blocks`, of a plane")),
        row("Cleaning policy", Described("`gc`: 1 `random`, 2 and 3 `greedy`")),
        row("Planes per package", Described("`planes_per_die`, of all dies of an element")),
        row("Blocks per plane", Described("`blocks_per_plane`")),
        row("Plane block mapping", Described("nothing: blocks of a plane are interchangeable")),
        row("Copy back", Choice("copy_back.within", &[(0, "none"), (1, "plane")])),
        row("Number of parallel units", Described("`dies_per_channel`, with `Elements per gang`")),
        row("Elements per gang", Described("`dies_per_channel`: a gang shares a channel")),
        row(
            "Cleaning in background",
            Unsupported(0.0, "set `idle_after` for collection in idle time"),
        ),
        row("Gang share", Unsupported(1.0, "a gang shares a channel, not its commands")),
        row("Allocation pool logic", Described("nothing: every plane has blocks of its own")),
    ],
};

struct Geometry {
    channels: i64,
    dies_per_channel: i64,
    planes_per_die: i64,
    blocks_per_plane: i64,
    reserved_per_plane: i64,
    pages_per_block: i64,
    page_sectors: i64,
}

impl Geometry {
    fn of(block: &Block) -> Result<Self> {
        let count = |key: &str, max: i64| block.need(key)?.whole_in(1, max);
        let elements = count("Flash chip elements", 1 << 20)?;
        let gang = count("Elements per gang", 1 << 20)?;
        let dies = count("Number of parallel units", 64)?;
        let planes = count("Planes per package", 1 << 10)?;
        let blocks_per_plane = count("Blocks per plane", 1 << 24)?;
        let whole = block.need("Blocks per element")?;
        let found = whole.whole_in(1, 1 << 40)?;
        if planes * blocks_per_plane != found {
            let message = format!(
                "`Blocks per element = {found}`, but {planes} planes of {blocks_per_plane} blocks \
                 have {}",
                planes * blocks_per_plane
            );
            return Err(LocatedError::new(whole.location, message));
        }
        let divides = |key: &str, all: i64, part: i64, what: &str| match all % part {
            0 => Ok(all / part),
            _ => {
                let message = format!("`{key} = {part}` does not divide {all} {what}");
                Err(LocatedError::new(block.need(key)?.location, message))
            }
        };
        let reserved = block.need("Reserve pages percentage")?.whole_in(0, 99)?;
        Ok(Self {
            channels: divides("Elements per gang", elements, gang, "elements")?,
            dies_per_channel: gang * dies,
            planes_per_die: divides("Number of parallel units", planes, dies, "planes")?,
            blocks_per_plane,
            reserved_per_plane: reserved * blocks_per_plane / 100,
            // DiskSim writes a summary to the last page of every block.
            pages_per_block: block.need("Pages per block")?.whole_in(2, 1 << 16)? - 1,
            page_sectors: count("Page size", 1 << 12)?,
        })
    }

    fn exported_sectors(&self) -> i64 {
        let planes = self.channels * self.dies_per_channel * self.planes_per_die;
        let blocks = planes * (self.blocks_per_plane - self.reserved_per_plane);
        blocks.saturating_mul(self.pages_per_block * self.page_sectors)
    }
}

pub(crate) fn sectors(block: &Block) -> Result<u64> {
    let sectors = Geometry::of(block)?.exported_sectors();
    match u64::try_from(sectors) {
        Ok(sectors @ 1..=0x4_0000_0000_0000) => Ok(sectors),
        _ => Err(LocatedError::new(block.location, "the SSD has more than 2^50 sectors")),
    }
}

/// The keys of an `ssd`. `above` is the slowest link above it.
pub(crate) fn lines(block: &Block, above: Link, log: &mut ImportLog) -> Result<TomlTable> {
    let mut lines = TomlTable::default();
    lines.set("kind", "\"ssd\"", "");
    let geometry = Geometry::of(block)?;
    shape(&geometry, block, &mut lines, log)?;
    collection(&geometry, block, &mut lines, log)?;
    lines.set("precondition", "\"fill\"", "DiskSim starts with every exported page written");
    times(block, &mut lines, log)?;
    above.and(Link::of(block)?).host_rate("controller.host_rate", &mut lines);
    convert(&SSD, block, &mut lines, log)?;
    if let Some(queue) = block.get("Scheduler") {
        let queue = queue.block()?;
        check_names(&queue::DRIVE_QUEUE, queue, log);
        let policy = queue.need("Scheduling policy")?;
        if policy.whole_in(1, queue::POLICIES.len() as i64)? != 1 {
            log.warn(policy.location, "an SSD starts its commands in the order of their arrival");
        }
    }
    Ok(lines)
}

fn shape(geometry: &Geometry, block: &Block, lines: &mut TomlTable, log: &ImportLog) -> Result<()> {
    let page = format!("\"{}B\"", geometry.page_sectors * 512);
    for (key, value, from) in [
        ("channels", geometry.channels.to_string(), "Flash chip elements"),
        ("dies_per_channel", geometry.dies_per_channel.to_string(), "Elements per gang"),
        ("planes_per_die", geometry.planes_per_die.to_string(), "Planes per package"),
        ("blocks_per_plane", geometry.blocks_per_plane.to_string(), "Blocks per plane"),
        ("pages_per_block", geometry.pages_per_block.to_string(), "Pages per block"),
        ("page_size", page, "Page size"),
    ] {
        lines.from(key, value, (from, block.need(from)?), log);
    }
    let exported = geometry.blocks_per_plane - geometry.reserved_per_plane;
    let spare = geometry.reserved_per_plane as f64 / exported as f64;
    let item = block.need("Reserve pages percentage")?;
    lines.from("over_provisioning", spare.to_string(), ("Reserve pages percentage", item), log);
    Ok(())
}

/// Collection: a plane below its minimum of free blocks is collected before the write goes on,
/// and what is copied goes to the block that host writes go to.
fn collection(
    geometry: &Geometry,
    block: &Block,
    lines: &mut TomlTable,
    log: &mut ImportLog,
) -> Result<()> {
    let item = block.need("Minimum free blocks percentage")?;
    let percent = item.whole_in(0, 99)?;
    let free = (percent * geometry.blocks_per_plane / 100).max(1);
    let policy = block.need("Cleaning policy")?;
    let victims = ["random", "greedy", "greedy"][policy.whole_in(1, 3)? as usize - 1];
    if policy.whole_in(3, 3).is_ok() {
        log.warn(policy.location, "wear is not levelled: `Cleaning policy = 3` becomes `greedy`");
    }
    let ftl = format!(
        "{{ kind = \"page\", gc = \"{victims}\", gc_free_blocks = {free}, \
         gc_pace = \"blocking\", gc_separate = false }}"
    );
    lines.from("ftl", ftl, ("Minimum free blocks percentage", item), log);
    Ok(())
}

fn times(block: &Block, lines: &mut TomlTable, log: &ImportLog) -> Result<()> {
    let time = |key: &str| block.get(key).map_or(Ok(0.0), ms_of);
    let overhead = time("Command overhead")? + time("Bus transaction latency")?;
    let from = ("Command overhead", block.need("Command overhead")?);
    for key in ["controller.read_overhead", "controller.write_overhead"] {
        lines.from(key, ms(overhead), from, log);
    }
    let item = block.need("Chip xfer latency")?;
    let byte_ms = item.number_in(0.0, 1e6)?;
    if byte_ms > 0.0 {
        let rate = (1e3 / byte_ms).round().max(1.0);
        lines.from("channel_rate", format!("\"{rate}B/s\""), ("Chip xfer latency", item), log);
    }
    Ok(())
}
