//! Hidden capacity and garbage collection from a drive's own counters: bytes that the host wrote,
//! and bytes that the drive programmed, over loads that are known.
//!
//! Each series is simulated on the drive with other constants until its write amplification comes
//! closest, or its rate if the drive does not count what it programs. Some of the series are held
//! out and judge the fit. The simulated drive is a saturated one, scaled down to so many pages; its
//! number of blocks is the drive's own.

mod amplification;
mod drive;
mod log;
mod printed;
mod search;
mod series;
#[cfg(test)]
mod tests;

pub use amplification::{golden, page_us, residual, two_times};
pub use drive::{Collector, Load, Outcome, SaturatedDrive, Setting, simulated_us};
pub use log::{CounterLog, CounterReading, Window};
pub use series::{CounterSeries, Quantity, Series};

use crate::CalibrateError;
use crate::start::{CalibratedKind, Start};
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_data::DRIVE_SCENARIO;
use search::{COLLECTOR, SEPARATES, Search};
use serde::Serialize;
use std::path::Path;
use toml::{Table, Value as Toml};

/// Pages that the simulated drive exports, about.
const PAGES: f64 = (1_u64 << 16) as f64;

const SSD: CalibratedKind = CalibratedKind { kind: "ssd", words: "SSD", remedy: "" };

/// A series beside its simulation.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesResult {
    pub name: String,
    /// Whether it was fitted to.
    pub fitted: bool,
    /// Write amplification by the drive's counters, if it has them, and simulated, with what the
    /// counter adds.
    pub amplification: [Option<f64>; 2],
    /// Rate of the host in MB/s, measured and simulated; none where the times of pages do not show.
    pub host_mb_s: [Option<f64>; 2],
}

impl SeriesResult {
    /// The relative error of the write amplification.
    pub fn amplification_error(&self) -> Option<f64> {
        relative_error(self.amplification)
    }

    /// The relative error of the rate.
    pub fn rate_error(&self) -> Option<f64> {
        relative_error(self.host_mb_s)
    }

    /// The quantity, measured and simulated.
    fn of(&self, quantity: Quantity) -> [Option<f64>; 2] {
        match quantity {
            Quantity::WriteAmplification => self.amplification,
            Quantity::HostRate => self.host_mb_s,
        }
    }
}

fn relative_error([measured, simulated]: [Option<f64>; 2]) -> Option<f64> {
    Some(simulated? / measured? - 1.0)
}

/// The fit of a constant.
#[derive(Clone, Debug, Serialize)]
pub struct FittedCounter {
    /// The constant, with its unit.
    pub name: &'static str,
    /// The value, assumed where the series do not identify it.
    pub value: String,
    /// Between which values the distance from the counters stays within 0.003; `None` where the
    /// series do not identify it.
    pub range: Option<String>,
}

/// Mean and greatest error of the quantity fitted to; 0.1 is 10 %.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Errors {
    pub series: usize,
    pub mean: f64,
    pub worst: f64,
}

impl Errors {
    /// `None` for no errors.
    fn of(errors: impl Iterator<Item = f64>) -> Option<Self> {
        let errors: Vec<f64> = errors.map(f64::abs).collect();
        let worst = errors.iter().copied().reduce(f64::max)?;
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        Some(Self { series: errors.len(), mean, worst })
    }
}

/// A drive fitted to its counters.
#[derive(Clone, Debug, Serialize)]
pub struct CounterCalibration<'r> {
    /// The file that names the series.
    pub name: String,
    pub quantity: Quantity,
    pub constants: Vec<FittedCounter>,
    pub series: Vec<SeriesResult>,
    pub fitted: Errors,
    pub held_out: Option<Errors>,
    /// Errors of the mean of the series fitted to, on those held out.
    pub trivial: Option<Errors>,
    /// Write amplification with 60 % static data: of the fitted drive, which is greedy, and of one
    /// with the other collector. Only where the series do not identify the collector.
    pub by_collector: Option<[f64; 2]>,
    #[serde(skip)]
    drive: SaturatedDrive,
    /// Whether `drive` has the times of pages of the drive measured.
    #[serde(skip)]
    are_times_known: bool,
    /// The constants at the ends of what was tried.
    #[serde(skip)]
    limits: Vec<&'static str>,
    #[serde(skip)]
    registry: &'r Registry,
}

/// Marks the series that are fitted to: those that the file names, and every other one of the rest.
pub fn every_other(series: &[Series]) -> Vec<bool> {
    let mut number = 0;
    let one = |one: &Series| {
        one.fit.unwrap_or_else(|| {
            number += 1;
            number % 2 == 1
        })
    };
    series.iter().map(one).collect()
}

/// Fits a drive to those of its `series` that `fits` marks, and judges by the others.
///
/// # Errors
/// When none is to be fitted to, or the drive cannot be simulated.
pub fn calibrate_counters<'r>(
    series: &CounterSeries,
    fits: &[bool],
    registry: &'r Registry,
) -> Result<CounterCalibration<'r>, CalibrateError> {
    fitted(series, fits, registry, PAGES)
}

fn fitted<'r>(
    all: &CounterSeries,
    fits: &[bool],
    registry: &'r Registry,
    pages: f64,
) -> Result<CounterCalibration<'r>, CalibrateError> {
    let of = |wanted: bool| -> Vec<&Series> {
        all.series.iter().zip(fits).filter(|(_, fits)| **fits == wanted).map(|it| it.0).collect()
    };
    let wanted = of(true);
    if wanted.is_empty() {
        let message = "there is no series to fit to: set `fit = true` in some, or add --all";
        return Err(CalibrateError::Fit(format!("{}: {message}", all.name)));
    }
    let is_one_series = wanted.len() == 1;
    let mut search = Search::new(registry, all, wanted, pages);
    let (point, mut constants) = search.run()?;
    let (found, model) = (search.times(point)?, search.drive(point));
    let (program_us, read_us) = found
        .map_or((model.program_us, model.read_us), |(program, copy)| (program, copy - program));
    let drive = SaturatedDrive { program_us, read_us, ..model };
    let quantity = all.quantity();
    // By rates, one series or any hidden capacity would give some time.
    let is_open = is_one_series || constants.iter().all(|constant| constant.range.is_none());
    let sources = match quantity {
        Quantity::WriteAmplification => Some(["a line through the host rates"; 2]),
        Quantity::HostRate if is_open => None,
        Quantity::HostRate => Some(BY_RATES),
    };
    constants.extend(times(found, sources));
    let counter = search.counter(point)?;
    let simulated = search.simulate(point, &all.series.iter().collect::<Vec<_>>())?;
    let one = |((series, ours), &fitted): ((&Series, f64), &bool)| SeriesResult {
        name: series.name.clone(),
        fitted,
        amplification: [series.window.amplification, Some(counter * ours)],
        host_mb_s: [
            Some(series.window.host_mb_s),
            found.map(|(program, copy)| page_us(program + copy * (ours - 1.0))),
        ],
    };
    let results: Vec<SeriesResult> = all.series.iter().zip(simulated).zip(fits).map(one).collect();
    let errors = |fitted: bool| {
        let of_kind = results.iter().filter(|one| one.fitted == fitted);
        Errors::of(of_kind.filter_map(|one| relative_error(one.of(quantity))))
    };
    let measured = |fitted: bool| {
        let of_kind = results.iter().filter(move |one| one.fitted == fitted);
        of_kind.filter_map(|one| one.of(quantity)[0])
    };
    let collector = constants.iter().find(|constant| constant.name == COLLECTOR);
    let is_assumed = collector.is_some_and(|it| it.range.is_none());
    let by_collector = is_assumed.then(|| search.by_collector(point)).transpose()?;
    let mean = measured(true).sum::<f64>() / measured(true).count() as f64;
    Ok(CounterCalibration {
        name: all.name.clone(),
        quantity,
        constants,
        fitted: errors(true).expect("a series to fit to"),
        held_out: errors(false),
        trivial: Errors::of(measured(false).map(|measured| mean / measured - 1.0)),
        by_collector,
        drive,
        are_times_known: found.is_some(),
        limits: search.limits(point)?,
        registry,
        series: results,
    })
}

/// Sources of the times of a page written and of one copied, by host rates.
const BY_RATES: [&str; 2] =
    ["the host rates, with the constants above", "copy_time times that of a page written"];

/// The times of a page, with their sources if the series identify them.
fn times(found: Option<(f64, f64)>, sources: Option<[&str; 2]>) -> [FittedCounter; 2] {
    let words = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.3} us"));
    let names = ["time of a page written, of the drive", "time of a page copied, of the drive"];
    let values = [found.map(|times| times.0), found.map(|times| times.1)];
    std::array::from_fn(|at| FittedCounter {
        name: names[at],
        value: words(values[at]),
        range: found.and(sources).map(|sources| sources[at].to_owned()),
    })
}

impl CounterCalibration<'_> {
    /// Weaknesses of the fit, in sentences.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.quantity == Quantity::HostRate {
            warnings.push(
                "no log has media_bytes, so the fit is to host rates and write amplification is \
                 inferred; if the drive has a counter, log it (`nvme ocp smart-add-log`, `nvme fdp \
                 stats`)"
                    .to_owned(),
            );
        }
        if let Some((held_out, trivial)) = self.held_out.zip(self.trivial)
            && held_out.mean >= trivial.mean
        {
            warnings.push(format!(
                "the mean {} of the series fitted to predicts those held out as well ({:.1} %, \
                 simulated {:.1} %): these series do not show what is inside the drive",
                self.quantity,
                100.0 * trivial.mean,
                100.0 * held_out.mean
            ));
        }
        if let Some([greedy, other]) = self.by_collector {
            warnings.push(format!(
                "the series do not identify the collector, and greedy is assumed: with 60 % static \
                 data write amplification would be {greedy:.2}, but {other:.2} ({:+.0} %) with \
                 cost-benefit, age_exponent = {SEPARATES}; log a series with static data (hotcold)",
                100.0 * (other / greedy - 1.0)
            ));
        }
        for name in &self.limits {
            let question = match self.quantity {
                Quantity::HostRate => {
                    "is the flash the limit in every series, and copy_time right?"
                }
                Quantity::WriteAmplification => {
                    "are the bytes of the counters and the loads as the files say?"
                }
            };
            warnings.push(format!("{name} is at the end of the values tried: {question}"));
        }
        for series in &self.series {
            let Some(bytes) = series.amplification[0].filter(|it| *it < 1.0) else { continue };
            warnings.push(format!(
                "{}: the drive programmed {bytes:.3} bytes for each byte of the host, fewer than \
                 that: its counter is updated at other times",
                series.name
            ));
        }
        if self.fitted.worst > LARGE {
            warnings.push(format!(
                "a series that was fitted to is {:.0} % off: the drive does something that the \
                 model does not, or was in another state",
                100.0 * self.fitted.worst
            ));
        }
        warnings
    }

    /// The saturated drive as a preset, scaled down, every value with its source.
    ///
    /// # Errors
    /// When the fitted drive cannot be built.
    pub fn preset(&self) -> Result<String, CalibrateError> {
        let start = Start::of_scenario(
            &self.name,
            &SSD,
            SourceText { name: self.name.clone(), text: self.scenario() },
            Path::new(""),
            self.registry,
        )?;
        let Errors { series, mean, .. } = self.fitted;
        let mut head = format!(
            "Fitted to the counters of {}: mean error of {} {:.1} % of {series} series;\n",
            self.name,
            self.quantity,
            100.0 * mean
        );
        head += &match self.held_out {
            None => "none held out.".to_owned(),
            Some(Errors { series, mean, worst }) => format!(
                "{series} series held out: {:.1} %, at worst {:.1} %.",
                100.0 * mean,
                100.0 * worst
            ),
        };
        head += &format!(
            "\nScaled down {0:.0} times, with the drive's own number of blocks: for write \
             amplification and the\nrate of a saturated drive, not for latencies. A zipf load on \
             it needs ranks_per_block = {0:.0},\nor it is less skewed.",
            self.drive.scale
        );
        for constant in &self.constants {
            let FittedCounter { name, value, range } = constant;
            let range =
                range.as_ref().map_or("not identified".to_owned(), |it| format!("fitted: {it}"));
            head += &format!("\n{name}: {value} ({range})");
        }
        let mut of_fit = vec!["blocks_per_plane", "pages_per_block", "over_provisioning", "ftl"];
        if self.are_times_known {
            of_fit.extend(["program_time", "read_time"]);
        }
        Ok(start.preset(
            &head,
            |_| false,
            |path| {
                let is_of_fit = of_fit.contains(&path) || path.starts_with("ftl.");
                let comment = if is_of_fit { "see above" } else { "of the model" };
                (path != "kind" && start.writes(path)).then(|| comment.to_owned())
            },
        ))
    }

    /// [`DRIVE_SCENARIO`] with the fitted drive in place of its own.
    fn scenario(&self) -> String {
        let mut root: Table = DRIVE_SCENARIO.parse().expect("the scenario of the program is TOML");
        let settings = self.drive.settings(Load::Uniform, 1.0, 1.0);
        for (key, value) in settings.iter().filter(|(key, _)| key.starts_with("component.")) {
            let value: Table = format!("it = {value}").parse().expect("settings are TOML");
            set(&mut root, key, value["it"].clone());
        }
        root.to_string()
    }
}

/// A series that was fitted to and is farther off than this is not what the model describes.
const LARGE: f64 = 0.1;

/// Sets the key at the dotted path `key`.
fn set(root: &mut Table, key: &str, value: Toml) {
    match key.split_once('.') {
        None => {
            root.insert(key.to_owned(), value);
        }
        Some((head, rest)) => {
            let below = root.entry(head).or_insert_with(|| Toml::Table(Table::new()));
            if let Toml::Table(below) = below {
                set(below, rest, value);
            }
        }
    }
}
