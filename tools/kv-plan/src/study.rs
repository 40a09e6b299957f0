//! The table of a study: one simulation per cell.

use crate::drives::Drive;
use crate::engine::{Engine, EngineOptions, SystemCounts, system};
use hybridsim_config::registry::Registry;
use hybridsim_config::units;
use hybridsim_engine::SECTOR_BYTES;
use hybridsim_kv::layout::{Buckets, BucketsOptions, Layout, Slots};
use hybridsim_kv::lifetime::Lifetimes;
use hybridsim_kv::model::{ModelShape, Precision};
use hybridsim_kv::policy::PolicyName;
use hybridsim_kv::tier::{Tier, TierOptions, Totals, WriteMode};
use hybridsim_simulation::scenario::{Input, Scenario};
use hybridsim_workload::trace::serving::ServingTrace;
use serde::Serialize;
use std::path::PathBuf;

const NS_PER_YEAR: f64 = 365.25 * 86_400.0 * 1e9;
/// Pages of a reclaim unit of a scaled drive, at least.
const UNIT_PAGES_MIN: f64 = 64.0;
/// Pages of a block on a scaled drive, at most.
const BLOCK_PAGES_MAX: f64 = 16.0;
/// Writes that take this share of the trace's time longer than the trace overload the drive.
const DRAIN_MAX: f64 = 0.05;

/// The layout of blocks on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LayoutChoice {
    /// A slot for each block; `trim` frees it when its block is evicted.
    Slots { trim: bool },
    /// Files of so many bytes, compacted at a share of remaining blocks.
    Buckets { bytes: u64, threshold: f64 },
}

impl LayoutChoice {
    /// `slots`, `slots-trim`, or `buckets:256MiB:0.5`.
    ///
    /// # Errors
    /// Another text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}`: slots, slots-trim, or buckets:SIZE:SHARE, such as \
                                buckets:256MiB:0.5"
            )
        };
        match text.split(':').collect::<Vec<_>>()[..] {
            ["slots"] => Ok(Self::Slots { trim: false }),
            ["slots-trim"] => Ok(Self::Slots { trim: true }),
            ["buckets", bytes, share] => {
                let threshold: f64 = share.parse().map_err(|_| wrong())?;
                if !(0.0..=0.95).contains(&threshold) {
                    return Err(format!("`{text}`: the share is 0 to 0.95"));
                }
                Ok(Self::Buckets { bytes: units::bytes(bytes)?, threshold })
            }
            _ => Err(wrong()),
        }
    }
}

/// Reads a write mode: `put`, `evict`, `second-hit`, or `lazy:30s`.
///
/// # Errors
/// Another text.
pub fn write_mode(text: &str) -> Result<WriteMode, String> {
    match text.split_once(':') {
        None if text == "put" => Ok(WriteMode::Put),
        None if text == "evict" => Ok(WriteMode::Evict),
        None if text == "second-hit" => Ok(WriteMode::SecondHit),
        Some(("lazy", delay)) => units::duration(delay).map(WriteMode::Lazy),
        _ => Err(format!("`{text}`: put, evict, second-hit, or lazy:TIME, such as lazy:30s")),
    }
}

/// Bytes of a block: of the model, or as the trace states them.
///
/// # Errors
/// A trace without blocks, or with blocks of several sizes.
pub fn block_bytes(
    trace: &ServingTrace,
    model: Option<(ModelShape, Precision)>,
) -> Result<u64, String> {
    if trace.distinct() == 0 {
        return Err("the trace does not name the blocks of its prompts: it has only arrivals and \
                    lengths, from which no hits follow"
            .to_owned());
    }
    if trace.span_ns() == 0 {
        return Err(
            "all requests of the trace arrive at once: rates need a span of time".to_owned()
        );
    }
    let tokens = trace.requests[0].block_tokens;
    if trace.requests.iter().any(|request| request.block_tokens != tokens) {
        return Err("the trace has blocks of several sizes".to_owned());
    }
    match (model, trace.block_bytes) {
        (Some((model, precision)), _) => {
            let bytes = model.token_bytes(precision).checked_mul(u64::from(tokens));
            bytes.ok_or_else(|| "a block of this model is too large".to_owned())
        }
        (None, Some(bytes)) => Ok(bytes),
        (None, None) => Err("the trace does not state the size of a block; name a model with \
                             --model, such as llama-3-8b"
            .to_owned()),
    }
}

const BUCKET_BLOCKS_MAX: u64 = 1 << 20;

/// Options common to all cells.
#[derive(Clone, Debug)]
pub struct StudyOptions {
    pub block_bytes: u64,
    pub gpu_bytes: u64,
    pub host_bytes: u64,
    pub ttl: Option<hybridsim_engine::SimDuration>,
    pub layout: LayoutChoice,
    /// Whether blocks are written with placement handles by lifetime, where the drive has them.
    pub handles: bool,
    /// Requests that the storage engine has outstanding.
    pub depth: u32,
    /// Blocks of one load that are requested together.
    pub batch: usize,
    /// Largest request to a simulated system.
    pub request_bytes: u64,
    /// Prompt tokens that a GPU computes per second.
    pub prefill_rate: f64,
    /// Price of a GPU per hour.
    pub gpu_price: f64,
    /// Share of the year with the load of the trace.
    pub duty: f64,
    /// Years after which a drive is replaced.
    pub service_years: f64,
}

/// The device of a cell.
#[derive(Clone, Debug)]
pub enum Target {
    Drive(Drive),
    /// A scenario whose system serves the requests as they are.
    System(PathBuf),
}

impl Target {
    pub fn name(&self) -> String {
        match self {
            Self::Drive(drive) if drive.count > 1 => format!("{} x {}", drive.count, drive.name),
            Self::Drive(drive) => drive.name.clone(),
            Self::System(path) => path.display().to_string(),
        }
    }
}

/// A cell of the table.
#[derive(Clone, Debug)]
pub struct Cell {
    pub policy: PolicyName,
    pub write: WriteMode,
    pub write_name: String,
    pub storage_bytes: u64,
    pub target: Target,
}

/// The results of a cell. Life and cost are those of drives; systems have none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    pub policy: String,
    pub write: String,
    pub drive: String,
    pub storage_bytes: u64,
    /// Share of input tokens that are not computed: all levels, and storage alone.
    pub token_hit_ratio: f64,
    pub storage_token_hit_ratio: f64,
    pub block_hit_ratio: f64,
    pub totals: Totals,
    /// Bytes that the tier loads and writes in the trace, and those the device reads and writes,
    /// which compaction adds to.
    pub loaded_bytes: u64,
    pub stored_bytes: u64,
    pub device_read_bytes: u64,
    pub device_written_bytes: u64,
    /// Times that the storage part of the tier was written.
    pub overwrites: f64,
    /// Writes of the layout, of the drive, and both, per byte of the tier.
    pub layout_amplification: Option<f64>,
    pub drive_amplification: Option<f64>,
    pub write_amplification: Option<f64>,
    pub terabytes_written_per_day: f64,
    /// Drive writes per day.
    pub dwpd: Option<f64>,
    /// Years by rated endurance, and by program/erase cycles with the simulated amplification.
    pub life_years_rated: Option<f64>,
    pub life_years_flash: Option<f64>,
    /// Time from a request to the last of its loads, of requests that load.
    pub load_mean_s: Option<f64>,
    pub load_p50_s: Option<f64>,
    pub load_p99_s: Option<f64>,
    /// Computing time that loads save, per request that loads.
    pub prefill_saved_mean_s: Option<f64>,
    /// Mean change of the time to first token over all requests; negative is earlier.
    pub ttft_change_mean_s: f64,
    /// Share of loads that take longer than computing the same tokens.
    pub slower_than_computing: Option<f64>,
    /// GPU seconds that hits in storage save per second of the trace.
    pub gpus_saved: f64,
    pub cost_per_year: Option<f64>,
    pub cost_per_gpu_second: Option<f64>,
    /// Time that the last writes take after the trace.
    pub drain_s: f64,
    pub overloaded: bool,
    pub layout: hybridsim_kv::layout::LayoutCounts,
    /// Why the cell has no figures.
    pub error: Option<String>,
}

/// A trace and what all cells have in common.
pub struct Study<'a> {
    pub trace: &'a ServingTrace,
    pub options: StudyOptions,
    pub registry: &'a Registry,
}

/// A target for the blocks of a study.
struct Device {
    scenario: Scenario,
    /// Sectors of a block on it, and the bytes that a sector stands for.
    sectors: u32,
    sector_bytes: f64,
    handles: u8,
}

impl Study<'_> {
    /// Simulates a cell.
    pub fn run(&self, cell: &Cell) -> Row {
        let named = Row {
            policy: cell.policy.to_string(),
            write: cell.write_name.clone(),
            drive: cell.target.name(),
            storage_bytes: cell.storage_bytes,
            ..Row::default()
        };
        match self.simulate(cell) {
            Ok((totals, saved, counts, device)) => {
                self.row(named, cell, totals, &saved, &counts, &device)
            }
            Err(error) => Row { error: Some(error), ..named },
        }
    }

    fn blocks(&self, bytes: u64) -> u32 {
        (bytes / self.options.block_bytes).min(u64::from(u32::MAX) - 1) as u32
    }

    fn device(&self, cell: &Cell) -> Result<Device, String> {
        let options = &self.options;
        match &cell.target {
            Target::Drive(drive) => {
                let block = options.block_bytes as f64;
                let unit = drive.unit_bytes();
                let pages = (UNIT_PAGES_MIN * block / unit).ceil().max(1.0);
                if pages > BLOCK_PAGES_MAX {
                    return Err("a block is larger than a reclaim unit of the drive".to_owned());
                }
                let handles = if options.handles { drive.handles } else { 0 };
                let page = block / pages;
                let text = drive.scenario(page, handles);
                let scenario = system(text, &drive.name, self.registry)?;
                let sectors = 8 * pages as u32;
                Ok(Device {
                    scenario,
                    sectors,
                    sector_bytes: block / f64::from(sectors),
                    handles: handles.max(1),
                })
            }
            Target::System(path) => {
                let input = Input::read(path, &[]).map_err(|problems| problems.to_string())?;
                let scenario = Scenario::check_system(input, self.registry);
                let sectors = options.block_bytes.div_ceil(8 * SECTOR_BYTES) * 8;
                Ok(Device {
                    scenario: scenario.map_err(|problems| problems.to_string())?,
                    sectors: u32::try_from(sectors).map_err(|_| "a block exceeds 2 TiB")?,
                    sector_bytes: SECTOR_BYTES as f64,
                    handles: if options.handles { 8 } else { 1 },
                })
            }
        }
    }

    fn layout(
        &self,
        held: u32,
        device: &Device,
        blocks: u64,
    ) -> Result<(Box<dyn Layout>, u64), String> {
        let sectors = device.sectors;
        match self.options.layout {
            LayoutChoice::Slots { trim } => {
                if u64::from(held) > blocks {
                    return Err("the cache is larger than the device".to_owned());
                }
                let used = u64::from(held) * u64::from(sectors);
                Ok((Box::new(Slots::new(sectors, trim)), used))
            }
            LayoutChoice::Buckets { bytes, threshold } => {
                let bucket_blocks = bytes / self.options.block_bytes;
                if bucket_blocks == 0 {
                    return Err("a block is larger than a bucket".to_owned());
                }
                if bucket_blocks > BUCKET_BLOCKS_MAX {
                    return Err(format!("a bucket has more than {BUCKET_BLOCKS_MAX} blocks"));
                }
                let buckets = (blocks / bucket_blocks).min(1 << 30) as u32;
                let options = BucketsOptions {
                    sectors,
                    bucket_blocks: bucket_blocks as u32,
                    buckets,
                    threshold,
                    handles: device.handles,
                };
                let layout = Buckets::new(options, self.trace.distinct(), held)?;
                let used = u64::from(buckets) * bucket_blocks * u64::from(sectors);
                Ok((Box::new(layout), used))
            }
        }
    }

    fn simulate(&self, cell: &Cell) -> Result<(Totals, Vec<u64>, SystemCounts, Device), String> {
        let options = &self.options;
        let device = self.device(cell)?;
        let tier_options = TierOptions {
            gpu_blocks: self.blocks(options.gpu_bytes),
            host_blocks: self.blocks(options.host_bytes),
            storage_blocks: self.blocks(cell.storage_bytes),
            policy: cell.policy.clone(),
            ttl: options.ttl,
            write: cell.write,
        };
        let mut tier = Tier::new(self.trace, &tier_options, self.registry)?;
        let layout = |capacity: u64| {
            let blocks = capacity / u64::from(device.sectors);
            self.layout(tier_options.storage_blocks, &device, blocks)
        };
        let is_scaled = matches!(cell.target, Target::Drive(_));
        let split = u32::try_from(options.request_bytes / SECTOR_BYTES).unwrap_or(u32::MAX);
        let engine_options = EngineOptions {
            depth: options.depth,
            split: if is_scaled { u32::MAX } else { split },
            batch: options.batch,
            requests: self.trace.requests.len(),
        };
        let lifetimes = Lifetimes::new(device.handles, &self.trace.parents);
        let mut engine =
            Engine::open(&device.scenario, self.registry, layout, lifetimes, &engine_options)?;
        let mut saved = vec![0; self.trace.requests.len()];
        for (number, saved) in saved.iter_mut().enumerate() {
            let [.., storage] = tier.request(number, &mut engine);
            *saved = storage;
            engine.check()?;
        }
        let totals = tier.totals();
        let counts = engine.finish(self.registry)?;
        Ok((totals, saved, counts, device))
    }

    fn row(
        &self,
        named: Row,
        cell: &Cell,
        totals: Totals,
        saved: &[u64],
        counts: &SystemCounts,
        device: &Device,
    ) -> Row {
        let options = &self.options;
        let span_ns = self.trace.span_ns().max(1) as f64;
        let scale = device.sector_bytes / SECTOR_BYTES as f64;
        let written = counts.written_bytes as f64 * scale;
        let stored = totals.inserted[2] * options.block_bytes;
        let layout_amplification = ratio(written, stored as f64);
        let drive_amplification = counts.write_amplification;
        let storage_tokens: u64 = saved.iter().sum();
        let gpu_seconds = storage_tokens as f64 / options.prefill_rate;
        let mut row = Row {
            token_hit_ratio: totals.token_hit_ratio(),
            storage_token_hit_ratio: storage_tokens as f64 / totals.input_tokens.max(1) as f64,
            block_hit_ratio: totals.block_hit_ratio(),
            totals,
            loaded_bytes: totals.used_blocks[2] * options.block_bytes,
            stored_bytes: stored,
            device_read_bytes: (counts.read_bytes as f64 * scale) as u64,
            device_written_bytes: written as u64,
            overwrites: written / cell.storage_bytes as f64,
            layout_amplification,
            drive_amplification,
            write_amplification: layout_amplification.zip(drive_amplification).map(|(a, b)| a * b),
            terabytes_written_per_day: written / 1e12 * 86_400e9 / span_ns * options.duty,
            gpus_saved: gpu_seconds / (span_ns / 1e9),
            drain_s: counts.drain_ns as f64 / 1e9,
            overloaded: counts.drain_ns as f64 > DRAIN_MAX * span_ns,
            layout: counts.layout,
            ..named
        };
        self.times(&mut row, saved, counts);
        if let Target::Drive(drive) = &cell.target {
            self.wear(&mut row, drive, written, gpu_seconds);
        }
        row
    }

    /// Time to first token: what loads take, and what they save.
    fn times(&self, row: &mut Row, saved: &[u64], counts: &SystemCounts) {
        let rate = self.options.prefill_rate;
        let pairs = saved.iter().zip(&counts.load_ns).filter(|(saved, _)| **saved > 0);
        let pairs: Vec<(f64, f64)> =
            pairs.map(|(saved, load)| (*saved as f64 / rate, *load as f64 / 1e9)).collect();
        let mut loads: Vec<f64> = pairs.iter().map(|(_, load)| *load).collect();
        loads.sort_by(f64::total_cmp);
        let count = loads.len();
        let quantile = |share: f64| {
            let rank = (count as f64 * share).ceil() as usize;
            loads.get(rank.max(1) - 1).copied()
        };
        let mean = |sum: f64| (count > 0).then(|| sum / count as f64);
        let saving: f64 = pairs.iter().map(|(saved, _)| saved).sum();
        let loading: f64 = loads.iter().sum();
        let slower = pairs.iter().filter(|(saved, load)| load > saved).count();
        row.load_mean_s = mean(loading);
        (row.load_p50_s, row.load_p99_s) = (quantile(0.5), quantile(0.99));
        row.prefill_saved_mean_s = mean(saving);
        row.slower_than_computing = mean(slower as f64);
        row.ttft_change_mean_s = (loading - saving) / saved.len().max(1) as f64;
    }

    /// Life and cost of the drive.
    fn wear(&self, row: &mut Row, drive: &Drive, written: f64, gpu_seconds: f64) {
        let options = &self.options;
        let per_year = NS_PER_YEAR / self.trace.span_ns().max(1) as f64 * options.duty;
        let host = written * per_year;
        let media = host * row.drive_amplification.unwrap_or(1.0);
        row.dwpd = Some(host / 365.25 / drive.capacity() as f64);
        row.life_years_rated = ratio(drive.rated_bytes(), host);
        row.life_years_flash = ratio(drive.flash_bytes(), media);
        let life = row.life_years_rated.unwrap_or(f64::INFINITY).min(options.service_years);
        let cost = drive.price() / life;
        row.cost_per_year = Some(cost);
        row.cost_per_gpu_second = ratio(cost, gpu_seconds * per_year);
    }
}

fn ratio(of: f64, by: f64) -> Option<f64> {
    Some(of / by).filter(|ratio| ratio.is_finite())
}
