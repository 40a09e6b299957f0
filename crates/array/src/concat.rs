//! Concatenation: the address spaces of the members follow each other.

use super::fanout::Fanout;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, Lba, Op, PowerFailure, Request,
    RequestId, SimTime,
};

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "concat",
        summary: "concatenated devices: their address spaces follow each other",
        origin: "common knowledge (JBOD, linear)",
        params: Parameters::PARAMS,
    },
    build,
);

hybridsim_config::params! {
    pub struct Parameters {
        pub members: Vec<String> = Kind::Components, required, "The devices, in order";
    }
}

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let sizes: Vec<u64> = input.children.iter().map(|child| child.capacity).collect();
    match Concat::new(&sizes) {
        Some(concat) => Ok(Box::new(concat)),
        None => Err(vec![Problem::new(
            "members",
            "needs at least one device, and together less than 2^64 sectors",
        )]),
    }
}

/// The array.
#[derive(Debug)]
pub struct Concat {
    /// First sector after each member.
    ends: Vec<u64>,
    fanout: Fanout,
}

impl Concat {
    /// Members of these sizes in sectors; `None` when there is none or they are too large.
    pub fn new(sizes: &[u64]) -> Option<Self> {
        let mut end = 0u64;
        let mut ends = Vec::with_capacity(sizes.len());
        for size in sizes {
            end = end.checked_add(*size)?;
            ends.push(end);
        }
        (!ends.is_empty()).then(|| Self { ends, fanout: Fanout::default() })
    }

    fn first(&self, member: usize) -> u64 {
        if member == 0 { 0 } else { self.ends[member - 1] }
    }
}

impl Component for Concat {
    fn capacity(&self) -> u64 {
        self.ends[self.ends.len() - 1]
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: ENTRY.description.name, ..ComponentInfo::default() }
    }

    fn accepts_zone_commands(&self) -> bool {
        true
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if request.op == Op::Flush {
            let members = self.ends.len();
            let tag = self.fanout.open(id, request, members as u32);
            for member in 0..members {
                ctx.issue(member, *request, tag);
            }
            return;
        }
        let (lba, end) = (request.lba.0, request.end().0);
        let head = self.ends.partition_point(|member_end| *member_end <= lba);
        let tail = self.ends.partition_point(|member_end| *member_end < end);
        // An empty member in between gets no request.
        let part = |member: usize| (lba.max(self.first(member)), end.min(self.ends[member]));
        let count = (head..=tail).map(part).filter(|(from, to)| from < to).count();
        let tag = self.fanout.open(id, request, count as u32);
        for member in head..=tail {
            let first = self.first(member);
            let (from, to) = (lba.max(first), end.min(self.ends[member]));
            if from < to {
                let sectors = (to - from) as u32;
                ctx.issue(
                    member,
                    request.part((from - lba) as u32, sectors, Lba(from - first)),
                    tag,
                );
            }
        }
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        self.fanout.close(ctx, done);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl Checkpoint for Concat {
    hybridsim_engine::saves!();
}

impl PowerFailure for Concat {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        self.fanout.clear();
        Ok(())
    }
}
