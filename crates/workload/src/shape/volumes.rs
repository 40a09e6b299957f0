//! Volumes: which are used, and where each lies on the one device there is.

use super::survey::Survey;
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_engine::Request;
use hybridsim_engine::SECTOR_BYTES;

/// Which volumes.
pub const VOLUMES: Param = Param::optional(
    "volumes",
    Kind::Counts,
    "Numbers of the volumes used, as `trace info` lists them, counted from 0; all when absent.",
);
/// Where they lie.
pub const LAYOUT: Param = Param::with(
    "volume_layout",
    Kind::Choice(&["concatenate", "stride", "overlay"]),
    "\"concatenate\"",
    "`concatenate`: one volume after the other, each as long as the trace uses it (the trace is \
     read twice); `stride`: a fixed distance apart; `overlay`: all from address 0.",
);
/// How far apart.
pub const STRIDE: Param =
    Param::optional("volume_stride", Kind::Bytes, "Distance of volumes for `stride`.");

/// Volumes start at multiples of 1 MiB, so that their alignment is kept.
const ALIGN_SECTORS: u64 = 2048;
/// Room a volume has where addresses are only names that are mapped later.
const VIRTUAL_SECTORS: u64 = 1 << 47;

/// The chosen volumes.
#[derive(Clone, Debug)]
pub struct Selection(Option<Vec<u16>>);

impl Selection {
    /// Reads the parameter.
    pub fn new(settings: &Settings, problems: &mut Vec<Problem>) -> Self {
        let Some(list) = settings.counts_opt("volumes") else { return Self(None) };
        let chosen: Vec<u16> = list.iter().filter_map(|&n| u16::try_from(n).ok()).collect();
        if chosen.len() < list.len() {
            problems.push(Problem::new("volumes", "volume numbers are from 0 to 65535"));
        }
        if list.is_empty() {
            problems.push(Problem::new("volumes", "no volume is chosen: leave it out for all"));
        }
        Self(Some(chosen))
    }

    /// Whether `volume` is used.
    #[inline]
    pub fn contains(&self, volume: u16) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.contains(&volume))
    }

    /// The place of `volume` among the chosen ones.
    fn index(&self, volume: u16) -> u64 {
        let found = self.0.as_ref().and_then(|list| list.iter().position(|&v| v == volume));
        found.map_or(u64::from(volume), |index| index as u64)
    }

    /// Whether only some volumes are used.
    pub const fn is_partial(&self) -> bool {
        self.0.is_some()
    }
}

/// Where volumes lie.
#[derive(Clone, Debug)]
pub enum Layout {
    /// Each volume's first sector.
    Starts(Vec<u64>),
    /// This many sectors apart.
    Stride(u64),
    /// All at 0.
    Overlay,
    /// Apart far enough for any volume; the address map gives them real places.
    Virtual,
}

impl Layout {
    /// Reads the parameters. `Starts` is empty until [`Layout::survey`] fills it.
    pub fn new(settings: &Settings, mapped: bool, problems: &mut Vec<Problem>) -> Self {
        let stride = settings.bytes_opt("volume_stride");
        match settings.text("volume_layout") {
            "stride" => {
                let stride = stride.unwrap_or(0);
                if stride == 0 || !stride.is_multiple_of(SECTOR_BYTES) {
                    let message = "`volume_layout = \"stride\"` needs a multiple of 512 bytes here";
                    problems.push(Problem::new("volume_stride", message));
                }
                Self::Stride(stride / SECTOR_BYTES)
            }
            other => {
                if stride.is_some() {
                    let message = "only goes with `volume_layout = \"stride\"`";
                    problems.push(Problem::new("volume_stride", message));
                }
                match other {
                    "overlay" => Self::Overlay,
                    _ if mapped => Self::Virtual,
                    _ => Self::Starts(Vec::new()),
                }
            }
        }
    }

    /// Whether a first pass must tell how far volumes reach.
    pub const fn needs_survey(&self) -> bool {
        matches!(self, Self::Starts(_))
    }

    /// Places volumes one after the other and tells where the last one ends.
    pub fn survey(&mut self, survey: &Survey, selection: &Selection) -> u64 {
        match self {
            Self::Starts(starts) => {
                let mut next = 0u64;
                let mut end = 0;
                starts.clear();
                for &length in &survey.ends {
                    starts.push(next);
                    end = if length > 0 { next.saturating_add(length) } else { end };
                    let room = length.div_ceil(ALIGN_SECTORS).saturating_mul(ALIGN_SECTORS);
                    next = next.saturating_add(room);
                }
                end
            }
            Self::Stride(stride) => {
                let used = (0u16..).zip(&survey.ends).filter(|(_, end)| **end > 0);
                let ends = used.map(|(volume, end)| {
                    stride.saturating_mul(selection.index(volume)).saturating_add(*end)
                });
                ends.max().unwrap_or(0)
            }
            Self::Overlay | Self::Virtual => survey.ends.iter().copied().max().unwrap_or(0),
        }
    }

    /// The sector at which `request` begins in the common address space.
    #[inline]
    pub fn place(&self, request: &Request, selection: &Selection) -> Result<u64, String> {
        let far = || "its address is too large".to_owned();
        let end = request.lba.0.checked_add(u64::from(request.sectors)).ok_or_else(far)?;
        let (start, room) = match self {
            Self::Overlay => (0, u64::MAX),
            Self::Starts(starts) => {
                let start = starts.get(usize::from(request.volume)).copied();
                (start.ok_or("its volume was not there when the trace was first read")?, u64::MAX)
            }
            Self::Stride(stride) => {
                let start = stride.checked_mul(selection.index(request.volume));
                (start.ok_or_else(far)?, *stride)
            }
            Self::Virtual => (u64::from(request.volume) * VIRTUAL_SECTORS, VIRTUAL_SECTORS),
        };
        if end > room {
            return Err(format!(
                "it ends at sector {end} of volume {}, beyond the {room} sectors a volume has: \
                 use a larger `volume_stride`",
                request.volume
            ));
        }
        start.checked_add(request.lba.0).ok_or_else(far)
    }
}
