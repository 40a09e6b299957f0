//! The table of the page-mapped layer: where each logical page is.
//!
//! Together with the spare areas it is what the memory of a large simulated device goes to, six
//! bytes to the physical page or less. Where whole page numbers would take more, the lowest bits
//! of them are left out: the page is then the one of two, four or eight neighbours whose spare
//! area names the logical page and which is valid. That is looked up once for a page the host
//! reads or writes, and never for one that garbage collection moves.

use crate::array::Array;
use crate::geometry::{Geometry, Lpn, Ppn};
use crate::packed::{Packed, width_for};
use hybridsim_engine::state::{Loader, Saver, StateError};

/// Bits to the physical page that table, spare areas and everything else may take.
const BITS_MAX: f64 = 48.0;
/// Bits for each block of the array, and for its place among those to collect.
const BITS_PER_BLOCK: f64 = 28.0 * 8.0;
/// Bits of the page number left out at most: neighbours mostly share a line of the caches.
const NEAR_MAX: u32 = 3;

/// Where each logical page is.
#[derive(Debug)]
pub struct PageTable {
    /// Physical page numbers without their lowest `near` bits.
    groups: Packed,
    near: u32,
}

/// How many bits of the page numbers to leave out.
fn near_for(geometry: &Geometry, exported_pages: u32) -> u32 {
    let largest = geometry.pages() - 1;
    let owner = f64::from(width_for(exported_pages.saturating_sub(1)));
    let others = owner + 1.0 + BITS_PER_BLOCK / f64::from(geometry.pages_per_block());
    let per_page = f64::from(exported_pages) / f64::from(geometry.pages());
    let fits = |near: &u32| f64::from(width_for(largest >> near)) * per_page + others <= BITS_MAX;
    (0..NEAR_MAX).find(fits).unwrap_or(NEAR_MAX)
}

impl PageTable {
    /// Nothing is stored yet.
    pub fn new(geometry: &Geometry, exported_pages: u32) -> Self {
        // On a small device the processor's caches hold everything and nothing is to be saved.
        Self::with_near(geometry, exported_pages, near_for(geometry, exported_pages))
    }

    /// As [`PageTable::new`], leaving `near` bits out.
    pub fn with_near(geometry: &Geometry, exported_pages: u32, near: u32) -> Self {
        let largest = (geometry.pages() - 1) >> near;
        Self { groups: Packed::new(exported_pages as usize, largest), near }
    }

    /// Logical pages.
    #[inline]
    pub const fn pages(&self) -> usize {
        self.groups.len()
    }

    /// Bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.groups.bytes()
    }

    /// Where `lpn` is, or [`Ppn::NONE`].
    #[inline]
    pub fn get(&self, lpn: Lpn, array: &Array) -> Ppn {
        let group = self.groups.get(lpn.0 as usize);
        if self.near == 0 || group == u32::MAX {
            return Ppn(group);
        }
        array.find(Ppn(group << self.near), 1 << self.near, lpn)
    }

    /// From now on `lpn` is at `page`, which is not programmed yet. Says where it was.
    #[inline]
    pub fn replace(&mut self, lpn: Lpn, page: Ppn, array: &Array) -> Ppn {
        let group = self.groups.replace(lpn.0 as usize, page.0 >> self.near);
        if self.near == 0 || group == u32::MAX {
            return Ppn(group);
        }
        array.find(Ppn(group << self.near), 1 << self.near, lpn)
    }

    /// Where `lpn` is, or a neighbour of that page, or [`Ppn::NONE`]: enough to look ahead.
    #[inline]
    pub fn about(&self, lpn: Lpn) -> Ppn {
        let group = self.groups.get(lpn.0 as usize);
        Ppn(if group == u32::MAX { group } else { group << self.near })
    }

    /// Whether `lpn` is anywhere.
    #[inline]
    pub fn holds(&self, lpn: Lpn) -> bool {
        self.groups.get(lpn.0 as usize) != u32::MAX
    }

    /// From now on `lpn` is at `page`, which may be [`Ppn::NONE`].
    #[inline]
    pub fn set(&mut self, lpn: Lpn, page: Ppn) {
        let group = if page == Ppn::NONE { u32::MAX } else { page.0 >> self.near };
        self.groups.set(lpn.0 as usize, group);
    }

    /// From now on `lpns` are at `first` and the pages behind it.
    #[inline]
    pub fn set_run(&mut self, lpns: &[u32], first: Ppn) {
        for (page, lpn) in (first.0..).zip(lpns) {
            self.groups.set(*lpn as usize, page >> self.near);
        }
    }

    /// Looks at the entries of `lpns`, so that misses of the caches overlap. Pages that do not
    /// exist are left out.
    #[inline]
    pub fn touch(&self, lpns: &[u32]) {
        std::hint::black_box(self.groups.touch(lpns));
    }

    /// Looks at what [`PageTable::get`] will need beside the table for a page at or near `page`.
    #[inline]
    pub fn touch_page(&self, page: Ppn, array: &Array) {
        if self.near != 0 && page != Ppn::NONE {
            array.touch_owners(page, 1 << self.near);
        }
    }

    /// Puts the table down.
    pub fn save(&self, to: &mut Saver) {
        to.put(&self.near);
        self.groups.save(to);
    }

    /// Takes it back.
    ///
    /// # Errors
    /// When it is of another device.
    pub fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        if from.take::<u32>()? != self.near {
            return Err(StateError("the page map is of another width".to_owned()));
        }
        self.groups.restore(from)
    }

    /// Counts the pages that are stored.
    ///
    /// # Errors
    /// The first one that is not where the table says.
    pub fn audit(&self, array: &Array) -> Result<u64, String> {
        let mut stored = 0;
        for lpn in (0..self.pages() as u32).map(Lpn).filter(|lpn| self.holds(*lpn)) {
            let page = self.get(lpn, array);
            if page == Ppn::NONE || array.owner(page) != lpn {
                return Err(format!("logical page {} is mapped to a page of another", lpn.0));
            }
            stored += 1;
        }
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::ProgramOrder;
    use crate::geometry::Shape;

    /// A device of so many blocks in each of 64 planes, and the pages it offers.
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
        let geometry = Geometry::new(&shape).expect("a sound shape");
        let exported = geometry.exported_pages(ratio);
        (geometry, exported)
    }

    #[test]
    fn memory_is_six_bytes_to_the_physical_page_at_most() {
        // About 64 GiB offered, and a page more or less than a power of two.
        for (blocks, ratio) in [(1096, 0.07), (1095, 0.07), (1078, 0.05), (1311, 0.28), (1229, 0.2)]
        {
            let (geometry, exported) = device(blocks, ratio);
            let table = PageTable::new(&geometry, exported);
            let array = Array::new(geometry, ProgramOrder::Sequential, 1_000);
            let array = array.with_logical_pages(exported);
            let lists = f64::from(geometry.blocks()) * 20.0 + 64.0 * 258.0 * 12.0;
            let table_bytes = table.bytes() as f64 + lists;
            let bytes = table_bytes / f64::from(geometry.pages()) + array.bytes_per_page();
            assert!(bytes <= 6.0, "{bytes} with {ratio} spare, {} bits left out", table.near);
        }
    }

    #[test]
    fn bits_are_left_out_only_where_they_must() {
        let (geometry, exported) = device(1311, 0.28);
        assert_eq!(PageTable::new(&geometry, exported).near, 0);
        let (geometry, exported) = device(20, 0.07);
        assert_eq!(PageTable::new(&geometry, exported).near, 0);
    }
}
