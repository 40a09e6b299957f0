//! Layouts by recursive index: `dm_layout_g4`.
//!
//! Track patterns, tables of repetitions (the last one is the root), slips and remaps are copied; a
//! `hard-disk` has the same parameters.

use crate::source::{LocatedError, Result};
use crate::syntax::{Block, Item};
use crate::table::Conversion::Described;
use crate::table::{ImportLog, ParameterTable, TomlTable, convert, number, row};
use std::fmt::Write;

/// The parameters of the layout.
pub const LAYOUT: ParameterTable = ParameterTable {
    kind: "dm_layout_g4",
    becomes: "`layout_index` of a `hard-disk`",
    rows: &[
        row("TP", Described("`track_patterns`")),
        row("IDX", Described("`layout_index`")),
        row("Slips", Described("`slips`")),
        row("Remaps", Described("`remaps`")),
    ],
};

/// Values of a row that refers to a table; one that refers to a track also has the surface.
const COLUMNS: usize = 10;

/// Converts the layout; returns its sectors.
pub(crate) fn lines(block: &Block, lines: &mut TomlTable, log: &mut ImportLog) -> Result<i64> {
    convert(&LAYOUT, block, lines, log)?;
    let patterns = block.need("TP")?;
    let tracks = patterns.list()?.len() / 3;
    lines.from("track_patterns", wholes(patterns, 3)?, ("TP", patterns), log);
    let index = block.need("IDX")?;
    let (mut value, mut held) = (String::from("["), 0);
    for (number, item) in index.list()?.iter().enumerate() {
        value += "\n    { rows = [";
        held = rows(item, number, tracks, &mut value)?;
        value += "\n    ] },";
    }
    if held < 1 {
        return Err(LocatedError::new(index.location, "expected at least one table with rows"));
    }
    lines.from("layout_index", value + "\n]", ("IDX", index), log);
    let mut slipped = 0;
    for (theirs, ours, size) in [("Slips", "slips", 2), ("Remaps", "remaps", 3)] {
        let Some(item) = block.get(theirs).filter(|item| item.list().is_ok_and(|l| !l.is_empty()))
        else {
            continue;
        };
        lines.from(ours, wholes(item, size)?, (theirs, item), log);
        if size == 2 {
            slipped =
                item.list()?.chunks_exact(2).filter_map(|pair| pair[1].number().ok()).sum::<f64>()
                    as i64;
        }
    }
    Ok(held.saturating_sub(slipped))
}

/// A list of whole numbers in groups of `size`.
fn wholes(item: &Item, size: usize) -> Result<String> {
    let list = item.list()?;
    if !list.len().is_multiple_of(size) {
        let message = format!("expected groups of {size} values, found {} values", list.len());
        return Err(LocatedError::new(item.location, message));
    }
    let mut out = String::from("[");
    for (at, value) in list.iter().enumerate() {
        let lead = if at.is_multiple_of(size * (12 / size)) { "\n    " } else { " " };
        write!(out, "{lead}{},", value.whole_in(0, 1 << 50)?).expect("text grows");
    }
    Ok(out + "\n]")
}

/// The rows of one table, as eleven numbers each; returns the sectors they cover.
fn rows(item: &Item, earlier: usize, tracks: usize, out: &mut String) -> Result<i64> {
    let list = item.list()?;
    let (mut at, mut held) = (0, 0i64);
    while at < list.len() {
        let Some(row) = list.get(at..at + COLUMNS) else {
            return Err(LocatedError::new(
                list[at].location,
                "an index row of fewer than 10 values",
            ));
        };
        out.push_str("\n        ");
        for (column, value) in row.iter().enumerate() {
            let text = match column {
                2 | 5 => number(value.number_in(-1e6, 1e6)?),
                8 => continue,
                9 => break,
                _ => value.whole_in(-(1 << 50), 1 << 50)?.to_string(),
            };
            write!(out, "{text}, ").expect("text grows");
        }
        let child = row[9].whole_in(0, 1 << 30)? as usize;
        let (kind, surface) = match row[8].text()? {
            "TRACK" if child < tracks => match list.get(at + COLUMNS) {
                Some(surface) => (0, surface.whole_in(0, 63)?),
                None => {
                    return Err(LocatedError::new(row[8].location, "a track without a surface"));
                }
            },
            "IDX" if child < earlier => (1, 0),
            word @ ("TRACK" | "IDX") => {
                let message = format!("{word} {child} is not defined before this table");
                return Err(LocatedError::new(row[9].location, message));
            }
            _ => {
                let message = format!("expected TRACK or IDX, found {}", row[8].noun());
                return Err(LocatedError::new(row[8].location, message));
            }
        };
        write!(out, "{kind}, {child}, {surface},").expect("text grows");
        held = held.saturating_add(row[6].whole_in(0, 1 << 50)?);
        at += COLUMNS + usize::from(kind == 0);
    }
    Ok(held)
}
