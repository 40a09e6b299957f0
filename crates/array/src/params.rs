//! Parameters of redundant arrays: devices, failures, rebuild and resynchronisation.

use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Settings};
use hybridsim_engine::SimDuration;
use serde::{Deserialize, Serialize};

/// Steps of a rebuild that may complete out of order: bits of a word.
pub const WINDOW: u64 = 64;

hybridsim_config::params! {
    /// Parameters of every redundant array.
    pub struct Redundancy includes {
        pub devices: Devices,
        pub pace: Pace where &[REPAIRS],
        pub resync: ResyncParameters,
    } {
        pub failures: Vec<Settings> = Kind::Tables(Failure::PARAMS), default "[]",
            "Devices that fail, as `{ member = 2, at = \"10s\" }`; from then on they serve no \
             requests";
    }
}

hybridsim_config::params! {
    /// The devices of an array.
    pub struct Devices {
        pub members: Vec<String> = Kind::Components, required,
            "The devices, in order; the smallest of them and of the spares counts for all";
        pub spares: Vec<String> = Kind::Components, default "[]",
            "Devices that replace members that fail, in order";
    }
}

hybridsim_config::params! {
    /// Failure of a device.
    pub struct Failure {
        pub member: usize = Kind::Count { min: 0, max: 65_535 }, required,
            "Index of the device: from 0 in `members`, continued in `spares`";
        pub at: SimDuration = Kind::Duration, default "\"0ns\"",
            "Time of the failure; 0ns: before the start";
    }
}

hybridsim_config::params! {
    /// The pace of rebuild and resync.
    pub struct Pace {
        pub rebuild_rate: Option<u64> = Kind::Rate, optional,
            "Rebuild and resync rate limit in bytes per second of a member; by default as fast as \
             the members allow";
        pub rebuild_parallel: u64 = Kind::Count { min: 1, max: WINDOW }, default "4",
            "Stripes (of a mirror: regions) rebuilt or resynchronised at a time";
        pub rebuild_after_idle: SimDuration = Kind::Duration, default "\"0ns\"",
            "A rebuild or resync step starts only after the array has been idle for this time; \
             0ns: concurrently with requests";
    }
}

/// The array rebuilds or resynchronises.
pub const REPAIRS: Needs =
    Needs::Any(&[Needs::above_zero("spares"), Needs::Not("resync", &["none"])]);

hybridsim_config::choices! {
    /// Scope of the resynchronisation after a power failure.
    #[derive(Serialize, Deserialize)]
    pub enum Mode { Full = "full", Bitmap = "bitmap", None = "none" }
}

hybridsim_config::params! {
    /// Parameters of the resynchronisation.
    pub struct ResyncParameters includes { pub bitmap: BitmapParameters where BITMAP } {
        pub resync: Mode = Kind::Choice(Mode::NAMES), default "\"full\"",
            "Scope of the resynchronisation after a power failure: full: everything; bitmap: the \
             regions marked in a write-intent bitmap (Linux md); none: nothing. At the pace of a \
             rebuild; copies also before they are read";
    }
}

const BITMAP: &[Needs] = &[Needs::Is("resync", &["bitmap"])];

hybridsim_config::params! {
    /// Parameters of the write-intent bitmap.
    pub struct BitmapParameters {
        pub bitmap_region: u64 = Kind::Bytes, default "\"64MiB\"",
            "With `resync = \"bitmap\"`: bytes of a member per bit, at least a chunk (of mirrors: \
             at least `rebuild_step`)";
        pub bitmap_clear_after: SimDuration = Kind::Duration, default "\"5s\"",
            "With `resync = \"bitmap\"`: time without writes after which a region's bit is \
             cleared, at least 1ms";
    }
}
