//! Layouts by recursive index: `dm_layout_g4`.
//!
//! The root index lists stretches of cylinders; each becomes a zone. Below it are bands of
//! cylinders that are filled surface by surface, and single tracks around slipped sectors.

use crate::mechanics::capacity;
use crate::source::Trouble;
use crate::syntax::{Block, Item};
use crate::table::{Carry, Lines, Notes, Table, carry, row};

/// The parameters of the layout.
pub const LAYOUT: Table = Table {
    kind: "dm_layout_g4",
    becomes: "`zones` of a `hard-disk`, one per stretch of the root index",
    rows: &[
        row("TP", Carry::Part("`sectors_per_track`")),
        row("IDX", Carry::Part("`zones`, skews and `band_cylinders`")),
        row("Slips", Carry::Part("`spare_sectors` of their zone")),
        row("Remaps", Carry::Part("remapped sectors stay in place")),
    ],
};

const ZONES_MAX: usize = 4_096;

/// One line of an index.
#[derive(Clone, Copy, Debug)]
struct Run {
    cylinder: i64,
    offset: f64,
    /// Turn from one repetition to the next.
    turn: f64,
    sectors: i64,
    cylinders: i64,
    child: Child,
}

#[derive(Clone, Copy, Debug)]
enum Child {
    Track(usize),
    Index(usize),
}

struct Layout {
    /// Sectors of each kind of track.
    tracks: Vec<i64>,
    indices: Vec<Vec<Run>>,
}

/// What an index looks like inside.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    per_track: i64,
    /// Cylinders of a run on one surface, the turn along it, and the turn to the next surface.
    band: i64,
    cylinder_skew: f64,
    track_skew: f64,
    /// Where the last track of the last run begins.
    end: f64,
}

pub(crate) fn lines(
    block: &Block,
    model: &Block,
    lines: &mut Lines,
    notes: &mut Notes,
) -> Result<(), Trouble> {
    carry(&LAYOUT, block, lines, notes)?;
    let layout = Layout::read(block)?;
    let shapes = layout.shapes();
    let root = layout.indices.len() - 1;
    let heads = model.need("Number of data surfaces")?.whole_in(1, 64)?;
    let place = block.place;
    let (mut value, mut held, mut free, mut band) = (String::from("[\n"), 0i64, 0i64, 0i64);
    for run in &layout.indices[root] {
        let shape = match run.child {
            Child::Index(child) => shapes[child],
            Child::Track(_) => return Err(Trouble::new(place, "the root index lists tracks")),
        };
        let (first, cylinders) = (run.cylinder.max(free), run.cylinders);
        let all = cylinders.saturating_mul(heads).saturating_mul(shape.per_track);
        if cylinders < 1 || run.sectors < 1 || run.sectors > all {
            let message = format!(
                "the root index puts {} sectors on {cylinders} cylinders of {heads} tracks of {}",
                run.sectors, shape.per_track
            );
            return Err(Trouble::new(place, message));
        }
        free = first + cylinders;
        held = held.saturating_add(run.sectors);
        band = band.max(shape.band);
        value += &format!(
            "    {{ first_cylinder = {first}, last_cylinder = {}, sectors_per_track = {}, \
             track_skew = {:.6}, cylinder_skew = {:.6}, band_skew = {:.6}, spare_sectors = {} }},\n",
            free - 1,
            shape.per_track,
            shape.track_skew,
            shape.cylinder_skew,
            turn(run.turn - shape.end),
            all - run.sectors
        );
    }
    lines.comment("Bands of cylinders, filled surface by surface; skews in turns.");
    lines.set("mapping", "\"surface\"", format!("Layout Model, {}", notes.line(place)));
    lines.set("band_cylinders", band.max(1).to_string(), "");
    lines.set("skew_unit", "\"turns\"", "");
    lines.set("zones", value + "]", "");
    let message = "the index of the layout becomes zones: slipped sectors are taken together at \
                   the end of their zone, and the order of surfaces is the same in every band";
    notes.warn(place, message);
    capacity(model, held, lines, notes)
}

/// `turns` as a turn from 0 to 1.
fn turn(turns: f64) -> f64 {
    turns - turns.floor()
}

/// Items in groups of `size`.
fn groups<'a>(item: &'a Item, size: usize) -> Result<std::slice::ChunksExact<'a, Item>, Trouble> {
    let list = item.list()?;
    if !list.len().is_multiple_of(size) {
        let message = format!("expected groups of {size} values, found {} values", list.len());
        return Err(Trouble::new(item.place, message));
    }
    Ok(list.chunks_exact(size))
}

impl Layout {
    fn read(block: &Block) -> Result<Self, Trouble> {
        let tracks: Result<Vec<i64>, Trouble> =
            groups(block.need("TP")?, 3)?.map(|group| group[2].whole_in(1, 65_536)).collect();
        let tracks = tracks?;
        let index = block.need("IDX")?;
        let mut indices = Vec::new();
        for item in index.list()? {
            indices.push(runs(item, indices.len(), tracks.len())?);
        }
        match indices.last() {
            Some(root) if !root.is_empty() && root.len() <= ZONES_MAX => {
                Ok(Self { tracks, indices })
            }
            _ => {
                let message = format!("expected a root index of 1 to {ZONES_MAX} stretches");
                Err(Trouble::new(index.place, message))
            }
        }
    }

    /// The shapes of all indices. Each names only earlier ones, so one pass will do.
    fn shapes(&self) -> Vec<Shape> {
        let mut shapes: Vec<Shape> = Vec::with_capacity(self.indices.len());
        for index in &self.indices {
            let mut shape = Shape::default();
            let mut before: Option<f64> = None;
            for run in index {
                match run.child {
                    Child::Track(track) => {
                        before = Some(shape.follow(run, self.tracks[track], before));
                    }
                    Child::Index(child) => shape.contain(run, shapes[child]),
                }
            }
            shapes.push(shape);
        }
        shapes
    }
}

impl Shape {
    /// Takes in a run of tracks; returns where its last one begins.
    fn follow(&mut self, run: &Run, per_track: i64, before: Option<f64>) -> f64 {
        self.per_track = self.per_track.max(per_track);
        let tracks = run.cylinders.abs().max(1);
        let last = run.offset + run.turn * (tracks - 1) as f64;
        if self.band == 0 && tracks > 1 {
            self.band = tracks;
            self.cylinder_skew = turn(run.turn);
        }
        if let Some(end) = before.filter(|_| self.track_skew == 0.0) {
            self.track_skew = turn(run.offset - end);
        }
        self.end = last;
        last
    }

    /// Takes in an inner index.
    fn contain(&mut self, run: &Run, inner: Self) {
        let per_track = self.per_track.max(inner.per_track);
        if self.band == 0 {
            *self = inner;
        }
        self.per_track = per_track;
        self.end = run.offset + inner.end;
    }
}

/// The lines of one index: 10 values each, 11 where a surface is named.
fn runs(item: &Item, earlier: usize, tracks: usize) -> Result<Vec<Run>, Trouble> {
    let list = item.list()?;
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < list.len() {
        let Some(line) = list.get(at..at + 10) else {
            return Err(Trouble::new(list[at].place, "an index line of fewer than 10 values"));
        };
        let whole = |n: usize| line[n].whole_in(-(1 << 50), 1 << 50);
        let turns = |n: usize| line[n].number_in(-1e6, 1e6);
        let (kind, number) = (line[8].text()?, line[9].whole_in(0, 1 << 30)? as usize);
        let (child, length) = match kind {
            "TRACK" if number < tracks => (Child::Track(number), 11),
            "IDX" if number < earlier => (Child::Index(number), 10),
            "TRACK" | "IDX" => {
                let message = format!("{kind} {number} is not defined before this index");
                return Err(Trouble::new(line[9].place, message));
            }
            _ => {
                let message = format!("expected TRACK or IDX, found {}", line[8].noun());
                return Err(Trouble::new(line[8].place, message));
            }
        };
        runs.push(Run {
            cylinder: whole(1)?,
            offset: turns(2)?,
            turn: turns(5)?,
            sectors: whole(6)?,
            cylinders: whole(7)?,
            child,
        });
        at += length;
    }
    Ok(runs)
}
