//! Drives: `disksim_disk`, the electronics and the buffer of a `hard-disk`.

use crate::source::{Files, Trouble};
use crate::syntax::{Block, Item};
use crate::table::{Carry, Lines, Notes, Table, carry, ms, ms_of, odd_names, row};
use crate::{mechanics, queue};

const WATERMARKS: &[(i64, &str)] = &[(0, "segment"), (1, "request")];

/// The parameters of a drive.
pub const DISK: Table = Table {
    kind: "disksim_disk",
    becomes: "a part of kind `hard-disk`",
    rows: &[
        row("Model", Carry::Part("geometry, seek and rotation")),
        row("Per-request overhead time", Carry::Part("added to every command overhead")),
        row("Time scale for overheads", Carry::Part("multiplies every command overhead")),
        row(
            "Bulk sector transfer time",
            Carry::Part("`host_rate`, `host_write_rate`, unless the bus is slower"),
        ),
        row("Hold bus entire read xfer", Carry::Part("nothing: the link belongs to one drive")),
        row("Hold bus entire write xfer", Carry::Part("nothing: the link belongs to one drive")),
        row(
            "Allow almost read hits",
            Carry::Several(0.0, "a read that is being read ahead waits for its turn"),
        ),
        row("Allow sneaky full read hits", Carry::Flag("hits_overtake")),
        row(
            "Allow sneaky partial read hits",
            Carry::Several(0.0, "only whole hits go before other commands"),
        ),
        row(
            "Allow sneaky intermediate read hits",
            Carry::Several(0.0, "only whole hits go before other commands"),
        ),
        row("Allow read hits on write data", Carry::Flag("read_hits_on_writes")),
        row(
            "Allow write prebuffering",
            Carry::Several(0.0, "the data of a write are fetched when it has the mechanism"),
        ),
        row("Preseeking level", Carry::Part("`preseek`, unless 0")),
        row("Never disconnect", Carry::Part("nothing: the link belongs to one drive")),
        row("Print stats", Carry::Report),
        row("Avg sectors per cylinder", Carry::Part("nothing: schedulers ask the drive itself")),
        row("Max queue length", Carry::Part("`queue_depth`")),
        row("Scheduler", Carry::Part("`scheduler`, if the queue is longer than 1")),
        row("Number of buffer segments", Carry::Part("`cache_segments`")),
        row("Maximum number of write segments", Carry::Part("`cache_write_segments`")),
        row("Segment size (in blks)", Carry::Sectors("cache_segment_size")),
        row("Use separate write segment", Carry::Part("`separate_write_segment`")),
        row(
            "Low (write) water mark",
            Carry::Part("nothing: it counts only when a segment is too small for a write"),
        ),
        row("High (read) water mark", Carry::Number("read_watermark")),
        row("Set watermark by reqsize", Carry::Choice("read_watermark_of", WATERMARKS)),
        row("Calc sector by sector", Carry::Report),
        row("Enable caching in buffer", Carry::Part("0: no segments, read-ahead or write cache")),
        row("Buffer continuous read", Carry::Part("`read_ahead`")),
        row("Minimum read-ahead (blks)", Carry::Part("`read_ahead_min`")),
        row("Maximum read-ahead (blks)", Carry::Part("`read_ahead_max`")),
        row("Read-ahead over requested", Carry::Flag("read_ahead_over_requested")),
        row("Read-ahead on idle hit", Carry::Flag("read_ahead_on_hit")),
        row("Read any free blocks", Carry::Flag("read_free_blocks")),
        row("Fast write level", Carry::Part("`write_cache`, `write_cache_appends_only`")),
        row("Immediate buffer read", Carry::Part("nothing: the link starts as data arrive")),
        row("Immediate buffer write", Carry::Part("nothing: the link starts at once")),
        row("Combine seq writes", Carry::Flag("combine_writes")),
        row("Stop prefetch in sector", Carry::Flag("read_ahead_stops_in_sector")),
        row("Disconnect write if seek", Carry::Part("nothing: the link belongs to one drive")),
        row("Write hit stop prefetch", Carry::Part("nothing: a write always stops read-ahead")),
        row("Read directly to buffer", Carry::Part("nothing: every read goes to the buffer")),
        row("Immed transfer partial hit", Carry::Part("nothing: what is there goes out first")),
        row("Read hit over. after read", Carry::Part("`read_hit_overhead`")),
        row("Read hit over. after write", Carry::Part("`read_hit_overhead_after_write`")),
        row("Read miss over. after read", Carry::Part("`read_miss_overhead`")),
        row("Read miss over. after write", Carry::Part("`read_miss_overhead_after_write`")),
        row("Write hit over. after read", Carry::Part("`write_hit_overhead`")),
        row("Write hit over. after write", Carry::Part("`write_hit_overhead_after_write`")),
        row("Write miss over. after read", Carry::Part("`write_miss_overhead`")),
        row("Write miss over. after write", Carry::Part("`write_miss_overhead_after_write`")),
        row("Read completion overhead", Carry::Ms("read_completion_overhead")),
        row("Write completion overhead", Carry::Ms("write_completion_overhead")),
        row("Data preparation overhead", Carry::Ms("data_preparation_overhead")),
        row("First reselect overhead", Carry::Ms("first_reselect_overhead")),
        row("Other reselect overhead", Carry::Ms("other_reselect_overhead")),
        row("Read disconnect afterread", Carry::Ms("read_disconnect_overhead")),
        row("Read disconnect afterwrite", Carry::Ms("read_disconnect_overhead_after_write")),
        row("Write disconnect overhead", Carry::Ms("write_disconnect_overhead")),
        row("Extra write disconnect", Carry::Part("whether the next five count")),
        row("Extradisc command overhead", Carry::Part("`extra_disconnect_command_overhead`")),
        row("Extradisc disconnect overhead", Carry::Part("`extra_disconnect_overhead`")),
        row("Extradisc inter-disconnect delay", Carry::Part("`extra_disconnect_delay`")),
        row("Extradisc 2nd disconnect overhead", Carry::Part("`extra_disconnect_second_overhead`")),
        row("Extradisc seek delta", Carry::Part("`extra_disconnect_seek_delay`")),
        row("Minimum seek delay", Carry::Ms("minimum_seek_delay")),
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

/// What a drive does between a write command and its data: DiskSim's names and ours.
const EXTRA_DISCONNECT: &[(&str, &str)] = &[
    ("Extradisc command overhead", "extra_disconnect_command_overhead"),
    ("Extradisc disconnect overhead", "extra_disconnect_overhead"),
    ("Extradisc inter-disconnect delay", "extra_disconnect_delay"),
    ("Extradisc 2nd disconnect overhead", "extra_disconnect_second_overhead"),
    ("Extradisc seek delta", "extra_disconnect_seek_delay"),
];

const READ_AHEAD: &[&str] = &["none", "track", "cylinder", "segment", "next-track"];

/// How long a sector takes on a link, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Link {
    pub(crate) read_ms: f64,
    pub(crate) write_ms: f64,
}

impl Link {
    /// The slower of the two, either way.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            read_ms: self.read_ms.max(other.read_ms),
            write_ms: self.write_ms.max(other.write_ms),
        }
    }

    /// As slow both ways.
    pub(crate) const fn both(ms: f64) -> Self {
        Self { read_ms: ms, write_ms: ms }
    }

    pub(crate) fn slowest_ms(self) -> f64 {
        self.read_ms.max(self.write_ms)
    }
}

/// The keys of a `hard-disk`. `above` is the slowest link above it.
pub(crate) fn lines(
    block: &Block,
    above: Link,
    files: &mut dyn Files,
    notes: &mut Notes,
) -> Result<Lines, Trouble> {
    let mut lines = Lines::default();
    lines.set("kind", "\"hard-disk\"", "");
    mechanics::lines(block.need("Model")?.block()?, files, &mut lines, notes)?;
    overheads(block, &mut lines, notes)?;
    link(block, above, &mut lines, notes)?;
    buffer(block, &mut lines, notes)?;
    commands(block, &mut lines, notes)?;
    carry(&DISK, block, &mut lines, notes)?;
    Ok(lines)
}

fn time(block: &Block, key: &str) -> Result<f64, Trouble> {
    block.get(key).map_or(Ok(0.0), ms_of)
}

fn overheads(block: &Block, lines: &mut Lines, notes: &Notes) -> Result<(), Trouble> {
    let scale = match block.get("Time scale for overheads") {
        Some(item) => item.number_in(0.0, 1e6)?,
        None => 1.0,
    };
    let always = time(block, "Per-request overhead time")?;
    for (theirs, ours) in OVERHEADS {
        let Some(item) = block.get(theirs) else { continue };
        // Sums of decimal fractions have tails; a nanosecond is the unit of time here.
        let sum = ((ms_of(item)? + always) * scale * 1e6).round() / 1e6;
        lines.from(ours, ms(sum), (theirs, item), notes);
    }
    if block.get("Extra write disconnect").map_or(Ok(false), Item::flag)? {
        for (theirs, ours) in EXTRA_DISCONNECT {
            let Some(item) = block.get(theirs) else { continue };
            lines.from(ours, ms(ms_of(item)?), (theirs, item), notes);
        }
    }
    Ok(())
}

fn link(block: &Block, above: Link, lines: &mut Lines, notes: &mut Notes) -> Result<(), Trouble> {
    let Some(item) = block.get("Bulk sector transfer time") else { return Ok(()) };
    let own = item.number_in(-1e6, 1e6)?;
    if own < 0.0 {
        notes.warn(item.place, "a negative `Bulk sector transfer time` is taken for 0");
    }
    let link = above.and(Link::both(own.max(0.0)));
    let mut rate = |key: &str, sector_ms: f64| {
        let rate = (512.0 / (sector_ms / 1e3)).round().max(1.0);
        let of = if own >= sector_ms { "drive" } else { "bus" };
        let comment =
            format!("a sector in {sector_ms} ms, the {of}'s time; {}", notes.line(item.place));
        lines.set(key, format!("\"{rate}B/s\""), comment);
    };
    if link.read_ms > 0.0 {
        rate("host_rate", link.read_ms);
    }
    if link.write_ms > 0.0 && link.write_ms != link.read_ms {
        rate("host_write_rate", link.write_ms);
    }
    Ok(())
}

fn buffer(block: &Block, lines: &mut Lines, notes: &mut Notes) -> Result<(), Trouble> {
    let caching = block.need("Enable caching in buffer")?;
    let on = caching.whole_in(0, 2)? > 0;
    if !on {
        lines.from("cache_segments", "0", ("Enable caching in buffer", caching), notes);
        lines.set("read_ahead", "\"none\"", "");
        lines.set("write_cache", "false", "");
        return Ok(());
    }
    let count = block.need("Number of buffer segments")?;
    let segments = count.whole_in(1, 4096)?;
    lines.from("cache_segments", segments.to_string(), ("Number of buffer segments", count), notes);
    if let Some(item) = block.get("Maximum number of write segments") {
        let writes = item.whole_in(0, 4096)?.min(segments);
        let from = ("Maximum number of write segments", item);
        lines.from("cache_write_segments", writes.to_string(), from, notes);
    }
    // A drive with a single segment reads and writes through that.
    if let Some(item) = block.get("Use separate write segment").filter(|_| segments > 1) {
        let flag = item.flag()?.to_string();
        lines.from("separate_write_segment", flag, ("Use separate write segment", item), notes);
    }
    let ahead = block.need("Buffer continuous read")?;
    let mode = READ_AHEAD[ahead.whole_in(0, 4)? as usize];
    lines.from("read_ahead", format!("\"{mode}\""), ("Buffer continuous read", ahead), notes);
    let size = block.need("Segment size (in blks)")?.whole_in(1, 1 << 31)?;
    for (theirs, ours) in [
        ("Minimum read-ahead (blks)", "read_ahead_min"),
        ("Maximum read-ahead (blks)", "read_ahead_max"),
    ] {
        let Some(item) = block.get(theirs) else { continue };
        let sectors = item.whole_in(0, 1 << 31)?.min(size);
        lines.from(ours, sectors.to_string(), (theirs, item), notes);
    }
    let fast = block.need("Fast write level")?;
    let level = fast.whole_in(0, 2)?;
    lines.from("write_cache", (level > 0).to_string(), ("Fast write level", fast), notes);
    if level == 1 {
        lines.from("write_cache_appends_only", "true", ("Fast write level", fast), notes);
    }
    Ok(())
}

fn commands(block: &Block, lines: &mut Lines, notes: &mut Notes) -> Result<(), Trouble> {
    let item = block.need("Max queue length")?;
    let depth = item.whole_in(0, 65_536)?.max(1);
    lines.from("queue_depth", depth.to_string(), ("Max queue length", item), notes);
    if let Some(item) = block.get("Preseeking level") {
        let preseek = item.whole_in(0, 2)? > 0;
        lines.from("preseek", preseek.to_string(), ("Preseeking level", item), notes);
    }
    match block.get("Scheduler") {
        Some(queue) if depth > 1 => queue::scheduler(queue, lines, notes),
        // One command at a time is never in a queue with another.
        Some(queue) => {
            odd_names(&queue::DRIVE_QUEUE, queue.block()?, notes);
            Ok(())
        }
        None => Ok(()),
    }
}
