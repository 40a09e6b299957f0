//! Space of files: extents of one size, the lowest free ones first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug)]
pub(super) struct Space {
    pub extent_sectors: u32,
    /// Freed extents.
    free: BinaryHeap<Reverse<u32>>,
    /// Extents from here on were never used.
    unused: u32,
    extents: u32,
}

impl Space {
    pub fn new(extent_sectors: u32, extents: u32) -> Self {
        Self { extent_sectors, free: BinaryHeap::new(), unused: 0, extents }
    }

    /// Extents for `sectors` sectors, in order of address; `None` where too few are free.
    pub fn allocate(&mut self, sectors: u64) -> Option<Vec<u32>> {
        let count = sectors.div_ceil(u64::from(self.extent_sectors));
        let free = self.free.len() as u64 + u64::from(self.extents - self.unused);
        (count <= free).then(|| (0..count).map(|_| self.take()).collect())
    }

    fn take(&mut self) -> u32 {
        self.free.pop().map_or_else(
            || {
                self.unused += 1;
                self.unused - 1
            },
            |Reverse(extent)| extent,
        )
    }

    pub fn release(&mut self, extents: &[u32]) {
        self.free.extend(extents.iter().map(|extent| Reverse(*extent)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_extents_are_used_first_and_none_twice() {
        let mut space = Space::new(8, 4);
        assert_eq!(space.allocate(17), Some(vec![0, 1, 2]));
        assert_eq!(space.allocate(16), None);
        space.release(&[1]);
        assert_eq!(space.allocate(16), Some(vec![1, 3]));
        assert_eq!(space.allocate(1), None);
    }
}
