//! The file that names a drive's series of counters and the load of each.

use super::PAGES;
use super::drive::Load;
use super::log::{CounterLog, Window};
use crate::CalibrateError;
use hybridsim_config::units;
use hybridsim_simulation::text;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// Bytes of a gibibyte.
const GIB: f64 = (1_u64 << 30) as f64;
/// Exported capacities that are simulated, in bytes.
const CAPACITY: (u64, u64) = (1 << 30, 1 << 50);
/// A run that writes more often is no longer simulated in a reasonable time.
const WRITES_MAX: f64 = 100.0;

/// The quantity that series are fitted to and judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    WriteAmplification,
    /// Where no log has `media_bytes`.
    HostRate,
}

impl fmt::Display for Quantity {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::WriteAmplification => "write amplification",
            Self::HostRate => "host rate",
        })
    }
}

/// A drive and what was logged of it.
#[derive(Clone, Debug)]
pub struct CounterSeries {
    /// The file's name.
    pub name: String,
    /// Exported capacity in GiB.
    pub user_gib: f64,
    /// The factor by which the counter exceeds the pages programmed, if the user knows.
    pub media_overhead: Option<f64>,
    /// The time of a page copied, as a multiple of that of a page written, if the user knows; for
    /// logs of rates alone.
    pub copy_time: Option<f64>,
    pub series: Vec<Series>,
}

/// The counters under one load.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name of its file.
    pub name: String,
    pub load: Load,
    /// The part of the capacity that was filled and is written to.
    pub span: f64,
    /// Number of times that part was written.
    pub writes: f64,
    pub window: Window,
    /// Whether to fit to it, where the user says so.
    pub fit: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Root {
    capacity: String,
    media_overhead: Option<f64>,
    copy_time: Option<f64>,
    series: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: String,
    load: LoadKeys,
    #[serde(default = "whole")]
    span: f64,
    fit: Option<bool>,
}

const fn whole() -> f64 {
    1.0
}

/// A load, by the keys of the generator of the same name.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum LoadKeys {
    // Braces, so that unknown keys of these are errors too.
    Sequential {},
    Uniform {},
    Zipf {
        theta: f64,
    },
    HotCold {
        hot_fraction: f64,
        hot_probability: f64,
    },
    Streams {
        active: u32,
        region: String,
        #[serde(default)]
        trim: bool,
    },
}

impl LoadKeys {
    /// The load on a part of `span_gib` of a drive of `user_gib`.
    fn load(&self, user_gib: f64, span_gib: f64) -> Result<Load, String> {
        let share = |key: &str, value: f64| match value > 0.0 && value <= 1.0 {
            true => Ok(value),
            false => Err(format!("load.{key} = {value}: must be above 0, at most 1")),
        };
        match self {
            Self::Sequential {} => {
                Ok(Load::Streams { active: 1, region_gib: span_gib, trims: false })
            }
            Self::Uniform {} => Ok(Load::Uniform),
            Self::Zipf { theta } if *theta > 0.0 && *theta <= 10.0 => Ok(Load::Zipf(*theta)),
            Self::Zipf { theta } => {
                Err(format!("load.theta = {theta}: must be above 0, at most 10"))
            }
            Self::HotCold { hot_fraction, hot_probability } => Ok(Load::Hot {
                pages: share("hot_fraction", *hot_fraction)?,
                writes: share("hot_probability", *hot_probability)?,
            }),
            Self::Streams { active, region, trim } => {
                let bytes = units::bytes(region).map_err(|it| format!("load.region: {it}"))?;
                let region_gib = bytes as f64 / GIB;
                if region_gib < user_gib / PAGES {
                    return Err(format!(
                        "load.region = \"{region}\": must be at least a {PAGES:.0}th of the \
                         capacity, {:.0} MiB, as the simulated drive has so many pages",
                        (1024.0 * user_gib / PAGES).ceil()
                    ));
                }
                if *active == 0 || f64::from(*active) * region_gib > span_gib {
                    return Err(format!(
                        "load.active = {active}: regions of {region} must fit into the span at \
                         least once"
                    ));
                }
                Ok(Load::Streams { active: *active, region_gib, trims: *trim })
            }
        }
    }
}

impl CounterSeries {
    pub fn quantity(&self) -> Quantity {
        match self.series.iter().any(|one| one.window.amplification.is_some()) {
            true => Quantity::WriteAmplification,
            false => Quantity::HostRate,
        }
    }

    /// The series that the TOML file `path` names, with their logs, which stand beside it.
    ///
    /// # Errors
    /// When it or one of the logs cannot be used.
    pub fn read(path: &Path) -> Result<Self, CalibrateError> {
        let name = path.display().to_string();
        let wrong = |message: String| CalibrateError::Readings(format!("{name}: {message}"));
        let text = text::read(path, text::SCENARIO_BYTES_MAX);
        let text = text.map_err(|error| wrong(error.to_string()))?;
        let root: Root = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let capacity = units::bytes(&root.capacity)
            .ok()
            .filter(|bytes| (CAPACITY.0..=CAPACITY.1).contains(bytes))
            .ok_or_else(|| {
                let given = &root.capacity;
                wrong(format!("capacity = \"{given}\": must be a size from 1 GiB to 1 PiB"))
            })?;
        if let Some(factor) = root.media_overhead.filter(|factor| !(0.9..=2.0).contains(factor)) {
            let message = "must be a factor from 0.9 to 2, such as 1.03";
            return Err(wrong(format!("media_overhead = {factor}: {message}")));
        }
        if let Some(factor) = root.copy_time.filter(|factor| !(1.0..=8.0).contains(factor)) {
            let message = "must be a factor from 1 to 8, such as 1.3";
            return Err(wrong(format!("copy_time = {factor}: {message}")));
        }
        let user_gib = capacity as f64 / GIB;
        let folder = path.parent().unwrap_or(Path::new(""));
        let one = |(number, entry): (usize, &Entry)| entry.read(folder, user_gib, number, &name);
        let series = (1..).zip(&root.series).map(one).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = series.first() else {
            return Err(wrong("has no [[series]]".to_owned()));
        };
        let counts = |one: &Series| one.window.amplification.is_some();
        if let Some(other) = series.iter().find(|one| counts(one) != counts(first)) {
            let (with, without) = if counts(first) { (first, other) } else { (other, first) };
            return Err(wrong(format!(
                "{} has media_bytes, {} has none: give them in all series, or in none",
                with.name, without.name
            )));
        }
        let Root { media_overhead, copy_time, .. } = root;
        if counts(first) && copy_time.is_some() {
            return Err(wrong("copy_time is for logs without media_bytes".to_owned()));
        }
        if !counts(first) && media_overhead.is_some() {
            return Err(wrong("media_overhead is for logs with media_bytes".to_owned()));
        }
        Ok(Self { name, user_gib, media_overhead, copy_time, series })
    }
}

impl Entry {
    fn read(
        &self,
        folder: &Path,
        user_gib: f64,
        number: usize,
        within: &str,
    ) -> Result<Series, CalibrateError> {
        let wrong = |message: String| {
            CalibrateError::Readings(format!("{within}: series {number}: {message}"))
        };
        if !(self.span > 0.0 && self.span <= 1.0) {
            let message = "must be a part of the capacity, above 0 and at most 1";
            return Err(wrong(format!("span = {}: {message}", self.span)));
        }
        let span_gib = self.span * user_gib;
        let load = self.load.load(user_gib, span_gib).map_err(wrong)?;
        let log = CounterLog::read(&folder.join(&self.file))?;
        let writes = log.host_bytes() / GIB / span_gib;
        if !(WRITES_MIN..=WRITES_MAX).contains(&writes) {
            let gib = log.host_bytes() / GIB;
            return Err(wrong(format!(
                "{} has {gib:.1} GiB of host writes, which is {writes:.3} times the span; log \
                 {WRITES_MIN} to {WRITES_MAX} times",
                self.file
            )));
        }
        let window = log.window().map_err(wrong)?;
        let (name, fit) = (self.file.clone(), self.fit);
        Ok(Series { name, load, span: self.span, writes, window, fit })
    }
}

/// Least drive writes: with fewer, garbage collection has hardly begun.
const WRITES_MIN: f64 = 0.5;
