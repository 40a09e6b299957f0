//! The map of blocks, and the sizes that physical block numbers follow from.

use hybridsim_engine::{Lba, Loader, Saver, StateError};
use hybridsim_flash::packed::{Packed, width_for};

/// Sizes of the log.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Sectors of a block.
    pub block_sectors: u32,
    /// Blocks of a segment, its summary included.
    pub blocks: u32,
    /// Blocks of a segment with data, which are before its summary.
    pub data_blocks: u32,
    pub segments: u32,
    /// First sector of the first segment.
    pub start: u64,
    /// Sectors between the starts of two segments.
    pub stride: u64,
    /// Segments are zones.
    pub zoned: bool,
}

impl Shape {
    /// The segment of a physical block.
    pub const fn segment(&self, physical: u32) -> u32 {
        physical / self.blocks
    }

    /// The first physical block of a segment.
    pub const fn first(&self, segment: u32) -> u32 {
        segment * self.blocks
    }

    /// The sector of the device at which a segment begins.
    pub const fn start_of(&self, segment: u32) -> Lba {
        Lba(self.start + segment as u64 * self.stride)
    }

    /// The sector of the device at which a physical block begins.
    pub const fn lba(&self, physical: u32) -> Lba {
        let within = (physical % self.blocks) as u64 * self.block_sectors as u64;
        Lba(self.start_of(self.segment(physical)).0 + within)
    }
}

/// The physical block of each logical block, and the logical block last written to each physical
/// one. A physical block is valid if the map leads to it.
pub struct BlockMap {
    physical: Packed,
    owners: Packed,
}

/// No block.
pub const NONE: u32 = u32::MAX;

impl BlockMap {
    pub fn new(shape: &Shape, logical_blocks: u32) -> Self {
        let physical_blocks = shape.segments * shape.blocks;
        Self {
            physical: Packed::new(logical_blocks as usize, physical_blocks - 1),
            owners: Packed::new(physical_blocks as usize, logical_blocks - 1),
        }
    }

    /// Bytes of the tables for as many blocks.
    pub fn bytes(physical_blocks: u32, logical_blocks: u32) -> u64 {
        let bits = u64::from(logical_blocks) * u64::from(width_for(physical_blocks))
            + u64::from(physical_blocks) * u64::from(width_for(logical_blocks));
        bits / 8
    }

    /// The physical block of `logical`, or [`NONE`].
    pub fn get(&self, logical: u32) -> u32 {
        self.physical.get(logical as usize)
    }

    /// Maps `logical` to `physical`, which may be [`NONE`]; returns the block it was mapped to.
    pub fn replace(&mut self, logical: u32, physical: u32) -> u32 {
        self.physical.replace(logical as usize, physical)
    }

    /// The logical block last written to `physical`.
    pub fn owner(&self, physical: u32) -> u32 {
        self.owners.get(physical as usize)
    }

    /// `logical` is being written to `physical`.
    pub fn set_owner(&mut self, physical: u32, logical: u32) {
        self.owners.set(physical as usize, logical);
    }

    pub fn is_valid(&self, physical: u32) -> bool {
        let owner = self.owner(physical);
        owner != NONE && self.get(owner) == physical
    }

    /// Valid blocks of each segment; `None` if an entry is that of another log.
    pub fn valid_blocks(&self, shape: &Shape) -> Option<Vec<u32>> {
        let mut valid = vec![0; shape.segments as usize];
        for logical in 0..self.physical.len() as u32 {
            let physical = self.get(logical);
            if physical != NONE {
                let is_there = physical < shape.segments * shape.blocks;
                if !is_there || self.owner(physical) != logical {
                    return None;
                }
                valid[shape.segment(physical) as usize] += 1;
            }
        }
        let owners = (0..self.owners.len() as u32).map(|physical| self.owner(physical));
        let mut wrong = owners.filter(|it| *it != NONE && *it as usize >= self.physical.len());
        wrong.next().is_none().then_some(valid)
    }

    pub fn save(&self, to: &mut Saver) {
        self.physical.save(to);
        self.owners.save(to);
    }

    /// # Errors
    /// If the saved map is of another log.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        self.physical.restore(from)?;
        self.owners.restore(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_beyond_the_last_segment_is_of_another_log() {
        let shape = Shape {
            block_sectors: 8,
            blocks: 4,
            data_blocks: 3,
            segments: 2,
            start: 0,
            stride: 32,
            zoned: false,
        };
        // The map of a log that is larger by one block.
        let mut map = BlockMap { physical: Packed::new(5, 8), owners: Packed::new(9, 4) };
        let mut write = |logical, physical| {
            map.set_owner(physical, logical);
            map.replace(logical, physical);
            map.valid_blocks(&shape)
        };
        assert_eq!(write(0, 7), Some(vec![0, 1]), "the last block there is");
        assert_eq!(write(1, 8), None);
    }
}
