//! The parameters of a hybrid SSD, and how one is built from them. Defaults are configuration C3
//! of chang-slc-mlc (tables 1 and 2) with 256 MB of SLC flash, unless their help says assumed.

use super::buffer::Buffer;
use super::density::Density;
use super::device::{Parameters, SlcMlcSsd};
use super::filter::{Filter, Search};
use super::hash::{HashTable, Probing};
use super::log::{BLOCKS_MIN, SlcLog};
use super::mlc::Mlc;
use super::model::Ram;
use super::store::{Cache, Store};
use super::throttle::{Throttle, WriteBack};
use super::work::Times;
use crate::array::{Array, ProgramOrder};
use crate::device::IDLE_AFTER;
use crate::geometry::{Geometry, Shape};
use crate::wear::{WearEntry, WearInput};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Kind, Param, Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::{Component, ComponentInfo, PowerState, SECTOR_BYTES, SimDuration};

/// The registered entry.
pub const ENTRY: ComponentEntry = ComponentEntry {
    description: Description {
        name: "slc-mlc-ssd",
        summary: "A flash device with a little SLC flash as a log for hot data in front of MLC.",
        origin: "chang-slc-mlc (L.-P. Chang, A Hybrid Approach to NAND-Flash-Based Solid-State Disks)",
        params: PARAMS,
    },
    build,
};

const WAYS: Kind = Kind::Count { min: 1, max: 4096 };
const CYCLES: Kind = Kind::Count { min: 1, max: u32::MAX as u64 };
const PAGES: Kind = Kind::Count { min: 1, max: 65_536 };

/// What can be set.
pub const PARAMS: &[Param] = &[
    Param::with("capacity", Kind::Bytes, "\"20480MiB\"", "What it offers, in whole MLC blocks."),
    Param::with("mlc_size", Kind::Bytes, "\"21504MiB\"", "MLC flash, spare blocks included."),
    Param::with("mlc_page_size", Kind::Bytes, "\"4KiB\"", "Data bytes of an MLC page."),
    Param::with("mlc_pages_per_block", PAGES, "128", "Pages of an MLC block."),
    Param::with("mlc_read_time", Kind::Duration, "\"60us\"", "An MLC page read."),
    Param::with("mlc_program_time", Kind::Duration, "\"800us\"", "An MLC page programmed."),
    Param::with("mlc_erase_time", Kind::Duration, "\"1.5ms\"", "An MLC block erased."),
    Param::with("mlc_endurance", CYCLES, "5000", "Erases an MLC block survives."),
    Param::with(
        "mlc_ways",
        WAYS,
        "1",
        "MLC pages of one block worked on at a time: a block then lies across as many dies. The \
         paper considers no parallelism.",
    ),
    Param::with(
        "slc_size",
        Kind::Bytes,
        "\"256MiB\"",
        "SLC flash; 0 makes it a conventional MLC SSD.",
    ),
    Param::with("slc_page_size", Kind::Bytes, "\"2KiB\"", "Data bytes of an SLC page."),
    Param::with("slc_pages_per_block", PAGES, "64", "Pages of an SLC block."),
    Param::with("slc_read_time", Kind::Duration, "\"25us\"", "An SLC page read."),
    Param::with("slc_program_time", Kind::Duration, "\"200us\"", "An SLC page programmed."),
    Param::with("slc_erase_time", Kind::Duration, "\"1.5ms\"", "An SLC block erased."),
    Param::with("slc_endurance", CYCLES, "100000", "Erases an SLC block survives."),
    Param::with("slc_ways", WAYS, "1", "As `mlc_ways`."),
    Param::with(
        "filter",
        Kind::Choice(&["size", "all"]),
        "\"size\"",
        "What the SLC flash takes: small writes, or, as the cache of today's drives, all.",
    ),
    Param::with(
        "threshold_search",
        Kind::Choice(Search::NAMES),
        "\"exhaustive\"",
        "How 2-means clustering is done: over all splits; by the loop of Algorithm 1 with the sum \
         it means; or as printed. The loops stay at 1 or 2 sectors.",
    ),
    Param::with(
        "threshold_every",
        Kind::Count { min: 1, max: 1 << 30 },
        "1000",
        "Writes between computations of the threshold.",
    ),
    Param::with(
        "threshold_first",
        Kind::Count { min: 1, max: 1 << 20 },
        "8",
        "The threshold in sectors until then (assumed).",
    ),
    Param::optional(
        "hash_entries",
        Kind::Count { min: 2, max: 1 << 28 },
        "Entries of the hash table; without it half as many as SLC pages.",
    ),
    Param::with(
        "hash_unit",
        Kind::Choice(&["page", "sector"]),
        "\"page\"",
        "What an entry of the hash table finds. Section 4.2 has SLC pages, section 5.4 sectors of \
         512 bytes; with these, table 3's 12.58 valid pages in a tail block of 64 would need more \
         entries than there are. A page's entry is one bucket for each of its sectors.",
    ),
    Param::with(
        "probing",
        Kind::Choice(&["linear", "quadratic"]),
        "\"linear\"",
        "How the hash table resolves collisions.",
    ),
    Param::with(
        "probes",
        Kind::Count { min: 1, max: 1024 },
        "8",
        "Entries looked at; a write of which one sector finds none goes to MLC.",
    ),
    Param::with("throttle", Kind::Flag, "true", "Whether the utilization throttle works."),
    Param::with(
        "throttle_every",
        Kind::Count { min: 1, max: 1 << 30 },
        "1000",
        "Requests between changes of k.",
    ),
    Param::with(
        "throttle_step",
        Kind::Count { min: 1, max: 1 << 20 },
        "100",
        "Blocks by which k changes.",
    ),
    Param::with(
        "write_back",
        Kind::Flag,
        "true",
        "Valid data of the tail block stay on the SLC flash while their chain has no log.",
    ),
    Param::with(
        "pull",
        Kind::Flag,
        "true",
        "Folding a chain takes along what the SLC flash holds of it.",
    ),
    Param::with(
        "cache_mode",
        Kind::Choice(&["static", "dynamic"]),
        "\"static\"",
        "`dynamic` lets the log shrink as the device fills, as where SLC blocks are borrowed from \
         free MLC ones (use with `premapped` off).",
    ),
    IDLE_AFTER,
    Param::with(
        "idle_keep",
        Kind::Number { min: 0.0, max: 1.0 },
        "0.0",
        "The share of the SLC blocks that background work leaves filled.",
    ),
    Param::with(
        "nvram",
        Kind::Bytes,
        "\"0B\"",
        "Non-volatile memory that gathers writes of up to an MLC page (a third tier; assumed).",
    ),
    Param::with(
        "mapping_cache",
        Kind::Count { min: 0, max: u32::MAX as u64 },
        "64",
        "Logical blocks whose mapping is cached (assumed); others are scanned when used.",
    ),
    Param::with(
        "logs_max",
        Kind::Count { min: 1, max: u32::MAX as u64 },
        "1",
        "A chain with so many log blocks is folded when the last is full. The paper adds another \
         log then, but its folds erase 2.0 blocks at most and its scans read 82 pages at most \
         (table 3), so chains of more than one log hardly occurred.",
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
        "Keeps the MLC flash evenly worn; the paper takes the dual pool with a threshold of 16.",
    ),
    Param::with(
        "density_size",
        Kind::Bytes,
        "\"0B\"",
        "Dynamic density control: MLC flash that often used logical blocks may take beyond their \
         own to be kept with one bit to the cell. It is part of `mlc_size`.",
    ),
    Param::with(
        "density_up",
        Kind::Count { min: 1, max: 60_000 },
        "64",
        "Accesses after which a logical block is used often (assumed).",
    ),
    Param::with(
        "density_halve",
        Kind::Count { min: 1, max: 1 << 40 },
        "100000",
        "Accesses after which all these counts are halved (assumed).",
    ),
    Param::with("overhead", Kind::Duration, "\"0us\"", "Controller time per request."),
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
        "Power while nothing happens: 3.3 V and 10 uA for one chip (table 1).",
    ),
];

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    Ok(Box::new(build_slc_mlc(input)?))
}

/// The shape of one medium: one plane, `ways` of which work as one.
fn geometry(
    settings: &Settings,
    [size, page, pages]: [&'static str; 3],
) -> Result<Geometry, Vec<Problem>> {
    let (page_bytes, pages_per_block) = (settings.bytes(page), settings.count(pages));
    if page_bytes == 0 || !page_bytes.is_multiple_of(SECTOR_BYTES) || page_bytes > 64 << 9 {
        let message = "must be a multiple of 512 bytes, 32 KiB at most";
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

/// Blocks offered, or everything that is wrong with the sizes.
fn offered(settings: &Settings, mlc: &Geometry) -> Result<u32, Vec<Problem>> {
    let block_bytes = u64::from(mlc.pages_per_block()) * u64::from(mlc.page_bytes());
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
            "{} blocks hold the {blocks} offered, {dense} for density control and 2 spare ones \
             not; at least {least} are needed",
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

/// Refuses what the machine cannot hold before half of it is there.
fn check_memory(bytes: u64) -> Result<(), Vec<Problem>> {
    let mut probe: Vec<u8> = Vec::new();
    if usize::try_from(bytes).is_ok_and(|bytes| probe.try_reserve_exact(bytes).is_ok()) {
        return Ok(());
    }
    let message = format!("its tables need about {} MiB, more than can be had", bytes >> 20);
    Err(vec![Problem::new("mlc_size", message)])
}

/// As the registered entry, with the concrete type.
///
/// # Errors
/// Everything that is wrong with the parameters.
pub fn build_slc_mlc(input: &BuildInput<'_>) -> Result<SlcMlcSsd, Vec<Problem>> {
    let settings = input.settings;
    let mlc = geometry(settings, ["mlc_size", "mlc_page_size", "mlc_pages_per_block"])?;
    let blocks = offered(settings, &mlc)?;
    check_memory(u64::from(mlc.pages()) * 18)?;
    let (wear, wear_settings) = input.chosen::<WearEntry>("wear_levelling");
    let wear = (wear.build)(&WearInput { settings: wear_settings, geometry: &mlc, pools: 1 })?;
    let cache = match settings.bytes("slc_size") {
        0 => None,
        _ => Some(cache(settings, blocks)?),
    };
    let buckets = cache.as_ref().map_or(0, |_| hash_entries(settings));
    let ram =
        Ram::of(&mlc, blocks, cache.as_ref().map(|cache| cache.log.array.geometry()), buckets);
    let info = info(settings, &mlc, blocks, cache.as_ref(), ram);
    let endurance = settings.count("mlc_endurance") as u32;
    let pages = blocks * mlc.pages_per_block();
    let array = Array::new(mlc, ProgramOrder::Ascending, endurance).with_logical_pages(pages);
    let mapping_cache = settings.count("mapping_cache") as u32;
    let logs_max = settings.count("logs_max") as u32;
    let premapped = settings.flag("premapped");
    let tables = Mlc::new(array, blocks, wear, mapping_cache, logs_max, premapped);
    let block_bytes = u64::from(mlc.pages_per_block()) * u64::from(mlc.page_bytes());
    let dense = (settings.bytes("density_size") / block_bytes) as u32;
    let (up, halve) = (settings.count("density_up"), settings.count("density_halve"));
    let density = (dense > 0).then(|| Density::new(blocks, dense, up as u16, halve));
    let buffer_pages = (settings.bytes("nvram") / u64::from(mlc.page_bytes())) as u32;
    let buffer = (buffer_pages > 0).then(|| Buffer::new(buffer_pages, mlc.sectors_per_page()));
    Ok(SlcMlcSsd::new(Parameters {
        capacity: u64::from(blocks) * block_bytes / SECTOR_BYTES,
        slc_blocks: cache.as_ref().map_or(0, |cache| cache.log.blocks()),
        store: Store::new(tables, cache, density),
        buffer,
        times: times(settings, &mlc),
        overhead: settings.duration("overhead"),
        idle_after: settings.duration_opt("idle_after"),
        power: hybridsim_engine::Stream::new(input.seed, &format!("{}/power", input.path)),
        info,
    }))
}

/// Buckets of the hash table (chang-slc-mlc, section 5.1: half the SLC pages).
fn hash_entries(settings: &Settings) -> u32 {
    let pages = settings.bytes("slc_size") / settings.bytes("slc_page_size").max(1);
    settings.count_opt("hash_entries").unwrap_or((pages / 2).clamp(2, 1 << 28)) as u32
}

fn cache(settings: &Settings, logical_blocks: u32) -> Result<Cache, Vec<Problem>> {
    let slc = geometry(settings, ["slc_size", "slc_page_size", "slc_pages_per_block"])?;
    if slc.blocks() < BLOCKS_MIN {
        let message = format!("{} blocks make no log; it needs {BLOCKS_MIN}", slc.blocks());
        return Err(vec![Problem::new("slc_size", message)]);
    }
    let places = u64::from(slc.pages()) * u64::from(slc.sectors_per_page());
    if places >= 1 << 31 {
        return Err(vec![Problem::new("slc_size", "must be less than 1 TiB")]);
    }
    let unit = if settings.text("hash_unit") == "page" { slc.sectors_per_page() } else { 1 };
    let buckets = u64::from(hash_entries(settings)) * u64::from(unit);
    if buckets > 1 << 31 {
        let message = format!("{buckets} buckets of a sector each; 2,147,483,648 at most");
        return Err(vec![Problem::new("hash_entries", message)]);
    }
    check_memory(places * 13 + buckets * 8)?;
    let probing = match settings.text("probing") {
        "quadratic" => Probing::Quadratic,
        _ => Probing::Linear,
    };
    let probes = settings.count("probes") as u32 * unit;
    let hash = HashTable::new(buckets as u32, probes, probing).with_entries_of(unit);
    let (endurance, mlc_endurance) =
        (settings.count("slc_endurance") as u32, settings.count("mlc_endurance") as u32);
    let array = Array::new(slc, ProgramOrder::Sequential, endurance);
    let filter = match settings.text("filter") {
        "all" => Filter::all(),
        _ => Filter::new(
            Search::named(settings.text("threshold_search")),
            settings.count("threshold_every"),
            settings.count("threshold_first") as u32,
        ),
    };
    let log = SlcLog::new(array, hash);
    Ok(Cache {
        filter,
        throttle: Throttle::new(
            f64::from(endurance) / f64::from(mlc_endurance),
            settings.count("throttle_every") as u32,
            settings.count("throttle_step") as u32,
            settings.flag("throttle"),
        ),
        write_back: WriteBack::new(settings.flag("write_back")),
        sectors_of: vec![0; logical_blocks as usize],
        pull: settings.flag("pull"),
        idle_blocks: (f64::from(log.k_max()) * settings.number("idle_keep")) as u32,
        dynamic: settings.text("cache_mode") == "dynamic",
        log,
    })
}

fn times(settings: &Settings, mlc: &Geometry) -> [Times; 3] {
    let of = |[read, program, erase, ways]: [&str; 4]| Times {
        read: settings.duration(read),
        program: settings.duration(program),
        erase: settings.duration(erase),
        ways: settings.count(ways) as u32,
    };
    let slc = of(["slc_read_time", "slc_program_time", "slc_erase_time", "slc_ways"]);
    let own = of(["mlc_read_time", "mlc_program_time", "mlc_erase_time", "mlc_ways"]);
    // With one bit to the cell a page's worth of bytes takes as long as on SLC flash.
    let share = f64::from(mlc.page_bytes()) / settings.bytes("slc_page_size").max(1) as f64;
    let by_byte = |time: SimDuration| SimDuration::from_ns_f64(time.as_ns() as f64 * share);
    let dense = Times { read: by_byte(slc.read), program: by_byte(slc.program), ..own };
    [slc, own, dense]
}

fn info(
    settings: &Settings,
    mlc: &Geometry,
    blocks: u32,
    cache: Option<&Cache>,
    ram: Ram,
) -> ComponentInfo {
    let mut watts = [settings.number("active_power"); PowerState::COUNT];
    watts[PowerState::Idle as usize] = settings.number("idle_power");
    watts[PowerState::Standby as usize] = settings.number("idle_power");
    let slc = cache.map(|cache| cache.log.array.geometry());
    let slc_pages = slc.map_or(0, Geometry::pages);
    let slc_blocks = slc.map_or(0, Geometry::blocks);
    ComponentInfo {
        kind: "slc-mlc-ssd",
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
