//! The shadow model: remembers every write and checks what reads return.
//!
//! Writes that overlap in time may land in either order, and a read may see a write in flight.
//! Any clock that tells the order of beginnings and ends will do; the host counts them, so that
//! the order within one instant is kept.
//!
//! So a write `w` is a legal answer to a read unless another write began after `w` was complete
//! and was itself complete before the read began.

use crate::request::Lba;
use crate::time::SimTime;
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug)]
struct Written {
    stamp: u64,
    from: SimTime,
    /// [`SimTime::NEVER`] while in flight.
    until: SimTime,
}

/// Per sector, the writes a read could still see.
#[derive(Debug, Default)]
pub struct Shadow {
    sectors: FxHashMap<u64, Vec<Written>>,
    /// Ranges (first, end) of the trims in flight.
    trims: Vec<(u64, u64)>,
    next_stamp: u64,
}

/// A read that returned what no correct device could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The sector.
    pub lba: Lba,
    /// What came back.
    pub got: u64,
    /// What could have come back.
    pub expected: Vec<u64>,
}

const INITIAL: Written = Written { stamp: 0, from: SimTime::ZERO, until: SimTime::ZERO };

impl Shadow {
    /// The stamp for the next write.
    pub fn stamp(&mut self) -> u64 {
        self.next_stamp += 1;
        self.next_stamp
    }

    /// A write of `stamp` to `sectors` sectors from `lba` on begins.
    pub fn write_begins(&mut self, lba: Lba, sectors: u32, stamp: u64, now: SimTime) {
        for sector in lba.0..lba.0 + u64::from(sectors) {
            let writes = self.sectors.entry(sector).or_insert_with(|| vec![INITIAL]);
            writes.push(Written { stamp, from: now, until: SimTime::NEVER });
        }
    }

    /// That write is complete. `oldest` is when the oldest request still in flight began.
    pub fn write_ends(
        &mut self,
        lba: Lba,
        sectors: u32,
        stamp: u64,
        now: SimTime,
        oldest: SimTime,
    ) {
        for sector in lba.0..lba.0 + u64::from(sectors) {
            let writes = self.sectors.get_mut(&sector).expect("a write that began");
            if let Some(write) = writes.iter_mut().find(|write| write.stamp == stamp) {
                write.until = now;
            }
            forget_hidden(writes, oldest);
        }
    }

    /// A trim that takes no time: see [`Shadow::trim_begins`].
    pub fn trim(&mut self, lba: Lba, sectors: u32, now: SimTime) {
        self.trim_begins(lba, sectors);
        self.trim_ends(lba, sectors, now);
    }

    /// A trim makes the range's content undefined until the next write: 0 becomes legal too, for
    /// writes that end while the trim is in flight as well.
    pub fn trim_begins(&mut self, lba: Lba, sectors: u32) {
        self.trims.push((lba.0, lba.offset(u64::from(sectors)).0));
    }

    /// That trim is complete.
    pub fn trim_ends(&mut self, lba: Lba, sectors: u32, now: SimTime) {
        let range = (lba.0, lba.offset(u64::from(sectors)).0);
        let at = self.trims.iter().position(|trim| *trim == range).expect("a trim that began");
        self.trims.swap_remove(at);
        if sectors as usize > self.sectors.len() {
            // A trim of the whole device: look at what was written only. Order does not matter.
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

    /// Checks what a read that began at `began` and ends `now` returned.
    ///
    /// # Errors
    /// The first sector with an impossible answer.
    pub fn check_read(&self, lba: Lba, stamps: &[u64], began: SimTime) -> Result<(), Mismatch> {
        for (sector, &got) in (lba.0..).zip(stamps) {
            if got == 0 && self.trims.iter().any(|trim| (trim.0..trim.1).contains(&sector)) {
                continue;
            }
            let Some(writes) = self.sectors.get(&sector) else {
                if got == 0 {
                    continue;
                }
                return Err(Mismatch { lba: Lba(sector), got, expected: vec![0] });
            };
            if !writes.iter().any(|write| write.stamp == got && !hidden(write, writes, began)) {
                let legal = writes.iter().filter(|write| !hidden(write, writes, began));
                let expected = legal.map(|write| write.stamp).collect();
                return Err(Mismatch { lba: Lba(sector), got, expected });
            }
        }
        Ok(())
    }
}

/// Whether a read that began at `began` can no longer see `write`.
fn hidden(write: &Written, writes: &[Written], began: SimTime) -> bool {
    writes
        .iter()
        .any(|later| later.stamp > write.stamp && later.from >= write.until && later.until <= began)
}

/// Makes 0 legal from `now` on. One such entry is enough: 0 hides nothing, and the latest stays
/// legal for longest.
fn zero_from(writes: &mut Vec<Written>, now: SimTime) {
    writes.retain(|write| write.stamp != 0);
    writes.push(Written { stamp: 0, from: now, until: now });
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

    fn sees(shadow: &Shadow, stamp: u64, began: u64) -> bool {
        shadow.check_read(Lba(5), &[stamp], at(began)).is_ok()
    }

    #[test]
    fn a_read_after_a_completed_write_must_see_it() {
        let mut shadow = Shadow::default();
        assert!(sees(&shadow, 0, 0));
        let first = shadow.stamp();
        shadow.write_begins(Lba(5), 1, first, at(10));
        assert!(sees(&shadow, 0, 5) && sees(&shadow, first, 5), "either while in flight");
        shadow.write_ends(Lba(5), 1, first, at(20), at(20));
        assert!(sees(&shadow, first, 20));
        assert!(!sees(&shadow, 0, 20));
        assert!(!sees(&shadow, 99, 20));
    }

    #[test]
    fn writes_that_overlap_may_land_in_either_order() {
        let mut shadow = Shadow::default();
        let (first, second) = (shadow.stamp(), shadow.stamp());
        shadow.write_begins(Lba(5), 1, first, at(10));
        shadow.write_begins(Lba(5), 1, second, at(12));
        shadow.write_ends(Lba(5), 1, second, at(20), at(10));
        shadow.write_ends(Lba(5), 1, first, at(30), at(30));
        assert!(sees(&shadow, first, 40) && sees(&shadow, second, 40));
        assert!(!sees(&shadow, 0, 40));
        let third = shadow.stamp();
        shadow.write_begins(Lba(5), 1, third, at(50));
        shadow.write_ends(Lba(5), 1, third, at(60), at(60));
        assert!(sees(&shadow, third, 60) && !sees(&shadow, first, 60));
    }

    #[test]
    fn trimmed_sectors_may_read_as_never_written() {
        let mut shadow = Shadow::default();
        let stamp = shadow.stamp();
        shadow.write_begins(Lba(5), 1, stamp, at(1));
        shadow.write_ends(Lba(5), 1, stamp, at(2), at(2));
        shadow.trim(Lba(5), 1, at(3));
        assert!(sees(&shadow, 0, 3) && sees(&shadow, stamp, 3));
        let next = shadow.stamp();
        shadow.write_begins(Lba(5), 1, next, at(4));
        shadow.write_ends(Lba(5), 1, next, at(5), at(5));
        assert!(!sees(&shadow, 0, 6) && !sees(&shadow, stamp, 6));
    }

    #[test]
    fn a_trim_in_flight_may_clear_a_write_that_ended_meanwhile() {
        let mut shadow = Shadow::default();
        shadow.trim_begins(Lba(0), 10);
        let stamp = shadow.stamp();
        shadow.write_begins(Lba(5), 1, stamp, at(2));
        shadow.write_ends(Lba(5), 1, stamp, at(4), at(1));
        assert!(sees(&shadow, 0, 5) && sees(&shadow, stamp, 5), "the trim may land last");
        shadow.trim_ends(Lba(0), 10, at(6));
        assert!(sees(&shadow, 0, 7) && sees(&shadow, stamp, 7) && !sees(&shadow, 99, 7));
        for ns in 8..100 {
            shadow.trim(Lba(0), u32::MAX, at(ns));
        }
        assert!(shadow.sectors[&5].len() <= 2, "repeated trims take no memory");
    }
}
