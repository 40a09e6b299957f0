//! Striping (RAID level 0): chunks are distributed round-robin over the members.
//!
//! The part of a request on one member is contiguous there, so every member gets at most one
//! request. Its data are scattered over those of the parent's request and travel in a buffer of
//! their own.
//!
//! Over devices whose zones are written in order it has zones itself, see [`zoned`](super::zoned).

use super::fanout::Fanout;
use super::striping::Striping;
use super::zoned::{Saved, Zones};
use hybridsim_config::build::{BuildInput, ChildView, ComponentEntry};
use hybridsim_config::param::{Built, Kind, Problem};
use hybridsim_config::registry::Description;
use hybridsim_engine::zone_table::{ZONE_SECTORS, ZoneStatus};
use hybridsim_engine::{
    Checkpoint, CommonEvent, Completion, Component, ComponentInfo, Ctx, DataSlice,
    LatencyBreakdown, LatencyPhase, Lba, Loader, Op, PowerFailure, Request, RequestId,
    SECTOR_BYTES, Saver, SimDuration, SimTime, StateError, ZoneAction, ZoneLayout,
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
        chunk: u64 = Kind::Bytes, default "\"64KiB\"",
            "Bytes in a row on one member. Where the zones of members are written in order, it \
             divides their size and capacity: zone i of the array consists of the zones i of all \
             members.";
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
    let layout = zones(input.children, chunk).unwrap_or_else(|problem| {
        problems.push(problem);
        None
    });
    if !problems.is_empty() {
        return Err(problems);
    }
    let striping = Striping { members, chunk };
    let rows = smallest / chunk;
    Ok(Box::new(Stripe {
        striping,
        rows,
        fanout: Fanout::default(),
        zones: layout.map(Zones::new),
    }))
}

/// The zones of a stripe; `None` over members without zones, or with zones that take writes
/// anywhere, as the array then does.
fn zones(members: &[ChildView], chunk: u64) -> Result<Option<ZoneLayout>, Problem> {
    let in_order = |zones: &ZoneLayout| zones.in_order_only;
    let layouts: Vec<_> = members.iter().map(|it| it.zones.filter(in_order)).collect();
    let Some(first) = layouts.iter().copied().flatten().next() else { return Ok(None) };
    if layouts.iter().flatten().any(|zones| zones.first > 0) {
        let message = "have conventional zones, which a stripe does not combine";
        return Err(Problem::new("members", message));
    }
    let Some(all) = ZoneLayout::joined(&layouts) else {
        let message = "have different zones, or some have none that are written in order; use \
                       devices with zones of one size";
        return Err(Problem::new("members", message));
    };
    let ZoneLayout { size, capacity, page, .. } = first;
    let fits = size.is_multiple_of(chunk) && capacity.is_multiple_of(chunk);
    if !fits || !chunk.is_multiple_of(page) {
        let message = format!(
            "{chunk} sectors; must divide the {capacity} sectors of a zone that can be written and \
             the {size} from one zone to the next, and be whole pages of {page} sectors"
        );
        return Err(Problem::new("chunk", message));
    }
    let count = members.len() as u64;
    let size = size.saturating_mul(count);
    if u32::try_from(size).is_err() {
        return Err(Problem::new("members", "together have zones of 2 TiB or more"));
    }
    let zones = layouts.iter().flatten().map(|it| it.zones).min().unwrap_or(0);
    let capacity = capacity * count;
    // Members could not move the areas of a zone together.
    Ok(Some(ZoneLayout { zones, size, capacity, random: None, ..all }))
}

/// The array.
#[derive(Debug)]
pub struct Stripe {
    striping: Striping,
    /// Chunks on each member.
    rows: u64,
    fanout: Fanout,
    /// Over zoned devices.
    zones: Option<Zones>,
}

impl Stripe {
    /// Admits what changes a zone, and returns the sector at which it does; a refused request
    /// completes after a tick, as repeating it at once must not stop the time.
    fn admit(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) -> Option<Lba> {
        let Some(zones) = &mut self.zones else { return Some(request.lba) };
        let admitted = match request.op {
            Op::Write => zones.write(request),
            Op::Zone(action) => zones.manage(request, action).map(|()| request.lba),
            Op::Read | Op::Trim | Op::Flush => return Some(request.lba),
        };
        let status = match admitted {
            Ok(lba) => {
                ctx.check_append(request.lba, lba);
                return Some(lba);
            }
            Err(status) => status,
        };
        ctx.emit(CommonEvent::Custom { name: status as u8, value: 1 });
        let tick = SimDuration::from_ns(1);
        let breakdown = LatencyBreakdown::NONE.plus(LatencyPhase::Overhead, tick);
        ctx.refuse_at(id, ctx.now() + tick, breakdown);
        None
    }

    /// Manages the zones of the members.
    fn manage(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let Some(zones) = &self.zones else { return };
        let Striping { members, .. } = self.striping;
        let (written, capacity) = (zones.written_before(request), zones.layout.capacity / members);
        let concerned = |member: &u64| {
            let share = (written > 0).then(|| self.striping.share(*member, 0, written)).flatten();
            zones.concerns(request, (share.map_or(0, |share| share.1), capacity))
        };
        let count = (0..members).filter(concerned).count();
        let tag = self.fanout.open(id, request, count as u32);
        let (lba, sectors) = (Lba(request.lba.0 / members), request.sectors / members as u32);
        for member in (0..members).filter(concerned) {
            ctx.issue(member as usize, Request { lba, sectors, ..*request }, tag);
        }
    }
}

impl Component for Stripe {
    fn capacity(&self) -> u64 {
        self.rows * self.striping.chunk * self.striping.members
    }

    fn info(&self) -> ComponentInfo {
        let mut constants = vec![
            ("members", self.striping.members as f64),
            ("chunk_sectors", self.striping.chunk as f64),
        ];
        constants.extend(self.zones.as_ref().map(|it| (ZONE_SECTORS, it.layout.size as f64)));
        ComponentInfo {
            kind: ENTRY.description.name,
            constants,
            custom: if self.zones.is_some() { ZoneStatus::NAMES } else { &[] },
            ..ComponentInfo::default()
        }
    }

    fn accepts_zone_commands(&self) -> bool {
        self.zones.is_some()
    }

    fn zone_layout(&self, _children: &[Option<ZoneLayout>]) -> Option<ZoneLayout> {
        self.zones.as_ref().map(|zones| zones.layout)
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
        let Some(lba) = self.admit(ctx, id, request) else { return };
        let request = &Request { lba, ..*request };
        if matches!(request.op, Op::Zone(_)) {
            return self.manage(ctx, id, request);
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
        // After a power failure, members may have closed a zone, or have it full.
        let may_fail = matches!(done.request.op, Op::Zone(ZoneAction::Open | ZoneAction::Close));
        let Some(pending) = self.fanout.one_done(done, done.failed() && !may_fail) else { return };
        match (&mut self.zones, pending.request.op) {
            (Some(zones), Op::Write) => zones.written(&pending.request, pending.failed),
            (Some(zones), Op::Zone(action)) => {
                zones.managed(&pending.request, action, pending.failed);
            }
            _ => {}
        }
        pending.complete(ctx, done.breakdown);
    }

    hybridsim_engine::supports!(Checkpoint, PowerFailure);
}

impl Checkpoint for Stripe {
    fn save(&self, to: &mut Saver) -> Result<(), StateError> {
        if let Some(zones) = &self.zones {
            to.put(&zones.state());
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Loader<'_>) -> Result<(), StateError> {
        let Some(zones) = &mut self.zones else { return Ok(()) };
        let saved: Saved = from.take()?;
        zones.restore(saved).map_err(StateError)
    }
}

impl PowerFailure for Stripe {
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        self.fanout.clear();
        if let Some(zones) = &mut self.zones {
            zones.power_cut();
        }
        Ok(())
    }
}
