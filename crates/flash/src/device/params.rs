//! The parameters of kind `ssd`, and how one is built from them.

use super::throttle::{ThrottleEntry, Throttled};
use super::{EnergyMeter, FrontEnd, FtlBackend, Ssd};
use crate::array::{Array, ENDURANCE_MAX, ProgramOrder};
use crate::bit_errors::{BitErrors, ErrorEntry, ErrorInput};
use crate::event::joules::{ERASES, PROGRAMS, READS, VICTIM_SEARCH};
use crate::event::{ECC_BITS, INITIAL_ERASES, SLC_ENDURANCE};
use crate::ftl::{FtlEntry, FtlInput, REFRESH, SLC_MODE, SlcBlocks};
use crate::gc::SEARCH;
use crate::geometry::{Geometry, GeometryParams};
use crate::ops::FlashOps;
use crate::packed::width_for;
use crate::precondition::Precondition;
use crate::timing::{SlcModeParams, TimingEntry, TimingInput, TimingModel, TimingParams};
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{Built, EntryChoice, Kind, Problem, Settings};
use hybridsim_config::registry::{Description, Entry, Registry};
use hybridsim_engine::{Component, ComponentInfo, Contents, PowerState, SimDuration, Stream};

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
    build,
)
.with_memory(|settings, _| SsdParams::from_settings(settings).table_bytes())
.with_capacity(capacity_bytes);

hybridsim_config::params! {
    /// Energy of flash operations.
    pub struct OperationEnergy {
        pub read_energy: f64 = Kind::Energy, default "0uJ",
            "Energy per page of the map read (see `read_pages`).";
        pub program_energy: f64 = Kind::Energy, default "0uJ", "Energy per page programmed.";
        pub erase_energy: f64 = Kind::Energy, default "0uJ", "Energy per block erased.";
    }
}

hybridsim_config::params! {
    /// Energy and power of a device.
    pub struct EnergyParams includes { pub operations: OperationEnergy } {
        pub search_energy: f64 = Kind::Energy, default "0uJ"
            needs &[Needs::Provides("^.ftl.gc", SEARCH)],
            "Energy per block examined by garbage collection policies that search.";
        pub ram_power: f64 = Kind::Power, default "0W",
            "Power per MiB of the RAM that holds the mapping, drawn at all times.";
        pub idle_power: f64 = Kind::Power, default "0W", "Power while idle.";
        pub active_power: f64 = Kind::Power, default "0W",
            "Power from a request's arrival until the last of its flash operations ends.";
        pub standby_power: Option<f64> = Kind::Power, optional,
            "Power in standby; reported only.";
    }
}

impl EnergyParams {
    /// Power by state.
    pub fn watts(&self) -> [f64; PowerState::COUNT] {
        let mut watts = [0.0; PowerState::COUNT];
        watts[PowerState::Idle as usize] = self.idle_power;
        watts[PowerState::Active as usize] = self.active_power;
        watts[PowerState::Standby as usize] = self.standby_power.unwrap_or(0.0);
        watts
    }

    /// Energies of operations by name.
    pub fn joules(&self) -> Vec<(&'static str, f64)> {
        let OperationEnergy { read_energy, program_energy, erase_energy } = self.operations;
        vec![(READS, read_energy), (PROGRAMS, program_energy), (ERASES, erase_energy)]
    }
}

hybridsim_config::choices! {
    /// Flash that is read after a power failure to rebuild the mapping.
    enum Recovery { None = "none", Blocks = "blocks", Pages = "pages" }
}

/// Program/erase cycles.
const CYCLES: Kind = Kind::Count { min: 1, max: ENDURANCE_MAX as u64 };
const SHARE: Kind = Kind::Number { min: 0.0, max: 0.5 };

hybridsim_config::params! {
    /// Parameters that SSDs with any translation layer have.
    pub struct DriveParams includes { pub geometry: GeometryParams, pub timing: TimingParams } {
        pub endurance: u32 = CYCLES, default "100000",
            "Program/erase cycles per block; a block is retired after its last. The device \
             operates while the remaining blocks hold the exported capacity and what the \
             translation layer needs to move data; then writes fail as worn out, which ends the \
             run. Written data remain readable.";
        pub energy: EnergyParams = Kind::Table(EnergyParams::PARAMS), default "{}",
            "Energy of operations and power by state.";
        pub throttle: EntryChoice = Kind::Entry(ThrottleEntry::CATEGORY), default "none"
            needs &[Needs::Not("timing", &["none"])],
            "Temperature and thermal throttling.";
        pub precondition_fill: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "1.0"
            needs &[Needs::Not("precondition", &["none"])],
            "Fraction of the exported capacity that preconditioning writes, from address 0 on.";
    }
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
        program_order: ProgramOrder = Kind::Choice(ProgramOrder::NAMES), default "sequential",
            "The order in which the chip allows the pages of a block to be programmed.";
        factory_bad: f64 = SHARE, default "0.0",
            "Fraction of blocks that are bad from the factory, drawn at random. The controller \
             uses the same number of blocks of each plane, so the worst plane decides; bad blocks \
             reduce over-provisioning.";
        grown_bad: f64 = SHARE, default "0.0",
            "Probability that an erase fails and its block is retired before the end of its \
             endurance.";
        initial_wear: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.0",
            "Wear of every block before the run, as a fraction of `endurance` (of that of a static \
             SLC cache): reduces the erases left; an error model includes these erases in the \
             wear. Erase counts in results begin at 0.";
        recovery: Recovery = Kind::Choice(Recovery::NAMES), default "blocks"
            needs &[Needs::given("^.power_cut_every")],
            "What is read after a power failure to rebuild the mapping, by all dies in parallel: \
             nothing, a summary page of every block (assumed), or every page's spare area.";
        idle_after: Option<SimDuration> = Kind::Duration, optional,
            "Idle time after which the device starts background work (garbage collection, emptying \
             an SLC cache, refresh); without it there is none.";
        precondition: Precondition = Kind::Choice(Precondition::NAMES), default "none",
            "Written before the run, without simulated time: `fill`, every page in order; \
             `fill-random`, every page in random order; `steady`, every page in order, then random \
             pages until write amplification is stable; `steady-drawn`, the state that random \
             writes lead to, drawn from its distribution: for large devices with the FTL `page`.";
        errors: EntryChoice = Kind::Entry(ErrorEntry::CATEGORY), default "none",
            "Bit errors of pages that are read, read retries, uncorrectable reads and refresh.";
    }
}

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Component>, Vec<Problem>> {
    Ok(Box::new(build_ssd(input)?))
}

/// Bits of a page in the map, of which every FTL has at most one that grows with the device.
const MAP_BITS_PER_PAGE: f64 = u32::BITS as f64;
/// Page states, as bits.
const STATE_BITS_PER_PAGE: f64 = 2.0;
/// State of a block, and its place in lists of the FTL and its policies.
const BYTES_PER_BLOCK: u64 = 64;

/// What the tables of a device take in memory once every page has been written, rounded up.
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
    let geometry = Geometry::new(&params.drive.geometry.shape());
    geometry.map_or(0, |geometry| {
        let pages = geometry.exported_pages(params.over_provisioning);
        u64::from(pages) * u64::from(geometry.page_bytes())
    })
}

/// Rejects a device whose tables take more than the memory there is, before they are allocated.
/// `param` sets the size.
pub(crate) fn check_memory(param: &'static str, bytes: u64) -> Result<(), Vec<Problem>> {
    let mut probe: Vec<u8> = Vec::new();
    if usize::try_from(bytes).is_ok_and(|bytes| probe.try_reserve_exact(bytes).is_ok()) {
        return Ok(());
    }
    let mib = bytes >> 20;
    let message = format!("the device's tables need about {mib} MiB, more than the free memory");
    Err(vec![Problem::new(param, message)])
}

/// Checks that a steady state of `pages` logical pages can be drawn for an FTL that writes this
/// many pages before it collects garbage.
fn check_drawn(pages: u32, before_collection: Option<u64>) -> Result<(), Vec<Problem>> {
    let message = match before_collection {
        None => "`steady-drawn` is for the FTL `page` without hot/cold separation; use `steady`",
        Some(flash) if flash <= u64::from(pages) => {
            "`steady-drawn` needs more free blocks than garbage collection keeps; raise \
             over_provisioning or blocks_per_plane, or use `steady`"
        }
        Some(_) => return Ok(()),
    };
    Err(vec![Problem::new("precondition", message)])
}

/// Builds the concrete type.
///
/// # Errors
/// All problems with the parameters.
pub fn build_ssd(input: &BuildInput<'_>) -> Result<Ssd, Vec<Problem>> {
    let params = SsdParams::from_settings(input.settings);
    let drive = &params.drive;
    let geometry = Geometry::new(&drive.geometry.shape())?;
    let exported_pages = geometry.exported_pages(params.over_provisioning);
    check_memory("blocks_per_plane", params.initial_table_bytes(exported_pages))?;
    if exported_pages == 0 {
        let message = "leaves no page to export; lower it, or add blocks";
        return Err(vec![Problem::new("over_provisioning", message)]);
    }
    let (geometry, bad) = params.without_factory_bad(input, geometry, exported_pages)?;
    let (entry, ftl_settings) = input.registry.chosen::<FtlEntry>(&params.ftl);
    let mut ftl = (entry.build)(&FtlInput {
        settings: ftl_settings,
        geometry: &geometry,
        exported_pages,
        registry: input.registry,
        seed: input.seed,
        path: input.path,
    })?;
    let ftl_name = entry.description().name;
    let refreshes = entry.provides.contains(&REFRESH);
    let errors = params.error_model(input, &geometry, (ftl_name, refreshes))?;
    let properties = ftl.properties();
    let slc = properties.slc_blocks;
    let slc_endurance = slc.and_then(|slc| params.slc_endurance(&slc));
    let retry = errors.as_ref().and_then(|it| it.retry_time());
    let slc_times = slc.map(|slc| (&params.slc, slc.bits));
    let timing = drive.timing_model(input, &geometry, (slc_times, retry))?;
    let mut flash = FlashOps::new(params.array(input, geometry, (exported_pages, slc)));
    if params.initial_wear > 0.0 {
        flash.wear_out(params.initial_wear);
    }
    flash.set_recording(false);
    if let Some(maintenance) = ftl.maintenance() {
        let prepared = maintenance.prepare(&mut flash);
        prepared.map_err(|error| vec![Problem::new("ftl", error.to_string())])?;
    }
    flash.set_recording(true);
    let precondition_pages = (f64::from(exported_pages) * drive.precondition_fill) as u32;
    if params.precondition == Precondition::SteadyDrawn {
        check_drawn(precondition_pages, properties.pages_before_collection)?;
    }
    let sectors_per_page = geometry.sectors_per_page();
    let mut info = params.info(&geometry, exported_pages, (properties.mapping_ram_bytes, bad));
    info.constants.extend(slc_endurance.map(|erases| (SLC_ENDURANCE, f64::from(erases))));
    info.constants.extend(errors.as_ref().map(|it| (ECC_BITS, it.ecc_bits() as f64)));
    let throttled = drive.throttle(input.registry, &info)?;
    let meter = throttled.is_some().then(|| EnergyMeter::new(&drive.energy));
    let front = FrontEnd {
        capacity: u64::from(exported_pages) * u64::from(sectors_per_page),
        idle_after: params.idle_after,
        power_failures: Stream::new(input.seed, &format!("{}/power", input.path)),
        throttled,
        info,
    };
    let backend = FtlBackend {
        ftl_name,
        ftl,
        properties,
        flash,
        sectors_per_page,
        search_time: drive.timing.controller.search_time,
        host_buffer_time: drive.timing.controller.host_buffer_time,
        timing,
        bit_errors: errors,
        unreadable: false,
        meter,
        recovery: params.recovery_time(&geometry),
        precondition: params.precondition,
        precondition_pages,
        precondition_stream: Stream::new(input.seed, &format!("{}/precondition", input.path)),
        versions: Contents::default(),
        page: vec![0; sectors_per_page as usize],
    };
    Ok(Ssd::new(front, backend))
}

impl DriveParams {
    /// The timing model; of a device with blocks in SLC mode, with their parameters and the bits of
    /// a cell.
    ///
    /// # Errors
    /// All problems with the parameters.
    pub fn timing_model(
        &self,
        input: &BuildInput<'_>,
        geometry: &Geometry,
        (slc, retry): (Option<(&SlcModeParams, u32)>, Option<SimDuration>),
    ) -> Built<dyn TimingModel> {
        let pages = &self.geometry;
        pages.divides_block("read_pages", pages.read_pages).map_or(Ok(()), |it| Err(vec![it]))?;
        let times = self.timing.operation_times(geometry, slc, retry);
        let (entry, settings) = input.registry.chosen::<TimingEntry>(&self.timing.timing);
        (entry.build)(&TimingInput { settings, geometry, pages, times })
    }

    /// The throttle of a device with the power in `info`.
    ///
    /// # Errors
    /// All problems with the parameters.
    pub fn throttle(
        &self,
        registry: &Registry,
        info: &ComponentInfo,
    ) -> Result<Option<Throttled>, Vec<Problem>> {
        if self.timing.timing.name == "none" {
            return Ok(None);
        }
        let (entry, settings) = registry.chosen::<ThrottleEntry>(&self.throttle);
        Ok((entry.build)(settings, info)?.map(Throttled::new))
    }

    /// Constants of a device with this geometry, of which the host sees `exported` pages.
    pub fn constants(&self, geometry: &Geometry, exported: f64) -> Vec<(&'static str, f64)> {
        let physical = f64::from(geometry.pages());
        vec![
            ("channels", f64::from(geometry.channels())),
            ("dies", f64::from(geometry.dies())),
            ("planes", f64::from(geometry.planes())),
            ("blocks", f64::from(geometry.blocks())),
            ("pages_per_block", f64::from(geometry.pages_per_block())),
            ("page_bytes", f64::from(geometry.page_bytes())),
            ("physical_pages", physical),
            ("exported_pages", exported),
            ("over_provisioning", physical / exported - 1.0),
            ("endurance", f64::from(self.endurance)),
        ]
    }
}

impl SsdParams {
    /// Memory for the tables once every page has been written; 0 with an impossible geometry.
    fn table_bytes(&self) -> u64 {
        Geometry::new(&self.drive.geometry.shape()).as_ref().map_or(0, |geometry| {
            table_bytes(geometry, geometry.exported_pages(self.over_provisioning))
        })
    }

    /// What of them is needed when the run begins: most memory is taken only as pages are written.
    fn initial_table_bytes(&self, exported_pages: u32) -> u64 {
        let written = match self.precondition {
            Precondition::None => 0.0,
            _ => self.drive.precondition_fill,
        };
        // Some FTLs fill in their map at once.
        let map = (f64::from(exported_pages) * MAP_BITS_PER_PAGE / 8.0) as u64;
        map.max((self.table_bytes() as f64 * written) as u64)
    }

    /// Erases of every block before the run.
    fn initial_cycles(&self) -> u32 {
        libm::round(self.initial_wear * f64::from(self.drive.endurance)) as u32
    }

    /// Endurance of the blocks of the static SLC cache, if there are any and it is not that of all.
    fn slc_endurance(&self, slc: &SlcBlocks) -> Option<u32> {
        let endurance = self.slc.endurance.filter(|_| slc.static_per_plane > 0)?;
        (endurance != self.drive.endurance).then_some(endurance)
    }

    fn error_model(
        &self,
        input: &BuildInput<'_>,
        geometry: &Geometry,
        (ftl, refreshes): (&'static str, bool),
    ) -> Result<Option<Box<BitErrors>>, Vec<Problem>> {
        let (entry, settings) = input.registry.chosen::<ErrorEntry>(&self.errors);
        let timing = self.drive.timing.timing.name.as_str();
        (entry.build)(&ErrorInput {
            settings,
            geometry,
            read_pages: self.drive.geometry.read_pages,
            reads_several_pages: matches!(timing, "queued" | "serial"),
            initial_cycles: self.initial_cycles(),
            ftl,
            refreshes,
            seed: input.seed,
            path: input.path,
        })
    }

    /// New flash.
    fn array(
        &self,
        input: &BuildInput<'_>,
        geometry: Geometry,
        (exported_pages, slc): (u32, Option<SlcBlocks>),
    ) -> Array {
        let mut stream = Stream::new(input.seed, &format!("{}/grown-bad", input.path));
        let array = Array::new(geometry, self.program_order, self.drive.endurance);
        let mut array = array.with_logical_pages(exported_pages);
        if let Some(slc) = slc {
            array = array.with_slc_mode(slc.pages_per_block);
            if let Some(endurance) = self.slc_endurance(&slc) {
                array = array.with_static_cache(slc.static_per_plane, endurance);
            }
        }
        array.with_grown_bad_blocks(self.grown_bad, &mut stream)
    }

    /// Time to read what the mapping is rebuilt from, with all dies in parallel.
    fn recovery_time(&self, geometry: &Geometry) -> SimDuration {
        let reads = match self.recovery {
            Recovery::None => 0,
            Recovery::Blocks => u64::from(geometry.blocks()),
            Recovery::Pages => u64::from(geometry.pages()),
        };
        self.drive.timing.chip.read_time * reads.div_ceil(u64::from(geometry.dies()))
    }

    /// The geometry without blocks that are bad from the factory, and how many blocks are bad.
    /// The good blocks have to hold the pages that are `exported`.
    fn without_factory_bad(
        &self,
        input: &BuildInput<'_>,
        geometry: Geometry,
        exported: u32,
    ) -> Result<(Geometry, u64), Vec<Problem>> {
        let share = self.factory_bad;
        if share == 0.0 {
            return Ok((geometry, 0));
        }
        let mut stream = Stream::new(input.seed, &format!("{}/factory-bad", input.path));
        let mut bad = || (0..geometry.blocks_per_plane()).filter(|_| stream.chance(share)).count();
        let by_plane: Vec<u64> = (0..geometry.planes()).map(|_| bad() as u64).collect();
        let worst = by_plane.iter().copied().max().unwrap_or(0);
        let mut shape = self.drive.geometry.shape();
        shape.blocks_per_plane -= worst;
        if shape.blocks_per_plane == 0 {
            let message = "leaves a plane without good blocks; lower it, or add blocks";
            return Err(vec![Problem::new("factory_bad", message)]);
        }
        let left = Geometry::new(&shape)?;
        if left.pages() < exported {
            let message = format!(
                "leaves {} good pages for the {exported} pages that over_provisioning exports; \
                 lower it, or raise over_provisioning or blocks_per_plane",
                left.pages()
            );
            return Err(vec![Problem::new("factory_bad", message)]);
        }
        Ok((left, by_plane.iter().sum()))
    }

    fn info(
        &self,
        geometry: &Geometry,
        exported: u32,
        (ram_bytes, factory_bad): (u64, u64),
    ) -> ComponentInfo {
        let energy = &self.drive.energy;
        let ram_watts = energy.ram_power * ram_bytes as f64 / f64::from(1 << 20);
        let mut operation_joules = energy.joules();
        operation_joules.push((VICTIM_SEARCH, energy.search_energy));
        let mut constants = self.drive.constants(geometry, f64::from(exported));
        constants.extend([
            ("mapping_ram_bytes", ram_bytes as f64),
            ("factory_bad_blocks", factory_bad as f64),
        ]);
        let worn = self.initial_cycles();
        constants.extend((worn > 0).then_some((INITIAL_ERASES, f64::from(worn))));
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
