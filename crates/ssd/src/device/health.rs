//! Figures of the flash as a log page reports them.

use super::{SsdDevice, Translation};
use hybridsim_engine::{Health, SECTOR_BYTES};
use hybridsim_flash::array::Array;
use hybridsim_flash::geometry::BlockId;

/// Sums over the blocks of all arrays.
#[derive(Default)]
struct Sums {
    blocks: u64,
    bytes: u64,
    free: u64,
    used: f64,
}

impl Sums {
    fn add(&mut self, array: &Array, health: &mut Health) {
        let geometry = array.geometry();
        let page = u64::from(geometry.page_bytes());
        let block = page * u64::from(geometry.pages_per_block());
        health.programmed_bytes += array.programs() * page;
        health.retired_blocks += u64::from(array.retired_blocks());
        health.unit_bytes += block * u64::from(geometry.planes());
        let endurance = f64::from(array.endurance());
        for id in (0..geometry.blocks()).map(BlockId) {
            let erases = array.erases(id);
            health.erased_bytes += u64::from(erases) * block;
            health.erases = [health.erases[0].min(erases), health.erases[1].max(erases)];
            let left = array.endurance_of(id).saturating_sub(erases);
            self.used += (1.0 - f64::from(left) / endurance).max(0.0);
        }
        self.blocks += u64::from(geometry.blocks());
        self.bytes += u64::from(geometry.blocks()) * block;
        self.free += u64::from(array.free_blocks());
    }
}

impl<T: Translation> SsdDevice<T> {
    /// The figures of the flash now.
    pub(super) fn figures(&self) -> Health {
        let celsius = self.front.throttled.as_ref().and_then(|it| it.celsius());
        let mut health = Health { celsius, erases: [u32::MAX, 0], ..Health::default() };
        let mut sums = Sums::default();
        for array in self.translation.arrays().into_iter().flatten() {
            sums.add(array, &mut health);
        }
        let blocks = sums.blocks.max(1) as f64;
        health.used = sums.used / blocks;
        health.free = sums.free as f64 / blocks;
        // Blocks that are not needed to hold what the host can write.
        let exported = (self.front.capacity * SECTOR_BYTES) as f64 / sums.bytes.max(1) as f64;
        let spare = (blocks * (1.0 - exported)).max(1.0);
        health.spare = (1.0 - health.retired_blocks as f64 / spare).max(0.0);
        health.erases[0] = health.erases[0].min(health.erases[1]);
        health
    }
}
