//! Geometry: where a sector is on the platters.

mod address;
pub mod index;
mod interpolate;
pub mod layout;
mod mapping;
mod pieces;
mod ranges;
mod sparing;
pub mod zone;

pub use address::PhysicalAddress;
pub use layout::Layout;
pub use mapping::Mapping;
pub use sparing::Sparing;
pub use zone::ZoneSpec;

use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Settings};
use mapping::TrackOrder;
use sparing::Scheme;
use zone::SkewUnit;

const SKEW: Kind = Kind::Number { min: 0.0, max: zone::SECTORS_PER_TRACK_MAX as f64 };
const TRACK: Kind = Kind::Count { min: 1, max: zone::SECTORS_PER_TRACK_MAX };
const CYLINDERS: Kind = Kind::Count { min: 1, max: zone::CYLINDERS_MAX };

const BANDED: Needs = Needs::Is("mapping", &["surface"]);
const SEVERAL_HEADS: Needs = Needs::Not("heads", &["1"]);

hybridsim_config::params! {
    pub(crate) struct Parameters includes {
        zoned: Zoned where &[Needs::absent("layout_index")],
        indexed: Indexed where &[Needs::given("layout_index")],
    } {
        heads: u32 = Kind::Count { min: 1, max: zone::HEADS_MAX }, required, "Surfaces with data.";
        sectors: Option<u64> = Kind::Count { min: 1, max: 1 << 50 }, optional,
            "Capacity in sectors of 512 bytes, when it is less than the zones hold.";
        layout_index: Option<Vec<Settings>> = Kind::Tables(index::Parameters::PARAMS), optional,
            "The layout as tables of repeated patterns (DiskSim's layout G4), the last one the \
             root; takes the place of `zones`.";
    }
}

hybridsim_config::params! {
    struct Zoned includes { interpolated: Interpolated where &[Needs::absent("zones")] } {
        zones: Option<Vec<Settings>> = Kind::Tables(zone::Parameters::PARAMS), optional,
            "The zones, outermost first. Without it they are interpolated between \
             `outer_sectors_per_track` and `inner_sectors_per_track`.";
        mapping: TrackOrder = Kind::Choice(TrackOrder::NAMES), default "\"cylinder\""
            needs &[Needs::Any(&[SEVERAL_HEADS, Needs::given("band_skew")])],
            "Order of the tracks: all surfaces of a cylinder; the same with every other cylinder \
             of a zone, or every odd cylinder of the drive, in reverse; or bands of cylinders \
             surface by surface.";
        band_cylinders: u32 = CYLINDERS, default "64" needs &[BANDED],
            "Cylinders in a band of mapping `surface`.";
        sparing: Scheme = Kind::Choice(Scheme::NAMES), default "\"none\""
            needs &[Needs::given("zones")],
            "Where the `spares` of the zones are, and so how far slips push the data on.";
        sparing_range_cylinders: u32 = CYLINDERS, default "1"
            needs &[Needs::given("zones"), Needs::Is("sparing", &["cylinder-range"])],
            "Cylinders that share spares with sparing `cylinder-range`.";
        skew_unit: SkewUnit = Kind::Choice(SkewUnit::NAMES), default "\"sectors\""
            needs &[Needs::Any(&[
                Needs::above_zero("track_skew"),
                Needs::above_zero("cylinder_skew"),
                Needs::above_zero("band_skew"),
                Needs::given("zones"),
            ])],
            "Unit of skews: sectors of their zone, or fractions of a turn.";
        track_skew: f64 = SKEW, default "0" needs &[SEVERAL_HEADS],
            "Turn of the next track on another surface.";
        cylinder_skew: f64 = SKEW, default "0", "Turn of the next track on the next cylinder.";
        band_skew: Option<f64> = SKEW, optional needs &[BANDED],
            "Turn of the first track of the next band (mapping `surface`); as `cylinder_skew` if \
             absent.";
    }
}

hybridsim_config::params! {
    /// Zones between given densities of the outermost and innermost tracks.
    struct Interpolated {
        cylinders: Option<u32> = CYLINDERS, optional, "Cylinders, when no `zones` are given.";
        outer_sectors_per_track: Option<u32> = TRACK, optional, "Sectors on the outermost tracks.";
        inner_sectors_per_track: Option<u32> = TRACK, optional, "Sectors on the innermost tracks.";
        zone_count: u32 = Kind::Count { min: 1, max: 1024 }, default "16", "Zones to interpolate.";
    }
}

hybridsim_config::params! {
    /// Additions to a layout as tables of patterns.
    struct Indexed {
        track_patterns: Option<Vec<u64>> = Kind::Counts, optional,
            "Triples for `layout_index`: first and last sector used on a track, sectors on it.";
        slips: Option<Vec<u64>> = Kind::Counts, optional,
            "Pairs for `layout_index`: a bad sector, and how many that are left out from there on.";
        remaps: Option<Vec<u64>> = Kind::Counts, optional,
            "Triples for `layout_index`: first block moved, how many, first sector they moved to.";
    }
}
