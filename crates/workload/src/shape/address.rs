//! Mapping of trace addresses to the device, in particular those beyond its end.

use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::SECTOR_BYTES;
use rustc_hash::FxHashMap;

pub const ADDRESS: Param = Param::with(
    "address",
    Kind::Choice(&["error", "wrap", "scale", "remap"]),
    "\"error\"",
    "Addresses beyond the device: `error` ends the run; `wrap` takes them modulo the capacity; \
     `scale` scales the trace's address range to the device by whole granules (the trace is read \
     twice); `remap` maps every granule to the next free one on its first access, so that the \
     footprint alone must fit the device.",
);
pub const GRANULE: Param = Param::with(
    "granule",
    Kind::Bytes,
    "\"1MiB\"",
    "Unit of `scale` and `remap`; offsets within it are kept. At least 64 KiB.",
);

const GRANULE_BYTES_MIN: u64 = 64 << 10;

/// Maps addresses of the trace to addresses of the device.
#[derive(Clone, Debug)]
pub enum AddressMap {
    /// Unchanged; an error beyond the device.
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
        /// The mapping of granules.
        to: GranuleMap,
    },
}

/// The mapping of granules.
#[derive(Clone, Debug)]
pub enum GranuleMap {
    /// In proportion: `trace` granules to `device` granules.
    Scale {
        /// Granules of the trace; 0 before the first pass.
        trace: u64,
        /// Granules of the device.
        device: u64,
    },
    /// In order of first touch.
    Remap {
        /// Granules mapped so far, at most as many as the device has.
        mapped: FxHashMap<u64, u64>,
        /// Granules of the device.
        device: u64,
    },
}

/// A contiguous extent of a request on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedExtent {
    pub lba: u64,
    /// At least 1.
    pub sectors: u32,
    /// Whether the address was beyond the device and was wrapped.
    pub wrapped: bool,
}

impl AddressMap {
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
            "scale" => granules(GranuleMap::Scale { trace: 0, device }),
            "remap" => granules(GranuleMap::Remap { mapped: FxHashMap::default(), device }),
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

    /// Whether volumes need no layout because every granule is mapped by itself.
    pub const fn maps_volumes(&self) -> bool {
        matches!(self, Self::Granules { to: GranuleMap::Remap { .. }, .. })
    }

    /// Whether a first pass must determine the trace's address range.
    pub const fn needs_first_pass(&self) -> bool {
        matches!(self, Self::Granules { to: GranuleMap::Scale { .. }, .. })
    }

    /// Sets the end of the trace's address range.
    pub fn set_trace_end(&mut self, end: u64) {
        if let Self::Granules { granule, to: GranuleMap::Scale { trace, .. }, .. } = self {
            *trace = end.div_ceil(*granule);
        }
    }

    /// Maps the longest prefix of `sectors` sectors from `lba` that is contiguous on the device.
    #[inline]
    pub fn map(&mut self, lba: u64, sectors: u32) -> Result<MappedExtent, String> {
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
                Ok(MappedExtent { lba, sectors, wrapped: false })
            }
            Self::Wrap { capacity } => {
                let at = lba % *capacity;
                let together = u64::from(sectors).min(*capacity - at) as u32;
                let wrapped = at != lba || together < sectors;
                Ok(MappedExtent { lba: at, sectors: together, wrapped })
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
    to: &mut GranuleMap,
    lba: u64,
    sectors: u32,
) -> Result<MappedExtent, String> {
    if let GranuleMap::Scale { trace, device } = to {
        let fits = trace.saturating_mul(granule) <= capacity || *trace <= *device;
        if fits && lba.checked_add(u64::from(sectors)).is_some_and(|end| end <= capacity) {
            return Ok(MappedExtent { lba, sectors, wrapped: false });
        }
    }
    let (first, within) = (lba / granule, lba % granule);
    let target = to.map(first)?;
    let mut together = granule - within;
    let mut next = 1;
    while together < u64::from(sectors) && to.map(first + next)? == target + next {
        together += granule;
        next += 1;
    }
    let sectors = together.min(u64::from(sectors)) as u32;
    Ok(MappedExtent { lba: target * granule + within, sectors, wrapped: false })
}

impl GranuleMap {
    fn map(&mut self, granule: u64) -> Result<u64, String> {
        match self {
            Self::Scale { trace, device } => {
                let to = u128::from(granule) * u128::from(*device) / u128::from(*trace).max(1);
                u64::try_from(to).ok().filter(|to| to < device).ok_or_else(|| {
                    "its address was not in the first pass over the trace".to_owned()
                })
            }
            Self::Remap { mapped, device } => {
                let next = mapped.len() as u64;
                if let Some(to) = mapped.get(&granule) {
                    return Ok(*to);
                }
                if next == *device {
                    return Err(format!(
                        "the trace accesses more than the {device} granules of the device: \
                         use a larger device, a smaller `granule`, or `address` = \"wrap\""
                    ));
                }
                mapped.insert(granule, next);
                Ok(next)
            }
        }
    }
}
