//! The parameters of kind `ssd`, and how one is built from them.

use super::drive::{DriveParams, TranslationTraits, check_memory};
use super::merge::MergeBuffer;
use super::{FrontEnd, FtlTranslation, Ssd};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{EntryChoice, Kind, Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::{ComponentInfo, SimDuration, Stream};
use hybridsim_flash::array::{Array, ProgramOrder};
use hybridsim_flash::event::SLC_ENDURANCE;
use hybridsim_flash::event::joules::VICTIM_SEARCH;
use hybridsim_flash::ftl::{FtlEntry, FtlInput, Properties, REFRESH, SLC_MODE, SlcBlocks};
use hybridsim_flash::geometry::Geometry;
use hybridsim_flash::packed::width_for;
use hybridsim_flash::precondition::Precondition;
use hybridsim_flash::timing::SlcModeParams;

/// The devices of this crate.
pub const ENTRIES: &[ComponentEntry] = &[SSD, crate::slc_mlc::ENTRY, crate::zns::ENTRY];

/// The kind that [`build_ssd`] builds.
pub const SSD_KIND: &str = "ssd";

const SSD: ComponentEntry = ComponentEntry::new(
    Description {
        name: SSD_KIND,
        summary: "An SSD: a flash translation layer over channels and dies of NAND flash.",
        origin: "structure of flashsim (FlashSim), section 3; SSD extensions of DiskSim",
        params: SsdParams::PARAMS,
    },
    |input| Ok(Box::new(build_ssd(input)?)),
)
.with_memory(|settings, _| SsdParams::from_settings(settings).table_bytes())
.with_capacity(capacity_bytes);

hybridsim_config::choices! {
    /// Flash that is read after a power failure to rebuild the mapping.
    enum Recovery { None = "none", Blocks = "blocks", Pages = "pages" }
}

hybridsim_config::params! {
    /// Parameters of kind `ssd`.
    pub struct SsdParams includes { drive: DriveParams } {
        over_provisioning: f64 = Kind::Number { min: 0.0, max: 4.0 }, default "0.07",
            "Over-provisioning as (physical - exported) / exported capacity; 0.07 is 7 %.";
        ftl: EntryChoice = Kind::Entry(FtlEntry::CATEGORY), default "page",
            "The flash translation layer.";
        slc: SlcModeParams = Kind::Table(SlcModeParams::PARAMS), default "{}"
            needs &[Needs::Provides("ftl", SLC_MODE)],
            "Times and endurance of blocks in SLC mode.";
        merge_buffer: u64 = Kind::Bytes, default "0B",
            "Memory in which mapping units that are written in part wait for the rest, beside the \
             write buffer and protected from power failures. When it is full, the unit written \
             least recently is written, after the rest has been read. 0 writes each part at once.";
        program_order: ProgramOrder = Kind::Choice(ProgramOrder::NAMES), default "sequential",
            "The order in which the chip allows the pages of a block to be programmed.";
        recovery: Recovery = Kind::Choice(Recovery::NAMES), default "blocks"
            needs &[Needs::given("^.power_cut_every")],
            "What is read after a power failure to rebuild the mapping, by all dies in parallel: \
             nothing, a summary page of every block (assumed), or every page's spare area.";
        precondition: Precondition = Kind::Choice(Precondition::NAMES), default "none",
            "Written before the run, without simulated time: `fill`, every page in order; \
             `fill-random`, every page in random order; `steady`, every page in order, then random \
             pages until write amplification is stable; `steady-drawn`, the state that random \
             writes lead to, drawn from its distribution: for large devices with the FTL `page`.";
    }
}

/// Bits of a page in the map, of which every FTL has at most one that grows with the device.
const MAP_BITS_PER_PAGE: f64 = u32::BITS as f64;
/// Page states, as bits.
const STATE_BITS_PER_PAGE: f64 = 2.0;
/// State of a block, and its place in lists of the FTL and its policies.
const BYTES_PER_BLOCK: u64 = 64;

/// Memory for the tables of a device once every page has been written, rounded up.
fn table_bytes(geometry: &Geometry, exported_pages: u32) -> u64 {
    let owner = f64::from(width_for(exported_pages.saturating_sub(1)));
    let bits = f64::from(geometry.pages()) * (owner + STATE_BITS_PER_PAGE)
        + f64::from(exported_pages) * MAP_BITS_PER_PAGE;
    (bits / 8.0) as u64 + u64::from(geometry.blocks()) * BYTES_PER_BLOCK
}

/// Exported capacity of an SSD with these settings; factory-bad blocks, which reduce it, are not
/// known before it is built.
fn capacity_bytes(settings: &Settings) -> u64 {
    let params = SsdParams::from_settings(settings);
    let geometry = params.drive.geometry.geometry();
    geometry.map_or(0, |geometry| {
        let pages = geometry.exported_pages(params.over_provisioning);
        u64::from(pages) * u64::from(geometry.page_bytes())
    })
}

/// Checks that a steady state of `pages` logical pages can be drawn for an FTL that writes this
/// many pages before it collects garbage.
fn check_drawn(pages: u32, before_collection: Option<u64>) -> Result<(), Vec<Problem>> {
    let message = match before_collection {
        None => "`steady-drawn` is for the FTL `page` without placement; use `steady`",
        Some(flash) if flash <= u64::from(pages) => {
            "`steady-drawn` needs more free blocks than garbage collection keeps; raise \
             over_provisioning or blocks_per_plane, or use `steady`"
        }
        Some(_) => return Ok(()),
    };
    Err(vec![Problem::new("precondition", message)])
}

/// Constant of an SSD: over-provisioning without the blocks that its FTL keeps for itself.
pub const EFFECTIVE_OVER_PROVISIONING: &str = "effective_over_provisioning";

/// Builds the concrete type.
///
/// # Errors
/// All problems with the parameters.
pub fn build_ssd(input: &BuildInput<'_>) -> Result<Ssd, Vec<Problem>> {
    let params = SsdParams::from_settings(input.settings);
    let drive = &params.drive;
    let geometry = drive.geometry.geometry()?;
    let exported_pages = geometry.exported_pages(params.over_provisioning);
    check_memory("blocks_per_plane", params.initial_table_bytes(exported_pages))?;
    if exported_pages == 0 {
        let message = "leaves no page to export; lower it, or add blocks";
        return Err(vec![Problem::new("over_provisioning", message)]);
    }
    let (geometry, bad) = drive.without_factory_bad(input, geometry)?;
    check_holds(&geometry, exported_pages)?;
    let (entry, ftl_settings) = input.registry.chosen::<FtlEntry>(&params.ftl);
    let mut ftl = (entry.build)(&FtlInput {
        settings: ftl_settings,
        geometry: &geometry,
        exported_pages,
        registry: input.registry,
        seed: input.seed,
        path: input.path,
    })?;
    let properties = ftl.properties();
    let translation = TranslationTraits {
        name: entry.description().name,
        refreshes: entry.provides.contains(&REFRESH),
        fills: !properties.is_raw,
    };
    let slc = properties.slc_blocks;
    let array = params.array(geometry, (exported_pages, slc));
    let slc_times = slc.map(|slc| (&params.slc, slc.bits));
    let mut back_end = drive.back_end(input, array, slc_times, translation)?;
    back_end.flash.set_recording(false);
    if let Some(maintenance) = ftl.maintenance() {
        let prepared = maintenance.prepare(&mut back_end.flash);
        prepared.map_err(|error| vec![Problem::new("ftl", error.to_string())])?;
    }
    back_end.flash.set_recording(true);
    let precondition_pages = (f64::from(exported_pages) * drive.precondition_fill) as u32;
    if params.precondition == Precondition::SteadyDrawn {
        check_drawn(precondition_pages, properties.pages_before_collection)?;
    }
    let mut constants = drive.constants(&back_end, f64::from(exported_pages), bad);
    let left = properties.data_pages.map(|pages| pages as f64 / f64::from(exported_pages) - 1.0);
    constants.extend(left.map(|left| (EFFECTIVE_OVER_PROVISIONING, left)));
    constants.extend(drive.geometry.map_unit.map(|_| granularity(&geometry)).into_iter().flatten());
    let info = params.info(constants, &properties);
    let pages = u64::from(exported_pages);
    let front = FrontEnd {
        pauses_between_steps: slc.is_none(),
        preconditions: params.precondition != Precondition::None,
        looks_ahead: geometry.outgrows_caches(),
        unsaveable: properties.unsaveable,
        ..drive.front_end(input, &mut back_end, (pages, translation), info)?
    };
    let translation = FtlTranslation {
        ftl,
        merge: params.merge_buffer(&geometry, exported_pages)?,
        back_end,
        recovery: params.recovery_time(&geometry),
        precondition: params.precondition,
        precondition_pages,
        precondition_stream: Stream::new(input.seed, &format!("{}/precondition", input.path)),
    };
    Ok(Ssd::new(front, translation))
}

/// Fields of an NVMe namespace that follow from the mapping unit, in bytes: preferred write
/// granularity (NPWG) and alignment (NPWA), and the optimal write size (NOWS), which one program of
/// all planes of a die writes.
fn granularity(geometry: &Geometry) -> [(&'static str, f64); 3] {
    let unit = f64::from(geometry.page_bytes());
    let planes = geometry.planes() / geometry.dies();
    let optimal = unit * f64::from(geometry.program_pages()) * f64::from(planes);
    [
        ("preferred_write_granularity_bytes", unit),
        ("preferred_write_alignment_bytes", unit),
        ("optimal_write_size_bytes", optimal),
    ]
}

/// Checks that the good blocks hold the pages that are `exported`.
fn check_holds(good: &Geometry, exported: u32) -> Result<(), Vec<Problem>> {
    if good.pages() >= exported {
        return Ok(());
    }
    let message = format!(
        "leaves {} good pages for the {exported} pages that over_provisioning exports; lower it, \
         or raise over_provisioning or blocks_per_plane",
        good.pages()
    );
    Err(vec![Problem::new("factory_bad", message)])
}

impl SsdParams {
    /// Memory for the tables once every page has been written; 0 with an impossible geometry.
    fn table_bytes(&self) -> u64 {
        self.drive.geometry.geometry().as_ref().map_or(0, |geometry| {
            table_bytes(geometry, geometry.exported_pages(self.over_provisioning))
        })
    }

    /// Memory for the tables when the run begins: most is taken only as pages are written.
    fn initial_table_bytes(&self, exported_pages: u32) -> u64 {
        let written = match self.precondition {
            Precondition::None => 0.0,
            _ => self.drive.precondition_fill,
        };
        // Some FTLs fill in their map at once.
        let map = (f64::from(exported_pages) * MAP_BITS_PER_PAGE / 8.0) as u64;
        map.max((self.table_bytes() as f64 * written) as u64)
    }

    /// The merge buffer, if there is one.
    fn merge_buffer(
        &self,
        geometry: &Geometry,
        pages: u32,
    ) -> Result<Option<MergeBuffer>, Vec<Problem>> {
        let unit = u64::from(geometry.page_bytes());
        if self.merge_buffer > 0 && self.merge_buffer < unit {
            let message = format!("holds no mapping unit, of {unit} bytes");
            return Err(vec![Problem::new("merge_buffer", message)]);
        }
        let units = (self.merge_buffer / unit) as usize;
        Ok((units > 0).then(|| MergeBuffer::new(units, geometry.sectors_per_page(), pages)))
    }

    /// Endurance of the blocks of the static SLC cache, if there are any and it is not that of all.
    fn slc_endurance(&self, slc: &SlcBlocks) -> Option<u32> {
        let endurance = self.slc.endurance.filter(|_| slc.static_per_plane > 0)?;
        (endurance != self.drive.endurance).then_some(endurance)
    }

    /// New flash.
    fn array(&self, geometry: Geometry, (exported_pages, slc): (u32, Option<SlcBlocks>)) -> Array {
        let array = Array::new(geometry, self.program_order, self.drive.endurance);
        let mut array = array.with_logical_pages(exported_pages);
        if let Some(slc) = slc {
            array = array.with_slc_mode(slc.pages_per_block);
            if let Some(endurance) = self.slc_endurance(&slc) {
                array = array.with_static_cache(slc.static_per_plane, endurance);
            }
        }
        array
    }

    /// Time to read what the mapping is rebuilt from, with all dies in parallel.
    fn recovery_time(&self, geometry: &Geometry) -> SimDuration {
        let reads = match self.recovery {
            Recovery::None => 0,
            Recovery::Blocks => u64::from(geometry.blocks()),
            Recovery::Pages => u64::from(geometry.pages()),
        };
        let read_time = self.drive.timing.read_time.unwrap_or_default();
        read_time * reads.div_ceil(u64::from(geometry.dies()))
    }

    fn info(&self, mut constants: Vec<(&'static str, f64)>, ftl: &Properties) -> ComponentInfo {
        let energy = &self.drive.energy;
        let ram_watts = energy.ram_power * ftl.mapping_ram_bytes as f64 / f64::from(1 << 20);
        let mut operation_joules = energy.joules();
        operation_joules.push((VICTIM_SEARCH, energy.search_energy));
        constants.push(("mapping_ram_bytes", ftl.mapping_ram_bytes as f64));
        let slc_endurance = ftl.slc_blocks.and_then(|slc| self.slc_endurance(&slc));
        constants.extend(slc_endurance.map(|erases| (SLC_ENDURANCE, f64::from(erases))));
        ComponentInfo {
            kind: SSD_KIND,
            watts: Some(energy.watts()),
            operation_joules,
            always_watts: vec![("mapping_ram", ram_watts)],
            constants,
            ..ComponentInfo::default()
        }
    }
}
