//! Volumes: selection, and layout on the device.

use hybridsim_config::param::{Kind, Problem};
use hybridsim_engine::Request;
use hybridsim_engine::SECTOR_BYTES;

hybridsim_config::choices! {
    /// Layout of volumes.
    enum Layout { Concatenate = "concatenate", Stride = "stride", Overlay = "overlay" }
}

hybridsim_config::params! {
    /// Parameters of volumes.
    pub struct Parameters {
        volumes: Option<Vec<u64>> = Kind::Counts, optional,
            "Numbers of the volumes used, as `trace info` lists them, counted from 0; all when \
             absent.";
        volume_layout: Layout = Kind::Choice(Layout::NAMES), default "\"concatenate\"",
            "`concatenate`: one volume after the other, each up to its last address in the trace \
             (the trace is read twice); `stride`: at a fixed distance; `overlay`: all from address \
             0.";
        volume_stride: Option<u64> = Kind::Bytes, optional, "Distance of volumes for `stride`.";
    }
}

/// Volumes start at multiples of 1 MiB, which preserves the alignment of requests.
const ALIGN_SECTORS: u64 = 2048;
/// Size of a volume where granules are remapped later.
const VIRTUAL_SECTORS: u64 = 1 << 47;
/// Volumes that end beyond this do not have addresses, but other numbers.
pub const VOLUME_BYTES_MAX: u64 = VIRTUAL_SECTORS * SECTOR_BYTES;

/// The chosen volumes.
#[derive(Clone, Debug)]
pub struct VolumeSelection(Option<Vec<u16>>);

impl VolumeSelection {
    pub fn new(params: &Parameters, problems: &mut Vec<Problem>) -> Self {
        let Some(list) = &params.volumes else { return Self(None) };
        let chosen: Vec<u16> = list.iter().filter_map(|&n| u16::try_from(n).ok()).collect();
        if chosen.len() < list.len() {
            problems.push(Problem::new("volumes", "volume numbers are from 0 to 65535"));
        }
        if list.is_empty() {
            problems.push(Problem::new("volumes", "is empty: omit it to use all volumes"));
        }
        Self(Some(chosen))
    }

    /// All volumes.
    pub const fn all() -> Self {
        Self(None)
    }

    #[inline]
    pub fn contains(&self, volume: u16) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.contains(&volume))
    }

    /// The index of `volume` among the chosen ones.
    fn index(&self, volume: u16) -> u64 {
        let found = self.0.as_ref().and_then(|list| list.iter().position(|&v| v == volume));
        found.map_or(u64::from(volume), |index| index as u64)
    }

    pub const fn is_partial(&self) -> bool {
        self.0.is_some()
    }
}

#[derive(Clone, Debug)]
pub enum VolumeLayout {
    /// Each volume's first sector.
    Starts(Vec<u64>),
    /// The distance in sectors.
    Stride(u64),
    Overlay,
    /// In disjoint virtual ranges, which the address map maps to the device.
    Virtual,
}

impl VolumeLayout {
    /// `Starts` is empty until [`VolumeLayout::set_volume_ends`].
    pub fn new(params: &Parameters, mapped: bool, problems: &mut Vec<Problem>) -> Self {
        let stride = params.volume_stride;
        if params.volume_layout != Layout::Stride && stride.is_some() {
            let message = "only goes with `volume_layout = \"stride\"`";
            problems.push(Problem::new("volume_stride", message));
        }
        match params.volume_layout {
            Layout::Stride => {
                let stride = stride.unwrap_or(0);
                if stride == 0 || !stride.is_multiple_of(SECTOR_BYTES) {
                    let message = "`volume_layout = \"stride\"` needs a multiple of 512 bytes here";
                    problems.push(Problem::new("volume_stride", message));
                }
                Self::Stride(stride / SECTOR_BYTES)
            }
            Layout::Overlay => Self::Overlay,
            Layout::Concatenate if mapped => Self::Virtual,
            Layout::Concatenate => Self::Starts(Vec::new()),
        }
    }

    /// Whether a first pass must determine the address range of volumes.
    pub const fn needs_first_pass(&self) -> bool {
        matches!(self, Self::Starts(_))
    }

    /// Lays out volumes by their `ends` and returns the end of the last one.
    pub fn set_volume_ends(&mut self, ends: &[u64], selection: &VolumeSelection) -> u64 {
        match self {
            Self::Starts(starts) => {
                let mut next = 0u64;
                let mut end = 0;
                starts.clear();
                for &length in ends {
                    starts.push(next);
                    end = if length > 0 { next.saturating_add(length) } else { end };
                    let room = length.div_ceil(ALIGN_SECTORS).saturating_mul(ALIGN_SECTORS);
                    next = next.saturating_add(room);
                }
                end
            }
            Self::Stride(stride) => {
                let used = (0u16..).zip(ends).filter(|(_, end)| **end > 0);
                let used_ends = used.map(|(volume, end)| {
                    stride.saturating_mul(selection.index(volume)).saturating_add(*end)
                });
                used_ends.max().unwrap_or(0)
            }
            Self::Overlay | Self::Virtual => ends.iter().copied().max().unwrap_or(0),
        }
    }

    /// The first sector of `request` in the common address space.
    #[inline]
    pub fn locate(&self, request: &Request, selection: &VolumeSelection) -> Result<u64, String> {
        let far = || "its address is too large".to_owned();
        let end = request.lba.0.checked_add(u64::from(request.sectors)).ok_or_else(far)?;
        let (start, room) = match self {
            Self::Overlay => (0, u64::MAX),
            Self::Starts(starts) => {
                let start = starts.get(usize::from(request.volume)).copied();
                (start.ok_or("its volume was not in the first pass over the trace")?, u64::MAX)
            }
            Self::Stride(stride) => {
                let start = stride.checked_mul(selection.index(request.volume));
                (start.ok_or_else(far)?, *stride)
            }
            Self::Virtual => (u64::from(request.volume) * VIRTUAL_SECTORS, VIRTUAL_SECTORS),
        };
        if end > room && matches!(self, Self::Virtual) {
            return Err(format!(
                "it ends at sector {end} of volume {}, beyond 64 PiB: its numbers are hardly \
                 addresses; name another format with --format (`format`), or `objects = \"dense\"` \
                 of a format with numbers of objects",
                request.volume
            ));
        }
        if end > room {
            return Err(format!(
                "it ends at sector {end} of volume {}, beyond the {room} sectors between volumes: \
                 use a larger `volume_stride`",
                request.volume
            ));
        }
        start.checked_add(request.lba.0).ok_or_else(far)
    }
}
