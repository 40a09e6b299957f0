//! The reference model of verified runs: records every write and checks what reads return.
//!
//! Writes that overlap in time may land in either order, and a read may see a write in flight.
//! Times only have to order the starts and ends of requests; the host counts them, so that the
//! order within one instant is preserved.
//!
//! A read may therefore return write `w` unless another write started after `w` had completed
//! and completed before the read started.

use crate::request::Lba;
use crate::time::SimTime;
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug)]
struct Written {
    version: u64,
    from: SimTime,
    /// [`SimTime::NEVER`] while in flight.
    until: SimTime,
    /// Lost in a power failure: it may have reached the medium or not.
    lost: bool,
}

/// Per sector, the writes a read may still return.
#[derive(Debug, Default)]
pub struct ReferenceModel {
    sectors: FxHashMap<u64, Vec<Written>>,
    /// Ranges (first, end) of the trims in flight.
    trims: Vec<(u64, u64)>,
    last_version: u64,
    /// Ranges (first, sectors) of the writes in flight, by version.
    open: FxHashMap<u64, (u64, u32)>,
}

/// A read that returned data no correct device could return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The sector.
    pub lba: Lba,
    /// The version returned.
    pub got: u64,
    /// The versions that would have been valid.
    pub expected: Vec<u64>,
}

const INITIAL: Written = Written::past(0, SimTime::ZERO);

impl Written {
    const fn past(version: u64, at: SimTime) -> Self {
        Self { version, from: at, until: at, lost: false }
    }
}

impl ReferenceModel {
    /// The version for the next write.
    pub fn next_version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    /// A write of `version` to `sectors` sectors from `lba` on starts.
    pub fn write_begins(&mut self, lba: Lba, sectors: u32, version: u64, now: SimTime) {
        self.open.insert(version, (lba.0, sectors));
        for sector in lba.0..lba.0 + u64::from(sectors) {
            let writes = self.sectors.entry(sector).or_insert_with(|| vec![INITIAL]);
            writes.push(Written { version, from: now, until: SimTime::NEVER, lost: false });
        }
    }

    /// The write completed. `oldest` is the start of the oldest request still in flight.
    pub fn write_ends(
        &mut self,
        lba: Lba,
        sectors: u32,
        version: u64,
        now: SimTime,
        oldest: SimTime,
    ) {
        self.open.remove(&version);
        for sector in lba.0..lba.0 + u64::from(sectors) {
            let writes = self.sectors.get_mut(&sector).expect("a write that began");
            if let Some(write) = writes.iter_mut().find(|write| write.version == version) {
                write.until = now;
            }
            forget_hidden(writes, oldest);
        }
    }

    /// A trim that takes no time; see [`ReferenceModel::trim_begins`].
    pub fn trim(&mut self, lba: Lba, sectors: u32, now: SimTime) {
        self.trim_begins(lba, sectors);
        self.trim_ends(lba, sectors, now);
    }

    /// A trim makes the content of the range undefined until the next write: version 0 becomes
    /// valid too, also for writes that complete while the trim is in flight.
    pub fn trim_begins(&mut self, lba: Lba, sectors: u32) {
        self.trims.push((lba.0, lba.offset(u64::from(sectors)).0));
    }

    /// The trim completed.
    pub fn trim_ends(&mut self, lba: Lba, sectors: u32, now: SimTime) {
        let range = (lba.0, lba.offset(u64::from(sectors)).0);
        let at = self.trims.iter().position(|trim| *trim == range).expect("a trim that began");
        self.trims.swap_remove(at);
        self.zero_range(range, now);
    }

    /// Version 0 becomes valid in a range (first, end).
    fn zero_range(&mut self, range: (u64, u64), now: SimTime) {
        if range.1 - range.0 > self.sectors.len() as u64 {
            // A trim of the whole device: only written sectors are visited. Order does not matter.
            for (sector, writes) in &mut self.sectors {
                if (range.0..range.1).contains(sector) {
                    zero_from(writes, now);
                }
            }
            return;
        }
        for sector in range.0..range.1 {
            if let Some(writes) = self.sectors.get_mut(&sector) {
                zero_from(writes, now);
            }
        }
    }

    /// The power fails at `now`: each sector of the writes in flight may be written or not.
    pub fn power_cut(&mut self, now: SimTime) {
        // The order of the map does not matter: each version is handled by itself.
        for (version, (lba, sectors)) in self.open.drain() {
            for sector in lba..lba + u64::from(sectors) {
                let writes = self.sectors.get_mut(&sector).expect("a write that began");
                if let Some(write) = writes.iter_mut().find(|write| write.version == version) {
                    (write.until, write.lost) = (now, true);
                }
            }
        }
        for range in std::mem::take(&mut self.trims) {
            self.zero_range(range, now);
        }
    }

    /// Checks the versions returned by a read that started at `began` and completes now.
    ///
    /// # Errors
    /// The first sector with an invalid version.
    pub fn check_read(
        &mut self,
        lba: Lba,
        versions: &[u64],
        began: SimTime,
    ) -> Result<(), Mismatch> {
        for (sector, &got) in (lba.0..).zip(versions) {
            if got == 0 && self.trims.iter().any(|trim| (trim.0..trim.1).contains(&sector)) {
                continue;
            }
            let Some(writes) = self.sectors.get_mut(&sector) else {
                if got == 0 {
                    continue;
                }
                return Err(Mismatch { lba: Lba(sector), got, expected: vec![0] });
            };
            if !writes.iter().any(|write| write.version == got && !hidden(write, writes, began)) {
                let legal = writes.iter().filter(|write| !hidden(write, writes, began));
                let expected = legal.map(|write| write.version).collect();
                return Err(Mismatch { lba: Lba(sector), got, expected });
            }
            resolve_lost(writes, got);
        }
        Ok(())
    }
}

/// Whether a read that started at `began` can no longer return `write`.
fn hidden(write: &Written, writes: &[Written], began: SimTime) -> bool {
    writes.iter().filter(|later| !later.lost).any(|later| {
        later.version > write.version && later.from >= write.until && later.until <= began
    })
}

/// A read returned `got`. If that is the data of a write interrupted by a power failure, or what
/// was there before it, later reads have to agree.
fn resolve_lost(writes: &mut Vec<Written>, got: u64) {
    if !writes.iter().any(|write| write.lost) {
        return;
    }
    let Some(seen) = writes.iter().find(|write| write.version == got).copied() else { return };
    let decides = |cut: SimTime| seen.until <= cut && seen.from < cut;
    writes.retain(|write| write.version == got || !(write.lost && decides(write.until)));
    writes.iter_mut().filter(|write| write.version == got).for_each(|write| write.lost = false);
}

/// Makes version 0 valid from `now` on. One such entry is enough: it hides no write, and the latest
/// remains valid longest.
fn zero_from(writes: &mut Vec<Written>, now: SimTime) {
    writes.retain(|write| write.version != 0);
    writes.push(Written::past(0, now));
}

fn forget_hidden(writes: &mut Vec<Written>, oldest: SimTime) {
    if writes.len() > 1 {
        let all = writes.clone();
        writes.retain(|write| !hidden(write, &all, oldest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> SimTime {
        SimTime::from_ns(ns)
    }

    fn sees(reference: &mut ReferenceModel, version: u64, began: u64) -> bool {
        reference.check_read(Lba(5), &[version], at(began)).is_ok()
    }

    #[test]
    fn a_power_cut_in_a_trim_of_everything_looks_at_what_was_written_only() {
        let mut reference = ReferenceModel::default();
        let version = reference.next_version();
        reference.write_begins(Lba(5), 1, version, at(10));
        reference.write_ends(Lba(5), 1, version, at(20), at(20));
        reference.trim_begins(Lba(0), u32::MAX);
        let began = std::time::Instant::now();
        reference.power_cut(at(30));
        assert!(began.elapsed().as_secs() < 5, "sector by sector it takes far longer");
        assert!(sees(&mut reference, 0, 40) && sees(&mut reference, version, 40), "done or not");
    }

    #[test]
    fn a_read_after_a_completed_write_must_see_it() {
        let mut reference = ReferenceModel::default();
        assert!(sees(&mut reference, 0, 0));
        let first = reference.next_version();
        reference.write_begins(Lba(5), 1, first, at(10));
        assert!(
            sees(&mut reference, 0, 5) && sees(&mut reference, first, 5),
            "either while in flight"
        );
        reference.write_ends(Lba(5), 1, first, at(20), at(20));
        assert!(sees(&mut reference, first, 20));
        assert!(!sees(&mut reference, 0, 20));
        assert!(!sees(&mut reference, 99, 20));
    }

    #[test]
    fn writes_that_overlap_may_land_in_either_order() {
        let mut reference = ReferenceModel::default();
        let (first, second) = (reference.next_version(), reference.next_version());
        reference.write_begins(Lba(5), 1, first, at(10));
        reference.write_begins(Lba(5), 1, second, at(12));
        reference.write_ends(Lba(5), 1, second, at(20), at(10));
        reference.write_ends(Lba(5), 1, first, at(30), at(30));
        assert!(sees(&mut reference, first, 40) && sees(&mut reference, second, 40));
        assert!(!sees(&mut reference, 0, 40));
        let third = reference.next_version();
        reference.write_begins(Lba(5), 1, third, at(50));
        reference.write_ends(Lba(5), 1, third, at(60), at(60));
        assert!(sees(&mut reference, third, 60) && !sees(&mut reference, first, 60));
    }

    #[test]
    fn trimmed_sectors_may_read_as_never_written() {
        let mut reference = ReferenceModel::default();
        let version = reference.next_version();
        reference.write_begins(Lba(5), 1, version, at(1));
        reference.write_ends(Lba(5), 1, version, at(2), at(2));
        reference.trim(Lba(5), 1, at(3));
        assert!(sees(&mut reference, 0, 3) && sees(&mut reference, version, 3));
        let next = reference.next_version();
        reference.write_begins(Lba(5), 1, next, at(4));
        reference.write_ends(Lba(5), 1, next, at(5), at(5));
        assert!(!sees(&mut reference, 0, 6) && !sees(&mut reference, version, 6));
    }

    #[test]
    fn a_trim_in_flight_may_clear_a_write_that_ended_meanwhile() {
        let mut reference = ReferenceModel::default();
        reference.trim_begins(Lba(0), 10);
        let version = reference.next_version();
        reference.write_begins(Lba(5), 1, version, at(2));
        reference.write_ends(Lba(5), 1, version, at(4), at(1));
        assert!(
            sees(&mut reference, 0, 5) && sees(&mut reference, version, 5),
            "the trim may land last"
        );
        reference.trim_ends(Lba(0), 10, at(6));
        assert!(
            sees(&mut reference, 0, 7)
                && sees(&mut reference, version, 7)
                && !sees(&mut reference, 99, 7)
        );
        for ns in 8..100 {
            reference.trim(Lba(0), u32::MAX, at(ns));
        }
        assert!(reference.sectors[&5].len() <= 2, "repeated trims take no memory");
    }

    #[test]
    fn a_power_failure_leaves_the_old_or_the_new_and_a_read_decides() {
        let mut reference = ReferenceModel::default();
        let (old, new) = (reference.next_version(), reference.next_version());
        reference.write_begins(Lba(5), 1, old, at(1));
        reference.write_ends(Lba(5), 1, old, at(2), at(2));
        reference.write_begins(Lba(5), 1, new, at(3));
        reference.power_cut(at(4));
        assert!(!sees(&mut reference, 0, 5), "what was acknowledged is not lost");
        assert!(sees(&mut reference, new, 5));
        assert!(!sees(&mut reference, old, 6), "it was there, and must stay");
        let after = reference.next_version();
        reference.write_begins(Lba(5), 1, after, at(7));
        reference.write_ends(Lba(5), 1, after, at(8), at(8));
        assert!(sees(&mut reference, after, 9) && !sees(&mut reference, new, 9));
    }
}
