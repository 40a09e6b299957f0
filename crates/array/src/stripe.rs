//! Striping (RAID level 0): chunks are distributed round-robin over the members.
//!
//! The part of a request on one member is contiguous there, so every member gets at most one
//! request. Its data are scattered over those of the parent's request and travel in a buffer of
//! their own.

use super::fanout::Fanout;
use super::striping::Striping;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, DataSlice, Lba, Op, PowerFailure,
    Request, RequestId, SECTOR_BYTES, SimTime,
};

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "stripe",
        summary: "RAID 0: chunks are striped over the members, without redundancy",
        origin: "Patterson, Gibson and Katz 1988; the size of the smallest member counts",
        params: Parameters::PARAMS,
    },
    build,
);

hybridsim_config::params! {
    pub struct Parameters {
        pub members: Vec<String> = Kind::Components, required, "The devices, in order";
        chunk: u64 = Kind::Bytes, default "\"64KiB\"", "Bytes in a row on one member";
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let bytes = Parameters::from_settings(input.settings).chunk;
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
    let striping = Striping { members, chunk };
    Ok(Box::new(Stripe { striping, rows: smallest / chunk, fanout: Fanout::default() }))
}

/// The array.
#[derive(Debug)]
pub struct Stripe {
    striping: Striping,
    /// Chunks on each member.
    rows: u64,
    fanout: Fanout,
}

impl Component for Stripe {
    fn capacity(&self) -> u64 {
        self.rows * self.striping.chunk * self.striping.members
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo {
            kind: ENTRY.description.name,
            constants: vec![
                ("members", self.striping.members as f64),
                ("chunk_sectors", self.striping.chunk as f64),
            ],
            ..ComponentInfo::default()
        }
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if request.op == Op::Flush {
            let members = self.striping.members;
            let tag = self.fanout.open(id, request, members as u32);
            for member in 0..members as usize {
                ctx.issue(member, *request, tag);
            }
            return;
        }
        let (lba, end) = (request.lba.0, request.end().0);
        let (first, count) = self.striping.concerned(lba, end);
        let tag = self.fanout.open(id, request, count as u32);
        for turn in 0..count {
            let member = (first + turn) % self.striping.members;
            let share = self.striping.share(member, lba, end);
            let (from, sectors) = share.expect("the member is concerned");
            let mut child = request.part(0, sectors as u32, Lba(from));
            if !request.data.is_none() {
                child.data = ctx.take_data(child.sectors);
                if request.op == Op::Write {
                    self.striping.copy(ctx, request, &child, member, true);
                }
            }
            ctx.issue(member as usize, child, tag);
        }
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        if done.request.data != DataSlice::NONE && done.request.op != Op::Flush {
            let parent = self.fanout.request(done.tag);
            if done.request.op == Op::Read {
                self.striping.copy(ctx, &parent, &done.request, done.child as u64, false);
            }
            ctx.data().give_back(done.request.data);
        }
        self.fanout.close(ctx, done);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl Checkpoint for Stripe {
    hybridsim_engine::saves!();
}

impl PowerFailure for Stripe {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        self.fanout.clear();
        Ok(())
    }
}
