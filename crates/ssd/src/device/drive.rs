//! The parameters that all drives with a [`FlashBackEnd`] share, and how it is built from them.

use super::back_end::FlashBackEnd;
use super::energy::{EnergyMeter, EnergyParams};
use super::stage::StageEntry;
use super::throttle::{ThrottleEntry, Throttled};
use super::{FrontEnd, faults};
use hybridsim_config::build::BuildInput;
use hybridsim_config::effect::Needs;
use hybridsim_config::param::{EntryChoice, Kind, Problem};
use hybridsim_config::registry::Entry;
use hybridsim_engine::{ComponentInfo, SimDuration, Stream};
use hybridsim_flash::array::{Array, ENDURANCE_MAX};
use hybridsim_flash::bit_errors::{ErrorEntry, ErrorInput};
use hybridsim_flash::event::{ECC_BITS, INITIAL_ERASES};
use hybridsim_flash::geometry::{Geometry, GeometryParams};
use hybridsim_flash::ops::FlashOps;
use hybridsim_flash::timing::{
    ONE_SHOT, SlcModeParams, TIMES, TimingEntry, TimingInput, TimingParams,
};

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
            needs &[Needs::Provides("timing", TIMES)],
            "Temperature and thermal throttling.";
        pub factory_bad: f64 = SHARE, default "0.0",
            "Fraction of blocks that are bad from the factory, drawn at random. The controller \
             uses the same number of blocks of each plane, so the worst plane decides; bad blocks \
             reduce over-provisioning.";
        pub grown_bad: f64 = SHARE, default "0.0",
            "Probability that an erase fails and its block is retired before the end of its \
             endurance.";
        pub initial_wear: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "0.0",
            "Wear of every block before the run, as a fraction of `endurance` (of that of a static \
             SLC cache): reduces the erases left; an error model includes these erases in the \
             wear. Erase counts in results begin at 0.";
        pub idle_after: Option<SimDuration> = Kind::Duration, optional,
            "Idle time after which the device starts background work (garbage collection, emptying \
             an SLC cache, refresh; erasing zones that were reset); without it there is none.";
        pub errors: EntryChoice = Kind::Entry(ErrorEntry::CATEGORY), default "none",
            "Bit errors of pages that are read, read retries, uncorrectable reads and refresh.";
        pub stages: Vec<EntryChoice> = Kind::Entries(StageEntry::CATEGORY), default "[]"
            needs &[Needs::Provides("timing", TIMES)],
            "Hardware of the controller that the pages of a request pass, in this order.";
        pub precondition_fill: f64 = Kind::Number { min: 0.0, max: 1.0 }, default "1.0"
            needs &[Needs::Not("precondition", &["none"])],
            "Fraction of the exported capacity that preconditioning writes, from address 0 on.";
    }
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

/// The translation of a drive, to its error model and to the front end.
#[derive(Clone, Copy)]
pub struct TranslationTraits {
    /// Registered name.
    pub name: &'static str,
    /// Moves data whose bit errors would become too many.
    pub refreshes: bool,
    /// Can be filled by the fault [`Fill`](hybridsim_engine::Injected::Fill).
    pub fills: bool,
}

impl DriveParams {
    /// The back end over `array`, which is new; of a device with blocks in SLC mode, with their
    /// parameters and the bits of a cell.
    ///
    /// # Errors
    /// All problems with the parameters.
    pub fn back_end(
        &self,
        input: &BuildInput<'_>,
        array: Array,
        slc: Option<(&SlcModeParams, u32)>,
        translation: TranslationTraits,
    ) -> Result<FlashBackEnd, Vec<Problem>> {
        let geometry = *array.geometry();
        let (entry, settings) = input.registry.chosen::<ErrorEntry>(&self.errors);
        let errors = (entry.build)(&ErrorInput {
            settings,
            geometry: &geometry,
            initial_cycles: self.initial_cycles(),
            translation: translation.name,
            refreshes: translation.refreshes,
            seed: input.seed,
            path: input.path,
        })?;
        let retry = errors.as_ref().and_then(|it| it.retry_time());
        let times = self.timing.operation_times(&geometry, slc, retry);
        let (entry, settings) = input.registry.chosen::<TimingEntry>(&self.timing.timing);
        self.check_times(&entry)?;
        self.check_units(&geometry, &entry)?;
        let timing = (entry.build)(&TimingInput { settings, geometry: &geometry, times })?;
        let mut stream = Stream::new(input.seed, &format!("{}/grown-bad", input.path));
        let mut flash = FlashOps::new(array.with_grown_bad_blocks(self.grown_bad, &mut stream));
        if self.initial_wear > 0.0 {
            flash.wear_out(self.initial_wear);
        }
        let mut back_end = FlashBackEnd::new(flash, timing);
        back_end.bit_errors = errors;
        back_end.search_time = self.timing.controller.search_time;
        back_end.host_buffer_time = self.timing.controller.host_buffer_time;
        for choice in &self.stages {
            let (entry, settings) = input.registry.chosen::<StageEntry>(choice);
            back_end.stages.push((entry.build)(settings)?);
        }
        Ok(back_end)
    }

    /// The front end of a device of `pages` logical pages that has this back end.
    ///
    /// # Errors
    /// All problems with the parameters.
    pub fn front_end(
        &self,
        input: &BuildInput<'_>,
        back_end: &mut FlashBackEnd,
        (pages, translation): (u64, TranslationTraits),
        info: ComponentInfo,
    ) -> Result<FrontEnd, Vec<Problem>> {
        let (entry, settings) = input.registry.chosen::<ThrottleEntry>(&self.throttle);
        let (timing, _) = input.registry.chosen::<TimingEntry>(&self.timing.timing);
        let has_times = timing.provides.contains(&TIMES);
        let throttle = match has_times {
            true => (entry.build)(settings, &info)?,
            false => None,
        };
        let throttled = throttle.map(Throttled::new);
        back_end.meter = throttled.is_some().then(|| EnergyMeter::new(&self.energy));
        Ok(FrontEnd {
            pauses_between_steps: true,
            reports_initial_free_blocks: true,
            faults: faults::supported(has_times, translation.fills),
            idle_after: self.idle_after,
            throttled,
            ..FrontEnd::new(input, translation.name, (pages, back_end.sectors_per_page()), info)
        })
    }

    /// Flash operations have a duration, unless there is no clock.
    fn check_times(&self, timing: &TimingEntry) -> Result<(), Vec<Problem>> {
        let has_times = timing.provides.contains(&TIMES);
        let missing = self.timing.missing().filter(|_| has_times);
        let message = "is missing; only `timing = \"none\"` needs no times";
        let problems: Vec<Problem> =
            missing.map(|key| Problem::new(key, message.to_owned())).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Several mapping units in a page of the chip are programmed together, or they would take a
    /// program each.
    fn check_units(&self, geometry: &Geometry, timing: &TimingEntry) -> Result<(), Vec<Problem>> {
        let shares_pages = self.geometry.map_unit.is_some() && geometry.program_pages() > 1;
        let provides = |capability| timing.provides.contains(&capability);
        if !shares_pages || provides(ONE_SHOT) || !provides(TIMES) {
            return Ok(());
        }
        let message = format!(
            "timing `{}` cannot program several units of a page together; use `queued`, `none`, or \
             a unit of a page",
            timing.description().name
        );
        Err(vec![Problem::new("map_unit", message)])
    }

    /// The geometry without blocks that are bad from the factory, and how many blocks are bad.
    ///
    /// # Errors
    /// When no blocks of a plane are left.
    pub fn without_factory_bad(
        &self,
        input: &BuildInput<'_>,
        geometry: Geometry,
    ) -> Result<(Geometry, u64), Vec<Problem>> {
        let share = self.factory_bad;
        if share == 0.0 {
            return Ok((geometry, 0));
        }
        let mut stream = Stream::new(input.seed, &format!("{}/factory-bad", input.path));
        let mut bad = || (0..geometry.blocks_per_plane()).filter(|_| stream.chance(share)).count();
        let by_plane: Vec<u64> = (0..geometry.planes()).map(|_| bad() as u64).collect();
        let worst = by_plane.iter().copied().max().unwrap_or(0);
        if worst == u64::from(geometry.blocks_per_plane()) {
            let message = "leaves a plane without good blocks; lower it, or add blocks";
            return Err(vec![Problem::new("factory_bad", message)]);
        }
        Ok((self.geometry.geometry_without(worst)?, by_plane.iter().sum()))
    }

    /// Erases of every block before the run.
    fn initial_cycles(&self) -> u32 {
        libm::round(self.initial_wear * f64::from(self.endurance)) as u32
    }

    /// Constants of a device with this back end, of which the host sees `exported` pages, and so
    /// many blocks are bad from the factory.
    pub fn constants(
        &self,
        back_end: &FlashBackEnd,
        exported: f64,
        factory_bad: u64,
    ) -> Vec<(&'static str, f64)> {
        let geometry = back_end.array().geometry();
        let physical = f64::from(geometry.pages());
        let mut constants = vec![
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
            ("factory_bad_blocks", factory_bad as f64),
        ];
        let worn = self.initial_cycles();
        constants.extend((worn > 0).then_some((INITIAL_ERASES, f64::from(worn))));
        let errors = back_end.bit_errors.as_ref();
        constants.extend(errors.map(|it| (ECC_BITS, it.ecc_bits() as f64)));
        constants
    }
}
