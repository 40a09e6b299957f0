//! What flash devices did, how evenly they wear, and how long they will last.

use super::level::{Level, ratio, set_level};
use super::wear::{self, EraseSpread, Lifetime};
use hybridsim_engine::{ComponentInfo, SECTOR_BYTES};
use hybridsim_flash::event::joules::{ERASES, PROGRAMS, READS, VICTIM_SEARCH};
use hybridsim_flash::{Cause, ECC_BITS, FlashEvent};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct FlashFold {
    /// Pages read, by cause.
    reads: [u64; Cause::COUNT],
    /// Pages programmed, by cause.
    pub(crate) programs: [u64; Cause::COUNT],
    erases: [u64; Cause::COUNT],
    /// Erases of each block that was erased. Only sums and maxima of them are reported, so their
    /// order does not matter.
    erases_by_block: FxHashMap<u32, u64>,
    unwritten_reads: u64,
    /// Sectors of the writes whose length is not that of their programs.
    host_sectors: u64,
    /// Pages programmed for these writes.
    host_pages: u64,
    /// Sectors programmed, where pages differ in size.
    sectors_programmed: u64,
    searches: u64,
    searched_blocks: u64,
    /// Reads that were tried again, by the number of retries.
    reads_by_retries: BTreeMap<u32, u64>,
    uncorrectable: [u64; Cause::COUNT],
    free_blocks: Option<Level>,
    /// Blocks by erase count, at the end.
    pub(crate) wear: BTreeMap<u32, u64>,
}

impl FlashFold {
    pub(crate) fn measured_from(&self, from_ns: u64) -> Self {
        let free_blocks = self.free_blocks.map(|level| level.measured_from(from_ns));
        Self { free_blocks, ..Self::default() }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, event: FlashEvent, now: u64) {
        match event {
            FlashEvent::Read { cause, .. } => self.reads[cause as usize] += 1,
            FlashEvent::Program { cause, .. } => self.programs[cause as usize] += 1,
            FlashEvent::DieBusy { .. } | FlashEvent::ChannelBusy { .. } => {}
            _ => self.add_rare(event, now),
        }
    }

    #[inline(never)]
    fn add_rare(&mut self, event: FlashEvent, now: u64) {
        match event {
            FlashEvent::Erase { cause, block, .. } => {
                self.erases[cause as usize] += 1;
                *self.erases_by_block.entry(block).or_default() += 1;
            }
            FlashEvent::FreeBlocks { free } => {
                set_level(&mut self.free_blocks, now, u64::from(free));
            }
            FlashEvent::ReadUnwritten { pages } => self.unwritten_reads += u64::from(pages),
            FlashEvent::HostWrite { sectors, pages } => {
                self.host_sectors += u64::from(sectors);
                self.host_pages += u64::from(pages);
            }
            FlashEvent::SectorsProgrammed { sectors } => {
                self.sectors_programmed += u64::from(sectors);
            }
            FlashEvent::VictimSearch { blocks } => {
                self.searches += 1;
                self.searched_blocks += u64::from(blocks);
            }
            FlashEvent::ReadRetried { retries, .. } => {
                *self.reads_by_retries.entry(retries).or_default() += 1;
            }
            FlashEvent::Uncorrectable { cause, .. } => self.uncorrectable[cause as usize] += 1,
            FlashEvent::Wear { erases, blocks } => {
                *self.wear.entry(erases).or_default() += u64::from(blocks);
            }
            _ => {}
        }
    }

    /// Operations that draw energy: each retry reads the cells again.
    pub(super) fn energy_count(&self, operation: &str) -> u64 {
        let retries = if operation == READS { self.retries() } else { 0 };
        self.count(operation) + retries
    }

    fn retries(&self) -> u64 {
        self.reads_by_retries.iter().map(|(&retries, reads)| u64::from(retries) * reads).sum()
    }

    /// Number of times an operation that takes energy was performed.
    pub(crate) fn count(&self, operation: &str) -> u64 {
        match operation {
            READS => self.reads.iter().sum(),
            PROGRAMS => self.programs.iter().sum(),
            ERASES => self.erases.iter().sum(),
            VICTIM_SEARCH => self.searched_blocks,
            _ => 0,
        }
    }

    /// Bytes written by the host, and bytes programmed.
    fn bytes(&self, info: &ComponentInfo) -> (u64, u64) {
        let page_bytes = wear::constant(info, "page_bytes").unwrap_or(0.0) as u64;
        let whole = self.programs[Cause::Host as usize].saturating_sub(self.host_pages);
        let host = whole * page_bytes + self.host_sectors * SECTOR_BYTES;
        let media = self.count(PROGRAMS) * page_bytes + self.sectors_programmed * SECTOR_BYTES;
        (host, media)
    }

    /// `None` for a device without bit errors.
    fn bit_errors(&self, info: &ComponentInfo) -> Option<BitErrors> {
        info.constants.iter().find(|(name, _)| *name == ECC_BITS)?;
        let by_retries = &self.reads_by_retries;
        let retries = self.retries();
        let uncorrectable: u64 = self.uncorrectable.iter().sum();
        Some(BitErrors {
            retried_reads: by_retries.values().sum(),
            retries,
            retries_per_read: ratio(retries as f64, self.count(READS) as f64),
            reads_by_retries: by_retries.iter().map(|(n, reads)| (n.to_string(), *reads)).collect(),
            uncorrectable_reads: uncorrectable,
            uncorrectable_host_reads: self.uncorrectable[Cause::Host as usize],
        })
    }

    /// `None` for a component that did nothing a flash device does.
    pub(crate) fn results(&self, info: &ComponentInfo, window_ns: u64) -> Option<Flash> {
        let by_cause = |counts: &[u64]| -> BTreeMap<String, u64> {
            let names = Cause::ALL.iter().map(|cause| cause.name().to_owned());
            names.zip(counts.iter().copied()).collect()
        };
        let [reads, programs, erases] = [READS, PROGRAMS, ERASES].map(|name| self.count(name));
        let is_flash = info.operation_joules.iter().any(|&(name, _)| name == READS);
        let silent = reads + programs + erases + self.unwritten_reads == 0 && self.wear.is_empty();
        if silent && self.free_blocks.is_none() && !is_flash {
            return None;
        }
        let host_programs = self.programs[Cause::Host as usize];
        let searching = info.operation_joules.iter().filter(|(name, _)| *name == VICTIM_SEARCH);
        let search_joules: f64 =
            searching.map(|(_, joules)| joules * self.searched_blocks as f64).sum();
        let (host_bytes, programmed_bytes) = self.bytes(info);
        Some(Flash {
            host_bytes,
            programmed_bytes,
            host_programs,
            gc_programs: self.programs[Cause::Gc as usize],
            programs,
            reads,
            erases,
            write_amplification: ratio(programmed_bytes as f64, host_bytes as f64),
            page_write_amplification: ratio(programs as f64, host_programs as f64),
            reads_by_cause: by_cause(&self.reads),
            programs_by_cause: by_cause(&self.programs),
            erases_by_cause: by_cause(&self.erases),
            erase_count: EraseCount::of(&self.wear),
            erases_by_level: wear::erases_by_level(&self.erases_by_block, info),
            lifetime: wear::lifetime(
                &self.wear,
                &self.erases_by_block,
                host_bytes,
                info,
                window_ns,
            ),
            utilisation: None,
            unwritten_reads: self.unwritten_reads,
            victim_searches: self.searches,
            searched_blocks: self.searched_blocks,
            bit_errors: self.bit_errors(info),
            search_energy_j: if search_joules.is_finite() { search_joules } else { 0.0 },
            free_blocks_min: self.free_blocks.map(|free| free.min),
            free_blocks_end: self.free_blocks.map(|free| free.now),
        })
    }
}

/// Flash operations; causes are `host`, `gc`, `wear` (levelling), `mapping` (translation pages,
/// scans), `merge` (of log and data blocks), `partial` (the rest of a partly written page),
/// `padding` (the rest of a finished zone), `refresh` (data before they have too many bit errors)
/// and `fold` (from blocks in SLC mode to blocks in native mode).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flash {
    /// Bytes written by the host.
    pub host_bytes: u64,
    /// Bytes programmed in all.
    pub programmed_bytes: u64,
    /// Pages programmed for the host.
    pub host_programs: u64,
    /// Pages programmed by garbage collection.
    pub gc_programs: u64,
    /// Pages programmed in all.
    pub programs: u64,
    /// Pages read in all.
    pub reads: u64,
    /// Blocks erased in all.
    pub erases: u64,
    /// `programmed_bytes` divided by `host_bytes`, as the counters of drives have it.
    pub write_amplification: Option<f64>,
    /// `programs` divided by `host_programs`: what garbage collection and the mapping add, without
    /// the rest of partly written pages.
    pub page_write_amplification: Option<f64>,
    /// Pages read, by cause.
    pub reads_by_cause: BTreeMap<String, u64>,
    /// Pages programmed, by cause.
    pub programs_by_cause: BTreeMap<String, u64>,
    /// Blocks erased, by cause.
    pub erases_by_cause: BTreeMap<String, u64>,
    /// Erase counts of all blocks over the device's life, preconditioning included; `null` when the
    /// device does not report them.
    pub erase_count: Option<EraseCount>,
    /// Erases in the measured window per unit of each level: `device`, `package` (the dies of one
    /// channel), `die`, `plane`, `block`.
    pub erases_by_level: BTreeMap<String, EraseSpread>,
    /// Projected lifetime at the rates of the measured window; `null` when nothing was erased.
    pub lifetime: Option<Lifetime>,
    /// Utilisation of channels and dies; `null` without `--out` and with `timing = "none"`.
    pub utilisation: Option<Utilisation>,
    /// Reads of pages never written, or trimmed, which take no flash operation; a warning names
    /// devices where they exceed a fifth of all pages read.
    pub unwritten_reads: u64,
    /// Victim searches, by policies that search.
    pub victim_searches: u64,
    /// Blocks examined in victim searches.
    pub searched_blocks: u64,
    /// Reads that needed retries, or failed; `null` with `errors = "none"`.
    pub bit_errors: Option<BitErrors>,
    /// Energy of victim searches; part of `energy_j`.
    pub search_energy_j: f64,
    /// Minimum number of free (erased) blocks.
    pub free_blocks_min: Option<u64>,
    /// Free blocks at the end.
    pub free_blocks_end: Option<u64>,
}

/// Read retries and uncorrectable reads of pages, those of background work included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BitErrors {
    /// Pages that were read more than once because they had too many bit errors.
    pub retried_reads: u64,
    /// Retries of all reads.
    pub retries: u64,
    /// `retries` divided by all pages read.
    pub retries_per_read: Option<f64>,
    /// `retried_reads` by the number of retries.
    pub reads_by_retries: BTreeMap<String, u64>,
    /// Reads that no retry corrected, and reads of pages whose data were lost by one before.
    pub uncorrectable_reads: u64,
    /// Those for the host, each of which fails its request.
    pub uncorrectable_host_reads: u64,
}

/// Utilisation of channels and dies, by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Channels: busy while commands or data are transferred.
    pub channels: Vec<Busy>,
    /// Dies: busy from a command until the die accepts the next one.
    pub dies: Vec<Busy>,
}

/// Utilisation of one channel or die.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Share of the measured window.
    pub busy_fraction: Option<f64>,
    /// Share of the measured window by cause; causes that took no time are left out.
    pub busy_by_cause: BTreeMap<String, f64>,
}

/// Erase counts of the blocks of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EraseCount {
    /// Number of blocks.
    pub blocks: u64,
    /// Minimum.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: u64,
    /// Standard deviation of the population.
    pub stddev: f64,
}

impl EraseCount {
    /// The distribution of blocks by erase count; `None` without a block.
    pub fn of(wear: &BTreeMap<u32, u64>) -> Option<Self> {
        let blocks: u64 = wear.values().sum();
        let total: u128 = wear.iter().map(|(&erases, &n)| u128::from(erases) * u128::from(n)).sum();
        let mean = ratio(total as f64, blocks as f64)?;
        let deviation = |(&erases, &n): (&u32, &u64)| {
            let distance = f64::from(erases) - mean;
            distance * distance * n as f64
        };
        let variance = wear.iter().map(deviation).sum::<f64>() / blocks as f64;
        Some(Self {
            blocks,
            min: u64::from(*wear.keys().next()?),
            mean,
            max: u64::from(*wear.keys().next_back()?),
            stddev: variance.sqrt(),
        })
    }
}
