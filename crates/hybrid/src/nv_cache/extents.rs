//! The extent map of the non-volatile cache: cached extents by disk address, free space by flash
//! address.

use hybridsim_engine::sorted::SortedMap;
use serde::{Deserialize, Serialize};

/// Sectors that are contiguous on disk and in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Length in sectors.
    pub sectors: u64,
    /// First sector on flash.
    pub at: u64,
    /// In the pinned set of the host, not in the unpinned set of the drive.
    pub pinned: bool,
    /// The cache holds the newest data; otherwise the space is only reserved.
    pub valid: bool,
    /// The disk holds the same data.
    pub clean: bool,
    /// Order of entering the unpinned set.
    pub since: u64,
}

impl Extent {
    /// Whether the extent is data of the unpinned set that the disk does not hold.
    pub const fn is_dirty(&self) -> bool {
        !self.pinned && self.valid && !self.clean
    }

    /// Whether the extent can be dropped without a write to the disk.
    pub const fn is_droppable(&self) -> bool {
        !self.pinned && self.valid && self.clean
    }
}

/// A part of a range: a cached extent, cut to the range, or a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First sector.
    pub lba: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// The extent, or `None` for a gap.
    pub extent: Option<Extent>,
}

/// The extent map. Extents never overlap; every flash sector is free or belongs to one of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Extents {
    /// Flash capacity in sectors.
    flash: u64,
    /// Flash sectors in excess of the cache size, which keep fragmentation low.
    spare: u64,
    map: SortedMap<u64, Extent>,
    /// Dirty extents of the unpinned set, by order of entering and first sector.
    dirty: SortedMap<(u64, u64), ()>,
    /// Clean extents of the unpinned set, likewise.
    clean: SortedMap<(u64, u64), ()>,
    /// Sectors in each of the two lists.
    dirty_sectors: u64,
    clean_sectors: u64,
    /// Free space: first flash sector, length.
    free: SortedMap<u64, u64>,
    /// Free space by length, then first flash sector.
    lengths: SortedMap<(u64, u64), ()>,
    free_sectors: u64,
    /// Start of the next search for free space.
    next: u64,
    entered: u64,
}

impl Extents {
    /// An empty cache of `size` sectors on a flash device of `flash` sectors.
    pub fn new(size: u64, flash: u64) -> Self {
        let mut extents = Self {
            flash,
            spare: flash - size,
            map: SortedMap::default(),
            dirty: SortedMap::default(),
            clean: SortedMap::default(),
            dirty_sectors: 0,
            clean_sectors: 0,
            free: SortedMap::default(),
            lengths: SortedMap::default(),
            free_sectors: 0,
            next: 0,
            entered: 0,
        };
        extents.release(0, flash);
        extents
    }

    /// Whether `other` is of a cache and a flash device of the same sizes.
    pub const fn is_like(&self, other: &Self) -> bool {
        self.flash == other.flash && self.spare == other.spare
    }

    /// Size of the cache in sectors.
    pub const fn size(&self) -> u64 {
        self.flash - self.spare
    }

    /// Free sectors.
    pub const fn free(&self) -> u64 {
        self.free_sectors - self.spare
    }

    /// Sectors of the unpinned set that the disk does not hold.
    pub const fn dirty(&self) -> u64 {
        self.dirty_sectors
    }

    /// Sectors of the unpinned set that the disk holds as well.
    pub const fn clean(&self) -> u64 {
        self.clean_sectors
    }

    /// All extents, by address.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Extent)> + '_ {
        self.map.iter()
    }

    /// Splits `lba..end` into cached pieces and gaps.
    pub fn pieces(&self, lba: u64, end: u64, pieces: &mut Vec<Piece>) {
        pieces.clear();
        let before = self.map.before(lba);
        let before = before.filter(|(start, extent)| start + extent.sectors > lba);
        let mut at = lba;
        for (start, extent) in before.into_iter().chain(self.map.range(lba..end)) {
            if start > at {
                pieces.push(Piece { lba: at, sectors: start - at, extent: None });
                at = start;
            }
            let stop = end.min(start + extent.sectors);
            let (skip, sectors) = (at - start, stop - at);
            let cut = Extent { at: extent.at + skip, sectors, ..extent };
            pieces.push(Piece { lba: at, sectors, extent: Some(cut) });
            at = stop;
        }
        if at < end {
            pieces.push(Piece { lba: at, sectors: end - at, extent: None });
        }
    }

    /// Inserts an extent; replaces one with the same first sector.
    fn insert(&mut self, lba: u64, extent: Extent) {
        self.take(lba);
        self.map.insert(lba, extent);
        self.list(lba, &extent);
    }

    fn take(&mut self, lba: u64) {
        if let Some(extent) = self.map.remove(lba) {
            self.unlist(lba, &extent);
        }
    }

    /// Adds an extent to the list it belongs to, if any.
    fn list(&mut self, lba: u64, extent: &Extent) {
        if extent.is_dirty() {
            self.dirty.insert((extent.since, lba), ());
            self.dirty_sectors += extent.sectors;
        } else if extent.is_droppable() {
            self.clean.insert((extent.since, lba), ());
            self.clean_sectors += extent.sectors;
        }
    }

    fn unlist(&mut self, lba: u64, extent: &Extent) {
        if extent.is_dirty() {
            self.dirty.remove((extent.since, lba));
            self.dirty_sectors -= extent.sectors;
        } else if extent.is_droppable() {
            self.clean.remove((extent.since, lba));
            self.clean_sectors -= extent.sectors;
        }
    }

    /// Splits the extent that contains `at`, if any.
    fn split(&mut self, at: u64) {
        let Some((start, extent)) = self.map.before(at) else { return };
        if start + extent.sectors <= at {
            return;
        }
        let skip = at - start;
        let tail = Extent { at: extent.at + skip, sectors: extent.sectors - skip, ..extent };
        self.insert(at, tail);
        self.insert(start, Extent { sectors: skip, ..extent });
    }

    /// Changes every extent within `lba..end`, except for `since`; extents that cross the borders
    /// are split first.
    pub fn change(&mut self, lba: u64, end: u64, mut change: impl FnMut(&mut Extent)) {
        self.split(lba);
        self.split(end);
        let mut from = lba;
        while let Some((lba, mut extent)) = self.map.at_or_after(from).filter(|it| it.0 < end) {
            let before = extent;
            change(&mut extent);
            if extent != before {
                self.unlist(lba, &before);
                *self.map.get_mut(lba).expect("it was found") = extent;
                self.list(lba, &extent);
            }
            from = lba + extent.sectors;
        }
    }

    /// Removes the `unwanted` extents within `lba..end`.
    pub fn remove(&mut self, lba: u64, end: u64, unwanted: impl Fn(&Extent) -> bool) {
        self.split(lba);
        self.split(end);
        let mut from = lba;
        loop {
            let next = self.map.range(from..end).find(|(_, extent)| unwanted(extent));
            let Some((start, extent)) = next else { break };
            from = start + extent.sectors;
            self.take(start);
            self.release(extent.at, extent.sectors);
        }
    }

    /// Allocates flash space for `lba..lba + sectors`, none of which is cached.
    ///
    /// # Panics
    /// If [`Extents::free`] is less.
    pub fn reserve(&mut self, lba: u64, sectors: u64, pinned: bool) {
        assert!(sectors <= self.free(), "the caller checks the free space");
        let (mut lba, mut left) = (lba, sectors);
        self.entered += 1;
        while left > 0 {
            let (at, length) = self.allocate(left);
            let since = self.entered;
            let extent = Extent { sectors: length, at, pinned, valid: false, clean: false, since };
            self.insert(lba, extent);
            (lba, left) = (lba + length, left - length);
        }
    }

    /// Allocates up to `sectors` contiguous sectors: next fit among the next few free extents, so
    /// that sequential writes stay contiguous; else best fit, because a request should cost one
    /// flash access (bisson-fqueue, section III.B); else the longest free extent.
    fn allocate(&mut self, sectors: u64) -> (u64, u64) {
        let (at, length) = self.choose(sectors);
        self.take_free(at);
        let took = sectors.min(length);
        if took < length {
            self.put_free(at + took, length - took);
        }
        self.free_sectors -= took;
        self.next = at + took;
        (at, took)
    }

    fn choose(&self, sectors: u64) -> (u64, u64) {
        let after = self.free.from(self.next).chain(self.free.range(0..self.next));
        let mut near = after.take(NEXT_FIT_TRIED).filter(|(_, length)| *length >= sectors);
        near.next().unwrap_or_else(|| {
            let fits = self.lengths.at_or_after((sectors, 0));
            let any = fits.or_else(|| self.lengths.before((u64::MAX, 0)));
            let ((length, at), ()) = any.expect("the caller checks the free space");
            (at, length)
        })
    }

    fn put_free(&mut self, at: u64, sectors: u64) {
        self.free.insert(at, sectors);
        self.lengths.insert((sectors, at), ());
    }

    /// Removes the free extent at `at`; returns its length.
    fn take_free(&mut self, at: u64) -> Option<u64> {
        let length = self.free.remove(at)?;
        self.lengths.remove((length, at));
        Some(length)
    }

    fn release(&mut self, at: u64, sectors: u64) {
        self.free_sectors += sectors;
        let (mut at, mut sectors) = (at, sectors);
        if let Some(length) = self.take_free(at + sectors) {
            sectors += length;
        }
        if let Some((start, length)) = self.free.before(at)
            && start + length == at
        {
            self.take_free(start);
            (at, sectors) = (start, sectors + length);
        }
        self.put_free(at, sectors);
    }

    /// The dirty extent of the unpinned set that entered first.
    pub fn oldest_dirty(&self) -> Option<(u64, Extent)> {
        let ((_, lba), ()) = self.dirty.first()?;
        Some((lba, self.map.get(lba).expect("listed extents are in the map")))
    }

    /// Drops clean extents that `may` be dropped, oldest first, until `free` sectors are free and
    /// at most `clean_max` are clean. Returns whether that was reached.
    pub fn drop_clean(
        &mut self,
        free: u64,
        clean_max: u64,
        may: impl Fn(u64, u64) -> bool,
    ) -> bool {
        let mut from = (0, 0);
        while self.free() < free || self.clean_sectors > clean_max {
            let Some((key, ())) = self.clean.at_or_after(from) else { return false };
            let (since, lba) = key;
            from = (since, lba + 1);
            let end = lba + self.map.get(lba).expect("listed extents are in the map").sectors;
            if may(lba, end) {
                self.remove(lba, end, |_| true);
            }
        }
        true
    }

    #[cfg(test)]
    fn is_sound(&self) -> bool {
        let mut places: Vec<(u64, u64)> = self.free.iter().collect();
        places.extend(self.map.iter().map(|(_, extent)| (extent.at, extent.sectors)));
        places.sort_unstable();
        let mut at = 0;
        let whole = places.iter().all(|(start, length)| {
            let follows = *start == at;
            at += length;
            follows
        });
        let mut end = 0;
        let apart = self.iter().all(|(lba, extent)| {
            let apart = lba >= end;
            end = lba + extent.sectors;
            apart
        });
        let listed = |list: &SortedMap<(u64, u64), ()>, sectors, belongs: fn(&Extent) -> bool| {
            let own: Vec<_> = self.iter().filter(|(_, extent)| belongs(extent)).collect();
            let mut keys: Vec<_> =
                own.iter().map(|(lba, extent)| ((extent.since, *lba), ())).collect();
            keys.sort_unstable();
            let sum = own.iter().map(|(_, extent)| extent.sectors).sum::<u64>();
            list.iter().eq(keys) && sectors == sum
        };
        let listed = listed(&self.dirty, self.dirty_sectors, Extent::is_dirty)
            && listed(&self.clean, self.clean_sectors, Extent::is_droppable);
        let mut lengths: Vec<_> = self.free.iter().map(|(at, length)| ((length, at), ())).collect();
        lengths.sort_unstable();
        let sorted = self.lengths.iter().eq(lengths);
        whole
            && at == self.flash
            && apart
            && listed
            && sorted
            && self.free_sectors == self.free.iter().map(|free| free.1).sum()
    }
}

/// Free extents tried by next fit.
const NEXT_FIT_TRIED: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_range_in_order() {
        let mut extents = Extents::new(100, 100);
        extents.reserve(10, 10, true);
        extents.reserve(30, 5, false);
        let mut pieces = Vec::new();
        extents.pieces(5, 40, &mut pieces);
        let got: Vec<_> =
            pieces.iter().map(|p| (p.lba, p.sectors, p.extent.map(|e| e.at))).collect();
        let expect =
            [(5, 5, None), (10, 10, Some(0)), (20, 10, None), (30, 5, Some(10)), (35, 5, None)];
        assert_eq!(got, expect);
        extents.pieces(12, 14, &mut pieces);
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].extent.map(|e| (e.at, e.sectors)), Some((2, 2)));
        extents.pieces(20, 30, &mut pieces);
        assert_eq!(pieces[0], Piece { lba: 20, sectors: 10, extent: None });
    }

    #[test]
    fn removing_looks_at_every_extent_once() {
        let mut extents = Extents::new(200, 200);
        (0..200).for_each(|lba| extents.reserve(lba, 1, lba % 2 == 0));
        let looked = std::cell::Cell::new(0);
        extents.remove(0, 200, |extent| {
            looked.set(looked.get() + 1);
            !extent.pinned
        });
        assert_eq!((looked.get(), extents.free()), (200, 100));
    }

    #[test]
    fn an_extent_that_fits_anywhere_is_not_split() {
        let mut extents = Extents::new(200, 200);
        (0..100).for_each(|lba| extents.reserve(lba * 2, 2, true));
        // Forty places of two sectors, and behind them one of eight.
        (0..80).step_by(2).for_each(|lba| extents.remove(lba * 2, lba * 2 + 2, |_| true));
        extents.remove(170, 178, |_| true);
        extents.reserve(1_000, 8, true);
        let mut pieces = Vec::new();
        extents.pieces(1_000, 1_008, &mut pieces);
        assert_eq!(pieces.len(), 1, "{pieces:?}");
        // Nothing is left that is longer than two.
        extents.reserve(2_000, 5, true);
        extents.pieces(2_000, 2_005, &mut pieces);
        assert_eq!(pieces.iter().map(|piece| piece.sectors).collect::<Vec<_>>(), [2, 2, 1]);
        assert!(extents.is_sound());
    }

    #[test]
    fn excess_flash_does_not_count_as_free() {
        let mut extents = Extents::new(10, 40);
        extents.reserve(0, 10, true);
        assert_eq!((extents.size(), extents.free()), (10, 0));
        extents.remove(3, 4, |_| true);
        extents.remove(6, 7, |_| true);
        assert_eq!(extents.free(), 2);
        extents.reserve(50, 2, true);
        let mut pieces = Vec::new();
        extents.pieces(50, 52, &mut pieces);
        assert_eq!((pieces.len(), extents.free()), (1, 0));
        assert!(extents.is_sound());
    }

    #[test]
    fn random_use_keeps_the_map_sound() {
        let mut stream = hybridsim_engine::Stream::new(3, "extents");
        let mut extents = Extents::new(200, 230);
        let (mut pieces, mut full) = (Vec::new(), 0);
        for _ in 0..5_000 {
            let lba = stream.below(500);
            let end = lba + 1 + stream.below(40);
            match stream.below(5) {
                0 => extents.remove(lba, end, |extent| extent.pinned),
                1 => extents.remove(lba, end, |_| true),
                2 => extents.change(lba, end, |extent| extent.clean = !extent.clean),
                3 => {
                    let free = stream.below(60);
                    let reached = extents.drop_clean(free, 100, |_, _| true);
                    assert_eq!(reached, extents.free() >= free);
                }
                _ => {
                    extents.pieces(lba, end, &mut pieces);
                    let pinned = stream.chance(0.5);
                    for piece in pieces.iter().filter(|piece| piece.extent.is_none()) {
                        if piece.sectors <= extents.free() {
                            extents.reserve(piece.lba, piece.sectors, pinned);
                        } else {
                            full += 1;
                        }
                    }
                    extents.change(lba, end, |extent| extent.valid = true);
                }
            }
            assert!(extents.is_sound());
        }
        assert!(full > 100, "it was full now and then");
    }
}
