//! Translation layers: where a logical page goes. One file each, listed in [`ENTRIES`].
//!
//! A translation layer knows no time. It is asked to read, write or trim a logical page and calls
//! [`FlashOps`] for everything it does to flash; the device times the operations afterwards. So
//! the same layer runs interleaved over many dies, serially as in the older papers, or without a
//! clock.

pub mod anand;
pub mod bast;
#[cfg(test)]
mod bench;
pub mod block;
pub mod dftl;
pub mod fast;
pub mod fmax;
pub mod in_place;
pub mod last;
pub mod log_block;
pub mod log_map;
pub mod merge;
pub mod page;
pub mod page_table;
pub mod raw;
pub mod superblock;

use crate::geometry::{Geometry, Lpn};
use crate::ops::FlashOps;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::{Description, Entry, Registry};
use hybridsim_engine::{Loader, Saver, StateError};
use thiserror::Error;

/// Why a translation layer cannot store a page. Everything stored before stays readable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FtlError {
    /// So many blocks are worn out that the offered capacity no longer fits.
    #[error("worn out: {0}")]
    WornOut(String),
    /// There is no room although blocks are sound.
    #[error("no room left: {0}")]
    Full(String),
    /// Flash without translation: the page was not erased, or is not the next of its block.
    #[error("this page cannot be programmed now: {0}")]
    NotErased(String),
    /// The layer itself failed, or was asked for what it forbids.
    #[error("{0}")]
    Broken(String),
}

/// What is known of the request a written page belongs to, for layers that place by it (LAST and
/// the SLC/MLC chains tell sequential from random writes by request size).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Pages the whole request touches.
    pub request_pages: u32,
}

/// The pages of a write request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRun {
    /// The first page.
    pub first: Lpn,
    /// How many follow each other, at least 1.
    pub pages: u32,
    /// Whether the last page is written whole; if not, its old data are read before it is written.
    pub last_whole: bool,
}

/// A translation layer.
///
/// The device calls it page by page, in order of address, and only below the exported capacity.
/// The page the host waits for is read and programmed by [`FlashOps::host_read`] and
/// [`FlashOps::host_program`], exactly once per call; everything else carries its own cause.
pub trait Ftl {
    /// Brings fresh flash into the state the layer starts from. Not recorded.
    ///
    /// # Errors
    /// When the layer cannot start on this array.
    fn prepare(&mut self, _flash: &mut FlashOps) -> Result<(), FtlError> {
        Ok(())
    }

    /// Reads `lpn`; no host read at all when it was never written or is trimmed.
    fn read(&mut self, lpn: Lpn, flash: &mut FlashOps);

    /// A request to write `run` begins: its pages follow in order, by [`Ftl::write`]. For layers
    /// that do something once for the whole of it; others need not know.
    fn begin_write(&mut self, _run: WriteRun) {}

    /// Writes `lpn`.
    ///
    /// # Errors
    /// When there is no room; the old data stay readable.
    fn write(&mut self, lpn: Lpn, hint: Hint, flash: &mut FlashOps) -> Result<(), FtlError>;

    /// `lpn` is no longer needed and may read as never written.
    ///
    /// # Errors
    /// When the layer has to write to remember that, and cannot.
    fn trim(&mut self, lpn: Lpn, flash: &mut FlashOps) -> Result<(), FtlError>;

    /// The pages in `lpns` will probably be asked for next. A large table misses the caches at
    /// every turn; looked up together, the misses overlap. Nothing that happens may depend on it,
    /// and addresses are unchecked.
    fn expect(&self, _lpns: &[Lpn], _flash: &FlashOps) {}

    /// Whether `lpn` holds data, so that a partial write has to read it first.
    fn holds(&self, lpn: Lpn, flash: &FlashOps) -> bool;

    /// Does one small step of background work while the device is idle; false when there is none.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn idle(&mut self, _flash: &mut FlashOps) -> Result<bool, FtlError> {
        Ok(false)
    }

    /// Whether a page has to be erased by whoever is above before it is written again; writing it
    /// all the same is answered by [`FtlError::NotErased`].
    fn is_raw(&self) -> bool {
        false
    }

    /// Bytes of controller memory its tables need on a real device.
    fn mapping_ram_bytes(&self) -> u64;

    /// Puts down everything the layer remembers: maps, lists, counters, random streams, and the
    /// state of its policies. The array is saved apart.
    ///
    /// # Errors
    /// When this kind of layer cannot.
    fn save(&self, to: &mut Saver) -> Result<(), StateError>;

    /// Takes back what [`Ftl::save`] put down, in the same order; [`Ftl::prepare`] is not called
    /// then. A layer restored goes on exactly as the one saved.
    ///
    /// # Errors
    /// When the tables are not as long as this device needs them; the layer must not be used
    /// afterwards.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;

    /// Counts its books afresh against the array; for tests.
    ///
    /// # Errors
    /// The first thing that does not agree.
    fn audit(&self, _flash: &FlashOps) -> Result<(), String> {
        Ok(())
    }
}

/// Pages told of at once in [`Ftl::expect`], at most.
pub const EXPECTED_MAX: usize = 64;

/// What a translation layer is built from.
pub struct FtlInput<'a> {
    /// The layer's own settings.
    pub settings: &'a Settings,
    /// The device's shape.
    pub geometry: &'a Geometry,
    /// Logical pages offered to the host.
    pub exported_pages: u32,
    /// Where chosen-in policies are found.
    pub registry: &'a Registry,
    /// The run's seed.
    pub seed: u64,
    /// The device's path, to name random streams by.
    pub path: &'a str,
}

impl<'a> FtlInput<'a> {
    /// The registered entry chosen by plug parameter `name`, with that plug's settings.
    ///
    /// # Errors
    /// When no such entry is registered.
    pub fn chosen<E: Entry>(&self, name: &'static str) -> Result<(E, &'a Settings), Vec<Problem>> {
        let plug = self.settings.entry(name);
        match self.registry.find::<E>(&plug.name) {
            Some(entry) => Ok((entry, &plug.settings)),
            None => {
                let message = format!("no {} called {}", E::CATEGORY, plug.name);
                Err(vec![Problem::new(name, message)])
            }
        }
    }
}

/// A translation layer, or everything that is wrong with its parameters.
pub type BuiltFtl = Result<Box<dyn Ftl>, Vec<Problem>>;

/// A registered translation layer.
#[derive(Clone, Copy)]
pub struct FtlEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Builds one, or says everything that is wrong. A problem with the exported capacity points
    /// at `over_provisioning`.
    pub build: fn(&FtlInput<'_>) -> BuiltFtl,
}

impl Entry for FtlEntry {
    const CATEGORY: &'static str = "ftl";
    fn description(&self) -> Description {
        self.description
    }
}

/// All translation layers.
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
];
