//! Layouts as a tree of repeated patterns: DiskSim's G4, as DIXtrac writes it.
//!
//! A row of a table says that from some sector on a track, or another table, is repeated so many
//! times, each time so many cylinders further and so far turned. The last table is the root. A
//! sector is found by walking down, which keeps a drive of a hundred thousand runs in a few pages.

use super::address::PhysicalAddress;
use super::zone::{CYLINDERS_MAX, SECTORS_PER_TRACK_MAX, sector_angle};
use crate::rotation::{Angle, angle_of_turns};
use hybridsim_config::param::{Kind, Problem};

/// Numbers in a row.
const COLUMNS: usize = 11;

hybridsim_config::params! {
    /// Parameters of one entry of `layout_index`.
    pub(super) struct Parameters {
        rows: Vec<f64> = Kind::Numbers, required,
            "Eleven numbers per row: first sector, first cylinder, angle (turns), sectors in one \
             repetition, cylinders in one, turn from one to the next, sectors in all, cylinders in \
             all (negative when they descend), 0 for a track and 1 for a table, number of the \
             track pattern or table, surface (0 for a table). Sectors and cylinders are counted \
             within the table.";
    }
}

#[derive(Clone, Copy, Debug)]
struct Track {
    first: u32,
    sectors: u32,
    sector_angle: Angle,
    head: u32,
}

#[derive(Clone, Copy, Debug)]
enum Child {
    Track(Track),
    Table(usize),
}

#[derive(Clone, Copy, Debug)]
struct Row {
    first: u64,
    end: u64,
    cylinder: i64,
    step: i64,
    angle: Angle,
    turn: Angle,
    sectors: u64,
    child: Child,
}

#[derive(Clone, Copy, Debug)]
struct Extent {
    sectors: u64,
    cylinder_min: i64,
    cylinder_max: i64,
}

/// The tables of a drive.
#[derive(Clone, Debug)]
pub(super) struct Index {
    tables: Vec<Vec<Row>>,
    pub sectors: u64,
    /// Cylinders, from the outer edge.
    pub cylinders: u32,
}

impl Index {
    /// Reads `track_patterns` and `layout_index`; `None` when there is no index.
    pub fn read(params: &super::Parameters, problems: &mut Vec<Problem>) -> Option<Self> {
        let tables = params.layout_index.as_ref()?;
        let patterns = params.indexed.track_patterns.as_deref().unwrap_or_default();
        let mut builder = Builder {
            patterns,
            heads: params.heads.into(),
            tables: Vec::with_capacity(tables.len()),
            extents: Vec::with_capacity(tables.len()),
        };
        let before = problems.len();
        if !patterns.len().is_multiple_of(3) {
            problems.push(Problem::new("track_patterns", "is not a list of triples"));
        }
        for (number, table) in tables.iter().enumerate() {
            if let Err(message) = builder.table(&Parameters::from_settings(table).rows) {
                let message = format!("table {number}: {message}");
                problems.push(Problem::new("layout_index", message));
                return None;
            }
        }
        let Some(root) = builder.extents.last() else {
            problems.push(Problem::new("layout_index", "is empty; give at least one table"));
            return None;
        };
        if root.cylinder_min < 0 || root.cylinder_max >= CYLINDERS_MAX as i64 {
            let message = format!(
                "covers cylinders {} to {}; they must lie within 0 to {}",
                root.cylinder_min,
                root.cylinder_max,
                CYLINDERS_MAX - 1
            );
            problems.push(Problem::new("layout_index", message));
        }
        let (sectors, cylinders) = (root.sectors, root.cylinder_max as u32 + 1);
        let tables = builder.tables;
        (problems.len() == before).then_some(Self { tables, sectors, cylinders })
    }

    /// Address of `sector`, `left` sectors of the data being contiguous from there on.
    pub fn address(&self, sector: u64, left: u64, block: u64) -> PhysicalAddress {
        let (mut sector, mut cylinder, mut angle) = (sector, 0, 0 as Angle);
        let mut table = self.tables.len() - 1;
        loop {
            let rows = &self.tables[table];
            let row = &rows[rows.partition_point(|row| row.end <= sector)];
            let (repeat, rest) =
                ((sector - row.first) / row.sectors, (sector - row.first) % row.sectors);
            cylinder += row.cylinder + repeat as i64 * row.step;
            angle = angle.wrapping_add(row.angle).wrapping_add(row.turn.wrapping_mul(repeat));
            match row.child {
                Child::Table(child) => (table, sector) = (child, rest),
                Child::Track(track) => {
                    let left = left.min(row.sectors - rest);
                    return PhysicalAddress {
                        cylinder: cylinder as u32,
                        head: track.head,
                        sector: track.first + rest as u32,
                        left_on_track: left as u32,
                        track_start: angle,
                        sector_angle: track.sector_angle,
                        sectors_per_track: track.sectors,
                        next: block + left,
                    };
                }
            }
        }
    }
}

struct Builder<'a> {
    patterns: &'a [u64],
    heads: u64,
    tables: Vec<Vec<Row>>,
    extents: Vec<Extent>,
}

impl Builder<'_> {
    fn table(&mut self, numbers: &[f64]) -> Result<(), String> {
        if numbers.is_empty() || !numbers.len().is_multiple_of(COLUMNS) {
            return Err(format!("{} numbers; a row has {COLUMNS}", numbers.len()));
        }
        let mut rows = Vec::with_capacity(numbers.len() / COLUMNS);
        let mut extent = Extent { sectors: 0, cylinder_min: i64::MAX, cylinder_max: i64::MIN };
        for (number, row) in numbers.chunks_exact(COLUMNS).enumerate() {
            let row = self.row(row, &mut extent).map_err(|what| format!("row {number}: {what}"))?;
            extent.sectors = row.end;
            rows.push(row);
        }
        self.tables.push(rows);
        self.extents.push(extent);
        Ok(())
    }

    fn row(&self, row: &[f64], extent: &mut Extent) -> Result<Row, String> {
        const LIMIT: f64 = (1u64 << 50) as f64;
        let whole = |at: usize| row[at].fract() == 0.0 && row[at].abs() < LIMIT;
        if ![0, 1, 3, 4, 6, 7, 8, 9, 10].into_iter().all(whole) {
            return Err("sectors, cylinders and numbers must be whole".to_owned());
        }
        if !(row[2].is_finite() && row[5].is_finite()) || row[0] < 0.0 || row[9] < 0.0 {
            return Err("a negative sector or number, or an angle that is none".to_owned());
        }
        let (first, sectors, all) = (row[0] as u64, row[3] as i64, row[6] as i64);
        if first != extent.sectors {
            return Err(format!("begins at sector {first}; {} comes next", extent.sectors));
        }
        if sectors <= 0 || all <= 0 || all % sectors != 0 {
            return Err(format!("{all} sectors in repetitions of {sectors}"));
        }
        let repeats = all / sectors;
        let step = (row[4] as i64).abs() * if row[7] < 0.0 { -1 } else { 1 };
        let (child, low, high, holds) = self.child(row, sectors as u64)?;
        // DIXtrac's last table may be shorter than the row that names it says.
        let all = if holds < sectors as u64 && repeats == 1 { holds as i64 } else { all };
        if holds < sectors as u64 && repeats > 1 {
            return Err(format!("{sectors} sectors in what has only {holds}"));
        }
        let cylinder = row[1] as i64;
        let far = cylinder + (repeats - 1).saturating_mul(step).clamp(-(1 << 40), 1 << 40);
        extent.cylinder_min = extent.cylinder_min.min(cylinder.min(far) + low);
        extent.cylinder_max = extent.cylinder_max.max(cylinder.max(far) + high);
        Ok(Row {
            first,
            end: first + all as u64,
            cylinder,
            step,
            angle: angle_of_turns(row[2]),
            turn: angle_of_turns(row[5]),
            sectors: sectors as u64,
            child,
        })
    }

    /// The pattern that a row repeats, with its first and last cylinder and its sectors.
    fn child(&self, row: &[f64], sectors: u64) -> Result<(Child, i64, i64, u64), String> {
        let number = row[9] as usize;
        if row[8] == 1.0 {
            let inner = self.extents.get(number).ok_or_else(|| {
                format!("table {number} does not come before this one, so it cannot be part of it")
            })?;
            let (low, high) = (inner.cylinder_min, inner.cylinder_max);
            return Ok((Child::Table(number), low, high, inner.sectors));
        }
        let pattern = self.patterns.chunks_exact(3).nth(number);
        let pattern = pattern.ok_or_else(|| format!("there is no track pattern {number}"))?;
        let (low, high, per_track) = (pattern[0], pattern[1], pattern[2]);
        if per_track == 0 || per_track > SECTORS_PER_TRACK_MAX || high >= per_track || low > high {
            return Err(format!("track pattern {number} uses {low} to {high} of {per_track}"));
        }
        if sectors > high - low + 1 {
            return Err(format!("{sectors} sectors on track pattern {number}, too small for them"));
        }
        if !(0.0..self.heads as f64).contains(&row[10]) {
            return Err(format!("surface {}; there are {} `heads`", row[10], self.heads));
        }
        let sectors = per_track as u32;
        let sector_angle = sector_angle(sectors);
        let track = Track { first: low as u32, sectors, sector_angle, head: row[10] as u32 };
        Ok((Child::Track(track), 0, 0, high - low + 1))
    }
}
