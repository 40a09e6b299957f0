//! Layouts by recursive index: `dm_layout_g4`.
//!
//! Track patterns, tables of repetitions (the last one the root), slips and remaps are carried
//! over as they are; a `hard-disk` takes the same description.

use crate::source::Trouble;
use crate::syntax::{Block, Item};
use crate::table::{Carry, Lines, Notes, Table, carry, number, row};
use std::fmt::Write;

/// The parameters of the layout.
pub const LAYOUT: Table = Table {
    kind: "dm_layout_g4",
    becomes: "`layout_index` of a `hard-disk`",
    rows: &[
        row("TP", Carry::Part("`track_patterns`")),
        row("IDX", Carry::Part("`layout_index`")),
        row("Slips", Carry::Part("`slips`")),
        row("Remaps", Carry::Part("`remaps`")),
    ],
};

/// Values of a row that names a table; one that names a track has the surface as well.
const COLUMNS: usize = 10;

/// Writes the layout; returns the sectors it holds.
pub(crate) fn lines(block: &Block, lines: &mut Lines, notes: &mut Notes) -> Result<i64, Trouble> {
    carry(&LAYOUT, block, lines, notes)?;
    let patterns = block.need("TP")?;
    let tracks = patterns.list()?.len() / 3;
    lines.from("track_patterns", wholes(patterns, 3)?, ("TP", patterns), notes);
    let index = block.need("IDX")?;
    let (mut value, mut held) = (String::from("["), 0);
    for (number, item) in index.list()?.iter().enumerate() {
        value += "\n    { rows = [";
        held = rows(item, number, tracks, &mut value)?;
        value += "\n    ] },";
    }
    if held < 1 {
        return Err(Trouble::new(index.place, "expected at least one table with rows"));
    }
    lines.from("layout_index", value + "\n]", ("IDX", index), notes);
    let mut slipped = 0;
    for (theirs, ours, size) in [("Slips", "slips", 2), ("Remaps", "remaps", 3)] {
        let Some(item) = block.get(theirs).filter(|item| item.list().is_ok_and(|l| !l.is_empty()))
        else {
            continue;
        };
        lines.from(ours, wholes(item, size)?, (theirs, item), notes);
        if size == 2 {
            slipped =
                item.list()?.chunks_exact(2).filter_map(|pair| pair[1].number().ok()).sum::<f64>()
                    as i64;
        }
    }
    Ok(held.saturating_sub(slipped))
}

/// A list of whole numbers in groups of `size`.
fn wholes(item: &Item, size: usize) -> Result<String, Trouble> {
    let list = item.list()?;
    if !list.len().is_multiple_of(size) {
        let message = format!("expected groups of {size} values, found {} values", list.len());
        return Err(Trouble::new(item.place, message));
    }
    let mut out = String::from("[");
    for (at, value) in list.iter().enumerate() {
        let lead = if at.is_multiple_of(size * (12 / size)) { "\n    " } else { " " };
        write!(out, "{lead}{},", value.whole_in(0, 1 << 50)?).expect("text grows");
    }
    Ok(out + "\n]")
}

/// The rows of one table, as eleven numbers each; returns the sectors they cover.
fn rows(item: &Item, earlier: usize, tracks: usize, out: &mut String) -> Result<i64, Trouble> {
    let list = item.list()?;
    let (mut at, mut held) = (0, 0i64);
    while at < list.len() {
        let Some(row) = list.get(at..at + COLUMNS) else {
            return Err(Trouble::new(list[at].place, "an index row of fewer than 10 values"));
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
                None => return Err(Trouble::new(row[8].place, "a track without a surface")),
            },
            "IDX" if child < earlier => (1, 0),
            word @ ("TRACK" | "IDX") => {
                let message = format!("{word} {child} is not defined before this table");
                return Err(Trouble::new(row[9].place, message));
            }
            _ => {
                let message = format!("expected TRACK or IDX, found {}", row[8].noun());
                return Err(Trouble::new(row[8].place, message));
            }
        };
        write!(out, "{kind}, {child}, {surface},").expect("text grows");
        held = held.saturating_add(row[6].whole_in(0, 1 << 50)?);
        at += COLUMNS + usize::from(kind == 0);
    }
    Ok(held)
}
