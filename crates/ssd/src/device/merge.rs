//! Mapping units that were written in part and wait in the write buffer for the rest, as in drives
//! whose mapping unit is larger than the writes of most hosts. Capacitors protect them: they
//! survive power failures, and a flush does not write them.

use super::split::PagePart;
use hybridsim_engine::StateError;
use hybridsim_flash::ftl::{Ftl, FtlError, Hint};
use hybridsim_flash::geometry::Lpn;
use hybridsim_flash::ops::FlashOps;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A unit of which some sectors were written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartialUnit {
    lpn: u32,
    /// By sector; in verified runs with its version.
    sectors: Vec<Option<u64>>,
    missing: u32,
    /// Placement handle of the last write to it.
    handle: u8,
    /// Number of the last write to it.
    written: u64,
}

impl PartialUnit {
    /// Reads the rest from flash, if there is one. Returns whether it did.
    pub fn read_rest(&self, ftl: &mut dyn Ftl, flash: &mut FlashOps) -> bool {
        let per_page = self.sectors.len() as u32;
        let sectors = per_page - self.missing;
        let written = PagePart { lpn: Lpn(self.lpn), skip: 0, offset: 0, sectors };
        written.read_rest(ftl, flash, per_page)
    }

    /// Writes it to flash as one page.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    pub fn write(&self, ftl: &mut dyn Ftl, flash: &mut FlashOps) -> Result<(), FtlError> {
        ftl.write(Lpn(self.lpn), Hint { handle: self.handle, ..Hint::of_pages(1) }, flash)
    }

    /// Puts the versions of its sectors from `first` on over those in `into`.
    pub fn overlay(&self, first: u32, into: &mut [u64]) {
        for (version, sector) in into.iter_mut().zip(&self.sectors[first as usize..]) {
            *version = sector.unwrap_or(*version);
        }
    }
}

/// The units that wait.
#[derive(Debug, Serialize, Deserialize)]
pub struct MergeBuffer {
    units_max: usize,
    sectors_per_page: u32,
    /// Pages of the device.
    pages: u32,
    units: FxHashMap<u32, PartialUnit>,
    /// Units by the number of the last write to them.
    by_write: BTreeMap<u64, u32>,
    writes: u64,
}

impl MergeBuffer {
    /// A buffer of `units_max` units of a device of `pages` pages.
    pub fn new(units_max: usize, sectors_per_page: u32, pages: u32) -> Self {
        let (units, by_write) = (FxHashMap::default(), BTreeMap::new());
        Self { units_max, sectors_per_page, pages, units, by_write, writes: 0 }
    }

    /// Takes `part` of a write with placement `handle`, in verified runs with its `versions`. The
    /// unit of `part` if it is complete, or the one written least recently if there is no room for
    /// it, goes to `store`. Returns whether there was one.
    ///
    /// # Errors
    /// As `store`; the unit is kept then.
    pub fn write(
        &mut self,
        part: &PagePart,
        handle: u8,
        versions: &[u64],
        store: impl FnOnce(&PartialUnit) -> Result<(), FtlError>,
    ) -> Result<bool, FtlError> {
        let Some(lpn) = self.add(part, handle, versions) else { return Ok(false) };
        store(&self.units[&lpn])?;
        self.take(Lpn(lpn));
        Ok(true)
    }

    /// Adds `part`. Returns the unit that has to leave.
    fn add(&mut self, part: &PagePart, handle: u8, versions: &[u64]) -> Option<u32> {
        self.writes += 1;
        let lpn = part.lpn.0;
        let unit = self.units.entry(lpn).or_insert_with(|| PartialUnit {
            lpn,
            sectors: vec![None; self.sectors_per_page as usize],
            missing: self.sectors_per_page,
            handle,
            written: 0,
        });
        self.by_write.remove(&unit.written);
        (unit.written, unit.handle) = (self.writes, handle);
        self.by_write.insert(self.writes, lpn);
        for (at, sector) in unit.sectors[part.range()].iter_mut().enumerate() {
            unit.missing -= u32::from(sector.is_none());
            *sector = Some(versions.get(at).copied().unwrap_or(0));
        }
        if unit.missing == 0 {
            return Some(lpn);
        }
        let oldest = self.by_write.first_key_value().filter(|_| self.units.len() > self.units_max);
        oldest.map(|(_, oldest)| *oldest)
    }

    /// Removes the unit `lpn`, which is written or trimmed as a whole.
    pub fn take(&mut self, lpn: Lpn) {
        if let Some(unit) = self.units.remove(&lpn.0) {
            self.by_write.remove(&unit.written);
        }
    }

    /// Continues as `saved`.
    ///
    /// # Errors
    /// If `saved` is the buffer of another device.
    pub fn restore(&mut self, saved: Self) -> Result<(), StateError> {
        let sizes = |it: &Self| (it.units_max, it.sectors_per_page, it.pages);
        let is_whole = |(lpn, unit): (&u32, &PartialUnit)| {
            let missing = unit.sectors.iter().filter(|sector| sector.is_none()).count();
            (*lpn, unit.missing as usize) == (unit.lpn, missing)
                && *lpn < self.pages
                && unit.sectors.len() == self.sectors_per_page as usize
                && saved.by_write.get(&unit.written) == Some(lpn)
        };
        let fits = sizes(&saved) == sizes(self)
            && saved.by_write.len() == saved.units.len()
            && saved.units.iter().all(is_whole);
        if !fits {
            return Err(StateError("the merge buffer is of another device".to_owned()));
        }
        *self = saved;
        Ok(())
    }

    /// The unit `lpn`, if it waits.
    pub fn get(&self, lpn: Lpn) -> Option<&PartialUnit> {
        self.units.get(&lpn.0)
    }

    /// Whether all of `part` can be read from here.
    pub fn holds(&self, part: &PagePart) -> bool {
        let is_here = |unit: &PartialUnit| unit.sectors[part.range()].iter().all(Option::is_some);
        self.get(part.lpn).is_some_and(is_here)
    }

    /// Gives sector `offset` of unit `lpn` its previous `version` again, if it is here. Returns
    /// whether it is.
    pub fn restore_sector(&mut self, lpn: Lpn, offset: u32, version: u64) -> bool {
        let unit = self.units.get_mut(&lpn.0);
        let sector = unit.and_then(|unit| unit.sectors[offset as usize].as_mut());
        sector.map(|sector| *sector = version).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(lpn: u32, offset: u32, sectors: u32) -> PagePart {
        PagePart { lpn: Lpn(lpn), skip: 0, offset, sectors }
    }

    #[test]
    fn a_unit_leaves_when_it_is_complete_or_the_oldest_of_too_many() {
        let mut buffer = MergeBuffer::new(2, 4, 100);
        let mut left = Vec::new();
        let mut write = |buffer: &mut MergeBuffer, part: PagePart, versions: &[u64]| {
            buffer.write(&part, 0, versions, |unit| {
                let mut all = [0; 4];
                unit.overlay(0, &mut all);
                left.push((unit.lpn, all, unit.missing));
                Ok(())
            })
        };
        assert_eq!(write(&mut buffer, part(7, 0, 2), &[1, 2]), Ok(false));
        assert_eq!(write(&mut buffer, part(8, 0, 1), &[3]), Ok(false));
        assert!(buffer.holds(&part(7, 1, 1)) && !buffer.holds(&part(7, 1, 2)));
        // A sector written twice is missing once.
        assert_eq!(write(&mut buffer, part(7, 1, 1), &[4]), Ok(false));
        assert_eq!(write(&mut buffer, part(7, 2, 2), &[5, 6]), Ok(true), "all four sectors");
        assert_eq!(write(&mut buffer, part(9, 3, 1), &[7]), Ok(false));
        assert_eq!(write(&mut buffer, part(8, 1, 1), &[8]), Ok(false));
        assert_eq!(write(&mut buffer, part(10, 0, 1), &[9]), Ok(true), "one too many");
        assert_eq!(left, [(7, [1, 4, 5, 6], 0), (9, [0, 0, 0, 7], 3)]);
        buffer.take(Lpn(8));
        assert!(buffer.get(Lpn(8)).is_none());
        let full = FtlError::Full(String::new());
        let failed = buffer.write(&part(10, 1, 3), 0, &[1, 2, 3], |_| Err(full.clone()));
        assert_eq!(failed, Err(full));
        assert!(buffer.holds(&part(10, 0, 4)), "it is kept");
        assert_eq!((buffer.units.len(), buffer.by_write.len()), (1, 1));
    }
}
