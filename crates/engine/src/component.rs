//! What a node of the system is: a state machine that gets messages and writes messages.

use crate::event::{LatencyBreakdown, PowerState};
use crate::machine::Ctx;
use crate::request::{Command, Request, RequestId};
use crate::schedule::Positioner;
use crate::source::Source;
use crate::state::{Loader, Saver, StateError};
use crate::time::{SimDuration, SimTime};
use std::rc::Rc;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Served.
    Done,
    /// The device could not serve it (its medium failed or is gone). Data are undefined.
    Failed,
}

/// The news that a request a component issued is done.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The name [`Ctx::issue`] gave the request; free for reuse from now on.
    pub id: RequestId,
    /// The request, as issued.
    pub request: Request,
    /// The number the component gave when it issued the request.
    pub tag: u64,
    /// The child it was issued to.
    pub child: usize,
    /// Issue to completion.
    pub latency: SimDuration,
    /// The latency, split by where it went.
    pub breakdown: LatencyBreakdown,
    /// How it ended.
    pub outcome: Outcome,
}

/// What a report needs to know about a node; constant over the run.
#[derive(Clone, Debug, Default)]
pub struct ComponentInfo {
    /// Registered name of the kind, such as `hard-disk`.
    pub kind: &'static str,
    /// Watts drawn in each [`PowerState`]; `None` where the component draws no power of its own.
    pub watts: Option<[f64; PowerState::COUNT]>,
    /// Joules per flash read, program and erase, added to the power above.
    pub flash_joules: Option<[f64; 3]>,
    /// Joules per block looked at in search of a victim, added to the power above.
    pub search_joules: f64,
    /// Joules per spin-up, added to the power above.
    pub spin_up_joules: f64,
    /// Watts drawn in every state, by what draws them, added to the power above.
    pub always_watts: Vec<(&'static str, f64)>,
    /// Flash geometry and other constants worth showing: (name, value).
    pub constants: Vec<(&'static str, f64)>,
    /// Names of the component's [`crate::Event::Custom`] numbers.
    pub custom: &'static [&'static str],
}

/// A state machine: a controller, a cache, an array, a device.
///
/// A component completes every request it gets exactly once, now or later. It may issue requests to
/// its children, set timers and tell events, all through the [`Ctx`]. It never asks what time it
/// will be, who its parent is or what its children are.
pub trait Component {
    /// Sectors it offers to its parent.
    fn capacity(&self) -> u64;

    /// Constants for the report.
    fn info(&self) -> ComponentInfo;

    /// Positioning estimates for schedulers above, where the component has a moving head.
    fn positioner(&self) -> Option<Rc<dyn Positioner>> {
        None
    }

    /// Whether [`Component::prepare`] has work to do that is worth remembering.
    fn prepares(&self) -> bool {
        false
    }

    /// Brings the component into the state a run starts from, without time and without events: writes
    /// a device full, say. `watch` is told the share that is done now and then; when it returns
    /// `false` the component gives up at once, with whatever result. Called once, before
    /// [`Component::start`], unless [`Component::restore`] took its place.
    ///
    /// # Errors
    /// When the component cannot get there.
    fn prepare(&mut self, _watch: &mut dyn FnMut(f64) -> bool) -> Result<(), String> {
        Ok(())
    }

    /// Puts down everything a later run has to know to go on as if this one had not ended. Called
    /// while no request is in flight. Stamps of verified runs are no part of it.
    ///
    /// # Errors
    /// When this kind of component cannot.
    fn save(&self, _to: &mut Saver) -> Result<(), StateError> {
        Err(StateError(format!("a `{}` cannot save its state", self.info().kind)))
    }

    /// Takes back what [`Component::save`] put down. [`Component::start`] follows, at the time of the
    /// save; timers that were set then still go off.
    ///
    /// # Errors
    /// When the state is not of this system; the component must not be used afterwards.
    fn restore(&mut self, _from: &mut Loader<'_>) -> Result<(), StateError> {
        Err(StateError(format!("a `{}` cannot take its state back", self.info().kind)))
    }

    /// The devices it gives access to without combining them, in order: a bus, or a controller on
    /// the way to one. Empty for everything that is one device itself. Targets lie behind one
    /// another in the component's address space, and the parent sees each as a child of its own.
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }

    /// Called once before the first request.
    fn start(&mut self, _ctx: &mut Ctx<'_>) {}

    /// A request from the parent. The range is within [`Component::capacity`].
    fn request(&mut self, ctx: &mut Ctx<'_>, id: RequestId, request: &Request);

    /// A command from the parent about the range of `request`, whose operation means nothing.
    /// What is about the spindle goes on to everything below unless a component knows better; any
    /// other command ends the run.
    fn command(&mut self, ctx: &mut Ctx<'_>, id: RequestId, command: Command, _request: &Request) {
        if command.is_about_spindle() {
            return ctx.broadcast(id, command);
        }
        ctx.unknown_command(self.info().kind, command);
    }

    /// A request issued to a child is done, or a command.
    fn completion(&mut self, ctx: &mut Ctx<'_>, done: &Completion);

    /// `requests` will probably come next, in this order; a component with large tables may look up
    /// early what they need. Nothing that happens may depend on it. Addresses are unchecked.
    fn expect(&self, _requests: &[Request]) {}

    /// A timer set with [`Ctx::wake_at`] went off.
    fn wake(&mut self, _ctx: &mut Ctx<'_>, _token: u64) {}

    /// The power fails, now: everything volatile is lost, and with it every request in flight,
    /// from above and to children. No completion, timer or buffer of stamps from before comes
    /// back. What a medium held of writes in flight is for it to say, see [`crate::InFlightWrites`].
    ///
    /// A disk that keeps acknowledged writes in its buffer loses them, but for those it was told
    /// to force ([`crate::Flags::FUA`]) or to [flush](crate::Op::Flush): whoever writes back to
    /// it from a durable copy has to ask for that before giving the copy up.
    ///
    /// # Errors
    /// When this kind of component does not model it.
    fn power_cut(&mut self, _now: SimTime) -> Result<(), String> {
        Err(format!("a `{}` does not model power failures", self.info().kind))
    }

    /// The power is back, at the same instant; children are told first. Account for time not told
    /// yet and recover: requests to children may be issued and timers set. Requests from above
    /// may come at once and have to wait until the component can serve them.
    fn power_on(&mut self, _ctx: &mut Ctx<'_>) {}

    /// Called once after the last request: account for time not told yet.
    fn finish(&mut self, _ctx: &mut Ctx<'_>) {}

    /// Runs `workload` through the component's state without taking time and without telling events.
    ///
    /// # Errors
    /// When the workload breaks off, or the component has no untimed mode.
    fn precondition(&mut self, _workload: &mut dyn Source) -> Result<(), String> {
        Err("this component cannot be preconditioned; precondition the devices below it".to_owned())
    }
}

/// A device that a component gives access to; see [`Component::targets`].
#[derive(Clone)]
pub struct Target {
    /// Sectors it offers.
    pub sectors: u64,
    /// Its positioning estimates, if it has a moving head.
    pub positioner: Option<Rc<dyn Positioner>>,
}

/// A component with its name and children: what a scenario is built into.
pub struct ComponentTree {
    /// Path from the root, such as `hybrid/flash`.
    pub path: String,
    /// The component.
    pub component: Box<dyn Component>,
    /// Its children, in the order the component numbers them.
    pub children: Vec<ComponentTree>,
}

impl ComponentTree {
    /// A node without children.
    pub fn leaf(path: &str, component: impl Component + 'static) -> Self {
        Self { path: path.to_owned(), component: Box::new(component), children: Vec::new() }
    }

    /// A node with children.
    pub fn inner(path: &str, component: impl Component + 'static, children: Vec<Self>) -> Self {
        Self { path: path.to_owned(), component: Box::new(component), children }
    }
}
