//! A saturated drive: hidden capacity, blocks, a collector, and two rates.
//!
//! A saturated drive is limited by the bandwidth of its flash, so dies are not simulated one by
//! one: a page programmed takes `program_us` of the whole drive, and for each page of the chip that
//! garbage collection copies from, a read takes `read_us`. All are simulated serially; the rate of
//! the host follows from how many pages are copied, and how they lie. Fits to counters have
//! `read_pages = 1`, so every copy takes one time.

use super::amplification::page_us;
use crate::CalibrateError;
use hybridsim_config::diagnostic::SourceText;
use hybridsim_config::registry::Registry;
use hybridsim_data::DRIVE_SCENARIO;
use hybridsim_observe::{Detail, Pictures};
use hybridsim_simulation::run::{self, Options};
use hybridsim_simulation::scenario::{Input, Scenario};
use std::path::PathBuf;

/// Bytes of a gibibyte.
pub(super) const GIB: f64 = (1_u64 << 30) as f64;
pub(super) const PAGE: f64 = 4096.0;

/// The part of a run that counts, as in the measurements: from 60 to 99 % of its time.
const WINDOW: (f64, f64) = (0.6, 0.99);

/// Blocks that hold no data: those open for writes and copies, and one free to copy to.
const SPARE_BLOCKS: f64 = 4.0;

/// Choice of the blocks that a drive collects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Collector {
    /// The fewest valid pages.
    Greedy,
    /// Cost-benefit, with this power of the age.
    CostBenefit(f64),
    /// The fewest valid pages of so many blocks drawn at random.
    Choices(u32),
}

impl Collector {
    /// The value of `gc`, in TOML.
    fn toml(self) -> String {
        match self {
            Self::Greedy => "\"greedy\"".to_owned(),
            Self::CostBenefit(exponent) => {
                format!("{{ kind = \"cost-benefit\", age_exponent = {exponent:.3} }}")
            }
            Self::Choices(drawn) => format!("{{ kind = \"d-choices\", choices = {drawn} }}"),
        }
    }
}

/// A drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SaturatedDrive {
    /// Exported capacity in GiB.
    pub user_gib: f64,
    /// Capacity of its flash in GiB.
    pub hidden_gib: f64,
    /// Size of the blocks that are collected as one, in GiB.
    pub block_gib: f64,
    /// Time of a page programmed, in microseconds.
    pub program_us: f64,
    /// Time to read a page of the chip, in microseconds.
    pub read_us: f64,
    /// Pages of the map in a page of the chip.
    pub read_pages: u32,
    /// Capacities and blocks are simulated this many times smaller.
    pub scale: f64,
    pub collector: Collector,
}

/// Writes that a drive is measured under.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    Uniform,
    /// Zipf with this exponent.
    Zipf(f64),
    /// A share of the pages that gets a share of the writes.
    Hot {
        pages: f64,
        writes: f64,
    },
    /// Regions written at a time, in order, and their size in GiB.
    Streams {
        active: u32,
        region_gib: f64,
        /// Whether a region is trimmed before it is written again.
        trims: bool,
    },
}

/// A key of a scenario and its value, in TOML.
pub type Setting = (String, String);

impl Load {
    /// The generator's keys, on a drive `scale` times smaller, of which `span` bytes are written.
    fn settings(self, scale: f64, span: u64) -> Vec<Setting> {
        let key = |name: &str| format!("workload.generator.{name}");
        let kind = |name: &str| (key("kind"), format!("\"{name}\""));
        match self {
            Self::Uniform => Vec::new(),
            Self::Zipf(theta) => vec![
                kind("zipf"),
                (key("theta"), theta.to_string()),
                (key("ranks_per_block"), scale.to_string()),
            ],
            Self::Hot { pages, writes } => vec![
                kind("hotcold"),
                (key("hot_fraction"), pages.to_string()),
                (key("hot_probability"), writes.to_string()),
                (key("scatter"), "true".to_owned()),
            ],
            Self::Streams { active, region_gib, trims } => {
                // Rounded up, the last one might not fit.
                let most = span / PAGE as u64 / u64::from(active) * PAGE as u64;
                let region = whole_pages(region_gib / scale).min(most);
                vec![
                    kind("streams"),
                    (key("block"), "\"4KiB\"".to_owned()),
                    (key("active"), active.to_string()),
                    (key("trim"), trims.to_string()),
                    (key("region"), format!("\"{region}B\"")),
                ]
            }
        }
    }
}

/// The time that stands for `us` microseconds in a simulation: whole nanoseconds, and at least one.
pub fn simulated_us(us: f64) -> f64 {
    (us * 1e3).round().max(1.0) / 1e3
}

/// The bytes of `gib` GiB, in whole pages.
fn whole_pages(gib: f64) -> u64 {
    ((gib * GIB / PAGE).round() * PAGE) as u64
}

/// The outcome of one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Write amplification in the window.
    pub amplification: f64,
    /// Rate of the host in the window, MB/s.
    pub host_mb_s: f64,
    /// Rate of the host over time: drive writes, MB/s.
    pub course: Vec<(f64, f64)>,
    /// Over time: pages programmed for the host, and all pages programmed, since the start.
    pub counted: Vec<(f64, f64)>,
}

impl SaturatedDrive {
    /// Whether its blocks hold what it exports, with a few free ones to copy to.
    pub fn has_spare_blocks(&self) -> bool {
        let blocks = (self.hidden_gib / self.block_gib).round();
        (blocks - SPARE_BLOCKS) / blocks * self.hidden_gib > self.user_gib
    }

    /// Settings that complete [`DRIVE_SCENARIO`] to the drive under `load`, which goes to a share
    /// `range` of the exported capacity and writes that share `writes` times.
    pub fn settings(&self, load: Load, range: f64, writes: f64) -> Vec<Setting> {
        // Two pages more, as the simulator rounds the exported capacity down.
        let exported = whole_pages(self.user_gib / self.scale) + 2 * PAGE as u64;
        let span = whole_pages(self.user_gib * range / self.scale);
        let (blocks, pages_per_block) = self.shape();
        let spare = blocks * pages_per_block * PAGE / exported as f64 - 1.0;
        let requests = (writes * span as f64 / PAGE).round();
        let ssd = |name: &str| format!("component.ssd.{name}");
        let time = |us: f64| format!("\"{:.3}us\"", simulated_us(us));
        // The kind comes first: a change of it takes the keys of the former kind away.
        let mut settings = load.settings(self.scale, span);
        settings.extend([
            (ssd("blocks_per_plane"), blocks.to_string()),
            (ssd("pages_per_block"), pages_per_block.to_string()),
            (ssd("over_provisioning"), spare.to_string()),
            (ssd("program_time"), time(self.program_us)),
            (ssd("read_time"), time(self.read_us)),
            (ssd("precondition_fill"), range.to_string()),
            (ssd("ftl.gc"), self.collector.toml()),
            ("workload.generator.span".to_owned(), format!("\"{span}B\"")),
            ("workload.generator.requests".to_owned(), requests.to_string()),
        ]);
        if self.read_pages > 1 {
            settings.push((ssd("read_pages"), self.read_pages.to_string()));
        }
        settings
    }

    /// Blocks, and the pages of the map in each.
    fn shape(&self) -> (f64, f64) {
        /// Numbers of chip pages around that of the block's size that are tried.
        const TRIED: std::ops::RangeInclusive<i32> = -3..=3;
        /// Most by which a block may differ for that, as a part of its size.
        const AWAY: f64 = 0.03;
        let pages = self.hidden_gib * GIB / self.scale / PAGE;
        let blocks = (self.hidden_gib / self.block_gib).round();
        if self.read_pages == 1 {
            // So that the capacity does not go in steps of blocks.
            return (blocks, (pages / blocks).round().max(1.0));
        }
        // A block holds whole pages of the chip: slightly larger or smaller blocks give a capacity
        // that is next to the wanted one.
        let of_chip = f64::from(self.read_pages);
        let near = (pages / blocks / of_chip).round().max(1.0);
        let tried = TRIED.filter(|more| f64::from(more.abs()) <= AWAY * near);
        let tried = tried.map(|more| of_chip * (near + f64::from(more)));
        let shapes = tried.map(|per_block| ((pages / per_block).round().max(1.0), per_block));
        let away = |&(blocks, per_block): &(f64, f64)| (blocks * per_block - pages).abs();
        shapes.min_by(|a, b| away(a).total_cmp(&away(b))).unwrap_or((blocks, of_chip))
    }

    /// The outcome of a run of [`DRIVE_SCENARIO`] with [`SaturatedDrive::settings`].
    pub fn outcome(&self, pictures: &Pictures) -> Outcome {
        let series = &pictures.series;
        let end = pictures.end_ns as f64;
        let width = series.bucket_ns as f64;
        let window = (WINDOW.0 * end, WINDOW.1 * end);
        let inside = |values: &[u64]| -> f64 {
            let share = |at: usize| {
                let (from, to) = (at as f64 * width, (at + 1) as f64 * width);
                ((to.min(window.1) - from.max(window.0)) / width).max(0.0)
            };
            values.iter().enumerate().map(|(at, &value)| value as f64 * share(at)).sum()
        };
        let host_mb_s = inside(&series.write_bytes) / (window.1 - window.0) * 1e3;
        let amplification = inside(&series.programs) / inside(&series.host_programs);
        let user = self.user_gib * GIB / self.scale;
        let (mut written, mut total) = (0.0, (0.0, 0.0));
        let course = series.write_bytes.iter().enumerate().map(|(at, &bytes)| {
            let middle = written + bytes as f64 / 2.0;
            written += bytes as f64;
            let time = (end - at as f64 * width).min(width);
            (middle / user, bytes as f64 / time * 1e3)
        });
        let counted = series.host_programs.iter().zip(&series.programs).map(|(&host, &all)| {
            total.0 += host as f64;
            total.1 += all as f64;
            total
        });
        let counted = counted.collect();
        Outcome { amplification, host_mb_s, course: course.collect(), counted }
    }

    /// Runs the drive under `load`, as [`SaturatedDrive::settings`] describe it.
    ///
    /// # Errors
    /// When the drive cannot be simulated.
    pub fn simulate(
        &self,
        registry: &Registry,
        name: &str,
        (load, range, writes): (Load, f64, f64),
    ) -> Result<Outcome, CalibrateError> {
        let failed = |message: String| CalibrateError::Fit(format!("{name}: {message}"));
        let source = SourceText { name: name.to_owned(), text: DRIVE_SCENARIO.to_owned() };
        let sets = self.settings(load, range, writes);
        let sets = sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let input = Input { source, base: PathBuf::new(), sets, trace: None };
        let scenario =
            Scenario::check(input, registry).map_err(|problems| failed(problems.to_string()))?;
        let options = Options { detail: Detail::Full, ..Options::default() };
        let ran = run::run(&scenario, registry, options).map_err(|it| failed(it.to_string()))?;
        match ran.fault {
            Some(fault) => Err(failed(fault.to_string())),
            None => Ok(self.outcome(&ran.pictures.unwrap_or_default())),
        }
    }
}

impl Outcome {
    /// Pages of the chip read in the window for each page that the host wrote, on `drive`, which
    /// this is the outcome of.
    pub fn reads(&self, drive: &SaturatedDrive) -> f64 {
        let (program_us, read_us) = (simulated_us(drive.program_us), simulated_us(drive.read_us));
        (page_us(self.host_mb_s) - self.amplification * program_us) / read_us
    }

    /// Write amplification between two parts of the pages that the host wrote.
    pub fn amplification_between(&self, (from, to): (f64, f64)) -> f64 {
        let all = self.counted.last().map_or(0.0, |last| last.0);
        let at = |part: f64| {
            let wanted = part * all;
            let next = self.counted.partition_point(|(host, _)| *host < wanted);
            let end = self.counted.get(next).copied().unwrap_or_default();
            let start = next.checked_sub(1).map_or((0.0, 0.0), |before| self.counted[before]);
            let share = if end.0 > start.0 { (wanted - start.0) / (end.0 - start.0) } else { 1.0 };
            start.1 + share * (end.1 - start.1)
        };
        (at(to) - at(from)) / ((to - from) * all)
    }
}
