//! Which sectors are in the non-volatile cache, and where: extents by address, free space by place.

use hybridsim_engine::sorted::SortedMap;

/// Sectors that lie together in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length in sectors.
    pub sectors: u64,
    /// First sector in the cache.
    pub at: u64,
    /// Held for the host; otherwise it is the drive's own.
    pub pinned: bool,
    /// The cache holds the newest data; otherwise the place is only reserved.
    pub valid: bool,
    /// Order of entering the drive's own set.
    pub since: u64,
}

impl Extent {
    /// Data of the drive's own.
    pub const fn is_own(&self) -> bool {
        !self.pinned && self.valid
    }
}

/// A part of a range: in the cache (an extent cut to the range), or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First sector.
    pub lba: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// What the cache has.
    pub extent: Option<Extent>,
}

/// The map of the cache. Extents never overlap; every place is free or belongs to one of them.
#[derive(Debug)]
pub struct Extents {
    /// Sectors of flash.
    places: u64,
    /// Of these, so many more than may be in use: room to keep together what is written together.
    spare: u64,
    map: SortedMap<u64, Extent>,
    /// The drive's own extents with data: order of entering and first sector.
    own: SortedMap<(u64, u64), ()>,
    /// Free places: first sector, length.
    free: SortedMap<u64, u64>,
    /// The same by length, then first sector.
    lengths: SortedMap<(u64, u64), ()>,
    free_sectors: u64,
    /// Where the next search for room begins.
    next: u64,
    entered: u64,
}

impl Extents {
    /// An empty cache of `size` sectors on flash of `places`, which are no fewer.
    pub fn new(size: u64, places: u64) -> Self {
        let mut extents = Self {
            places,
            spare: places - size,
            map: SortedMap::default(),
            own: SortedMap::default(),
            free: SortedMap::default(),
            lengths: SortedMap::default(),
            free_sectors: 0,
            next: 0,
            entered: 0,
        };
        extents.release(0, places);
        extents
    }

    /// Sectors in all.
    pub const fn size(&self) -> u64 {
        self.places - self.spare
    }

    /// Sectors that are free.
    pub const fn free(&self) -> u64 {
        self.free_sectors - self.spare
    }

    /// All extents, by address.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Extent)> + '_ {
        self.map.iter()
    }

    /// Puts `lba..end`, piece by piece, into `pieces`.
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

    /// Puts an extent into the map, over one that begins there as the case may be.
    fn put(&mut self, lba: u64, extent: Extent) {
        self.take(lba);
        self.map.insert(lba, extent);
        if extent.is_own() {
            self.own.insert((extent.since, lba), ());
        }
    }

    fn take(&mut self, lba: u64) {
        if let Some(extent) = self.map.remove(lba) {
            self.own.remove((extent.since, lba));
        }
    }

    /// Makes `at` the border of two extents if it lies within one.
    fn split(&mut self, at: u64) {
        let Some((start, extent)) = self.map.before(at) else { return };
        if start + extent.sectors <= at {
            return;
        }
        let skip = at - start;
        let tail = Extent { at: extent.at + skip, sectors: extent.sectors - skip, ..extent };
        self.put(at, tail);
        self.put(start, Extent { sectors: skip, ..extent });
    }

    /// Changes every extent within `lba..end`, but not when it entered; those that reach out of
    /// it are cut first.
    pub fn change(&mut self, lba: u64, end: u64, mut change: impl FnMut(&mut Extent)) {
        self.split(lba);
        self.split(end);
        let mut from = lba;
        while let Some((lba, mut extent)) = self.map.at_or_after(from).filter(|it| it.0 < end) {
            let was_own = extent.is_own();
            change(&mut extent);
            *self.map.get_mut(lba).expect("it was found") = extent;
            match (was_own, extent.is_own()) {
                (false, true) => self.own.insert((extent.since, lba), ()),
                (true, false) => self.own.remove((extent.since, lba)),
                _ => None,
            };
            from = lba + extent.sectors;
        }
    }

    /// Takes those extents within `lba..end` out that are `unwanted`.
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

    /// Reserves places for `lba..lba + sectors`, none of which is in the cache.
    ///
    /// # Panics
    /// When there is not so much room; ask [`Extents::free`] first.
    pub fn reserve(&mut self, lba: u64, sectors: u64, pinned: bool) {
        assert!(sectors <= self.free(), "room was asked for before");
        let (mut lba, mut left) = (lba, sectors);
        self.entered += 1;
        while left > 0 {
            let (at, took) = self.allocate(left);
            let since = self.entered;
            self.put(lba, Extent { sectors: took, at, pinned, valid: false, since });
            (lba, left) = (lba + took, left - took);
        }
    }

    /// A free place for `sectors`: one of the next few that is long enough, so that what is written
    /// together lies together; or the shortest of all that is long enough, as one access to flash
    /// is what a request costs (bisson-fqueue, section III.B); or the longest, if all are too short.
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
        let mut near = after.take(PLACES_TRIED).filter(|(_, length)| *length >= sectors);
        near.next().unwrap_or_else(|| {
            let fits = self.lengths.at_or_after((sectors, 0));
            let any = fits.or_else(|| self.lengths.before((u64::MAX, 0)));
            let ((length, at), ()) = any.expect("room was asked for before");
            (at, length)
        })
    }

    fn put_free(&mut self, at: u64, sectors: u64) {
        self.free.insert(at, sectors);
        self.lengths.insert((sectors, at), ());
    }

    /// The length of the free place at `at`, which is one no more.
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

    /// Of the drive's own extents with data, the one that entered first.
    pub fn oldest_unpinned(&self) -> Option<(u64, Extent)> {
        let ((_, lba), ()) = self.own.first()?;
        Some((lba, self.map.get(lba).expect("the drive's own are in the map")))
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
        let own = self.iter().filter(|(_, extent)| extent.is_own());
        let mut own: Vec<_> = own.map(|(lba, extent)| ((extent.since, lba), ())).collect();
        own.sort_unstable();
        let listed = self.own.iter().eq(own);
        let mut lengths: Vec<_> = self.free.iter().map(|(at, length)| ((length, at), ())).collect();
        lengths.sort_unstable();
        let sorted = self.lengths.iter().eq(lengths);
        whole
            && at == self.places
            && apart
            && listed
            && sorted
            && self.free_sectors == self.free.iter().map(|free| free.1).sum()
    }
}

/// Free places looked at in their order for one that is long enough.
const PLACES_TRIED: usize = 32;

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
    fn what_fits_anywhere_is_not_cut() {
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
    fn spare_places_are_no_room() {
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
            match stream.below(3) {
                0 => extents.remove(lba, end, |extent| extent.pinned),
                1 => extents.remove(lba, end, |_| true),
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
