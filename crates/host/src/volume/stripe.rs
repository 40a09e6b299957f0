//! Striping (RAID level 0): chunks go round the members.
//!
//! What a request takes from one member is contiguous there, so every member gets at most one
//! request. Its data, scattered over the parent's, travels in a buffer of its own.

use super::fanout::Fanout;
use hybridsim_engine::build::{BuildInput, LayerEntry};
use hybridsim_engine::param::{Kind, Param, Problem};
use hybridsim_engine::registry::Description;
use hybridsim_engine::{
    Completion, Ctx, DataSlice, Layer, LayerInfo, Lba, Op, Request, RequestId, SECTOR_BYTES,
};

/// The registered entry.
pub const ENTRY: LayerEntry = LayerEntry {
    description: Description {
        name: "stripe",
        summary: "RAID 0: chunks go round the members, nothing is redundant",
        origin: "Patterson, Gibson and Katz 1988; the size of the smallest member counts",
        params: &[
            Param::required("members", Kind::Parts, "The devices, in order"),
            Param::with("chunk", Kind::Bytes, "\"64KiB\"", "Bytes in a row on one member"),
        ],
    },
    build,
};

fn build(input: &BuildInput<'_>) -> Result<Box<dyn Layer>, Vec<Problem>> {
    let bytes = input.settings.bytes("chunk");
    let mut problems = Vec::new();
    if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) {
        problems.push(Problem::new("chunk", "must be a multiple of 512 bytes"));
    }
    let Some(smallest) = input.children.iter().map(|child| child.capacity).min() else {
        problems.push(Problem::new("members", "needs at least one device"));
        return Err(problems);
    };
    let members = input.children.len() as u64;
    let chunk = (bytes / SECTOR_BYTES).max(1);
    if smallest < chunk {
        let message = format!("must not exceed the smallest member of {smallest} sectors");
        problems.push(Problem::new("chunk", message));
    }
    if smallest.checked_mul(members).is_none() {
        problems.push(Problem::new("members", "together exceed 2^64 sectors"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Box::new(Stripe { members, chunk, rows: smallest / chunk, fanout: Fanout::default() }))
}

/// The volume.
#[derive(Debug)]
pub struct Stripe {
    members: u64,
    /// Sectors in a chunk.
    chunk: u64,
    /// Chunks on each member.
    rows: u64,
    fanout: Fanout,
}

impl Stripe {
    /// What `member` holds of sectors `lba..end`: its own first sector and number of sectors.
    fn share(&self, member: u64, lba: u64, end: u64) -> Option<(u64, u64)> {
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

    /// Copies between a parent's data and a member's own buffer.
    fn copy(
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
                let stamp = ctx.data().stamps(from.skip(sector), 1)[0];
                ctx.data().stamps_mut(to.skip(sector), 1)[0] = stamp;
            }
        });
    }
}

impl Layer for Stripe {
    fn capacity(&self) -> u64 {
        self.rows * self.chunk * self.members
    }

    fn info(&self) -> LayerInfo {
        LayerInfo {
            kind: ENTRY.description.name,
            constants: vec![("members", self.members as f64), ("chunk_sectors", self.chunk as f64)],
            ..LayerInfo::default()
        }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if request.op == Op::Flush {
            let tag = self.fanout.open(id, request, self.members as u32);
            for member in 0..self.members as usize {
                ctx.issue(member, *request, tag);
            }
            return;
        }
        let (lba, end) = (request.lba.0, request.end().0);
        let shares = |member| self.share(member, lba, end);
        let count = (0..self.members).filter_map(shares).count();
        let tag = self.fanout.open(id, request, count as u32);
        for member in 0..self.members {
            let Some((from, sectors)) = self.share(member, lba, end) else { continue };
            let mut child = request.part(0, sectors as u32, Lba(from));
            if !request.data.is_none() {
                child.data = ctx.take_data(child.sectors);
                if request.op == Op::Write {
                    self.copy(ctx, request, &child, member, true);
                }
            }
            ctx.issue(member as usize, child, tag);
        }
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.request.data != DataSlice::NONE && done.request.op != Op::Flush {
            let parent = self.fanout.request(done.tag);
            if done.request.op == Op::Read {
                self.copy(ctx, &parent, &done.request, done.child as u64, false);
            }
            ctx.data().give_back(done.request.data);
        }
        self.fanout.close(ctx, done);
    }
}
