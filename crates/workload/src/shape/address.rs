//! What happens to addresses beyond the end of the device.

use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::SECTOR_BYTES;
use rustc_hash::FxHashMap;

/// What to do.
pub const ADDRESS: Param = Param::with(
    "address",
    Kind::Choice(&["error", "wrap", "scale", "remap"]),
    "\"error\"",
    "Addresses beyond the device: `error` ends the run; `wrap` takes them modulo the capacity; \
     `scale` squeezes the trace's range into the device by whole granules (the trace is read \
     twice); `remap` gives every granule touched the next free place, so that only what is \
     touched needs room.",
);
/// The unit of `scale` and `remap`.
pub const GRANULE: Param = Param::with(
    "granule",
    Kind::Bytes,
    "\"1MiB\"",
    "Unit of `scale` and `remap`; addresses keep their place within it. At least 64 KiB.",
);

const GRANULE_BYTES_MIN: u64 = 64 << 10;

/// Maps addresses of the trace to addresses of the device.
#[derive(Clone, Debug)]
pub enum Address {
    /// As they are.
    Error {
        /// Sectors of the device.
        capacity: u64,
    },
    /// Modulo the capacity.
    Wrap {
        /// Sectors of the device.
        capacity: u64,
    },
    /// By granules.
    Granules {
        /// Sectors of the device.
        capacity: u64,
        /// Sectors of a granule.
        granule: u64,
        /// Where granules go.
        to: Granules,
    },
}

/// Where granules go.
#[derive(Clone, Debug)]
pub enum Granules {
    /// In proportion: `trace` granules onto `device` granules.
    Scale {
        /// Granules of the trace; 0 until surveyed.
        trace: u64,
        /// Granules of the device.
        device: u64,
    },
    /// In order of first touch.
    Remap {
        /// Places given so far. At most as many as the device has.
        places: FxHashMap<u64, u64>,
        /// Granules of the device.
        device: u64,
    },
}

/// Where a piece of a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// First sector on the device.
    pub lba: u64,
    /// Sectors that lie there in one piece; at least 1.
    pub sectors: u32,
    /// Whether the address was beyond the device and has been wrapped.
    pub wrapped: bool,
}

impl Address {
    /// Reads the parameters for a device of `capacity` sectors.
    pub fn new(settings: &Settings, capacity: u64, problems: &mut Vec<Problem>) -> Self {
        if capacity == 0 {
            problems.push(Problem::new("", "the device has no capacity"));
        }
        let bytes = settings.bytes("granule");
        let granule = (bytes / SECTOR_BYTES).max(1);
        let device = capacity / granule;
        let kind = settings.text("address");
        let granules = |to| Self::Granules { capacity, granule, to };
        let address = match kind {
            "wrap" => Self::Wrap { capacity },
            "scale" => granules(Granules::Scale { trace: 0, device }),
            "remap" => granules(Granules::Remap { places: FxHashMap::default(), device }),
            _ => Self::Error { capacity },
        };
        if matches!(address, Self::Granules { .. }) {
            if bytes < GRANULE_BYTES_MIN || !bytes.is_multiple_of(SECTOR_BYTES) {
                let message = "must be a multiple of 512 bytes, and at least 64 KiB";
                problems.push(Problem::new("granule", message));
            } else if device == 0 {
                problems.push(Problem::new("granule", "is larger than the device"));
            }
        }
        address
    }

    /// Whether every volume gets its places from this map.
    pub const fn names_places(&self) -> bool {
        matches!(self, Self::Granules { to: Granules::Remap { .. }, .. })
    }

    /// Whether a first pass must tell how far the trace reaches.
    pub const fn needs_survey(&self) -> bool {
        matches!(self, Self::Granules { to: Granules::Scale { .. }, .. })
    }

    /// Tells how far the trace reaches.
    pub fn survey(&mut self, end: u64) {
        if let Self::Granules { granule, to: Granules::Scale { trace, .. }, .. } = self {
            *trace = end.div_ceil(*granule);
        }
    }

    /// Where `sectors` sectors from `lba` on go, or the first of them that lie together.
    #[inline]
    pub fn map(&mut self, lba: u64, sectors: u32) -> Result<Mapped, String> {
        match self {
            Self::Error { capacity } => {
                if lba.checked_add(u64::from(sectors)).is_none_or(|end| end > *capacity) {
                    return Err(format!(
                        "sectors {lba} to {} lie beyond the device of {capacity} sectors: use a \
                         larger device, fewer `volumes`, or `address` = \"remap\", \"scale\" or \
                         \"wrap\"",
                        lba.saturating_add(u64::from(sectors)).saturating_sub(1)
                    ));
                }
                Ok(Mapped { lba, sectors, wrapped: false })
            }
            Self::Wrap { capacity } => {
                let at = lba % *capacity;
                let together = u64::from(sectors).min(*capacity - at) as u32;
                let wrapped = at != lba || together < sectors;
                Ok(Mapped { lba: at, sectors: together, wrapped })
            }
            Self::Granules { capacity, granule, to } => {
                map_granules(*capacity, *granule, to, lba, sectors)
            }
        }
    }
}

fn map_granules(
    capacity: u64,
    granule: u64,
    to: &mut Granules,
    lba: u64,
    sectors: u32,
) -> Result<Mapped, String> {
    if let Granules::Scale { trace, device } = to {
        let fits = trace.saturating_mul(granule) <= capacity || *trace <= *device;
        if fits && lba.checked_add(u64::from(sectors)).is_some_and(|end| end <= capacity) {
            return Ok(Mapped { lba, sectors, wrapped: false });
        }
    }
    let (first, within) = (lba / granule, lba % granule);
    let place = to.place(first)?;
    let mut together = granule - within;
    let mut next = 1;
    while together < u64::from(sectors) && to.place(first + next)? == place + next {
        together += granule;
        next += 1;
    }
    let sectors = together.min(u64::from(sectors)) as u32;
    Ok(Mapped { lba: place * granule + within, sectors, wrapped: false })
}

impl Granules {
    fn place(&mut self, granule: u64) -> Result<u64, String> {
        match self {
            Self::Scale { trace, device } => {
                let place = u128::from(granule) * u128::from(*device) / u128::from(*trace).max(1);
                u64::try_from(place)
                    .ok()
                    .filter(|place| place < device)
                    .ok_or_else(|| "it was not there when the trace was first read".to_owned())
            }
            Self::Remap { places, device } => {
                let next = places.len() as u64;
                if let Some(place) = places.get(&granule) {
                    return Ok(*place);
                }
                if next == *device {
                    return Err(format!(
                        "the trace touches more than the {device} granules the device has room \
                         for: use a larger device, a smaller `granule`, or `address` = \"wrap\""
                    ));
                }
                places.insert(granule, next);
                Ok(next)
            }
        }
    }
}
