//! Where the pages of a zone are: striped over all planes of all dies.

use hybridsim_flash::geometry::{BlockId, Geometry, PlaneId, Ppn};
use std::ops::Range;

/// The placement of zones. A group of blocks has [`Stripe::rows`] blocks of every plane.
#[derive(Clone, Copy, Debug)]
pub struct Stripe {
    pub geometry: Geometry,
    /// Consecutive pages of a zone in one block.
    pub pages: u32,
    /// Blocks of each plane in a group.
    pub rows: u32,
}

impl Stripe {
    /// Stripes of `pages` pages for zones of `zone_pages`.
    pub fn new(geometry: Geometry, pages: u32, zone_pages: u32) -> Self {
        let planes = u64::from(geometry.planes());
        let row_pages = planes * u64::from(geometry.pages_per_block());
        Self { geometry, pages, rows: u64::from(zone_pages).div_ceil(row_pages) as u32 }
    }

    pub const fn groups(&self) -> u32 {
        self.geometry.blocks_per_plane() / self.rows
    }

    /// Page `index` of a zone on the blocks of `group`.
    #[inline]
    pub const fn page(&self, group: u32, index: u32) -> Ppn {
        let Self { geometry, pages, rows } = self;
        let (chunk, within) = (index / *pages, index % *pages);
        let plane = PlaneId(chunk % geometry.planes());
        let at = chunk / geometry.planes() * *pages + within;
        let row = group * *rows + at / geometry.pages_per_block();
        let block = BlockId(geometry.first_block(plane).0 + row);
        geometry.page(block, at % geometry.pages_per_block())
    }

    /// The blocks of these rows of `group` in the order in which a zone uses them, each with the
    /// number of its first page in the zone.
    pub fn blocks(
        &self,
        group: u32,
        of: Range<u32>,
    ) -> impl Iterator<Item = (BlockId, u32)> + use<> {
        let Self { geometry, pages, rows } = *self;
        let (planes, chunks) = (geometry.planes(), geometry.pages_per_block() / pages);
        of.flat_map(move |row| {
            (0..planes).map(move |plane| {
                let block = geometry.first_block(PlaneId(plane)).0 + group * rows + row;
                (BlockId(block), (row * chunks * planes + plane) * pages)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hybridsim_flash::geometry::Shape;
    use std::collections::BTreeSet;

    #[test]
    fn a_zone_takes_each_page_of_its_blocks_once_and_in_order() {
        let shape = Shape {
            channels: 2,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 7,
            pages_per_block: 12,
            page_bytes: 4096,
            spare_bytes: 0,
        };
        let geometry = Geometry::new(&shape).expect("a valid shape");
        for pages in [1, 3, 12] {
            let zone_pages = 2 * 8 * 12 - 5;
            let stripe = Stripe::new(geometry, pages, zone_pages);
            assert_eq!((stripe.rows, stripe.groups()), (2, 3));
            let mut next = vec![0; geometry.blocks() as usize];
            for index in 0..zone_pages {
                let page = stripe.page(1, index);
                let block = geometry.block_of(page);
                let offset = &mut next[block.0 as usize];
                assert_eq!(geometry.offset_of(page), *offset, "pages of a block in order");
                *offset += 1;
            }
            let firsts: BTreeSet<u32> = stripe.blocks(1, 0..2).map(|(_, first)| first).collect();
            assert_eq!(firsts.len(), 16);
            for (block, first) in stripe.blocks(1, 0..2) {
                assert!(next[block.0 as usize] > 0, "used by this group");
                assert_eq!(stripe.page(1, first), geometry.page(block, 0));
            }
            let used = next.iter().filter(|pages| **pages > 0).count();
            assert_eq!(used, 16, "no block of another group");
        }
    }
}
