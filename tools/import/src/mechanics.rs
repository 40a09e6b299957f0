//! Mechanisms: `dm_disk`, its layout, seek curve and spindle.

use crate::source::{FileSource, LocatedError, Result, quote};
use crate::syntax::{Block, Item};
use crate::table::Conversion::{Count, Described, Ms};
use crate::table::{ImportLog, MS_MAX, ParameterTable, TomlTable, convert, ms, ms_of, row};
use crate::{indexed, zoned};
use std::fmt::Write;

/// The parameters of a mechanism.
pub const DM_DISK: ParameterTable = ParameterTable {
    kind: "dm_disk",
    becomes: "geometry and mechanics of a `hard-disk`",
    rows: &[
        row("Number of data surfaces", Count("heads")),
        row("Number of cylinders", Described("checked against the zones")),
        row("Block count", Described("`sectors`")),
        row("Layout Model", Described("`zones` or `layout_index`")),
        row("Mechanical Model", Described("seek, rotation and settling")),
    ],
};

/// The parameters of seek, rotation and settling.
pub const MECHANICS: ParameterTable = ParameterTable {
    kind: "dm_mech_g1",
    becomes: "seek, rotation and settling of a `hard-disk`",
    rows: &[
        row(
            "Access time type",
            Described("`trackSwitchPlusRotation`; `averageRotation` is ignored by DiskSim as well"),
        ),
        row("Constant access time", Described("nothing: see `Access time type`")),
        row("Seek type", Described("`seek`")),
        row("Average seek time", Described("`seek`, if `Seek type` is `curve`")),
        row("Constant seek time", Described("`seek`, if `Seek type` is `constant`")),
        row(
            "Single cylinder seek time",
            Described("`seek`, if `Seek type` is `curve` or `linear`"),
        ),
        row("Full strobe seek time", Described("`seek`, if `Seek type` is `curve` or `linear`")),
        row("Full seek curve", Described("`seek`, if `Seek type` is `extracted`")),
        row(
            "HPL seek equation values",
            Described("`seek`, if `Seek type` is `hpl` or `hplplus10`"),
        ),
        row("First ten seek times", Described("`seek`, if `Seek type` is `hplplus10`")),
        row(
            "Add. write settling delay",
            Described("`write_settle`; `write_seek_reduction` where it is negative"),
        ),
        row("Head switch time", Ms("head_switch")),
        row("Rotation speed (in rpms)", Described("`rpm`")),
        row("Percent error in rpms", Described("nothing: the speed is exact")),
    ],
};

pub(crate) fn lines(
    model: &Block,
    files: &mut dyn FileSource,
    lines: &mut TomlTable,
    log: &mut ImportLog,
) -> Result<()> {
    let mechanics = model.need("Mechanical Model")?.block()?;
    let speed = mechanics.need("Rotation speed (in rpms)")?;
    let rpm = speed.number_in(60.0, 100_000.0)?;
    access_time(mechanics, log)?;
    lines.from("rpm", format!("\"{rpm}rpm\""), ("Rotation speed (in rpms)", speed), log);
    convert(&DM_DISK, model, lines, log)?;
    convert(&MECHANICS, mechanics, lines, log)?;
    settle(mechanics, lines, log)?;
    seek(mechanics, files, lines, log)?;
    let layout = model.need("Layout Model")?;
    let block = layout.block()?;
    match block.kind.as_str() {
        "dm_layout_g1" => {
            let heads = model.need("Number of data surfaces")?.whole_in(1, 64)?;
            let held = zoned::lines(block, heads, lines, log)?;
            cylinders(model, block, log)?;
            capacity(model, held, lines, log)
        }
        "dm_layout_g4" => {
            let held = indexed::lines(block, lines, log)?;
            capacity(model, held, lines, log)
        }
        other => {
            let message = format!("expected dm_layout_g1 or dm_layout_g4, found `{other}`");
            Err(LocatedError::new(layout.location, message))
        }
    }
}

/// Checks DiskSim's type of access time.
fn access_time(mechanics: &Block, log: &mut ImportLog) -> Result<()> {
    let Some(item) = mechanics.get("Access time type") else { return Ok(()) };
    match item.text()? {
        "trackSwitchPlusRotation" | "averageRotation" => {}
        "constant" => log.warn(
            item.location,
            "`Access time type = constant` is not supported: seek and rotation are simulated",
        ),
        other => {
            let message = format!(
                "expected trackSwitchPlusRotation, averageRotation or constant, found {}",
                quote(other)
            );
            return Err(LocatedError::new(item.location, message));
        }
    }
    Ok(())
}

/// The settling time before a write. DiskSim adds a negative one like any other.
fn settle(mechanics: &Block, lines: &mut TomlTable, log: &ImportLog) -> Result<()> {
    const KEY: &str = "Add. write settling delay";
    let Some(item) = mechanics.get(KEY) else { return Ok(()) };
    let delay = item.number_in(-MS_MAX, MS_MAX)?;
    let key = if delay < 0.0 { "write_seek_reduction" } else { "write_settle" };
    lines.from(key, ms(delay.abs()), (KEY, item), log);
    Ok(())
}

fn seek(
    block: &Block,
    files: &mut dyn FileSource,
    lines: &mut TomlTable,
    log: &mut ImportLog,
) -> Result<()> {
    let kind = block.need("Seek type")?;
    let at = |key: &str| block.need(key).and_then(ms_of).map(ms);
    let value = match kind.text()? {
        "extracted" => extracted(block.need("Full seek curve")?, files, log)?,
        "linear" => format!(
            "{{ kind = \"linear\", single = {}, full = {} }}",
            at("Single cylinder seek time")?,
            at("Full strobe seek time")?
        ),
        "curve" => format!(
            "{{ kind = \"curve\", single = {}, average = {}, full = {} }}",
            at("Single cylinder seek time")?,
            at("Average seek time")?,
            at("Full strobe seek time")?
        ),
        "constant" => {
            let key = ["Constant seek time", "Average seek time"];
            let key = key.into_iter().find(|key| block.get(key).is_some()).unwrap_or(key[0]);
            format!("{{ kind = \"constant\", time = {} }}", at(key)?)
        }
        "hpl" => {
            let values = values(block.need("HPL seek equation values")?, 6)?;
            format!("{{ kind = \"hpl\", values = [{values}] }}")
        }
        "hplplus10" => {
            let equation = block.need("HPL seek equation values")?;
            // The sixth value of the older curve is the single-cylinder seek, tabulated here.
            let five = if equation.list()?.len() == 6 { 6 } else { 5 };
            let equation = values(equation, five)?;
            let equation: Vec<&str> = equation.split(", ").take(5).collect();
            let ten = values(block.need("First ten seek times")?, 10)?;
            format!(
                "{{ kind = \"hpl-plus-10\", first_ten = [{ten}], values = [{}] }}",
                equation.join(", ")
            )
        }
        other => {
            let message = format!(
                "expected linear, curve, constant, hpl, hplplus10 or extracted, found `{other}`"
            );
            return Err(LocatedError::new(kind.location, message));
        }
    };
    lines.from("seek", value, ("Seek type", kind), log);
    Ok(())
}

/// `count` numbers, joined by commas.
fn values(item: &Item, count: usize) -> Result<String> {
    let list = item.list()?;
    if list.len() != count {
        let message = format!("expected {count} numbers, found {}", list.len());
        return Err(LocatedError::new(item.location, message));
    }
    let numbers: Result<Vec<String>> =
        list.iter().map(|value| Ok(value.number_in(-1e9, 1e9)?.to_string())).collect();
    Ok(numbers?.join(", "))
}

const POINTS_MAX: usize = 100_000;

/// A seek file: distance, time, and optionally deviation and time before a write.
fn extracted(item: &Item, files: &mut dyn FileSource, log: &mut ImportLog) -> Result<String> {
    let from = log.files.get(item.location.file as usize).cloned().unwrap_or_default();
    let read = files.read(item.text()?, &from);
    let (name, text) = read.map_err(|message| LocatedError::new(item.location, message))?;
    let (mut points, mut writes) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: &str| {
            LocatedError::new(item.location, format!("{name}:{}:1: {what}", number + 1))
        };
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() || line.starts_with("Seek distances") {
            continue;
        }
        let numbers: Option<Vec<f64>> = line
            .split([',', ' ', '\t'])
            .filter(|field| !field.is_empty())
            .map(|field| field.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0))
            .collect();
        let fields = numbers.filter(|fields| (2..=4).contains(&fields.len()));
        let fields = fields.ok_or_else(|| wrong("expected `distance, milliseconds`"))?;
        let (distance, time) = (fields[0], fields[1]);
        if distance < 1.0 || distance.fract() != 0.0 || distance > 1e9 || time > 60_000.0 {
            return Err(wrong("expected a distance of at least 1 and a time of at most a minute"));
        }
        if points.last().is_some_and(|&(last, _)| distance <= last) {
            return Err(wrong("distances must be strictly ascending"));
        }
        points.push((distance, time));
        writes.extend(fields.get(3).map(|&write| (distance, write)));
        if points.len() > POINTS_MAX {
            return Err(wrong("more than 100000 points"));
        }
    }
    if points.is_empty() {
        return Err(LocatedError::new(item.location, format!("{name} has no seek times")));
    }
    if !writes.is_empty() && writes.len() < points.len() {
        log.warn(item.location, format!("{name}: not every line has a time before a write"));
    }
    let mut value = format!("{{ kind = \"table\", points = {}", curve(&points));
    if writes.len() == points.len() {
        write!(value, ", write_points = {}", curve(&writes)).expect("text grows");
    }
    Ok(value + " }")
}

fn curve(points: &[(f64, f64)]) -> String {
    let mut out = String::from("[");
    for (at, (distance, time)) in points.iter().enumerate() {
        let lead = if at % 5 == 0 { "\n    " } else { " " };
        write!(out, "{lead}[{distance}, \"{time}ms\"],").expect("text grows");
    }
    out + "\n]"
}

/// Warns if the number of cylinders differs from that of the zones.
fn cylinders(model: &Block, layout: &Block, log: &mut ImportLog) -> Result<()> {
    let Some(item) = model.get("Number of cylinders") else { return Ok(()) };
    let said = item.whole_in(1, zoned::CYLINDERS_MAX)?;
    let mut last = 0;
    for zone in layout.need("Zones")?.list()? {
        let end = zone.block()?.need("Last cylinder number")?;
        last = last.max(end.whole_in(0, zoned::CYLINDERS_MAX)?);
    }
    if said != last + 1 {
        let message = format!("`Number of cylinders` is {said}, but the zones have {}", last + 1);
        log.warn(item.location, message);
    }
    Ok(())
}

/// `sectors`: the block count, or the capacity of the layout if that is less.
fn capacity(model: &Block, held: i64, lines: &mut TomlTable, log: &mut ImportLog) -> Result<()> {
    let Some(item) = model.get("Block count") else { return Ok(()) };
    let wanted = item.whole_in(1, 1 << 50)?;
    if held != wanted {
        let what = match held < wanted {
            true => format!("only {held} sectors, which are all used"),
            false => format!("{held} sectors, of which the last {} are not used", held - wanted),
        };
        let message = format!(
            "`Block count` is {wanted}, but the layout has {what}; if spares or empty space are \
             not where the layout has them, other sectors are on other tracks, too"
        );
        log.warn(item.location, message);
    }
    lines.from("sectors", wanted.min(held).to_string(), ("Block count", item), log);
    Ok(())
}
