//! Striping: which range of each member a range of the array maps to.

use hybridsim_engine::{Ctx, Request};

/// Chunks distributed round-robin over members, or over groups of copies.
#[derive(Clone, Copy, Debug)]
pub struct Striping {
    pub members: u64,
    /// Sectors.
    pub chunk: u64,
}

impl Striping {
    /// The part of sectors `lba..end` that `member` holds: first sector on the member and number
    /// of sectors, which are contiguous there.
    pub fn share(&self, member: u64, lba: u64, end: u64) -> Option<(u64, u64)> {
        let (head, tail) = (lba / self.chunk, (end - 1) / self.chunk);
        let first = head + (member + self.members - head % self.members) % self.members;
        if first > tail {
            return None;
        }
        let last = tail - (tail % self.members + self.members - member) % self.members;
        let skip = if first == head { lba % self.chunk } else { 0 };
        let stop = if last == tail { (end - 1) % self.chunk + 1 } else { self.chunk };
        let from = first / self.members * self.chunk + skip;
        let to = last / self.members * self.chunk + stop;
        Some((from, to - from))
    }

    /// Members that hold part of sectors `lba..end`: the first, and how many in round-robin order.
    pub fn concerned(&self, lba: u64, end: u64) -> (u64, u64) {
        let (head, tail) = (lba / self.chunk, (end - 1) / self.chunk);
        (head % self.members, (tail - head + 1).min(self.members))
    }

    /// Calls `visit` with (sectors into the parent, sectors into the share, sectors) of every
    /// chunk of a member's share of a parent that starts at `lba`.
    fn chunks(
        &self,
        member: u64,
        lba: u64,
        share: (u64, u64),
        mut visit: impl FnMut(u32, u32, u32),
    ) {
        let (from, sectors) = share;
        let mut at = from;
        while at < from + sectors {
            let length = (self.chunk - at % self.chunk).min(from + sectors - at);
            let row = at / self.chunk;
            let here = (row * self.members + member) * self.chunk + at % self.chunk;
            visit((here - lba) as u32, (at - from) as u32, length as u32);
            at += length;
        }
    }

    /// Copies data versions between a request of the parent and a member's request, whose buffer
    /// holds only its share.
    pub fn copy(
        &self,
        ctx: &mut Ctx<'_>,
        parent: &Request,
        child: &Request,
        member: u64,
        to_child: bool,
    ) {
        let share = (child.lba.0, u64::from(child.sectors));
        self.chunks(member, parent.lba.0, share, |in_parent, in_child, sectors| {
            let (above, below) = (parent.data.skip(in_parent), child.data.skip(in_child));
            let (from, to) = if to_child { (above, below) } else { (below, above) };
            for sector in 0..sectors {
                let version = ctx.data().versions(from.skip(sector), 1)[0];
                ctx.data().versions_mut(to.skip(sector), 1)[0] = version;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_what_counting_sectors_gives() {
        let striping = Striping { members: 3, chunk: 4 };
        for lba in 0..40 {
            for end in lba + 1..60 {
                let (first, count) = striping.concerned(lba, end);
                for member in 0..3 {
                    let mine = |sector: &u64| sector / 4 % 3 == member;
                    let on_it: Vec<u64> =
                        (lba..end).filter(mine).map(|at| at / 12 * 4 + at % 4).collect();
                    let share = striping.share(member, lba, end);
                    let expect = on_it.first().map(|from| (*from, on_it.len() as u64));
                    assert_eq!(share, expect, "{member} of {lba}..{end}");
                    assert_eq!(share.is_some(), (member + 3 - first) % 3 < count);
                }
            }
        }
    }
}
