//! Mapping of trace addresses to the device, in particular those beyond its end.

use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Problem};
use hybridsim_engine::SECTOR_BYTES;
use rustc_hash::FxHashMap;

hybridsim_config::choices! {
    /// Treatment of addresses beyond the device.
    enum Beyond { Error = "error", Wrap = "wrap", Scale = "scale", Remap = "remap" }
}

hybridsim_config::params! {
    /// Parameters of the mapping.
    pub struct Parameters {
        address: Beyond = Kind::Choice(Beyond::NAMES), default "\"error\"",
            "Addresses beyond the device: `error` ends the run; `wrap` takes them modulo the \
             capacity; `scale` scales the trace's address range to the device by whole granules; \
             `remap` maps the granules with accesses to consecutive ones in order of address, so \
             that the footprint alone must fit the device. The trace is read twice for `scale` and \
             `remap`.";
        pub(super) fit: bool = Kind::Flag, default "false",
            "Makes the trace fit: with addresses beyond the device as `address = \"remap\"`, with \
             smaller granules if necessary; without arrival times in a closed loop of one request. \
             Results report what was changed.";
        pub(super) granule: u64 = Kind::Bytes, default "\"1MiB\""
            needs &[
                Needs::Not("address", &["wrap"]),
                Needs::Any(&[
                    Needs::Is("address", &["scale", "remap"]),
                    Needs::Is("fit", &["true"]),
                ]),
            ],
            "Unit of `scale` and `remap`; offsets within it are kept. At least 64 KiB.";
    }
}

const GRANULE_BYTES_MIN: u64 = 64 << 10;
/// The smallest granule of `fit`.
const FIT_BYTES_MIN: u64 = 4 << 10;

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
    /// Those with accesses, in order of address. Empty before the first pass.
    Remap(FxHashMap<u64, u64>),
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
    pub fn new(params: &Parameters, capacity: u64, problems: &mut Vec<Problem>) -> Self {
        if capacity == 0 {
            problems.push(Problem::new("", "the device has no capacity"));
        }
        let Parameters { address, fit, granule: bytes } = *params;
        let granule = (bytes / SECTOR_BYTES).max(1);
        let device = capacity / granule;
        let granules = |to| Self::Granules { capacity, granule, to };
        let address = match address {
            Beyond::Error => Self::Error { capacity },
            Beyond::Wrap => Self::Wrap { capacity },
            Beyond::Scale => granules(GranuleMap::Scale { trace: 0, device }),
            Beyond::Remap => granules(GranuleMap::Remap(FxHashMap::default())),
        };
        if matches!(address, Self::Granules { .. }) || fit {
            if bytes < GRANULE_BYTES_MIN || !bytes.is_multiple_of(SECTOR_BYTES) {
                let message = "must be a multiple of 512 bytes, and at least 64 KiB";
                problems.push(Problem::new("granule", message));
            } else if device == 0 && !fit {
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
    pub const fn needs_address_range(&self) -> bool {
        matches!(self, Self::Granules { to: GranuleMap::Scale { .. }, .. })
    }

    /// Sets the end of the trace's address range.
    ///
    /// # Errors
    /// If addresses are beyond the device and the map does not allow that.
    pub fn set_trace_end(&mut self, end: u64) -> Result<(), String> {
        match self {
            Self::Granules { granule, to: GranuleMap::Scale { trace, .. }, .. } => {
                *trace = end.div_ceil(*granule);
            }
            Self::Error { capacity } if end > *capacity => {
                return Err(format!(
                    "addresses lie beyond the device: the trace needs a device of {end} sectors \
                     ({}), this one has {capacity} ({}): {REMEDY}",
                    gib(end),
                    gib(*capacity)
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Maps the granules with accesses, which `find` returns in order of address if there are not
    /// more than its second argument.
    ///
    /// # Errors
    /// Those of `find`, or that the device is too small.
    pub fn set_granules<E>(
        &mut self,
        find: impl Fn(u64, u64) -> Result<Option<Vec<u64>>, E>,
    ) -> Result<Result<(), String>, E> {
        let Self::Granules { capacity, granule, to: GranuleMap::Remap(ranks) } = self else {
            return Ok(Ok(()));
        };
        let device = *capacity / *granule;
        let Some(found) = find(*granule, device)? else {
            return Ok(Err(format!(
                "the trace accesses more than the {device} granules of the device: use a larger \
                 device, a smaller `workload.granule`, --fit (`workload.fit = true`), or \
                 `workload.address = \"wrap\"`"
            )));
        };
        *ranks = found.into_iter().zip(0..).collect();
        Ok(Ok(()))
    }

    /// For `fit`: as [`AddressMap::set_granules`], with the largest granule that fits.
    ///
    /// # Errors
    /// As [`AddressMap::set_granules`].
    pub fn fit<E>(
        &mut self,
        granule_bytes: u64,
        find: impl Fn(u64, u64) -> Result<Option<Vec<u64>>, E>,
    ) -> Result<Result<String, String>, E> {
        let Self::Error { capacity } = *self else { return Ok(Ok(String::new())) };
        let mut bytes = granule_bytes;
        while bytes >= FIT_BYTES_MIN {
            let granule = bytes / SECTOR_BYTES;
            let device = capacity / granule;
            if let Some(found) = find(granule, device)? {
                let note = format!(
                    "fit: the trace's addresses reach beyond the device of {}; the {} granules of \
                     {} KiB with accesses are mapped to consecutive ones in order of address",
                    gib(capacity),
                    found.len(),
                    bytes >> 10
                );
                let ranks = found.into_iter().zip(0..).collect();
                *self = Self::Granules { capacity, granule, to: GranuleMap::Remap(ranks) };
                return Ok(Ok(note));
            }
            bytes = bytes / 4 / SECTOR_BYTES * SECTOR_BYTES;
        }
        Ok(Err(format!(
            "`fit`: the footprint of the trace exceeds the device of {capacity} sectors ({}) even \
             in granules of 4 KiB: use a larger device, fewer `workload.volumes`, a part of the \
             trace (`workload.count`), or `workload.address = \"wrap\"`",
            gib(capacity)
        )))
    }

    /// Maps the longest prefix of `sectors` sectors from `lba` that is contiguous on the device.
    #[inline]
    pub fn map(&mut self, lba: u64, sectors: u32) -> Result<MappedExtent, String> {
        match self {
            Self::Error { capacity } => {
                if lba.checked_add(u64::from(sectors)).is_none_or(|end| end > *capacity) {
                    return Err(format!(
                        "sectors {lba} to {} lie beyond the device of {capacity} sectors ({}): \
                         {REMEDY}",
                        lba.saturating_add(u64::from(sectors)).saturating_sub(1),
                        gib(*capacity)
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

/// Remedy for addresses beyond the device.
const REMEDY: &str = "use a larger device, fewer `workload.volumes`, --fit (`workload.fit = \
                      true`), or `workload.address` = \"remap\", \"scale\" or \"wrap\"";

/// Sectors as GiB.
fn gib(sectors: u64) -> String {
    format!("{:.1} GiB", sectors as f64 * SECTOR_BYTES as f64 / f64::from(1 << 30))
}

/// Requests stay contiguous: `remap` keeps adjacent granules adjacent, and `scale` applies to the
/// first granule of a request.
fn map_granules(
    capacity: u64,
    granule: u64,
    to: &GranuleMap,
    lba: u64,
    sectors: u32,
) -> Result<MappedExtent, String> {
    let unknown = || "its address was not in the first pass over the trace".to_owned();
    let (first, within) = (lba / granule, lba % granule);
    let at = match to {
        GranuleMap::Scale { trace, .. } if trace.saturating_mul(granule) <= capacity => lba,
        GranuleMap::Scale { trace, device } => {
            let to = u128::from(first) * u128::from(*device) / u128::from(*trace).max(1);
            let to = u64::try_from(to).ok().filter(|to| to < device).ok_or_else(unknown)?;
            to * granule + within
        }
        GranuleMap::Remap(ranks) => ranks.get(&first).ok_or_else(unknown)? * granule + within,
    };
    let sectors = u64::from(sectors).min(capacity);
    let lba = at.min(capacity - sectors);
    Ok(MappedExtent { lba, sectors: sectors as u32, wrapped: false })
}
