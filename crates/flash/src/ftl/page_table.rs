//! The page map: the physical page of each logical page.
//!
//! Together with the spare areas it takes most of the memory of a large simulated device: at most
//! six bytes per physical page of some hundred GiB, 7.5 of 8 TiB. Where whole page numbers would
//! take more, their lowest bits are dropped: the page is then the valid one of two, four or eight
//! neighbours whose spare area holds the logical page. This search is made once for a page that the
//! host reads or writes, and never for one that garbage collection copies.

use crate::array::Array;
use crate::geometry::{Geometry, Lpn, Ppn};
use crate::packed::{Packed, width_for};
use hybridsim_engine::state::{Loader, Saver, StateError};

/// Most bits per physical page for the map, the spare areas and all other tables.
const BITS_MAX: f64 = 48.0;
/// Bits for each block in the array and in the lists of the victim policy.
const BITS_PER_BLOCK: f64 = 28.0 * 8.0;
/// Most bits of the page number to drop: neighbours mostly share a cache line.
const DROPPED_MAX: u32 = 3;

/// The physical page of each logical page.
#[derive(Debug)]
pub struct PageTable {
    /// Physical page numbers without their lowest `dropped` bits.
    groups: Packed,
    dropped: u32,
}

fn dropped_bits(geometry: &Geometry, exported_pages: u32) -> u32 {
    let largest = geometry.pages() - 1;
    let owner = f64::from(width_for(exported_pages.saturating_sub(1)));
    let others = owner + 1.0 + BITS_PER_BLOCK / f64::from(geometry.pages_per_block());
    let per_page = f64::from(exported_pages) / f64::from(geometry.pages());
    let fits =
        |dropped: &u32| f64::from(width_for(largest >> dropped)) * per_page + others <= BITS_MAX;
    (0..DROPPED_MAX).find(fits).unwrap_or(DROPPED_MAX)
}

impl PageTable {
    pub fn new(geometry: &Geometry, exported_pages: u32) -> Self {
        Self::with_dropped_bits(geometry, exported_pages, dropped_bits(geometry, exported_pages))
    }

    /// As [`PageTable::new`], with `dropped` bits dropped.
    pub fn with_dropped_bits(geometry: &Geometry, exported_pages: u32, dropped: u32) -> Self {
        let largest = (geometry.pages() - 1) >> dropped;
        Self { groups: Packed::new(exported_pages as usize, largest), dropped }
    }

    #[inline]
    pub const fn pages(&self) -> usize {
        self.groups.len()
    }

    /// Prepares for most pages to be mapped soon ([`Packed::expect_filling`]).
    pub fn expect_filling(&mut self) {
        self.groups.expect_filling();
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.groups.bytes()
    }

    /// The physical page of `lpn`, or [`Ppn::NONE`].
    #[inline]
    pub fn get(&self, lpn: Lpn, array: &Array) -> Ppn {
        let group = self.groups.get(lpn.0 as usize);
        if self.dropped == 0 || group == u32::MAX {
            return Ppn(group);
        }
        self.find(group, lpn, array)
    }

    /// Maps `lpn` to `page`, which is not programmed yet, and returns its previous page.
    // Always inlined: called for every page that the host writes.
    #[inline(always)]
    pub fn replace(&mut self, lpn: Lpn, page: Ppn, array: &Array) -> Ppn {
        let group = self.groups.replace(lpn.0 as usize, page.0 >> self.dropped);
        if self.dropped == 0 || group == u32::MAX {
            return Ppn(group);
        }
        self.find(group, lpn, array)
    }

    /// The page of `lpn` among those of a group.
    #[inline(never)]
    fn find(&self, group: u32, lpn: Lpn, array: &Array) -> Ppn {
        array.find(Ppn(group << self.dropped), 1 << self.dropped, lpn)
    }

    /// The physical page of `lpn` or a neighbour, or [`Ppn::NONE`]: enough for a prefetch.
    #[inline]
    pub fn approximate(&self, lpn: Lpn) -> Ppn {
        let group = self.groups.get(lpn.0 as usize);
        Ppn(if group == u32::MAX { group } else { group << self.dropped })
    }

    #[inline]
    pub fn holds(&self, lpn: Lpn) -> bool {
        self.groups.get(lpn.0 as usize) != u32::MAX
    }

    /// Maps `lpn` to `page`, which may be [`Ppn::NONE`].
    #[inline]
    pub fn set(&mut self, lpn: Lpn, page: Ppn) {
        let group = if page == Ppn::NONE { u32::MAX } else { page.0 >> self.dropped };
        self.groups.set(lpn.0 as usize, group);
    }

    /// Maps `lpns` to consecutive pages from `first` on.
    #[inline]
    pub fn set_run(&mut self, lpns: &[u32], first: Ppn) {
        self.groups.set_ascending(lpns, first.0, self.dropped);
    }

    /// Prefetches the entries of `lpns`; ignores pages that do not exist.
    #[inline]
    pub fn prefetch(&self, lpns: impl Iterator<Item = u32>) {
        std::hint::black_box(self.groups.prefetch(lpns));
    }

    /// Loads from the entry of `lpn`, if it exists, to prefetch it. The result only keeps the
    /// compiler from removing the load.
    #[inline]
    pub fn load(&self, lpn: u32) -> u32 {
        self.groups.load(lpn as usize)
    }

    /// Prefetches what [`PageTable::get`] needs besides the table for a page at or near `page`.
    #[inline]
    pub fn prefetch_page(&self, page: Ppn, array: &Array) {
        if self.dropped != 0 && page != Ppn::NONE {
            array.prefetch_owners(page, 1 << self.dropped);
        }
    }

    pub fn save(&self, to: &mut Saver) {
        to.put(&self.dropped);
        self.groups.save(to);
    }

    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        if from.take::<u32>()? != self.dropped {
            return Err(StateError("the page map has another width".to_owned()));
        }
        self.groups.restore(from)
    }

    /// Checks that every page is where it is mapped, and that all valid pages are mapped, of which
    /// the pools of the translation layer count `pooled`.
    pub fn audit(&self, array: &Array, pooled: u64) -> Result<(), String> {
        let mut mapped = 0;
        for lpn in (0..self.pages() as u32).map(Lpn).filter(|lpn| self.holds(*lpn)) {
            let page = self.get(lpn, array);
            if page == Ppn::NONE || array.owner(page) != lpn {
                return Err(format!(
                    "logical page {} is mapped to a page of another logical page",
                    lpn.0
                ));
            }
            mapped += 1;
        }
        let valid = array.valid_pages();
        match (mapped, mapped) == (valid, pooled) {
            true => Ok(()),
            false => Err(format!("{mapped} pages mapped, {valid} valid, {pooled} in pools")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ProgramOrder;
    use crate::geometry::Shape;

    /// A device of 64 planes, and the pages it exports.
    fn device(blocks_per_plane: u64, ratio: f64) -> (Geometry, u32) {
        let shape = Shape {
            channels: 8,
            dies_per_channel: 8,
            planes_per_die: 1,
            blocks_per_plane,
            pages_per_block: 256,
            page_bytes: 4096,
            spare_bytes: 0,
        };
        let geometry = Geometry::new(&shape).expect("a valid shape");
        let exported = geometry.exported_pages(ratio);
        (geometry, exported)
    }

    #[test]
    fn memory_is_at_most_six_bytes_per_physical_page() {
        // About 64 GiB exported, and a page more or less than a power of two.
        for (blocks, ratio) in [(1096, 0.07), (1095, 0.07), (1078, 0.05), (1311, 0.28), (1229, 0.2)]
        {
            let (geometry, exported) = device(blocks, ratio);
            let table = PageTable::new(&geometry, exported);
            let array = Array::new(geometry, ProgramOrder::Sequential, 1_000);
            let array = array.with_logical_pages(exported);
            let lists = f64::from(geometry.blocks()) * 20.0 + 64.0 * 258.0 * 12.0;
            let table_bytes = table.bytes() as f64 + lists;
            let bytes = table_bytes / f64::from(geometry.pages()) + array.bytes_per_page();
            assert!(
                bytes <= 6.0,
                "{bytes} with over-provisioning {ratio}, {} bits dropped",
                table.dropped
            );
        }
    }

    #[test]
    fn bits_are_dropped_only_where_needed() {
        let (geometry, exported) = device(1311, 0.28);
        assert_eq!(PageTable::new(&geometry, exported).dropped, 0);
        let (geometry, exported) = device(20, 0.07);
        assert_eq!(PageTable::new(&geometry, exported).dropped, 0);
    }
}
