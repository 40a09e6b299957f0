//! Drives: `disksim_disk`, the electronics and the buffer of a `hard-disk`.

use crate::source::{FileSource, Result};
use crate::syntax::{Block, Item};
use crate::table::Conversion::{
    Choice, Described, Flag, Ms, Number, OutputOnly, Sectors, UnsupportedQueued,
};
use crate::table::{
    Conversion, ImportLog, ParameterTable, TomlTable, check_names, convert, ms, ms_of, row,
};
use crate::{mechanics, queue};

const FULL_HITS: Conversion = UnsupportedQueued(0.0, "only full hits overtake other commands");
const WATERMARKS: &[(i64, &str)] = &[(0, "segment"), (1, "request")];

/// The parameters of a drive.
pub const DISK: ParameterTable = ParameterTable {
    kind: "disksim_disk",
    becomes: "a component of kind `hard-disk`",
    rows: &[
        row("Model", Described("geometry, seek and rotation")),
        row("Per-request overhead time", Described("added to every command overhead")),
        row("Time scale for overheads", Described("multiplies every command overhead")),
        row(
            "Bulk sector transfer time",
            Described("`host_rate`, `host_write_rate`, unless the bus is slower"),
        ),
        row("Hold bus entire read xfer", Described("nothing: the link belongs to one drive")),
        row("Hold bus entire write xfer", Described("nothing: the link belongs to one drive")),
        row(
            "Allow almost read hits",
            UnsupportedQueued(0.0, "a read of sectors being read ahead is queued"),
        ),
        row("Allow sneaky full read hits", Flag("hits_overtake")),
        row("Allow sneaky partial read hits", FULL_HITS),
        row("Allow sneaky intermediate read hits", FULL_HITS),
        row("Allow read hits on write data", Flag("read_hits_on_writes")),
        row("Allow write prebuffering", Flag("write_prebuffering")),
        row("Preseeking level", Described("`preseek`, unless 0")),
        row("Never disconnect", Described("nothing: the link belongs to one drive")),
        row("Print stats", OutputOnly),
        row("Avg sectors per cylinder", queue::OWN_MAPPING),
        row("Max queue length", Described("`queue_depth`")),
        row("Scheduler", Described("`scheduler`, if the queue is longer than 1")),
        row("Number of buffer segments", Described("`cache_segments`")),
        row("Maximum number of write segments", Described("`cache_write_segments`")),
        row("Segment size (in blks)", Sectors("cache_segment_size")),
        row("Use separate write segment", Described("`separate_write_segment`")),
        row(
            "Low (write) water mark",
            Described("nothing: it has an effect only when a segment is too small for a write"),
        ),
        row("High (read) water mark", Number("read_watermark")),
        row("Set watermark by reqsize", Choice("read_watermark_of", WATERMARKS)),
        row("Calc sector by sector", OutputOnly),
        row("Enable caching in buffer", Described("0: no segments, read-ahead or write cache")),
        row("Buffer continuous read", Described("`read_ahead`")),
        row("Minimum read-ahead (blks)", Described("`read_ahead_min`")),
        row("Maximum read-ahead (blks)", Described("`read_ahead_max`")),
        row("Read-ahead over requested", Flag("read_ahead_over_requested")),
        row("Read-ahead on idle hit", Flag("read_ahead_on_hit")),
        row("Read any free blocks", Flag("read_free_blocks")),
        row("Fast write level", Described("`write_cache`, `write_cache_appends_only`")),
        row("Immediate buffer read", Described("nothing: the link starts as data arrive")),
        row("Immediate buffer write", Described("nothing: the link starts at once")),
        row("Combine seq writes", Flag("combine_writes")),
        row("Stop prefetch in sector", Flag("read_ahead_stops_in_sector")),
        row("Disconnect write if seek", Described("nothing: the link belongs to one drive")),
        row("Write hit stop prefetch", Described("nothing: a write always stops read-ahead")),
        row("Read directly to buffer", Described("nothing: every read goes to the buffer")),
        row(
            "Immed transfer partial hit",
            Described("nothing: buffered sectors are transferred first"),
        ),
        row("Read hit over. after read", Described("`read_hit_overhead`")),
        row("Read hit over. after write", Described("`read_hit_overhead_after_write`")),
        row("Read miss over. after read", Described("`read_miss_overhead`")),
        row("Read miss over. after write", Described("`read_miss_overhead_after_write`")),
        row("Write hit over. after read", Described("`write_hit_overhead`")),
        row("Write hit over. after write", Described("`write_hit_overhead_after_write`")),
        row("Write miss over. after read", Described("`write_miss_overhead`")),
        row("Write miss over. after write", Described("`write_miss_overhead_after_write`")),
        row("Read completion overhead", Ms("read_completion_overhead")),
        row("Write completion overhead", Ms("write_completion_overhead")),
        row("Data preparation overhead", Ms("data_preparation_overhead")),
        row("First reselect overhead", Ms("first_reselect_overhead")),
        row("Other reselect overhead", Ms("other_reselect_overhead")),
        row("Read disconnect afterread", Ms("read_disconnect_overhead")),
        row("Read disconnect afterwrite", Ms("read_disconnect_overhead_after_write")),
        row("Write disconnect overhead", Ms("write_disconnect_overhead")),
        row("Extra write disconnect", Described("whether the next five are used")),
        row("Extradisc command overhead", Described("`extra_disconnect_command_overhead`")),
        row("Extradisc disconnect overhead", Described("`extra_disconnect_overhead`")),
        row("Extradisc inter-disconnect delay", Described("`extra_disconnect_delay`")),
        row("Extradisc 2nd disconnect overhead", Described("`extra_disconnect_second_overhead`")),
        row("Extradisc seek delta", Described("`extra_disconnect_seek_delay`")),
        row("Minimum seek delay", Ms("minimum_seek_delay")),
    ],
};

/// Command overheads: DiskSim's names and ours.
const OVERHEADS: &[(&str, &str)] = &[
    ("Read hit over. after read", "read_hit_overhead"),
    ("Read hit over. after write", "read_hit_overhead_after_write"),
    ("Read miss over. after read", "read_miss_overhead"),
    ("Read miss over. after write", "read_miss_overhead_after_write"),
    ("Write hit over. after read", "write_hit_overhead"),
    ("Write hit over. after write", "write_hit_overhead_after_write"),
    ("Write miss over. after read", "write_miss_overhead"),
    ("Write miss over. after write", "write_miss_overhead_after_write"),
];

/// Overheads between a write command and its data: DiskSim's names and ours.
const EXTRA_DISCONNECT: &[(&str, &str)] = &[
    ("Extradisc command overhead", "extra_disconnect_command_overhead"),
    ("Extradisc disconnect overhead", "extra_disconnect_overhead"),
    ("Extradisc inter-disconnect delay", "extra_disconnect_delay"),
    ("Extradisc 2nd disconnect overhead", "extra_disconnect_second_overhead"),
    ("Extradisc seek delta", "extra_disconnect_seek_delay"),
];

const READ_AHEAD: &[&str] = &["none", "track", "cylinder", "segment", "next-track"];

/// The transfer time of a sector on a link, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Link {
    pub(crate) read_ms: f64,
    pub(crate) write_ms: f64,
}

impl Link {
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            read_ms: self.read_ms.max(other.read_ms),
            write_ms: self.write_ms.max(other.write_ms),
        }
    }

    /// A link with one time for both directions.
    pub(crate) const fn both(ms: f64) -> Self {
        Self { read_ms: ms, write_ms: ms }
    }

    /// The `Bulk sector transfer time` of a device in both directions.
    pub(crate) fn of(block: &Block) -> Result<Self> {
        let time = block.get("Bulk sector transfer time");
        Ok(Self::both(time.map_or(Ok(0.0), |item| item.number_in(0.0, 1e6))?))
    }

    pub(crate) fn slowest_ms(self) -> f64 {
        self.read_ms.max(self.write_ms)
    }

    /// The host rate, at the path `key`, of a device with one rate for both directions.
    pub(crate) fn host_rate(self, key: &str, lines: &mut TomlTable) {
        let sector_ms = self.slowest_ms();
        if sector_ms > 0.0 {
            let comment = format!("a sector in {sector_ms} ms, the slowest link");
            lines.set(key, rate(sector_ms), comment);
        }
    }
}

/// The rate at which a sector takes `sector_ms`.
pub(crate) fn rate(sector_ms: f64) -> String {
    format!("\"{}B/s\"", (512.0 / (sector_ms / 1e3)).round().max(1.0))
}

/// The keys of a `hard-disk`. `above` is the slowest link above it.
pub(crate) fn lines(
    block: &Block,
    above: Link,
    files: &mut dyn FileSource,
    log: &mut ImportLog,
) -> Result<TomlTable> {
    let mut lines = TomlTable::default();
    lines.set("kind", "\"hard-disk\"", "");
    mechanics::lines(block.need("Model")?.block()?, files, &mut lines, log)?;
    overheads(block, &mut lines, log)?;
    link(block, above, &mut lines, log)?;
    buffer(block, &mut lines, log)?;
    commands(block, &mut lines, log)?;
    convert(&DISK, block, &mut lines, log)?;
    Ok(lines)
}

fn time(block: &Block, key: &str) -> Result<f64> {
    block.get(key).map_or(Ok(0.0), ms_of)
}

fn overheads(block: &Block, lines: &mut TomlTable, log: &ImportLog) -> Result<()> {
    let scale = match block.get("Time scale for overheads") {
        Some(item) => item.number_in(0.0, 1e6)?,
        None => 1.0,
    };
    let always = time(block, "Per-request overhead time")?;
    for (theirs, ours) in OVERHEADS {
        let Some(item) = block.get(theirs) else { continue };
        // Rounded to nanoseconds, the unit of time, as sums of decimal fractions are inexact.
        let sum = ((ms_of(item)? + always) * scale * 1e6).round() / 1e6;
        lines.from(ours, ms(sum), (theirs, item), log);
    }
    if block.get("Extra write disconnect").map_or(Ok(false), Item::flag)? {
        for (theirs, ours) in EXTRA_DISCONNECT {
            let Some(item) = block.get(theirs) else { continue };
            lines.from(ours, ms(ms_of(item)?), (theirs, item), log);
        }
    }
    Ok(())
}

fn link(block: &Block, above: Link, lines: &mut TomlTable, log: &mut ImportLog) -> Result<()> {
    let Some(item) = block.get("Bulk sector transfer time") else { return Ok(()) };
    let own = item.number_in(-1e6, 1e6)?;
    if own < 0.0 {
        log.warn(item.location, "a negative `Bulk sector transfer time` is read as 0");
    }
    let link = above.and(Link::both(own.max(0.0)));
    let mut set = |key: &str, sector_ms: f64| {
        let of = if own >= sector_ms { "drive" } else { "bus" };
        let comment =
            format!("a sector in {sector_ms} ms, the {of}'s time; {}", log.line(item.location));
        lines.set(key, rate(sector_ms), comment);
    };
    if link.read_ms > 0.0 {
        set("host_rate", link.read_ms);
    }
    if link.write_ms > 0.0 && link.write_ms != link.read_ms {
        set("host_write_rate", link.write_ms);
    }
    Ok(())
}

fn buffer(block: &Block, lines: &mut TomlTable, log: &mut ImportLog) -> Result<()> {
    let caching = block.need("Enable caching in buffer")?;
    let on = caching.whole_in(0, 2)? > 0;
    if !on {
        lines.from("cache_segments", "0", ("Enable caching in buffer", caching), log);
        lines.set("read_ahead", "\"none\"", "");
        lines.set("write_cache", "false", "");
        return Ok(());
    }
    let count = block.need("Number of buffer segments")?;
    let segments = count.whole_in(1, 4096)?;
    lines.from("cache_segments", segments.to_string(), ("Number of buffer segments", count), log);
    if let Some(item) = block.get("Maximum number of write segments") {
        let writes = item.whole_in(0, 4096)?.min(segments);
        let from = ("Maximum number of write segments", item);
        lines.from("cache_write_segments", writes.to_string(), from, log);
    }
    // A drive with a single segment uses it for reads and writes.
    if let Some(item) = block.get("Use separate write segment").filter(|_| segments > 1) {
        let flag = item.flag()?.to_string();
        lines.from("separate_write_segment", flag, ("Use separate write segment", item), log);
    }
    let ahead = block.need("Buffer continuous read")?;
    let mode = READ_AHEAD[ahead.whole_in(0, 4)? as usize];
    lines.from("read_ahead", format!("\"{mode}\""), ("Buffer continuous read", ahead), log);
    let size = block.need("Segment size (in blks)")?.whole_in(1, 1 << 31)?;
    for (theirs, ours) in [
        ("Minimum read-ahead (blks)", "read_ahead_min"),
        ("Maximum read-ahead (blks)", "read_ahead_max"),
    ] {
        let Some(item) = block.get(theirs) else { continue };
        let sectors = item.whole_in(0, 1 << 31)?.min(size);
        lines.from(ours, sectors.to_string(), (theirs, item), log);
    }
    let fast = block.need("Fast write level")?;
    let level = fast.whole_in(0, 2)?;
    lines.from("write_cache", (level > 0).to_string(), ("Fast write level", fast), log);
    if level == 1 {
        lines.from("write_cache_appends_only", "true", ("Fast write level", fast), log);
    }
    Ok(())
}

fn commands(block: &Block, lines: &mut TomlTable, log: &mut ImportLog) -> Result<()> {
    let item = block.need("Max queue length")?;
    let depth = item.whole_in(0, 65_536)?.max(1);
    lines.from("queue_depth", depth.to_string(), ("Max queue length", item), log);
    if let Some(item) = block.get("Preseeking level") {
        let preseek = item.whole_in(0, 2)? > 0;
        lines.from("preseek", preseek.to_string(), ("Preseeking level", item), log);
    }
    match block.get("Scheduler") {
        Some(queue) if depth > 1 => queue::scheduler(queue, lines, log),
        // A drive with one command at a time has no queue.
        Some(queue) => {
            check_names(&queue::DRIVE_QUEUE, queue.block()?, log);
            Ok(())
        }
        None => Ok(()),
    }
}
