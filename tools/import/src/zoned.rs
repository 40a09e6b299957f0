//! Layouts by zones: `dm_layout_g1`.

use crate::source::{LocatedError, Result, quote};
use crate::syntax::Block;
use crate::table::Conversion::{Choice, Count, Described, Number};
use crate::table::{ImportLog, ParameterTable, TomlTable, convert, number, row};
use std::fmt::Write;

const MAPPINGS: &[(i64, &str)] = &[(0, "cylinder"), (1, "serpentine"), (2, "serpentine-odd")];
const SPARINGS: &[(i64, &str)] = &[
    (0, "none"),
    (1, "zone-tracks"),
    (2, "cylinder-end"),
    (3, "track-end"),
    (4, "cylinder-end-slip"),
    (5, "cylinder-front"),
    (6, "cylinder-front-slip"),
    (7, "disk-end"),
    (8, "cylinder-range"),
    (9, "zone-end"),
    (10, "zone-end-slip"),
];

/// The parameters of the layout.
pub const LAYOUT: ParameterTable = ParameterTable {
    kind: "dm_layout_g1",
    becomes: "`zones` of a `hard-disk`",
    rows: &[
        row("LBN-to-PBN mapping scheme", Choice("mapping", MAPPINGS)),
        row("Sparing scheme used", Choice("sparing", SPARINGS)),
        row("Rangesize for sparing", Described("`sparing_range_cylinders`")),
        row("Skew units", Described("`skew_unit`")),
        row("Zones", Described("`zones`")),
    ],
};

/// The parameters of a zone.
pub const ZONE: ParameterTable = ParameterTable {
    kind: "dm_layout_g1_zone",
    becomes: "an entry of `zones`",
    rows: &[
        row("First cylinder number", Count("first_cylinder")),
        row("Last cylinder number", Count("last_cylinder")),
        row("Blocks per track", Count("sectors_per_track")),
        row("Offset of first block", Number("first_sector_offset")),
        row("Empty space at zone front", Count("reserved_sectors")),
        row("Skew for track switch", Number("track_skew")),
        row("Skew for cylinder switch", Number("cylinder_skew")),
        row("Number of spares", Count("spares")),
        row("slips", Described("`slips`")),
        row("defects", Described("`defects`")),
    ],
};

const ZONES_MAX: usize = 4_096;
pub(crate) const CYLINDERS_MAX: i64 = 1 << 22;

pub(crate) fn lines(
    layout: &Block,
    heads: i64,
    lines: &mut TomlTable,
    log: &mut ImportLog,
) -> Result<i64> {
    for key in ["LBN-to-PBN mapping scheme", "Sparing scheme used"] {
        layout.need(key)?;
    }
    convert(&LAYOUT, layout, lines, log)?;
    let mut sparing =
        Sparing { heads, scheme: layout.need("Sparing scheme used")?.whole_in(0, 10)?, range: 1 };
    if let Some(item) = layout.get("Rangesize for sparing") {
        sparing.range = item.whole_in(0, CYLINDERS_MAX)?.max(1);
        let from = ("Rangesize for sparing", item);
        lines.from("sparing_range_cylinders", sparing.range.to_string(), from, log);
    }
    let unit = match layout.get("Skew units") {
        None => "\"sectors\"",
        Some(item) => match item.text()? {
            "revolutions" => "\"turns\"",
            "sectors" => "\"sectors\"",
            other => {
                let message = format!("expected sectors or revolutions, found {}", quote(other));
                return Err(LocatedError::new(item.location, message));
            }
        },
    };
    lines.set("skew_unit", unit, "");
    let zones = layout.need("Zones")?;
    let list = zones.list()?;
    if list.is_empty() || list.len() > ZONES_MAX {
        let message = format!("expected 1 to {ZONES_MAX} zones, found {}", list.len());
        return Err(LocatedError::new(zones.location, message));
    }
    let (mut value, mut held) = (String::from("[\n"), 0i64);
    for item in list {
        held = held.saturating_add(zone(item.block()?, sparing, &mut value, log)?);
    }
    lines.from("zones", value + "]", ("Zones", zones), log);
    Ok(held)
}

#[derive(Clone, Copy)]
struct Sparing {
    heads: i64,
    scheme: i64,
    /// Cylinders of a range in scheme 8.
    range: i64,
}

impl Sparing {
    /// Data sectors of a zone with the given cylinders and sectors per track.
    fn held(self, (cylinders, track): (i64, i64), reserved: i64, spares: i64, bad: &[i64]) -> i64 {
        let cylinder = self.heads * track;
        let all = cylinders * cylinder;
        let (unit, kept) = match self.scheme {
            1 => (all, spares.saturating_mul(track)),
            2 | 4 | 5 | 6 => (cylinder, spares),
            3 => (track, spares),
            8 => (cylinder * self.range.min(cylinders), spares),
            _ => (all, spares),
        };
        let whole = kept == 0 && bad.is_empty();
        let unit = if whole { all } else { unit };
        // Where tracks or cylinders have spares, empty space is counted in data sectors.
        let in_data = (2..=6).contains(&self.scheme) && !whole;
        let (begin, empty) = if in_data { (0, reserved) } else { (reserved, 0) };
        let size = if self.scheme == 1 { track } else { 1 };
        let data = |number: i64| {
            let (from, to) = ((number * unit).max(begin), (number * unit).saturating_add(unit));
            let (to, sector) = (to.min(all), |at: i64| at.saturating_mul(size));
            let low = bad.partition_point(|&at| sector(at) < from);
            let slips = bad[low..].partition_point(|&at| sector(at) < to) as i64;
            let lost = if self.scheme == 7 { slips } else { 0 };
            let free = (to - from).saturating_sub(kept.saturating_add(lost));
            free.min(to - from - slips * size).max(0)
        };
        let (first, end) = (begin.min(all) / unit, (all + unit - 1) / unit);
        let slipped = bad.iter().map(|at| at.saturating_mul(size) / unit);
        // The other units are alike.
        let mut unlike: Vec<i64> = slipped.chain([first, end - 1]).collect();
        unlike.retain(|number| (first..end).contains(number));
        unlike.sort_unstable();
        unlike.dedup();
        let alike = (end - first - unlike.len() as i64) * unit.saturating_sub(kept).max(0);
        (alike + unlike.into_iter().map(data).sum::<i64>() - empty).max(0)
    }
}

/// Writes a zone as an entry; returns its data sectors.
fn zone(block: &Block, sparing: Sparing, out: &mut String, log: &mut ImportLog) -> Result<i64> {
    convert(&ZONE, block, &mut TomlTable::default(), log)?;
    let whole = |key: &str, min, max| block.need(key)?.whole_in(min, max);
    let or_none = |key: &str| block.get(key).map_or(Ok(0), |item| item.whole_in(0, 1 << 40));
    let angle = |key: &str| block.get(key).map_or(Ok(0.0), |item| item.number_in(0.0, 65_536.0));
    let first = whole("First cylinder number", 0, CYLINDERS_MAX - 1)?;
    let last = whole("Last cylinder number", first, CYLINDERS_MAX - 1)?;
    let per_track = whole("Blocks per track", 1, 65_536)?;
    write!(
        out,
        "    {{ first_cylinder = {first}, last_cylinder = {last}, sectors_per_track = {per_track}, \
         first_sector_offset = {},\n      reserved_sectors = {}, track_skew = {}, \
         cylinder_skew = {}, spares = {}",
        number(angle("Offset of first block")?),
        or_none("Empty space at zone front")?,
        number(angle("Skew for track switch")?),
        number(angle("Skew for cylinder switch")?),
        or_none("Number of spares")?,
    )
    .expect("text grows");
    for (key, size) in [("slips", 1), ("defects", 2)] {
        let Some(item) = block.get(key) else { continue };
        let numbers: Result<Vec<String>> =
            item.list()?.iter().map(|value| Ok(value.whole_in(0, 1 << 40)?.to_string())).collect();
        let numbers = numbers?;
        if !numbers.len().is_multiple_of(size) {
            return Err(LocatedError::new(item.location, "expected pairs of sectors"));
        }
        if !numbers.is_empty() {
            let lines: Vec<String> = numbers.chunks(12).map(|line| line.join(", ")).collect();
            write!(out, ",\n      {key} = [{}]", lines.join(",\n        ")).expect("text grows");
        }
    }
    out.push_str(" },\n");
    let mut bad = match block.get("slips") {
        Some(item) => {
            let numbers = item.list()?.iter().map(|value| value.whole_in(0, 1 << 40));
            numbers.collect::<Result<Vec<i64>>>()?
        }
        None => Vec::new(),
    };
    bad.sort_unstable();
    bad.dedup();
    let (reserved, spares) = (or_none("Empty space at zone front")?, or_none("Number of spares")?);
    Ok(sparing.held((last - first + 1, per_track), reserved, spares, &bad))
}
