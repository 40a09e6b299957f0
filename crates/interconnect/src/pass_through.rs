//! A controller without a queue: everything goes on to the devices after a fixed time.

use super::{BUSES, COMMAND_TIME, check_buses};
use crate::lanes::Lanes;
use hybridsim_config::build::{BuildInput, LayerEntry};
use hybridsim_config::param::Built;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Completion, Ctx, Lane, Layer, LayerInfo, Outcome, Part, Request, RequestId, SimDuration,
};
use slab::Slab;
use std::rc::Rc;

/// The registered entry.
pub const ENTRY: LayerEntry = LayerEntry {
    description: Description {
        name: "pass-through-controller",
        summary: "A controller that hands everything on to the devices behind it",
        origin: "DiskSim 4.0, disksim_ctlr type 1",
        params: &[BUSES, COMMAND_TIME],
    },
    build,
};

fn build(input: &BuildInput<'_>) -> Built<dyn Layer> {
    let mut problems = Vec::new();
    check_buses(input, &mut problems);
    let lanes = Lanes::new(input.children, "buses").map_err(|more| problems.extend(more)).ok();
    let (Some(lanes), true) = (lanes, problems.is_empty()) else { return Err(problems) };
    let command = input.settings.duration("command_time");
    Ok(Box::new(PassThrough { lanes, command, commands: Slab::new() }))
}

/// The controller.
pub struct PassThrough {
    lanes: Lanes,
    command: SimDuration,
    commands: Slab<(RequestId, Request)>,
}

impl PassThrough {
    fn issue(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let (lane, request) = self.lanes.split(request);
        ctx.issue(lane, request, u64::from(id.0));
    }
}

impl Layer for PassThrough {
    fn capacity(&self) -> u64 {
        self.lanes.capacity()
    }

    fn info(&self) -> LayerInfo {
        LayerInfo { kind: ENTRY.description.name, ..LayerInfo::default() }
    }

    fn lanes(&self) -> Vec<Lane> {
        self.lanes.all()
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        self.lanes.only_positioner()
    }

    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        if self.command.is_zero() {
            self.issue(ctx, id, request);
            return;
        }
        let slot = self.commands.insert((id, *request));
        ctx.wake_after(self.command, slot as u64);
    }

    fn wake(&mut self, ctx: &mut Ctx<'_>, token: u64) {
        let (id, request) = self.commands.remove(token as usize);
        self.issue(ctx, id, &request);
    }

    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion) {
        let parts = done.parts.plus(Part::Overhead, self.command);
        let id = RequestId(done.tag as u32);
        if done.outcome == Outcome::Failed {
            ctx.fail_request(id, parts);
        } else {
            ctx.complete(id, parts);
        }
    }
}
