//! Wear levelling: which free block is filled next, and which data are relocated to even out erase
//! counts. One file per policy, listed in [`ENTRIES`].
//!
//! Wear levelling is *implicit* (dynamic) when it only chooses among free blocks, and *explicit*
//! (static) when it relocates cold data (flashsim, table 2, names both). A policy is passive and
//! independent of the FTL: the FTL reports what happens to blocks, and the policy answers each
//! erase with the block whose data should be relocated to the block just erased, if any. Cold data
//! then rest in a worn block, and the less worn block that held them is used for new data.
//!
//! An FTL that uses a policy
//! - keeps its free blocks in [`FreeBlocks`] in the order given by [`WearPolicy::order`];
//! - calls [`WearPolicy::filled`] when a block is full, and [`WearPolicy::taken`] when it begins to
//!   collect, merge or relocate such a block;
//! - calls [`WearPolicy::erased`] after each erase, and [`WearPolicy::retired`] when a block wears
//!   out.

mod dual_pool;
mod explicit;
mod free;
mod implicit;
mod none;

pub use free::FreeBlocks;

use crate::geometry::{BlockId, Geometry};
use crate::state::SavedState;
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::Description;
use serde::{Deserialize, Serialize};

/// Which free block is filled next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FreeOrder {
    /// The one that has been free longest.
    OldestFirst,
    /// The one erased least often for data of the host, the one erased most often for relocated
    /// data, which tend to be cold.
    ByErases,
}

/// Evens out erase counts within each pool of blocks. Passive; see the module.
///
/// A pool is a set of blocks with free blocks of its own, usually a plane. Calls take constant time
/// or the logarithm of the number of blocks.
pub trait WearPolicy: SavedState {
    /// The order in which the FTL fills free blocks.
    fn order(&self) -> FreeOrder {
        FreeOrder::OldestFirst
    }

    /// Whether [`WearPolicy::erased`] ever asks for data to be relocated.
    fn moves_data(&self) -> bool {
        false
    }

    /// `block`, erased `erases` times, is full.
    fn filled(&mut self, _pool: usize, _block: BlockId, _erases: u32) {}

    /// The data of `block` are being moved or dropped; an erase follows.
    fn taken(&mut self, _pool: usize, _block: BlockId) {}

    /// `block` was erased for the `erases`-th time and is free. Returns a full block whose data the
    /// FTL must relocate to `block`, and which it must erase then; the policy assumes that this
    /// happens.
    fn erased(&mut self, _pool: usize, _block: BlockId, _erases: u32) -> Option<BlockId> {
        None
    }

    /// `block` is worn out.
    fn retired(&mut self, _pool: usize, _block: BlockId) {}

    /// Controller memory the policy needs, in bytes.
    fn ram_bytes(&self) -> u64 {
        0
    }
}

/// The input of a policy's builder.
pub struct WearInput<'a> {
    pub settings: &'a Settings,
    pub geometry: &'a Geometry,
    /// Number of pools; block `b` belongs to pool `b / (blocks / pools)`.
    pub pools: usize,
}

impl WearInput<'_> {
    fn blocks_per_pool(&self) -> u32 {
        self.geometry.blocks() / self.pools.max(1) as u32
    }
}

/// A wear-levelling policy, or all problems with its parameters.
pub type BuiltWear = Result<Box<dyn WearPolicy>, Vec<Problem>>;

/// A registered wear-levelling policy.
#[derive(Clone, Copy)]
pub struct WearEntry {
    pub description: Description,
    pub build: fn(&WearInput<'_>) -> BuiltWear,
}

hybridsim_config::entry!(WearEntry, "wear-levelling");

/// All wear-levelling policies.
pub const ENTRIES: &[WearEntry] =
    &[none::ENTRY, implicit::ENTRY, explicit::ENTRY, dual_pool::ENTRY];
