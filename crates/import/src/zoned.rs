//! Layouts by zones: `dm_layout_g1`, and `dm_layout_g2`, which names zones by their first block.

use crate::mechanics::capacity;
use crate::source::Trouble;
use crate::syntax::{Block, Item};
use crate::table::{Carry, Lines, Notes, Table, carry, number, row};

/// The parameters of the layout.
pub const LAYOUT: Table = Table {
    kind: "dm_layout_g1",
    becomes: "`zones` of a `hard-disk`",
    rows: &[
        row("LBN-to-PBN mapping scheme", Carry::Part("`mapping`")),
        row("Sparing scheme used", Carry::Part("how many sectors of a zone are spare")),
        row("Rangesize for sparing", Carry::Part("how many sectors of a zone are spare")),
        row("Skew units", Carry::Part("`skew_unit`")),
        row("Zones", Carry::Part("`zones`")),
    ],
};

/// The parameters of a zone.
pub const ZONE: Table = Table {
    kind: "dm_layout_g1_zone",
    becomes: "an entry of `zones`",
    rows: &[
        row("First cylinder number", Carry::Count("first_cylinder")),
        row("Last cylinder number", Carry::Count("last_cylinder")),
        row("First LBN", Carry::Part("nothing: zones follow each other")),
        row("Last LBN", Carry::Part("nothing: zones follow each other")),
        row("Blocks per track", Carry::Count("sectors_per_track")),
        row("Offset of first block", Carry::Part("nothing: every zone begins at angle 0")),
        row("Empty space at zone front", Carry::Part("`spare_sectors`, at the end of the zone")),
        row("Skew for track switch", Carry::Number("track_skew")),
        row("Skew for cylinder switch", Carry::Number("cylinder_skew")),
        row("Number of spares", Carry::Part("`spare_sectors`, by the sparing scheme")),
        row("slips", Carry::Part("`spare_sectors`, at the end of the zone")),
        row("defects", Carry::Part("remapped sectors stay in place")),
        row("Track length list", Carry::Lost(0.0, "tracks of a zone are equally long")),
    ],
};

const ZONES_MAX: usize = 4_096;
const CYLINDERS_MAX: i64 = 1 << 22;

/// Where a sparing scheme keeps its spares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sparing {
    /// `Number of spares` tracks of a zone.
    Tracks,
    /// So many sectors of every cylinder.
    Cylinders,
    /// So many sectors of every track.
    EveryTrack,
    /// So many sectors of every range of cylinders.
    Ranges,
    /// So many sectors of a zone.
    Zone,
    /// Sectors behind the end of the drive.
    End,
}

/// By DiskSim's number (reference manual of its disk models, G1 layout).
fn sparing(scheme: i64) -> Sparing {
    match scheme {
        1 => Sparing::Tracks,
        2 | 4 | 5 | 6 => Sparing::Cylinders,
        3 => Sparing::EveryTrack,
        8 => Sparing::Ranges,
        9 | 10 => Sparing::Zone,
        _ => Sparing::End,
    }
}

pub(crate) fn lines(
    layout: &Block,
    model: &Block,
    lines: &mut Lines,
    notes: &mut Notes,
) -> Result<(), Trouble> {
    carry(&LAYOUT, layout, lines, notes)?;
    let mapping = layout.need("LBN-to-PBN mapping scheme")?;
    let word = match mapping.whole_in(0, 2)? {
        0 => "\"cylinder\"",
        1 => "\"serpentine\"",
        _ => {
            notes.warn(
                mapping.place,
                "mapping scheme 2 (even and odd cylinders) becomes `serpentine`",
            );
            "\"serpentine\""
        }
    };
    lines.from("mapping", word, ("LBN-to-PBN mapping scheme", mapping), notes);
    let unit = match layout.get("Skew units").map(Item::text).transpose()? {
        Some("revolutions") => "\"turns\"",
        _ => "\"sectors\"",
    };
    lines.set("skew_unit", unit, "");
    let scheme = sparing(layout.need("Sparing scheme used")?.whole_in(0, 10)?);
    let range = layout.get("Rangesize for sparing").map_or(Ok(1), |i| i.whole_in(1, 1 << 22))?;
    let heads = model.need("Number of data surfaces")?.whole_in(1, 64)?;
    let zones = layout.need("Zones")?;
    let list = zones.list()?;
    if list.is_empty() || list.len() > ZONES_MAX {
        let message = format!("expected 1 to {ZONES_MAX} zones, found {}", list.len());
        return Err(Trouble::new(zones.place, message));
    }
    let mut value = String::from("[\n");
    let mut held = 0i64;
    for item in list {
        let zone = Zone::read(item.block()?, notes)?;
        let spares = zone.spares(scheme, range, heads);
        let all = zone.cylinders() * heads * zone.per_track;
        if spares >= all {
            let message = format!("all {all} sectors of the zone are spare");
            return Err(Trouble::new(item.place, message));
        }
        held += all - spares;
        value += &zone.toml(spares);
    }
    lines.set("zones", value + "]", "");
    capacity(model, held, lines, notes)
}

struct Zone {
    first: i64,
    last: i64,
    per_track: i64,
    track_skew: f64,
    cylinder_skew: f64,
    empty: i64,
    spares: i64,
    slips: i64,
}

impl Zone {
    fn read(block: &Block, notes: &mut Notes) -> Result<Self, Trouble> {
        carry(&ZONE, block, &mut Lines::default(), notes)?;
        let count = |key: &str, min, max| block.need(key)?.whole_in(min, max);
        let or_none = |key: &str| block.get(key).map_or(Ok(0), |item| item.whole_in(0, 1 << 40));
        let skew = |key: &str| block.get(key).map_or(Ok(0.0), |item| item.number_in(0.0, 65_536.0));
        let first = count("First cylinder number", 0, CYLINDERS_MAX - 1)?;
        let slips = block.get("slips").map_or(Ok(0), |item| Ok(item.list()?.len() as i64))?;
        Ok(Self {
            first,
            last: count("Last cylinder number", first, CYLINDERS_MAX - 1)?,
            per_track: count("Blocks per track", 1, 65_536)?,
            track_skew: skew("Skew for track switch")?,
            cylinder_skew: skew("Skew for cylinder switch")?,
            empty: or_none("Empty space at zone front")?,
            spares: or_none("Number of spares")?,
            slips,
        })
    }

    const fn cylinders(&self) -> i64 {
        self.last - self.first + 1
    }

    /// Sectors that hold no data. Slipped sectors take the place of spares where there are any.
    fn spares(&self, scheme: Sparing, range: i64, heads: i64) -> i64 {
        let times = |n: i64| self.spares.saturating_mul(n);
        let spares = match scheme {
            Sparing::Tracks => times(self.per_track),
            Sparing::Cylinders => times(self.cylinders()),
            Sparing::EveryTrack => times(self.cylinders().saturating_mul(heads)),
            Sparing::Ranges => times(self.cylinders() / range),
            Sparing::Zone => self.spares.saturating_add(self.slips),
            Sparing::End => self.slips,
        };
        spares.saturating_add(self.empty)
    }

    fn toml(&self, spares: i64) -> String {
        format!(
            "    {{ first_cylinder = {}, last_cylinder = {}, sectors_per_track = {}, \
             track_skew = {}, cylinder_skew = {}, spare_sectors = {spares} }},\n",
            self.first,
            self.last,
            self.per_track,
            number(self.track_skew),
            number(self.cylinder_skew),
        )
    }
}
