//! A controller without a queue: forwards every request after a fixed time.

use super::Controller;
use crate::targets::Targets;
use hybridsim_config::build::{BuildInput, ComponentEntry};
use hybridsim_config::param::Built;
use hybridsim_config::registry::Description;
use hybridsim_engine::schedule::Positioner;
use hybridsim_engine::{
    Checkpoint, Completion, Component, ComponentInfo, Ctx, LatencyPhase, Request, RequestId,
    SimDuration, Target,
};
use slab::Slab;
use std::rc::Rc;

pub const ENTRY: ComponentEntry = ComponentEntry::new(
    Description {
        name: "pass-through-controller",
        summary: "A controller that forwards every request to the devices behind it",
        origin: "DiskSim 4.0, disksim_ctlr type 1",
        params: Controller::PARAMS,
    },
    build,
);

fn build(input: &BuildInput<'_>) -> Built<dyn Component> {
    let mut problems = Vec::new();
    let params = Controller::from_settings(input.settings);
    params.check(&mut problems);
    let targets = Targets::new(input.children, "buses").map_err(|more| problems.extend(more)).ok();
    let (Some(targets), true) = (targets, problems.is_empty()) else { return Err(problems) };
    Ok(Box::new(PassThrough { targets, command: params.command_time, commands: Slab::new() }))
}

/// The controller.
pub struct PassThrough {
    targets: Targets,
    command: SimDuration,
    commands: Slab<(RequestId, Request)>,
}

impl PassThrough {
    fn issue(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request) {
        let (target, request) = self.targets.split(request);
        ctx.issue(target, request, u64::from(id.0));
    }
}

impl Component for PassThrough {
    fn capacity(&self) -> u64 {
        self.targets.capacity()
    }

    fn info(&self) -> ComponentInfo {
        ComponentInfo { kind: ENTRY.description.name, ..ComponentInfo::default() }
    }

    fn targets(&self) -> Vec<Target> {
        self.targets.all()
    }

    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        self.targets.only_positioner()
    }

    fn accepts_zone_commands(&self) -> bool {
        true
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
        let breakdown = done.breakdown.plus(LatencyPhase::Overhead, self.command);
        ctx.complete_as(RequestId(done.tag as u32), breakdown, done.failed());
    }

    hybridsim_engine::supports!(Checkpoint);
}

impl Checkpoint for PassThrough {
    hybridsim_engine::saves!();
}
