//! The parameters of kind `slc-mlc-ssd`, and how one is built from them. Defaults are configuration
//! C3 of chang-slc-mlc (tables 1 and 2) with 256 MB of SLC flash, unless their help says assumed.

use super::backend::{HybridBackend, SlcMlcSsd};
use super::block_chains::{BlockChains, ChainConfig};
use super::density::DensityControl;
use super::hash_table::{HashTable, Probing};
use super::hot_data_filter::{HotDataFilter, Search};
use super::hybrid_ftl::{HybridFtl, SlcCache};
use super::model::MemoryFootprint;
use super::nvram::NvramBuffer;
use super::operations::{MediumTimes, STATISTIC_NAMES};
use super::slc_log::{BLOCKS_MIN, SlcLog};
use super::throttle::{UtilisationThrottle, WriteBackPolicy};
use crate::array::{Array, ProgramOrder};
use crate::device::{FrontEnd, IDLE_AFTER, check_memory};
use crate::geometry::{Geometry, Shape};
use crate::wear::{WearEntry, WearInput};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::{Component, ComponentInfo, PowerState, SECTOR_BYTES, SimDuration, Stream};

pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "slc-mlc-ssd",
        summary: "A hybrid SSD: an SLC log before MLC flash; serves one request at a time.",
        origin: "chang-slc-mlc (Chang, A Hybrid Approach to NAND-Flash-Based Solid-State Disks)",
        params: PARAMS,
    },
    build,
};

const WAYS: Kind = Kind::Count { min: 1, max: 4096 };
const CYCLES: Kind = Kind::Count { min: 1, max: u32::MAX as u64 };
const PAGES: Kind = Kind::Count { min: 1, max: 65_536 };

/// The parameters of a hybrid SSD.
pub const PARAMS: &[Param] = &[
    Param::with("capacity", Kind::Bytes, "\"20480MiB\"", "Exported capacity, in whole MLC blocks."),
    Param::with("mlc_size", Kind::Bytes, "\"21504MiB\"", "MLC flash, including spare blocks."),
    Param::with("mlc_page_size", Kind::Bytes, "\"4KiB\"", "Data bytes of an MLC page."),
    Param::with("mlc_pages_per_block", PAGES, "128", "Pages per MLC block."),
    Param::with("mlc_read_time", Kind::Duration, "\"60us\"", "MLC page read."),
    Param::with("mlc_program_time", Kind::Duration, "\"800us\"", "MLC page program."),
    Param::with("mlc_erase_time", Kind::Duration, "\"1.5ms\"", "MLC block erase."),
    Param::with("mlc_endurance", CYCLES, "5000", "Program/erase cycles per MLC block."),
    Param::with(
        "mlc_ways",
        WAYS,
        "1",
        "Dies over which an MLC block is striped, so that this many of its pages are read or \
         programmed in parallel. The paper has no parallelism.",
    ),
    Param::with("slc_size", Kind::Bytes, "\"256MiB\"", "SLC flash; 0 for a conventional MLC SSD."),
    Param::with("slc_page_size", Kind::Bytes, "\"2KiB\"", "Data bytes of an SLC page."),
    Param::with("slc_pages_per_block", PAGES, "64", "Pages per SLC block."),
    Param::with("slc_read_time", Kind::Duration, "\"25us\"", "SLC page read."),
    Param::with("slc_program_time", Kind::Duration, "\"200us\"", "SLC page program."),
    Param::with("slc_erase_time", Kind::Duration, "\"1.5ms\"", "SLC block erase."),
    Param::with("slc_endurance", CYCLES, "100000", "Program/erase cycles per SLC block."),
    Param::with("slc_ways", WAYS, "1", "As `mlc_ways`."),
    Param::with(
        "filter",
        Kind::Choice(&["size", "all"]),
        "\"size\"",
        "Hot-data filter. `size`: small writes are hot. `all`: every write is, as for the SLC \
         cache of a TLC or QLC drive.",
    )
    .needs(&[Needs::above_zero("slc_size")]),
    Param::with(
        "threshold_search",
        Kind::Choice(Search::NAMES),
        "\"exhaustive\"",
        "2-means clustering of write sizes: over all splits, by the loop of Algorithm 1 with the \
         intended sum, or as printed. The loops stay at 1 or 2 sectors.",
    )
    .needs(&[Needs::Is("filter", &["size"])]),
    Param::with(
        "threshold_every",
        Kind::Count { min: 1, max: 1 << 30 },
        "1000",
        "Writes between computations of the threshold.",
    )
    .needs(&[Needs::Is("filter", &["size"])]),
    Param::with(
        "threshold_first",
        Kind::Count { min: 1, max: 1 << 20 },
        "8",
        "Initial threshold in sectors (assumed).",
    )
    .needs(&[Needs::Is("filter", &["size"])]),
    Param::optional(
        "hash_entries",
        Kind::Count { min: 2, max: 1 << 28 },
        "Entries of the hash table; by default half the number of SLC pages.",
    )
    .needs(&[Needs::above_zero("slc_size")]),
    Param::with(
        "hash_unit",
        Kind::Choice(&["page", "sector"]),
        "\"page\"",
        "What an entry of the hash table locates. Section 4.2 has SLC pages, section 5.4 sectors \
         of 512 bytes; with sectors, table 3's 12.58 valid pages per tail block of 64 would need \
         more entries than there are. The entry of a page is one bucket per sector.",
    )
    .needs(&[Needs::above_zero("slc_size")]),
    Param::with(
        "hash_key",
        Kind::Choice(&["sector", "page"]),
        "\"sector\"",
        "The number that is hashed: of the sector, as in section 5.4, or of the SLC page that an \
         entry locates (`hash_unit = \"page\"`).",
    )
    .needs(&[Needs::above_zero("slc_size"), Needs::Is("hash_unit", &["page"])]),
    Param::with(
        "probing",
        Kind::Choice(&["linear", "quadratic"]),
        "\"linear\"",
        "Collision resolution of the hash table.",
    )
    .needs(&[Needs::above_zero("slc_size")]),
    Param::with(
        "probes",
        Kind::Count { min: 1, max: 1024 },
        "8",
        "Entries probed; a write with a sector that finds no free entry goes to MLC.",
    )
    .needs(&[Needs::above_zero("slc_size")]),
    Param::with("throttle", Kind::Flag, "true", "Enables the utilisation throttle.")
        .needs(&[Needs::above_zero("slc_size")]),
    Param::with(
        "throttle_every",
        Kind::Count { min: 1, max: 1 << 30 },
        "1000",
        "Requests between changes of k, the maximum length of the log.",
    )
    .needs(&[Needs::Is("throttle", &["true"])]),
    Param::with(
        "throttle_step",
        Kind::Count { min: 1, max: 1 << 20 },
        "100",
        "Blocks by which k changes.",
    )
    .needs(&[Needs::Is("throttle", &["true"])]),
    Param::with(
        "write_back",
        Kind::Flag,
        "true",
        "Valid data of the tail block are copied to the head while their chain has no log.",
    )
    .needs(&[Needs::above_zero("slc_size")]),
    Param::with(
        "pull",
        Kind::Flag,
        "true",
        "A fold includes the data of the chain that are on the SLC flash.",
    )
    .needs(&[Needs::above_zero("slc_size")]),
    Param::with(
        "cache_mode",
        Kind::Choice(&["static", "dynamic"]),
        "\"static\"",
        "`dynamic`: the log shrinks as the device fills, as if SLC blocks were borrowed from free \
         MLC blocks (use with `premapped = false`).",
    )
    .needs(&[Needs::above_zero("slc_size")]),
    IDLE_AFTER,
    Param::with(
        "idle_keep",
        Kind::Number { min: 0.0, max: 1.0 },
        "0.0",
        "Fraction of the SLC blocks that background work leaves filled.",
    )
    .needs(&[Needs::given("idle_after")]),
    Param::with(
        "nvram",
        Kind::Bytes,
        "\"0B\"",
        "Non-volatile memory that collects writes of up to one MLC page (third tier; assumed).",
    ),
    Param::with(
        "mapping_cache",
        Kind::Count { min: 0, max: u32::MAX as u64 },
        "64",
        "Logical blocks whose page mapping is cached (assumed); the logs of others are scanned.",
    ),
    Param::with(
        "logs_max",
        Kind::Count { min: 1, max: u32::MAX as u64 },
        "1",
        "Maximum log blocks per chain; the chain is folded when the last is full. The paper adds \
         another log then, but its folds erase at most 2.0 blocks and its scans read at most 82 \
         pages (table 3), so chains of several logs must have been rare.",
    ),
    Param::with(
        "premapped",
        Kind::Flag,
        "true",
        "Every logical block has a full data block before the run.",
    ),
    Param::with(
        "wear_levelling",
        Kind::Entry(WearEntry::CATEGORY),
        "\"dual-pool\"",
        "Wear levelling of the MLC flash; the paper has the dual-pool algorithm with threshold 16.",
    ),
    Param::with(
        "density_size",
        Kind::Bytes,
        "\"0B\"",
        "Dynamic density control: additional MLC flash, part of `mlc_size`, for frequently \
         accessed logical blocks stored with one bit per cell.",
    ),
    Param::with(
        "density_up",
        Kind::Count { min: 1, max: 60_000 },
        "64",
        "Accesses after which a logical block is converted (assumed).",
    )
    .needs(&[Needs::above_zero("density_size")]),
    Param::with(
        "density_halve",
        Kind::Count { min: 1, max: 1 << 40 },
        "100000",
        "Accesses after which all access counters are halved (assumed).",
    )
    .needs(&[Needs::above_zero("density_size")]),
    Param::with("overhead", Kind::Duration, "\"0us\"", "Controller overhead per request."),
    Param::with(
        "active_power",
        Kind::Power,
        "\"0.0495W\"",
        "Power while flash is read, programmed or erased: 3.3 V and 15 mA (table 1).",
    ),
    Param::with(
        "idle_power",
        Kind::Power,
        "\"0.000033W\"",
        "Power while idle: 3.3 V and 10 uA for one chip (table 1).",
    ),
];

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    Ok(Box::new(build_slc_mlc(input)?))
}

/// The geometry of one medium: one plane, as all its dies work as one.
fn geometry(
    settings: &Settings,
    [size, page, pages]: [&'static str; 3],
) -> Result<Geometry, Vec<Problem>> {
    let (page_bytes, pages_per_block) = (settings.bytes(page), settings.count(pages));
    if page_bytes == 0 || !page_bytes.is_multiple_of(SECTOR_BYTES) || page_bytes > 64 << 9 {
        let message = "must be a multiple of 512 bytes and at most 32 KiB";
        return Err(vec![Problem::new(page, message)]);
    }
    let blocks = settings.bytes(size) / (page_bytes * pages_per_block);
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

/// The number of logical blocks.
fn logical_blocks(settings: &Settings, mlc: &Geometry) -> Result<u32, Vec<Problem>> {
    let block_bytes = block_bytes(mlc);
    let capacity = settings.bytes("capacity");
    let blocks = capacity / block_bytes;
    let mut problems = Vec::new();
    if blocks == 0 {
        let message = format!("must be at least one MLC block of {block_bytes} bytes");
        problems.push(Problem::new("capacity", message));
    }
    let dense = settings.bytes("density_size") / block_bytes;
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
    let pages = settings.bytes("nvram") / u64::from(mlc.page_bytes());
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
    let settings = input.settings;
    let mlc = geometry(settings, ["mlc_size", "mlc_page_size", "mlc_pages_per_block"])?;
    let blocks = logical_blocks(settings, &mlc)?;
    check_memory("mlc_size", u64::from(mlc.pages()) * MLC_BYTES_PER_PAGE)?;
    let (wear, wear_settings) = input.chosen::<WearEntry>("wear_levelling");
    let wear = (wear.build)(&WearInput { settings: wear_settings, geometry: &mlc, pools: 1 })?;
    let slc = match settings.bytes("slc_size") {
        0 => None,
        _ => Some(slc_cache(settings, blocks)?),
    };
    let front = FrontEnd {
        capacity: u64::from(blocks) * block_bytes(&mlc) / SECTOR_BYTES,
        idle_after: settings.duration_opt("idle_after"),
        power_failures: Stream::new(input.seed, &format!("{}/power", input.path)),
        thermal: None,
        info: info(settings, &mlc, blocks, slc.as_ref()),
    };
    let endurance = settings.count("mlc_endurance") as u32;
    let pages = blocks * mlc.pages_per_block();
    let array = Array::new(mlc, ProgramOrder::Ascending, endurance).with_logical_pages(pages);
    let config = ChainConfig {
        logical_blocks: blocks,
        mapping_cache_max: settings.count("mapping_cache") as u32,
        logs_max: settings.count("logs_max") as u32,
        premapped: settings.flag("premapped"),
    };
    let dense = (settings.bytes("density_size") / block_bytes(&mlc)) as u32;
    let (up, halve) = (settings.count("density_up"), settings.count("density_halve"));
    let density = (dense > 0).then(|| DensityControl::new(blocks, dense, up as u16, halve));
    let buffered = (settings.bytes("nvram") / u64::from(mlc.page_bytes())) as u32;
    let backend = HybridBackend {
        slc_blocks: slc.as_ref().map_or(0, |slc| slc.log.blocks()),
        ftl: HybridFtl::new(BlockChains::new(array, wear, config), slc, density),
        nvram: (buffered > 0).then(|| NvramBuffer::new(buffered, mlc.sectors_per_page())),
        times: times(settings, &mlc),
        overhead: settings.duration("overhead"),
        active: [SimDuration::ZERO; 3],
        versions: Vec::new(),
    };
    Ok(SlcMlcSsd::new(front, backend))
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
pub(crate) fn table_bytes(settings: &Settings) -> u64 {
    let pages = settings.bytes("mlc_size") / settings.bytes("mlc_page_size").max(1);
    let slots = settings.bytes("slc_size") / SECTOR_BYTES;
    let unit = match settings.text("hash_unit") {
        "page" => settings.bytes("slc_page_size") / SECTOR_BYTES,
        _ => 1,
    };
    let buckets = u64::from(hash_entries(settings)) * unit;
    pages.saturating_mul(MLC_BYTES_PER_PAGE).saturating_add(slc_bytes(slots, buckets))
}

/// Buckets of the hash table (chang-slc-mlc, section 5.1: half the SLC pages).
fn hash_entries(settings: &Settings) -> u32 {
    let pages = settings.bytes("slc_size") / settings.bytes("slc_page_size").max(1);
    settings.count_opt("hash_entries").unwrap_or((pages / 2).clamp(2, 1 << 28)) as u32
}

fn slc_cache(settings: &Settings, logical_blocks: u32) -> Result<SlcCache, Vec<Problem>> {
    let slc = geometry(settings, ["slc_size", "slc_page_size", "slc_pages_per_block"])?;
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
    let unit = if settings.text("hash_unit") == "page" { slc.sectors_per_page() } else { 1 };
    let buckets = u64::from(hash_entries(settings)) * u64::from(unit);
    if buckets > 1 << 31 {
        let message = format!("{buckets} buckets, one per sector; at most 2,147,483,648");
        return Err(vec![Problem::new("hash_entries", message)]);
    }
    check_memory("slc_size", slc_bytes(slots, buckets))?;
    let probing = match settings.text("probing") {
        "quadratic" => Probing::Quadratic,
        _ => Probing::Linear,
    };
    let probes = settings.count("probes") as u32 * unit;
    let hash = HashTable::new(buckets as u32, probes, probing).with_entries_of(unit);
    let hash = if settings.text("hash_key") == "page" { hash.keyed_by_page() } else { hash };
    let (endurance, mlc_endurance) =
        (settings.count("slc_endurance") as u32, settings.count("mlc_endurance") as u32);
    let array = Array::new(slc, ProgramOrder::Sequential, endurance);
    let filter = match settings.text("filter") {
        "all" => HotDataFilter::all(),
        _ => HotDataFilter::new(
            Search::named(settings.text("threshold_search")),
            settings.count("threshold_every"),
            settings.count("threshold_first") as u32,
        ),
    };
    let log = SlcLog::new(array, hash);
    Ok(SlcCache {
        filter,
        throttle: UtilisationThrottle::new(
            f64::from(endurance) / f64::from(mlc_endurance),
            settings.count("throttle_every") as u32,
            settings.count("throttle_step") as u32,
            settings.flag("throttle"),
        ),
        write_back: WriteBackPolicy::new(settings.flag("write_back")),
        sectors_of: vec![0; logical_blocks as usize],
        pull: settings.flag("pull"),
        idle_blocks: (f64::from(log.k_max()) * settings.number("idle_keep")) as u32,
        dynamic: settings.text("cache_mode") == "dynamic",
        log,
    })
}

fn times(settings: &Settings, mlc: &Geometry) -> [MediumTimes; 3] {
    let of = |[read, program, erase, ways]: [&str; 4]| MediumTimes {
        read: settings.duration(read),
        program: settings.duration(program),
        erase: settings.duration(erase),
        ways: settings.count(ways) as u32,
    };
    let slc = of(["slc_read_time", "slc_program_time", "slc_erase_time", "slc_ways"]);
    let own = of(["mlc_read_time", "mlc_program_time", "mlc_erase_time", "mlc_ways"]);
    // With one bit per cell a page takes as long as the same bytes on SLC flash.
    let share = f64::from(mlc.page_bytes()) / settings.bytes("slc_page_size").max(1) as f64;
    let by_byte = |time: SimDuration| SimDuration::from_ns_f64(time.as_ns() as f64 * share);
    let dense = MediumTimes { read: by_byte(slc.read), program: by_byte(slc.program), ..own };
    [slc, own, dense]
}

fn info(
    settings: &Settings,
    mlc: &Geometry,
    blocks: u32,
    cache: Option<&SlcCache>,
) -> ComponentInfo {
    let mut watts = [settings.number("active_power"); PowerState::COUNT];
    watts[PowerState::Idle as usize] = settings.number("idle_power");
    watts[PowerState::Standby as usize] = settings.number("idle_power");
    let slc = cache.map(|cache| cache.log.array.geometry());
    let entries = cache.map_or(0, |_| hash_entries(settings));
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
