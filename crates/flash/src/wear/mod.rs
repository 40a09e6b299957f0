//! Wear levelling: which free block to fill next, and which data to move so that blocks wear
//! alike. One file per policy, listed in [`ENTRIES`].
//!
//! Levelling is *implicit* when it only chooses among free blocks, and *explicit* when it moves
//! data nobody asked to move (flashsim, table 2, names both). A policy is passive and belongs to
//! no translation layer: it is told what happens to blocks, and answers each erase with the block
//! whose data should go into the block just erased, if any. Wearing blocks get data that does not
//! change, and rest; the block that held it is free to be worn.
//!
//! A layer that uses it
//! - keeps its free blocks in [`FreeBlocks`], ordered as [`WearPolicy::order`] says;
//! - tells [`WearPolicy::filled`] when a block holds data and will not be programmed further, and
//!   [`WearPolicy::taken`] when it begins to collect, merge or move such a block;
//! - asks [`WearPolicy::erased`] after each erase, and [`WearPolicy::retired`] after a last one.

mod dual_pool;
mod explicit;
mod free;
mod heap;
mod implicit;
mod none;

pub use free::FreeBlocks;

use crate::geometry::{BlockId, Geometry};
use hybridsim_config::param::{Problem, Settings};
use hybridsim_config::registry::{Description, Entry};
use hybridsim_engine::state::{Loader, Saver, StateError};
use serde::{Deserialize, Serialize};

/// Which free block is filled next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FreeOrder {
    /// The one that became free first.
    OldestFirst,
    /// For data of the host the one erased least often, for data that is moved, and so tends to
    /// be cold, the one erased most often.
    ByErases,
}

/// Keeps wear even within each pool of blocks. Passive; see the module.
///
/// A pool is whatever the translation layer keeps free blocks for, usually a plane. All calls take
/// constant time or the logarithm of the number of blocks.
pub trait WearPolicy {
    /// How the layer should choose among free blocks.
    fn order(&self) -> FreeOrder;

    /// Whether [`WearPolicy::erased`] ever asks for data to be moved.
    fn moves_data(&self) -> bool {
        false
    }

    /// `block`, erased `erases` times, now holds data and is not programmed any more.
    fn filled(&mut self, _pool: usize, _block: BlockId, _erases: u32) {}

    /// The data of `block` is being moved or given up; an erase will follow.
    fn taken(&mut self, _pool: usize, _block: BlockId) {}

    /// `block` has just been erased for the `erases`-th time and is free. The answer is a filled
    /// block whose data the layer should move into `block`, and then erase; the policy goes on as
    /// if that were done, so a layer that asks must do it. `may_move` is false while the layer
    /// could not, and then there is no such answer.
    fn erased(
        &mut self,
        _pool: usize,
        _block: BlockId,
        _erases: u32,
        _may_move: bool,
    ) -> Option<BlockId> {
        None
    }

    /// `block` is worn out and gone.
    fn retired(&mut self, _pool: usize, _block: BlockId) {}

    /// Puts down everything the policy remembers.
    fn save(&self, to: &mut Saver);

    /// Takes back what [`WearPolicy::save`] put down.
    ///
    /// # Errors
    /// When its tables are not as long as this device needs them.
    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError>;

    /// Bytes of controller memory the policy needs.
    fn ram_bytes(&self) -> u64;
}

/// What a policy is built from.
pub struct WearInput<'a> {
    /// The policy's own settings.
    pub settings: &'a Settings,
    /// The device's shape.
    pub geometry: &'a Geometry,
    /// Number of pools; block `b` belongs to pool `b / (blocks / pools)`.
    pub pools: usize,
}

impl WearInput<'_> {
    /// Blocks of each pool.
    fn blocks_per_pool(&self) -> u32 {
        self.geometry.blocks() / self.pools.max(1) as u32
    }
}

/// A wear-levelling policy, or everything that is wrong with its parameters.
pub type BuiltWear = Result<Box<dyn WearPolicy>, Vec<Problem>>;

/// A registered wear-levelling policy.
#[derive(Clone, Copy)]
pub struct WearEntry {
    /// What it tells of itself.
    pub description: Description,
    /// Builds one.
    pub build: fn(&WearInput<'_>) -> BuiltWear,
}

impl Entry for WearEntry {
    const CATEGORY: &'static str = "wear-levelling";
    fn description(&self) -> Description {
        self.description
    }
}

/// All wear-levelling policies.
pub const ENTRIES: &[WearEntry] =
    &[none::ENTRY, implicit::ENTRY, explicit::ENTRY, dual_pool::ENTRY];
