//! Which sectors hold data: reserved areas, spares, slips and remaps.
//!
//! All sectors of a drive are counted in the order of its tracks. The data are in pieces of that
//! row; a slip begins a new piece one sector further on, a moved sector is a piece of its own.

use super::sparing::Sparing;
use super::zone::ZoneSpec;
use hybridsim_config::param::Problem;

/// Most pieces a drive may have: what keeps its tables within some ten megabytes.
const PIECES_MAX: usize = 1 << 20;

/// From block `from` on, block `from + n` is in sector `sector + n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub from: u64,
    pub sector: u64,
}

/// Pieces as they are laid one behind the other.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pub list: Vec<Piece>,
    /// Blocks so far.
    pub blocks: u64,
    moved: Vec<(u64, u64)>,
}

impl Pieces {
    /// Sectors `from..to` hold the next data.
    pub fn add(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        let follows = |last: &Piece| last.sector + (self.blocks - last.from) == from;
        if !self.list.last().is_some_and(follows) {
            self.list.push(Piece { from: self.blocks, sector: from });
        }
        self.blocks += to - from;
    }

    /// `data` of the sectors `from..to` that are not among `slips`, which ascend, behind the first
    /// `skip` of them.
    fn add_around(&mut self, (from, to): (u64, u64), slips: &[u64], mut skip: u64, data: u64) {
        let mut left = data;
        let mut at = from;
        for stop in slips.iter().copied().chain([to]) {
            let begin = (at + skip).min(stop);
            skip -= begin - at;
            let take = left.min(stop - begin);
            self.add(begin, begin + take);
            left -= take;
            at = stop + 1;
        }
    }

    /// A zone of `heads` surfaces that begins at sector `first`.
    pub fn add_zone(
        &mut self,
        spec: &ZoneSpec,
        heads: u32,
        first: u64,
        sparing: Sparing,
    ) -> Result<(), String> {
        let (track, heads) = (u64::from(spec.sectors_per_track), u64::from(heads));
        let cylinders = u64::from(spec.last_cylinder - spec.first_cylinder) + 1;
        let all = cylinders * heads * track;
        let by_track = sparing == Sparing::ZoneTracks;
        let spares = spec.spares.saturating_mul(if by_track { track } else { 1 });
        let slips = slips(spec, by_track, cylinders * heads)?;
        let end = all.saturating_sub(spec.spare_sectors);
        let whole = spares == 0 && slips.is_empty();
        let unit = if whole { all } else { sparing.unit(track, heads, all) };
        let (begin, mut empty) = match sparing.reserves_data() && !whole {
            true => (0, spec.reserved_sectors),
            false => (spec.reserved_sectors, 0),
        };
        if all / unit > (PIECES_MAX - self.list.len().min(PIECES_MAX)) as u64 {
            return Err(format!("too many areas with spares of their own (over {PIECES_MAX})"));
        }
        let before = self.blocks;
        let mut start = 0;
        while start < all {
            let (from, to) = (start.max(begin), (start + unit).min(end));
            start += unit;
            if from >= to {
                continue;
            }
            let low = slips.partition_point(|&slip| slip < from);
            let bad = &slips[low..slips.partition_point(|&slip| slip < to)];
            let lost = if sparing == Sparing::DiskEnd { bad.len() as u64 } else { 0 };
            let good = (to - from) - bad.len() as u64;
            let data = (to - from).saturating_sub(spares.saturating_add(lost)).min(good);
            let unused = if sparing == Sparing::CylinderFront { good - data } else { 0 };
            let reserved = data.min(empty);
            empty -= reserved;
            let bad: Vec<u64> = bad.iter().map(|slip| first + slip).collect();
            let sectors = (first + from, first + to);
            self.add_around(sectors, &bad, unused + reserved, data - reserved);
        }
        if self.blocks == before {
            return Err(format!("{all} sectors, of which none is left for data"));
        }
        self.move_defects(spec, by_track, first, before);
        Ok(())
    }

    /// Notes the moved sectors, or tracks, of a zone whose blocks begin at `before`.
    fn move_defects(&mut self, spec: &ZoneSpec, by_track: bool, first: u64, before: u64) {
        let size = if by_track { u64::from(spec.sectors_per_track) } else { 1 };
        for pair in spec.defects.chunks_exact(2) {
            for at in 0..size {
                let (from, to) = (first + pair[0] * size + at, first + pair[1] * size + at);
                if let Some(block) = self.block_at(from).filter(|block| *block >= before) {
                    self.moved.push((block, to));
                }
            }
        }
    }

    /// The block in `sector`, if it holds data.
    fn block_at(&self, sector: u64) -> Option<u64> {
        let number = self.list.partition_point(|piece| piece.sector <= sector).checked_sub(1)?;
        let piece = &self.list[number];
        let end = self.list.get(number + 1).map_or(self.blocks, |next| next.from);
        let block = piece.from + (sector - piece.sector);
        (block < end).then_some(block)
    }

    /// Blocks `block..block + count` are in the sectors from `sector` on instead.
    pub fn move_blocks(&mut self, block: u64, count: u64, sector: u64) {
        self.moved.extend((0..count).map(|n| (block + n, sector + n)));
    }

    /// The pieces, moved sectors put in.
    pub fn finish(mut self, problems: &mut Vec<Problem>) -> (Vec<Piece>, u64) {
        self.moved.sort_unstable();
        self.moved.dedup_by_key(|moved| moved.0);
        self.moved.retain(|moved| moved.0 < self.blocks);
        if self.list.len() + 2 * self.moved.len() > PIECES_MAX {
            let message = format!("more than {PIECES_MAX} slips, spare areas and moved sectors");
            problems.push(Problem::new("zones", message));
            return (Vec::new(), 0);
        }
        if self.moved.is_empty() {
            return (self.list, self.blocks);
        }
        let mut out = Self::default();
        let mut moved = self.moved.iter().copied().peekable();
        for (number, piece) in self.list.iter().enumerate() {
            let end = self.list.get(number + 1).map_or(self.blocks, |next| next.from);
            let mut at = piece.from;
            while let Some((block, sector)) = moved.next_if(|moved| moved.0 < end) {
                out.add(piece.sector + (at - piece.from), piece.sector + (block - piece.from));
                out.add(sector, sector + 1);
                at = block + 1;
            }
            out.add(piece.sector + (at - piece.from), piece.sector + (end - piece.from));
        }
        (out.list, out.blocks)
    }
}

/// The bad sectors of a zone of so many `tracks` that are left out, ascending. With spare tracks
/// its `slips` and `defects` are whole tracks, as in DiskSim.
fn slips(spec: &ZoneSpec, by_track: bool, tracks: u64) -> Result<Vec<u64>, String> {
    let track = u64::from(spec.sectors_per_track);
    let (what, size, all) =
        if by_track { ("track", track, tracks) } else { ("sector", 1, tracks * track) };
    if let Some(beyond) = spec.slips.iter().chain(&spec.defects).find(|&&bad| bad >= all) {
        return Err(format!("a bad {what} at {beyond}, but it has only {all} {what}s"));
    }
    if spec.defects.len() % 2 == 1 {
        return Err("a list of `defects` that is not in pairs".to_owned());
    }
    let mut slips = spec.slips.clone();
    slips.sort_unstable();
    slips.dedup();
    if slips.len() as u64 * size > PIECES_MAX as u64 {
        return Err(format!("more than {PIECES_MAX} bad sectors"));
    }
    Ok(slips.iter().flat_map(|slip| slip * size..(slip + 1) * size).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One zone of 2 cylinders, 2 heads, 5 sectors per track; the sector of each block.
    fn sectors(sparing: Sparing, change: impl Fn(&mut ZoneSpec)) -> Vec<u64> {
        let mut spec = ZoneSpec { last_cylinder: 1, sectors_per_track: 5, ..ZoneSpec::default() };
        change(&mut spec);
        let mut pieces = Pieces::default();
        pieces.add_zone(&spec, 2, 100, sparing).unwrap();
        let mut problems = Vec::new();
        let (list, blocks) = pieces.finish(&mut problems);
        assert!(problems.is_empty());
        let of = |block: u64| {
            let piece = list[list.partition_point(|piece| piece.from <= block) - 1];
            piece.sector + (block - piece.from) - 100
        };
        (0..blocks).map(of).collect()
    }

    fn without(bad: &[u64]) -> Vec<u64> {
        (0..20).filter(|sector| !bad.contains(sector)).collect()
    }

    #[test]
    fn every_scheme_puts_its_spares_in_their_place() {
        let one = |spec: &mut ZoneSpec| spec.spares = 1;
        let check = |sparing, spare: &[u64]| assert_eq!(sectors(sparing, one), without(spare));
        check(Sparing::ZoneTracks, &[15, 16, 17, 18, 19]);
        check(Sparing::CylinderEnd, &[9, 19]);
        check(Sparing::TrackEnd, &[4, 9, 14, 19]);
        check(Sparing::CylinderFront, &[0, 10]);
        check(Sparing::CylinderRange(2), &[19]);
        check(Sparing::ZoneEnd, &[19]);
        check(Sparing::DiskEnd, &[19]);
    }

    #[test]
    fn a_slip_uses_up_a_spare_of_its_unit() {
        let slip = |spec: &mut ZoneSpec| (spec.spares, spec.slips) = (1, vec![12, 3]);
        let check = |sparing, spare: &[u64]| assert_eq!(sectors(sparing, slip), without(spare));
        check(Sparing::CylinderEnd, &[3, 12]);
        check(Sparing::TrackEnd, &[3, 9, 12, 19]);
        check(Sparing::CylinderFront, &[3, 12]);
        check(Sparing::DiskEnd, &[3, 12, 19]);
    }

    #[test]
    fn with_spare_tracks_whole_tracks_are_left_out_and_moved() {
        let slip = |spec: &mut ZoneSpec| (spec.spares, spec.slips) = (1, vec![1]);
        assert_eq!(sectors(Sparing::ZoneTracks, slip), without(&[5, 6, 7, 8, 9]));
        let moved = |spec: &mut ZoneSpec| (spec.spares, spec.defects) = (1, vec![0, 3]);
        let expected: Vec<u64> = (15..20).chain(5..15).collect();
        assert_eq!(sectors(Sparing::ZoneTracks, moved), expected);
    }

    #[test]
    fn empty_space_at_the_front_is_counted_in_data_where_units_have_spares() {
        let empty = |spec: &mut ZoneSpec| (spec.spares, spec.reserved_sectors) = (1, 6);
        let check = |sparing, unused: &[u64]| assert_eq!(sectors(sparing, empty), without(unused));
        // Six of the four data sectors of each track: all of the first, two of the second.
        check(Sparing::TrackEnd, &[0, 1, 2, 3, 4, 5, 6, 9, 14, 19]);
        check(Sparing::CylinderEnd, &[0, 1, 2, 3, 4, 5, 9, 19]);
        check(Sparing::CylinderFront, &[0, 1, 2, 3, 4, 5, 6, 10]);
        check(Sparing::ZoneEnd, &[0, 1, 2, 3, 4, 5, 19]);
        let slipped = |spec: &mut ZoneSpec| {
            (spec.spares, spec.reserved_sectors, spec.slips) = (1, 2, vec![1]);
        };
        assert_eq!(sectors(Sparing::TrackEnd, slipped), without(&[0, 1, 2, 9, 14, 19]));
    }

    #[test]
    fn reserved_sectors_and_moved_ones() {
        let front = |spec: &mut ZoneSpec| {
            (spec.reserved_sectors, spec.spare_sectors) = (2, 3);
            spec.defects = vec![6, 18];
        };
        let expected = [2, 3, 4, 5, 18, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        assert_eq!(sectors(Sparing::None, front), expected);
    }
}
