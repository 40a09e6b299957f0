//! The parameters of kind `slc-mlc-ssd`, and how one is built from them. Defaults are configuration
//! C3 of chang-slc-mlc (tables 1 and 2) with 256 MB of SLC flash, unless their help says assumed.

use super::block_chains::{BlockChains, ChainConfig};
use super::density::DensityControl;
use super::hash_table::{HashTable, Probing};
use super::hot_data_filter::{HotDataFilter, Search};
use super::hybrid_ftl::{HybridFtl, SlcCache};
use super::model::MemoryFootprint;
use super::nvram::NvramBuffer;
use super::operations::{MediumTimes, STATISTIC_NAMES};
use super::slc_log::{BLOCKS_MIN, NOT_IN_K, SlcLog};
use super::throttle::{UtilisationThrottle, WriteBackPolicy};
use super::translation::{SerialBackEnd, SlcMlcSsd, SlcMlcTranslation};
use crate::device::{FrontEnd, check_memory};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{EntryChoice, Kind, Param, Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::{ComponentInfo, PowerState, SECTOR_BYTES, SimDuration};
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::geometry::{Geometry, Shape};
use hybridsim_flash::wear::{WearEntry, WearInput};

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "slc-mlc-ssd",
        summary: "A hybrid SSD: an SLC log before MLC flash; serves one request at a time.",
        origin: "chang-slc-mlc (Chang, A Hybrid Approach to NAND-Flash-Based Solid-State Disks)",
        params: Parameters::PARAMS,
    },
    |input| Ok(Box::new(build_slc_mlc(input)?)),
)
.with_memory(|settings, _| table_bytes(settings))
.with_capacity(|settings| settings.bytes("capacity"));

const WAYS: Kind = Kind::Count { min: 1, max: 4096 };
const CYCLES: Kind = Kind::Count { min: 1, max: u32::MAX as u64 };
const PAGES: Kind = Kind::Count { min: 1, max: 65_536 };

hybridsim_config::choices! {
    /// Classification of writes.
    enum Filter { Size = "size", All = "all" }
}

hybridsim_config::choices! {
    /// Data that an entry of the hash table locates.
    enum HashUnit { Page = "page", Sector = "sector" }
}

hybridsim_config::choices! {
    /// Hashed number of a sector or page.
    enum HashKey { Sector = "sector", Page = "page" }
}

hybridsim_config::choices! {
    /// Size of the log as the device fills.
    enum CacheMode { Static = "static", Dynamic = "dynamic" }
}

/// There is SLC flash.
const SLC: &[Needs] = &[Needs::above_zero("slc_size")];
/// Some data are stored with one bit per cell.
const SINGLE_BIT: &[Needs] =
    &[Needs::Any(&[Needs::above_zero("slc_size"), Needs::above_zero("density_size")])];

hybridsim_config::params! {
    struct Sizes {
        capacity: u64 = Kind::Bytes, default "\"20480MiB\"",
            "Exported capacity, in whole MLC blocks.";
        mlc_size: u64 = Kind::Bytes, default "\"21504MiB\"", "MLC flash, including spare blocks.";
        slc_size: u64 = Kind::Bytes, default "\"256MiB\"",
            "SLC flash; 0 for a conventional MLC SSD.";
        density_size: u64 = Kind::Bytes, default "\"0B\"",
            "Dynamic density control: additional MLC flash, part of `mlc_size`, for frequently \
             accessed logical blocks stored with one bit per cell.";
    }
}

hybridsim_config::params! {
    struct Mlc {
        mlc_page_size: u64 = Kind::Bytes, default "\"4KiB\"", "Data bytes of an MLC page.";
        mlc_pages_per_block: u64 = PAGES, default "128", "Pages per MLC block.";
        mlc_read_time: SimDuration = Kind::Duration, default "\"60us\"", "MLC page read.";
        mlc_program_time: SimDuration = Kind::Duration, default "\"800us\"", "MLC page program.";
        mlc_erase_time: SimDuration = Kind::Duration, default "\"1.5ms\"", "MLC block erase.";
        mlc_endurance: u32 = CYCLES, default "5000", "Program/erase cycles per MLC block.";
        mlc_ways: u32 = WAYS, default "1",
            "Dies over which an MLC block is striped, so that this many of its pages are read or \
             programmed in parallel. The paper has no parallelism.";
    }
}

hybridsim_config::params! {
    /// A page with one bit per cell, on SLC flash; with density control, also times of MLC flash.
    struct SingleBit {
        slc_page_size: u64 = Kind::Bytes, default "\"2KiB\"", "Data bytes of an SLC page.";
        slc_read_time: SimDuration = Kind::Duration, default "\"25us\"", "SLC page read.";
        slc_program_time: SimDuration = Kind::Duration, default "\"200us\"", "SLC page program.";
    }
}

hybridsim_config::params! {
    /// Computation of the threshold between hot and cold writes.
    struct Threshold {
        threshold_search: Search = Kind::Choice(Search::NAMES), default "\"exhaustive\"",
            "2-means clustering of write sizes: over all splits, by the loop of Algorithm 1 with \
             the intended sum, or as printed. The loops stay at 1 or 2 sectors.";
        threshold_every: u64 = Kind::Count { min: 1, max: 1 << 30 }, default "1000",
            "Writes between computations of the threshold.";
        threshold_first: u32 = Kind::Count { min: 1, max: 1 << 20 }, default "8",
            "Initial threshold in sectors (assumed).";
    }
}

hybridsim_config::params! {
    /// Changes of the maximum length of the log.
    struct Throttle {
        throttle_every: u32 = Kind::Count { min: 1, max: 1 << 30 }, default "1000",
            "Requests between changes of k, the maximum length of the log.";
        throttle_step: u32 = Kind::Count { min: 1, max: 1 << 20 }, default "100",
            "Blocks by which k changes.";
    }
}

hybridsim_config::params! {
    /// The SLC flash and its log.
    struct Slc includes {
        threshold: Threshold where &[Needs::Is("filter", &["size"])],
        throttling: Throttle where &[Needs::Is("throttle", &["true"])],
    } {
        slc_pages_per_block: u64 = PAGES, default "64", "Pages per SLC block.";
        slc_erase_time: SimDuration = Kind::Duration, default "\"1.5ms\"", "SLC block erase.";
        slc_endurance: u32 = CYCLES, default "100000", "Program/erase cycles per SLC block.";
        slc_ways: u32 = WAYS, default "1",
            "Dies over which an SLC block is striped, as with `mlc_ways`.";
        log_blocks_max: Option<u32> = Kind::Count { min: 1, max: u32::MAX as u64 }, optional,
            "Maximum length of the log in SLC blocks: k, a predefined parameter (section 3.3) \
             whose value is not published. By default all blocks but three.";
        filter: Filter = Kind::Choice(Filter::NAMES), default "\"size\"",
            "Hot-data filter. `size`: small writes are hot. `all`: every write is, as for the SLC \
             cache of a TLC or QLC drive.";
        hash_entries: Option<u32> = Kind::Count { min: 2, max: 1 << 28 }, optional,
            "Entries of the hash table; by default half the number of SLC pages.";
        hash_unit: HashUnit = Kind::Choice(HashUnit::NAMES), default "\"page\"",
            "What an entry of the hash table locates. Section 4.2 has SLC pages, section 5.4 \
             sectors of 512 bytes; with sectors, table 3's 12.58 valid pages per tail block of 64 \
             would need more entries than there are. The entry of a page is one bucket per sector.";
        hash_key: HashKey = Kind::Choice(HashKey::NAMES), default "\"sector\""
            needs &[Needs::Is("hash_unit", &["page"])],
            "The number that is hashed: of the sector, as in section 5.4, or of the SLC page that \
             an entry locates (`hash_unit = \"page\"`).";
        probing: Probing = Kind::Choice(Probing::NAMES), default "\"linear\"",
            "Collision resolution of the hash table.";
        probes: u32 = Kind::Count { min: 1, max: 1024 }, default "8",
            "Entries probed; a write with a sector that finds no free entry goes to MLC.";
        throttle: bool = Kind::Flag, default "true", "Enables the utilisation throttle.";
        write_back: bool = Kind::Flag, default "true",
            "Valid data of the tail block are copied to the head while their chain has no log.";
        pull: bool = Kind::Flag, default "true",
            "A fold includes the data of the chain that are on the SLC flash.";
        cache_mode: CacheMode = Kind::Choice(CacheMode::NAMES), default "\"static\"",
            "`dynamic`: the log shrinks as the device fills, as if SLC blocks were borrowed from \
             free MLC blocks (use with `premapped = false`).";
        idle_after: Option<SimDuration> = Kind::Duration, optional,
            "Idle time after which the device empties its SLC log in the background; without it, \
             only writes do.";
        idle_keep: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.0"
            needs &[Needs::given("idle_after")],
            "Fraction of the longest log (`log_blocks_max`) that background work leaves filled.";
    }
}

hybridsim_config::params! {
    struct Density {
        density_up: u16 = Kind::Count { min: 1, max: 60_000 }, default "64",
            "Accesses after which a logical block is converted (assumed).";
        density_halve: u64 = Kind::Count { min: 1, max: 1 << 40 }, default "100000",
            "Accesses after which all access counters are halved (assumed).";
    }
}

hybridsim_config::params! {
    struct Parameters includes {
        sizes: Sizes,
        mlc: Mlc,
        single_bit: SingleBit where SINGLE_BIT,
        slc: Slc where SLC,
        density: Density where &[Needs::above_zero("density_size")],
    } {
        nvram: u64 = Kind::Bytes, default "\"0B\"",
            "Non-volatile memory that collects writes of up to one MLC page (third tier; assumed).";
        mapping_cache: u32 = Kind::Count { min: 0, max: u32::MAX as u64 }, default "64",
            "Logical blocks whose page mapping is cached (assumed); the logs of others are \
             scanned.";
        logs_max: u32 = Kind::Count { min: 1, max: u32::MAX as u64 }, default "1",
            "Maximum log blocks per chain; the chain is folded when the last is full. The paper \
             adds another log then, but its folds erase at most 2.0 blocks and its scans read at \
             most 82 pages (table 3), so chains of several logs must have been rare.";
        premapped: bool = Kind::Flag, default "true",
            "Every logical block has a full data block before the run.";
        wear_levelling: EntryChoice = Kind::Entry(WearEntry::CATEGORY), default "\"dual-pool\"",
            "Wear levelling of the MLC flash; the paper has the dual-pool algorithm with threshold \
             16.";
        overhead: SimDuration = Kind::Duration, default "\"0us\"",
            "Controller overhead per request.";
        active_power: f64 = Kind::Power, default "\"0.0495W\"",
            "Power while flash is read, programmed or erased: 3.3 V and 15 mA (table 1).";
        idle_power: f64 = Kind::Power, default "\"0.000033W\"",
            "Power while idle: 3.3 V and 10 uA for one chip (table 1).";
    }
}

/// The parameters of a hybrid SSD.
pub const PARAMS: &[Param] = Parameters::PARAMS;

/// The geometry of one medium: one plane, as all its dies work as one.
fn geometry(
    (size, bytes): (&'static str, u64),
    (page, page_bytes): (&'static str, u64),
    pages_per_block: u64,
) -> Result<Geometry, Vec<Problem>> {
    if page_bytes == 0 || !page_bytes.is_multiple_of(SECTOR_BYTES) || page_bytes > 64 << 9 {
        let message = "must be a multiple of 512 bytes and at most 32 KiB";
        return Err(vec![Problem::new(page, message)]);
    }
    let blocks = bytes / (page_bytes * pages_per_block);
    let shape = Shape {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block,
        page_bytes,
        spare_bytes: 0,
    };
    let rename = |_| Problem::new(size, format!("{blocks} blocks: too few, or too many pages"));
    Geometry::new(&shape).map_err(|problems| problems.into_iter().take(1).map(rename).collect())
}

fn logical_blocks(params: &Parameters, mlc: &Geometry) -> Result<u32, Vec<Problem>> {
    let block_bytes = block_bytes(mlc);
    let Sizes { capacity, density_size, .. } = params.sizes;
    let blocks = capacity / block_bytes;
    let mut problems = Vec::new();
    if blocks == 0 {
        let message = format!("must be at least one MLC block of {block_bytes} bytes");
        problems.push(Problem::new("capacity", message));
    }
    let dense = density_size / block_bytes;
    let least = blocks.saturating_add(dense).saturating_add(2);
    if least > u64::from(mlc.blocks()) {
        let message = format!(
            "{} blocks are too few for {blocks} logical blocks, {dense} for density control and 2 \
             spare blocks; at least {least} are needed",
            mlc.blocks()
        );
        problems.push(Problem::new("mlc_size", message));
    }
    if capacity / SECTOR_BYTES >= u64::from(u32::MAX) {
        problems.push(Problem::new("capacity", "must be less than 2 TiB"));
    }
    let pages = params.nvram / u64::from(mlc.page_bytes());
    if pages > 1 << 24 {
        problems.push(Problem::new("nvram", "must be at most 16,777,216 pages"));
    }
    if problems.is_empty() { Ok(blocks as u32) } else { Err(problems) }
}

/// Builds the concrete type.
///
/// # Errors
/// All problems with the parameters.
pub fn build_slc_mlc(input: &BuildInput<'_>) -> Result<SlcMlcSsd, Vec<Problem>> {
    let params = Parameters::from_settings(input.settings);
    let Parameters { sizes, mlc: medium, .. } = &params;
    let page = ("mlc_page_size", medium.mlc_page_size);
    let mlc = geometry(("mlc_size", sizes.mlc_size), page, medium.mlc_pages_per_block)?;
    let blocks = logical_blocks(&params, &mlc)?;
    check_memory("mlc_size", u64::from(mlc.pages()) * MLC_BYTES_PER_PAGE)?;
    let (wear, wear_settings) = input.registry.chosen::<WearEntry>(&params.wear_levelling);
    let wear = (wear.build)(&WearInput { settings: wear_settings, geometry: &mlc, pools: 1 })?;
    let slc = match sizes.slc_size {
        0 => None,
        _ => Some(slc_cache(&params, blocks)?),
    };
    let pages = blocks * mlc.pages_per_block();
    let exported = (u64::from(pages), mlc.sectors_per_page());
    let info = info(&params, &mlc, blocks, slc.as_ref());
    let front = FrontEnd {
        idle_after: params.slc.idle_after,
        ..FrontEnd::new(input, "block-chains", exported, info)
    };
    let array = Array::new(mlc, ProgramOrder::Ascending, medium.mlc_endurance);
    let array = array.with_logical_pages(pages);
    let config = ChainConfig {
        logical_blocks: blocks,
        mapping_cache_max: params.mapping_cache,
        logs_max: params.logs_max,
        premapped: params.premapped,
    };
    let dense = (sizes.density_size / block_bytes(&mlc)) as u32;
    let Density { density_up, density_halve } = params.density;
    let density =
        (dense > 0).then(|| DensityControl::new(blocks, dense, density_up, density_halve));
    let buffered = (params.nvram / u64::from(mlc.page_bytes())) as u32;
    let back_end = SerialBackEnd {
        times: times(&params, &mlc),
        slc_blocks: slc.as_ref().map_or(0, |slc| slc.log.blocks()),
        active: [SimDuration::ZERO; 3],
    };
    let translation = SlcMlcTranslation {
        ftl: HybridFtl::new(BlockChains::new(array, wear, config), slc, density),
        nvram: (buffered > 0).then(|| NvramBuffer::new(buffered, mlc.sectors_per_page())),
        back_end,
        overhead: params.overhead,
        versions: Vec::new(),
    };
    Ok(SlcMlcSsd::new(front, translation))
}

fn block_bytes(mlc: &Geometry) -> u64 {
    u64::from(mlc.pages_per_block()) * u64::from(mlc.page_bytes())
}

/// Map, reverse map and versions of the MLC flash, rounded up.
const MLC_BYTES_PER_PAGE: u64 = 18;

fn slc_bytes(slots: u64, buckets: u64) -> u64 {
    slots * 13 + buckets * 8
}

/// Memory for the tables of a device with these settings, before it is built.
fn table_bytes(settings: &Settings) -> u64 {
    let params = Parameters::from_settings(settings);
    let pages = params.sizes.mlc_size / params.mlc.mlc_page_size.max(1);
    let slots = params.sizes.slc_size / SECTOR_BYTES;
    let unit = match params.slc.hash_unit {
        HashUnit::Page => params.single_bit.slc_page_size / SECTOR_BYTES,
        HashUnit::Sector => 1,
    };
    let buckets = u64::from(hash_entries(&params)) * unit;
    pages.saturating_mul(MLC_BYTES_PER_PAGE).saturating_add(slc_bytes(slots, buckets))
}

/// Buckets of the hash table (chang-slc-mlc, section 5.1: half the SLC pages).
fn hash_entries(params: &Parameters) -> u32 {
    let pages = params.sizes.slc_size / params.single_bit.slc_page_size.max(1);
    params.slc.hash_entries.unwrap_or((pages / 2).clamp(2, 1 << 28) as u32)
}

/// k of a log on `blocks` SLC blocks.
fn log_blocks_max(slc: &Slc, blocks: u32) -> Result<u32, Vec<Problem>> {
    let most = blocks - NOT_IN_K;
    match slc.log_blocks_max {
        Some(asked) if asked > most => {
            let message = format!("must be at most {most}: {blocks} SLC blocks but {NOT_IN_K}");
            Err(vec![Problem::new("log_blocks_max", message)])
        }
        asked => Ok(asked.unwrap_or(most)),
    }
}

fn slc_cache(params: &Parameters, logical_blocks: u32) -> Result<SlcCache, Vec<Problem>> {
    let Parameters { sizes, single_bit, slc: own, .. } = params;
    let page = ("slc_page_size", single_bit.slc_page_size);
    let slc = geometry(("slc_size", sizes.slc_size), page, own.slc_pages_per_block)?;
    if slc.blocks() < BLOCKS_MIN {
        let message = format!(
            "{} blocks are too few for a log; at least {BLOCKS_MIN} are needed",
            slc.blocks()
        );
        return Err(vec![Problem::new("slc_size", message)]);
    }
    let slots = u64::from(slc.pages()) * u64::from(slc.sectors_per_page());
    if slots >= 1 << 31 {
        return Err(vec![Problem::new("slc_size", "must be less than 1 TiB")]);
    }
    let unit = if own.hash_unit == HashUnit::Page { slc.sectors_per_page() } else { 1 };
    let buckets = u64::from(hash_entries(params)) * u64::from(unit);
    if buckets > 1 << 31 {
        let message = format!("{buckets} buckets, one per sector; at most 2,147,483,648");
        return Err(vec![Problem::new("hash_entries", message)]);
    }
    check_memory("slc_size", slc_bytes(slots, buckets))?;
    let hash = HashTable::new(buckets as u32, own.probes * unit, own.probing).with_entries_of(unit);
    let hash = if own.hash_key == HashKey::Page { hash.keyed_by_page() } else { hash };
    let array = Array::new(slc, ProgramOrder::Sequential, own.slc_endurance);
    let Threshold { threshold_search, threshold_every, threshold_first } = own.threshold;
    let filter = match own.filter {
        Filter::All => HotDataFilter::all(),
        Filter::Size => HotDataFilter::new(threshold_search, threshold_every, threshold_first),
    };
    let log = SlcLog::new(array, hash).with_k(log_blocks_max(own, slc.blocks())?);
    Ok(SlcCache {
        filter,
        throttle: UtilisationThrottle::new(
            f64::from(own.slc_endurance) / f64::from(params.mlc.mlc_endurance),
            own.throttling.throttle_every,
            own.throttling.throttle_step,
            own.throttle,
        ),
        write_back: WriteBackPolicy::new(own.write_back),
        sectors_of: vec![0; logical_blocks as usize],
        pull: own.pull,
        idle_blocks: (f64::from(log.k_max()) * own.idle_keep) as u32,
        dynamic: own.cache_mode == CacheMode::Dynamic,
        log,
    })
}

fn times(params: &Parameters, mlc: &Geometry) -> [MediumTimes; 3] {
    let Parameters { mlc: medium, single_bit, slc, .. } = params;
    let slc = MediumTimes {
        read: single_bit.slc_read_time,
        program: single_bit.slc_program_time,
        erase: slc.slc_erase_time,
        page_sectors: (single_bit.slc_page_size / SECTOR_BYTES) as u32,
        ways: slc.slc_ways,
    };
    let own = MediumTimes {
        read: medium.mlc_read_time,
        program: medium.mlc_program_time,
        erase: medium.mlc_erase_time,
        page_sectors: mlc.sectors_per_page(),
        ways: medium.mlc_ways,
    };
    // With one bit per cell a page takes as long as the same bytes on SLC flash.
    let share = f64::from(mlc.page_bytes()) / single_bit.slc_page_size.max(1) as f64;
    let by_byte = |time: SimDuration| SimDuration::from_ns_f64(time.as_ns() as f64 * share);
    let dense = MediumTimes { read: by_byte(slc.read), program: by_byte(slc.program), ..own };
    [slc, own, dense]
}

fn info(
    params: &Parameters,
    mlc: &Geometry,
    blocks: u32,
    cache: Option<&SlcCache>,
) -> ComponentInfo {
    let mut watts = [params.active_power; PowerState::COUNT];
    watts[PowerState::Idle as usize] = params.idle_power;
    watts[PowerState::Standby as usize] = params.idle_power;
    let slc = cache.map(|cache| cache.log.array.geometry());
    let entries = cache.map_or(0, |_| hash_entries(params));
    let ram = MemoryFootprint::of(mlc, blocks, slc, entries);
    let slc_pages = slc.map_or(0, Geometry::pages);
    let slc_blocks = slc.map_or(0, Geometry::blocks);
    ComponentInfo {
        kind: "slc-mlc-ssd",
        custom: STATISTIC_NAMES,
        watts: Some(watts),
        constants: vec![
            ("channels", 1.0),
            ("dies", 2.0),
            ("blocks", f64::from(mlc.blocks() + slc_blocks)),
            ("mlc_blocks", f64::from(mlc.blocks())),
            ("mlc_pages_per_block", f64::from(mlc.pages_per_block())),
            ("mlc_page_bytes", f64::from(mlc.page_bytes())),
            ("slc_blocks", f64::from(slc_blocks)),
            ("slc_pages", f64::from(slc_pages)),
            ("logical_blocks", f64::from(blocks)),
            ("ram_block_tables_bytes", ram.block_tables_bytes as f64),
            ("ram_hash_table_bytes", ram.hash_table_bytes as f64),
        ],
        ..ComponentInfo::default()
    }
}
