//! Flash translation layers: the mapping of logical to physical pages. One file per FTL, listed in
//! [`ENTRIES`].
//!
//! An FTL has no notion of time. It is asked to read, write or trim a logical page and calls
//! [`FlashOps`] for every flash operation; the device times the operations afterwards. So the same
//! FTL runs interleaved over many dies, serially as in the older papers, or without a clock.

mod anand;
mod bast;
#[cfg(test)]
mod bench;
pub mod block;
pub mod dftl;
mod fast;
mod fmax;
mod frontier;
mod in_place;
mod last;
mod log_block;
mod log_map;
mod merge;
pub mod page;
mod page_table;
mod raw;
pub mod slc_cache;
mod superblock;
#[cfg(test)]
mod tests;

use crate::event::Cause;
use crate::geometry::{BlockId, Geometry, Lpn, Ppn};
use crate::ops::{After, FlashOps};
pub use crate::request::Hint;
use crate::state::SavedState;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::{Description, Registry};
use hybridsim_engine::StateError;
use thiserror::Error;

/// Why an FTL cannot store a page. Everything stored before stays readable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FtlError {
    /// So many blocks are worn out that the exported capacity no longer fits.
    #[error("worn out: {0}")]
    WornOut(String),
    /// No page can be written although no block is worn out.
    #[error("device full: {0}")]
    Full(String),
    /// Raw flash: the page is not erased, or is not the next page of its block.
    #[error("this page cannot be programmed now: {0}")]
    NotErased(String),
    /// The FTL failed, or was used in a way it does not support.
    #[error("{0}")]
    Broken(String),
}

/// A flash translation layer.
///
/// The device calls it page by page in ascending order, and only below the exported capacity. The
/// page of the host is read and programmed by [`FlashOps::host_read`] and
/// [`FlashOps::host_program`], exactly once per call; other operations carry their own cause.
pub trait Ftl: SavedState {
    /// The physical page of `lpn`; [`Ppn::NONE`] when it was never written or is trimmed. An FTL
    /// that implements [`Ftl::read`] and [`Ftl::holds`] itself does without it.
    fn lookup(&self, _lpn: Lpn, _flash: &FlashOps) -> Ppn {
        Ppn::NONE
    }

    /// Reads `lpn`; without a host read when it was never written or is trimmed.
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps) {
        let page = self.lookup(lpn, flash);
        if page != Ppn::NONE {
            flash.host_read(page, After::NOTHING);
        }
    }

    /// Writes `lpn`.
    ///
    /// # Errors
    /// When no page is left; the old data stay readable.
    fn write(&mut self, lpn: Lpn, hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError>;

    /// Writes each of `lpns` as a request of its own, of one whole page.
    ///
    /// # Errors
    /// As [`Ftl::write`]; the pages before have been written.
    fn write_each(&mut self, lpns: &[Lpn], flash: &mut FlashOps) -> Result<(), FtlError> {
        for &lpn in lpns {
            self.write(lpn, Hint::of_pages(1), flash)?;
        }
        Ok(())
    }

    /// Trims `lpn`, which may read as never written from now on.
    ///
    /// # Errors
    /// When the FTL has to write its map for that, and cannot.
    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError>;

    /// Prefetches what accesses to `lpns` will need into the processor's caches: of a large table
    /// each access misses them, and misses issued together overlap. Must not change any result;
    /// addresses are unchecked.
    fn expect(&self, _lpns: &[Lpn], _flash: &FlashOps) {}

    /// Prepares tables in memory for most logical pages to be written soon. Must not change any
    /// result.
    fn expect_filling(&mut self) {}

    /// Whether `lpn` holds data, so that a partial write has to read it first.
    fn holds(&self, lpn: Lpn, flash: &FlashOps) -> bool {
        self.lookup(lpn, flash) != Ppn::NONE
    }

    /// Pages that still fit into the open reclaim unit of a placement handle: the open blocks of
    /// the planes of its group, or the next block of a plane whose block is full. `None` for FTLs
    /// that do not place data by handle or lack this one.
    fn unit_left(&self, _handle: u8) -> Option<u64> {
        None
    }

    /// Performs one small step of background work while the device is idle; false without any.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn idle(&mut self, _flash: &mut FlashOps) -> Result<bool, FtlError> {
        Ok(false)
    }

    /// Constants of the FTL.
    fn properties(&self) -> Properties;

    /// Work of the FTL besides requests and [`Ftl::idle`], if there is any.
    fn maintenance(&mut self) -> Option<&mut dyn Maintenance> {
        None
    }

    /// Checks its metadata against the array; for tests.
    ///
    /// # Errors
    /// The first contradiction.
    fn audit(&self, _flash: &FlashOps) -> Result<(), String> {
        Ok(())
    }
}

/// Work of an FTL besides requests; none of it is required.
pub trait Maintenance {
    /// Brings new flash into the state the FTL starts from. The operations are not timed. Not
    /// called before a restore.
    ///
    /// # Errors
    /// When the FTL cannot start on this array.
    fn prepare(&mut self, _flash: &mut FlashOps) -> Result<(), FtlError> {
        Ok(())
    }

    /// Moves the data of `block`, at once or in the following [`Ftl::idle`] steps, and erases it;
    /// false if it holds none, or cannot now. An FTL that does so provides [`REFRESH`].
    fn refresh(&mut self, _block: BlockId, _flash: &mut FlashOps) -> bool {
        false
    }

    /// The power failed: memory outside the device is lost. The contents of the device's own memory
    /// are rebuilt by its recovery.
    fn power_lost(&mut self) {}
}

/// Has `ftl` refresh `block` ([`Maintenance::refresh`]). What its merges, folds or collections do
/// for that counts as refresh.
pub fn refresh(ftl: &mut dyn Ftl, block: BlockId, flash: &mut FlashOps) -> bool {
    let first = flash.list().len();
    let begun = ftl.maintenance().is_some_and(|ftl| ftl.refresh(block, flash));
    for op in &mut flash.list_mut()[first..] {
        if matches!(op.cause, Cause::Merge | Cause::Fold | Cause::Gc) {
            op.cause = Cause::Refresh;
        }
    }
    begun
}

/// Constants of an FTL that was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// Controller memory its tables need on a real device, in bytes.
    pub mapping_ram_bytes: u64,
    /// Whether the host has to erase a page before it writes it again; otherwise the write fails
    /// with [`FtlError::NotErased`].
    pub is_raw: bool,
    /// The blocks that it operates in SLC mode, if it does.
    pub slc_blocks: Option<SlcBlocks>,
    /// Pages the host can write to a new device before garbage collection begins, in whatever
    /// order; `None` for an FTL that does not write them one after the other.
    pub pages_before_collection: Option<u64>,
    /// Pages that can hold valid data at the same time: those left after the blocks that the FTL
    /// keeps for itself; `None` where it does not keep a fixed number of blocks.
    pub data_pages: Option<u64>,
    /// Whether preconditioning ends with its background work ([`Ftl::idle`]), until there is none.
    pub settles: bool,
    /// The reason why [`SavedState::save`] does not save its whole state. Without one, a restored
    /// FTL continues exactly as the saved one.
    pub unsaveable: Option<StateError>,
}

/// Capability of FTLs: [`Maintenance::refresh`] moves data.
pub const REFRESH: &str = "refresh of blocks";
/// Capability of FTLs: [`Properties::slc_blocks`].
pub const SLC_MODE: &str = "blocks in SLC mode";
/// Capability of FTLs: a host memory buffer.
pub const HOST_BUFFER: &str = "part of its map in host memory";

/// The blocks that an FTL operates in SLC mode: with one bit per cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcBlocks {
    /// Bits that a cell holds in native mode.
    pub bits: u32,
    /// Pages of a block in SLC mode, its first ones.
    pub pages_per_block: u32,
    /// The first blocks of each plane, the static cache, which are never in native mode.
    pub static_per_plane: u32,
}

/// Most pages in a call of [`Ftl::expect`].
pub const EXPECTED_MAX: usize = 64;

/// The input of an FTL's builder.
pub struct FtlInput<'a> {
    pub settings: &'a Settings,
    pub geometry: &'a Geometry,
    /// Logical pages exported to the host.
    pub exported_pages: u32,
    pub registry: &'a Registry,
    pub seed: u64,
    /// The device's path, which names the random streams.
    pub path: &'a str,
}

impl FtlInput<'_> {
    /// Logical blocks exported, where blocks are mapped as a whole.
    pub(crate) const fn logical_blocks(&self) -> u32 {
        self.exported_pages.div_ceil(self.geometry.pages_per_block())
    }
}

/// An FTL, or all problems with its parameters.
pub type BuiltFtl = Result<Box<dyn Ftl>, Vec<Problem>>;

/// A registered FTL.
#[derive(Clone, Copy)]
pub struct FtlEntry {
    pub description: Description,
    /// [`REFRESH`] and others.
    pub provides: &'static [&'static str],
    /// A problem with the exported capacity names `over_provisioning`.
    pub build: fn(&FtlInput<'_>) -> BuiltFtl,
}

hybridsim_config::entry!(FtlEntry, "ftl", provides);

/// All FTLs.
pub const ENTRIES: &[FtlEntry] = &[
    page::ENTRY,
    block::ENTRY,
    raw::ENTRY,
    in_place::ENTRY,
    log_block::ENTRY,
    bast::ENTRY,
    anand::ENTRY,
    fmax::ENTRY,
    fast::ENTRY,
    last::ENTRY,
    superblock::ENTRY,
    dftl::ENTRY,
    slc_cache::ENTRY,
];
