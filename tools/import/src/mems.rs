//! MEMS stores: `memsmodel_mems`.

use crate::disk::Link;
use crate::queue;
use crate::source::{LocatedError, Result};
use crate::syntax::{Block, Item};
use crate::table::Conversion::{Described, Ms, OutputOnly, Unsupported};
use crate::table::{
    Conversion, ImportLog, ParameterTable, TomlTable, check_names, convert, ms, number, row,
};

/// The parameters of a MEMS store.
pub const MEMS: ParameterTable = ParameterTable {
    kind: "memsmodel_mems",
    becomes: "a component of kind `mems`",
    rows: &[
        row("Scheduler", Described("`scheduler`, if the queue is longer than 1")),
        row("Points in precomputed seek curve", Described("nothing: seek times are exact")),
        row("Seek function", Described("nothing: both give the times of springs and actuators")),
        row("Max queue length", Described("`queue_depth`")),
        row("Bulk sector transfer time", Described("`host_rate`, unless the bus is slower")),
        row("Segment size (in blks)", Described("nothing: see `Number of buffer segments`")),
        row("Number of buffer segments", Unsupported(0.0, "the store has no buffer")),
        row("Print stats", OutputOnly),
        row("Command overhead", Ms("command_overhead")),
        row("Number of sleds", Unsupported(1.0, "the store has one sled")),
        row(
            "Layout policy",
            Described("nothing: sectors go along Y, then over groups of tips, then along X"),
        ),
        row("Sled movement X", Described("`bits_x`, in bit cells")),
        row("Sled movement Y", Described("`bits_y`, in bit cells")),
        row("Bit cell length", Conversion::Number("bit_nm")),
        row("Tip sector length", Conversion::Count("tip_sector_bits")),
        row("Servo burst length", Conversion::Count("servo_bits")),
        row("Tip sectors per lbn", Conversion::Count("tips_per_sector")),
        row("Number of usable tips", Conversion::Count("tips")),
        row("Simultaneously active tips", Conversion::Count("active_tips")),
        row(
            "Bidirectional access",
            Unsupported(1.0, "sectors are read and written in both directions along Y"),
        ),
        row("Sled acceleration X", Conversion::Number("acceleration_m_per_s2")),
        row("Sled acceleration Y", Described("nothing: the acceleration along X, if it differs")),
        row("Sled access speed", Conversion::Number("tip_bits_per_s")),
        row("Sled resonant frequency", Described("`settle`")),
        row("Settling time constants", Described("`settle`: so many times 1 / (2 pi frequency)")),
        row("Spring constant factor", Conversion::Number("spring_factor")),
        row("Prefetch depth", Unsupported(0.0, "the store does not read ahead")),
        row("Time before sled inactive", Ms("standby_after")),
        row("Startup delay", Ms("restart_time")),
        row("Sled active power", Described("`idle_power`, `seek_power`")),
        row("Sled inactive power", Described("`standby_power`")),
        row("Tip access power", Described("`access_power`: the sled and all active tips")),
    ],
};

/// The keys of a `mems`. `above` is the slowest link above it.
pub(crate) fn lines(block: &Block, above: Link, log: &mut ImportLog) -> Result<TomlTable> {
    let mut lines = TomlTable::default();
    lines.set("kind", "\"mems\"", "");
    let [x, y] = sides(block)?;
    for (key, bits, from) in [("bits_x", x, "Sled movement X"), ("bits_y", y, "Sled movement Y")] {
        lines.from(key, bits.to_string(), (from, block.need(from)?), log);
    }
    settling(block, &mut lines, log)?;
    power(block, &mut lines)?;
    above.and(Link::of(block)?).host_rate("host_rate", &mut lines);
    let depth = block.need("Max queue length")?.whole_in(0, 65_536)?.max(1);
    lines.set("queue_depth", depth.to_string(), "Max queue length");
    match block.get("Scheduler") {
        Some(queue) if depth > 1 => queue::scheduler(queue, &mut lines, log)?,
        Some(queue) => check_names(&queue::DRIVE_QUEUE, queue.block()?, log),
        None => {}
    }
    let along_x = block.need("Sled acceleration X")?.number()?;
    if let Some(item) = block.get("Sled acceleration Y").filter(|y| y.number() != Ok(along_x)) {
        log.warn(item.location, "the sled has the acceleration along X in both directions");
    }
    convert(&MEMS, block, &mut lines, log)?;
    Ok(lines)
}

fn sides(block: &Block) -> Result<[i64; 2]> {
    let cell = block.need("Bit cell length")?.whole_in(1, 10_000)?;
    let side = |key: &str| Ok(block.need(key)?.whole_in(1, 1 << 40)? / cell);
    Ok([side("Sled movement X")?, side("Sled movement Y")?])
}

/// The sectors of the store: every group of active tips has one track per bit cell along X.
pub(crate) fn sectors(block: &Block) -> Result<u64> {
    let count = |key: &str| block.need(key)?.whole_in(1, 1 << 20);
    let [x, y] = sides(block)?;
    let active = count("Simultaneously active tips")?;
    let groups = count("Number of usable tips")? / active;
    let row = active / count("Tip sectors per lbn")?;
    let servo = block.get("Servo burst length").map_or(Ok(0), |item| item.whole_in(0, 1 << 20))?;
    let rows = y / (count("Tip sector length")? + servo);
    let all = [x, groups, rows, row].into_iter().try_fold(1, i64::checked_mul);
    all.filter(|all| (1..=1 << 50).contains(all)).map(|all| all as u64).ok_or_else(|| {
        LocatedError::new(block.location, "the store holds no sector, or more than 2^50")
    })
}

/// A sled settles in a number of time constants of its resonance.
fn settling(block: &Block, lines: &mut TomlTable, log: &ImportLog) -> Result<()> {
    let (key, frequency) = ("Sled resonant frequency", block.need("Sled resonant frequency")?);
    let hz = frequency.number_in(0.001, 1e12)?;
    let constants = block.need("Settling time constants")?.number_in(0.0, 1e6)?;
    // Rounded to nanoseconds, the unit of time.
    let settle = (constants / (std::f64::consts::TAU * hz) * 1e9).round() / 1e6;
    lines.from("settle", ms(settle), (key, frequency), log);
    Ok(())
}

fn power(block: &Block, lines: &mut TomlTable) -> Result<()> {
    let mw = |key: &str| block.get(key).map_or(Ok(0.0), |item: &Item| item.number_in(0.0, 1e9));
    let (active, tip) = (mw("Sled active power")?, mw("Tip access power")?);
    let tips = block.need("Simultaneously active tips")?.whole_in(1, 1 << 20)?;
    let watts = |mw: f64| format!("\"{}W\"", number(mw / 1e3));
    lines.set("idle_power", watts(active), "Sled active power");
    lines.set("seek_power", watts(active), "Sled active power");
    let access = watts(active + tip * tips as f64);
    lines.set("access_power", access, "the sled, and Tip access power of all active tips");
    lines.set("standby_power", watts(mw("Sled inactive power")?), "Sled inactive power");
    Ok(())
}
